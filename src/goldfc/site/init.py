"""A first `federation.toml`, to be read, corrected and agreed on by people.

It goes to all sites, so nothing is in it that fewer than `smallest` rows have: no rare value, and no exact extreme.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldfc._types import FloatArray
from goldfc.errors import BadRows
from goldfc.message.columns import Column
from goldfc.site.table.cells import NO, YES, bare, meant, numbers_in, refuse_no_rows, shown_value
from goldfc.site.table.form import AS_USUAL, FORM, ColumnForm, Form, look_of_header, name_and_unit, quoted, read_form
from goldfc.site.table.notes import Numbering
from goldfc.site.table.numerals import (
    DATE,
    MISSING,
    NumberStyle,
    by_value,
    distinct,
    fault_of,
    is_text,
    marked,
    name_of_value,
    style_of,
    to_number,
)
from goldfc.site.table.readers import blocks_in, column_names
from goldfc.site.table.text import is_unnamed

# Text with more different values than this is no category, but names or remarks.
MOST_GUESSED_CATEGORIES = 20
# Different values are counted up to so many.
MOST_COUNTED = 1_000
# What a category may look like by itself: one word, without the signs of sentences.
WORD = re.compile(r"[^\W\d][\w+/-]*|[<>]=?\d+|[A-Za-z]?\d+-\d+")
# What is read as a number, however its marks are written.
NUMERAL = re.compile(r"[-+]?[\d.,'\s]*\d[.,]?(e[-+]?\d+)?", re.IGNORECASE)
# So many steps in one direction make a series; so many names are shown.
LONG, MOST_SHOWN = 4, 5
LEADING_ZERO = r"^\s*0\d+\s*$"
# These mean that there is no value; "none" may well be one of several answers.
GAPS = MISSING - {"none", "nil", "missing"}
# Yes and no in words, and what is so clear only if there is nothing else.
ANSWERS = frozenset(word for word in YES | NO if len(word) > 1)
SHORT_ANSWERS = ({"0", "1"}, {"y", "n"}, {"t", "f"})


@dataclass
class ColumnSeen:
    """What was seen of a column so far, whatever the size of the tables."""

    header: str
    name: str
    smallest: int
    tables: list[str] = field(default_factory=list)  # that have it
    units: list[str] = field(default_factory=list)  # different ones, as their headers say
    rows: int = 0
    gaps: int = 0
    texts: Counter[str] | None = field(default_factory=Counter)  # None: there are too many different ones
    bad: str = ""  # the first value that is no number
    dates: int = 0
    numbers: int = 0
    zeros: bool = False  # whether codes begin with one
    low: FloatArray = field(default_factory=lambda: np.empty(0))  # the lowest and highest few
    high: FloatArray = field(default_factory=lambda: np.empty(0))
    numberings: list[Numbering] = field(default_factory=list)  # one for each table

    def seen_in(self, table: str, unit: str) -> None:
        """One more table has it."""
        self.tables.append(table)
        self.numberings.append(Numbering(self.name))
        if unit and look_of_header(unit) not in map(look_of_header, self.units):
            self.units.append(unit)

    def add(self, values: pa.Array, own: ColumnForm, style: NumberStyle) -> None:
        """Some more values, as a site's form says they are to be read."""
        numbers = numbers_in(values, self.name, own, style, Counter())
        codes, meaning = frozenset(code.strip().lower() for code in own.missing), own.aliases
        if meaning:
            values = pa.array(by_value(lambda value: meant(value, meaning), values, object), pa.string())
        unread = np.isnan(numbers)
        if unread.any():
            unread[unread] = ~by_value(lambda one: is_gap(one, codes), marked(values, unread), bool)
        there = unread | ~np.isnan(numbers)
        self.rows, self.gaps = self.rows + len(values), self.gaps + int((~there).sum())
        self.numbers += int(np.isfinite(numbers).sum())
        self.numberings[-1].add(numbers[there])
        self.note_texts(marked(values, there))
        self.note_bad(marked(values, unread))
        finite = numbers[np.isfinite(numbers)]
        self.low = np.sort(np.concatenate([self.low, finite]))[: self.smallest]
        self.high = np.sort(np.concatenate([self.high, finite]))[-self.smallest :]

    def note_texts(self, values: pa.Array) -> None:
        """Count the different ones."""
        self.zeros = self.zeros or (
            is_text(values) and bool(pc.any(pc.match_substring_regex(values, LEADING_ZERO)).as_py())
        )
        if self.texts is None or not len(values):
            return
        if pa.types.is_nested(values.type):
            self.texts = None
            return
        for one in values.value_counts().to_pylist():
            self.texts[name_of_value(one["values"])] += one["counts"]
        if len(self.texts) > MOST_COUNTED:
            self.texts = None

    def note_bad(self, values: pa.Array) -> None:
        """ColumnSeen at what is no number."""
        if len(values):
            self.dates += int(by_value(is_date, values, bool).sum())
            self.bad = self.bad or str(values[0].as_py()).strip()

    # --- what it looks like ---

    @property
    def there(self) -> int:
        """Rows that have a value."""
        return self.rows - self.gaps

    @property
    def is_id(self) -> bool:
        """Whether it tells rows apart."""
        if any(numbering.looks_like_an_id for numbering in self.numberings):
            return True
        all_different = self.texts is None or len(self.texts) == self.there >= 2
        return self.numberings[0].called_so and self.bad != "" and all_different

    @property
    def spellings(self) -> dict[str, Counter[str]]:
        """Values that differ in case only, together, in every case that there is."""
        found = defaultdict[str, Counter[str]](Counter)
        for text, count in (self.texts or {}).items():
            found[text.casefold()][text] += count
        return found

    @property
    def common(self) -> list[str]:
        """Values that enough rows have, as they are written most often, or, if few write it so, in small letters."""
        found = []
        for folded, spellings in self.spellings.items():
            ((text, count),) = spellings.most_common(1)
            if spellings.total() >= self.smallest:
                found.append(text if count >= self.smallest else folded)
        return sorted(found)


