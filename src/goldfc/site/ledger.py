"""What stays at a site: a folder for its owner alone, with what was said before and digests of the rows it was said of.

    ledger.jsonl     a line for every message that left, every refusal of a live node, and everything forgotten
    secret           the key of all digests, made once
    .lock            held by whoever writes here
    DIGEST.rows      digests of the rows of one message (see digests.py)
    DIGEST.message   that message, as it was sent

It is `.goldfc` beside the data, or above it: the nearest one that is there. Several folders of one site share one if
`policy.toml` names it (`ledger = "..."`), or the environment variable GOLDFC_LEDGER does.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from goldfc.errors import BadSettings
from goldfc.files import (
    PRIVATE_FOLDER,
    append_durably,
    is_private,
    locked,
    made_private,
    open_plain,
    shared_with,
    sync_folder,
    write_durably,
)
from goldfc.message.message import canonical_json
from goldfc.site.audit import Change
from goldfc.site.digests import Difference, Kept, Looked, difference, open_kept, people_in, write_kept
from goldfc.site.policy import Policy

# What a line says of a message that left, and of one that did so before.
SENT, SENT_AGAIN = "sent", "sent again"
LEDGER, SECRET, LOCK, ROWS, MESSAGE = "ledger.jsonl", "secret", ".lock", ".rows", ".message"
ENVIRONMENT = "GOLDFC_LEDGER"
SECRET_BYTES = 32

LedgerFact = str | int | bool | list[str]


def now() -> str:
    """The time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def age_of(sent: str) -> timedelta:
    """How long ago something was sent; a clock that was set back does not make it older."""
    return max(datetime.now(UTC) - datetime.fromisoformat(sent), timedelta(0))


@dataclass(frozen=True)
class Earlier:
    """A message that left before: what is kept of it in short, and how the people of a table differ from its people."""

    digest: str
    site: str
    sent: str
    question: str
    difference: Difference


