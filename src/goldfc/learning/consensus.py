"""Consensus: many mixtures at several granularities, and the clusters that most of them agree on.

1. Fit mixtures with k, 1.5 k, 2 k and 3 k clusters, from a dozen random starts each. Nobody knows how far the
   correlations of features can be trusted, so every start draws that at random.
2. Two micro-clusters are as close as the mixtures put them together often: their co-association.
3. Embed the micro-clusters by the leading eigenvectors of the co-association, by mass, and cut by k-means into k.

How much of a micro-cluster's co-association is with its own cluster says how certain its label is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, hstack
from sklearn.cluster import KMeans
from sklearn.utils.extmath import randomized_svd

from goldfc._types import FloatArray, IntArray
from goldfc.errors import TooFewMicroClusters
from goldfc.learning.granularity import Levels
from goldfc.learning.mixture import MicroClusters, Mixture, fit_mixture, random_start, standardized

GRANULARITIES = (1.0, 1.5, 2.0, 3.0)
STARTS = 12
# Memberships below this are left out: there are few others, so that partitions of many micro-clusters stay small.
NEGLIGIBLE = 1e-3
K_MEANS_STARTS = 10


@dataclass(frozen=True)
class Fused:
    """What a fusion gives: the cluster of every micro-cluster, how certain it is, and the levels it was made from."""

    labels: IntArray  # 0, 1, ... without gaps
    certainty: FloatArray  # in [0, 1]
    levels: Levels


def find_consensus(
    micro: MicroClusters,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    granularities: Sequence[float] = GRANULARITIES,
    starts: int = STARTS,
) -> Fused:
    """Fuse micro-clusters into `n_clusters` (fewer if some end up with none)."""
    levels = fit_levels(micro, n_clusters, rng, granularities=granularities, starts=starts)
    memberships = [mixture.memberships for level in levels for mixture in level]
    labels, certainty = fuse_partitions(memberships, micro.mass, n_clusters, rng)
    return Fused(labels, certainty, best_of_each(levels))


def fit_levels(
    micro: MicroClusters,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    granularities: Sequence[float],
    starts: int,
    trust: tuple[float, float] = (0.0, 1.0),
) -> list[list[Mixture]]:
    """Mixtures from several starts at every granularity, from fine to coarse.

    Nobody knows how far correlations can be trusted: every start draws that from the range `trust`.
    """
    most = micro.distinct
    if most < n_clusters:
        raise TooFewMicroClusters(
            f"{n_clusters} clusters were asked for, but only {most} different micro-clusters were sent; "
            f"ask for at most {most}, or bring more rows or clients."
        )
    counts = sorted({min(round(factor * n_clusters), most) for factor in granularities}, reverse=True)
    unit = standardized(micro)[0]
    return [[draw_mixture(unit, count, rng.uniform(*trust), rng) for _ in range(starts)] for count in counts]


def draw_mixture(micro: MicroClusters, n_clusters: int, trust: float, rng: np.random.Generator) -> Mixture:
    """A mixture from a random start."""
    return fit_mixture(micro, random_start(micro, n_clusters, trust, rng), trust)


def fuse_partitions(
    memberships: Sequence[FloatArray], mass: FloatArray, n_clusters: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """The clusters that partitions agree on, and how far they agree; `memberships` are micro-clusters x clusters."""
    partitions = stack(memberships)
    labels = cut(embed(partitions, mass, n_clusters, rng), mass, n_clusters, rng)
    return labels, agreement(partitions, mass, labels)


def stack(memberships: Sequence[FloatArray]) -> csr_array:
    """All memberships side by side, scaled so that H H' is the co-association."""
    columns = [csr_array(np.where(those < NEGLIGIBLE, 0.0, those)) for those in memberships]
    return csr_array(hstack(columns) / np.sqrt(len(memberships)))


def embed(partitions: csr_array, mass: FloatArray, n_clusters: int, rng: np.random.Generator) -> FloatArray:
    """Leading eigenvectors of the co-association H H', normalised by degree and mass; every row is made unit length.

    They are the left singular vectors of D^(-1/2) H, so the co-association itself is never made.
    """
    degree = partitions @ (partitions.T @ mass)
    scaled = csr_array(partitions * np.sqrt(mass / degree)[:, None])
    n_components = min(n_clusters, *scaled.shape)
    vectors, _, _ = randomized_svd(scaled, n_components, random_state=int(rng.integers(2**31)))
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0.0, length, 1.0))


def cut(points: FloatArray, mass: FloatArray, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """K-means by mass; labels are numbered 0, 1, ... without gaps."""
    n_clusters = min(n_clusters, len(np.unique(points, axis=0)))
    k_means = KMeans(n_clusters, n_init=K_MEANS_STARTS, random_state=int(rng.integers(2**31)))
    labels = k_means.fit_predict(points, sample_weight=mass)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def agreement(partitions: csr_array, mass: FloatArray, labels: IntArray) -> FloatArray:
    """The share of every micro-cluster's co-association that is with its own cluster: 1 where all mixtures agree."""
    mine = csr_array((mass, (np.arange(len(labels)), labels)))
    with_each = (partitions @ (partitions.T @ mine)).toarray()
    return np.asarray(with_each[np.arange(len(labels)), labels] / with_each.sum(axis=1))


def best_of_each(levels: Sequence[Sequence[Mixture]]) -> Levels:
    """For people to look at: of every granularity the mixture that fits best, from fine to coarse."""
    best = [max(level, key=lambda mixture: mixture.log_likelihood).labels for level in levels]
    best.sort(key=lambda labels: -labels.max())  # a fine mixture may have lost more of its clusters than a coarse one
    return Levels(np.column_stack(best), tuple(int(labels.max()) + 1 for labels in best))
