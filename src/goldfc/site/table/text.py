"""Tables in text: CSV with any separator, packed or not, in the encodings that people have, read by pyarrow."""

import codecs
import csv
import math
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BufferedReader, RawIOBase, StringIO, TextIOWrapper
from pathlib import Path
from typing import IO, Any, NoReturn
from zipfile import BadZipFile, ZipFile

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from goldfc.errors import BadRows
from goldfc.site.table.form import AS_USUAL, FORM, Form

PACKED = (".gz", ".zst", ".bz2", ".lz4", ".zip")
# What packed files begin with, whatever they are called.
PACKED_BEGIN = {
    b"\x1f\x8b": "gzip",
    b"(\xb5/\xfd": "zstd",
    b"BZh": "bz2",
    b"\x04\x22M\x18": "lz4",
    b"PK\x03\x04": "zip",
}
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
SEPARATORS = (",", ";", "\t", "|")
# A line before the header in which spreadsheets say it.
SAYS_SEPARATOR = re.compile(rb'(?:\xef\xbb\xbf)?"?sep=([ -~\t])"?\s*')
# What stands for nothing in a column of numbers; where it is written in another way, the column is looked at as text.
NO_VALUE = ("", "NA", "na", "N/A", "n/a", "NaN", "nan", "NULL", "null", "Null", "None", "none", "?")
# So many bytes are decoded at a time: with the rest of a line, no more than are asked for.
CHUNK = 2**20 - 2**14


class Lines(RawIOBase):
    """A text as UTF-8, whichever encoding it is written in, and what was seen of it on the way.

    Until something is not ASCII it may be UTF-8 or cp1252; from there on it is UTF-8 if it can be.
    """

    def __init__(self, file: IO[bytes], name: str, form: Form = AS_USUAL) -> None:
        self.file, self.name = file, name
        self.form, self.encoding = form, ""
        self.quotes, self.strays = 0, False
        self.before, self.first = parted(self.decoded(), form.header)
        self.rest = self.first
        self.separator = form.separator or self.likely_separator()
        sign = re.escape(self.separator)
        # A quotation mark in the middle of a value; doubled, it would be part of it.
        self.stray = re.compile(f'"(?<=[^{sign}"\r\n]")(?=[^{sign}"\r\n])'.encode())
        self.look_at(self.first)

    def likely_separator(self) -> str:
        """As the file says, as it is called, or as its header looks."""
        if named := list(filter(None, map(SAYS_SEPARATOR.fullmatch, self.before))):
            return str(named[0][1].decode())
        header = re.split(rb"[\r\n]", self.first, maxsplit=1)[0].decode()
        return "\t" if re.search(r"\.(tsv|tab)\b", self.name) else max(SEPARATORS, key=header.count)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, into: Any) -> int:
        """Some more of it."""
        found = self.read(len(into))
        into[: len(found)] = found
        return len(found)

    def read(self, size: int = -1, /) -> bytes:
        """Some more of it, as it is if that is not too much: every copy of a large file counts."""
        if size < 0:
            return self.readall()
        if not self.rest:
            self.rest = self.decoded()
            self.look_at(self.rest)
        found, self.rest = self.rest[:size], self.rest[size:]
        return found

    def look_at(self, chunk: bytes) -> None:
        """Count quotation marks."""
        if count := chunk.count(b'"'):
            self.quotes += count
            self.strays = self.strays or self.stray.search(chunk) is not None

    def decoded(self) -> bytes:
        """The next lines, whole; the last one ends, too."""
        chunk = self.file.read(CHUNK)
        if not chunk:
            return b""
        chunk += self.file.readline() or b"\n"
        if not self.encoding and not self.form.encoding and chunk.isascii() and b"\0" not in chunk:
            return chunk
        if not self.encoding:
            self.encoding = self.form.encoding or encoding_of_text(chunk, self.name)
            self.decoder = codecs.getincrementaldecoder(self.encoding)()
        try:
            return self.decoder.decode(chunk).encode()
        except UnicodeDecodeError as error:
            tried = self.form.encoding or "UTF-8, nor in UTF-16 or cp1252 (Windows) as a whole"
            raise BadRows(
                f"{self.name} is not written in {tried} ({error.reason}); save it as CSV (UTF-8), or say how it is "
                f"written in {FORM} (encoding = ...).",
                "encoding-unknown",
            ) from error


