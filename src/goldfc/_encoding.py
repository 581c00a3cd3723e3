"""Tables with categories as numbers: one feature for every level, and for yes or no a single one."""

import numbers
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from goldfc._types import FloatArray
from goldfc.errors import BadRows, BadSettings
from goldfc.message.columns import MOST_CATEGORIES, MOST_FEATURES, UNNAMED, Column, Terms, shown

Check = Callable[[Any], FloatArray]
# Of columns of a data frame.
CATEGORICAL_TYPES = ("category", "object", "bool", "boolean", "str", "string")


@dataclass(frozen=True)
class Encoding:
    """Which columns are categories, and the levels of each, in their order."""

    levels: dict[int, list[Any]]  # by column
    terms: Terms

    def encode(self, X: ArrayLike, check: Check) -> FloatArray:
        """The table as numbers; `check` is scikit-learn's, and sees categories as the numbers of their levels."""
        if not self.levels:
            return check(X)
        table = check(self._codes(X))
        parts = [
            self._indicators(table[:, number], number) if number in self.levels else table[:, [number]]
            for number in range(table.shape[1])
        ]
        return np.ascontiguousarray(np.hstack(parts))

    def _codes(self, X: Any) -> Any:
        """The table with numbers in the place of levels, as the same kind of table."""
        coded = X.copy() if hasattr(X, "columns") else np.array(X, dtype=object)
        for number, levels in self.levels.items():
            if number >= coded.shape[1]:
                continue
            values = column_of(coded, number)
            codes = {level: float(code) for code, level in enumerate(levels)}
            if unknown := [value for value in values if value not in codes]:
                raise BadRows(
                    f"Column {number} holds {unknown[0]!r}, which is not among the {len(levels)} categories that "
                    "were there in fit.",
                    "category-unknown",
                )
            whole = np.array([codes[value] for value in values])
            if hasattr(coded, "columns"):
                coded[coded.columns[number]] = whole
            else:
                coded[:, number] = whole
        return coded

    def _indicators(self, codes: FloatArray, number: int) -> FloatArray:
        count = len(self.levels[number])
        if count <= 2:
            return np.asarray((codes == 1.0)[:, None], dtype=np.float64)
        return np.asarray(np.eye(count)[codes.astype(np.int64)])


def encoding_of(X: ArrayLike, categorical: str | Collection[int | str]) -> Encoding:
    """Find the categories of a table, and all levels that any row has."""
    columns = categorical_columns(X, categorical)
    if not columns:
        return Encoding({}, UNNAMED)
    table: Any = X if hasattr(X, "columns") else np.asarray(X, dtype=object)
    levels = {number: levels_of(table, number) for number in columns}
    named = [column_for(number, levels.get(number)) for number in range(table.shape[1])]
    if (n_features := sum(column.features for column in named)) > MOST_FEATURES:
        raise BadRows(
            f"With a feature for every level X has {n_features}, and {MOST_FEATURES} is the limit; leave out columns.",
            "too-many-features",
        )
    return Encoding(levels, Terms(columns=tuple(named)))


def terms_within(terms: Terms, n_columns: int, ranges: ArrayLike | None) -> Terms:
    """The same columns with the ranges of numbers; without ranges as they are."""
    if ranges is None:
        return terms
    columns = terms.columns or tuple(column_for(number, None) for number in range(n_columns))
    ends = np.asarray(ranges, dtype=np.float64)
    if ends.shape != (len(columns), 2):
        raise BadSettings(
            f"ranges must hold the lowest and highest value of {len(columns)} columns; their shape is {ends.shape}.",
            "ranges-form",
        )
    within = [
        Column(name=column.name, range=(float(low), float(high))) if column.kind == "number" else column
        for column, (low, high) in zip(columns, ends, strict=True)
    ]
    return Terms(columns=tuple(within))


def column_for(number: int, levels: list[Any] | None) -> Column:
    """A column as a summary tells it; levels by their numbers, for what they are called is nobody's business here."""
    name = f"x{number}"
    if levels is None:
        return Column(name=name)
    if len(levels) <= 2:
        return Column(name=name, kind="boolean")
    return Column(name=name, kind="category", categories=tuple(map(str, range(len(levels)))))


def terms_for_people(encoding: Encoding, names: Sequence[object], n_columns: int) -> Terms:
    """The columns with the names that they have here, which no message tells, whatever stands in these."""
    if not names and not encoding.levels:
        return UNNAMED
    called = [shown(str(name)) for name in names] or [f"x{number}" for number in range(n_columns)]
    pairs = enumerate(called)
    return Terms.model_construct(
        columns=tuple(column_for_people(name, encoding.levels.get(number)) for number, name in pairs)
    )


def column_for_people(name: str, levels: list[Any] | None) -> Column:
    """One of them; of two levels it is told how many have the second."""
    if levels is None:
        return Column.model_construct(name=name)
    values = [shown(str(level)) for level in levels]
    if len(levels) > 2:
        return Column.model_construct(name=name, kind="category", categories=tuple(values))
    told = name if len(levels) == 1 or levels[-1] in (True, 1) else f"{name}={values[-1]}"
    return Column.model_construct(name=told, kind="boolean")


def levels_of(table: Any, number: int) -> list[Any]:
    """The different values of a column, in an order that does not depend on that of the rows."""
    values = set(column_of(table, number))
    if any(map(is_missing_value, values)):
        raise BadRows(
            f"Column {number} has missing values; fill or drop them, or make them a category of their own.",
            "missing-values",
        )
    if len(values) > MOST_CATEGORIES:
        raise BadRows(
            f"Column {number} has {len(values)} categories, and {MOST_CATEGORIES} is the limit; is it "
            "a number, or a name?",
            "too-many-categories",
        )
    return sorted(values, key=lambda value: (type(value).__name__, value))


def is_missing_value(value: object) -> bool:
    """None, not a number, or pandas' NA, which says neither yes nor no."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 (only a missing value differs from itself)
    except TypeError:
        return True


def column_of(table: Any, number: int) -> list[Any]:
    """The values of a column."""
    column = table.iloc[:, number] if hasattr(table, "iloc") else table[:, number]
    values: list[Any] = column.tolist()
    return values


def categorical_columns(X: Any, categorical: str | Collection[int | str]) -> list[int]:
    """The numbers of the columns that are categories."""
    names = list(getattr(X, "columns", []))
    if isinstance(categorical, str):
        if categorical != "auto":
            raise BadSettings(
                f"categorical must be 'auto' or a list of columns, got {categorical!r}.", "categorical-form"
            )
        types = [str(kind) for kind in X.dtypes] if names else []
        return [number for number, kind in enumerate(types) if kind in CATEGORICAL_TYPES]
    if np.ndim(X) != 2:
        return []  # scikit-learn says what is wrong with it
    return sorted({number_of(column, names, np.shape(X)[1]) for column in categorical})


def number_of(column: object, names: Sequence[object], width: int) -> int:
    """The number of a column that was named, or that was told by its number."""
    if isinstance(column, str):
        if column not in names:
            raise BadSettings(f"categorical names a column {column!r}, which X does not have.", "column-name-unknown")
        return names.index(column)
    if isinstance(column, bool | np.bool_) or not isinstance(column, numbers.Integral):
        raise BadSettings(
            f"categorical must hold numbers or names of columns; it holds {column!r}.", "categorical-names"
        )
    number = int(column)
    if not 0 <= number < width:
        raise BadSettings(f"categorical names column {number}, and X has {width} columns.", "column-number-unknown")
    return number
