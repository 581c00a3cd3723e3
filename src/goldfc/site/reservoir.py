"""Rows that come in parts: a site keeps all of them up to a limit, and beyond it a uniform sample: its *reservoir*.

Every row has a lot, a number that nobody can guess: a keyed digest of its part and of its place there. The smallest
lots stay. So the same parts leave the same rows, whatever their order; and up to the limit the reservoir is the table
of all rows, and what is told of it the same, to the last digit. A part that is added again is recognised by its digest,
and one that largely repeats rows by these.

What is told of a sample is told as of all rows: its masses are multiplied (summarize.py).
"""

import hashlib
from dataclasses import dataclass

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadRows, BadSettings
from goldfc.learning.rows import InMemory, RowSource, blocks_of
from goldfc.message.levels import Level, Private
from goldfc.site.digests import Hashes, Key, key_of_numbers, siphash
from goldfc.site.rows import MOST_NUMBERS_KEPT
from goldfc.site.table.cells import numbered
from goldfc.site.table.table import Table

# With so many, ARI with the truth is less than .002 below that with all of 400 000 rows (benchmarks/parts).
MOST_ROWS_KEPT = 50_000
# A part is refused if more of its rows are known than so many, and than chance would have by so many deviations.
MOSTLY_KNOWN, DEVIATIONS = 0.5, 3.0


@dataclass(frozen=True)
class NewRows:
    """Rows that are to be added, and of each a digest of its person, if the table says whose they are."""

    rows: RowSource
    persons: Hashes | None = None

    @classmethod
    def of(cls, table: Table) -> "NewRows":
        """All rows of a table that can be used."""
        return cls(table.rows, None if table.persons is None else table.persons.digest[table.persons.number])

    def digest(self, secret: bytes) -> int:
        """To know it again."""
        found = hashlib.blake2b(key=secret, digest_size=8)
        for _, block in blocks_of(self.rows):
            found.update(np.ascontiguousarray(block).data)
        found.update(b"" if self.persons is None else self.persons.data)
        return int.from_bytes(found.digest(), "little")

    def keys(self) -> Hashes:
        """One number for every row, by its values."""
        return np.concatenate([np.empty(0, np.uint64), *(key_of_numbers(block) for _, block in blocks_of(self.rows))])


@dataclass(frozen=True)
class Reservoir:
    """What is kept of all parts."""

    rows: FloatArray  # in the order in which they came
    lots: Hashes  # of every row
    persons: Hashes | None  # of every row, the digest of its person
    parts: Hashes  # the digest of every part
    total: int  # rows in all parts

    @classmethod
    def empty(cls, part: NewRows) -> "Reservoir":
        """Before the first part."""
        none = np.empty(0, dtype=np.uint64)
        return cls(np.empty((0, part.rows.shape[1])), none, None if part.persons is None else none, none, 0)

    @property
    def is_sample(self) -> bool:
        """Whether there were more rows than are kept."""
        return self.total > len(self.rows)

    @property
    def stands_for(self) -> int | None:
        """How many rows these are a sample of; None if they are all."""
        return self.total if self.is_sample else None

    def added(self, part: NewRows, secret: bytes, most: int) -> "Reservoir":
        """With the rows of one more part, of which as many stay as their lots say; the same, if it is in already."""
        digest, count = part.digest(secret), len(self.rows)
        if np.uint64(digest) in self.parts:
            return self
        self.refuse_known(part)
        lots = np.append(self.lots, lots_of_part(part.rows.shape[0], digest, secret))
        stay = places_of_smallest(lots, most)
        old, new = stay[stay < count], stay[stay >= count] - count
        return Reservoir(
            np.concatenate([self.rows[old], part.rows.take(new)]),
            lots[stay],
            None if self.persons is None or part.persons is None else np.append(self.persons, part.persons)[stay],
            np.append(self.parts, np.uint64(digest)),
            self.total + part.rows.shape[0],
        )

    def refuse_known(self, part: NewRows) -> None:
        """Refuse a part whose rows are largely in already: they would count twice.

        By chance a row is the same as another one as often as one that is kept is the same as another that is.
        """
        if not self.total:
            return
        kept, count = key_of_numbers(self.rows), part.rows.shape[0]
        known = int(np.isin(part.keys(), kept).sum())
        alone = int((np.unique(kept, return_counts=True)[1] == 1).sum())
        chance = count * (len(kept) - alone + 1) / (len(kept) + 2)
        if known > MOSTLY_KNOWN * count * len(kept) / self.total + chance + DEVIATIONS * np.sqrt(chance):
            raise BadRows(
                f"At least {known:,} of the {count:,} rows of this part were added before, and would count twice; add "
                "new rows only, or summarise a table of all rows as a whole.",
                "rows-known",
            )

    def table(self) -> Table:
        """As a table: what is made of it is made as of any other."""
        left_out = np.zeros(len(self.rows), dtype=np.uint8)
        persons = None if self.persons is None else numbered(self.persons)
        return Table(InMemory(self.rows), left_out, lambda: iter(()), (), persons, stands_for=self.stands_for)


def lots_of_part(count: int, part: int, secret: bytes) -> Hashes:
    """Of every row of a part, by its place."""
    key = Key.of(secret, b"lots" + part.to_bytes(8, "little"))
    return siphash(np.arange(count, dtype=np.uint64), key)


def places_of_smallest(lots: Hashes, most: int) -> IntArray:
    """The places of the smallest, as they lie; all if there are no more."""
    return np.arange(len(lots)) if len(lots) <= most else np.sort(np.argpartition(lots, most)[:most])


def limit_of(level: Level, n_features: int) -> int:
    """How many rows are kept at the most; at the level `private` as many as memory allows, since none may be left out.

    There, a row must change nothing but itself: in a sample it would drive another one out.
    """
    fit = MOST_NUMBERS_KEPT // n_features
    return fit if isinstance(level, Private) else min(MOST_ROWS_KEPT, fit)


def refuse_sample(reservoir: Reservoir, level: Level) -> None:
    """At the level `private` there must be all rows."""
    if isinstance(level, Private) and reservoir.is_sample:
        raise BadSettings(
            f"At the level 'private' every row must be kept, and of {reservoir.total:,} only "
            f"{len(reservoir.rows):,} are; summarise a table of all rows as a whole.",
            "private-sampled",
        )
