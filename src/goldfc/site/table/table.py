"""Tables larger than memory: read in blocks, checked by the same rules, and worked on from the disk."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goldfc._types import IntArray
from goldfc.message.columns import Column
from goldfc.site.digests import count_twins
from goldfc.site.table.cells import (
    People,
    Table,
    as_table,
    check_names,
    encoded,
    numbered,
    person_digests,
    refuse_no_rows,
)
from goldfc.site.table.notes import Seen
from goldfc.site.table.readers import BLOCK, Block, blocks_in, column_names, listed, open_parquet, read_raw
from goldfc.site.table.scratch import OnDisk, Scratch, Stored

# In memory, text takes ten times as much as in its file: beyond this, more than going through it in blocks takes.
LARGEST_IN_MEMORY = 20 * 2**20
# What is kept of a row in the end: whose it is; and of every value a digest.
KEPT_BYTES, DIGEST_BYTES = 8, 4

# Called with how much of the file is read, and how much there is.
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class Streamed:
    """Rows as numbers, on the disk as long as the table is open."""

    rows: OnDisk
    missing: Stored  # of all rows of the file: 1 if it was left out because it has missing values
    notes: tuple[str, ...]  # what the user should know
    ids: "Callable[[], Iterator[tuple[str, ...]]]"  # of all rows, some at a time
    persons: People | None = None  # of the rows that are not left out; None: nothing says whose they are

    @property
    def people(self) -> IntArray | None:
        """Of every row that is not left out, the number of its person; None if each has its own."""
        return None if self.persons is None else self.persons.shared


@contextmanager
def open_table(
    path: Path,
    columns: Sequence[Column],
    *,
    drop: bool = False,
    id_column: str | None = None,
    person_column: str | None = None,
    on_progress: OnProgress | None = None,
) -> Iterator[Table | Streamed]:
    """The agreed columns as numbers: in memory, or, if the file is large, on the disk."""
    if not is_large(path):
        yield as_table(read_raw(path), columns, drop=drop, id_column=id_column, person_column=person_column)
        return
    with Scratch(path) as rows, Scratch(path) as missing:
        yield read_large(Reading(path, columns, drop, id_column, person_column, rows, missing), on_progress)


def is_large(path: Path) -> bool:
    """Whether a file had better not be read at once; Parquet by what it is unpacked."""
    names = column_names(path)
    if path.suffix != ".parquet":
        return path.stat().st_size > LARGEST_IN_MEMORY
    with open_parquet(path) as file:
        return bool(8 * file.metadata.num_rows * len(names) > LARGEST_IN_MEMORY)


@dataclass(frozen=True)
class Reading:
    """What is read, by which rules, and where it goes."""

    path: Path
    columns: Sequence[Column]
    drop: bool
    id_column: str | None
    person_column: str | None
    rows: Scratch
    missing: Scratch

    @property
    def whose(self) -> str | None:
        """The column that says whose a row is."""
        return self.person_column or self.id_column

    def blocks(self) -> Iterator[Block]:
        """Of what is needed."""
        names = [column.name for column in self.columns]
        return blocks_in(self.path, [*names, self.whose] if self.whose else names, BLOCK)

    def person_digests(self, block: Block, missing: NDArray[np.bool_], first: int) -> NDArray[np.uint64]:
        """Of every row of a block that is not left out, a digest of its person's name; none if nothing says it."""
        if self.whose is None:
            return np.empty(0, dtype=np.uint64)
        kept, strict = np.flatnonzero(~missing), self.person_column is not None
        return person_digests(block.raw, self.whose, kept, strict=strict, first=first)

    def ids(self) -> Iterator[tuple[str, ...]]:
        """What tells rows apart, block by block."""
        first = 0
        for block in blocks_in(self.path, [self.id_column or self.columns[0].name], BLOCK):
            stop = first + block.raw.n_rows
            ids = listed(block.raw.columns[self.id_column]) if self.id_column else range(first + 1, stop + 1)
            yield tuple(map(str, ids))
            first = stop


def read_large(reading: Reading, on_progress: OnProgress | None) -> Streamed:
    """All blocks, one after the other.

    Where several values are wrong, the first in the file is named; in memory, the first of the first column.
    """
    names = column_names(reading.path)
    check_names(names, [column.name for column in reading.columns], reading.id_column, reading.person_column)
    seen, first, whose = Seen(reading.columns), 0, list[NDArray[np.uint64]]()
    for block in reading.blocks():
        part = encoded(block.raw, reading.columns, drop=reading.drop, first=first)
        if not first:
            check_room(reading, block, part.rows.nbytes)
        whose.append(reading.person_digests(block, part.missing, first))
        first += block.raw.n_rows
        seen.add(part.rows, part.missing, part.numbers)
        reading.rows.append(part.rows)
        reading.missing.append(part.missing.astype(np.uint8))
        if on_progress is not None:
            on_progress(block.done, block.total)
    refuse_no_rows(seen.rows)
    rows, missing = OnDisk(reading.rows, len(seen.low)), Stored(reading.missing.handle, first, 1)
    notes = seen.notes(names, reading.id_column, twins=count_twins(rows))
    persons = None if reading.whose is None else numbered(np.concatenate(whose))
    return Streamed(rows, missing, tuple(notes), reading.ids, persons)


def check_room(reading: Reading, block: Block, n_bytes: int) -> None:
    """Refuse, by its first block, a table that would not fit on the disk."""
    share = block.total / max(1, block.done)
    digests = n_bytes * DIGEST_BYTES // 8
    reading.rows.check_room(int(share * (n_bytes + digests + block.raw.n_rows * KEPT_BYTES)))
