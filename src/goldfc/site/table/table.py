"""A site's table: rows as numbers by the columns that were agreed on, in memory or on the disk."""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldfc._ahead import ahead
from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadRows
from goldfc.learning.rows import InMemory, RowSource
from goldfc.message.columns import Column
from goldfc.site.digests import count_twins, key_of_numbers
from goldfc.site.table.cells import (
    Encoded,
    Faults,
    People,
    absent_columns,
    check_roles,
    encoded,
    numbered,
    person_digests,
    refuse_no_rows,
)
from goldfc.site.table.form import AS_USUAL, Form, called, check_form, read_form, rename_notes, unit_faults
from goldfc.site.table.notes import Seen
from goldfc.site.table.numerals import USUAL_STYLE, NumberStyle, distinct, is_text, style_of
from goldfc.site.table.readers import Block, blocks_in, column_names, size_in_memory
from goldfc.site.table.scratch import OnDisk, Scratch, Stored

# Larger files are worked on from the disk.
LARGEST_IN_MEMORY = 20 * 2**20
# What is kept of a row in the end: whose it is; and of every value a digest.
KEPT_BYTES, DIGEST_BYTES = 8, 4

# So many marks are looked at a time.
MARKS_AT_ONCE = 2**16

# What a table is refused for: values and columns, columns alone, nothing.
Refused = Literal["values", "columns", "nothing"]
# The blocks of a table, with the columns that are named.
Blocks = Callable[[Sequence[str]], Generator[Block, None, None]]
# Called with how much of the file is read, and how much there is.
OnProgress = Callable[[int, int], None]


class Marks(Protocol):
    """One mark for every row, wherever they are."""

    def __getitem__(self, places: slice, /) -> NDArray[Any]: ...


@dataclass(frozen=True)
class Table:
    """Rows as numbers, in memory, or on the disk as long as the table is open."""

    rows: RowSource  # without those that are left out
    left_out: Marks  # of all rows of the file: 0, or the number of the reason why it is left out
    ids: Callable[[], Iterator[tuple[str, ...]]]  # of all rows, some at a time: what the id column says, or numbers
    notes: tuple[str, ...]  # what the user should know
    persons: People | None = None  # of the rows that are not left out; None: nothing says whose they are
    faults: Faults = field(default_factory=Faults)  # what cannot be used
    reasons: tuple[str, ...] = ()  # by their numbers, from 1 on
    left_out_rows: int = 0
    columns: tuple[Column, ...] = ()  # of the agreed ones, those that the file has
    stands_for: int | None = None  # so many rows, if it is a sample of them

    @property
    def people(self) -> IntArray | None:
        """Of every row that is not left out, the number of its person; None if each has its own."""
        return None if self.persons is None else self.persons.shared

    def place_in_file(self, row: int) -> int:
        """The place in the file of one of the rows that are not left out, from 0 on."""
        start = kept = 0
        while True:
            there = np.flatnonzero(np.asarray(self.left_out[start : start + MARKS_AT_ONCE]) == 0)
            if row < kept + len(there):
                return start + int(there[row - kept])
            start, kept = start + MARKS_AT_ONCE, kept + len(there)