@dataclass(frozen=True)
class Guess:
    """Columns by the look of them, and what there is to say: to whoever looks on, and to all who get the file."""

    columns: list[Column]
    odd: dict[str, str]  # columns that are left out, with the reason
    remarks: dict[str, list[str]]  # on columns, for the file
    said: list[str]
    gaps: list[str]  # columns in which values are missing
    id_column: str | None


def is_gap(value: Any, codes: Collection[str] = ()) -> bool:
    """Whether there is no value."""
    return value is None or str(value).strip().lower() in GAPS or bare(value) in codes


def is_date(value: Any) -> bool:
    """Whether a value is a day."""
    return isinstance(value, date) or bool(DATE.match(str(value).strip()))


def guess_columns(
    tables: Sequence[Path],
    wanted: Sequence[str] = (),
    id_column: str | None = None,
    *,
    smallest: int = 5,
    most_blocks: int | None = None,
    form: Form = AS_USUAL,
) -> Guess:
    """The columns of some tables by the look of them; and those that cannot be learned from, with the reason.

    Of each table all rows are looked at, or only the first blocks. How one is written says the form beside it, and
    what `form` says beyond.
    """
    tables = list({table.resolve(): table for table in tables}.values())  # twice the same would count twice
    looks = look_at(tables, smallest, most_blocks, form)
    refuse_row_as_header(looks)
    for name in (*wanted, *([id_column] if id_column else [])):
        if not any(name in {look.header, look.name} for look in looks):
            raise BadRows(
                f"There is no column {name!r}; the file has {', '.join(repr(look.header) for look in looks)}.",
                "columns-absent",
            )
    refuse_no_rows(max(look.rows for look in looks))
    return guess_of(looks, wanted, id_column, len(tables))


