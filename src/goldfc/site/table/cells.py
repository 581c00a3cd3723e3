"""The cells of a table as numbers, by the columns that were agreed on.

Whatever cannot become a number is refused with a sentence that names column and row, and what to do about it.
"""

import hashlib
import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.agreement import FILE
from goldfc.errors import BadRows, BadSettings
from goldfc.message.columns import LARGEST_TOLD, Column
from goldfc.site.table.readers import HERE, Where

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
YES, NO = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})


@dataclass(frozen=True)
class People:
    """Whose the rows are."""

    number: IntArray  # of every row: that of its person, from 0 on
    digest: NDArray[np.uint64]  # of every person: of what the table calls her

    @property
    def shared(self) -> IntArray | None:
        """The numbers, if somebody has several rows."""
        return None if len(self.digest) == len(self.number) else self.number


@dataclass(frozen=True)
class Encoded:
    """A block of a table as numbers."""

    rows: FloatArray  # without those that miss a value
    missing: NDArray[np.bool_]  # of all rows: which ones miss a value
    numbers: dict[str, FloatArray]  # the columns of numbers, all rows; not a number where there is none


def person_digests(
    names: pa.Array, column: str, kept: NDArray[np.bool_], *, strict: bool, where: Where = HERE
) -> NDArray[np.uint64]:
    """Of every row that is kept, a digest of what the column calls its person; `strict`: each must be called so."""
    if strict and len(nobody := np.flatnonzero(kept & by_value(is_missing, names, bool))):
        raise BadRows(
            f"Column {column!r}, {where(int(nobody[0]))} says nobody, but it is to say whose every row is; fill it "
            "in, or leave the row out."
        )
    return by_value(person_digest, names.filter(pa.array(kept)), np.uint64)


def person_digest(value: Any) -> int:
    """The same for one person whether her number stands there as text, as a whole number or with a decimal point."""
    name = str(value).strip().removesuffix(".0")
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def numbered(digests: NDArray[np.uint64]) -> People:
    """The people of rows, by the digests of their names."""
    each, number = np.unique(digests, return_inverse=True)
    return People(number.astype(np.int64), each)


def encoded(rows: pa.RecordBatch, columns: Sequence[Column], *, drop: bool, where: Where = HERE) -> Encoded:
    """A block as numbers."""
    cells = [Cells.of(rows.column(column.name), column) for column in columns]
    gaps = [own.gaps for own in cells]
    missing = np.logical_or.reduce(gaps) if gaps else np.zeros(rows.num_rows, dtype=bool)
    if missing.any() and not drop:
        row = int(missing.argmax())
        name = next(own.column.name for own in cells if own.gaps[row])
        raise BadRows(
            f"Column {name!r}, {where(row)} has no value; fill it in, or agree in {FILE} on what to do: "
            f'`missing = "drop"` leaves such rows out, `fill = ...` in the column gives a value that stands for it.'
        )
    kept = np.flatnonzero(~missing)
    features = np.empty((len(kept), sum(column.features for column in columns)))
    first = 0
    for own in cells:
        features[:, first : first + own.column.features] = own.features(kept, where)
        first += own.column.features
    return Encoded(features, missing, {own.column.name: own.numbers for own in cells if own.column.kind == "number"})


def refuse_no_rows(n_rows: int) -> None:
    """Refuse a table without any."""
    if not n_rows:
        raise BadRows("There are no rows, or none without missing values.")


def check_names(
    there: Collection[str], names: Sequence[str], id_column: str | None, person_column: str | None = None
) -> None:
    """All columns must be there."""
    if person_column is not None and person_column not in there:
        raise BadRows(
            f"There is no column {person_column!r}, which is to say whose a row is; the file has "
            f"{', '.join(map(repr, there))}. Rename the one that is meant, or name another as `person` in policy.toml."
        )
    for name in [*names, *([id_column] if id_column else [])]:
        if name not in there:
            raise BadRows(
                f"There is no column {name!r}; the file has {', '.join(map(repr, there))}. "
                f"Rename the one that is meant, or agree on other columns in {FILE}."
            )
    if person_column in names:
        raise BadSettings(f"Column {person_column!r} says whose a row is, so it cannot be learned from.")
    if id_column in names:
        raise BadSettings(
            f"Column {id_column!r} tells rows apart, so it cannot be learned from; take it out of {FILE}."
        )


