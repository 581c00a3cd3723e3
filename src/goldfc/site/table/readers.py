"""Tables in files, some rows at a time, as Arrow has them: read by pyarrow, and workbooks by calamine."""

from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import ipc, parquet

from goldfc.errors import BadRows
from goldfc.site.table.form import AS_USUAL, FORM, Form
from goldfc.site.table.text import PACKED, open_text

# About so many bytes of text, or values of another file, make a block.
BLOCK = 2**20
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
    note: str = ""  # what the user should know
    first: int = 0  # so many rows of the table come before
    where: Where = HERE


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
        for block in reader_of(path, form, numbers).blocks(path, list(dict.fromkeys(names)), size or BLOCK):
            yield replace(block, first=first, where=block.where if block.where.file else Where(first))
            first += block.rows.num_rows


def size_in_memory(path: Path, form: Form = AS_USUAL) -> int:
    """About how many bytes all rows of a file take."""
    with naming_file(path):
        return reader_of(path, form).size_in_memory(path)


def reader_of(path: Path, form: Form, numbers: Collection[str] = ()) -> Reader:
    """What reads a file, by its suffix; text, if nobody knows it."""
    return (FolderOfFiles if path.is_dir() else READERS.get(path.suffix.lower(), Text))(form, numbers)


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


class Text(Format):
    """CSV, TSV and the like, also packed."""

    def names(self, path: Path) -> list[str]:
        """What the header says."""
        with open_text(path, self.form.encoding) as text:
            return text.names

    def blocks(self, path: Path, names: Sequence[str], size: int) -> Iterator[Block]:
        """Cells as they are written, but for numbers."""
        with open_text(path, self.form.encoding) as text:
            for rows in text.batches(names, size, self.numbers):
                yield Block(rows, text.done, text.total, text.note)

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
            raise BadRows(f"{path.name} cannot be read as Parquet: {error}.", "no-parquet") from error


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
            raise BadRows(f"{path.name} cannot be read as Arrow (Feather): {error}.", "no-arrow") from error


def plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same without dictionaries."""
    columns = [one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in rows.columns]
    return pa.record_batch(columns, names=rows.schema.names)


class Workbook(Format):
    """The one sheet of a workbook that has rows: Excel or OpenDocument."""

    def names(self, path: Path) -> list[str]:
        """The first row."""
        return self.cells(path)[0]

    def blocks(self, path: Path, names: Sequence[str], size: int) -> Iterator[Block]:
        """Cells as text, the way a CSV file has them."""
        header, *rows = self.cells(path)
        places, step = [header.index(name) for name in names], max(1, size // len(names))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            columns = [pa.array([row[place] for row in some], pa.string()) for place in places]
            yield Block(pa.record_batch(columns, names=names), start + len(some), len(rows))

    def size_in_memory(self, path: Path) -> int:
        """As it is unpacked."""
        return PACKED_BY * path.stat().st_size

    def cells(self, path: Path) -> list[list[str]]:
        """All rows that are not empty, the header first, without columns that nobody named."""
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
                sheets = {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}
        except (CalamineError, OSError) as error:
            raise BadRows(f"{path.name} cannot be read as a workbook: {error}.", "no-workbook") from error
        filled = [name for name, rows in sheets.items() if rows and self.form.sheet in {"", name}]
        if len(filled) != 1:
            there = ", ".join(repr(name) for name, rows in sheets.items() if rows)
            wanted = f" called {self.form.sheet!r}" if self.form.sheet else ""
            raise BadRows(
                f"{path.name} has {len(filled)} sheets with rows{wanted} ({there}); say which "
                f"in {FORM} (sheet = ...), or save it as CSV (UTF-8).",
                "sheets-several",
            )
        rows = [texts for row in sheets[filled[0]] if any(texts := [text_of_cell(cell) for cell in row])]
        named = [place for place, name in enumerate(rows[0]) if name or any(row[place] for row in rows)]
        return [[row[place] for place in named] for row in rows]


def text_of_cell(cell: object) -> str:
    """A cell of a workbook as it would be written."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)  # a workbook knows no whole numbers
    return str(cell).strip()


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
                    f"{min(odd)!r}; leave tables of one kind in the folder.",
                    "tables-differ",
                )
        return names

    def blocks(self, path: Path, names: Sequence[str], size: int) -> Iterator[Block]:
        """One file after the other."""
        files, done, total = self.files(path), 0, self.size_in_memory(path)
        for file in files:
            share = size_in_memory(file, self.form)
            for block in blocks_in(file, names, size, self.form, self.numbers):
                where = Where(block.first, file.name)
                yield replace(block, done=done + share * block.done // max(1, block.total), total=total, where=where)
            done += share

    def size_in_memory(self, path: Path) -> int:
        """All of them."""
        return sum(size_in_memory(file, self.form) for file in self.files(path))

    @staticmethod
    def files(path: Path) -> list[Path]:
        """Those that can be read."""
        found = sorted(one for one in path.iterdir() if one.suffix.lower() in READERS and one.name[0] != ".")
        if not found:
            raise BadRows(f"There is no table in the folder {path.name}.", "folder-without-table")
        return found


# Who adds a file format adds it here.
READERS: dict[str, type[Reader]] = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt", *PACKED), Text),
    **dict.fromkeys((".parquet", ".pq"), Parquet),
    **dict.fromkeys((".arrow", ".feather"), Arrow),
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), Workbook),
}
