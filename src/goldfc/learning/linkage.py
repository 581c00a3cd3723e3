"""Linkage: clusters of any form, where there are gaps between them.

Micro-clusters are joined along their minimum spanning tree, the nearest first; while clusters grow too unequal, the
smallest must be joined next (Genie: Gagolewski, Bartoszuk, Cena 2016). How far to believe the result is said by its
gaps: of every cluster, how far it is to the nearest micro-cluster outside, in the longest step that holds it together.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from goldfc._types import FloatArray, IntArray

# The Gini index of the clusters' masses above which the smallest must be joined next.
LIMITS = (0.3, 0.1, 0.5)
# A step holds a cluster together if without it at least this share of the cluster would be cut off.
CUT_OFF = 0.2
# A gap of so many steps is as clear as can be.
CLEAR = 2.0
# Of a cluster that is a single micro-cluster nobody knows whether its gap is large.
ALONE = 0.5


@dataclass(frozen=True)
class SpanningTree:
    """The shortest edges that connect all points; edge t leads from a point that earlier ones reach to a new one."""

    edges: IntArray  # (points - 1, 2)
    length: FloatArray  # (points - 1,)


def spanning_tree(points: FloatArray) -> SpanningTree:
    """Prim: time grows with the square of the number of points, memory does not."""
    squares = np.einsum("ij,ij->i", points, points)
    outside, nearest = np.ones(len(points), dtype=bool), np.full(len(points), np.inf)
    source = np.zeros(len(points), dtype=np.int64)
    edges, length = np.empty((len(points) - 1, 2), dtype=np.int64), np.empty(len(points) - 1)
    new = 0
    for number in range(len(points) - 1):
        outside[new], nearest[new] = False, np.inf
        distance = squares + (squares[new] - 2.0 * (points @ points[new]))
        closer = outside & (distance < nearest)
        nearest[closer], source[closer] = distance[closer], new
        new = int(nearest.argmin())
        edges[number], length[number] = (source[new], new), nearest[new]
    return SpanningTree(edges, np.sqrt(np.maximum(length, 0.0)))


@dataclass(frozen=True)
class Linkage:
    """All points joined into ever fewer clusters: which edges of the tree, in this order."""

    tree: SpanningTree
    order: IntArray

    def cut(self, n_clusters: int) -> IntArray:
        """For every point, which of `n_clusters` it is part of; numbered 0, 1, ... by first appearance."""
        n_points = len(self.order) + 1
        joined = self.tree.edges[self.order[: max(n_points - n_clusters, 0)]]
        links = scipy.sparse.coo_array((np.ones(len(joined)), (joined[:, 0], joined[:, 1])), shape=(n_points, n_points))
        return np.asarray(scipy.sparse.csgraph.connected_components(links, directed=False)[1], dtype=np.int64)


def link(tree: SpanningTree, mass: FloatArray, limit: float) -> Linkage:
    """Join along the tree; while the Gini index of the clusters' masses is above `limit`, the smallest first."""
    shortest = np.argsort(tree.length, kind="stable")
    one, other = tree.edges[shortest].T
    cluster, size, sizes = np.arange(len(mass)), mass.astype(np.float64), Ascending(mass)
    waiting, order = np.ones(len(shortest), dtype=bool), np.empty(len(shortest), dtype=np.int64)
    for number in range(len(order)):
        choice = waiting
        if sizes.gini() > limit:
            choice = waiting & (np.minimum(size[cluster[one]], size[cluster[other]]) <= sizes.smallest)
        edge = int(choice.argmax())
        goes, stays = cluster[one[edge]], cluster[other[edge]]
        sizes.remove(size[goes])
        sizes.remove(size[stays])
        size[stays] += size[goes]
        sizes.add(size[stays])
        cluster[cluster == goes] = stays
        waiting[edge], order[number] = False, shortest[edge]
    return Linkage(tree, order)