@dataclass(frozen=True)
class Cells:
    """A column of a block, as it stands in the file."""

    column: Column
    values: pa.Array
    absent: NDArray[np.bool_]  # where there is no value
    numbers: FloatArray  # if it is a column of numbers: not a number where there is none

    @classmethod
    def of(cls, values: pa.Array, column: Column) -> "Cells":
        """What stands there, looked at once."""
        if column.kind != "number":
            # A category may well be called "none" or "?".
            absent = by_value(lambda one: is_missing(one) and str(one) not in column.categories, values, bool)
            return cls(column, values, absent, np.empty(0))
        numbers = to_numbers(values)
        absent = np.isnan(numbers)
        if absent.any():
            absent[absent] = by_value(is_missing, values.filter(pa.array(absent)), bool)
        return cls(column, values, absent, numbers)

    @property
    def gaps(self) -> NDArray[np.bool_]:
        """Where values are missing for which nothing was agreed to stand."""
        return self.absent if self.column.fill is None else np.zeros_like(self.absent)

    def chosen(self, row: int) -> Any:
        """The value of a row, or what stands for it."""
        filled = self.absent[row] and self.column.fill is not None
        return self.column.fill if filled else self.values[row].as_py()

    def filled(self, found: FloatArray, of: Callable[[Any], float]) -> FloatArray:
        """What was found for all values, where there are none for what stands for them."""
        return np.where(self.absent, of(self.column.fill), found) if self.absent.any() else found

    def features(self, kept: IntArray, where: Where) -> FloatArray:
        """As one or more features."""
        if self.column.kind == "number":
            return self.checked_numbers(self.filled(self.numbers, to_number)[kept], kept, where)[:, None]
        if self.column.kind == "boolean":
            return self.checked(yes_or_no, kept, where)[:, None]
        places = {category: float(place) for place, category in enumerate(self.column.categories)}
        found = self.checked(lambda value: places.get(str(value).strip(), math.nan), kept, where)
        return np.eye(len(places))[found.astype(np.int64)]

    def checked_numbers(self, numbers: FloatArray, kept: IntArray, where: Where) -> FloatArray:
        """Numbers in the agreed range, or the sentence on the first that is none."""
        bad = np.flatnonzero(~(np.abs(numbers) <= LARGEST_TOLD))
        if len(bad):
            row = int(kept[bad[0]])
            value = self.chosen(row)
            raise BadRows(f"Column {self.column.name!r}, {where(row)} holds {shown_value(value)}, {fault_of(value)}.")
        low, high = self.column.limits
        outside = np.flatnonzero((numbers < low) | (numbers > high))
        if len(outside):
            raise BadRows(
                f"Column {self.column.name!r}, {where(int(kept[outside[0]]))} holds {numbers[outside[0]]:g}, outside "
                f"of the agreed range from {low:g} to {high:g}; correct it, or agree on a wider range in {FILE}."
            )
        return numbers

    def checked(self, of: Callable[[Any], float], kept: IntArray, where: Where) -> FloatArray:
        """What is found for every value, or the sentence on the first that nothing is found for."""
        found: FloatArray = self.filled(by_value(of, self.values, float), of)[kept]
        for row in kept[np.isnan(found)][:1].tolist():
            what = f"Column {self.column.name!r}, {where(row)} holds {shown_value(self.chosen(row))}, which is"
            if self.column.kind == "boolean":
                raise BadRows(f"{what} neither yes nor no; write true or false, yes or no, 1 or 0.")
            some = ", ".join(self.column.categories[:10]) + (", ..." if len(self.column.categories) > 10 else "")
            raise BadRows(f"{what} none of the agreed categories ({some}); correct it, or agree on it in {FILE}.")
        return found


def by_value(of: Callable[[Any], Any], values: pa.Array, kind: type) -> NDArray[Any]:
    """What comes out for every value; worked out once for those that are the same."""
    try:
        known = values.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError:  # Parquet may hold lists, which cannot be looked up
        return np.array([of(value) for value in values.to_pylist()], dtype=kind)
    found: NDArray[Any] = np.array([of(value) for value in known.dictionary.to_pylist()], dtype=kind)
    return np.asarray(found[in_numpy(known.indices)])


def distinct(values: pa.Array) -> list[Any]:
    """Every value once, if values can be compared."""
    try:
        return list(values.unique().to_pylist())
    except pa.ArrowNotImplementedError:
        return list(values.to_pylist())


def is_missing(value: Any) -> bool:
    """Whether there is no value."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return value is None or (isinstance(value, float) and math.isnan(value))


def to_numbers(values: pa.Array) -> FloatArray:
    """Numbers, or not a number where there is none: those that Python reads in a text, to the last bit."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        trimmed = pc.utf8_trim_whitespace(values)
        numbers = as_floats(trimmed)
        if numbers is None:
            gaps = pc.is_in(pc.utf8_lower(trimmed), pa.array(MISSING, values.type))
            numbers = as_floats(pc.if_else(gaps, pa.scalar(None, values.type), trimmed))
    else:
        numbers = as_floats(values) if has_numbers(values.type) else None
    return by_value(to_number, values, float) if numbers is None else numbers


def has_numbers(kind: pa.DataType) -> bool:
    """Whether values are numbers or booleans; days and times, which Arrow would count, are not."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def as_floats(values: pa.Array) -> FloatArray | None:
    """Values as Arrow casts them, which is soon done and rounds correctly; nothing if it cannot."""
    try:
        floats = values if values.type == pa.float64() else values.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return in_numpy(floats.fill_null(math.nan) if floats.null_count else floats)


def in_numpy(numbers: pa.Array) -> NDArray[Any]:
    """Numbers without gaps as they lie in memory: Arrow's own way there would load pandas."""
    kind = numbers.type.to_pandas_dtype()
    buffer = numbers.buffers()[1]
    return np.frombuffer(buffer, kind)[numbers.offset :][: len(numbers)] if len(numbers) else np.empty(0, kind)


def to_number(value: Any) -> float:
    """A number, or not a number."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
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


def yes_or_no(value: Any) -> float:
    """One or zero; not a number if it is neither."""
    text = str(value).strip().lower().removesuffix(".0")
    return 1.0 if text in YES else 0.0 if text in NO else math.nan


def shown_value(value: Any) -> str:
    """A value in a sentence, not too long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
