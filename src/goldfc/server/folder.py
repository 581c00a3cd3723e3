"""The server's side as a folder: messages go in, are checked and kept, and become the model.

    federation.toml   what was agreed on
    inbox/            where messages are put, by whatever way they come
    accepted/         the latest of every site, as it was checked; once here, a message is not lost
    rejected/         what could not be used, each with the reason beside it
    withdrawn/        of sites that no longer take part
    closed.json       written when nothing more is taken
    global.model, sealed/, report.html   the result
    rounds/           one folder for every round before: its model, closed.json and what was rejected

When `round` in federation.toml is raised, the next one begins: what was accepted stays, a newer summary of a site takes
the place of its older one, and the model is made after the last one. Of the history no more than two models are read.
It can be killed at any moment: every file is whole or not there, and the next start goes on where this one ended.
"""

import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal

from goldfc.agreement import FILE, read_agreement
from goldfc.errors import BadMessage, BadSettings
from goldfc.files import locked, sync_folder, write_durably
from goldfc.message.columns import shown
from goldfc.message.envelope import PrivateKey
from goldfc.message.message import canonical_json
from goldfc.message.model import MOST_SITES, Model
from goldfc.message.summary import Summary
from goldfc.message.wire import decode, read_message
from goldfc.server.admit import check_enough, read_summary, server_key
from goldfc.server.deliver import MODEL, letters_of, read_model, write_model
from goldfc.server.round import Round, fuse_admitted

# A message that ends too early may still be on its way; it is looked at again for so many seconds.
SETTLING = 5.0
CLOSED, ROUNDS, REJECTED = "closed.json", "rounds", "rejected"
REASON = ".reason.txt"
# While it is taken out of the inbox, a file has a name that nobody else writes to.
CLAIMED = ".claimed"
MOST_BYTES_OF_A_NAME = 200

Stamp = tuple[int, int, int, int]
Fate = Literal["accepted", "again", "rejected", "waiting"]


@dataclass(frozen=True)
class Event:
    """What became of a file in the inbox; `stuck` is one that could not be taken out of it."""

    outcome: Fate
    file: str
    sentence: str
    stuck: bool = False


@dataclass(frozen=True)
class FolderStatus:
    """Who is in, and who is missing of those that are listed."""

    accepted: tuple[str, ...]
    missing: tuple[str, ...]
    earlier: dict[str, int]  # whose summary is of an earlier round, and of which
    closed: bool
    model: str | None  # its fingerprint, if there is one

    @property
    def all_in(self) -> bool:
        """Whether everybody who is listed has sent something in this round."""
        return not self.missing and not self.earlier


