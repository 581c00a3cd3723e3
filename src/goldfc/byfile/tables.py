"""Tables of data as numbers: CSV, TSV and Parquet, by the columns that were agreed on.

Whatever cannot become a number is refused with a sentence that names column and row, and what to do about it.
"""

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadRows, BadSettings
from goldfc.protocol.agreement import FILE
from goldfc.protocol.terms import LARGEST_TOLD, Column

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
YES, NO = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})
# Text with more different values than this is no category, but names or remarks.
MOST_GUESSED_CATEGORIES = 20

Values = Sequence[Any]


@dataclass(frozen=True)
class Raw:
    """A table as it stands in its file."""

    columns: dict[str, Values]

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values()), ()))


@dataclass(frozen=True)
class Table:
    """Rows as numbers. Rows with missing values may have been left out: `kept` says where each one stands."""

    rows: FloatArray
    ids: tuple[str, ...]  # of all rows of the file: what the id column says, or their numbers
    kept: IntArray
    notes: tuple[str, ...]  # what the user should know


def read_raw(path: Path) -> Raw:
    """The columns of a file, by name."""
    if not path.is_file():
        raise BadRows(f"There is no file {path}.")
    if path.suffix in {".xlsx", ".xls", ".ods"}:
        raise BadRows(f"{path.name} is a workbook; save the sheet as CSV (UTF-8), and use that.")
    try:
        if path.suffix == ".parquet":
            return read_parquet(path)
        return read_text(path)
    except UnicodeDecodeError as error:
        raise BadRows(f"{path.name} is not written in UTF-8 ({error.reason}); save it as UTF-8.") from error
    except csv.Error as error:
        raise BadRows(f"{path.name} cannot be read as a table: {error}.") from error


def read_text(path: Path) -> Raw:
    """CSV or TSV, with a header."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        file.seek(0)
        reader = csv.reader(file, delimiter=delimiter_of(path, first), strict=True)
        header = [name.strip() for name in next(reader, [])]
        if not any(header):
            raise BadRows(f"{path.name} is empty; it needs a header line with the names of the columns.")
        if twice := [name for name in header if header.count(name) > 1]:
            raise BadRows(f"{path.name} has two columns called {twice[0]!r}; every column needs a name of its own.")
        records = []
        for record in reader:
            if len(record) != len(header) and record:
                raise BadRows(
                    f"{path.name}, line {reader.line_num}: there are {len(record)} values, but {len(header)} columns; "
                    "put texts with the separator in them into quotation marks."
                )
            # A blank line is none; but with a single column it is a missing value.
            if record or len(header) == 1:
                records.append(record or [""])
    while records and records[-1] == [""]:
        records.pop()
    columns = list(zip(*records, strict=True)) or [()] * len(header)
    return Raw(dict(zip(header, columns, strict=True)))


def delimiter_of(path: Path, header: str) -> str:
    """What separates values: a tab, or whichever of comma and semicolon is more often in the header."""
    if path.suffix in {".tsv", ".tab"}:
        return "\t"
    return ";" if header.count(";") > header.count(",") else ","


def read_parquet(path: Path) -> Raw:
    """Parquet, with the extra that can read it."""
    try:
        # Not everybody has it.
        from pyarrow import ArrowException, parquet  # noqa: PLC0415
    except ImportError as error:
        raise BadRows("To read Parquet, install goldfc[parquet], or save the table as CSV.") from error
    try:
        table = parquet.read_table(path)
    except (ArrowException, OSError) as error:
        raise BadRows(f"{path.name} cannot be read as Parquet: {error}.") from error
    return Raw({name: table.column(name).to_pylist() for name in table.column_names})


def as_table(raw: Raw, columns: Sequence[Column], *, drop: bool = False, id_column: str | None = None) -> Table:
    """The agreed columns as numbers, in the agreed order; with `drop`, rows with missing values are left out."""
    check_names(raw, [column.name for column in columns], id_column)
    gaps = [gaps_of(raw.columns[column.name], column) for column in columns]
    missing = np.logical_or.reduce(gaps) if gaps else np.zeros(raw.n_rows, dtype=bool)
    if missing.any() and not drop:
        row = int(missing.argmax())
        name = next(column.name for column, gap in zip(columns, gaps, strict=True) if gap[row])
        raise BadRows(
            f"Column {name!r}, {place(row)} has no value; fill it in, or agree in {FILE} on what to do: "
            f'`missing = "drop"` leaves such rows out, `fill = ...` in the column gives a value that stands for it.'
        )
    kept = np.flatnonzero(~missing)
    if not len(kept):
        raise BadRows("There are no rows, or none without missing values.")
    parts = [numbers_of(raw.columns[column.name], column, kept) for column in columns]
    rows = np.ascontiguousarray(np.hstack(parts))
    ids = raw.columns[id_column] if id_column else range(1, raw.n_rows + 1)
    return Table(rows, tuple(map(str, ids)), kept, tuple(notes_on(raw, rows, columns, int(missing.sum()), id_column)))


def check_names(raw: Raw, names: Sequence[str], id_column: str | None) -> None:
    """All columns must be there."""
    for name in [*names, *([id_column] if id_column else [])]:
        if name not in raw.columns:
            raise BadRows(
                f"There is no column {name!r}; the file has {', '.join(map(repr, raw.columns))}. "
                f"Rename the one that is meant, or agree on other columns in {FILE}."
            )
    if id_column in names:
        raise BadSettings(
            f"Column {id_column!r} tells rows apart, so it cannot be learned from; take it out of {FILE}."
        )


def is_missing(value: Any) -> bool:
    """Whether there is no value."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return value is None or (isinstance(value, float) and math.isnan(value))