def look_at(tables: Sequence[Path], smallest: int, most_blocks: int | None, asked: Form) -> list[ColumnSeen]:
    """All columns, in the order of the first table; those that look alike in several tables are one."""
    looks = dict[str, ColumnSeen]()
    for path in tables:
        form = read_form(path).merged(asked)
        names = column_names(path, form)
        agreed = agreed_names(names, form)
        for header, name in agreed.items():
            look = looks.setdefault(look_of_header(name), ColumnSeen(header, name, smallest))
            converted = {"factor", "offset"} & form.of(look.name).model_fields_set
            look.seen_in(path.name, "" if converted else name_and_unit(header)[1])
        style: NumberStyle | None = None
        for block in islice(blocks_in(path, names, form=form), most_blocks):
            if style is None:
                texts = [values for values in block.rows.columns if is_text(values)]
                style = style_of((str(one).strip() for values in texts for one in distinct(values)), form)
            for header, name in agreed.items():
                look = looks[look_of_header(name)]
                look.add(block.rows.column(header), form.of(look.name), style)
    return list(looks.values())


def refuse_row_as_header(looks: Sequence[ColumnSeen]) -> None:
    """Without a header the first row would give columns their names, and these go to all sites."""
    if seems_to_be_a_row(looks):
        shown = ", ".join(repr(look.name) for look in looks[:MOST_SHOWN])
        raise BadRows(
            f"The first line of {looks[0].tables[0]} looks like a row ({shown}); put the names of the columns there, "
            f"or say in {FORM} which line has them (header = ...) or what they are (rename).",
            "header-absent",
        )


def seems_to_be_a_row(looks: Sequence[ColumnSeen]) -> bool:
    """Whether the names over columns of numbers are numbers, but no series; or a text is called like a value of it."""
    over_numbers = [look.name for look in looks if look.numbers and not is_gap(look.name) and not is_unnamed(look.name)]
    if over_numbers:
        return all(map(NUMERAL.fullmatch, over_numbers)) and not is_series([to_number(name) for name in over_numbers])
    return any(look.name.casefold() in look.spellings for look in looks)


def is_series(numbers: Sequence[float]) -> bool:
    """Whether numbers count something, such as years or wavelengths: hardly ever do those of a row."""
    steps = np.diff(numbers)
    even = len(steps) > 0 and bool((steps == steps[0]).all()) and (len(steps) > 1 or abs(steps[0]) == 1.0)
    return even or (len(steps) >= LONG and bool((steps > 0.0).all() or (steps < 0.0).all()))


def agreed_names(headers: Sequence[str], form: Form) -> dict[str, str]:
    """What the columns of a table would be called: as the site renames them, or without the unit, if that is clear."""
    bare = [look_of_header(name_and_unit(header)[0]) for header in headers]
    return {
        header: form.rename.get(header, name_and_unit(header)[0] if bare.count(look) == 1 else header)
        for header, look in zip(headers, bare, strict=True)
    }


def guess_of(looks: Sequence[ColumnSeen], wanted: Sequence[str], id_column: str | None, n_tables: int) -> Guess:
    """What the columns are."""
    found = Guess([], {}, {}, [], [], id_column or id_by_its_name(looks, wanted))
    for look in looks:
        asked_for = {look.header, look.name} & set(wanted)
        if found.id_column in {look.header, look.name} or (wanted and not asked_for):
            continue
        reason = why_not(look, n_tables, asked_for=bool(asked_for))
        if reason is None:
            found.columns.append(guessed_column(look))
            found.remarks[look.name] = list(remarks_on(look))
            found.said.extend(sayings_on(look, n_tables))
            if look.gaps >= look.smallest:
                found.gaps.append(look.name)
        else:
            found.odd[look.header] = reason
    return found


def id_by_its_name(looks: Sequence[ColumnSeen], wanted: Sequence[str]) -> str | None:
    """The one column that tells rows apart and is called so."""
    called_so = [look.name for look in looks if look.is_id and look.numberings[0].called_so]
    return called_so[0] if len(called_so) == 1 and called_so[0] not in wanted else None


