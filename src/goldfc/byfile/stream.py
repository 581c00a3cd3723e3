"""Tables larger than memory: read in blocks, checked by the same rules, and worked on from the disk."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goldfc.byfile.blocks import BLOCK, Block, blocks_in, column_names, listed, open_parquet, read_raw
from goldfc.byfile.digests import ROW_DIGEST_BYTES, Digests, count_twins, row_digests
from goldfc.byfile.notes import Seen
from goldfc.byfile.ondisk import OnDisk, Scratch, Stored
from goldfc.byfile.tables import Table, as_table, check_names, encoded, refuse_no_rows
from goldfc.protocol.terms import Column

# In memory, text takes ten times as much as in its file: beyond this, more than going through it in blocks takes.
LARGEST_IN_MEMORY = 20 * 2**20
# What is kept of a row in the end: its digest, and its micro-cluster.
KEPT_BYTES = ROW_DIGEST_BYTES + 8

# Called with how much of the file is read, and how much there is.
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class Streamed:
    """Rows as numbers, on the disk as long as the table is open."""

    rows: OnDisk
    digests: Digests
    missing: Stored  # of all rows of the file: 1 if it was left out because it has missing values
    notes: tuple[str, ...]  # what the user should know
    ids: "Callable[[], Iterator[tuple[str, ...]]]"  # of all rows, some at a time


@contextmanager
def open_table(
    path: Path,
    columns: Sequence[Column],
    *,
    drop: bool = False,
    id_column: str | None = None,
    on_progress: OnProgress | None = None,
) -> Iterator[Table | Streamed]:
    """The agreed columns as numbers: in memory, or, if the file is large, on the disk."""
    if not is_large(path):
        yield as_table(read_raw(path), columns, drop=drop, id_column=id_column)
        return
    with Scratch(path) as rows, Scratch(path) as digests, Scratch(path) as missing:
        yield read_large(Reading(path, columns, drop, id_column, rows, digests, missing), on_progress)


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
    rows: Scratch
    digests: Scratch
    missing: Scratch

    def blocks(self) -> Iterator[Block]:
        """Of what is needed."""
        return blocks_in(self.path, [column.name for column in self.columns], BLOCK)

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
    check_names(names, [column.name for column in reading.columns], reading.id_column)
    seen, first = Seen(reading.columns), 0
    for block in reading.blocks():
        part = encoded(block.raw, reading.columns, drop=reading.drop, first=first)
        if not first:
            check_room(reading, block, part.rows.nbytes)
        first += block.raw.n_rows
        seen.add(part.rows, part.missing, part.numbers)
        reading.rows.append(part.rows)
        reading.digests.append(row_digests(part.rows))
        reading.missing.append(part.missing.astype(np.uint8))
        if on_progress is not None:
            on_progress(block.done, block.total)
    refuse_no_rows(seen.rows)
    digests = Stored(reading.digests.handle, seen.rows, ROW_DIGEST_BYTES)
    notes = seen.notes(names, reading.id_column, twins=count_twins(digests))
    rows, missing = OnDisk(reading.rows, len(seen.low)), Stored(reading.missing.handle, first, 1)
    return Streamed(rows, digests, missing, tuple(notes), reading.ids)


def check_room(reading: Reading, block: Block, n_bytes: int) -> None:
    """Refuse, by its first block, a table that would not fit on the disk."""
    share = block.total / max(1, block.done)
    reading.rows.check_room(int(share * (n_bytes + block.raw.n_rows * (ROW_DIGEST_BYTES + KEPT_BYTES))))
