"""Tables in files, read a block at a time: CSV, TSV and Parquet, as columns of whatever stands there."""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np
from numpy.typing import NDArray

from goldfc.errors import BadRows

# About so many characters of text, or numbers of a Parquet file, make a block.
BLOCK = 2**20

# Plain numbers of a Parquet file come as an array, everything else as it is in Python.
Values = Sequence[Any] | NDArray[Any]


@dataclass(frozen=True)
class Raw:
    """A table, or a block of one, as it stands in its file."""

    columns: dict[str, Values]

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values()), ()))


@dataclass(frozen=True)
class Block:
    """Some rows, where the first of them stands, and how much of the file is read."""

    raw: Raw
    first: int
    done: int
    total: int


class Reader(Protocol):
    """What reads a file format."""

    def names(self, path: Path) -> list[str]:
        """What the columns of a file are called."""
        ...

    def parts(self, path: Path, names: Sequence[str], size: int) -> Iterator["Part"]:
        """The rows of a file in their order, about `size` values at a time: at least the named columns."""
        ...

    def size_in_memory(self, path: Path) -> int:
        """About how many bytes all rows take."""
        ...


# Some rows; how much of the file is read, and how much there is.
Part = tuple[Raw, int, int]


def read_raw(path: Path) -> Raw:
    """The columns of a file, by name: all of it at once."""
    columns: dict[str, list[Any]] = {name: [] for name in column_names(path)}
    for block in blocks_in(path, list(columns)):
        for name, values in block.raw.columns.items():
            columns[name].extend(listed(values))
    return Raw(dict(columns))


def listed(values: Values) -> Sequence[Any]:
    """Values as Python has them."""
    return values.tolist() if isinstance(values, np.ndarray) else values


def column_names(path: Path) -> list[str]:
    """What the columns of a file are called."""
    with naming_file(path):
        return checked_names(reader_of(path).names(path), path)


def blocks_in(path: Path, names: Sequence[str], size: int | None = None) -> Iterator[Block]:
    """The rows of a file in their order, some at a time: at least the named columns."""
    first = 0
    with naming_file(path):
        for raw, done, total in reader_of(path).parts(path, list(dict.fromkeys(names)), size or BLOCK):
            yield Block(raw, first, done, total)
            first += raw.n_rows


def size_in_memory(path: Path) -> int:
    """About how many bytes all rows of a file take."""
    with naming_file(path):
        return reader_of(path).size_in_memory(path)


def reader_of(path: Path) -> Reader:
    """What reads a file, by its suffix; text, if nobody knows it."""
    return READERS.get(path.suffix.lower(), READERS[".csv"])


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Refuse what is no table; whatever a reader complains of becomes a sentence with the name of the file."""
    if not path.is_file():
        raise BadRows(f"There is no file {path}.")
    try:
        yield
    except UnicodeDecodeError as error:
        raise BadRows(f"{path.name} is not written in UTF-8 ({error.reason}); save it as UTF-8.") from error
    except csv.Error as error:
        raise BadRows(f"{path.name} cannot be read as a table: {error}.") from error


def checked_names(names: Sequence[str], path: Path) -> list[str]:
    """Names, if each is there once."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise BadRows(f"{path.name} has two columns called {twice[0]!r}; every column needs a name of its own.")
    return list(names)


# --- text ---


class Records:
    """Records of a text, and the number of the line that each ends in."""

    def __init__(self, file: TextIO, delimiter: str) -> None:
        self.file = file
        self.delimiter = delimiter
        self.lines = 0

    def records(self, text: str = "") -> Iterator[list[str]]:
        """The records that begin in `text`, or, if there is none, in the rest of the file."""
        head, before = StringIO(text, newline=""), self.lines
        # A record may go on behind the text, if there are line breaks in quotation marks.
        lines = chain(iter(head.readline, ""), iter(self.file.readline, ""))
        reader = csv.reader(lines, delimiter=self.delimiter, strict=True)
        for record in reader:
            self.lines = before + reader.line_num
            yield record
            if text and head.tell() == len(text):
                return