class Ascending:
    """Numbers in ascending order, of which some go and some come."""

    def __init__(self, values: FloatArray) -> None:
        self._values = np.sort(values).astype(np.float64)
        self._count = len(values)
        self._total = float(values.sum())
        self._twice_rank = 2.0 * np.arange(1.0, len(values) + 1.0)

    @property
    def smallest(self) -> float:
        """The first."""
        return float(self._values[0])

    def remove(self, value: float) -> None:
        """Take one out."""
        place = self._values[: self._count].searchsorted(value)
        self._values[place : self._count - 1] = self._values[place + 1 : self._count]
        self._count -= 1

    def add(self, value: float) -> None:
        """Put one in, the sum of two that went."""
        place = self._values[: self._count].searchsorted(value)
        self._values[place + 1 : self._count + 1] = self._values[place : self._count]
        self._values[place] = value
        self._count += 1

    def gini(self) -> float:
        """How unequal they are, from 0 (all the same) to 1 (one has everything)."""
        count = self._count
        if count < 2:
            return 0.0
        ranked = float(self._twice_rank[:count] @ self._values[:count])
        return (ranked - (count + 1.0) * self._total) / ((count - 1.0) * self._total)


def evenness(mass: FloatArray, labels: IntArray) -> float:
    """How even clusters are, from 0 to 1: the effective number of clusters (the exponential of the entropy) of all."""
    share = np.bincount(labels, weights=mass) / mass.sum()
    return float(np.exp(-(share * np.log(share)).sum()) / len(share))


# --- gaps ---


def gap_of_linkage(tree: SpanningTree, mass: FloatArray, labels: IntArray) -> float:
    """How clearly clusters that hang together in the tree are apart, from 0 to 1.

    The shortest way out of any set of points, and of a part of the tree its own tree, are edges of the whole tree.
    """
    one, other = labels[tree.edges].T
    steps = one == other
    weakest = weakest_steps(tree, mass, labels, steps)
    return mean_gap(ways_out(tree, labels), weakest, mass, labels)


def gap_of(points: FloatArray, tree: SpanningTree, mass: FloatArray, labels: IntArray) -> float:
    """The same for any partition of the points that the tree is of."""
    weakest = np.zeros(int(labels.max()) + 1)
    for cluster in range(len(weakest)):
        own = np.flatnonzero(labels == cluster)
        steps = np.ones(len(own) - 1, dtype=bool)
        weakest[cluster] = weakest_steps(spanning_tree(points[own]), mass[own], np.zeros_like(own), steps)[0]
    return mean_gap(ways_out(tree, labels), weakest, mass, labels)


def ways_out(tree: SpanningTree, labels: IntArray) -> FloatArray:
    """Of every cluster, how far it is to the nearest point outside."""
    one, other = labels[tree.edges].T
    crosses = one != other
    nearest = np.full(int(labels.max()) + 1, np.inf)
    for ends in (one, other):
        np.minimum.at(nearest, ends[crosses], tree.length[crosses])
    return nearest


def weakest_steps(tree: SpanningTree, mass: FloatArray, labels: IntArray, inner: np.ndarray) -> FloatArray:
    """Of every cluster the longest step that holds it together; of a single point infinite.

    Where every step cuts off little, the median of its steps.
    """
    whole = np.bincount(labels, weights=mass)
    beyond, behind = mass.astype(np.float64).tolist(), np.zeros(len(tree.length))
    for number in np.flatnonzero(inner)[::-1].tolist():
        source, new = tree.edges[number].tolist()
        behind[number] = beyond[new]
        beyond[source] += beyond[new]
    cluster = labels[tree.edges[:, 0]]
    holds = inner & (np.minimum(behind, whole[cluster] - behind) >= CUT_OFF * whole[cluster])
    longest = np.zeros(len(whole))
    np.maximum.at(longest, cluster[holds], tree.length[holds])
    for without in np.flatnonzero(longest == 0.0):
        steps = tree.length[inner & (cluster == without)]
        longest[without] = np.median(steps) if len(steps) else np.inf
    return longest


def mean_gap(nearest: FloatArray, weakest: FloatArray, mass: FloatArray, labels: IntArray) -> float:
    """The clusters' gaps, by mass, as shares of what is as clear as can be."""
    clear = CLEAR * weakest
    share = np.divide(nearest, clear, out=np.ones(len(nearest)), where=nearest < clear)
    share = np.where(np.isinf(weakest), ALONE / CLEAR, share)
    # By what is missing, so that rounding makes it neither more than 1 nor, where all are clear, less.
    return max(0.0, 1.0 - float((1.0 - share) @ np.bincount(labels, weights=mass) / mass.sum()))
