"""Every compiled function, and nothing else.

Arrays are float64 and int64; there is no randomness and no validation here. Candidate clusters are kept
feature-major (one row per feature, one column per cluster), so that the loop over clusters, the hot one, runs
over neighbouring memory. Floating-point operations keep their written order (no fastmath): the same rows give
the same winners for every number of threads.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

import numba
import numpy as np

from goldfc._types import FloatArray, IntArray, RowLabels

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile on first call, remember on disk, and let go of the interpreter lock while running."""
    try:
        return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # nowhere to write: a read-only container compiles in every process instead
        return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))


class Clusters(NamedTuple):
    """The candidate clusters of one competition; column j is cluster j, columns from `count` on are unused."""

    centroid: FloatArray  # (features, candidates)  c, the mean of the members
    importance: FloatArray  # (features, candidates)  h, sums to one over the features
    size: IntArray  # (candidates,)  members
    mass: FloatArray  # (candidates,)  of the members; their number, where every row has a mass of one
    wins: FloatArray  # (candidates,)  g
    weight: FloatArray  # (candidates,)  the raw weight, script W
    standing: FloatArray  # (candidates,)  log(w * gamma) when last refreshed; minus infinity once out


# Clusters are compared in tiles, so that the distances of one tile stay in the first-level cache.
TILE = 512
# After so many rows, every cluster's standing is brought up to date.
ROWS_BETWEEN_REFRESHES = 256
# What rounding may add to a score, relative to its magnitude; far above what it does add.
ROUNDING = 1e-12


@compiled
def log_weight(raw_weight: float) -> float:
    """Eq. (15). log w, with w = 1 / (1 + exp(5 - 10 W)), for any W without overflow.

    Note: the paper prints 1 / (1 + exp(-10 (W + 5))), which never leaves 1 for the W that learning reaches.
    """
    t = 5.0 - 10.0 * raw_weight
    return float(-(max(t, 0.0) + np.log1p(np.exp(-abs(t)))))


@compiled
def log_gamma(wins: float, all_wins: float) -> float:
    """Eq. (10). log gamma, the handicap of a cluster that has already won often."""
    return float(np.log(1.0 - wins / all_wins))


@compiled
def weighted_distances(x: FloatArray, clusters: Clusters, low: int, high: int, out: FloatArray) -> None:
    """Eq. (8). D of one row to the clusters low..high: the sum of h (x - c)^2 over the features.

    Note: the paper calls a distance "similarity" and maximises it; what works is s = exp(-D / 2), as in (22).
    """
    out[: high - low] = 0.0
    for m in range(x.shape[0]):
        value = x[m]
        centroid = clusters.centroid[m, low:high]
        importance = clusters.importance[m, low:high]
        for j in range(high - low):
            difference = value - centroid[j]
            out[j] += importance[j] * difference * difference


@compiled
def _standing(clusters: Clusters, j: int, all_wins: float) -> float:
    """The part of a cluster's log score that does not depend on the row: log(w gamma)."""
    return log_weight(clusters.weight[j]) + log_gamma(clusters.wins[j], all_wins)


@compiled
def _refresh(clusters: Clusters, count: int, all_wins: float) -> float:
    """Bring every standing up to date; the answer is the largest number of wins."""
    most_wins = 0.0
    for j in range(count):
        if clusters.size[j] > 0:
            clusters.standing[j] = _standing(clusters, j, all_wins)
            most_wins = max(most_wins, clusters.wins[j])
        else:
            clusters.standing[j] = -np.inf
    return most_wins


@compiled
def _leaders(x: FloatArray, clusters: Clusters, count: int, distances: FloatArray) -> tuple[int, int, float, float]:
    """The two clusters that lead by their standings of a moment ago, and the second and third best log score."""
    first, second, third = -np.inf, -np.inf, -np.inf
    leader, follower = -1, -1
    for low in range(0, count, TILE):
        high = min(low + TILE, count)
        out = distances[low:high]
        weighted_distances(x, clusters, low, high, out)
        standing = clusters.standing[low:high]
        for j in range(high - low):
            score = standing[j] - 0.5 * out[j]
            if score <= third:  # nearly always, so it is asked first
                continue
            if score > first:
                first, second, third = score, first, second
                leader, follower = low + j, leader
            elif score > second:
                second, third = score, second
                follower = low + j
            else:
                third = score
    return leader, follower, second, third