@contextmanager
def open_text(path: Path) -> Iterator[tuple[TextIO, Records]]:
    """CSV or TSV, from its beginning."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        delimiter = delimiter_of(path, file.readline())
        file.seek(0)
        yield file, Records(file, delimiter)


def delimiter_of(path: Path, header: str) -> str:
    """What separates values: a tab, or whichever of comma and semicolon is more often in the header."""
    if path.suffix in {".tsv", ".tab"}:
        return "\t"
    return ";" if header.count(";") > header.count(",") else ","


def read_header(reader: Records, path: Path) -> list[str]:
    """The names in the first record."""
    header = [name.strip() for name in next(reader.records(), [])]
    if not any(header):
        raise BadRows(f"{path.name} is empty; it needs a header line with the names of the columns.")
    return header


class Text:
    """CSV or TSV, with a header."""

    def names(self, path: Path) -> list[str]:
        """What the header says."""
        with open_text(path) as (_, reader):
            return read_header(reader, path)

    def parts(self, path: Path, _: Sequence[str], size: int) -> Iterator[Part]:
        """Whole lines, wherever the text was cut."""
        total, blanks = path.stat().st_size, 0
        with open_text(path) as (file, reader):
            header = read_header(reader, path)
            while text := file.read(size) + file.readline():
                columns = plain_columns(text, reader, len(header)) or careful_columns(text, reader, len(header), path)
                if len(header) == 1:
                    # Blank lines at the end of a file are none; whether it is the end shows later.
                    cells = [""] * blanks + list(columns[0])
                    blanks = next((place for place, cell in enumerate(reversed(cells)) if cell), len(cells))
                    columns = [cells[: len(cells) - blanks]]
                yield Raw(dict(zip(header, columns, strict=True))), min(file.buffer.tell(), total), total

    def size_in_memory(self, path: Path) -> int:
        """As in the file."""
        return path.stat().st_size


def plain_columns(text: str, reader: Records, n_columns: int) -> list[Sequence[str]] | None:
    """The columns of lines that can be cut at their separators, which is soon done; nothing if some cannot."""
    text = text.replace("\r\n", "\n")
    if '"' in text or "\r" in text:
        return None
    lines = text.removesuffix("\n").split("\n")
    n_separators = n_columns - 1
    if max(map(len, lines)) > csv.field_size_limit() or any(
        line.count(reader.delimiter) != n_separators for line in lines
    ):
        return None
    reader.lines += len(lines)
    cells = reader.delimiter.join(lines).split(reader.delimiter)
    return [cells[place::n_columns] for place in range(n_columns)]


def careful_columns(text: str, reader: Records, n_columns: int, path: Path) -> list[Sequence[str]]:
    """The columns of all that CSV can be."""
    records = []
    for record in reader.records(text):
        if len(record) != n_columns and record:
            raise BadRows(
                f"{path.name}, line {reader.lines}: there are {len(record)} values, but {n_columns} columns; "
                "put texts with the separator in them into quotation marks."
            )
        # A blank line is none; but with a single column it is a missing value.
        if record or n_columns == 1:
            records.append(record or [""])
    return list(zip(*records, strict=True)) or [()] * n_columns


# --- Parquet ---


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Parquet, with the extra that can read it."""
    try:
        # Not everybody has it.
        from pyarrow import ArrowException, parquet  # noqa: PLC0415
    except ImportError as error:
        raise BadRows("To read Parquet, install goldfc[parquet], or save the table as CSV.") from error
    try:
        # Through a buffer: otherwise a row group, which may be the whole file, is read at once.
        with parquet.ParquetFile(path, buffer_size=2**20, pre_buffer=False) as file:
            yield file
    except (ArrowException, OSError) as error:
        raise BadRows(f"{path.name} cannot be read as Parquet: {error}.") from error


class Parquet:
    """Parquet, in record batches."""

    def names(self, path: Path) -> list[str]:
        """What the schema says."""
        with open_parquet(path) as file:
            return list(file.schema_arrow.names)

    def parts(self, path: Path, names: Sequence[str], size: int) -> Iterator[Part]:
        """Record batches, of the named columns."""
        with open_parquet(path) as file:
            done, total = 0, file.metadata.num_rows
            for batch in file.iter_batches(max(1, size // max(1, len(names))), columns=names, use_threads=False):
                done += batch.num_rows
                yield Raw({name: values_of(batch.column(name)) for name in names}), done, total

    def size_in_memory(self, path: Path) -> int:
        """Eight bytes a number."""
        with open_parquet(path) as file:
            return int(8 * file.metadata.num_rows * file.metadata.num_columns)


def values_of(column: Any) -> Values:
    """Whole and floating numbers without gaps as an array, which is soon done; everything else as Python has it."""
    from pyarrow import types  # noqa: PLC0415 (as above)

    plain = types.is_integer(column.type) or types.is_float32(column.type) or types.is_float64(column.type)
    values: Values = column.to_numpy() if plain and not column.null_count else column.to_pylist()
    return values


# --- all of them ---


class Workbook(Text):
    """What a spreadsheet keeps."""

    def names(self, path: Path) -> list[str]:
        """Refused."""
        raise BadRows(f"{path.name} is a workbook; save the sheet as CSV (UTF-8), and use that.")


# Who adds a file format adds it here.
READERS: dict[str, Reader] = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), Text()),
    **dict.fromkeys((".parquet", ".pq"), Parquet()),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), Workbook()),
}