def why_not(look: ColumnSeen, n_tables: int, *, asked_for: bool) -> str | None:
    """Why a column cannot be learned from."""
    if not look.there:
        return "it has no values"
    if not is_name(look.name):
        return "no agreement can have a name like that: rename it"
    if 2 * len(look.tables) <= n_tables and not asked_for:
        return f"only {' and '.join(look.tables)} of {n_tables} tables has it; if others call it otherwise, rename it"
    if look.is_id and not asked_for:
        return "it looks like an id; name it as the id column, or name all columns that are to be used"
    if answers_of(look) or (look.numbers == look.there and not look.zeros):
        return None
    return why_no_number(look) or why_no_category(look)


def is_name(name: str) -> bool:
    """Whether a column may be called so."""
    try:
        return bool(Column(name=name))
    except ValueError:
        return False


def why_no_number(look: ColumnSeen) -> str | None:
    """Why a column that looks like numbers or dates is none of numbers."""
    if look.zeros:
        return "it holds codes that begin with 0; if they are categories, list them as such"
    if look.dates:
        return f'it holds dates; to use them, agree on a number and say `dates = "years"` or "days" in {FORM}'
    if look.numbers > look.there / 2 or (re.match(r"[-+]?\d", look.bad) and not WORD.fullmatch(look.bad)):
        return f"it holds {shown_value(look.bad)}, {fault_of(look.bad)}"
    return None


def answers_of(look: ColumnSeen) -> bool:
    """Whether it is yes and no, in words or as 1 and 0."""
    texts = {text.lower().removesuffix(".0") for text in look.texts or ()}
    return texts <= YES | NO and (bool(texts & ANSWERS) or texts in SHORT_ANSWERS)


def why_no_category(look: ColumnSeen) -> str | None:
    """Why a text is no category by itself."""
    common = look.common
    if look.texts is None or len(common) > MOST_GUESSED_CATEGORIES:
        return f"it is text with more than {MOST_GUESSED_CATEGORIES} different values, such as {shown_value(look.bad)}"
    if sentences := [text for text in common if not WORD.fullmatch(text)]:
        return f"it holds text such as {shown_value(sentences[0])}; if these are categories, list them yourself"
    if len(common) < 2:
        return f"it is text in which no two values are had by {look.smallest} rows or more"
    return None


def guessed_column(look: ColumnSeen) -> Column:
    """What it is, for the file."""
    if answers_of(look):
        return Column(name=look.name, kind="boolean")
    if look.numbers == look.there:
        return Column(name=look.name, unit=look.units[0] if look.units else "")
    return Column(name=look.name, kind="category", categories=tuple(look.common))


def remarks_on(look: ColumnSeen) -> Iterator[str]:
    """What everybody should know; nothing that fewer than `smallest` rows have."""
    column = guessed_column(look)
    if column.kind == "number" and len(look.units) > 1:
        yield f"in tables also in {', '.join(map(quoted, look.units[1:]))}: those sites must convert it"
    elif column.kind == "number" and len(look.low) == look.smallest and look.low[-1] < look.high[0]:
        low, high = nice_range(float(look.low[-1]), float(look.high[0]))
        yield f"range = [{low:g}, {high:g}]  # a suggestion, rounded: correct it, and take the first sign away"
    if column.kind == "category" and len(look.common) < len(look.spellings):
        yield f"values that fewer than {look.smallest} rows have are not listed"
    if look.gaps >= look.smallest:
        yield 'values are missing: add a `fill`, or say missing = "drop" above'


