"""The one way to the rows: sums over all rows of bounded vectors, with noise.

A mechanism is given a `Curator` and nothing else. `release` is its only method that touches rows.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.k_means import sums_by_label
from goldfc.learning.rows import RowSource, sweep
from goldfc.site.private.budget import cost_of, sigma_of
from goldfc.site.private.noise import Source, discrete_gaussian

# A vector of the greatest length that is allowed is so long in whole numbers.
UNIT = 2**16

# Of every row, one for one: which of the cells it counts in, and the vector that is added there. It may depend on the
# row itself, on what is public, and on what was released before.
Touch = Callable[[FloatArray], tuple[IntArray, FloatArray]]


@dataclass
class Curator:
    """Keeps the rows, and counts what has been spent of the budget."""

    source: RowSource
    rows_each: int  # nobody has more
    randomness: Source = secrets.token_bytes
    spent: list[tuple[str, Fraction]] = field(default_factory=list)

    def release(self, what: str, touch: Touch, form: tuple[int, int], bound: float, rho: Fraction) -> FloatArray:
        """The sum of every cell (down), with noise, at a cost of at most rho; no row's vector is longer than `bound`."""
        sums = Sums(touch, form, bound)
        sweep(self.source, sums)
        sigma = sigma_of(self.rows_each * UNIT, rho)
        self.spent.append((what, cost_of(self.rows_each * UNIT, sigma)))
        noise = discrete_gaussian(sigma, form[0] * form[1], self.randomness).reshape(form)
        return (sums.total + noise).astype(np.float64) * (bound / UNIT)


class Sums:
    """Collects sums of whole numbers, which do not depend on the order of the rows."""

    def __init__(self, touch: Touch, form: tuple[int, int], bound: float) -> None:
        self._touch, self._bound = touch, bound
        self.total = np.zeros(form)  # whole numbers, of which any sum that can occur is exact

    def see(self, where: slice, rows: FloatArray) -> None:  # noqa: ARG002
        """One more block."""
        cells, vectors = self._touch(rows)
        self.total += sums_by_label(whole(vectors / self._bound).astype(np.float64), cells, len(self.total))


def whole(vectors: FloatArray) -> IntArray:
    """Vectors of length 1 at most in whole numbers of length `UNIT` at most, whatever was rounded on the way."""
    scaled = np.trunc(np.nan_to_num(vectors) * UNIT).clip(-UNIT, UNIT).astype(np.int64)
    length = np.einsum("ij,ij->i", scaled, scaled)
    long = length > UNIT * UNIT
    if long.any():  # by rounding, or because a touch is wrong: then it is cut off
        scaled[long] = [cut(vector) for vector in scaled[long]]
    return scaled


def cut(vector: IntArray) -> IntArray:
    """A vector that is too long, made short enough in whole numbers."""
    length = isqrt(sum(int(value) ** 2 for value in vector)) + 1
    return np.sign(vector) * (np.abs(vector) * UNIT // length)
