"""Rows that may be more than fit into memory: gone through a block at a time, as often as needed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray

# The largest block: so many rows, and so many numbers.
MOST_ROWS, MOST_NUMBERS = 10_000, 1_000_000


class RowSource(Protocol):
    """A table of numbers, wherever it is. Blocks may be read from several threads at once."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and features there are."""
        ...

    def read(self, start: int, stop: int) -> FloatArray:
        """The rows from `start` to before `stop`, as a C-contiguous array of their own or a view."""
        ...


@dataclass(frozen=True)
class InMemory:
    """Rows in an array."""

    rows: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and features there are."""
        return self.rows.shape[0], self.rows.shape[1]

    def read(self, start: int, stop: int) -> FloatArray:
        """A view of some rows."""
        return self.rows[start:stop]


@dataclass(frozen=True)
class Chosen:
    """Some rows of a source, in their order."""

    source: RowSource
    places: NDArray[np.integer]  # ascending

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and features there are."""
        return len(self.places), self.source.shape[1]

    def read(self, start: int, stop: int) -> FloatArray:
        """Some of the chosen rows."""
        places = self.places[start:stop]
        parts = [
            self.source.read(int(few[0]), int(few[-1]) + 1)[few - few[0]]
            for few in np.split(places, np.flatnonzero(np.diff(places // MOST_ROWS)) + 1)
        ]
        return np.concatenate(parts) if len(parts) > 1 else parts[0]


def as_source(rows: "FloatArray | RowSource") -> RowSource:
    """Rows as something to go through."""
    return InMemory(rows) if isinstance(rows, np.ndarray) else rows


def blocks_of(source: RowSource, size: int | None = None) -> Iterator[tuple[slice, FloatArray]]:
    """Where every block of rows stands, and the rows."""
    n_rows, n_features = source.shape
    size = size or max(1, min(MOST_ROWS, MOST_NUMBERS // n_features))
    for start in range(0, n_rows, size):
        stop = min(start + size, n_rows)
        yield slice(start, stop), source.read(start, stop)


def sample_of(source: RowSource, most: int) -> FloatArray:
    """At most so many rows, in even steps; all of them if there are no more."""
    step = step_of_sample(source, most)
    # Copies: a view would keep its whole block in memory.
    return np.concatenate([rows[-where.start % step :: step].copy() for where, rows in blocks_of(source)])


def step_of_sample(source: RowSource, most: int) -> int:
    """Every how many rows one is in the sample."""
    return -(-source.shape[0] // most)