def sayings_on(look: ColumnSeen, n_tables: int) -> Iterator[str]:
    """What whoever looks on should know."""
    if look.units:
        yield f"{look.header!r} is taken as {look.name!r} in {look.units[0]!r}."
    for other in look.units[1:]:
        yield f"But {look.name!r} is in {other!r} in another table: whose it is must convert it."
    if len(look.tables) < n_tables:
        yield f"{look.name!r} is in {len(look.tables)} of {n_tables} tables: {', '.join(look.tables)}."
    if look.texts is not None and len(look.texts) == 1:
        yield f"{look.name!r} has the same value in all rows: here it tells nothing apart."
    if guessed_column(look).kind == "category" and (rare := len(look.spellings) - len(look.common)):
        yield f"{look.name!r} has {rare} values that fewer than {look.smallest} rows have; they are not in the file."
    if look.gaps:
        yield f"{look.name!r} has no value in {look.gaps:,} of {look.rows:,} rows."


def nice_range(low: float, high: float) -> tuple[float, float]:
    """A wider range with round ends."""
    step = 10.0 ** math.floor(math.log10(high - low))
    first, last = step * (math.floor(low / step) - 1), step * (math.ceil(high / step) + 1)
    return (0.0 if first < 0.0 <= low else first), (0.0 if high <= 0.0 < last else last)


# With more columns than this, lines that say what is the default are left out: the file has a largest size.
MANY_COLUMNS = 500
QUESTION = """\
# To be decided by all: {names} have missing values. Leave such rows out (missing = "drop"), or give the columns a fill?
"""
HEAD = """\
# What all sites agree on before anybody sends anything. Everybody uses the same file.
federation = {name}
round = 1                  # count up for every new round: messages of one cannot be used in another
privacy = "suppressed"     # or "plain", for research only: micro-clusters may then be single rows
smallest = 5               # no micro-cluster of fewer rows leaves a site
scaling = "pooled"         # from the moments that every site tells; or "ranges", if all columns have one
missing = {missing}         # or "drop": rows with missing values are left out
{question}{id_column}
# person_column = "..."    # says whose a row is, where people have several; it is never in a message
# deadline = 2027-01-31T18:00:00Z

[limits]
least_sites = 3          # with fewer nothing is fused: of two, each could subtract its own part
most_micro_clusters = 100  # of one site
mass_cap = 1.0             # a site counts at most so many times the rows of the median site

# To have messages signed and sealed, make keys with `goldfc keygen`, and list them:
# [server]
# key = "goldfc-public-1:..."
# [[sites]]
# name = "north"
# key = "goldfc-public-1:..."

# The columns; sites may have them in any order. Numbers may have a unit, a range = [low, high] that all values must
# lie in, and a step that centroids are rounded to; any column may have a fill that stands for missing values.
"""


def agreement_text(
    name: str,
    columns: Sequence[Column],
    id_column: str | None,
    *,
    missing: str = "refuse",
    gaps: Sequence[str] = (),
    remarks: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> str:
    """The file as text."""
    stays = f"id_column = {quoted(id_column)}  # of the sites' tables; it is never in a message" if id_column else ""
    ask = bool(gaps) and missing == "refuse"
    head = HEAD.format(
        name=quoted(name),
        id_column=stays or '# id_column = "..."',
        missing=quoted(missing),
        question=QUESTION.format(names=", ".join(map(quoted, gaps))) if ask else "",
    )
    brief = len(columns) > MANY_COLUMNS
    parts = [column_text(column, remarks.get(column.name, ()), brief=brief) for column in columns]
    return "\n".join([head, *parts])


def column_text(column: Column, remarks: Sequence[str] = (), *, brief: bool = False) -> str:
    """One column."""
    if brief and column.kind == "number":
        return f"[[columns]]\nname = {quoted(column.name)}\n"
    lines = ["[[columns]]", f"name = {quoted(column.name)}", f"kind = {quoted(column.kind)}"]
    if column.kind == "category":
        lines.append(f"categories = [{', '.join(map(quoted, column.categories))}]  # all that any site may have")
    if column.kind == "number":
        lines.append(f"unit = {quoted(column.unit)}")
    return "\n".join([*lines, *(f"# {remark}" for remark in remarks)]) + "\n"
