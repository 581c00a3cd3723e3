"""The one way to the rows: sums over all rows of bounded vectors, with noise.

A mechanism is given a `Curator` and nothing else; `release` is all that it can do with rows. That this hides every
person, and what it costs, is the theorem of docs/differential-privacy.md.
"""

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.learning.k_means import sums_by_label
from goldfc.learning.rows import RowSource, sweep
from goldfc.site.private.budget import cost_of, sigma_of
from goldfc.site.private.noise import Source, discrete_gaussian

# All rows of a person together have a length of at most so much, in whole numbers.
UNIT = 2**16

# Rows are looked at a few at a time, of which all vectors, and the distances from all cells, are so many numbers: these
# stay near the processor.
NUMBERS_AT_A_TIME = 2**18

# Of every row, one for one: which of the cells it counts in, and the vector that is added there. It may depend on the
# row itself, on what is public, and on what was released before.
Touch = Callable[[FloatArray], tuple[IntArray, FloatArray]]


@dataclass
class Curator:
    """Keeps the rows, and counts what is spent."""

    source: RowSource
    counts: NDArray[np.bool_] | None = None  # which rows count; None: all
    most_rows: int = 1  # of one person among those that count
    randomness: Source = secrets.token_bytes
    spent: list[tuple[str, Fraction]] = field(default_factory=list)  # on what, and how much of rho

    def release(self, what: str, touch: Touch, form: tuple[int, int], bound: float, rho: Fraction) -> FloatArray:
        """Sums by cell (down), with noise, at a cost of at most rho; no row's vector may be longer than `bound`."""
        unit = UNIT // self.most_rows
        sums = Sums(touch, form, bound, unit, self.counts)
        sweep(self.source, sums)
        sigma = sigma_of(unit * self.most_rows, rho)
        self.spent.append((what, cost_of(unit * self.most_rows, sigma)))
        noise = discrete_gaussian(sigma, form[0] * form[1], self.randomness).reshape(form)
        return (sums.total.astype(np.int64) + noise).astype(np.float64) * (bound / unit)

    def noise(self, bound: float, rho: Fraction) -> float:
        """The standard deviation of the noise in what is released so."""
        return self.most_rows * bound / math.sqrt(2 * rho)


@dataclass
class Sums:
    """Collects sums of whole numbers: they do not depend on the order of the rows, nor on who adds them up."""

    touch: Touch
    form: tuple[int, int]
    bound: float
    unit: int
    counts: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        """Nothing yet."""
        self.total = np.zeros(self.form)  # floating-point numbers add up whole ones exactly, up to 2^53

    def see(self, where: slice, rows: FloatArray) -> None:
        """One more block."""
        rows = rows if self.counts is None else rows[self.counts[where]]
        step = max(1, NUMBERS_AT_A_TIME // sum(self.form))
        for first in range(0, len(rows), step):
            cells, vectors = self.touch(rows[first : first + step])
            self.total += sums_by_label(whole(vectors / self.bound, self.unit), cells, self.form[0])


def whole(vectors: FloatArray, unit: int) -> FloatArray:
    """Vectors of length 1 at most in whole numbers, of length `unit` at most, whatever was rounded on the way."""
    scaled = vectors.clip(-1.0, 1.0)
    scaled *= unit
    np.trunc(scaled, out=scaled)
    # Exact, for these are whole numbers below 2^53; where something is no number, it is not true.
    good = np.einsum("ij,ij->i", scaled, scaled) <= unit * unit
    if not good.all():
        scaled[~good] = [shortened(vector, unit) for vector in np.nan_to_num(scaled[~good]).astype(np.int64)]
    return np.asarray(scaled)


def shortened(vector: IntArray, unit: int) -> IntArray:
    """A vector that is too long, by rounding or because a touch is wrong, made short enough in whole numbers."""
    length = max(unit, isqrt(sum(int(value) ** 2 for value in vector)) + 1)
    return np.asarray(np.sign(vector) * (np.abs(vector) * unit // length))


def first_rows(people: IntArray | None, most: int) -> NDArray[np.bool_] | None:
    """Of every person as many rows as count, the first ones; their values have no say in it."""
    if people is None:
        return None
    order = np.argsort(people, kind="stable")
    own = people[order]
    begins = np.flatnonzero(np.r_[True, own[1:] != own[:-1]])
    place = np.arange(len(own)) - np.repeat(begins, np.diff(np.r_[begins, len(own)]))
    counts = np.zeros(len(own), dtype=bool)
    counts[order[place < most]] = True
    return counts