def parted(text: bytes, header: int | None) -> tuple[list[bytes], bytes]:
    """The lines before the header, and all from there on: in the line that is said, or the first that is not blank."""
    lines = text.splitlines(keepends=True)
    likely = (place for place, line in enumerate(lines) if line.strip() and not SAYS_SEPARATOR.fullmatch(line))
    place = next(likely, len(lines)) if header is None else header - 1
    return lines[:place], b"".join(lines[place:])


def encoding_of_text(chunk: bytes, name: str) -> str:
    """Which encoding lines are in that are not ASCII."""
    if chunk[:2] in UTF_16:
        return "utf-16"
    if b"\0" in chunk:
        # Without a mark, every other byte of what is written in plain letters is nothing.
        for encoding, high, low in (("utf-16-le", 1, 0), ("utf-16-be", 0, 1)):
            if not any(chunk[high:64:2]) and all(chunk[low:64:2]):
                return encoding
        raise BadRows(
            f"{name} holds no text; unpack it, if it is packed, or save the table as CSV (UTF-8) or as Parquet.",
            "no-text",
        )
    try:
        chunk.decode()
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def refuse_empty(path: Path, form: Form) -> NoReturn:
    """There is no header."""
    where = f" from line {form.header} on" if form.header else ""
    raise BadRows(f"{path.name} is empty{where}; it needs a header line with the names of the columns.", "no-header")


def names_in_header(header: Sequence[str]) -> list[str]:
    """Names in one line; a column without one is called by its place."""
    return [re.sub(r"\s*[\r\n\t]\s*", " ", name.strip()) or f"column {n}" for n, name in enumerate(header, 1)]


def is_unnamed(name: str) -> bool:
    """Whether a column is called by its place only."""
    return re.fullmatch(r"column \d+", name) is not None


class TextTable:
    """An open table."""

    def __init__(self, path: Path, raw: IO[bytes], lines: Lines) -> None:
        self.path, self.raw, self.lines = path, raw, lines
        self.total = path.stat().st_size
        header = next(csv.reader(StringIO(lines.first.decode("utf-8-sig"), newline=""), delimiter=lines.separator), [])
        self.names = names_in_header(header)
        if not any(name.strip() for name in header):
            refuse_empty(path, lines.form)

    @property
    def done(self) -> int:
        """How much of the file is read."""
        return min(self.raw.tell(), self.total)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know."""
        if self.lines.encoding != "cp1252" or self.lines.form.encoding:
            return ()
        return (f"{self.path.name} is not written in UTF-8; it is read as cp1252 (Windows, Western Europe).",)

    def batches(self, names: Sequence[str], size: int, numbers: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        """Cells as they are written, but for `numbers`."""
        single = len(self.names) == 1
        kinds = {name: pa.float64() if name in numbers and not single else pa.string() for name in self.names}
        try:
            reader = arrow_csv.open_csv(
                self.lines,
                arrow_csv.ReadOptions(block_size=size, column_names=self.names, skip_rows_after_names=1),
                # In a single column, a blank line is a missing value.
                arrow_csv.ParseOptions(
                    delimiter=self.lines.separator, newlines_in_values=True, ignore_empty_lines=not single
                ),
                arrow_csv.ConvertOptions(
                    check_utf8=False,
                    column_types=kinds,
                    null_values=NO_VALUE,
                    strings_can_be_null=False,
                    include_columns=names,
                ),
            )
            looked = False
            for rows in without_last_blanks(reader) if single else reader:
                if self.lines.strays and not looked:
                    check_lines(self.path, self.lines.form)
                    looked = True
                refuse_other_than_numbers(rows)
                yield rows
        except pa.ArrowInvalid as error:
            if not numbers:
                check_lines(self.path, self.lines.form)
            raise BadRows(f"{self.path.name} cannot be read as a table: {error}.", "no-table") from error
        if self.lines.quotes % 2 and not looked:
            # The last value may have swallowed lines.
            check_lines(self.path, self.lines.form)


def refuse_other_than_numbers(rows: pa.RecordBatch) -> None:
    """A cell such as -nan is no number, though it can be read as if it were."""
    for column in rows.columns:
        if pa.types.is_floating(column.type) and math.isnan(pc.sum(column).as_py() or 0.0):
            raise pa.ArrowInvalid("there is a cell that is no number")


def without_last_blanks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A single column, without the blank lines at its end; whether it is the end shows later."""
    blanks = 0
    for rows in batches:
        values = [""] * blanks + rows.column(0).to_pylist()
        blanks = next((place for place, value in enumerate(reversed(values)) if value), len(values))
        yield pa.record_batch([pa.array(values[: len(values) - blanks], pa.string())], names=rows.schema.names)


