"""Fewer, larger clusters: merge those whose merging costs least (Ward's rule, by mass)."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from goldfc._types import FloatArray, IntArray
from goldfc.learning import _fusion_kernels, compilation


@dataclass(frozen=True)
class Tree:
    """All merges of `leaves` clusters into one, the cheapest first."""

    leaves: int
    merges: IntArray  # (leaves - 1, 2)

    def cut(self, n_clusters: int) -> IntArray:
        """For every leaf, which of `n_clusters` it is part of; numbered 0, 1, ... by first appearance."""
        made = self.merges[: max(self.leaves - n_clusters, 0)]
        links = coo_array((np.ones(len(made)), (made[:, 0], made[:, 1])), shape=(self.leaves, self.leaves))
        return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)


def grow_tree(centroids: FloatArray, mass: FloatArray) -> Tree:
    """Ward's tree. Time grows with the square of the number of clusters; memory does not."""
    n = len(centroids)
    pairs, costs = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1)
    compilation.announce(compilation.FUSION)
    _fusion_kernels.ward_merges(np.array(centroids.T, order="C"), np.array(mass, dtype=np.float64), pairs, costs)
    # A parent costs no less than its children and comes after them, so the cheapest merges are whole branches.
    return Tree(n, pairs[np.argsort(costs, kind="stable")])


def thin(centroids: FloatArray, mass: FloatArray, limit: int) -> IntArray:
    """For every cluster, which of at most `limit` it becomes part of."""
    if len(centroids) <= limit:
        return np.arange(len(centroids), dtype=np.int64)
    return grow_tree(centroids, mass).cut(limit)
