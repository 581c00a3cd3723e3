"""Mixtures of Gaussian numbers and multinomial categories, fitted to micro-clusters as they would be to rows.

Clusters share one covariance, or each has its own. It has two parts: how the micro-centroids of a cluster lie around
its mean, which EM finds, and how rows lie around their micro-centroids, which the sites measured (their scatter).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from goldfc._types import FloatArray, IntArray
from goldfc.learning.micro_clusters import MicroClusters, diagonal_of

# Added to every variance inside clusters, as a share of the number's variance over all rows.
RIDGE = 0.01
# With more numbers than this, covariances of single clusters would be guesses.
MOST_FOR_OWN = 60
# A cluster's own covariance is held to the common one as if so many micro-clusters more had that, and so many for every
# number.
HELD, HELD_EACH = 2.0, 0.5
# Of every category, a cluster has one row more with the shares of all rows: what it has not seen is not impossible.
ROWS_BEFORE = 1.0
MAX_STEPS = 50
# EM has come to rest when the mean log-likelihood of a row grows by less.
AT_REST = 1e-4
# The mass of a cluster that has lost all its micro-clusters.
NOTHING = 1e-300
# In starts: shares count by how rare a level is, and none is taken to be rarer than this.
LEVEL_WEIGHT, RAREST = 0.7, 0.02


def may_be_own(micro: MicroClusters, n_clusters: int = 2) -> bool:
    """Whether clusters may have covariances of their own."""
    return n_clusters > 1 and micro.scatter.ndim == 2 and micro.centroids.shape[1] <= MOST_FOR_OWN


@dataclass(frozen=True)
class Clusters:
    """Clusters as densities of rows."""

    mass: FloatArray  # (clusters,)
    means: FloatArray  # (clusters, numbers)
    covariance: FloatArray  # (numbers,), (numbers, numbers) or of each cluster (clusters, numbers, numbers)
    shares: FloatArray  # (clusters, levels) of every level, none of them 0

    def log_density(self, numbers: FloatArray, shares: FloatArray) -> FloatArray:
        """Of rows (down) in clusters (across): log of the cluster's share of all rows, and of the row's density in it.

        Of a micro-cluster: of a row at its mean, with its shares.
        """
        squared, log_determinant = squared_distances(numbers, self.means, self.covariance)
        prior = np.log(np.maximum(self.mass, NOTHING) / self.mass.sum())
        return np.asarray(prior - 0.5 * (squared + log_determinant) + shares @ np.log(self.shares).T)


@dataclass(frozen=True)
class Mixture:
    """A fitted mixture: `memberships[i, j]` is how much micro-cluster i belongs to cluster j; rows sum to one."""

    memberships: FloatArray
    log_likelihood: float  # of a row, in the mean, up to a constant
    clusters: Clusters

    @property
    def labels(self) -> IntArray:
        """The cluster of every micro-cluster, numbered 0, 1, ... without gaps."""
        return np.unique(self.memberships.argmax(axis=1), return_inverse=True)[1].astype(np.int64)


def fit_mixture(micro: MicroClusters, start: IntArray, *, own: bool = False, trust: float = 1.0) -> Mixture:
    """EM from a partition of standardised micro-clusters.

    `own` gives every cluster a covariance of its own; otherwise `trust` in [0, 1] says how far correlations count.
    """
    memberships = one_hot(start)
    before = -np.inf
    for _ in range(MAX_STEPS):
        clusters = clusters_of(micro, memberships, own=own, trust=trust)
        log_density = clusters.log_density(micro.centroids, micro.shares) - 0.5 * inside(clusters, micro)
        memberships, each = shares_and_sum(log_density)
        log_likelihood = float(micro.mass @ each) / micro.total_mass
        if log_likelihood - before < AT_REST:
            break
        before = log_likelihood
    return Mixture(memberships, log_likelihood, clusters)


def clusters_of(micro: MicroClusters, memberships: FloatArray, *, own: bool = False, trust: float = 1.0) -> Clusters:
    """The likeliest clusters of micro-clusters that belong to them by `memberships`."""
    weight = memberships * micro.mass[:, None]
    mass = weight.sum(axis=0)
    at_least = np.maximum(mass, NOTHING)[:, None]
    means = weight.T @ micro.centroids / at_least
    covariance = own_covariances(micro, weight, means) if own else shared_covariance(micro, means, mass, trust)
    shares = (weight.T @ micro.shares + ROWS_BEFORE * np.maximum(micro.usual_shares, NOTHING)) / (
        at_least + ROWS_BEFORE
    )
    return Clusters(mass, means, covariance, shares)


def shared_covariance(micro: MicroClusters, means: FloatArray, mass: FloatArray, trust: float = 1.0) -> FloatArray:
    """The covariance of rows around the means of their clusters: a matrix, or with many numbers its diagonal.

    All scatter = scatter inside + scatter of the means, around the mean of all rows, which is 0.
    """
    scatter = micro.all_scatter - micro.scatter_like(means, mass)
    variance = np.maximum(diagonal_of(scatter), 0.0) / micro.total_mass + RIDGE
    if scatter.ndim == 1:
        return np.asarray(variance)
    covariance = trust * scatter / micro.total_mass
    np.fill_diagonal(covariance, variance)
    return np.asarray(covariance)


def own_covariances(micro: MicroClusters, weight: FloatArray, means: FloatArray) -> FloatArray:
    """The covariance of every cluster: of its micro-centroids, held to the common one, and of the rows around these."""
    points, mass = micro.centroids, weight.sum(axis=0)[:, None, None]
    n_micro, n_numbers = points.shape
    # Around its mean: the second moment less that of the mean.
    scatter = (points.T * weight.T[:, None, :]) @ points - mass * means[:, :, None] * means[:, None, :]
    held = (HELD + HELD_EACH * n_numbers) * micro.total_mass / n_micro
    between = (scatter + held * scatter.sum(axis=0) / micro.total_mass) / (mass + held)
    return np.asarray(between + micro.scatter / micro.total_mass + RIDGE * np.eye(n_numbers))


def inside(clusters: Clusters, micro: MicroClusters) -> FloatArray:
    """How much further rows are than their micro-centroids, squared, in the mean: the trace of P W in every cluster."""
    within = micro.scatter / micro.total_mass
    if clusters.covariance.ndim == 1:
        return np.asarray((within / clusters.covariance).sum())
    undone = np.linalg.solve(clusters.covariance, within)
    return np.asarray(np.trace(undone, axis1=-2, axis2=-1))


def squared_distances(points: FloatArray, means: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of every point (down) from every mean (across), undoing the covariance; and the log of its determinant."""
    if covariance.ndim < 3:
        whole = whiten(np.vstack([points, means]), covariance)
        squared = squares_between(whole[: len(points)], whole[len(points) :])
        roots = np.sqrt(covariance) if covariance.ndim == 1 else np.diagonal(np.linalg.cholesky(covariance))
        return squared, np.asarray(2.0 * np.log(roots).sum())
    roots = np.linalg.cholesky(covariance)
    undo = np.linalg.inv(roots)
    apart = undo @ points.T - (undo @ means[:, :, None])
    log_determinant = 2.0 * np.log(np.diagonal(roots, axis1=-2, axis2=-1)).sum(axis=1)
    return np.einsum("kdn,kdn->nk", apart, apart), log_determinant


