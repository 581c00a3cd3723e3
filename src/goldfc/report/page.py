"""Pages as files: what they share, and how one is sealed against everything but its own style and script."""

import base64
import hashlib
from functools import cache
from importlib.metadata import version
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader

from goldfc.report.drawings import COLOURS, colour, ink


@cache
def templates(*packages: str) -> Environment:
    """The pages of some packages, which may use what all pages share; names in them are strangers' and are escaped."""
    loaders = [PackageLoader(package) for package in (*packages, "goldfc.report")]
    environment = Environment(loader=ChoiceLoader(loaders), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.globals |= {"colour": colour, "ink": ink, "version": version("goldfc")}
    return environment


def sealed_page(name: str, **content: Any) -> str:
    """A page that runs its own style and script, and loads and runs nothing else, whatever is written in it."""
    environment = templates()
    style, script = (environment.get_template(part).render(colours=COLOURS) for part in ("model.css", "page.js"))
    policy = f"default-src 'none'; style-src {hash_of(style)}; script-src {hash_of(script)}; base-uri 'none'"
    return environment.get_template(name).render(style=style, script=script, policy=policy, **content)


def hash_of(text: str) -> str:
    """What a browser knows an inline part by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
