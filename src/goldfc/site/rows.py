"""A site's rows: whatever is to be known of them goes through here, and what one pass tells is told once."""

from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadRows
from goldfc.learning.moments import LARGEST_VALUE, Moments, pool_moments
from goldfc.learning.rows import (
    Chosen,
    Collector,
    InMemory,
    RowSource,
    Sample,
    SideBySide,
    as_source,
    step_of_sample,
    sweep,
)

# Rows that directions and the smallest differences of values are told by.
ROWS_FOR_DIRECTIONS = 1_000
# So many numbers are kept in memory when some of the rows are chosen.
MOST_NUMBERS_KEPT = 8_000_000


@dataclass(frozen=True)
class Rows:
    """Rows, whose they are, and what the first pass over them told: from there on, `sweep` is the way to them."""

    source: RowSource
    people: IntArray | None  # of every row; None: every row is somebody else's
    moments: Moments
    sample: FloatArray
    low: FloatArray  # (features,) the smallest value of each
    high: FloatArray

    @classmethod
    def of(cls, rows: "FloatArray | RowSource", people: IntArray | None = None, *more: Collector) -> "Rows":
        """In one pass, on which more can be collected first."""
        source, overview = as_source(rows), Overview()
        sample = Sample(source, ROWS_FOR_DIRECTIONS)
        sweep(source, *more, overview, sample)
        return cls(source, people, pool_moments(overview.moments), sample.rows, overview.low, overview.high)

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and features there are."""
        return self.source.shape

    @cached_property
    def n_people(self) -> int:
        """How many there are."""
        return self.shape[0] if self.people is None else len(np.unique(self.people))

    def sweep(self, *collectors: Collector) -> None:
        """One pass over the rows for all who collect something; none if nobody does."""
        sweep(self.source, *[SideBySide(self.source, *collectors)] * bool(collectors))

    def chosen(self, places: NDArray[np.integer]) -> "Rows":
        """Some of them, in their order; read once, if they are not many."""
        few = len(places) * self.shape[1] <= MOST_NUMBERS_KEPT
        some = InMemory(self.source.take(places)) if few else Chosen(self.source, places)
        return Rows.of(some, None if self.people is None else self.people[places])

    def of_sample(self, labels: NDArray[np.integer]) -> IntArray:
        """What the rows of the sample are labelled as."""
        return labels[:: step_of_sample(self.source, ROWS_FOR_DIRECTIONS)].astype(np.int64)


class Overview:
    """Collects moments, and the ends of every feature."""

    def __init__(self) -> None:
        self.moments = list[Moments]()
        self.low, self.high = np.asarray(np.inf), np.asarray(-np.inf)

    def see(self, where: slice, rows: FloatArray) -> None:  # noqa: ARG002
        """One more block."""
        self.moments.append(Moments.of(rows))
        self.low, self.high = np.minimum(self.low, rows.min(axis=0)), np.maximum(self.high, rows.max(axis=0))


# --- rows that can be learned from ---


def checked(rows: FloatArray | RowSource, site: str, people: IntArray | None = None) -> Rows:
    """Rows as they can be learned from, or a sentence that says what is wrong with them."""
    if isinstance(rows, np.ndarray):
        rows = np.require(rows, np.float64, ["C"])
        if rows.ndim != 2:
            refuse_shape(rows.shape, site)
    if 0 in rows.shape:
        refuse_shape(rows.shape, site)
    return Rows.of(rows, people, Numbers(site))


@dataclass(frozen=True)
class Numbers:
    """Refuses what cannot be learned from, of a site that has a name."""

    site: str

    def see(self, where: slice, rows: FloatArray) -> None:
        """One more block."""
        if not (rows.max() <= LARGEST_VALUE and rows.min() >= -LARGEST_VALUE):  # not so if anything is not a number
            row, column = np.argwhere(~(np.abs(rows) <= LARGEST_VALUE))[0]
            raise BadRows(
                f"Site {self.site!r}: row {where.start + row}, column {column} holds {rows[row, column]}; "
                f"fill or drop missing values, and rescale values beyond {LARGEST_VALUE:g}.",
                "rows-not-finite",
            )


def refuse_shape(shape: tuple[int, ...], site: str) -> NoReturn:
    """There must be something to learn from."""
    raise BadRows(
        f"The rows of site {site!r} must form a table with at least one row and one column; their shape is {shape}.",
        "rows-form",
    )
