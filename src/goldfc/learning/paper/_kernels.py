"""The compiled part of the competition and of importance, and nothing else: the equations.

Arrays are float64 and int64; there is no randomness and no validation here. Floating-point operations that decide
anything keep their written order: the same rows give the same winners for every machine and number of threads.

`_screening` finds out cheaply which clusters are worth comparing, and `_epoch` has the loop over the rows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

try:
    import numba
except ImportError as error:
    raise ImportError("GOLD, the paper's method, needs a compiler: install goldfc[paper].") from error

from goldfc._types import FloatArray, IntArray

Function = TypeVar("Function", bound=Callable[..., object])

# For the screening, whose error bounds hold with and without fused multiply-add.
FUSED = {"fastmath": {"contract"}}
# For sums and maxima whose error bounds hold for any order; there are no NaNs, and a zero's sign does not matter.
IN_ANY_ORDER = {"fastmath": {"contract", "reassoc", "nnan", "nsz"}}
# Inside the loops over rows calls would cost more than what they do. And nothing is allocated there, so that there is
# no need to count references to arrays, which would cost as much as all the rest.
INLINE = {"forceinline": True, "_nrt": False}
# Who is never called from Python needs no way to be; that is most of the time that compilation would take.
INSIDE = {"cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(function: Function, **special: Any) -> Function:
    """Compile on first call, remember on disk, and let go of the interpreter lock while running."""
    options: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"} | special
    try:
        return cast(Function, numba.njit(**options)(function))
    except RuntimeError:  # nowhere to write: a read-only container compiles in every process instead
        return cast(Function, numba.njit(**(options | {"cache": False}))(function))


def equation(function: Function) -> Function:
    """Compile for use inside the loops over rows, and for being called from Python as well."""
    return compiled(function, **INLINE)


def inner(function: Function) -> Function:
    """Compile for use inside the loops over rows."""
    return compiled(function, **INSIDE, **INLINE)


def maker(function: Function) -> Function:
    """Compile for use before the loops over rows, where arrays are made."""
    return compiled(function, **INSIDE)


def fused(function: Function) -> Function:
    """Compile for use inside the loops over rows, with FUSED."""
    return compiled(function, **INSIDE, **INLINE, **FUSED)


def in_any_order(function: Function) -> Function:
    """Compile for use inside the loops over rows, with IN_ANY_ORDER."""
    return compiled(function, **INSIDE, **INLINE, **IN_ANY_ORDER)


class Rows(NamedTuple):
    """What is competed for."""

    X: FloatArray  # (rows, features)
    mass: FloatArray  # (rows,)
    centre: FloatArray  # (features,)  a point amidst the rows; any would do, but screening errs less around it
    moderate: bool  # whether single precision can hold the squares of what is left after subtracting the centre


class Candidates(NamedTuple):
    """The candidate clusters of one competition; row j is cluster j, rows from the current count on are unused."""

    centroid: FloatArray  # (candidates, features)  c, the mean of the members
    importance: FloatArray  # (candidates, features)  h, sums to one over the features
    size: IntArray  # (candidates,)  members
    mass: FloatArray  # (candidates,)  of the members; their number, where every row has a mass of one
    wins: FloatArray  # (candidates,)  g
    weight: FloatArray  # (candidates,)  the raw weight, script W
    log_weight: FloatArray  # (candidates,)  log w of that
    standing: FloatArray  # (candidates,)  log(w * gamma) when last refreshed; minus infinity once out


# --- the equations ---------------------------------------------------------------------------------------------------


@equation
def log_weight(raw_weight: float) -> float:
    """Eq. (15). log w, with w = 1 / (1 + exp(5 - 10 W)), for any W without overflow.

    Note: the paper prints 1 / (1 + exp(-10 (W + 5))), which never leaves 1 for the W that learning reaches.
    """
    t = 5.0 - 10.0 * raw_weight
    return float(-(max(t, 0.0) + np.log1p(np.exp(-abs(t)))))


@inner
def log_gamma(wins: float, all_wins: float) -> float:
    """Eq. (10). log gamma, the handicap of a cluster that has already won often."""
    return float(np.log(1.0 - wins / all_wins))


@equation
def weighted_distance(x: FloatArray, clusters: Candidates, j: int) -> float:
    """Eq. (8). D of a row to cluster j: the sum of h (x - c)^2 over the features.

    Note: the paper calls a distance "similarity" and maximises it; what works is s = exp(-D / 2), as in (22).
    """
    centroid, importance = clusters.centroid[j], clusters.importance[j]
    total = 0.0
    for m in range(x.shape[0]):
        difference = x[m] - centroid[m]
        total += importance[m] * difference * difference
    return total


@inner
def winner_and_rival(
    x: FloatArray, clusters: Candidates, candidates: IntArray, all_wins: float
) -> tuple[int, int, float]:
    """Eqs. (9), (12). The best and the second best of the candidates for a row, and the ratio of their scores.

    Of equal scores the lower number wins.
    """
    if candidates.shape[0] == 1:
        return candidates[0], -1, 0.0
    first, second = -np.inf, -np.inf
    winner, rival = -1, -1
    for j in candidates:
        score = clusters.log_weight[j] + log_gamma(clusters.wins[j], all_wins) - 0.5 * weighted_distance(x, clusters, j)
        if score > first or (score == first and j < winner):
            first, second = score, first
            winner, rival = j, winner
        elif score > second or (score == second and j < rival):
            second = score
            rival = j
    return winner, rival, float(np.exp(second - first))


@inner
def reward_and_penalise(clusters: Candidates, winner: int, rival: int, mass: float, rate: float, ratio: float) -> None:
    """Eqs. (11), (13), (14). The winner gains a win and weight; the rival loses weight by how close it came.

    A row of mass two counts as two rows that come at once.
    """
    clusters.wins[winner] += mass
    clusters.weight[winner] += mass * rate
    clusters.log_weight[winner] = log_weight(clusters.weight[winner])
    if rival >= 0:
        clusters.weight[rival] -= mass * rate * ratio
        clusters.log_weight[rival] = log_weight(clusters.weight[rival])


@inner
def join(x: FloatArray, mass: float, clusters: Candidates, j: int) -> None:
    clusters.size[j] += 1
    clusters.mass[j] += mass
    centroid, members = clusters.centroid[j], clusters.mass[j]
    for m in range(x.shape[0]):
        centroid[m] += mass * (x[m] - centroid[m]) / members


@inner
def leave(x: FloatArray, mass: float, clusters: Candidates, j: int) -> None:
    clusters.size[j] -= 1
    clusters.mass[j] -= mass
    if clusters.size[j] == 0:
        clusters.standing[j] = -np.inf
        return
    centroid, members = clusters.centroid[j], clusters.mass[j]
    for m in range(x.shape[0]):
        centroid[m] -= mass * (x[m] - centroid[m]) / members


@compiled
def compact(clusters: Candidates, count: int, labels: IntArray, smallest: int) -> int:
    """Take out the clusters with fewer than `smallest` members; their rows become unassigned (-1).

    The order of those that stay is kept, because the lower number wins a tie.
    """
    new_number = np.full(count, -1, dtype=np.int64)
    kept = 0
    for j in range(count):
        if clusters.size[j] >= smallest:
            new_number[j] = kept
            if kept < j:
                clusters.centroid[kept] = clusters.centroid[j]
                clusters.importance[kept] = clusters.importance[j]
                clusters.size[kept] = clusters.size[j]
                clusters.mass[kept] = clusters.mass[j]
                clusters.wins[kept] = clusters.wins[j]
                clusters.weight[kept] = clusters.weight[j]
                clusters.log_weight[kept] = clusters.log_weight[j]
                clusters.standing[kept] = clusters.standing[j]
            kept += 1
    for i in range(labels.shape[0]):
        if labels[i] >= 0:
            labels[i] = new_number[labels[i]]
    return kept


@in_any_order
def quick_distance(x: FloatArray, clusters: Candidates, j: int) -> float:
    """D as in (8) but for rounding: summed in whatever order is fastest."""
    centroid, importance = clusters.centroid[j], clusters.importance[j]
    total = 0.0
    for m in range(x.shape[0]):
        difference = x[m] - centroid[m]
        total += importance[m] * difference * difference
    return total


# --- between epochs, and at the end ----------------------------------------------------------------------------------


@compiled
def inside_moments(
    X: FloatArray, mass: FloatArray, labels: IntArray, mean: FloatArray, squares: FloatArray
) -> FloatArray:
    """Mean and sum of squared differences of every cluster's members (clusters x features); the answer is their mass.

    Welford's recurrence: a cluster of equal values gets exactly that value and exactly zero.
    """
    mean[:] = 0.0
    squares[:] = 0.0
    total = np.zeros(mean.shape[0])
    for i in range(X.shape[0]):
        j = labels[i]
        if j >= 0:
            total[j] += mass[i]
            _add_to_moments(X[i], mass[i], total[j], mean[j], squares[j])
    return total


@inner
def _add_to_moments(x: FloatArray, mass: float, total: float, mean: FloatArray, squares: FloatArray) -> None:
    for m in range(x.shape[0]):
        difference = x[m] - mean[m]
        mean[m] += mass * difference / total
        squares[m] += mass * difference * (x[m] - mean[m])


@compiled
def sum_of_closeness(X: FloatArray, mass: FloatArray, labels: IntArray, mean: FloatArray, total: FloatArray) -> None:
    """Sum over every cluster's members of exp(-(x - c)^2 / 2), per feature (clusters x features)."""
    total[:] = 0.0
    for i in range(X.shape[0]):
        j = labels[i]
        if j >= 0:
            for m in range(X.shape[1]):
                difference = X[i, m] - mean[j, m]
                total[j, m] += mass[i] * np.exp(-0.5 * difference * difference)


@inner
def normalised_similarity(x: FloatArray, clusters: Candidates, own: int, distances: FloatArray) -> float:
    """Eq. (22). exp(-D / 2) of a row to its own cluster, as a share of the sum over all clusters."""
    nearest = np.inf
    for j in range(distances.shape[0]):
        distances[j] = quick_distance(x, clusters, j)
        nearest = min(nearest, distances[j])
    total = 0.0
    for j in range(distances.shape[0]):
        total += np.exp(-0.5 * (distances[j] - nearest))
    return float(np.exp(-0.5 * (distances[own] - nearest)) / total)


@compiled
def objective(X: FloatArray, mass: FloatArray, labels: IntArray, clusters: Candidates, count: int) -> float:
    """Eq. (6). P, the sum over all rows of the similarity to their own cluster."""
    distances = np.empty(count)
    total = 0.0
    for i in range(X.shape[0]):
        total += mass[i] * normalised_similarity(X[i], clusters, labels[i], distances)
    return total
