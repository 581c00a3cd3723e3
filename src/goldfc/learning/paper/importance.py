"""Feature importance: which features make a cluster what it is (Eqs. 16-21).

A feature matters to a cluster when it tells the members from everybody else (alpha) and the members agree on it
(beta). All arrays are cluster-major: one row per cluster, one column per feature.
"""

from dataclasses import dataclass

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.paper import _kernels

# Below this, a variance or a squared difference of means (as a share of the column's own variance) and a squared
# distance of two distributions are rounding noise.
ROUNDING_NOISE = 1e-12
# Digits kept of h: more than matters, fewer than rounding touches, so that ties do not hang on summation order.
DECIMALS_OF_H = 12


@dataclass(frozen=True)
class Everyone:
    """What importance needs to know of all rows together; the same in all epochs."""

    size: int
    mass: float
    mean: FloatArray  # (features,)
    squares: FloatArray  # (features,)


@dataclass(frozen=True)
class Moments:
    """What importance needs to know of every cluster, and of everyone; `mass` is `size` where every row's is one."""

    size: IntArray  # (clusters, 1)
    mass: FloatArray  # (clusters, 1)
    mean: FloatArray  # (clusters, features)
    squares: FloatArray  # (clusters, features)
    everyone: Everyone

    @property
    def outside(self) -> FloatArray:
        """The mass outside of every cluster; what is left of subtracting the same is none."""
        left = self.everyone.mass - self.mass
        return np.where((self.size < self.everyone.size) & (left > ROUNDING_NOISE * self.everyone.mass), left, 0.0)


def measure_everyone(X: FloatArray, mass: FloatArray) -> Everyone:
    """The moments of all rows together."""
    mean, squares = np.empty((1, X.shape[1])), np.empty((1, X.shape[1]))
    _kernels.inside_moments(X, mass, np.zeros(len(X), dtype=np.int64), mean, squares)
    return Everyone(len(X), float(mass.sum()), mean[0], squares[0])


def measure(X: FloatArray, mass: FloatArray, labels: IntArray, size: IntArray, everyone: Everyone) -> Moments:
    """The moments of every cluster."""
    mean, squares = np.empty((len(size), X.shape[1])), np.empty((len(size), X.shape[1]))
    inside = _kernels.inside_moments(X, mass, labels, mean, squares)
    return Moments(size[:, None], inside[:, None], mean, squares, everyone)


def means(moments: Moments) -> tuple[FloatArray, FloatArray]:
    """Eq. (17). Mean inside and outside every cluster.

    n mu = n_j mu_j + (n - n_j) mu_bar_j, solved for mu_bar_j around the mean of all rows.
    """
    outside = np.where(moments.outside > 0.0, moments.outside, 1.0)
    return moments.mean, moments.everyone.mean - (moments.mass / outside) * (moments.mean - moments.everyone.mean)


def freedom(mass: FloatArray, size: IntArray) -> FloatArray:
    """What squares are divided by: m (n - 1) / n for n rows of mass m together, which is n - 1 where m is n."""
    return np.where(size > 1, mass * (size - 1) / np.maximum(size, 1), 1.0)


def inside_variance(moments: Moments) -> FloatArray:
    """Eq. (18). Sample variance inside every cluster; zero for a single member."""
    return moments.squares / freedom(moments.mass, moments.size)


def outside_variance(moments: Moments) -> FloatArray:
    """Eq. (19). Sample variance of everybody outside every cluster; zero for a single one.

    All squares = inside + outside + between, and between is n n_j / (n - n_j) (mu_j - mu)^2.
    """
    outside = moments.outside
    between = moments.everyone.mass * moments.mass / np.where(outside > 0.0, outside, 1.0)
    squares = moments.everyone.squares - moments.squares - between * (moments.mean - moments.everyone.mean) ** 2
    others = np.where(outside > 0.0, moments.everyone.size - moments.size, 0)
    return np.where(others > 1, np.maximum(squares, 0.0), 0.0) / freedom(outside, others)


def distinctness(moments: Moments) -> FloatArray:
    """Eq. (16). alpha: Hellinger distance of the Gaussians fitted inside and outside every cluster.

    Note: what is below ROUNDING_NOISE counts as zero, or noise would decide where nothing else does.
    Both variances zero: 0 where the means agree, 1 where they do not. Nobody outside: 0.
    """
    scale = moments.everyone.squares / freedom(np.array(moments.everyone.mass), np.array(moments.everyone.size))
    scale = np.where(scale > 0.0, scale, 1.0)
    mean, other_mean = means(moments)
    gap = _without_noise((mean - other_mean) ** 2 / scale)
    variance = _without_noise(inside_variance(moments) / scale)
    other_variance = _without_noise(outside_variance(moments) / scale)
    both = variance + other_variance
    spread = np.where(both > 0.0, both, 1.0)
    overlap = np.sqrt(2.0 * np.sqrt(variance * other_variance) / spread) * np.exp(-gap / (4.0 * spread))
    alpha = np.where(both > 0.0, np.sqrt(_without_noise(1.0 - overlap)), (gap > 0.0).astype(np.float64))
    return np.where(moments.outside > 0.0, alpha, 0.0)


def agreement(X: FloatArray, mass: FloatArray, labels: IntArray, moments: Moments) -> FloatArray:
    """Eq. (20). beta: mean closeness exp(-(x - c)^2 / 2) of the members to their own centroid.

    Note: the paper takes a square root of the sum before dividing by the size, which makes beta shrink with the size.
    """
    total = np.empty_like(moments.mean)
    _kernels.sum_of_closeness(X, mass, labels, moments.mean, total)
    return total / np.where(moments.size > 0, moments.mass, 1.0)


def feature_importance(
    X: FloatArray, mass: FloatArray, labels: IntArray, size: IntArray, everyone: Everyone | None = None
) -> tuple[FloatArray, FloatArray]:
    """Eq. (21). h = alpha beta, scaled to sum to one in every cluster; with it, the centroids it was made from.

    All products zero: every feature counts the same.
    """
    moments = measure(X, mass, labels, size, everyone or measure_everyone(X, mass))
    product = distinctness(moments) * agreement(X, mass, labels, moments)
    total = np.cumsum(product, axis=1)[:, -1:]  # one by one: np.sum's order hangs on the layout
    importance: FloatArray = np.where(total > 0.0, product / np.where(total > 0.0, total, 1.0), 1.0 / X.shape[1])
    return np.around(importance, DECIMALS_OF_H), moments.mean


def _without_noise(relative: FloatArray) -> FloatArray:
    return np.where(relative > ROUNDING_NOISE, relative, 0.0)
