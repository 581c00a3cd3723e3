"""The compiled part of the fusion: matching of encoded rows, and Ward's tree.

As in `_kernels`: float64 and int64, no randomness, no validation, operations in their written order.
"""

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning._kernels import compiled


@compiled
def best_matches(codes: IntArray, modes: IntArray, weights: FloatArray, labels: IntArray) -> int:
    """Eqs. (24), (25). Each encoded row joins the cluster whose mode it matches with the largest total weight.

    Of equal matches the lower number wins. The answer is how many labels changed.

    Note: the paper prints the 2-norm of the matched weights; the sum is what Eq. (24)'s source, weighted k-modes, uses.
    """
    changed = 0
    for i in range(codes.shape[0]):
        best, best_match = 0, -1.0
        for j in range(modes.shape[0]):
            match = 0.0
            for level in range(codes.shape[1]):
                if codes[i, level] == modes[j, level]:
                    match += weights[j, level]
            if match > best_match:
                best, best_match = j, match
        if labels[i] != best:
            labels[i] = best
            changed += 1
    return changed


@compiled
def costs_of_merging(centroid: FloatArray, mass: FloatArray, gone: FloatArray, a: int, cost: FloatArray) -> None:
    """Ward's cost of merging cluster a with each of the others: by how much the scatter around centroids grows.

    Infinite for itself and for those that are gone, of which there is infinity in `gone`, and zero of the others.
    """
    cost[:] = 0.0
    for m in range(centroid.shape[0]):
        column, own = centroid[m], centroid[m, a]
        for b in range(cost.shape[0]):
            difference = own - column[b]
            cost[b] += difference * difference
    own = mass[a]
    for b in range(cost.shape[0]):
        cost[b] = own * mass[b] / (own + mass[b]) * cost[b] + gone[b]
    cost[a] = np.inf


@compiled
def cheapest_partner(
    centroid: FloatArray, mass: FloatArray, gone: FloatArray, a: int, before: int, cost: FloatArray
) -> tuple[int, float]:
    """Whom cluster a merges with at the least cost; of equals `before` (if not -1), then the lowest number."""
    costs_of_merging(centroid, mass, gone, a, cost)
    best, least = before, cost[before] if before >= 0 else np.inf
    for b in range(cost.shape[0]):
        if cost[b] < least:
            best, least = b, cost[b]
    return best, least


@compiled
def ward_merges(centroid: FloatArray, mass: FloatArray, pairs: IntArray, costs: FloatArray) -> None:
    """All merges of Ward's tree, children before parents; merged clusters keep the lower number of the pair.

    A chain of ever cheaper partners ends in two that are each other's cheapest. They can be merged at once, whatever
    happens elsewhere, because no merge brings a third cluster closer to either. Only centroids (a column for each
    cluster, so that all others are gone through in neighbouring memory) and masses are kept, never a matrix of
    distances; both are overwritten.
    """
    n = centroid.shape[1]
    gone, cost = np.zeros(n), np.empty(n)
    chain = np.empty(n, dtype=np.int64)
    length, first = 0, 0
    for step in range(n - 1):
        if length == 0:
            while gone[first] > 0.0:
                first += 1
            chain[0], length = first, 1
        while True:
            before = chain[length - 2] if length > 1 else -1
            partner, least = cheapest_partner(centroid, mass, gone, chain[length - 1], before, cost)
            if partner == before:
                break
            chain[length] = partner
            length += 1
        low, high = min(chain[length - 1], before), max(chain[length - 1], before)
        share = mass[high] / (mass[low] + mass[high])
        for m in range(centroid.shape[0]):
            centroid[m, low] += share * (centroid[m, high] - centroid[m, low])
        mass[low] += mass[high]
        gone[high] = np.inf
        pairs[step, 0], pairs[step, 1], costs[step] = low, high, least
        length -= 2
