"""A site's table: rows as numbers by the columns that were agreed on, in memory or on the disk."""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldfc._ahead import ahead
from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadRows
from goldfc.learning.rows import InMemory, RowSource
from goldfc.message.columns import Column
from goldfc.site.digests import count_twins, key_of_numbers
from goldfc.site.table.cells import People, check_names, encoded, numbered, person_digests, refuse_no_rows
from goldfc.site.table.notes import Seen
from goldfc.site.table.readers import Block, blocks_in, column_names, size_in_memory
from goldfc.site.table.scratch import OnDisk, Scratch, Stored

# Larger files are worked on from the disk.
LARGEST_IN_MEMORY = 20 * 2**20
# What is kept of a row in the end: whose it is; and of every value a digest.
KEPT_BYTES, DIGEST_BYTES = 8, 4

# Called with how much of the file is read, and how much there is.
OnProgress = Callable[[int, int], None]


class Marks(Protocol):
    """One mark for every row, wherever they are."""

    def __getitem__(self, places: slice, /) -> NDArray[Any]: ...


@dataclass(frozen=True)
class Table:
    """Rows as numbers, in memory, or on the disk as long as the table is open."""

    rows: RowSource  # without those that are left out
    missing: Marks  # of all rows of the file: not 0 if it was left out because it misses a value
    ids: Callable[[], Iterator[tuple[str, ...]]]  # of all rows, some at a time: what the id column says, or numbers
    notes: tuple[str, ...]  # what the user should know
    persons: People | None = None  # of the rows that are not left out; None: nothing says whose they are

    @property
    def people(self) -> IntArray | None:
        """Of every row that is not left out, the number of its person; None if each has its own."""
        return None if self.persons is None else self.persons.shared


@dataclass(frozen=True)
class ReadingRules:
    """What becomes of the rows of a file."""

    columns: tuple[Column, ...]
    drop: bool = False
    id_column: str | None = None
    person_column: str | None = None

    @property
    def whose(self) -> str | None:
        """The column that says whose a row is: the id column does if there is none."""
        return self.person_column or self.id_column

    @property
    def numbers(self) -> frozenset[str]:
        """The columns that may be read as numbers."""
        return frozenset(column.name for column in self.columns if column.kind == "number")

    @property
    def needed(self) -> list[str]:
        """The columns that are read."""
        names = [column.name for column in self.columns]
        return [*names, *(name for name in (self.id_column, self.person_column) if name)]

    def digests(self, block: Block, column: str | None, missing: NDArray[np.bool_]) -> NDArray[np.uint64]:
        """Of every row of a block that is not left out, a digest of what the column calls it; none without a column."""
        if column is None:
            return np.empty(0, dtype=np.uint64)
        names = block.rows.column(column)
        return person_digests(names, column, ~missing, strict=column == self.person_column, where=block.where)


def as_table(rows: pa.RecordBatch, columns: Sequence[Column], **settings: Any) -> Table:
    """A table that is in memory; the settings are those of `open_table`."""
    rules = ReadingRules(tuple(columns), **settings)
    blocks = [Block(rows, 1, 1)]
    return read_table(rows.schema.names, lambda _: (block for block in blocks), rules, KeptInMemory())


@contextmanager
def open_table(
    path: Path, columns: Sequence[Column], *, on_progress: OnProgress | None = None, **settings: Any
) -> Iterator[Table]:
    """The agreed columns of a file as numbers, in the agreed order: in memory, or, if it is large, on the disk.

    With `drop`, rows that miss a value are left out. The `person_column` says whose a row is, or else the `id_column`.
    """
    rules, is_large = ReadingRules(tuple(columns), **settings), size_in_memory(path) > LARGEST_IN_MEMORY
    names = column_names(path)
    with ExitStack() as in_use:

        def read(numbers: Collection[str] = ()) -> Table:
            store = in_use.enter_context(Disk(path)) if is_large else KeptInMemory()
            return read_table(names, partial(blocks_in, path, numbers=numbers), rules, store, on_progress)

        try:
            table = read(rules.numbers)
        except BadRows:
            in_use.close()
            table = read()  # as it is written: it may do, or else it is said what does not
        yield table


