"""Consensus: many mixtures at several granularities, and the clusters that most of them agree on.

1. Fit mixtures with k and 2 k clusters, from 32 random starts each. Nobody knows how far the correlations of
   numbers can be trusted: every start trusts them a little more.
2. Two micro-clusters are as close as the mixtures put them together often: their co-association.
3. Embed the micro-clusters by the leading eigenvectors of the co-association, by mass, and cut by k-means into k.

How much of a micro-cluster's co-association is with its own cluster says how certain its label is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from goldfc._types import FloatArray, IntArray
from goldfc.learning.levels import Levels
from goldfc.learning.micro_clusters import MicroClusters
from goldfc.learning.mixture import Mixture, fit_mixture, random_start, start_points

# On the paper's ten sets and on generated ones, more granularities and more starts gained nothing.
GRANULARITIES = (1, 2)
STARTS = 32
# Memberships below this are left out: there are few others, so that partitions of many micro-clusters stay small.
NEGLIGIBLE = 1e-3
K_MEANS_STARTS = 10
# Embedded micro-clusters are told to so many decimals: what is the same up to rounding must not decide anything.
DECIMALS = 9
# Eigenvectors with singular values below this, of at most 1, are rounding: partitions tell no more apart.
NO_STRENGTH = 1e-6


@dataclass(frozen=True)
class Consensus:
    """The cluster of every micro-cluster, how certain it is, and the levels."""

    labels: IntArray  # 0, 1, ... without gaps
    certainty: FloatArray  # in [0, 1]
    levels: Levels


def find_consensus(
    micro: MicroClusters, n_clusters: int, rng: np.random.Generator, *, own: bool = False, starts: int = STARTS
) -> Consensus:
    """Fuse standardised micro-clusters into `n_clusters`, no more than are distinct (fewer if some end with none)."""
    levels = draw_levels(micro, n_clusters, rng, own=own, starts=starts)
    labels, certainty = fuse_partitions(memberships_in(levels), micro.mass, n_clusters, rng)
    return Consensus(labels, certainty, best_of_each(levels))


def consent_to(
    micro: MicroClusters, labels: IntArray, rng: np.random.Generator, *, own: bool = False, starts: int = STARTS
) -> Consensus:
    """How far such mixtures agree with clusters that are known."""
    levels = draw_levels(micro, int(labels.max()) + 1, rng, own=own, starts=starts)
    certainty = co_membership(stack(memberships_in(levels)), micro.mass, labels)
    return Consensus(labels, certainty, best_of_each(levels))


def draw_levels(
    micro: MicroClusters, n_clusters: int, rng: np.random.Generator, *, own: bool, starts: int
) -> list[list[Mixture]]:
    """Mixtures of several granularities, from fine to coarse."""
    counts = sorted({min(factor * n_clusters, micro.distinct) for factor in GRANULARITIES}, reverse=True)
    # Nobody knows how far correlations can be trusted: from hardly to nearly fully.
    trusts = (np.arange(starts) + 0.5) / starts
    return [[draw_mixture(micro, count, own, float(trust), rng) for trust in trusts] for count in counts]


def memberships_in(levels: Sequence[Sequence[Mixture]]) -> list[FloatArray]:
    """Of all mixtures."""
    return [mixture.memberships for level in levels for mixture in level]


def draw_mixture(micro: MicroClusters, n_clusters: int, own: bool, trust: float, rng: np.random.Generator) -> Mixture:
    """A mixture from a random start."""
    start = random_start(start_points(micro, trust), micro.mass, n_clusters, rng)
    return fit_mixture(micro, start, own=own, trust=trust)


def fuse_partitions(
    memberships: Sequence[FloatArray], mass: FloatArray, n_clusters: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """The clusters that partitions agree on, and how far they agree; `memberships` are micro-clusters x clusters."""
    partitions = stack(memberships)
    labels = cut(embed(partitions, mass, n_clusters, rng), mass, n_clusters, rng)
    return labels, co_membership(partitions, mass, labels)


def stack(memberships: Sequence[FloatArray]) -> "scipy.sparse.csr_array":
    """All memberships side by side, scaled so that H H' is the co-association."""
    columns = [scipy.sparse.csr_array(np.where(those < NEGLIGIBLE, 0.0, those)) for those in memberships]
    return scipy.sparse.csr_array(scipy.sparse.hstack(columns) / np.sqrt(len(memberships)))


def embed(
    partitions: "scipy.sparse.csr_array", mass: FloatArray, n_clusters: int, rng: np.random.Generator
) -> FloatArray:
    """Leading eigenvectors of the co-association H H', normalised by degree and mass; every row is made unit length.

    They are the left singular vectors of D^(-1/2) H, so the co-association itself is never made.
    """
    from sklearn.utils.extmath import randomized_svd  # noqa: PLC0415 (a site need not wait for it)

    degree = partitions @ (partitions.T @ mass)
    scaled = scipy.sparse.csr_array(partitions * np.sqrt(mass / degree)[:, None])
    n_components = min(n_clusters, *scaled.shape)
    vectors, strength, _ = randomized_svd(scaled, n_components, random_state=int(rng.integers(2**31)))
    vectors = vectors[:, strength > NO_STRENGTH]
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.around(vectors / np.where(length > 0.0, length, 1.0), DECIMALS))


def cut(points: FloatArray, mass: FloatArray, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """K-means by mass; labels are numbered 0, 1, ... by first appearance."""
    from sklearn.cluster import KMeans  # noqa: PLC0415 (as above)

    n_clusters = min(n_clusters, len(np.unique(points, axis=0)))
    k_means = KMeans(n_clusters, n_init=K_MEANS_STARTS, random_state=int(rng.integers(2**31)))
    _, first, labels = np.unique(
        k_means.fit_predict(points, sample_weight=mass), return_index=True, return_inverse=True
    )
    return first.argsort().argsort()[labels]


def co_membership(partitions: "scipy.sparse.csr_array", mass: FloatArray, labels: IntArray) -> FloatArray:
    """The share of every micro-cluster's co-association that is with its own cluster: 1 where all mixtures agree."""
    mine = scipy.sparse.csr_array((mass, (np.arange(len(labels)), labels)))
    with_each = (partitions @ (partitions.T @ mine)).toarray()
    return np.asarray(with_each[np.arange(len(labels)), labels] / with_each.sum(axis=1))


def best_of_each(levels: Sequence[Sequence[Mixture]]) -> Levels:
    """For people to look at: of every granularity the mixture that fits best, from fine to coarse."""
    best = [max(level, key=lambda mixture: mixture.log_likelihood).labels for level in levels]
    best.sort(key=lambda labels: -labels.max())  # a fine mixture may have lost more of its clusters than a coarse one
    return Levels(np.column_stack(best), tuple(int(labels.max()) + 1 for labels in best))
