"""One epoch: the clusters compete once for every row, in order.

Only the few clusters that could be among the two best of a row are compared exactly. They are found in single precision
for a block of rows (`_screening`), against the clusters as they are when the block begins; those that change on the way
are compared anew. Where single precision will not do, or would not pay, all clusters are gone through one by one.
"""

from typing import NamedTuple

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.paper._kernels import (
    Candidates,
    Rows,
    compact,
    compiled,
    inner,
    join,
    leave,
    log_gamma,
    maker,
    quick_distance,
    reward_and_penalise,
    winner_and_rival,
)
from goldfc.learning.paper._screening import (
    CENTROID_CHANGED,
    LANES,
    MOST_CANDIDATES,
    NO_CHANGE,
    STANDING_CHANGED,
    Screen,
    Screened,
    follow_changes,
    make_block,
    make_screen,
    margin,
    note_change,
    screen_block,
    screen_standing,
    threshold_for,
)

# With fewer clusters than that, they are gone through one by one.
FEWEST_SCREENED = 96

# --- standings -------------------------------------------------------------------------------------------------------

# After so many rows, every cluster's standing is brought up to date.
ROWS_BETWEEN_REFRESHES = 256


class EpochTally(NamedTuple):
    """What an epoch counts.

    gamma changes for every cluster with every row, but only a little, and only upwards for those that did not win. So
    clusters are ranked by their standing of a moment ago, which is too low by at most a `_slack`.
    """

    all_wins: float
    most_wins: float  # of any cluster
    refreshed_at: float  # all wins when the standings were last brought up to date
    moved: int  # rows
    screened: int  # rows whose candidates were found in single precision
    out: int  # clusters without members that have not been taken out yet


@inner
def _update_standing(clusters: Candidates, j: int, all_wins: float) -> None:
    """The part of a cluster's log score that does not depend on the row: log(w gamma)."""
    clusters.standing[j] = clusters.log_weight[j] + log_gamma(clusters.wins[j], all_wins)


@inner
def _refresh(clusters: Candidates, count: int, tally: EpochTally) -> EpochTally:
    """Bring every standing up to date."""
    most_wins = 0.0
    for j in range(count):
        if clusters.size[j] > 0:
            _update_standing(clusters, j, tally.all_wins)
            most_wins = max(most_wins, clusters.wins[j])
        else:
            clusters.standing[j] = -np.inf
    return EpochTally(tally.all_wins, most_wins, tally.all_wins, tally.moved, tally.screened, tally.out)


@inner
def _slack(tally: EpochTally, ahead: float) -> float:
    """By how much a standing may be too low by the time that rows of the mass `ahead` have been competed for.

    log(1 - g / G) grows with G, the more the larger g is. Infinite once somebody may have half of all wins.
    """
    most_wins = tally.most_wins + ahead
    if 2.0 * most_wins > tally.refreshed_at:
        return np.inf
    return log_gamma(most_wins, tally.all_wins + ahead) - log_gamma(most_wins, tally.refreshed_at)


# --- candidates ------------------------------------------------------------------------------------------------------


class Arena(NamedTuple):
    """All that a competition for one row takes."""

    rows: Rows
    labels: IntArray
    clusters: Candidates
    screen: Screen
    rate: float
    candidates: IntArray  # (candidates,)  scratch
    scores: FloatArray  # (candidates,)  scratch


@inner
def _quick_scores(x: FloatArray, clusters: Candidates, count: int, scores: FloatArray) -> float:
    """Log scores by the standings of a moment ago; the answer is the second best."""
    first, second = -np.inf, -np.inf
    for j in range(count):
        if clusters.size[j] > 0:
            scores[j] = clusters.standing[j] - 0.5 * quick_distance(x, clusters, j)
            second = max(second, min(first, scores[j]))
            first = max(first, scores[j])
    return second


@inner
def _candidates_one_by_one(
    x: FloatArray, clusters: Candidates, count: int, slack: float, scores: FloatArray, candidates: IntArray
) -> int:
    """Write the clusters that could be among the two best into `candidates`; the answer is how many there are.

    Scores are those of double precision but for the order of sums, and by the standings of a moment ago.
    """
    second = _quick_scores(x, clusters, count, scores)
    threshold = second - (slack + margin(second, x.shape[0]))
    alone = not second > -np.inf  # has all wins, so that it has no score
    found = 0
    for j in range(count):
        if clusters.size[j] > 0 and (alone or scores[j] >= threshold):
            candidates[found] = j
            found += 1
    return found


@inner
def _candidates_of_block(arena: Arena, block: Screened, r: int, x: FloatArray, slack: float) -> int:
    """Write the clusters that could be among the two best for row r of the block into `candidates`; count them.

    Clusters that have changed since the block was screened are compared anew. Zero, if there were too many; or if what
    the screening took for the best has changed for the worse, so that it may have missed others.
    """
    if block.found[r] > MOST_CANDIDATES:
        return 0
    clusters, screen, candidates, scores = arena.clusters, arena.screen, arena.candidates, arena.scores
    first, second = -np.inf, -np.inf
    found = 0
    for number in range(block.found[r]):
        j = block.candidates[r, number]
        if screen.change[j] == NO_CHANGE:
            candidates[found], scores[found] = j, block.scores[r, number]
            found += 1
            at_least = block.scores[r, number] - block.left_out[r] - (2.0 * screen.error[j] + block.error[r])
            second = max(second, min(first, at_least))
            first = max(first, at_least)
    unchanged = found
    for j in screen.changed[: screen.changed[-1]]:
        if clusters.size[j] > 0:
            score = clusters.standing[j] - 0.5 * quick_distance(x, clusters, j)
            candidates[found], scores[found] = j, score
            found += 1
            second = max(second, min(first, score))
            first = max(first, score)
    if second < block.second[r]:
        return 0
    kept = 0
    threshold = threshold_for(block, r, second, slack)
    for number in range(found):
        if number == unchanged:
            threshold = second - (slack + margin(second, x.shape[0]))
        if scores[number] >= threshold:
            candidates[kept] = candidates[number]
            kept += 1
    return kept