def read_table(
    names: Sequence[str],
    blocks: Callable[[Sequence[str]], Generator[Block, None, None]],
    rules: ReadingRules,
    store: "Store",
    on_progress: OnProgress | None = None,
) -> Table:
    """All blocks, one after the other; where several values are wrong, one in the first block that has any is named."""
    check_names(names, [column.name for column in rules.columns], rules.id_column, rules.person_column)
    seen, whose, ids = Seen(rules.columns), list[NDArray[np.uint64]](), list[NDArray[np.uint64]]()
    keys, said = list[NDArray[np.uint64]](), list[str]()
    for block in ahead(blocks(rules.needed)):
        part = encoded(block.rows, rules.columns, drop=rules.drop, where=block.where)
        whose.append(rules.digests(block, rules.whose, part.missing))
        ids.append(rules.digests(block, rules.id_column if rules.person_column else None, part.missing))
        keys.append(key_of_numbers(part.rows))
        seen.add(part.rows, part.missing, part.numbers)
        store.check_room(block, part.rows.nbytes)
        store.append(part.rows, part.missing)
        said.append(block.note)
        if on_progress is not None:
            on_progress(block.done, block.total)
    refuse_no_rows(seen.rows)
    rows, missing = store.rows(len(seen.low)), store.missing(seen.rows + seen.dropped)
    persons = None if rules.whose is None else numbered(np.concatenate(whose))
    named = np.concatenate(ids) if rules.person_column else np.concatenate(whose)
    twins = count_twins(np.concatenate(keys))
    notes = seen.notes(names, rules.id_column, ids_twice=len(np.unique(named)) < len(named), twins=twins)
    return Table(rows, missing, lambda: ids_in(blocks, rules), (*filter(None, dict.fromkeys(said)), *notes), persons)


def ids_in(blocks: Callable[[Sequence[str]], Iterable[Block]], rules: ReadingRules) -> Iterator[tuple[str, ...]]:
    """What tells rows apart, block by block."""
    for block in blocks([rules.id_column or rules.columns[0].name]):
        numbers = range(block.first + 1, block.first + block.rows.num_rows + 1)
        yield tuple(map(str, block.rows.column(rules.id_column).to_pylist() if rules.id_column else numbers))


# --- where rows go ---


class Store(Protocol):
    """Where rows go while a file is read, and where they are afterwards."""

    def check_room(self, block: Block, n_bytes: int) -> None:
        """Refuse a table that would not fit, by what there is of it so far."""

    def append(self, rows: FloatArray, missing: NDArray[np.bool_]) -> None:
        """Some more."""

    def rows(self, n_features: int) -> RowSource:
        """All of them."""
        ...

    def missing(self, count: int) -> Marks:
        """Of all rows of the file, which ones were left out."""
        ...


@dataclass
class KeptInMemory:
    """Rows in memory."""

    parts: list[FloatArray] = field(default_factory=list)
    marks: list[NDArray[np.bool_]] = field(default_factory=list)

    def check_room(self, block: Block, n_bytes: int) -> None:
        """There is always room."""

    def append(self, rows: FloatArray, missing: NDArray[np.bool_]) -> None:
        """Some more."""
        self.parts.append(rows)
        self.marks.append(missing)

    def rows(self, n_features: int) -> RowSource:  # noqa: ARG002 (a store on the disk must know)
        """As one array."""
        return InMemory(np.concatenate(self.parts))

    def missing(self, count: int) -> Marks:  # noqa: ARG002
        """As one array."""
        return np.concatenate(self.marks)


class Disk(AbstractContextManager["Disk"]):
    """Rows in files without a name, which are gone when it is left."""

    def __init__(self, data: Path) -> None:
        self.open = ExitStack()
        self.numbers, self.marks = (self.open.enter_context(Scratch(data)) for _ in range(2))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.open.close()

    def check_room(self, block: Block, n_bytes: int) -> None:
        """Refuse a table that would not fit on the disk; the reader may be some blocks ahead, so not only once."""
        written = self.numbers.size
        so_far, n_rows = written + n_bytes, block.first + block.rows.num_rows
        whole = (so_far + so_far * DIGEST_BYTES // 8 + n_rows * KEPT_BYTES) * block.total // max(1, block.done)
        self.numbers.check_room(whole - written)

    def append(self, rows: FloatArray, missing: NDArray[np.bool_]) -> None:
        """Some more."""
        self.numbers.append(rows)
        self.marks.append(missing.astype(np.uint8))

    def rows(self, n_features: int) -> RowSource:
        """As they are in the file."""
        return OnDisk(self.numbers, n_features)

    def missing(self, count: int) -> Marks:
        """As they are in the file."""
        return Stored(self.marks.handle, count, 1)