@dataclass(frozen=True)
class Ledger:
    """What stays at a site; nothing is written before something is to be kept."""

    folder: Path

    @classmethod
    def of(cls, data: Path, policy: Policy) -> "Ledger":
        """Where it is for some data."""
        named = policy.ledger or os.environ.get(ENVIRONMENT)
        if named:
            return cls(data.parent / Path(named).expanduser())
        above = [folder / PRIVATE_FOLDER for folder in data.resolve().parents]
        return cls(next(filter(is_ours, above), data.parent / PRIVATE_FOLDER))

    # --- the secret ---

    def secret(self) -> bytes | None:
        """The key of all digests; None if there is none yet."""
        path = self.folder / SECRET
        try:
            file = open_plain(path)
        except FileNotFoundError as error:
            if self.digests():
                raise BadSettings(
                    f"{path} is gone, so rows of earlier messages cannot be recognised; put it back, or have what "
                    "is kept of them removed.",
                    "secret-gone",
                ) from error
            return None
        with file:
            shared, content = shared_with(os.fstat(file.fileno())), file.read(SECRET_BYTES + 1)
        if shared or len(content) != SECRET_BYTES:
            raise BadSettings(
                f"{path} must be {SECRET_BYTES} bytes that its owner alone can read; see to it (chmod 600).",
                "secret-shared",
            )
        return content

    def made_secret(self) -> bytes:
        """The key of all digests, made if there is none yet; with the lock held, so that nobody makes another one."""
        found = self.secret()
        if found is None:
            found = secrets.token_bytes(SECRET_BYTES)
            write_durably(made_private(self.folder) / SECRET, found, private=True)
        return found

    # --- what was said before ---

    def digests(self) -> frozenset[str]:
        """Of all messages whose rows are kept."""
        return frozenset(path.name.removesuffix(ROWS) for path in self.folder.glob(f"*{ROWS}"))

    def all_kept(self) -> Iterator[tuple[str, Kept]]:
        """What is kept of each message; it can be read until the next one comes."""
        for digest in sorted(self.digests()):
            with open_kept(self.folder / f"{digest}{ROWS}") as kept:
                yield digest, kept

    def earlier(self, table: Looked) -> list[Earlier]:
        """All messages of largely the same people as in this table."""
        secret = self.secret()
        if secret is None:
            return []
        found = [
            Earlier(
                digest,
                str(kept.facts["site"]),
                str(kept.facts["sent"]),
                str(kept.facts["question"]),
                difference(kept, table, secret),
            )
            for digest, kept in self.all_kept()
        ]
        return [one for one in found if one.difference.largely_the_same]

    def message(self, digest: str, to: str) -> bytes | None:
        """A message as it was sent before to whoever has this key; None if it was not."""
        path = self.folder / f"{digest}{ROWS}"
        if digest not in self.digests():
            return None
        with open_kept(path) as kept:
            facts = kept.facts
        with suppress(FileNotFoundError):
            content = path.with_suffix(MESSAGE).read_bytes()
            if facts["to"] == to and facts["sha256"] == hashlib.sha256(content).hexdigest():
                return content
        return None

    def message_file(self, digest: str) -> Path:
        """Where a message is kept."""
        return self.folder / f"{digest}{MESSAGE}"

    def lines(self) -> Iterator[dict[str, Any]]:
        """All that is noted, in its order; of a line that was cut off, nobody was told."""
        path = self.folder / LEDGER
        for line in path.read_bytes().splitlines() if path.exists() else ():
            with suppress(ValueError):
                yield json.loads(line)

    def last_sent(self, site: str) -> str | None:
        """When a site sent something new the last time."""
        return max((str(kept.facts["sent"]) for _, kept in self.all_kept() if kept.facts["site"] == site), default=None)

    # --- writing ---

    def locked(self) -> AbstractContextManager[None]:
        """Nobody else writes here meanwhile."""
        return locked(made_private(self.folder) / LOCK, wait=True)

    def keep(self, digest: str, message: bytes, table: Looked, **facts: str) -> None:
        """With the lock held: a message, and digests of its rows, which say that it was meant to leave."""
        secret = self.made_secret()
        write_durably(self.message_file(digest), message, private=True)
        told = {**facts, "digest": digest, "sent": now(), "sha256": hashlib.sha256(message).hexdigest()}
        told["people"] = str(people_in(table))
        write_kept(self.folder / f"{digest}{ROWS}", table, secret, told)

    def note(self, event: str, **facts: LedgerFact) -> None:
        """One more line."""
        line = canonical_json({"time": now(), "event": event, **facts}).encode() + b"\n"
        append_durably(made_private(self.folder) / LEDGER, line)

    # --- forgetting ---

    def older_than(self, when: datetime) -> list[str]:
        """The digests of messages that were sent before."""
        return [digest for digest, kept in self.all_kept() if datetime.fromisoformat(str(kept.facts["sent"])) < when]

    def called(self, sha: str) -> list[str]:
        """The digests of messages whose digest, or whose file's, begins so."""
        found = [digest for digest in self.everything() if digest.startswith(sha)]
        return found or [digest for digest, kept in self.all_kept() if str(kept.facts["sha256"]).startswith(sha)]

    def everything(self) -> list[str]:
        """The digests of all messages of which anything is kept."""
        return sorted(self.digests() | {path.name.removesuffix(MESSAGE) for path in self.folder.glob(f"*{MESSAGE}")})

    def forget(self, digests: Sequence[str], policy: Policy) -> None:
        """Remove what is kept of some messages; that something was forgotten is written down first, but not what."""
        if not digests:
            return
        self.note("forgot", policy=policy.fingerprint)
        for digest in digests:
            for end in (MESSAGE, ROWS):
                (self.folder / f"{digest}{end}").unlink(missing_ok=True)
        sync_folder(self.folder)


def is_ours(folder: Path) -> bool:
    """Whether a folder is one where this user, and nobody else, keeps a ledger; on Windows, one in her home."""
    return is_private(folder) and (folder / SECRET).is_file()


def change_since(earlier: Sequence[Earlier], days: int, question: str) -> Change | None:
    """The message of largely the same people that differs least from a table, if any of its people changed; how many.

    Messages of exactly the same people count, but show nobody who came or went.
    """
    if not earlier:
        return None
    recent = [one for one in earlier if age_of(one.sent) <= timedelta(days=days)]
    counts = len(recent), len({one.question for one in recent} | {question})
    changes = [Change(one.sent, one.difference.came, one.difference.went, *counts) for one in earlier]
    others = [change for change in changes if change.people]
    return min(others or changes, key=lambda change: (change.people, change.sent))
