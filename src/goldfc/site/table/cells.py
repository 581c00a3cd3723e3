"""The cells of a table as numbers, by the columns that were agreed on and the way this site writes them.

What cannot become a number is a fault: it names column and row, and what to do about it.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.agreement import FILE
from goldfc.errors import BadRows, BadSettings
from goldfc.message.columns import LARGEST_TOLD, Column
from goldfc.site.table.form import AS_USUAL, FORM, ColumnForm, Form
from goldfc.site.table.numerals import (
    USUAL_GAPS,
    USUAL_STYLE,
    NumberStyle,
    by_value,
    distinct,
    fault_of,
    is_missing,
    is_text,
    marked,
    name_of_value,
    to_number,
    to_numbers,
)
from goldfc.site.table.readers import HERE, Where

YES = frozenset(
    {"true", "yes", "1", "y", "t", "ja", "oui", "si", "s\u00ed", "s\u00ec", "wahr", "vrai", "vero", "verdadero"}
)
NO = frozenset({"false", "no", "0", "n", "f", "nein", "non", "falsch", "faux", "falso"})
# How dates are written unless a site says otherwise; days come before months where there are points.
DATE_FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M")
# So many faults are told in one sentence each.
MOST_TOLD = 30
# So many values that are no categories are named.
MOST_VALUES = 6
# Kinds of faults that rows are marked with, one byte a row; beyond that they are all alike.
MOST_REASONS = 254


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
class Fault:
    """What is wrong with some values of a column."""

    column: str
    reason: str  # why such a row has no label
    said: str  # of the first of these values
    rows: IntArray  # of the block


@dataclass(frozen=True)
class Encoded:
    """A block of a table as numbers."""

    rows: FloatArray  # those without a fault
    left_out: NDArray[np.bool_]  # of all rows: which ones have one
    numbers: dict[str, FloatArray]  # the columns of numbers, all rows; not a number where there is none
    blank: tuple[Fault, ...]  # where nothing stands at all
    gaps: tuple[Fault, ...]  # where values are missing
    faults: tuple[Fault, ...]  # where they cannot be used
    done: Counter[str]  # what was made of values, and of how many


@dataclass
class Faults:
    """What was found wrong in a table so far: by column and reason, with the first place and how many rows have it."""

    first: dict[tuple[str, str], str] = field(default_factory=dict)
    count: Counter[tuple[str, str]] = field(default_factory=Counter)
    number: dict[str, int] = field(default_factory=dict)
    of_table: list[str] = field(
        default_factory=list
    )  # what is wrong with all of it, such as a column that is not there

    def add(self, faults: Sequence[Fault], where: Where = HERE) -> None:
        """Those of one more block."""
        for fault in faults:
            key = fault.column, fault.reason
            self.first.setdefault(key, f"Column {fault.column!r}, {where(int(fault.rows[0]))} {fault.said}")
            self.count[key] += len(fault.rows)

    def marks(self, faults: Sequence[Fault], count: int) -> NDArray[np.uint8]:
        """Of every row of a block, the number of the first reason why it is left out; 0 if there is none."""
        found = np.zeros(count, dtype=np.uint8)
        for fault in reversed(faults):
            number = self.number.setdefault(fault.reason, min(len(self.number) + 1, MOST_REASONS))
            found[fault.rows] = number
        return found

    @property
    def reasons(self) -> tuple[str, ...]:
        """By their numbers, from 1 on."""
        return tuple(self.number)[: MOST_REASONS - 1] + ("a value cannot be used",) * (len(self.number) >= MOST_REASONS)

    def sentences(self) -> Iterator[str]:
        """What is wrong, all of it."""
        yield from self.of_table
        for key, sentence in self.first.items():
            more = self.count[key] - 1
            yield (
                sentence
                if not more
                else f"{sentence}; so are {more:,} more rows"
                if more > 1
                else f"{sentence}; so is 1 more row"
            )

    def refuse(self) -> None:
        """Refuse a table that has any, and say all."""
        told = [f"{sentence}." for sentence in self.sentences()]
        if len(told) > MOST_TOLD:
            told = [*told[:MOST_TOLD], f"{len(told) - MOST_TOLD} more columns or reasons."]
        if told:
            many = len(told) > 1
            raise BadRows("\n".join([f"{len(told)} things are wrong:", *told]) if many else told[0], "values-unusable")


def person_digests(
    names: pa.Array, column: str, kept: NDArray[np.bool_], *, strict: bool, where: Where = HERE
) -> NDArray[np.uint64]:
    """Of every row that is kept, a digest of what the column calls its person; `strict`: each must be called so."""
    if strict and len(nobody := np.flatnonzero(kept & by_value(is_missing, names, bool))):
        raise BadRows(
            f"Column {column!r}, {where(int(nobody[0]))} says nobody, but it is to say whose every row is; fill it "
            "in, or leave the row out.",
            "person-nameless",
        )
    return by_value(person_digest, marked(names, kept), np.uint64)


def nameless(names: pa.Array, column: str) -> Iterator[Fault]:
    """Rows of which it is not said whose they are."""
    if len(nobody := np.flatnonzero(by_value(is_missing, names, bool))):
        yield Fault(column, f"{column!r} says nobody", "says nobody", nobody)


def person_digest(value: Any) -> int:
    """The same for one person whether her number stands there as text, as a whole number or with a decimal point."""
    name = str(value).strip().removesuffix(".0")
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def numbered(digests: NDArray[np.uint64]) -> People:
    """The people of rows, by the digests of their names."""
    each, number = np.unique(digests, return_inverse=True)
    return People(number.astype(np.int64), each)


def encoded(
    rows: pa.RecordBatch,
    columns: Sequence[Column],
    form: Form = AS_USUAL,
    style: NumberStyle = USUAL_STYLE,
    whose: str | None = None,
) -> Encoded:
    """A block as numbers; if a column says `whose` a row is, those of nobody have a fault."""
    cells = [Cells.of(rows.column(column.name), column, form.of(column.name), style) for column in columns]
    features = np.empty((rows.num_rows, sum(column.features for column in columns)))
    first, faults, gaps, done = 0, list[Fault](), list[Fault](), Counter[str]()
    blank = blank_rows(rows, cells)
    for own in cells:
        features[:, first : first + own.column.features] = own.features(faults)
        first += own.column.features
        gaps += own.gaps(blank)
        done += own.done
    if whose is not None:
        faults += nameless(rows.column(whose), whose)
    left_out = blank.copy()
    for fault in (*gaps, *faults):
        left_out[fault.rows] = True
    numbers = {own.column.name: own.found for own in cells if own.column.kind == "number"}
    kept = features[~left_out] if left_out.any() else features
    nothing = (Fault("", "no value at all", "holds nothing", np.flatnonzero(blank)),) if blank.any() else ()
    return Encoded(kept, left_out, numbers, nothing, tuple(gaps), tuple(faults), done)


def blank_rows(rows: pa.RecordBatch, cells: Sequence["Cells"]) -> NDArray[np.bool_]:
    """Where nothing stands at all, as spreadsheets write it below a table; a single column just has no value there."""
    blank: NDArray[np.bool_] = np.logical_and.reduce([own.absent for own in cells])
    if rows.num_columns == 1 or not blank.any():
        return np.zeros(rows.num_rows, dtype=bool)
    others = set(rows.schema.names) - {own.column.name for own in cells}
    return np.asarray(
        np.logical_and.reduce([blank, *(by_value(is_missing, rows.column(name), bool) for name in others)])
    )


def refuse_no_rows(n_rows: int) -> None:
    """Refuse a table without any."""
    if not n_rows:
        raise BadRows("There are no rows, or none without missing values.", "no-rows")


def absent_columns(
    there: Collection[str], absent: Sequence[str], person_column: str | None, *, mistaken: bool
) -> Iterator[str]:
    """What to say of columns that are not there; if none is, another line may be taken for the header."""
    has, rename = f"the file has {', '.join(map(repr, there))}", f"Rename what is meant ({FORM} can do that)"
    if mistaken:
        rename = (
            f"If the header is another line, or another sign stands between values, say so in {FORM}; if not, rename "
            "what is meant"
        )
    if person_column in absent:
        yield (
            f"There is no column {person_column!r}, which is to say whose a row is; {has}. {rename}, or name another "
            "as `person` in policy.toml"
        )
    if others := [name for name in absent if name != person_column]:
        missing = f"There {'are no columns' if len(others) > 1 else 'is no column'} {', '.join(map(repr, others))}"
        yield f"{missing}; {has}. {rename}, or agree on other columns in {FILE}"


def check_roles(names: Collection[str], id_column: str | None, person_column: str | None) -> None:
    """What tells rows or people apart cannot be learned from."""
    if person_column in names:
        raise BadSettings(
            f"Column {person_column!r} says whose a row is, so it cannot be learned from.", "person-column-used"
        )
    if id_column in names:
        raise BadSettings(
            f"Column {id_column!r} tells rows apart, so it cannot be learned from; take it out of {FILE}.",
            "id-column-used",
        )


@dataclass(frozen=True)
class Cells:
    """A column of a block, as it stands in the file and as numbers."""

    column: Column
    own: ColumnForm
    style: NumberStyle
    values: pa.Array
    absent: NDArray[np.bool_]  # where there is no value
    found: FloatArray  # numbers, 1 and 0, or places of categories; not a number where there is none
    done: Counter[str]

    @classmethod
    def of(cls, values: pa.Array, column: Column, own: ColumnForm, style: NumberStyle) -> "Cells":
        """What stands there, looked at once."""
        done = Counter[str]()
        codes = frozenset(code.strip().lower() for code in own.missing)

        def is_gap(value: Any) -> bool:
            # A category may well be called "none" or "?".
            return bare(value) in codes or (is_missing(value) and str(value).strip() not in column.categories)

        if column.kind == "number":
            found = numbers_in(values, column.name, own, style, done)
            absent = np.isnan(found)
            if absent.any():
                absent[absent] = by_value(is_gap, marked(values, absent), bool)
        else:
            absent = by_value(is_gap, values, bool)
            meaning = meanings(column, own)
            found = by_value(lambda value: place_of(value, column, meaning), values, float)
            note_meanings(values, absent, column, meaning, done)
        note_codes(values, absent, column, done)
        return cls(column, own, style, values, absent, found, done)

    def gaps(self, blank: NDArray[np.bool_]) -> list[Fault]:
        """Where values are missing for which nothing was agreed to stand, though others are there."""
        if self.column.fill is not None or not (self.absent & ~blank).any():
            return []
        said = (
            f"has no value; fill it in, or agree in {FILE} on what to do: "
            '`missing = "drop"` leaves such rows out, `fill = ...` in the column gives a value that stands for it'
        )
        missing = np.flatnonzero(self.absent & ~blank)
        return [Fault(self.column.name, f"no value in {self.column.name!r}", said, missing)]

    def features(self, faults: list[Fault]) -> FloatArray:
        """As one or more features; what cannot be used becomes a fault."""
        found = self.found
        if self.column.fill is not None and self.absent.any():
            found = np.where(self.absent, self.filling, found)
        faults += self.faults(found)
        if self.column.kind != "category":
            return found[:, None]
        return np.eye(len(self.column.categories))[np.nan_to_num(found).astype(np.int64)]

    @property
    def filling(self) -> float:
        """What stands for a missing value."""
        if self.column.kind == "number":
            return to_number(self.column.fill)
        return place_of(self.column.fill, self.column, meanings(self.column, ColumnForm()))

    def faults(self, found: FloatArray) -> Iterator[Fault]:
        """What cannot be used."""
        usable = np.abs(found) <= LARGEST_TOLD
        if not usable.all():
            yield from self.unusable(np.flatnonzero(~usable & (~self.absent | (self.column.fill is not None))))
        if self.column.range is not None:
            yield from self.outside(found, usable, *self.column.range)

    def unusable(self, bad: IntArray) -> Iterator[Fault]:
        """Values that are not what the column holds."""
        if len(bad) and self.column.kind == "number":
            yield from self.no_numbers(bad)
        elif len(bad):
            others = dict.fromkeys(map(str, distinct(self.values.take(pa.array(bad)))))
            rest = ", ".join(map(shown_value, list(others)[1:MOST_VALUES]))
            said = self.said(bad[0], f"and elsewhere {rest}, {self.remedy}" if rest else self.remedy)
            yield Fault(self.column.name, f"{self.column.name!r} is {self.wanted}", said, bad)

    def outside(self, found: FloatArray, usable: NDArray[np.bool_], low: float, high: float) -> Iterator[Fault]:
        """Numbers that are not within the agreed range."""
        beyond = np.flatnonzero(usable & ((found < low) | (found > high)))
        if len(beyond):
            said = (
                f"holds {found[beyond[0]]:g}, outside of the agreed range from {low:g} to {high:g}; correct it, or "
                f"agree on a wider range in {FILE}"
            )
            yield Fault(self.column.name, f"{self.column.name!r} is outside of its range", said, beyond)

    def no_numbers(self, bad: IntArray) -> Iterator[Fault]:
        """Values that are no numbers, by what is wrong with them."""
        values = self.values.take(pa.array(bad))
        why = by_value(
            lambda value: fault_of(self.column.fill if is_missing(value) else value, self.style), values, object
        )
        for reason in dict.fromkeys(why.tolist()):
            rows = bad[why == reason]
            yield Fault(self.column.name, f"{self.column.name!r} is not a number", self.said(rows[0], reason), rows)

    def said(self, row: int, what: str) -> str:
        """What a row holds."""
        value = self.column.fill if self.absent[row] else self.values[row].as_py()
        return f"holds {shown_value(value)}, {what}"

    @property
    def wanted(self) -> str:
        """What a value is not."""
        return "neither yes nor no" if self.column.kind == "boolean" else "none of the agreed categories"

    @property
    def remedy(self) -> str:
        """What to do then."""
        if self.column.kind == "boolean":
            return f"which is neither yes nor no; write true or false, yes or no, 1 or 0, or give it an alias in {FORM}"
        some = ", ".join(self.column.categories[:10]) + (", ..." if len(self.column.categories) > 10 else "")
        return (
            f"which is none of the agreed categories ({some}); correct it, give it an alias in {FORM}, or agree on it "
            f"in {FILE}"
        )


# --- numbers, dates, categories ---


def numbers_in(values: pa.Array, name: str, own: ColumnForm, style: NumberStyle, done: Counter[str]) -> FloatArray:
    """A column of numbers in the agreed unit."""
    if own.dates is not None:
        found: FloatArray = by_value(lambda value: number_of_date(value, own), values, float)
        done[f"Column {name!r}: dates are read as {own.dates} ({FORM})"] += int(np.isfinite(found).sum())
    else:
        found = to_numbers(values, style)
        found = (
            np.where(np.isin(found, [to_number(code) for code in own.missing]), np.nan, found) if own.missing else found
        )
        if style != USUAL_STYLE and is_text(values):
            grouped = pc.match_substring_regex(values, r"\d[^\deE]+\d")
            done[f"Numbers are written with {style.words}"] += int(pc.sum(grouped).as_py() or 0)
    if own.factor != 1.0:
        found = found * own.factor
        done[f"Column {name!r}: multiplied by {own.factor:g} ({FORM})"] += int(np.isfinite(found).sum())
    if own.offset:
        found = found + own.offset
        done[f"Column {name!r}: {own.offset:g} added ({FORM})"] += int(np.isfinite(found).sum())
    return found


def number_of_date(value: Any, own: ColumnForm) -> float:
    """A date as days since 1970-01-01, or as a year with decimals; not a number if it is none."""
    if isinstance(value, str):
        value = date_in(value.strip(), (own.format,) if own.format else DATE_FORMATS)
    if not isinstance(value, date):
        return math.nan
    day = datetime(value.year, value.month, value.day)
    part = (value.hour * 3600 + value.minute * 60 + value.second) / 86400 if isinstance(value, datetime) else 0.0
    if own.dates == "days":
        return day.toordinal() - date(1970, 1, 1).toordinal() + part
    first, after = date(day.year, 1, 1).toordinal(), date(day.year, 12, 31).toordinal() + 1
    return day.year + (day.toordinal() - first + part) / (after - first)


def date_in(text: str, formats: Sequence[str]) -> datetime | None:
    """The date that a text is."""
    for one in formats:
        try:
            return datetime.strptime(text, one)
        except ValueError:
            continue
    return None


def meanings(column: Column, own: ColumnForm) -> dict[str, str]:
    """What the values of a category are called, also in another case where that is clear."""
    folded = Counter(category.casefold() for category in column.categories)
    clear = {category.casefold(): category for category in column.categories if folded[category.casefold()] == 1}
    aliases = {name.casefold(): agreed for name, agreed in own.aliases.items()} | own.aliases
    return {**clear, **{category: category for category in column.categories}, **aliases}


def meant(value: Any, meaning: Mapping[str, str]) -> str:
    """What a value is called by agreement, if it has another name here."""
    text = name_of_value(value)
    return meaning.get(text, meaning.get(text.casefold(), text))


def place_of(value: Any, column: Column, meaning: Mapping[str, str]) -> float:
    """Its place among the categories, or 1 and 0; not a number if it is none."""
    text = meant(value, meaning)
    if column.kind == "boolean":
        return yes_or_no(text)
    return float(column.categories.index(text)) if text in column.categories else math.nan


def note_meanings(
    values: pa.Array, absent: NDArray[np.bool_], column: Column, meaning: Mapping[str, str], done: Counter[str]
) -> None:
    """Count values that are called otherwise than agreed."""
    called = {name_of_value(one): meant(one, meaning) for one in distinct(marked(values, ~absent))}
    for name, agreed in called.items():
        if name != agreed and (column.kind == "boolean" or agreed in column.categories):
            same = by_value(partial(is_called, name=name), values, bool)
            done[f"Column {column.name!r}: {name!r} is read as {agreed!r}"] += int(same.sum())


def note_codes(values: pa.Array, absent: NDArray[np.bool_], column: Column, done: Counter[str]) -> None:
    """Count values that mean here that there is none, where that is not usual."""
    if not absent.any():
        return
    for one in distinct(marked(values, absent)):
        if bare(one) not in USUAL_GAPS:
            same = by_value(partial(is_called, name=name_of_value(one)), values, bool)
            done[f"Column {column.name!r}: {name_of_value(one)!r} is read as a missing value"] += int(same.sum())


def is_called(value: Any, name: str) -> bool:
    """Whether a value is written so."""
    return name_of_value(value) == name


def bare(value: Any) -> str:
    """A value as codes are compared."""
    return "" if value is None else str(value).strip().lower().removesuffix(".0")


def yes_or_no(value: Any) -> float:
    """One or zero; not a number if it is neither."""
    text = str(value).strip().lower().removesuffix(".0")
    return 1.0 if text in YES else 0.0 if text in NO else math.nan


def shown_value(value: Any) -> str:
    """A value in a sentence, not too long."""
    text = repr(str(value) if isinstance(value, (date, time, timedelta)) else value)
    return text if len(text) <= 40 else f"{text[:37]}..."
