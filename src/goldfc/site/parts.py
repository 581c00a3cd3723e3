"""The parts of a site, in a file of its own: its reservoir, in the folder that stays at the site (ledger.py).

It is for its owner alone, and holds rows: `goldfc forget` removes it.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from goldfc.agreement import Agreement
from goldfc.errors import BadSettings
from goldfc.files import open_plain, shared_with, sync_folder, write_durably
from goldfc.message.columns import as_facts
from goldfc.message.levels import Level
from goldfc.message.message import canonical_json
from goldfc.site.ledger import SECRET_BYTES, Ledger
from goldfc.site.policy import Policy
from goldfc.site.reservoir import NewRows, Reservoir, limit_of, refuse_sample
from goldfc.site.rows import MOST_NUMBERS_KEPT
from goldfc.site.table.table import Table

END = ".reservoir"
# The rows, the lot and the person of each, a digest of every part, and facts.
MOST_BYTES_OF_PARTS = 3 * 8 * MOST_NUMBERS_KEPT + 2**26

Facts = dict[str, Any]


@dataclass(frozen=True)
class Parts:
    """What a site keeps of its parts for one federation, over all rounds."""

    site: str
    agreement: Agreement
    level: Level
    ledger: Ledger

    @property
    def path(self) -> Path:
        """Where."""
        named = canonical_json([self.agreement.federation, self.site]).encode()
        return self.ledger.folder / f"{hashlib.blake2b(named, digest_size=16).hexdigest()}{END}"

    def add(self, table: Table) -> tuple[Reservoir, bool]:
        """With one more part, and whether that was in already; it is on the disk before anything is made of it.

        It can be killed at any moment: the part is in, or it is not, and may be added again either way.
        """
        with self.ledger.locked():
            grown, known = self.grown(table, self.ledger.made_secret())
            if not known:
                write_durably(self.path, as_bytes(grown, self.facts(table)), private=True)
        return grown, known

    def tried(self, table: Table) -> tuple[Reservoir, bool]:
        """The same, and nothing is written."""
        return self.grown(table, self.ledger.secret() or secrets.token_bytes(SECRET_BYTES))

    def grown(self, table: Table, secret: bytes) -> tuple[Reservoir, bool]:
        """What there was and one more part; and whether nothing is new."""
        part = NewRows.of(table)
        before = read_reservoir(self.path, self.facts(table)) or Reservoir.empty(part)
        after = before.added(part, secret, limit_of(self.level, part.rows.shape[1]))
        refuse_sample(after, self.level)
        return after, after is before

    def facts(self, table: Table) -> Facts:
        """What all parts must have in common."""
        return {
            "site": self.site,
            "federation": self.agreement.federation,
            "columns": as_facts(self.agreement.terms)["columns"],
            "features": table.rows.shape[1],
            "people": table.persons is not None,
        }


def as_bytes(reservoir: Reservoir, facts: Facts) -> bytes:
    """As it is kept."""
    arrays = {"rows": reservoir.rows, "lots": reservoir.lots, "parts": reservoir.parts}
    if reservoir.persons is not None:
        arrays["persons"] = reservoir.persons
    return save(arrays, {"goldfc": canonical_json({"facts": facts, "total": reservoir.total})})


def read_reservoir(path: Path, facts: Facts) -> Reservoir | None:
    """What was kept before; None if nothing was."""
    try:
        file = open_plain(path)
    except FileNotFoundError:
        return None
    with file:
        shared, content = shared_with(os.fstat(file.fileno())), file.read(MOST_BYTES_OF_PARTS + 1)
    if shared:
        raise BadSettings(f"{path} must be for its owner alone; see to it (chmod 600).", "reservoir-shared")
    try:
        told, reservoir = from_bytes(content)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise BadSettings(
            f"{path.parent.name}/{path.name} is damaged; remove it, and add all parts again.", "reservoir-damaged"
        ) from error
    if told != facts:
        raise BadSettings(
            f"The parts that were added as {facts['site']!r} before have other columns, or another way to say whose a "
            "row is; forget them, and add all parts again.",
            "reservoir-differs",
        )
    return reservoir


def from_bytes(content: bytes) -> tuple[Facts, Reservoir]:
    """What a file says, if it is whole."""
    if len(content) > MOST_BYTES_OF_PARTS:
        raise ValueError("it is too large")
    arrays, length = load(content), int.from_bytes(content[:8], "little")
    told = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["goldfc"])
    found = Reservoir(arrays["rows"], arrays["lots"], arrays.get("persons"), arrays["parts"], told["total"])
    each = [found.lots] if found.persons is None else [found.lots, found.persons]
    if not (found.rows.ndim == 2 and found.rows.dtype == np.float64 and np.isfinite(found.rows).all()):
        raise ValueError("its rows must be numbers")
    if found.rows.shape[1] != told["facts"]["features"] or told["facts"]["people"] != (found.persons is not None):
        raise ValueError("it must hold what it says")
    if not all(one.dtype == np.uint64 and one.shape == found.rows.shape[:1] for one in each):
        raise ValueError("every row needs a lot")
    if found.parts.dtype != np.uint64 or found.parts.ndim != 1 or not is_count(found.total, len(found.rows)):
        raise ValueError("it must say of which parts it is")
    return told["facts"], found


def is_count(total: object, least: int) -> bool:
    """Whether there can have been so many rows."""
    return isinstance(total, int) and total >= least


def reservoirs(ledger: Ledger) -> Sequence[Path]:
    """All that are kept."""
    return sorted(ledger.folder.glob(f"*{END}"))


def forget_parts(ledger: Ledger, policy: Policy) -> None:
    """With the lock held: remove them; that something was forgotten is written down first."""
    ledger.note("forgot", policy=policy.fingerprint)
    for path in reservoirs(ledger):
        path.unlink()
    sync_folder(ledger.folder)