# --- one epoch -------------------------------------------------------------------------------------------------------


@inner
def _compete_for(i: int, found: int, by_screen: bool, arena: Arena, tally: EpochTally) -> EpochTally:
    """Let the candidates compete for row i."""
    x, mass, clusters, screen = arena.rows.X[i], arena.rows.mass[i], arena.clusters, arena.screen
    winner, rival, ratio = winner_and_rival(x, clusters, arena.candidates[:found], tally.all_wins)
    reward_and_penalise(clusters, winner, rival, mass, arena.rate, ratio)
    all_wins = tally.all_wins + mass
    _update_standing(clusters, winner, all_wins)
    note_change(screen, winner, STANDING_CHANGED)
    if rival >= 0:
        _update_standing(clusters, rival, all_wins)
        note_change(screen, rival, STANDING_CHANGED)
    moved, out = tally.moved, tally.out
    before = arena.labels[i]
    if before != winner:
        join(x, mass, clusters, winner)
        note_change(screen, winner, CENTROID_CHANGED)
        if before >= 0:
            leave(x, mass, clusters, before)
            note_change(screen, before, CENTROID_CHANGED)
            out += int(clusters.size[before] == 0)
        arena.labels[i] = winner
        moved += 1
    most_wins = max(tally.most_wins, clusters.wins[winner])
    return EpochTally(all_wins, most_wins, tally.refreshed_at, moved, tally.screened + int(by_screen), out)


@inner
def _all_candidates(i: int, arena: Arena, count: int, tally: EpochTally) -> tuple[int, EpochTally]:
    """Find the candidates for row i among all clusters, one by one."""
    slack = _slack(tally, 0.0)
    if slack == np.inf:
        tally = _refresh_all(arena, count, tally)
        slack = 0.0
    found = _candidates_one_by_one(arena.rows.X[i], arena.clusters, count, slack, arena.scores, arena.candidates)
    return found, tally


@inner
def _refresh_all(arena: Arena, count: int, tally: EpochTally) -> EpochTally:
    """Bring every standing up to date, the screen's too."""
    tally = _refresh(arena.clusters, count, tally)
    if arena.screen.constant.shape[0] > 0:
        follow_changes(arena.screen, arena.clusters, arena.rows.centre)
        for j in range(count):
            screen_standing(arena.screen, arena.clusters, j)
    return tally


@maker
def _enter(rows: Rows, labels: IntArray, clusters: Candidates, count: int, rate: float) -> Arena:
    """Make all that the competition takes, with a screen only where it pays and where single precision will do."""
    screened = count if rows.moderate and count >= FEWEST_SCREENED else 0
    screen = make_screen(clusters, screened, rows.centre)
    return Arena(rows, labels, clusters, screen, rate, np.empty(count, dtype=np.int64), np.empty(count))


@compiled
def epoch(
    rows: Rows, labels: IntArray, clusters: Candidates, count: int, all_wins: float, rate: float
) -> tuple[int, int, int]:
    """Let the clusters compete once for every row, in order.

    The answer is how many rows moved, how many clusters are left, and how many rows were screened in single precision.
    """
    tally = _refresh(clusters, count, EpochTally(all_wins, 0.0, all_wins, 0, 0, 0))
    arena = _enter(rows, labels, clusters, count, rate)
    block = make_block(arena.screen)
    at_once, begin, end, slack = block.found.shape[0], 0, 0, 0.0  # the rows begin..end are screened
    refresh = ROWS_BETWEEN_REFRESHES
    i = 0
    while i < labels.shape[0]:
        if i >= refresh:
            refresh += ROWS_BETWEEN_REFRESHES
            tally = _refresh_all(arena, count, tally)
            if tally.out * 8 > count:
                count = compact(clusters, count, labels, 1)
                arena = _enter(rows, labels, clusters, count, rate)
                block = make_block(arena.screen)
                tally = EpochTally(tally.all_wins, tally.most_wins, tally.refreshed_at, tally.moved, tally.screened, 0)
        if i >= end and arena.screen.constant.shape[0] > 0:
            begin, end = i, min(i + at_once, refresh, labels.shape[0])
            slack = _slack(tally, rows.mass[begin:end].sum())
            if slack < np.inf:
                at_once = min(2 * at_once, block.found.shape[0])
                follow_changes(arena.screen, clusters, rows.centre)
                screen_block(block, begin, end, rows, arena.screen, slack)
            else:
                end = begin
        found = _candidates_of_block(arena, block, i - begin, rows.X[i], slack) if i < end else 0
        by_screen = found > 0
        if not by_screen and begin < i < end:  # once more, with the clusters as they are now
            end = i
            at_once = max((i - begin) // LANES * LANES, LANES)
            continue
        if not by_screen:
            found, tally = _all_candidates(i, arena, count, tally)
        tally = _compete_for(i, found, by_screen, arena, tally)
        i += 1
    return tally.moved, compact(clusters, count, labels, 1), tally.screened