@compiled
def winner_and_rival(
    x: FloatArray, clusters: Clusters, count: int, all_wins: float, slack: float, distances: FloatArray
) -> tuple[int, int, float]:
    """Eqs. (9), (12). The best and the second best cluster for a row, and the ratio of their scores.

    Of equal scores the lower number wins. gamma changes for every cluster with every row, but only a little, and only
    upwards for those that did not win. So clusters are ranked by their standing of a moment ago, which is too low by
    at most `slack`, and only those close enough to the top to matter are compared exactly.
    """
    leader, follower, second, third = _leaders(x, clusters, count, distances)
    if follower < 0:
        return leader, follower, 0.0
    threshold = second - (slack + ROUNDING * (1.0 + abs(second)))
    start, stop, step = min(leader, follower), max(leader, follower) + 1, abs(leader - follower)
    if third >= threshold:
        start, stop, step = 0, count, 1
    first, second = -np.inf, -np.inf
    winner, rival = -1, -1
    for j in range(start, stop, step):
        if clusters.standing[j] - 0.5 * distances[j] >= threshold:
            score = _standing(clusters, j, all_wins) - 0.5 * distances[j]
            if score > first:
                first, second = score, first
                winner, rival = j, winner
            elif score > second:
                second = score
                rival = j
    return winner, rival, float(np.exp(second - first))


@compiled
def _join(x: FloatArray, mass: float, clusters: Clusters, j: int) -> None:
    clusters.size[j] += 1
    clusters.mass[j] += mass
    for m in range(x.shape[0]):
        clusters.centroid[m, j] += mass * (x[m] - clusters.centroid[m, j]) / clusters.mass[j]


@compiled
def _leave(x: FloatArray, mass: float, clusters: Clusters, j: int) -> None:
    clusters.size[j] -= 1
    clusters.mass[j] -= mass
    if clusters.size[j] == 0:
        clusters.standing[j] = -np.inf
        return
    for m in range(x.shape[0]):
        clusters.centroid[m, j] -= mass * (x[m] - clusters.centroid[m, j]) / clusters.mass[j]


@compiled
def reward_and_penalise(clusters: Clusters, winner: int, rival: int, mass: float, rate: float, ratio: float) -> None:
    """Eqs. (11), (13), (14). The winner gains a win and weight; the rival loses weight by how close it came.

    A row of mass two counts as two rows that come at once.
    """
    clusters.wins[winner] += mass
    clusters.weight[winner] += mass * rate
    if rival >= 0:
        clusters.weight[rival] -= mass * rate * ratio


@compiled
def compact(clusters: Clusters, count: int, labels: IntArray, smallest: int) -> int:
    """Take out the clusters with fewer than `smallest` members; their rows become unassigned (-1).

    The order of those that stay is kept, because the lower number wins a tie.
    """
    new_number = np.full(count, -1, dtype=np.int64)
    kept = 0
    for j in range(count):
        if clusters.size[j] >= smallest:
            new_number[j] = kept
            if kept < j:
                clusters.centroid[:, kept] = clusters.centroid[:, j]
                clusters.importance[:, kept] = clusters.importance[:, j]
                clusters.size[kept] = clusters.size[j]
                clusters.mass[kept] = clusters.mass[j]
                clusters.wins[kept] = clusters.wins[j]
                clusters.weight[kept] = clusters.weight[j]
                clusters.standing[kept] = clusters.standing[j]
            kept += 1
    for i in range(labels.shape[0]):
        if labels[i] >= 0:
            labels[i] = new_number[labels[i]]
    return kept


@compiled
def epoch(
    X: FloatArray, mass: FloatArray, labels: IntArray, clusters: Clusters, count: int, all_wins: float, rate: float
) -> tuple[int, int]:
    """Let the clusters compete once for every row, in order; the answer is (rows that moved, clusters left)."""
    distances = np.empty(count)
    moved = 0
    out = 0
    most_wins, refreshed_at = 0.0, 0.0
    for i in range(X.shape[0]):
        x = X[i]
        winner, rival, ratio = 0, -1, 0.0
        if i % ROWS_BETWEEN_REFRESHES == 0 and out * 8 > count:
            count = compact(clusters, count, labels, 1)
            out = 0
        if count > 1:
            # The bound on how stale a standing is holds while nobody has half of all wins.
            if i % ROWS_BETWEEN_REFRESHES == 0 or 2.0 * most_wins > refreshed_at:
                most_wins = _refresh(clusters, count, all_wins)
                refreshed_at = all_wins
            slack = log_gamma(most_wins, all_wins) - log_gamma(most_wins, refreshed_at)
            winner, rival, ratio = winner_and_rival(x, clusters, count, all_wins, slack, distances)
        reward_and_penalise(clusters, winner, rival, mass[i], rate, ratio)
        all_wins += mass[i]
        most_wins = max(most_wins, clusters.wins[winner])
        clusters.standing[winner] = _standing(clusters, winner, all_wins)
        if rival >= 0:
            clusters.standing[rival] = _standing(clusters, rival, all_wins)
        before = labels[i]
        if before != winner:
            _join(x, mass[i], clusters, winner)
            if before >= 0:
                _leave(x, mass[i], clusters, before)
                out += clusters.size[before] == 0
            labels[i] = winner
            moved += 1
    return moved, compact(clusters, count, labels, 1)


