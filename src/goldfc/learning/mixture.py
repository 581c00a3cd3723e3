"""Gaussian mixtures with one covariance for all clusters, fitted to micro-clusters by their mass and shape.

The covariance has two parts: how the micro-centroids of a cluster lie around its mean, which EM finds, and how rows lie
around their micro-centroids, which the clients measured (their scatter, added up). It undoes stretched and correlated
features, which k-means cannot.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotrs

from goldfc._types import FloatArray, IntArray
from goldfc.learning import _kernels
from goldfc.learning.moments import scale_of

# With more features than this a scatter matrix outweighs the rest of the message: variances alone are sent.
MOST_FEATURES_FOR_CORRELATIONS = 200
# Added to every variance inside clusters, as a share of the feature's variance over all rows.
RIDGE = 0.01
MAX_STEPS = 50
# EM has come to rest when the mean log-likelihood of a row grows by less.
AT_REST = 1e-4


@dataclass(frozen=True)
class MicroClusters:
    """What a fusion works on: all clients' micro-centroids, how many rows each stands for, and how these lie around it.

    `scatter` is the sum over all rows of (x - c)(x - c)', c being the row's own micro-centroid: a matrix, or with many
    features its diagonal.
    """

    centroids: FloatArray  # (micro-clusters, features)
    mass: FloatArray  # (micro-clusters,)
    scatter: FloatArray  # (features, features) or (features,)

    @property
    def total_mass(self) -> float:
        """All rows."""
        return float(self.mass.sum())

    @cached_property
    def all_scatter(self) -> FloatArray:
        """The scatter of all rows around the mean of all, if that is 0 (`standardized`)."""
        return self.scatter + self.scatter_like(self.centroids, self.mass)

    def scatter_like(self, points: FloatArray, mass: FloatArray) -> FloatArray:
        """The scatter of points around 0, by mass: a matrix or a diagonal, as `scatter` is."""
        if self.scatter.ndim == 1:
            return np.asarray(mass @ points**2)
        return np.asarray(points.T @ (points * mass[:, None]))

    @property
    def distinct(self) -> int:
        """How many different centroids there are: no clustering can tell more apart."""
        return len(np.unique(self.centroids, axis=0))


@dataclass(frozen=True)
class Mixture:
    """A fitted mixture: `memberships[i, j]` is how much micro-cluster i belongs to cluster j; rows sum to one."""

    memberships: FloatArray
    log_likelihood: float  # of a row, in the mean

    @property
    def labels(self) -> IntArray:
        """The cluster of every micro-cluster, numbered 0, 1, ... without gaps."""
        return np.unique(self.memberships.argmax(axis=1), return_inverse=True)[1].astype(np.int64)


def fit_mixture(micro: MicroClusters, start: IntArray, trust: float = 1.0) -> Mixture:
    """EM from a partition of standardised micro-clusters; `trust` in [0, 1] says how far correlations count."""
    memberships = np.zeros((len(start), start.max() + 1))
    memberships[np.arange(len(start)), start] = 1.0
    weighted = micro.centroids * micro.mass[:, None]
    before = -np.inf
    for _ in range(MAX_STEPS):
        mass = memberships.T @ micro.mass
        means = (memberships.T @ weighted) / np.maximum(mass, 1e-300)[:, None]
        covariance = covariance_inside(micro, means, mass, trust)
        memberships, log_likelihood = memberships_of(micro, means, mass, covariance)
        if log_likelihood - before < AT_REST:
            break
        before = log_likelihood
    return Mixture(memberships, log_likelihood)


def random_start(micro: MicroClusters, n_clusters: int, trust: float, rng: np.random.Generator) -> IntArray:
    """Every micro-cluster with the nearest of `n_clusters` seeds, drawn by k-means++.

    The draws are those of scikit-learn's, which takes four times as long to check what it is given.
    """
    points = whiten(micro.centroids, covariance_of_all(micro, trust))
    draws = np.random.RandomState(int(rng.integers(2**31)))
    squares = np.einsum("ij,ij->i", points, points)
    first = [int(draws.choice(len(points), p=micro.mass / micro.total_mass))]
    closest, labels = squared_distances(points, squares, first)[0], np.zeros(len(points), dtype=np.int64)
    for number in range(1, n_clusters):
        drawn = draws.uniform(size=2 + int(np.log(n_clusters))) * (closest @ micro.mass)
        candidates = np.minimum(np.searchsorted(np.cumsum(micro.mass * closest), drawn), len(points) - 1)
        distances = squared_distances(points, squares, candidates)
        best = distances[int((np.minimum(closest, distances) @ micro.mass).argmin())]
        labels[best < closest] = number
        closest = np.minimum(closest, best)
    return labels


def squared_distances(points: FloatArray, squares: FloatArray, chosen: Sequence[int] | IntArray) -> FloatArray:
    """Of some of the points to all of them; `squares` are those of all points to 0."""
    return np.maximum(-2.0 * (points[chosen] @ points.T) + squares[chosen][:, None] + squares, 0.0)


def covariance_of_all(micro: MicroClusters, trust: float = 1.0) -> FloatArray:
    """The covariance of all rows: that inside a single cluster, whose mean is 0."""
    return covariance_inside(micro, np.zeros((1, micro.centroids.shape[1])), np.ones(1), trust)


def covariance_inside(micro: MicroClusters, means: FloatArray, mass: FloatArray, trust: float) -> FloatArray:
    """The covariance of rows around the means of their clusters: a matrix, or with many features its diagonal.

    All scatter = scatter inside + scatter of the means, around the mean of all rows, which is 0.
    """
    scatter = micro.all_scatter - micro.scatter_like(means, mass)
    variance = np.maximum(diagonal_of(scatter), 0.0) / micro.total_mass + RIDGE
    if scatter.ndim == 1:
        return np.asarray(variance)
    covariance = trust * scatter / micro.total_mass
    np.fill_diagonal(covariance, variance)
    return np.asarray(covariance)


def memberships_of(
    micro: MicroClusters, means: FloatArray, mass: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, float]:
    """How much every micro-cluster belongs to every cluster, and the mean log-likelihood of a row.

    Of (c - m)' P (c - m) the part c' P c is the same for all clusters: it is needed in the sum only, which is a trace.
    """
    pulled, log_determinant, spread = solve(covariance, means, micro)
    with np.errstate(divide="ignore"):
        share = np.log(mass / micro.total_mass) - 0.5 * (means * pulled).sum(axis=1)
    # One row per cluster: to go along rows is faster. As scipy's logsumexp would have it, which takes longer to look at
    # its arguments than to sum.
    logits = pulled @ micro.centroids.T
    logits += share[:, None]
    top = logits.max(axis=0)
    memberships = np.exp(logits - top)
    total = memberships.sum(axis=0)
    log_likelihood = (micro.mass @ (top + np.log(total)) - 0.5 * spread) / micro.total_mass - 0.5 * log_determinant
    memberships /= total
    return memberships.T, float(log_likelihood)


def solve(covariance: FloatArray, means: FloatArray, micro: MicroClusters) -> tuple[FloatArray, float, float]:
    """Means P, with P the inverse of the covariance; the log of its determinant; the trace of P times all scatter."""
    if covariance.ndim == 1:
        return means / covariance, float(np.log(covariance).sum()), float((micro.all_scatter / covariance).sum())
    factor, fault = dpotrf(covariance, lower=True)
    if fault:
        raise np.linalg.LinAlgError("some direction has no variance")
    log_determinant = 2.0 * float(np.log(np.diagonal(factor)).sum())
    pulled, undone = (dpotrs(factor, of, lower=True)[0] for of in (means.T, micro.all_scatter))
    return pulled.T, log_determinant, float(np.trace(undone))


def whiten(points: FloatArray, covariance: FloatArray) -> FloatArray:
    """The points where the covariance is round: Euclidean distances are then those that the covariance means."""
    if covariance.ndim == 1:
        return points / np.sqrt(covariance)
    root = cholesky(covariance, lower=True)
    return np.ascontiguousarray(solve_triangular(root, points.T, lower=True).T)


def standardized(micro: MicroClusters) -> tuple[MicroClusters, FloatArray]:
    """All rows with mean 0 and variance 1 in every feature, and the scale that was divided by.

    A feature that is constant, up to rounding, is 0 everywhere; its scale is the size of its values.
    """
    centred = micro.centroids - np.average(micro.centroids, axis=0, weights=micro.mass)
    variance = (micro.mass @ centred**2 + diagonal_of(micro.scatter)) / micro.total_mass
    scale, varies = scale_of(variance, np.abs(micro.centroids).max(axis=0))
    full = micro.scatter.ndim == 2
    scatter = micro.scatter / (np.outer(scale, scale) if full else scale**2)
    scatter = np.where(np.outer(varies, varies) if full else varies, scatter, 0.0)
    return MicroClusters(np.where(varies, centred / scale, 0.0), micro.mass, scatter), scale


def diagonal_of(covariance: FloatArray) -> FloatArray:
    """The variances, whether it is a matrix or has nothing else."""
    return covariance if covariance.ndim == 1 else np.asarray(np.diagonal(covariance))


def form_of_shape(n_features: int) -> tuple[int, ...]:
    """A matrix, or with many features its diagonal."""
    return (n_features,) if n_features > MOST_FEATURES_FOR_CORRELATIONS else (n_features, n_features)


def scatter_of(rows: FloatArray, centroids: FloatArray, labels: IntArray) -> FloatArray:
    """How rows lie around their own micro-centroids, added up: a matrix, or with many features its diagonal."""
    residuals = rows - centroids[labels]
    if len(form_of_shape(rows.shape[1])) == 1:
        return np.asarray(np.einsum("ni,ni->i", residuals, residuals))
    # Not by @, whose last digits may depend on the number of threads.
    return np.asarray(np.einsum("ni,nj->ij", residuals, residuals))


def no_scatter(n_features: int) -> FloatArray:
    """The scatter where nobody tells it: as if all rows lay on their micro-centroids."""
    return np.zeros(form_of_shape(n_features))


def spread_around_means(micro: MicroClusters, labels: IntArray) -> FloatArray:
    """The covariance of rows around the means of their clusters, in the features' own units."""
    unit, scale = standardized(micro)
    mass = np.bincount(labels, weights=micro.mass).astype(np.float64)
    covariance = covariance_inside(unit, means_of(unit.centroids, labels, unit.mass), mass, trust=1.0)
    return covariance * (scale**2 if covariance.ndim == 1 else np.outer(scale, scale))


def round_covariance(covariance: FloatArray, scale: FloatArray | None = None) -> FloatArray:
    """The same variance in all features: distances that undo it are plain ones, but for their scale.

    With a `scale` per feature they are plain in features divided by it.
    """
    if scale is None:
        return np.full(len(covariance), diagonal_of(covariance).mean())
    return np.asarray((diagonal_of(covariance) / scale**2).mean() * scale**2)


def means_of(points: FloatArray, labels: IntArray, mass: FloatArray) -> FloatArray:
    """The mean of the points of every label, by mass."""
    total = np.bincount(labels, weights=mass)
    return sums_by_label(points * mass[:, None], labels) / total[:, None]


def sums_by_label(points: FloatArray, labels: IntArray, count: int = 0) -> FloatArray:
    """The sum of the points of every label, of which there are at least `count`."""
    sums = np.zeros((max(count, int(labels.max()) + 1), points.shape[1]))
    # Writeable, although nothing is written: for read-only arrays it would be compiled once more.
    _kernels.add_by_label(np.require(points, np.float64, ["C", "W"]), labels, sums)
    return sums
