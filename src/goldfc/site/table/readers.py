"""Tables in files, some rows at a time, as Arrow has them: read by pyarrow, and workbooks by calamine."""

from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc, parquet

from goldfc.errors import BadRows
from goldfc.site.table.form import AS_USUAL, FORM, Form
from goldfc.site.table.numerals import as_whole
from goldfc.site.table.text import PACKED, names_in_header, open_text, refuse_empty

# About so many bytes of text, or values of another file, make a block.
BYTES_OF_A_BLOCK = 2**21
# What files begin with that may be called otherwise.
FILES_BEGIN = {b"PAR1": ".parquet", b"ARRO": ".arrow"}
# Hidden files, and those that a spreadsheet keeps while a workbook is open.
HIDDEN_FILES = (".", "~")
# Packed text is so many times as long when it is unpacked.
PACKED_BY = 10


@dataclass(frozen=True)
class Where:
    """Where the first row of a block stands: in which file, if they are several, and behind how many others."""

    first: int = 0
    file: str = ""

    def __call__(self, row: int) -> str:
        """Where a row of the block stands, counted from 1; the header is none."""
        return f"row {self.first + row + 1} below the header" + (f" of {self.file}" if self.file else "")


HERE = Where()


@dataclass(frozen=True)
class Block:
    """Some rows of a file."""

    rows: pa.RecordBatch
    done: int  # of the file
    total: int
    notes: tuple[str, ...] = ()  # what the user should know
    first: int = 0  # so many rows of the table come before
    where: Where = HERE


# A cell of a workbook, without blanks at its ends.
Cell = str | int | float


class Reader(Protocol):
    """What reads a file format, by the form of the site that wrote it."""

    def __init__(self, form: Form, numbers: Collection[str]) -> None: ...

    def names(self, path: Path) -> list[str]:
        """What the columns of a file are called."""
        ...

    def blocks(self, path: Path, names: Sequence[str], size: int) -> Iterator[Block]:
        """The named columns, all rows in their order, about `size` values at a time."""
        ...

    def size_in_memory(self, path: Path) -> int:
        """About how many bytes all rows take."""
        ...


def read_all(path: Path, form: Form = AS_USUAL) -> pa.RecordBatch:
    """All rows of a file at once."""
    names = column_names(path, form)
    batches = [block.rows for block in blocks_in(path, names, form=form)]
    return pa.concat_batches(batches) if batches else pa.record_batch({name: [] for name in names})


def column_names(path: Path, form: Form = AS_USUAL) -> list[str]:
    """What the columns of a file are called."""
    with naming_file(path):
        names = reader_of(path, form).names(path)
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise BadRows(
            f"{path.name} has two columns called {twice[0]!r}; every column needs a name of its own.", "columns-alike"
        )
    return names


def blocks_in(
    path: Path, names: Sequence[str], size: int | None = None, form: Form = AS_USUAL, numbers: Collection[str] = ()
) -> Generator[Block, None, None]:
    """The named columns of a file, all rows in their order, some at a time.

    Where all is text, `numbers` come as numbers: soon, and if one cell is none, the whole file is refused.
    """
    first = 0
    with naming_file(path):
        for block in reader_of(path, form, numbers).blocks(path, list(dict.fromkeys(names)), size or BYTES_OF_A_BLOCK):
            yield replace(block, first=first, where=block.where if block.where.file else Where(first))
            first += block.rows.num_rows


def size_in_memory(path: Path, form: Form = AS_USUAL) -> int:
    """About how many bytes all rows of a file take."""
    with naming_file(path):
        return reader_of(path, form).size_in_memory(path)