def check_lines(path: Path, form: Form) -> None:
    """Refuse a text that is no table with the number of the line, found by Python's own reader, which is strict."""
    with open_text(path, form) as text:
        lines = TextIOWrapper(BufferedReader(text.lines), encoding="utf-8", newline="")
        before = len(text.lines.before)
        reader = csv.reader(lines, delimiter=text.lines.separator, strict=True)
        try:
            for record in reader:
                if record and len(record) != len(text.names):
                    raise BadRows(
                        f"{path.name}, line {before + reader.line_num}: there are {len(record)} values, but "
                        f"{len(text.names)} columns; complete the line or the header, put texts with the separator in "
                        f"them into quotation marks, or say in {FORM} which line is the header (header = ...).",
                        "line-of-other-length",
                    )
        except csv.Error as error:
            raise BadRows(
                f"{path.name} cannot be read as a table: line {before + reader.line_num}: {error}.", "no-table"
            ) from error


@contextmanager
def open_text(path: Path, form: Form = AS_USUAL) -> Iterator[TextTable]:
    """A table from its beginning."""
    with ExitStack() as stack:
        raw = stack.enter_context(path.open("rb"))
        try:
            file = stack.enter_context(unpacked(raw, path.name))
            yield TextTable(path, raw, Lines(file, path.name, form))
        except (BadZipFile, pa.ArrowException, OSError) as error:
            raise BadRows(
                f"{path.name} cannot be unpacked: {error}; unpack it by other means.", "not-unpacked"
            ) from error


def unpacked(raw: IO[bytes], name: str) -> IO[bytes]:
    """What is in a file, if it is packed."""
    head = raw.read(4)
    raw.seek(0)
    packed = next((kind for magic, kind in PACKED_BEGIN.items() if head.startswith(magic)), None)
    if packed is None:
        return raw
    if packed == "zip":
        return in_zip(ZipFile(raw), name)
    return BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw, "r"), packed), CHUNK)


def in_zip(archive: ZipFile, name: str) -> IO[bytes]:
    """The one file in an archive."""
    found = [one for one in archive.namelist() if not one.endswith("/") and not one.startswith("__MACOSX/")]
    if "[Content_Types].xml" in found:
        raise BadRows(
            f"{name} is a workbook under another name; call it .xlsx, or save the sheet as CSV (UTF-8).",
            "workbook-called-otherwise",
        )
    if len(found) != 1:
        raise BadRows(
            f"{name} holds {len(found)} files; unpack it, and name the table or a folder of tables.", "files-in-archive"
        )
    try:
        return archive.open(found[0])
    except RuntimeError as error:  # a password, or a way to pack that Python does not know
        raise BadZipFile(str(error)) from error
