"""Looking at pages as a reader and as a browser do."""

import re
from base64 import b64encode
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser

UNCLOSED = ("meta", "img", "input", "br", "wbr")


class Tags(HTMLParser):
    """All tags of a page; every one that is opened must be closed, the last one first."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Remember it."""
        del attrs
        self.seen.append(tag)
        if tag not in UNCLOSED:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """It must be the one that was opened last."""
        assert self.open.pop() == tag


def tags_of(page: str) -> list[str]:
    """All tags of a well-formed page, in order."""
    tags = Tags()
    tags.feed(re.sub(r"<(\w+)([^<>]*)/>", r"<\1\2></\1>", page))
    assert tags.open == []
    return tags.seen


def text_of(page: str) -> str:
    """What a reader reads: no tags, no line breaks."""
    body = page[page.index("<body>") :]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", body)))


def addresses_in(page: str) -> list[str]:
    """Whatever might be fetched from elsewhere; pictures that are in the page itself are not."""
    return re.findall(r"https?:|//[a-z]|url\(|@import", re.sub(r"base64,[^\"]*", "", page))


def policy_of(page: str) -> str:
    """What a page lets a browser use, its own style and script by their names; no tag may have a style or a handler."""
    assert re.search(r"<[^>]* (style|on\w+)=", page) is None
    found = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    policy = "" if found is None else unescape(found[1])
    for tag in ("style", "script"):
        for own in re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL):
            policy = policy.replace(f"'sha256-{b64encode(sha256(own.encode()).digest()).decode()}'", f"our {tag}")
    return policy
