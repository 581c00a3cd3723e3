"""Ward's tree: clusters are merged whose merging costs least, by mass."""

from dataclasses import dataclass

import numpy as np
import scipy

from goldfc._types import FloatArray, IntArray


@dataclass(frozen=True)
class Tree:
    """All merges of `leaves` clusters into one, the cheapest first."""

    leaves: int
    merges: IntArray  # (leaves - 1, 2)

    def cut(self, n_clusters: int) -> IntArray:
        """For every leaf, which of `n_clusters` it is part of; numbered 0, 1, ... by first appearance."""
        made = self.merges[: max(self.leaves - n_clusters, 0)]
        links = scipy.sparse.coo_array((np.ones(len(made)), (made[:, 0], made[:, 1])), shape=(self.leaves, self.leaves))
        return np.asarray(scipy.sparse.csgraph.connected_components(links, directed=False)[1], dtype=np.int64)


def grow_tree(points: FloatArray, mass: FloatArray) -> Tree:
    """Nearest-neighbour chains: each cluster is followed to whom it would merge with at the least cost.

    Two that want each other are merged. Time grows with the square of the number of points; memory does not.
    """
    centre, weight, alive = points.copy(), mass.astype(np.float64), np.ones(len(points), dtype=bool)
    squares = np.einsum("ij,ij->i", points, points)
    merges, costs = np.empty((len(points) - 1, 2), dtype=np.int64), np.empty(len(points) - 1)
    chain: list[int] = []
    for number in range(len(points) - 1):
        if not chain:
            chain = [int(alive.argmax())]
        while True:
            one = chain[-1]
            apart = squares + (squares[one] - 2.0 * (centre @ centre[one]))
            cost = np.where(alive, apart * (weight * weight[one] / (weight + weight[one])), np.inf)
            cost[one] = np.inf
            other = int(cost.argmin())
            # Of equally near ones the one it came from, or it would go round in circles; they may be so up to rounding.
            if len(chain) > 1 and (cost[chain[-2]] <= cost[other] or other in chain):
                other = chain[-2]
                break
            chain.append(other)
        merges[number], costs[number] = (one, other), cost[other]
        del chain[-2:]
        total = weight[one] + weight[other]
        centre[other] = (weight[one] * centre[one] + weight[other] * centre[other]) / total
        weight[other], squares[other], alive[one] = total, centre[other] @ centre[other], False
    # A parent costs no less than its children and comes after them, so the cheapest merges are whole branches.
    return Tree(len(points), merges[np.argsort(costs, kind="stable")])