def gaps_of(values: Values, column: Column) -> NDArray[np.bool_]:
    """Where values are missing for which nothing was agreed to stand."""
    if column.fill is not None:
        return np.zeros(len(values), dtype=bool)
    # A category may well be called "none" or "?".
    return np.array([is_missing(value) and str(value) not in column.categories for value in values], dtype=bool)


def numbers_of(values: Values, column: Column, kept: IntArray) -> FloatArray:
    """One column as one or more features."""
    chosen = [
        column.fill if column.fill is not None and is_missing(values[row]) and str(values[row]) not in column.categories
        else values[row]
        for row in kept
    ]  # fmt: skip
    if column.kind == "number":
        return checked_range(as_numbers(chosen, column, kept), column, kept)[:, None]
    if column.kind == "boolean":
        return np.array([[as_yes_or_no(value, column, row)] for value, row in zip(chosen, kept, strict=True)])
    places = {category: place for place, category in enumerate(column.categories)}
    encoded = np.zeros((len(chosen), len(places)))
    for number, (value, row) in enumerate(zip(chosen, kept, strict=True)):
        text = str(value).strip()
        if text not in places:
            raise BadRows(
                f"Column {column.name!r}, {place(row)} holds {shown(value)}, which is none of the agreed categories "
                f"({', '.join(column.categories[:10])}{', ...' if len(places) > 10 else ''}); correct it, or agree on "
                f"it in {FILE}."
            )
        encoded[number, places[text]] = 1.0
    return encoded


