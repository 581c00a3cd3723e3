"""What a fusion works on: all sites' micro-clusters, by their means, their masses and how rows lie around them.

A row has numbers and categories. A micro-cluster tells the mean of its numbers, and of every category the shares of its
levels: all that a Gaussian and a multinomial need to know.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.k_means import sums_by_label
from goldfc.learning.moments import scale_of

# With more numbers than this a covariance outweighs the rest of the message: variances alone are sent.
MOST_FEATURES_FOR_CORRELATIONS = 200


@dataclass(frozen=True)
class Layout:
    """Which features of a row are numbers, and which are the levels of a category; a single one is yes or no."""

    numbers: IntArray
    categories: tuple[IntArray, ...] = ()

    @classmethod
    def of_numbers(cls, n_features: int) -> "Layout":
        """Nothing but numbers."""
        return cls(np.arange(n_features))

    @property
    def levels(self) -> tuple[int, ...]:
        """How many levels every category has."""
        return tuple(max(2, len(features)) for features in self.categories)

    def numbers_of(self, rows: FloatArray) -> FloatArray:
        """The numbers of rows; where there are none, one that is always 0."""
        return rows[:, self.numbers] if len(self.numbers) else np.zeros((len(rows), 1))

    def shares_of(self, rows: FloatArray) -> FloatArray:
        """The shares of all levels; of yes also those of no. In every category they sum to 1, rounded or not."""
        parts = [np.clip(rows[:, features], 0.0, 1.0) for features in self.categories]
        parts = [np.hstack([part, 1.0 - part]) if part.shape[1] == 1 else part for part in parts]
        total = [part.sum(axis=1, keepdims=True) for part in parts]
        return np.hstack(
            [
                np.empty((len(rows), 0)),
                *(part / np.where(t > 0.0, t, 1.0) for part, t in zip(parts, total, strict=True)),
            ]
        )


@dataclass(frozen=True)
class MicroClusters:
    """`scatter` is the sum over all rows of (x - c)(x - c)', c being the row's own micro-centroid.

    It is a matrix, or with many numbers its diagonal; left out, that of micro-clusters which are as good as points.
    """

    centroids: FloatArray  # (micro-clusters, numbers)
    mass: FloatArray  # (micro-clusters,)
    scatter: FloatArray = field(default_factory=lambda: np.empty(0))  # (numbers, numbers) or (numbers,)
    shares: FloatArray = field(default_factory=lambda: np.empty((0, 0)))  # (micro-clusters, levels of all categories)
    levels: tuple[int, ...] = ()  # of every category

    def __post_init__(self) -> None:
        """Without categories there are no shares."""
        if not self.scatter.size:
            object.__setattr__(self, "scatter", np.zeros(self.centroids.shape[1]))
        if not self.levels:
            object.__setattr__(self, "shares", np.empty((len(self.mass), 0)))

    @property
    def total_mass(self) -> float:
        """All rows."""
        return float(self.mass.sum())

    @cached_property
    def all_scatter(self) -> FloatArray:
        """The scatter of all rows around the mean of all, if that is 0 (`standardized`)."""
        return self.scatter + self.scatter_like(self.centroids, self.mass)

    @cached_property
    def usual_shares(self) -> FloatArray:
        """The shares of all levels among all rows."""
        return np.asarray(self.mass @ self.shares / self.total_mass)

    def scatter_like(self, points: FloatArray, mass: FloatArray) -> FloatArray:
        """The scatter of points around 0, by mass: a matrix or a diagonal, as `scatter` is."""
        if self.scatter.ndim == 1:
            return np.asarray(mass @ points**2)
        return np.asarray(points.T @ (points * mass[:, None]))

    @cached_property
    def distinct(self) -> int:
        """How many different micro-clusters there are: no clustering can tell more apart."""
        return len(np.unique(np.hstack([self.centroids, self.shares]), axis=0))

    def merged(self, group: IntArray) -> "MicroClusters":
        """Every group as one micro-cluster; what its members lie apart becomes part of the scatter."""
        n_groups = int(group.max()) + 1
        if n_groups == len(group):
            return self
        mass = np.bincount(group, weights=self.mass, minlength=n_groups).astype(np.float64)
        centroids, shares = (means_of(points, group, self.mass) for points in (self.centroids, self.shares))
        between = self.scatter_like(self.centroids - centroids[group], self.mass)
        return MicroClusters(centroids, mass, self.scatter + between, shares, self.levels)


def standardized(micro: MicroClusters, *, one_scale: bool = False) -> tuple[MicroClusters, FloatArray]:
    """All numbers with mean 0 and variance 1, and the scale that was divided by; with `one_scale` it is one for all.

    A number that is constant, up to rounding, is 0 everywhere; its scale is the size of its values.
    """
    centred = micro.centroids - np.average(micro.centroids, axis=0, weights=micro.mass)
    variance = (micro.mass @ centred**2 + diagonal_of(micro.scatter)) / micro.total_mass
    scale, varies = scale_of(variance, np.abs(micro.centroids).max(axis=0))
    if one_scale and varies.any():
        scale = np.where(varies, np.sqrt(variance[varies].mean()), scale)
    full = micro.scatter.ndim == 2
    scatter = micro.scatter / (np.outer(scale, scale) if full else scale**2)
    scatter = np.where(np.outer(varies, varies) if full else varies, scatter, 0.0)
    return replace(micro, centroids=np.where(varies, centred / scale, 0.0), scatter=scatter), scale


def means_of(points: FloatArray, labels: IntArray, mass: FloatArray) -> FloatArray:
    """The mean of the points of every label, by mass."""
    count = int(labels.max()) + 1
    return sums_by_label(points, labels, count, mass) / np.bincount(labels, weights=mass)[:, None]


def diagonal_of(covariance: FloatArray) -> FloatArray:
    """The variances, whether there are covariances beside them or not."""
    return covariance if covariance.ndim == 1 else np.diagonal(covariance, axis1=-2, axis2=-1)


def form_of_shape(n_numbers: int) -> tuple[int, ...]:
    """A matrix, or with many numbers its diagonal."""
    return (n_numbers,) if n_numbers > MOST_FEATURES_FOR_CORRELATIONS else (n_numbers, n_numbers)


def scatter_of(rows: FloatArray, centroids: FloatArray, labels: IntArray) -> FloatArray:
    """How rows lie around their own micro-centroids, added up: a matrix, or with many numbers its diagonal."""
    residuals = rows - centroids[labels]
    if len(form_of_shape(rows.shape[1])) == 1:
        return np.asarray(np.einsum("ni,ni->i", residuals, residuals))
    # Not by @, whose last digits may depend on the number of threads.
    return np.asarray(np.einsum("ni,nj->ij", residuals, residuals))


def no_scatter(n_numbers: int) -> FloatArray:
    """The scatter where nobody tells it: as if all rows lay on their micro-centroids."""
    return np.zeros(form_of_shape(n_numbers))