@dataclass(frozen=True)
class ReadingRules:
    """What becomes of the rows of a file."""

    columns: tuple[Column, ...]
    drop: bool = False  # rows that miss a value are left out
    refuse: Refused = "values"  # a value that cannot be used is refused, with all others; or else its row is left out
    id_column: str | None = None
    person_column: str | None = None
    form: Form = AS_USUAL
    guess: bool = True  # how numbers and texts are written, by their look; or else every row is read by itself

    @property
    def whose(self) -> str | None:
        """The column that says whose a row is: the id column does if there is none."""
        return self.person_column or self.id_column

    @property
    def named_by(self) -> str | None:
        """Where rows are read one by one, that column again: a row of nobody may be anybody's, and is left out."""
        return None if self.guess else self.whose

    def numbers_in(self, there: Sequence[str]) -> frozenset[str]:
        """The columns of a file that may be read as numbers at once."""
        if {"decimal", "thousands"} & self.form.model_fields_set:
            return frozenset()
        names = [
            column.name for column in self.columns if column.kind == "number" and not self.form.of(column.name).dates
        ]
        return frozenset(called(there, names, self.form).values())

    @property
    def needed(self) -> list[str]:
        """The columns that are read, by their agreed names."""
        names = [column.name for column in self.columns]
        return list(dict.fromkeys([*names, *(name for name in (self.id_column, self.person_column) if name)]))

    def names_in(self, there: Sequence[str], faults: Faults) -> dict[str, str]:
        """What a file calls them, those that it has."""
        check_form(self.form, self.columns)
        check_roles([column.name for column in self.columns], self.id_column, self.person_column)
        found = called(there, self.needed, self.form)
        absent = [name for name in self.needed if name not in found]
        faults.of_table += absent_columns(there, absent, self.person_column, mistaken=not found)
        faults.of_table += unit_faults(self.columns, found, self.form)
        if not any(column.name in found for column in self.columns):
            faults.refuse()
        return found

    def found(self, called: Mapping[str, str]) -> "ReadingRules":
        """The same for the columns that there are."""
        return replace(
            self,
            columns=tuple(column for column in self.columns if column.name in called),
            id_column=self.id_column if self.id_column in called else None,
            person_column=self.person_column if self.person_column in called else None,
        )

    def unused(self, there: Sequence[str], called: Mapping[str, str]) -> list[str]:
        """What a file has beside the columns and ids."""
        used = {called[name] for name in self.needed if name == self.id_column or name != self.person_column}
        return [name for name in there if name not in used]

    def style_in(self, rows: pa.RecordBatch) -> NumberStyle:
        """How numbers are written in a file, by its first rows."""
        if not self.guess:
            return NumberStyle(self.form.decimal or ".", self.form.thousands or "")
        numbers = [column.name for column in self.columns if column.kind == "number"]
        texts = [rows.column(name) for name in numbers if is_text(rows.column(name))]
        return style_of((str(one).strip() for values in texts for one in distinct(values)), self.form)

    def digests(self, block: Block, column: str | None, left_out: NDArray[np.bool_]) -> NDArray[np.uint64]:
        """Of every row of a block that is not left out, a digest of what the column calls it; none without a column."""
        if column is None:
            return np.empty(0, dtype=np.uint64)
        names, strict = block.rows.column(column), self.refuse == "values" and column == self.person_column
        return person_digests(names, column, ~left_out, strict=strict, where=block.where)


def as_table(rows: pa.RecordBatch, columns: Sequence[Column], **settings: Any) -> Table:
    """A table that is in memory; the settings are those of `open_table`."""
    rules = ReadingRules(tuple(columns), **settings)

    def blocks(names: Sequence[str]) -> Generator[Block, None, None]:
        yield Block(rows.select(names), 1, 1)

    return read_table(rows.schema.names, blocks, rules, KeptInMemory())


@contextmanager
def open_table(
    path: Path, columns: Sequence[Column], *, on_progress: OnProgress | None = None, **settings: Any
) -> Iterator[Table]:
    """The agreed columns of a file as numbers, in the agreed order: in memory, or, if it is large, on the disk.

    With `drop`, rows that miss a value are left out; where no values are refused, those with any that cannot be used.
    The `person_column` says whose a row is, or else the `id_column`. How it is written is in the `form` beside it;
    what that does not say, the look of the rows does, unless it must not be guessed.
    """
    rules = ReadingRules(tuple(columns), **{"form": read_form(path), **settings})
    if not rules.guess and not rules.form.encoding:
        rules = replace(rules, form=rules.form.model_copy(update={"encoding": "utf-8-sig"}))
    is_large = size_in_memory(path, rules.form) > LARGEST_IN_MEMORY
    names = column_names(path, rules.form)
    with ExitStack() as in_use:

        def read(numbers: Collection[str] = ()) -> Table:
            store = in_use.enter_context(Disk(path)) if is_large else KeptInMemory()
            blocks = partial(blocks_in, path, form=rules.form, numbers=numbers)
            return read_table(names, blocks, rules, store, on_progress)

        try:
            table = read(rules.numbers_in(names))
        except BadRows:
            in_use.close()
            table = read()  # as it is written: it may do, or else it is said what does not
        yield table


def read_table(
    names: Sequence[str], blocks: Blocks, rules: ReadingRules, store: "Store", on_progress: OnProgress | None = None
) -> Table:
    """All blocks, one after the other; what cannot be used is told at the end, all of it."""
    faults = Faults()
    called = rules.names_in(names, faults)
    rules = rules.found(called)
    gathered = Gathered(rules, store, faults)
    for block, own in encoded_blocks(blocks, called, rules):
        gathered.add(block, own)
        if on_progress is not None:
            on_progress(block.done, block.total)
    gathered.check()
    seen = gathered.seen
    return Table(
        store.rows(len(seen.low)),
        store.left_out(seen.rows + seen.left_out),
        lambda: ids_in(blocks, called, rules),
        tuple(gathered.notes(names, called)),
        None if rules.whose is None else numbered(np.concatenate(gathered.whose)),
        faults,
        faults.reasons,
        seen.left_out,
        rules.columns,
    )