def as_numbers(values: list[Any], column: Column, kept: IntArray) -> FloatArray:
    """Numbers, or the sentence on the first that is none."""
    try:
        numbers = np.array(values).astype(np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (len(values),):
        numbers = np.array([to_number(value) for value in values])
    bad = np.flatnonzero(~(np.abs(numbers) <= LARGEST_TOLD))
    if len(bad):
        value = values[bad[0]]
        raise BadRows(f"Column {column.name!r}, {place(kept[bad[0]])} holds {shown(value)}, {fault_of(value)}.")
    return numbers


def to_number(value: Any) -> float:
    """A number, or not a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def fault_of(value: Any) -> str:
    """What is wrong with a value that should be a number, and what to do."""
    text = str(value).strip()
    if not np.isnan(to_number(text)):
        return "which is too large or endless; correct it, or leave the row out"
    if not np.isnan(to_number(text.replace(",", "."))) or not np.isnan(to_number(text.replace(",", ""))):
        return "which is not a number; write decimals with a point and numbers without thousands separators"
    if match := re.match(r"[-+]?\d+([.,]\d+)?(?=\s*[^\d\s.,])", text):
        return f"which is not a number; leave what stands behind {match[0]!r} out of the cells (units go into {FILE})"
    return f"which is not a number; make the column boolean or a category in {FILE}, or leave it out"


def place(row: int) -> str:
    """Where a row stands, counted from 1; the header is none."""
    return f"row {row + 1} below the header"


def checked_range(numbers: FloatArray, column: Column, kept: IntArray) -> FloatArray:
    """Numbers, if they lie in the agreed range."""
    low, high = column.limits
    outside = np.flatnonzero((numbers < low) | (numbers > high))
    if len(outside):
        raise BadRows(
            f"Column {column.name!r}, {place(kept[outside[0]])} holds {numbers[outside[0]]:g}, outside of the agreed "
            f"range from {low:g} to {high:g}; correct it, or agree on a wider range in {FILE}."
        )
    return numbers


def as_yes_or_no(value: Any, column: Column, row: int) -> float:
    """One or zero."""
    text = str(value).strip().lower().removesuffix(".0")
    if text in YES:
        return 1.0
    if text in NO:
        return 0.0
    raise BadRows(
        f"Column {column.name!r}, {place(row)} holds {shown(value)}, which is neither yes nor no; write true or "
        "false, yes or no, 1 or 0."
    )


def shown(value: Any) -> str:
    """A value in a sentence, not too long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def notes_on(raw: Raw, rows: FloatArray, columns: Sequence[Column], dropped: int, id_column: str | None) -> "list[str]":
    """What is no error, but should be known."""
    notes = []
    used = {column.name for column in columns} | {id_column}
    if unused := [name for name in raw.columns if name not in used]:
        notes.append(f"Not used, and not in the message: {', '.join(map(repr, unused))}.")
    if dropped:
        notes.append(f"{dropped} rows with missing values are left out.")
    names = [name for column in columns for name in column.feature_names]
    for name, low, high in zip(names, rows.min(axis=0), rows.max(axis=0), strict=True):
        if low == high:
            notes.append(
                f"{name!r} is {low:g} in all rows: here it tells nothing apart. Leave it out if it is so everywhere."
            )
    for column in columns:
        if column.kind == "number" and looks_like_an_id(column.name, raw.columns[column.name]):
            notes.append(f"Column {column.name!r} looks like an id. If it is, keep it out: --id-column {column.name}.")
    if id_column and len(set(raw.columns[id_column])) < raw.n_rows:
        notes.append(f"Values of {id_column!r} are there more than once: labels will be hard to join.")
    if twins := len(rows) - len(np.unique(rows, axis=0)):
        notes.append(f"{twins} rows are the same as an earlier one; all of them count.")
    if rows.shape[1] == 1:
        notes.append("There is one column only: clusters will be stretches of it.")
    return notes


def looks_like_an_id(name: str, values: Values) -> bool:
    """Whether it numbers the rows: whole numbers, all different, in order, or called so."""
    numbers = [to_number(value) for value in values]
    if len(numbers) < 2 or any(np.isnan(number) or number != int(number) for number in numbers if abs(number) < 1e15):
        return False
    steps = np.diff(numbers)
    in_order = bool((steps > 0).all() or (steps < 0).all())
    called_so = re.search(r"(^|[^a-z])(id|nr|no|number|case|patient|fall)([^a-z]|$)", name.lower()) is not None
    return in_order or (called_so and len(set(numbers)) == len(numbers))


def guess_columns(raw: Raw, left_out: Sequence[str] = ()) -> tuple[list[Column], dict[str, str]]:
    """The columns of a table by the look of them; and those that cannot be learned from, with the reason."""
    columns, odd = list[Column](), dict[str, str]()
    for name, values in raw.columns.items():
        present = [value for value in values if not is_missing(value)]
        texts = {str(value).strip() for value in present}
        if name in left_out:
            continue
        if not texts:
            odd[name] = "it has no values"
        elif {text.lower() for text in texts} <= (YES | NO) - {"1", "0"}:
            columns.append(Column(name=name, kind="boolean"))
        elif not any(np.isnan(to_number(text)) for text in texts):
            columns.append(Column(name=name))
        elif 2 <= len(texts) <= MOST_GUESSED_CATEGORIES and not any(text[0].isdigit() for text in texts):
            columns.append(Column(name=name, kind="category", categories=tuple(sorted(texts))))
        else:
            bad = next(text for text in texts_in_order(present) if np.isnan(to_number(text)))
            odd[name] = f"it holds {shown(bad)}, {fault_of(bad)}"
    return columns, odd


def texts_in_order(values: Values) -> list[str]:
    """Values as texts."""
    return [str(value).strip() for value in values]
