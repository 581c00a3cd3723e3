"""Numbers as people write them: `54.7`, `54,7`, `1.054,7`, `1 054.7`; and what is wrong with those that are none."""

import datetime
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldfc._types import FloatArray
from goldfc.agreement import FILE
from goldfc.site.table.form import FORM, Form

# Beyond this, numbers that are not whole look as if they were.
LARGEST_WHOLE = 2.0**53
# What stands everywhere where there is no value; and what people, statistics programs and spreadsheets write as well.
USUAL_GAPS = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
MISSING = USUAL_GAPS | frozenset({"n.a.", "k.a.", "nd", "n.d.", "nil", "missing", "-", "--", "\u2013", "\u2014"})
MISSING |= {".", "..", "...", "#n/a", "#na", "#null!", "<na>", "(null)"}
# What blanks between thousands may be: the plain one, one that does not break a line, a narrow one.
BLANKS = "[ \u00a0\u202f]"
MARKS = {".": r"\.", ",": ",", " ": BLANKS, "'": "['\u2019]"}
GROUPED = re.compile(rf"[-+]?[0-9]{{1,3}}(?P<mark>{BLANKS}|['\u2019])[0-9]{{3}}((?P=mark)[0-9]{{3}})*([.,][0-9]+)?")
# What laboratories write where they measured less, or more, than they can tell.
LIMITS = tuple("<>\u2264\u2265")
# A number with a unit behind it, or with a sign of money, quotation or the like before it; no time, no part of a range.
BESIDE = re.compile(r"[^\w\s+-]?\s*([-+]?\d+([.,]\d+)?)\s*([^\d\s.,:/-]\D*[23]?)?")
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}")


@dataclass(frozen=True)
class NumberStyle:
    """Which marks the numbers of a file have."""

    decimal: str = "."
    thousands: str = ""

    def texts(self, texts: pa.Array) -> pa.Array:
        """Numbers with plain marks instead, nothing where a text is not written in this style."""
        mark, decimal = MARKS.get(self.thousands, ""), re.escape(self.decimal)
        groups = rf"\d{{1,3}}({mark}\d{{3}})+|" if mark else ""
        written = rf"^[-+]?(({groups}\d+)({decimal}\d*)?|{decimal}\d+)([eE][-+]?\d+)?$"
        valid = pc.match_substring_regex(texts, written)
        bare = pc.replace_substring_regex(texts, mark, "") if mark else texts
        return pc.if_else(valid, pc.replace_substring(bare, self.decimal, "."), pa.scalar(None, texts.type))

    @property
    def words(self) -> str:
        """For people."""
        between = {"": "nothing", " ": "blanks"}.get(self.thousands, repr(self.thousands))
        return f"{self.decimal!r} before decimals and {between} between thousands"


USUAL_STYLE = NumberStyle()


# What a comma or a point is, by the digits around it; `1,050` and `1.050` may be either.
EVIDENCE = {
    "comma is decimal": re.compile(r"[-+]?(\d*,(\d{1,2}|\d{4,})|0?,\d+|\d{1,3}(\.\d{3})+,\d+|\d{4,},\d+)"),
    "point is decimal": re.compile(r"[-+]?(\d*\.(\d{1,2}|\d{4,})|0?\.\d+|\d{1,3}(,\d{3})+\.\d+|\d{4,}\.\d+)"),
    "comma is between": re.compile(r"[-+]?\d{1,3}(,\d{3})+\.\d+|[-+]?\d{1,3}(,\d{3}){2,}"),
    "unclear": re.compile(r"[-+]?[1-9]\d{0,2},\d{3}"),
}


def style_of(texts: Iterable[str], form: Form) -> NumberStyle:
    """The style that the form says, or else the texts do; plain where they are of several, or unclear."""
    seen, blank = set[str](), ""
    for text in texts:
        if match := GROUPED.fullmatch(text):
            blank = "'" if match["mark"] in MARKS["'"] else " "
        bare = text.replace(match["mark"], "") if match else text
        seen |= {name for name, rule in EVIDENCE.items() if rule.fullmatch(bare)}
    if form.decimal is not None or form.thousands is not None:
        decimal = form.decimal or ("," if form.thousands == "." else ".")
        return NumberStyle(decimal, form.thousands or blank or ("." if decimal == "," else ""))
    if "comma is decimal" in seen:
        mixed = seen & {"point is decimal", "comma is between"}
        return NumberStyle() if mixed else NumberStyle(",", blank or ".")
    if "comma is between" in seen or seen >= {"unclear", "point is decimal"}:
        return NumberStyle(".", ",")
    return NumberStyle(".", blank)