class Gathered:
    """What there is of a table so far."""

    def __init__(self, rules: ReadingRules, store: "Store", faults: Faults) -> None:
        self.rules, self.store, self.faults = rules, store, faults
        self.seen, self.said = Seen(rules.columns), list[str]()
        # Digests, of every row that is not left out: of whose it is, of its id if that is another, and of its values.
        self.whose, self.ids, self.keys = (list[NDArray[np.uint64]]() for _ in range(3))

    def add(self, block: Block, own: Encoded) -> None:
        """One more block."""
        self.faults.add(own.faults if self.rules.drop else (*own.gaps, *own.faults), block.where)
        self.whose.append(self.rules.digests(block, self.rules.whose, own.left_out))
        id_column = self.rules.id_column if self.rules.person_column else None
        self.ids.append(self.rules.digests(block, id_column, own.left_out))
        self.keys.append(key_of_numbers(own.rows))
        self.seen.add(own)
        self.store.check_room(block, own.rows.nbytes)
        self.store.append(own.rows, self.faults.marks((*own.blank, *own.gaps, *own.faults), len(own.left_out)))
        self.said += block.notes

    def check(self) -> None:
        """Refuse what is to be refused."""
        values = self.rules.refuse == "values"
        if values or (self.rules.refuse == "columns" and self.faults.of_table):
            self.faults.refuse()
        refuse_no_rows(self.seen.rows if values else self.seen.rows + self.seen.left_out)

    def notes(self, names: Sequence[str], called: Mapping[str, str]) -> Iterator[str]:
        """What the user should know."""
        named = np.concatenate(self.ids if self.rules.person_column else self.whose)
        yield from dict.fromkeys(self.said)
        yield from rename_notes(called, self.rules.form)
        yield from self.seen.notes(
            self.rules.id_column,
            unused=self.rules.unused(names, called),
            drop=self.rules.drop,
            ids_twice=len(np.unique(named)) < len(named),
            twins=count_twins(np.concatenate(self.keys)),
        )


def encoded_blocks(blocks: Blocks, called: Mapping[str, str], rules: ReadingRules) -> Iterator[tuple[Block, Encoded]]:
    """All blocks, with columns by their agreed names, and as numbers; of every file the first rows show its style."""
    file, style = None, USUAL_STYLE
    for block in ahead(blocks(list(called.values()))):
        rows = pa.record_batch([block.rows.column(own) for own in called.values()], names=list(called))
        if block.where.file != file:
            file, style = block.where.file, rules.style_in(rows)
        yield replace(block, rows=rows), encoded(rows, rules.columns, rules.form, style, rules.named_by)


def ids_in(blocks: Blocks, called: Mapping[str, str], rules: ReadingRules) -> Iterator[tuple[str, ...]]:
    """What tells rows apart, block by block."""
    name = called[rules.id_column or rules.columns[0].name]
    for block in blocks([name]):
        numbers = range(block.first + 1, block.first + block.rows.num_rows + 1)
        yield tuple(map(str, block.rows.column(name).to_pylist() if rules.id_column else numbers))


# --- where rows go ---


class Store(Protocol):
    """Where rows go while a file is read, and where they are afterwards."""

    def check_room(self, block: Block, n_bytes: int) -> None:
        """Refuse a table that would not fit, by what there is of it so far."""

    def append(self, rows: FloatArray, left_out: NDArray[np.uint8]) -> None:
        """Some more."""

    def rows(self, n_features: int) -> RowSource:
        """All of them."""
        ...

    def left_out(self, count: int) -> Marks:
        """Of all rows of the file, why they were left out."""
        ...


@dataclass
class KeptInMemory:
    """Rows in memory."""

    parts: list[FloatArray] = field(default_factory=list)
    marks: list[NDArray[np.uint8]] = field(default_factory=list)

    def check_room(self, block: Block, n_bytes: int) -> None:
        """There is always room."""

    def append(self, rows: FloatArray, left_out: NDArray[np.uint8]) -> None:
        """Some more."""
        self.parts.append(rows)
        self.marks.append(left_out)

    def rows(self, n_features: int) -> RowSource:  # noqa: ARG002 (a store on the disk must know)
        """As one array."""
        return InMemory(np.concatenate(self.parts))

    def left_out(self, count: int) -> Marks:  # noqa: ARG002
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

    def append(self, rows: FloatArray, left_out: NDArray[np.uint8]) -> None:
        """Some more."""
        self.numbers.append(rows)
        self.marks.append(left_out)

    def rows(self, n_features: int) -> RowSource:
        """As they are in the file."""
        return OnDisk(self.numbers, n_features)

    def left_out(self, count: int) -> Marks:
        """As they are in the file."""
        return Stored(self.marks.handle, count, 1)
