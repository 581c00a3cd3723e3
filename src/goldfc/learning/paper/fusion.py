"""REMC: the levels become features, and the rows are clustered by them into the k asked for (Eqs. 23-29).

Rows here are the uploaded micro-centroids. A level is a categorical feature; the clustering is k-modes in which every
cluster learns how much each level matters to it.
"""

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.errors import TooFewMicroClusters
from goldfc.learning.levels import Levels
from goldfc.learning.paper import _fusion_kernels
from goldfc.learning.paper.importance import DECIMALS_OF_H

MAX_ROUNDS = 30


def fuse_levels(levels: Levels, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """REMC: one label per row, numbered 0, 1, ... without gaps; fewer than asked for if some lose all their rows."""
    codes = encode(levels)
    modes = draw_modes(codes, n_clusters, rng)
    weights = np.full(modes.shape, 1.0 / len(levels))
    labels = np.full(len(codes), -1, dtype=np.int64)
    for _ in range(MAX_ROUNDS):
        if _fusion_kernels.best_matches(codes, modes, weights, labels) == 0:
            break
        size = np.bincount(labels, minlength=n_clusters)
        counts = [count_values(level, labels, n_clusters) for level in codes.T]
        occupied = (size > 0)[:, None]
        modes = np.where(occupied, np.column_stack([count.argmax(axis=1) for count in counts]), modes)
        weights = np.where(occupied, level_weights(counts, size), weights)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def encode(levels: Levels) -> IntArray:
    """Eq. (23). Feature delta of a row is the number of its cluster at level delta."""
    return np.ascontiguousarray(levels.labels)


def draw_modes(codes: IntArray, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """Draw rows at random until `n_clusters` different codes are found: common codes come first more often."""
    order = rng.permutation(len(codes))
    first_seen = np.sort(np.unique(codes[order], axis=0, return_index=True)[1])
    if len(first_seen) < n_clusters:
        raise TooFewMicroClusters(
            f"{n_clusters} clusters were asked for, but the levels of granularity tell only {len(first_seen)} kinds of "
            f"micro-clusters apart among the {len(codes)} that were sent; ask for at most {len(first_seen)}, "
            "try another seed, or bring more rows or sites.",
            "too-few-micro-clusters",
        )
    return codes[order[first_seen[:n_clusters]]]


def count_values(level: IntArray, labels: IntArray, n_clusters: int) -> FloatArray:
    """Eq. (28). How many rows of each cluster (down) have each value of a level (across)."""
    counts = np.zeros((n_clusters, level.max() + 1))
    np.add.at(counts, (labels, level), 1.0)
    return counts


def level_distinctness(count: FloatArray, size: IntArray) -> FloatArray:
    """Eq. (26). alpha: Hellinger-like distance of a level's values inside and outside every cluster."""
    inside = count / np.maximum(size, 1)[:, None]
    outside = (count.sum(axis=0) - count) / np.maximum(size.sum() - size, 1)[:, None]
    return np.asarray(np.sqrt(0.5 * ((inside - outside) ** 2).sum(axis=1)))


def level_agreement(count: FloatArray, size: IntArray) -> FloatArray:
    """Eq. (27). beta: the mean, over a cluster's rows, of the share of the cluster that has the row's value.

    count_t rows have value t, and for each of them that share is count_t / size: the mean is sum_t (count_t / size)^2.
    """
    return np.asarray(((count / np.maximum(size, 1)[:, None]) ** 2).sum(axis=1))


def level_weights(counts: list[FloatArray], size: IntArray) -> FloatArray:
    """Eq. (29). u = alpha beta, scaled to sum to one over the levels (clusters x levels); all zero: all the same."""
    product = np.column_stack([level_distinctness(count, size) * level_agreement(count, size) for count in counts])
    total = product.sum(axis=1, keepdims=True)
    weights: FloatArray = np.where(total > 0.0, product / np.where(total > 0.0, total, 1.0), 1.0 / len(counts))
    # Rounded like h, so that ties do not hang on summation order.
    return np.around(weights, DECIMALS_OF_H)


def level_matches(levels: Levels, labels: IntArray) -> FloatArray:
    """For every row, the share of levels at which it has the value that most of its cluster have."""
    n_clusters = int(labels.max()) + 1
    modes = np.column_stack([count_values(level, labels, n_clusters).argmax(axis=1) for level in levels.labels.T])
    return np.asarray((levels.labels == modes[labels]).mean(axis=1))
