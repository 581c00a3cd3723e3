"""Which clusters could be among the two best for a row: approximate scores, many at once, with a bound on their error.

Nearly all the time of a competition goes into comparing every row with every cluster. But only the two best clusters of
a row matter. So all are compared in single precision first, and what is left is compared exactly, by others.
"""

from typing import NamedTuple

import numpy as np

from goldfc._types import FloatArray, IntArray, SingleArray
from goldfc.learning.paper._kernels import Candidates, Rows, fused, in_any_order, inner, maker

# What rounding may add to a score in double precision, relative to its magnitude; far above what it does add.
ROUNDING = 1e-12


@inner
def margin(score: float, n_features: int) -> float:
    """What to allow for rounding in double precision when a score is compared with another."""
    return (ROUNDING + n_features * 2.0**-51) * (1.0 + abs(score))


# --- what is computed, and how far off it can be ---------------------------------------------------------------------
#
# With x and c taken relative to the centre,
#
#     score_j = standing_j - 1/2 sum h (x - c)^2 = (standing_j - 1/2 sum h c^2) + sum x (h c) + sum (-x^2 / 2) h,
#
# a constant of the cluster and a product of two vectors: (x, -x^2 / 2) of the row, and the cluster's factors (h c, h).
# While all h are the same, the last sum is the same for all clusters and left out.
#
# How far off it can be in single precision, with u = 2^-24: every factor is rounded once (u each), and a product goes
# through at most TERMS roundings inside its group of TERMS terms and then through one for each group, so that
#
#     |error| <= gamma (|standing| + 1/2 sum h c^2 + sum h |x| |c| + 1/2 sum h x^2)
#             <= gamma (|standing| + sum h c^2 + sum h x^2)                       because 2 |x| |c| <= x^2 + c^2
#             <= gamma (|standing| + sum h c^2) + gamma max x^2                   because the h sum to one
#             =: error of the cluster + error of the row
#
# with gamma = n u / (1 - n u) and n = TERMS + groups + 5. We take 2 n u, for the h that sum to one but for their last
# digits, the 1 - n u, and what double precision did before. Factors that are too small for single precision err by
# 2^-150 at most, times a value of up to LARGEST_SCREENED: far below ROUNDING.
#
# The error of the cluster is added to its constant, so that scores bound the true ones from above but for the error of
# the row; taking away twice the one and once the other bounds them from below.

# Clusters are screened in tiles, so that the scores of one tile stay in the first-level cache.
TILE = 128
# So many rows are multiplied with the same factors at once, and so many terms of each.
LANES = 4
# Rows are screened in blocks. The more rows, the less often factors come from far memory, which matters if there are
# many; and the more clusters change before the block is done, which are then compared anew.
FEW_AT_ONCE, MANY_AT_ONCE, MANY_FACTORS = 8, 16, 128
# Terms of a product that are summed before they are added to the rest.
TERMS = 32
# More candidates than that for one row, and single precision cannot tell: many clusters are the same.
MOST_CANDIDATES = 64
# Of the distance from the centre.
LARGEST_SCREENED = 1e15
# Below every score.
LOWEST = -1e38

NO_CHANGE, STANDING_CHANGED, CENTROID_CHANGED = 0, 1, 2


class Screen(NamedTuple):
    """The clusters as the screening sees them."""

    factors: SingleArray  # (tiles, factors x TILE)
    constant: SingleArray  # (tiles x TILE,)  plus `error`, so that scores are bounds from above
    half_norm: FloatArray  # (tiles x TILE,)  1/2 sum h c^2
    error: FloatArray  # (tiles x TILE,)
    gamma: float
    equal: float  # what all h are, or zero when they differ
    change: IntArray  # (tiles x TILE,)  of a cluster, since its factors were computed
    changed: IntArray  # (tiles x TILE,)  the clusters with changes; the last entry is how many


class Screened(NamedTuple):
    """Some rows in a sequence, and what the screening found for them."""

    values: SingleArray  # (rows, factors)  x and -x^2 / 2
    left_out: FloatArray  # (rows,)  1/2 sum h x^2, where it is not among the products
    error: FloatArray  # (rows,)
    first: FloatArray  # (rows,)  the highest score, bounded from below
    second: FloatArray  # (rows,)  the second highest
    threshold: FloatArray  # (rows,)  who is below is not among the two best
    found: IntArray  # (rows,)  number of candidates
    candidates: IntArray  # (rows, MOST_CANDIDATES)
    scores: FloatArray  # (rows, MOST_CANDIDATES)  bounds from above
    sums: SingleArray  # (2, LANES x TILE)  scratch: the scores of a tile


@inner
def _common_importance(clusters: Candidates, count: int) -> float:
    """What all h are, or zero when they differ."""
    common = clusters.importance[0, 0]
    for j in range(count):
        for h in clusters.importance[j]:
            if h != common:
                return 0.0
    return float(common)