def squares_between(points: FloatArray, others: FloatArray) -> FloatArray:
    """Squared distances of all points (down) from all others (across)."""
    own, theirs = np.einsum("ij,ij->i", points, points), np.einsum("ij,ij->i", others, others)
    return np.asarray(np.maximum(own[:, None] + theirs - 2.0 * (points @ others.T), 0.0))


def whiten(points: FloatArray, covariance: FloatArray) -> FloatArray:
    """The points where the covariance is round: Euclidean distances are then those that the covariance means."""
    if covariance.ndim == 1:
        return points / np.sqrt(covariance)
    root = np.linalg.cholesky(covariance)
    return np.ascontiguousarray(scipy.linalg.solve_triangular(root, points.T, lower=True, check_finite=False).T)


def shares_and_sum(log_density: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of every row of logarithms: the share of each in the sum, and the logarithm of the sum."""
    top = log_density.max(axis=1)
    parts = np.exp(log_density - top[:, None])
    total = parts.sum(axis=1)
    return parts / total[:, None], top + np.log(total)


def one_hot(labels: IntArray) -> FloatArray:
    """Memberships that say what the labels say."""
    return np.eye(int(labels.max()) + 1)[labels]


# --- starts ---


def start_points(micro: MicroClusters, trust: float = 1.0) -> FloatArray:
    """Where distances say how alike micro-clusters are: correlations undone as far as trusted, shares by rarity."""
    covariance = shared_covariance(micro, np.zeros((1, micro.centroids.shape[1])), np.ones(1), trust)
    numbers = whiten(micro.centroids, covariance)
    if not micro.levels:
        return numbers
    rarity = np.sqrt(np.maximum(micro.usual_shares, RAREST))
    return np.hstack([numbers, LEVEL_WEIGHT * (micro.shares - micro.usual_shares) / rarity])


def random_start(points: FloatArray, mass: FloatArray, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """Every point with the nearest of at most `n_clusters` seeds, drawn by k-means++."""
    squares = np.einsum("ij,ij->i", points, points)
    first = [int(rng.choice(len(points), p=mass / mass.sum()))]
    closest, labels = distances_from(points, squares, first)[0], np.zeros(len(points), dtype=np.int64)
    for number in range(1, n_clusters):
        drawn = rng.uniform(size=2 + int(np.log(n_clusters))) * (closest @ mass)
        candidates = np.minimum(np.searchsorted(np.cumsum(mass * closest), drawn), len(points) - 1)
        distances = distances_from(points, squares, candidates)
        best = distances[int((np.minimum(closest, distances) @ mass).argmin())]
        labels[best < closest] = number
        closest = np.minimum(closest, best)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def distances_from(points: FloatArray, squares: FloatArray, chosen: Sequence[int] | IntArray) -> FloatArray:
    """Squared distances of some of the points to all of them; `squares` are those of all points to 0."""
    return np.maximum(-2.0 * (points[chosen] @ points.T) + squares[chosen][:, None] + squares, 0.0)
