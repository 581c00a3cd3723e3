"""Rows that may be more than fit into memory: gone through a block at a time, and as seldom as possible.

Whatever is to be worked out of rows is a collector; `sweep` shows every block once to as many of these as there are.
"""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from goldfc._ahead import ahead
from goldfc._types import FloatArray

Item = TypeVar("Item")

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

    def take(self, places: NDArray[np.integer]) -> FloatArray:
        """The rows at ascending places, as an array of their own; few of many without reading the others."""
        ...


class Collector(Protocol):
    """Something that is worked out of all rows while they go by."""

    def see(self, where: slice, rows: FloatArray) -> None:
        """The next block: where it stands, and its rows."""
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

    def take(self, places: NDArray[np.integer]) -> FloatArray:
        """A copy of some rows."""
        return np.asarray(self.rows[places])


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
        return self.source.take(self.places[start:stop])

    def take(self, places: NDArray[np.integer]) -> FloatArray:
        """Some of the chosen rows."""
        return self.source.take(np.asarray(self.places[places]))


def as_source(rows: "FloatArray | RowSource") -> RowSource:
    """Rows as something to go through."""
    return InMemory(rows) if isinstance(rows, np.ndarray) else rows


def blocks_of(source: RowSource, size: int | None = None) -> Generator[tuple[slice, FloatArray], None, None]:
    """Where every block of rows stands, and the rows."""
    n_rows, n_features = source.shape
    size = size or max(1, min(MOST_ROWS, MOST_NUMBERS // n_features))
    for start in range(0, n_rows, size):
        stop = min(start + size, n_rows)
        yield slice(start, stop), source.read(start, stop)


def meanwhile(source: RowSource, items: Generator[Item, None, None]) -> Iterator[Item]:
    """What is made of every block, in their order; of rows that are elsewhere the next one while one is worked on."""
    return items if isinstance(source, InMemory) else ahead(items)


def sweep(source: RowSource, *collectors: Collector) -> None:
    """One pass over the rows for all who collect something; none if nobody does."""
    for where, rows in meanwhile(source, blocks_of(source)) if collectors else ():
        for collector in collectors:
            collector.see(where, rows)


class SideBySide:
    """Collectors that have nothing to do with each other: of rows that are elsewhere, two look at a block at a time."""

    def __init__(self, source: RowSource, *collectors: Collector) -> None:
        self._collectors = collectors
        alone = len(collectors) == 1 or isinstance(source, InMemory)
        self._map = map if alone else ThreadPoolExecutor(2).map

    def see(self, where: slice, rows: FloatArray) -> None:
        """One more block; the next one comes when all have seen it."""
        for _ in self._map(lambda one: one.see(where, rows), self._collectors):
            pass


def sample_of(source: RowSource, most: int) -> FloatArray:
    """At most so many rows, in even steps; all of them if there are no more."""
    return source.take(np.arange(0, source.shape[0], step_of_sample(source, most)))


def step_of_sample(source: RowSource, most: int) -> int:
    """Every how many rows one is in the sample."""
    return -(-source.shape[0] // most)


class Sample:
    """The same sample, collected on a pass that is made anyway."""

    def __init__(self, source: RowSource, most: int) -> None:
        self._step = step_of_sample(source, most)
        self._parts = list[FloatArray]()

    def see(self, where: slice, rows: FloatArray) -> None:
        """Copies: a view would keep its whole block in memory."""
        self._parts.append(rows[-where.start % self._step :: self._step].copy())

    @property
    def rows(self) -> FloatArray:
        """Those that were seen."""
        return np.concatenate(self._parts)