class Folder:
    """A federation's folder; one process at a time works on it."""

    def __init__(self, path: Path, key: PrivateKey | None = None) -> None:
        self.path = path
        self.agreement = read_agreement(path / FILE)
        server_key(self.agreement, key)
        self._key = key
        self.inbox, self.accepted, self.rejected = (path / name for name in ("inbox", "accepted", REJECTED))
        for folder in (self.inbox, self.accepted, self.rejected):
            folder.mkdir(exist_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out while messages are taken in."""
        place = self.path / ".lock"
        with ExitStack() as lock:
            try:
                lock.enter_context(locked(place, wait=False))
            except BlockingIOError as error:
                raise BadSettings(
                    f"Another process is at work in {self.path}; wait until it ends.", "folder-locked"
                ) from error
            except OSError as error:
                raise BadSettings(
                    f"{place} cannot be used ({error.strerror}); it must be a plain file of yours: remove it.",
                    "lock-unusable",
                ) from error
            yield

    @property
    def status(self) -> FolderStatus:
        """How things stand."""
        paths = sorted(path for path in self.accepted.glob("*.summary") if not path.name.startswith("."))
        names = tuple(path.stem for path in paths)
        missing = tuple(name for name in self.agreement.names if name not in names)
        rounds = {path.stem: round_of(path, stamp_of(path)) for path in paths} if self.has_history else {}
        earlier = {name: number for name, number in rounds.items() if number < self.agreement.round}
        return FolderStatus(names, missing, earlier, self.closed.is_file(), self.fingerprint())

    @property
    def closed(self) -> Path:
        """What is there once nothing more is taken."""
        return self.path / CLOSED

    @property
    def has_history(self) -> bool:
        """Whether there was a round before."""
        return (self.path / ROUNDS).is_dir()

    def begin(self) -> None:
        """Put away what is of an earlier round; that it is no longer closed says that all of it is put away."""
        if not self.closed.is_file():
            return
        number = json.loads(self.closed.read_text(encoding="utf-8"))["round"]
        if number > self.agreement.round:
            raise BadSettings(
                f"{FILE} is of round {self.agreement.round}, but round {number} has begun in {self.path}; rounds go "
                "forward only.",
                "round-over",
            )
        if number < self.agreement.round:
            self._put_away(self.path / ROUNDS / str(number), number)

    def _put_away(self, place: Path, number: int) -> None:
        place.mkdir(parents=True, exist_ok=True)
        model = self.path / MODEL
        if model.is_file() and read_model(model).terms.round == number:
            write_durably(place / MODEL, model.read_bytes(), private=self.agreement.sealed)
        write_durably(place / CLOSED, self.closed.read_bytes())
        with suppress(OSError):  # it is there already
            self.rejected.rename(place / REJECTED)
        self.rejected.mkdir(exist_ok=True)
        for folder in (self.path / ROUNDS, place, self.path):
            sync_folder(folder)
        self.closed.unlink()
        sync_folder(self.path)

    def before(self) -> Model | None:
        """The model of the last round before this one that has one; refused if it is not what it seems."""
        found = (self.path / ROUNDS).glob(f"*/{MODEL}")
        places = {int(path.parent.name): path for path in found if path.parent.name.isdecimal()}
        numbers = sorted(number for number in places if number < self.agreement.round)[-2:]
        models = [read_model(places[number]) for number in numbers]
        for number, model in zip(numbers, models, strict=True):
            if model.terms.round != number:
                raise BadMessage(
                    f"{places[number]} is of round {model.terms.round}, not of {number}: put the right one there.",
                    "history-round",
                )
        if len(models) == 2 and models[1].after != models[0].digest:
            raise BadMessage(
                f"{places[numbers[1]]} was not made after {places[numbers[0]]}: one of them is not the model of its "
                "round; put the right one there.",
                "history-forged",
            )
        return models[-1] if models else None

    def withdraw(self, site: str, *, replace: bool = False) -> None:
        """Leave a site out from now on, until it sends again; what it sent is put aside."""
        place, aside = self.accepted / f"{site}.summary", self.path / "withdrawn"
        if (there := self.fingerprint()) is not None and not replace:
            raise BadSettings(
                f"This round has a model already, {there}, by which sites may have labelled their rows; one without "
                f"site {site!r} would replace it.",
                "round-has-model",
            )
        if place.is_file():
            aside.mkdir(exist_ok=True)
            place.replace(aside / place.name)
            sync_folder(aside)
            sync_folder(self.accepted)
        elif not (aside / place.name).is_file():
            raise BadSettings(f"Nothing of site {site!r} is in {self.accepted}.", "site-not-in")

    def is_due(self) -> bool:
        """Whether the deadline has passed."""
        return self.agreement.deadline is not None and datetime.now(UTC) >= self.agreement.deadline

    def close(self) -> None:
        """Take nothing more; with too few sites the round stays open."""
        if not self.closed.is_file():
            check_enough(len(self.status.accepted), self.agreement)
            facts = {"closed": timestamp(), "round": self.agreement.round, "sites": list(self.status.accepted)}
            write_durably(self.closed, canonical_json(facts).encode() + b"\n")

    def take_in(self) -> Iterator[Event]:
        """Judge every file in the inbox; each is on the disk where it belongs before it is spoken of."""
        self.begin()
        for left_over in (path for part in (self.accepted, self.rejected) for path in part.glob(".*.part")):
            left_over.unlink()  # by a process that was killed
        for left_over in self.inbox.glob(f".*{CLAIMED}"):
            with suppress(OSError):
                put_back(left_over, self.inbox / old_name(left_over))
        for entry in sorted(self.inbox.iterdir()):
            if entry.name.startswith(".") or entry.suffix in {".part", ".tmp"}:
                continue
            with suppress(FileNotFoundError):  # somebody took it away
                yield self._judge(entry, stamp_of(entry))

    def _judge(self, entry: Path, stamp: Stamp) -> Event:
        if self.closed.is_file():
            return self._reject(entry, stamp, f"{shown(entry.name)}: it came too late, the round is closed.")
        try:
            summary, body = read_summary(read_message(entry), entry.name, self.agreement, self._key)
        except BadMessage as error:
            if is_fresh(entry):
                return Event("waiting", entry.name, f"{error} It is looked at again.")
            return self._reject(entry, stamp, str(error))
        return self._keep(entry, stamp, summary, body)

    def _keep(self, entry: Path, stamp: Stamp, summary: Summary, body: bytes) -> Event:
        place, who = self.accepted / f"{summary.site}.summary", f"{shown(entry.name)}: the summary of"
        if not place.is_file():
            write_durably(place, body, private=self.agreement.sealed)
            return settled(Event("accepted", entry.name, f"{who} {summary.site!r} is in."), entry, stamp)
        if place.read_bytes() == body:
            return settled(
                Event("again", entry.name, f"{who} {summary.site!r} is in already, the very same."), entry, stamp
            )
        if (number := round_of(place, stamp_of(place))) < summary.terms.round:
            write_durably(place, body, private=self.agreement.sealed)
            sentence = f"{who} {summary.site!r} is in; that of round {number} is no longer needed."
            return settled(Event("accepted", entry.name, sentence), entry, stamp)
        return self._reject(
            entry,
            stamp,
            f"{shown(entry.name)}: site {summary.site!r} has sent another summary before; the first one is kept. "
            "Ask which is right.",
        )

    def _reject(self, entry: Path, stamp: Stamp, reason: str) -> Event:
        place = unused(self.rejected / safe_name(entry.name))
        write_durably(place.with_name(place.name + REASON), f"{timestamp()} {reason}\n".encode(errors="replace"))
        event = settled(Event("rejected", entry.name, reason), entry, stamp, place)
        if event.outcome == "waiting":
            place.with_name(place.name + REASON).unlink()
        sync_folder(self.rejected)
        return event

    def summaries(self) -> list[Summary]:
        """All that are in, checked again."""
        found = []
        for path in sorted(self.accepted.glob("*.summary")):
            message = decode(read_message(path), path.name)
            found.append(self.agreement.read_summary(message, or_earlier=True))
        return found

    def fuse(self, n_clusters: int | None, *, replace: bool = False) -> Round:
        """The model of all that are in, written for everybody; not another one where this round has one."""
        self.begin()
        result = fuse_admitted(self.summaries(), self.agreement, n_clusters, after=self.before())
        there, new = self.fingerprint(), result.model.fingerprint
        if there not in {None, new} and not replace:
            raise BadSettings(
                f"This round has a model already, {there}, by which sites may have labelled their rows; another one, "
                f"{new}, would replace it.",
                "round-has-model",
            )
        letters = letters_of(result.model, self.agreement, self._key)
        write_model(self.path, result.model, letters, sealed=self.agreement.sealed)
        return result

    def fingerprint(self) -> str | None:
        """Of this round's model, if there is one."""
        path = self.path / MODEL
        model = read_model(path) if path.is_file() else None
        return model.fingerprint if model is not None and model.terms.round >= self.agreement.round else None

    def refused(self) -> dict[str, str]:
        """What could not be used, and why."""
        return {
            path.name.removesuffix(REASON): path.read_text(encoding="utf-8", errors="replace").strip()
            for path in sorted(self.rejected.glob(f"*{REASON}"))
            if path.is_file() and not path.is_symlink()
        }


@lru_cache(maxsize=MOST_SITES)
def round_of(path: Path, _stamp: Stamp) -> int:
    """Of which round a summary is that was accepted."""
    return Summary.from_message(decode(read_message(path), path.name)).terms.round


def timestamp() -> str:
    """Now, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def stamp_of(entry: Path) -> Stamp:
    """What tells one state of a file from another."""
    found = entry.lstat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def settled(event: Event, entry: Path, stamp: Stamp, place: Path | None = None) -> Event:
    """The event, with its file taken out of the inbox: to a place, or removed if there is none.

    What cannot be taken out is named and left there, and what was put there in the meantime stays for the next look.
    """
    claimed = entry.with_name(claimed_name(entry.name))
    try:
        entry.rename(claimed)
        if stamp_of(claimed) != stamp:
            put_back(claimed, entry)
            return Event("waiting", entry.name, f"{shown(entry.name)}: it was replaced; it is looked at again.")
        take_out(claimed, place, entry)
    except FileNotFoundError:
        if place is not None:
            raise
        # What is kept is kept, whoever removed the file.
    except OSError as error:
        sentence = f"{event.sentence} It cannot be taken out of the inbox ({error.strerror}); remove it by hand."
        return replace(event, sentence=sentence, stuck=True)
    return event


def claimed_name(name: str) -> str:
    """The name of a file while it is taken out; if there is room, its old name is a part of it."""
    return f".{name if len(os.fsencode(name)) < MOST_BYTES_OF_A_NAME else ''}.{secrets.token_hex(8)}{CLAIMED}"


def old_name(claimed: Path) -> str:
    """The name that a file had before it was claimed."""
    name, _, token = claimed.name.removesuffix(CLAIMED)[1:].rpartition(".")
    return name.lstrip(".") or f"{token}.summary"


def take_out(claimed: Path, place: Path | None, entry: Path) -> None:
    """Move or remove it; if that fails, it has its old name again."""
    try:
        if place is None:
            claimed.unlink()
        else:
            claimed.rename(place)
    except OSError:
        put_back(claimed, entry)
        raise


def put_back(claimed: Path, entry: Path) -> None:
    """Give it a name again that is looked at, but not that of another file which came in the meantime."""
    claimed.rename(unused(entry))


def is_fresh(entry: Path) -> bool:
    """Whether somebody may still be writing it."""
    try:
        return 0.0 <= time.time() - entry.lstat().st_mtime < SETTLING
    except OSError:
        return False


def safe_name(name: str) -> str:
    """The name of a stranger's file as we store it: short, plain, and none that a reason could have."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:100]
    return plain.replace(REASON, "_reason_txt")


def unused(path: Path) -> Path:
    """The path, or the first like it that nothing is at."""
    candidates = (path if number == 1 else path.with_name(f"{path.name}.{number}") for number in range(1, 10**6))
    return next(candidate for candidate in candidates if not os.path.lexists(candidate))
