"""How many rows there are, their mean and their spread in every feature: enough to put all sites on one scale."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray

# Squared differences of larger values would leave the range of floating-point numbers.
LARGEST_VALUE = 1e100
# And squares of smaller ones, so that they are as good as zero.
SMALLEST_VALUE = 1e-100
# What varies by less, relative to its values, is constant up to rounding.
ROUNDING = 1e-10


@dataclass(frozen=True)
class Moments:
    """Of every feature: the mean, and the sum of squared differences from it (M2)."""

    count: float
    mean: FloatArray  # (features,)
    squares: FloatArray  # (features,)

    @classmethod
    def of(cls, rows: FloatArray) -> "Moments":
        """Those of some rows."""
        mean = rows.mean(axis=0)
        return cls(float(len(rows)), mean, ((rows - mean) ** 2).sum(axis=0))

    @property
    def variance(self) -> FloatArray:
        """The mean squared difference from the mean."""
        return self.squares / self.count

    @property
    def scale(self) -> FloatArray:
        """What to divide by, so that every feature has a standard deviation of one."""
        return scale_of(self.variance, np.abs(self.mean))[0]

    def weighing(self, share: float) -> "Moments":
        """The same, as if there were fewer rows."""
        return Moments(self.count * share, self.mean, self.squares * share)

    def merged(self, other: "Moments") -> "Moments":
        """Those of both together, exactly.

        Chan: M2 of both = M2 of one + M2 of the other + what their means lie apart, squared, times na nb / (na + nb).
        """
        count = self.count + other.count
        apart = other.mean - self.mean
        return Moments(
            count,
            self.mean + apart * (other.count / count),
            self.squares + other.squares + apart**2 * (self.count * other.count / count),
        )


def pool_moments(parts: Sequence[Moments]) -> Moments:
    """Those of all rows, as if they lay in one place."""
    pooled = parts[0]
    for part in parts[1:]:
        pooled = pooled.merged(part)
    return pooled


def scale_of(variance: FloatArray, size: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """What to divide every feature by, and whether it varies at all.

    A feature that is constant, up to rounding, has the size of its values as its scale.
    """
    varies = variance > np.maximum(ROUNDING * size, SMALLEST_VALUE) ** 2
    return np.where(varies, np.sqrt(variance), np.where(size > SMALLEST_VALUE, size, 1.0)), varies