@compiled
def inside_moments(X: FloatArray, mass: FloatArray, labels: IntArray, mean: FloatArray, squares: FloatArray) -> None:
    """Mean and sum of squared differences of every cluster's members, per feature (features x clusters).

    Welford's recurrence: a cluster of equal values gets exactly that value and exactly zero.
    """
    mean[:] = 0.0
    squares[:] = 0.0
    total = np.zeros(mean.shape[1])
    for i in range(X.shape[0]):
        j = labels[i]
        if j >= 0:
            total[j] += mass[i]
            for m in range(X.shape[1]):
                difference = X[i, m] - mean[m, j]
                mean[m, j] += mass[i] * difference / total[j]
                squares[m, j] += mass[i] * difference * (X[i, m] - mean[m, j])


@compiled
def sum_of_closeness(X: FloatArray, mass: FloatArray, labels: IntArray, mean: FloatArray, total: FloatArray) -> None:
    """Sum over every cluster's members of exp(-(x - c)^2 / 2), per feature (features x clusters)."""
    total[:] = 0.0
    for i in range(X.shape[0]):
        j = labels[i]
        if j >= 0:
            for m in range(X.shape[1]):
                difference = X[i, m] - mean[m, j]
                total[m, j] += mass[i] * np.exp(-0.5 * difference * difference)


@compiled
def normalised_similarity(x: FloatArray, clusters: Clusters, own: int, distances: FloatArray) -> float:
    """Eq. (22). exp(-D / 2) of a row to its own cluster, as a share of the sum over all clusters."""
    count = distances.shape[0]
    weighted_distances(x, clusters, 0, count, distances)
    nearest = distances[0]
    for j in range(1, count):
        nearest = min(nearest, distances[j])
    total = 0.0
    for j in range(count):
        total += np.exp(-0.5 * (distances[j] - nearest))
    return float(np.exp(-0.5 * (distances[own] - nearest)) / total)


@compiled
def objective(X: FloatArray, mass: FloatArray, labels: IntArray, clusters: Clusters, count: int) -> float:
    """Eq. (6). P, the sum over all rows of the similarity to their own cluster."""
    distances = np.empty(count)
    total = 0.0
    for i in range(X.shape[0]):
        total += mass[i] * normalised_similarity(X[i], clusters, labels[i], distances)
    return total


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
def cost_of_merging(centroid: FloatArray, mass: FloatArray, a: int, b: int) -> float:
    """Ward's cost: by how much the scatter around centroids grows when two clusters become one."""
    distance = 0.0
    for m in range(centroid.shape[1]):
        difference = centroid[a, m] - centroid[b, m]
        distance += difference * difference
    return float(mass[a] * mass[b] / (mass[a] + mass[b]) * distance)


@compiled
def cheapest_partner(centroid: FloatArray, mass: FloatArray, alive: IntArray, a: int, before: int) -> tuple[int, float]:
    """Whom cluster a merges with at the least cost; of equals `before` (if not -1), then the lowest number."""
    best, least = before, np.inf
    if before >= 0:
        least = cost_of_merging(centroid, mass, a, before)
    for b in range(centroid.shape[0]):
        if alive[b] and b != a:
            cost = cost_of_merging(centroid, mass, a, b)
            if cost < least:
                best, least = b, cost
    return best, least


@compiled
def ward_merges(centroid: FloatArray, mass: FloatArray, pairs: IntArray, costs: FloatArray) -> None:
    """All merges of Ward's tree, children before parents; merged clusters keep the lower number of the pair.

    A chain of ever cheaper partners ends in two that are each other's cheapest. They can be merged at once, whatever
    happens elsewhere, because no merge brings a third cluster closer to either. Only centroids and masses are kept,
    never a matrix of distances; both are overwritten.
    """
    n = centroid.shape[0]
    alive = np.ones(n, dtype=np.int64)
    chain = np.empty(n, dtype=np.int64)
    length, first = 0, 0
    for step in range(n - 1):
        if length == 0:
            while not alive[first]:
                first += 1
            chain[0], length = first, 1
        while True:
            before = chain[length - 2] if length > 1 else -1
            partner, cost = cheapest_partner(centroid, mass, alive, chain[length - 1], before)
            if partner == before:
                break
            chain[length] = partner
            length += 1
        low, high = min(chain[length - 1], before), max(chain[length - 1], before)
        share = mass[high] / (mass[low] + mass[high])
        for m in range(centroid.shape[1]):
            centroid[low, m] += share * (centroid[high, m] - centroid[low, m])
        mass[low] += mass[high]
        alive[high] = 0
        pairs[step, 0], pairs[step, 1], costs[step] = low, high, cost
        length -= 2


@compiled
def nearest(X: FloatArray, middle: FloatArray, centroid: FloatArray, half_norm: FloatArray, labels: RowLabels) -> None:
    """For every row the centroid with the largest x c - c^2 / 2, both taken from the middle; of equals the lowest."""
    score = np.empty(half_norm.shape[0])
    for i in range(X.shape[0]):
        for j in range(score.shape[0]):
            score[j] = -half_norm[j]
        for m in range(X.shape[1]):
            value = X[i, m] - middle[m]
            column = centroid[m]
            for j in range(score.shape[0]):
                score[j] += value * column[j]
        best = 0
        for j in range(1, score.shape[0]):
            if score[j] > score[best]:
                best = j
        labels[i] = best
