"""Clusters that were there go on, one or another of them changed, where the evidence for it is clear.

Every micro-cluster begins in the cluster that the model before puts it in. Then, one step after another, the best of
these: a cluster splits in two, or one that something has happened to is given up to the others. The evidence is the
Bayesian information criterion. A split must gain by it several times as much as chance would: the gain is a mean over
micro-clusters, and has a standard error (Vuong 1989).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from goldfc._types import BoolArray, FloatArray, IntArray
from goldfc.learning.micro_clusters import MicroClusters
from goldfc.learning.mixture import (
    Clusters,
    clusters_of,
    fit_mixture,
    inside,
    one_hot,
    shares_and_sum,
    squares_between,
    start_points,
    whiten,
)
from goldfc.learning.proposal import Fits, parameters_of
from goldfc.learning.ward import grow_tree

# A split must gain so many times its standard error.
CLEARLY = 5.0
# Something has happened to a cluster whose share of the rows is less than this of what it was, or which is as near to
# its neighbour as this share of how far they were apart.
FEW_LEFT, NEARER = 0.25, 0.6


@dataclass(frozen=True)
class Past:
    """Clusters that were there before, in today's units."""

    labels: IntArray  # where the model before puts every micro-cluster of today; some clusters may have none
    means: FloatArray  # (clusters, numbers)
    mass: FloatArray  # (clusters,)
    own: bool  # whether each has a covariance of its own
    by_gaps: bool  # whether they were found by linkage


@dataclass(frozen=True)
class State:
    """The cluster of every micro-cluster, and to which clusters something has happened."""

    labels: IntArray
    happened: BoolArray


def carry_on(micro: MicroClusters, past: Past, *, own: bool) -> IntArray:
    """The cluster of every micro-cluster, 0, 1, ... without gaps: as before, but for steps that the evidence is for."""
    first = state = begin(micro, past)
    while (better := best_step(micro, state, own=own)) is not None:
        state = better
    return first.labels if state is first else fit_mixture(micro, state.labels, own=own).labels


def begin(micro: MicroClusters, past: Past) -> State:
    """The clusters that are still there; something has happened to those that few are left of, or that come nearer."""
    there, labels = np.unique(past.labels, return_inverse=True)
    clusters = clusters_of(micro, one_hot(labels))
    few = clusters.mass / micro.total_mass < FEW_LEFT * (past.mass / past.mass.sum())[there]
    now, then = (apart(means, clusters.covariance) for means in (clusters.means, past.means[there]))
    nearest = now.argmin(axis=1)[:, None]
    nearer = np.take_along_axis(now < NEARER * then, nearest, axis=1)[:, 0]
    return State(labels, few | nearer)


def apart(means: FloatArray, covariance: FloatArray) -> FloatArray:
    """How far all are from each other, undoing the covariance; from itself each is infinitely far."""
    points = whiten(means, covariance)
    return np.asarray(np.sqrt(squares_between(points, points)) + np.where(np.eye(len(points)) > 0.0, np.inf, 0.0))


def best_step(micro: MicroClusters, state: State, *, own: bool) -> State | None:
    """The step that gains most, of those that gain anything, and splits clearly."""
    now, best, most = Evidence.of(micro, state.labels, own=own), None, 0.0
    for step, times in steps(micro, state, own=own):
        gain, error = Evidence.of(micro, step.labels, own=own).less(now, micro)
        if gain > most and gain > times * error:
            best, most = step, gain
    return best


def steps(micro: MicroClusters, state: State, *, own: bool) -> Iterator[tuple[State, float]]:
    """What may become of clusters, and how many times its error it must gain."""
    clusters = clusters_of(micro, one_hot(state.labels), own=own)
    for cluster in range(len(clusters.mass)):
        if (state.labels == cluster).sum() > 1:
            yield split(micro, state, clusters, cluster), CLEARLY
    if len(clusters.mass) > 2:  # a single cluster would be no clustering
        density = clusters.log_density(micro.centroids, micro.shares)
        for cluster in np.flatnonzero(state.happened).tolist():
            yield given_up(state, density, cluster), 0.0


def split(micro: MicroClusters, state: State, clusters: Clusters, cluster: int) -> State:
    """Into the two that Ward's tree has last, where the cluster's covariance is undone."""
    mine = np.flatnonzero(state.labels == cluster)
    covariance = clusters.covariance[cluster] if clusters.covariance.ndim == 3 else clusters.covariance
    levels = start_points(micro)[mine, micro.centroids.shape[1] :]
    points = np.hstack([whiten(micro.centroids[mine], covariance), levels])
    labels, happened = state.labels.copy(), np.append(state.happened, True)
    labels[mine[grow_tree(points, micro.mass[mine]).cut(2) == 1]] = len(state.happened)
    happened[cluster] = True
    return State(labels, happened)


def given_up(state: State, density: FloatArray, cluster: int) -> State:
    """Its micro-clusters go where they are likeliest among the others."""
    others = np.delete(density, cluster, axis=1).argmax(axis=1)
    kept = state.labels - (state.labels > cluster)
    return State(np.where(state.labels == cluster, others, kept), np.delete(state.happened, cluster))


@dataclass(frozen=True)
class Evidence:
    """For a partition: the log-likelihood of every micro-cluster, by row, and what its parameters cost."""

    each: FloatArray
    price: float

    @classmethod
    def of(cls, micro: MicroClusters, labels: IntArray, *, own: bool) -> "Evidence":
        """Clusters with the moments of their micro-clusters."""
        clusters = clusters_of(micro, one_hot(labels), own=own)
        density = clusters.log_density(micro.centroids, micro.shares) - 0.5 * inside(clusters, micro)
        parameters = parameters_of(len(clusters.mass), micro.centroids.shape[1], own=own)
        parameters += len(clusters.mass) * sum(levels - 1 for levels in micro.levels)
        return cls(shares_and_sum(density)[1], Fits(micro).price * parameters)

    def less(self, other: "Evidence", micro: MicroClusters) -> tuple[float, float]:
        """By how much it is more, and the standard error of that."""
        more, share = 2.0 * (self.each - other.each), micro.mass / micro.total_mass
        mean = float(share @ more)
        return mean - (self.price - other.price), float(np.sqrt((share @ (more - mean) ** 2) * (share @ share)))
