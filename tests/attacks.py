"""The audit's attack on a message, made once in a run of all tests: it is most of the work that a summary takes.

Which rows it is made on, and what is told of them, is all that it depends on; `site/test_membership.py`, which asks for
that, and whoever else asks what an attack finds, do without.
"""

import hashlib
import json
import os
import pickle
from dataclasses import astuple
from functools import partial
from pathlib import Path

from goldfc.learning.rows import InMemory
from goldfc.site.audit import Again, membership_of
from goldfc.site.membership import Guess
from goldfc.site.privacy import Told
from goldfc.site.rows import Rows

# Of tests about the attack, or about what becomes of rows that are read: each is made anew.
ANEW = ("site/test_membership.py", "site/test_privacy.py", "site/test_stream.py", "bench/test_attacks.py")


def remembering(folder: Path) -> "partial[Guess | None]":
    """`membership_of`, which looks into a folder first; all workers share it."""
    folder.mkdir(exist_ok=True)
    return partial(remembered, folder)


def remembered(folder: Path, rows: Rows, again: Again, expected: float | None = None) -> Guess | None:
    """What the attack finds, or found before."""
    if not isinstance(rows.source, InMemory):
        return membership_of(rows, again, expected)
    found = folder / fingerprint(rows, told_by(again), expected)
    if not found.exists():
        write(found, membership_of(rows, again, expected))
    known = json.loads(found.read_text(encoding="ascii"))
    return None if known is None else Guess(*known)


def told_by(again: Again) -> Told:
    """What other rows are told as exactly as."""
    assert isinstance(again, partial)
    told = again.keywords["told"]
    assert isinstance(told, Told)
    return told


def fingerprint(rows: Rows, told: Told, expected: float | None) -> str:
    """Of all that the attack depends on."""
    table = rows.source.read(0, rows.shape[0])
    facts = (told.allowed, told.rules, told.rows.n_people, len(told.summary.centroids), expected)
    return hashlib.sha256(pickle.dumps((table.shape, table.tobytes(), rows.people, facts))).hexdigest()


def write(path: Path, guess: Guess | None) -> None:
    """Whole or not at all, whoever else writes the same."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_text(json.dumps(guess if guess is None else astuple(guess)), encoding="ascii")
    part.replace(path)