def reader_of(path: Path, form: Form, numbers: Collection[str] = ()) -> Reader:
    """What reads a file, by what it begins with, or else its suffix; text, if nobody knows it."""
    if path.is_dir():
        return FolderOfFiles(form, numbers)
    with path.open("rb") as file:
        suffix = FILES_BEGIN.get(file.read(4), path.suffix.lower())
    return READERS.get(suffix, TextFormat)(form, numbers)


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Whatever pyarrow complains of becomes a sentence with the name of the file."""
    if not path.exists():
        raise BadRows(f"There is no file {path}.", "no-file")
    try:
        yield
    except pa.ArrowException as error:
        raise BadRows(f"{path.name} cannot be read as a table: {error}.", "no-table") from error


@dataclass(frozen=True)
class Format:
    """A file format, by the form of the site that wrote it."""

    form: Form = AS_USUAL
    numbers: Collection[str] = ()  # of text: columns that come as numbers


class TextFormat(Format):
    """CSV, TSV and the like, also packed."""

    def names(self, path: Path) -> list[str]:
        """What the header says."""
        with open_text(path, self.form) as text:
            return text.names

    def blocks(self, path: Path, names: Sequence[str], size: int) -> Iterator[Block]:
        """Cells as they are written, but for numbers."""
        with open_text(path, self.form) as text:
            for rows in text.batches(names, size, self.numbers):
                yield Block(rows, text.done, text.total, text.notes)

    def size_in_memory(self, path: Path) -> int:
        """As in the file, unpacked."""
        return path.stat().st_size * (PACKED_BY if path.suffix.lower() in PACKED else 1)


class Parquet(Format):
    """Parquet, in record batches."""

    def names(self, path: Path) -> list[str]:
        """What the schema says."""
        with self.open(path) as file:
            return list(file.schema_arrow.names)

    def blocks(self, path: Path, names: Sequence[str], size: int) -> Iterator[Block]:
        """Some rows of a row group."""
        done = 0
        with self.open(path) as file:
            for rows in file.iter_batches(max(1, size // len(names)), columns=names, use_threads=False):
                done += rows.num_rows
                yield Block(plain(rows.select(names)), done, file.metadata.num_rows)

    def size_in_memory(self, path: Path) -> int:
        """Eight bytes a number."""
        with self.open(path) as file:
            return int(8 * file.metadata.num_rows * file.metadata.num_columns)

    @staticmethod
    @contextmanager
    def open(path: Path) -> Iterator[Any]:
        """A file, or the sentence on what is none."""
        try:
            # Through a buffer: otherwise a row group, which may be the whole file, is read at once.
            with parquet.ParquetFile(path, buffer_size=2**20, pre_buffer=False) as file:
                yield file
        except (pa.ArrowException, OSError) as error:
            raise BadRows(
                f"{path.name} cannot be read as Parquet: {str(error).rstrip('.')}; write it again, or, if it is of "
                "another kind, call it so (.csv, .xlsx).",
                "no-parquet",
            ) from error


class Arrow(Format):
    """Arrow's own files, which are also called Feather."""

    def names(self, path: Path) -> list[str]:
        """What the schema says."""
        with self.open(path) as file:
            return list(file.schema.names)

    def blocks(self, path: Path, names: Sequence[str], size: int) -> Iterator[Block]:
        """Some rows of a record batch."""
        with self.open(path) as file:
            for number in range(file.num_record_batches):
                rows, step = plain(file.get_batch(number).select(names)), max(1, size // len(names))
                for start in range(0, rows.num_rows, step):
                    yield Block(rows.slice(start, step), number + 1, file.num_record_batches)

    def size_in_memory(self, path: Path) -> int:
        """As in the file."""
        return path.stat().st_size

    @staticmethod
    @contextmanager
    def open(path: Path) -> Iterator[Any]:
        """A file, or the sentence on what is none."""
        try:
            with pa.memory_map(str(path)) as source, ipc.open_file(source) as file:
                yield file
        except (pa.ArrowException, OSError) as error:
            raise BadRows(
                f"{path.name} cannot be read as Arrow (Feather): {str(error).rstrip('.')}; write it again as a file of "
                "Arrow (Feather version 2), or as Parquet.",
                "no-arrow",
            ) from error


def plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same, with values of one column one after the other, and texts as text."""
    return pa.record_batch([plainly(values) for values in rows.columns], names=rows.schema.names)


def plainly(values: pa.Array) -> pa.Array:
    """A column without dictionaries, runs, views and bytes; what is no text remains bytes."""
    if pa.types.is_dictionary(values.type):
        return plainly(values.dictionary_decode())
    if pa.types.is_run_end_encoded(values.type):
        return plainly(pc.run_end_decode(values))
    if any(kind(values.type) for kind in AS_TEXT):
        with suppress(pa.ArrowInvalid):
            return values.cast(pa.large_string())
    return values


# Columns of these kinds hold texts, as some programs write them.
AS_TEXT = (pa.types.is_string_view, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)


class Workbook(Format):
    """The one sheet of a workbook that has rows: Excel or OpenDocument."""

    def names(self, path: Path) -> list[str]:
        """The first row, or the one that is said."""
        return [name for name, _ in self.columns(path)]

    def blocks(self, path: Path, names: Sequence[str], size: int) -> Iterator[Block]:
        """Numbers as numbers, all else as text, the way a CSV file has it."""
        columns, step = dict(self.columns(path)), max(1, size // len(names))
        rows = pa.record_batch([column_of_cells(columns[name]) for name in names], names=names)
        for start in range(0, rows.num_rows, step):
            some = rows.slice(start, step)
            yield Block(some, start + some.num_rows, rows.num_rows)

    def size_in_memory(self, path: Path) -> int:
        """As it is unpacked."""
        return PACKED_BY * path.stat().st_size

    def columns(self, path: Path) -> list[tuple[str, tuple[Cell, ...]]]:
        """The columns by their names, without those that are empty, and without empty rows."""
        sheet = self.rows(path)[(self.form.header or 1) - 1 :]
        rows = [row for row in sheet if any(cell != "" for cell in row)]
        if not rows:
            refuse_empty(path, self.form)
        columns = zip(names_in_header(list(map(str, rows[0]))), zip(*rows, strict=True), strict=True)
        return [(name, cells[1:]) for name, cells in columns if any(cell != "" for cell in cells)]

    def rows(self, path: Path) -> list[list[Cell]]:
        """All of the one sheet that is meant; nothing if all sheets are empty."""
        sheets = self.sheets(path)
        meant = [name for name in sheets if self.form.sheet in {"", name}]
        if sheets and len(meant) != 1:
            wanted = f" called {self.form.sheet!r}" if self.form.sheet else ""
            raise BadRows(
                f"{path.name} has {len(meant)} sheets with rows{wanted} ({', '.join(map(repr, sheets))}); say which "
                f"in {FORM} (sheet = ...), or save it as CSV (UTF-8).",
                "sheets-several",
            )
        return [[cell_of(cell) for cell in row] for name in meant for row in sheets[name]]

    @staticmethod
    def sheets(path: Path) -> dict[str, Sequence[Sequence[object]]]:
        """The sheets that have rows, by their names."""
        try:
            # Not everybody has it.
            from python_calamine import CalamineError, CalamineWorkbook  # noqa: PLC0415
        except ImportError as error:
            raise BadRows(
                f"{path.name} is a workbook; to read it, install goldfc[excel], or save the sheet as CSV (UTF-8).",
                "no-calamine",
            ) from error
        try:
            with CalamineWorkbook.from_path(path) as book:
                every = [(name, book.get_sheet_by_name(name)) for name in book.sheet_names]
                return {name: rows for name, sheet in every if (rows := sheet.to_python(skip_empty_area=False))}
        except (CalamineError, OSError) as error:
            raise BadRows(
                f"{path.name} cannot be read as a workbook: {error}; open it, and save it as .xlsx without a password, "
                "or the sheet as CSV (UTF-8).",
                "no-workbook",
            ) from error


def cell_of(cell: object) -> Cell:
    """A number, or what is written there."""
    if isinstance(cell, float):
        return as_whole(cell)  # a workbook knows no whole numbers
    return str(cell).strip()


def column_of_cells(cells: Sequence[Cell]) -> pa.Array:
    """Numbers, if there is nothing else."""
    if any(isinstance(cell, str) and cell for cell in cells):
        return pa.array(map(str, cells), pa.string())
    return pa.array(None if cell == "" else cell for cell in cells)


class FolderOfFiles(Format):
    """All tables in a folder, by their names, as one; each has the same columns, in any order."""

    def names(self, path: Path) -> list[str]:
        """Those of the first, if the others have them as well."""
        first, *others = self.files(path)
        names = column_names(first, self.form)
        for other in others:
            if odd := set(names) ^ set(column_names(other, self.form)):
                raise BadRows(
                    f"{path.name}: {first.name} and {other.name} do not have the same columns: only one has "
                    f"{min(odd)!r}; call columns alike, or leave tables of one kind in the folder.",
                    "tables-differ",
                )
        return names

    def blocks(self, path: Path, names: Sequence[str], size: int) -> Iterator[Block]:
        """One file after the other."""
        files, done, total, notes = self.files(path), 0, self.size_in_memory(path), tuple(self.notes(path))
        for file in files:
            share = size_in_memory(file, self.form)
            for block in blocks_in(file, names, size, self.form, self.numbers):
                so_far, where = done + share * block.done // max(1, block.total), Where(block.first, file.name)
                yield replace(block, done=so_far, total=total, notes=(*notes, *block.notes), where=where)
            done += share

    def size_in_memory(self, path: Path) -> int:
        """All of them."""
        return sum(size_in_memory(file, self.form) for file in self.files(path))

    def notes(self, path: Path) -> Iterator[str]:
        """What is there, but not read."""
        shown = {one.name for one in path.iterdir() if one.name[0] not in HIDDEN_FILES}
        if others := sorted(shown - {file.name for file in self.files(path)}):
            told = ", ".join(map(repr, others))
            yield f"In {path.name} these are not read: {told}; tables are known by their suffix."

    @staticmethod
    def files(path: Path) -> list[Path]:
        """Those that can be read."""
        there = (one for one in path.iterdir() if one.name[0] not in HIDDEN_FILES and one.is_file())
        found = sorted(one for one in there if one.suffix.lower() in READERS)
        if not found:
            raise BadRows(f"There is no table in the folder {path.name}.", "folder-without-table")
        return found


# Who adds a file format adds it here.
READERS: dict[str, type[Reader]] = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt", *PACKED), TextFormat),
    **dict.fromkeys((".parquet", ".pq"), Parquet),
    **dict.fromkeys((".arrow", ".feather"), Arrow),
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), Workbook),
}