def fault_of(value: Any, style: NumberStyle = USUAL_STYLE) -> str:
    """What is wrong with a value that should be a number, and what to do."""
    text = str(value).strip()
    if not np.isnan(to_number(value)) and (style == USUAL_STYLE or not isinstance(value, str)):
        return "which is too large or endless; correct it, or leave the row out"
    if isinstance(value, datetime.date) or DATE.match(text):
        return f'which is a date; say in {FORM} what it is to count as (dates = "years" or "days")'
    return fault_of_text(text, style) if isinstance(value, str) else "which is not a number; write numbers there"


def fault_of_text(text: str, style: NumberStyle) -> str:
    """What is wrong with a text that should be a number."""
    if text[:1] in LIMITS:
        return f"which is a limit; write the number that is to stand for it, or say in {FORM} that it means no value"
    if EVIDENCE["unclear"].fullmatch(text):
        point, whole = text.replace(",", "."), text.replace(",", "")
        return f'which may mean {point} or {whole}; say in {FORM} which (decimal = "," or thousands = ",")'
    if not np.isnan(to_number(text.replace(",", "."))) or not np.isnan(to_number(text.replace(",", ""))):
        return f"which is written otherwise than the other numbers, with {style.words}; write all numbers alike"
    if match := BESIDE.fullmatch(text):
        return f"which is not a number; leave what stands beside {match[1]!r} out of the cells (units go into {FILE})"
    return (
        f"which is not a number; make the column boolean or a category in {FILE}, leave it out, or say in {FORM} that "
        f"this means a missing value"
    )


def as_whole(number: float) -> int | float:
    """A whole number as such, as long as every one next to it is, too."""
    return int(number) if number.is_integer() and abs(number) < LARGEST_WHOLE else number


def to_number(value: Any) -> float:
    """A number, or not a number."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def is_text(values: pa.Array) -> bool:
    """Whether values are written as text."""
    return bool(pa.types.is_string(values.type) or pa.types.is_large_string(values.type))


def to_numbers(values: pa.Array, style: NumberStyle = USUAL_STYLE) -> FloatArray:
    """Numbers, or not a number where there is none: in plain style those that Python reads, to the last bit."""
    if not is_text(values):
        numbers = as_floats(values) if has_numbers(values.type) else None
    elif style == USUAL_STYLE:
        trimmed = trimmed_texts(values)
        numbers = as_floats(trimmed)
        if numbers is None:
            gaps = pc.is_in(pc.utf8_lower(trimmed), pa.array(MISSING, values.type))
            numbers = as_floats(pc.if_else(gaps, pa.scalar(None, values.type), trimmed))
    else:
        numbers = as_floats(style.texts(trimmed_texts(values)))
    return by_value(to_number, values, float) if numbers is None else numbers


def trimmed_texts(values: pa.Array) -> pa.Array:
    """Texts without blanks at their ends, and with the minus sign that computers know."""
    return pc.replace_substring(pc.utf8_trim_whitespace(values), "\u2212", "-")


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
    kind = np.dtype(str(numbers.type))  # "double", and whole numbers, are called the same
    buffer = numbers.buffers()[1]
    return np.frombuffer(buffer, kind)[numbers.offset :][: len(numbers)] if len(numbers) else np.empty(0, kind)


def marked(values: pa.Array, which: NDArray[np.bool_]) -> pa.Array:
    """The values that are marked. To make Arrow's mask of NumPy's in Arrow's own way would load pandas."""
    bits = pa.py_buffer(np.packbits(which, bitorder="little"))
    return values.filter(pa.Array.from_buffers(pa.bool_(), len(which), [None, bits]))


# --- values of any kind ---


def name_of_value(value: Any) -> str:
    """What a value is called: a whole number without a decimal point, which it has only where some are missing."""
    return str(as_whole(value) if isinstance(value, float) else value).strip()


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