@maker
def make_screen(clusters: Candidates, count: int, centre: FloatArray) -> Screen:
    """Compute all factors anew."""
    n_features = centre.shape[0]
    equal = _common_importance(clusters, count)
    n_factors = n_features if equal > 0.0 else 2 * n_features
    tiles = (count + TILE - 1) // TILE
    room = tiles * TILE
    screen = Screen(
        factors=np.zeros((tiles, (n_factors + LANES - 1) // LANES * LANES * TILE), dtype=np.float32),
        constant=np.full(room, -np.inf, dtype=np.float32),
        half_norm=np.zeros(room),
        error=np.zeros(room),
        gamma=2.0 * (TERMS + n_factors // TERMS + 5) * 2.0**-24,
        equal=equal,
        change=np.zeros(room, dtype=np.int64),
        changed=np.zeros(room + 1, dtype=np.int64),
    )
    for j in range(count):
        if equal == 0.0:
            tile, lane = screen.factors[j // TILE], j % TILE
            for m in range(n_features):
                tile[(n_features + m) * TILE + lane] = clusters.importance[j, m]
        _screen_centroid(screen, clusters, j, centre)
        screen_standing(screen, clusters, j)
    return screen


@inner
def _screen_centroid(screen: Screen, clusters: Candidates, j: int, centre: FloatArray) -> None:
    tile, lane = screen.factors[j // TILE], j % TILE
    norm = 0.0
    for m in range(centre.shape[0]):
        value = clusters.centroid[j, m] - centre[m]
        factor = clusters.importance[j, m] * value
        tile[m * TILE + lane] = factor
        norm += factor * value
    screen.half_norm[j] = 0.5 * norm


@inner
def screen_standing(screen: Screen, clusters: Candidates, j: int) -> None:
    standing = clusters.standing[j]
    if standing > -np.inf:
        screen.error[j] = screen.gamma * (abs(standing) + 2.0 * screen.half_norm[j])
        screen.constant[j] = standing - screen.half_norm[j] + screen.error[j]
    else:
        screen.constant[j] = -np.inf


@inner
def note_change(screen: Screen, j: int, change: int) -> None:
    if screen.change.shape[0] == 0:
        return
    if screen.change[j] == NO_CHANGE:
        screen.changed[screen.changed[-1]] = j
        screen.changed[-1] += 1
    screen.change[j] = max(screen.change[j], change)


@inner
def follow_changes(screen: Screen, clusters: Candidates, centre: FloatArray) -> None:
    """Bring the screen up to date with the clusters."""
    for j in screen.changed[: screen.changed[-1]]:
        if screen.change[j] == CENTROID_CHANGED:
            _screen_centroid(screen, clusters, j, centre)
        screen_standing(screen, clusters, j)
        screen.change[j] = NO_CHANGE
    screen.changed[-1] = 0


@maker
def make_block(screen: Screen) -> Screened:
    n_factors = screen.factors.shape[1] // TILE
    n_rows = FEW_AT_ONCE if n_factors < MANY_FACTORS else MANY_AT_ONCE
    return Screened(
        values=np.zeros((n_rows, n_factors), dtype=np.float32),
        left_out=np.zeros(n_rows),
        error=np.zeros(n_rows),
        first=np.zeros(n_rows),
        second=np.zeros(n_rows),
        threshold=np.zeros(n_rows),
        found=np.zeros(n_rows, dtype=np.int64),
        candidates=np.zeros((n_rows, MOST_CANDIDATES), dtype=np.int64),
        scores=np.zeros((n_rows, MOST_CANDIDATES)),
        sums=np.zeros((2, LANES * TILE), dtype=np.float32),
    )


@in_any_order
def _fill(block: Screened, r: int, x: FloatArray, centre: FloatArray, screen: Screen) -> None:
    """Put a row into the block."""
    n_features = x.shape[0]
    values = block.values[r]
    squares, largest = 0.0, 0.0
    for m in range(n_features):
        value = x[m] - centre[m]
        values[m] = value
        squares += value * value
    if screen.equal == 0.0:
        for m in range(n_features):
            value = x[m] - centre[m]
            values[n_features + m] = -0.5 * value * value
    for m in range(n_features):
        largest = max(largest, (x[m] - centre[m]) ** 2)
    block.left_out[r] = 0.5 * screen.equal * squares
    block.error[r] = screen.gamma * largest
    block.first[r] = block.second[r] = -np.inf
    block.threshold[r] = LOWEST
    block.found[r] = 0


@fused
def _add_products(values: SingleArray, begin: int, end: int, tile: SingleArray, sums: SingleArray) -> None:
    """Add the products begin..end of four rows with all clusters of a tile; four terms at a time."""
    for m in range(begin, end, LANES):
        a0, a1, a2, a3 = values[0, m], values[0, m + 1], values[0, m + 2], values[0, m + 3]
        b0, b1, b2, b3 = values[1, m], values[1, m + 1], values[1, m + 2], values[1, m + 3]
        c0, c1, c2, c3 = values[2, m], values[2, m + 1], values[2, m + 2], values[2, m + 3]
        d0, d1, d2, d3 = values[3, m], values[3, m + 1], values[3, m + 2], values[3, m + 3]
        four = tile[m * TILE : (m + LANES) * TILE]
        for j in range(TILE):
            f0, f1, f2, f3 = four[j], four[TILE + j], four[2 * TILE + j], four[3 * TILE + j]
            sums[j] = sums[j] + a0 * f0 + a1 * f1 + a2 * f2 + a3 * f3
            sums[TILE + j] = sums[TILE + j] + b0 * f0 + b1 * f1 + b2 * f2 + b3 * f3
            sums[2 * TILE + j] = sums[2 * TILE + j] + c0 * f0 + c1 * f1 + c2 * f2 + c3 * f3
            sums[3 * TILE + j] = sums[3 * TILE + j] + d0 * f0 + d1 * f1 + d2 * f2 + d3 * f3


@inner
def _tile_scores(
    values: SingleArray, tile: SingleArray, constant: SingleArray, sums: SingleArray, group: SingleArray
) -> None:
    """Approximate scores of four rows and all clusters of a tile, group of terms by group of terms."""
    n_factors = values.shape[1]
    for r in range(LANES):
        for j in range(TILE):
            sums[r * TILE + j] = constant[j]
    _add_products(values, 0, min(TERMS, n_factors), tile, sums)
    for begin in range(TERMS, n_factors, TERMS):
        for j in range(LANES * TILE):
            group[j] = 0.0
        _add_products(values, begin, min(begin + TERMS, n_factors), tile, group)
        for j in range(LANES * TILE):
            sums[j] += group[j]


@inner
def _any_reaches(scores: SingleArray, threshold: float) -> bool:
    """Whether a tile has a score that is not clearly below the threshold."""
    low = np.float32(threshold - abs(threshold) * 2.0**-23)
    answer = False
    for j in range(TILE):
        answer |= scores[j] >= low
    return answer


@inner
def _search(block: Screened, r: int, scores: SingleArray, low: int, screen: Screen, slack: float) -> None:
    """Note the clusters of a tile that could be among the two best of a row."""
    if _any_reaches(scores, block.threshold[r]):  # hardly ever, so it is asked first
        for j in range(TILE):
            if scores[j] >= block.threshold[r]:
                _note_candidate(block, r, low + j, float(scores[j]), screen, slack)


@inner
def _note_candidate(block: Screened, r: int, j: int, score: float, screen: Screen, slack: float) -> None:
    if block.found[r] == MOST_CANDIDATES:
        _forget_candidates(block, r)
    if block.found[r] == MOST_CANDIDATES:
        block.found[r] += 1
        block.threshold[r] = np.inf
        return
    block.candidates[r, block.found[r]] = j
    block.scores[r, block.found[r]] = score
    block.found[r] += 1
    at_least = score - block.left_out[r] - (2.0 * screen.error[j] + block.error[r])
    if at_least > block.second[r]:
        block.second[r] = min(block.first[r], at_least)
        block.first[r] = max(block.first[r], at_least)
        if block.second[r] > -np.inf:
            block.threshold[r] = threshold_for(block, r, block.second[r], slack)


@inner
def threshold_for(block: Screened, r: int, second: float, slack: float) -> float:
    """The lowest score, as the screening bounds it from above, of a cluster that may reach `second`."""
    rounding = margin(second, block.values.shape[1])
    return float(second + block.left_out[r] - (block.error[r] + slack + rounding))


@inner
def _forget_candidates(block: Screened, r: int) -> None:
    """Keep only the candidates that still are, now that better ones are known."""
    kept = 0
    for number in range(block.found[r]):
        if block.scores[r, number] >= block.threshold[r]:
            block.candidates[r, kept] = block.candidates[r, number]
            block.scores[r, kept] = block.scores[r, number]
            kept += 1
    block.found[r] = kept


@inner
def screen_block(block: Screened, begin: int, end: int, rows: Rows, screen: Screen, slack: float) -> None:
    """Find the candidates for the rows begin..end."""
    for i in range(begin, end):
        _fill(block, i - begin, rows.X[i], rows.centre, screen)
    for t in range(screen.factors.shape[0]):
        low = t * TILE
        constant = screen.constant[low : low + TILE]
        for four in range(0, end - begin, LANES):
            _tile_scores(block.values[four : four + LANES], screen.factors[t], constant, block.sums[0], block.sums[1])
            for r in range(four, min(four + LANES, end - begin)):
                scores = block.sums[0, (r - four) * TILE : (r - four + 1) * TILE]
                _search(block, r, scores, low, screen, slack)
