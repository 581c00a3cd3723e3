"""MCPL: compete again and again while clusters die, and keep the partition of every granularity."""

from collections.abc import Iterator

import numpy as np

from goldfc._types import FloatArray
from goldfc.errors import BadSettings
from goldfc.learning.levels import Levels
from goldfc.learning.paper.competition import Learning, Outcome, compete

# With the second stopping rule a search could go on for as long as P keeps changing.
MAX_COMPETITIONS = 100


def find_levels(
    X: FloatArray, learning: Learning, rng: np.random.Generator, *, tolerance: float | None = None
) -> Levels:
    """MCPL: each competition begins with as many candidates as the last one left, everything else afresh.

    It stops when a competition leaves as many clusters as it began with; with a `tolerance` (the paper's epsilon),
    only when the objective P has come to rest within it, too: a number of clusters may then come up twice, and a small
    tolerance ends at MAX_COMPETITIONS. A level of a single cluster says nothing, and is left out unless there is no
    other.
    """
    if tolerance is not None and not tolerance >= 0.0:
        raise BadSettings(f"tolerance must be a number from 0 on, or None, got {tolerance!r}.", "tolerance")
    outcomes = [
        outcome
        for number, outcome in enumerate(_competitions(X, learning, rng, tolerance))
        if number == 0 or outcome.n_clusters > 1
    ]
    return Levels(
        labels=np.column_stack([outcome.labels for outcome in outcomes]),
        n_clusters=tuple(outcome.n_clusters for outcome in outcomes),
    )


def _competitions(
    X: FloatArray, learning: Learning, rng: np.random.Generator, tolerance: float | None
) -> Iterator[Outcome]:
    before = compete(X, learning.candidates(len(X)), learning, rng)
    yield before
    for _ in range(1, MAX_COMPETITIONS):
        if before.n_clusters == 1:
            return
        now = compete(X, before.n_clusters, learning, rng)
        at_rest = tolerance is None or abs(now.objective - before.objective) <= tolerance
        if now.n_clusters == before.n_clusters and at_rest:
            return
        yield now
        before = now
