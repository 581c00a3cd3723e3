"""One column of somebody is unknown, the others are known: what a message adds, if she was in it."""

from dataclasses import dataclass

import numpy as np

from goldfc._types import FloatArray
from goldfc.learning.mixture import squares_between
from goldfc.message.summary import Summary
from goldfc_bench.attacks.sites import Target

MOST_COLUMNS = 20
# Added to the variances of a covariance before it is inverted; whoever attacks takes what works best.
RIDGES = (1e-7, 1e-5, 1e-3)
# Nobody guesses anything further off, in standard deviations.
FURTHEST = 3.0


def advantage(target: Target, summary: Summary) -> float:
    """How much better the column of a member is known than that of another: standard deviations, mean over columns."""
    centre, scale = target.others.mean(axis=0), target.others.std(axis=0)
    known = np.flatnonzero(scale > 0.0)
    centroids = (summary.centroids - centre)[:, known] / scale[known]
    within = None
    if summary.shape is not None and summary.shape.ndim == 2 and len(summary.layout.numbers) == len(scale):
        within = summary.shape[np.ix_(known, known)] / np.outer(scale[known], scale[known])
    inside, outside = ((rows - centre)[:, known] / scale[known] for rows in (target.inside, target.outside))
    columns = range(0, len(known), -(-len(known) // MOST_COLUMNS))
    return max(
        float(np.mean([error(outside, guess) - error(inside, guess) for guess in guesses]))
        for guesses in ([Guess(column, centroids, within, ridge) for column in columns] for ridge in RIDGES)
    )


@dataclass(frozen=True)
class Guess:
    """How a column is guessed from the others."""

    column: int
    centroids: FloatArray
    within: FloatArray | None
    ridge: float


def error(rows: FloatArray, guess: Guess) -> float:
    """How far the guess is off: the nearest micro-cluster by the other columns, and what follows from these."""
    at, others = guess.column, np.delete(np.arange(rows.shape[1]), guess.column)
    metric, slope = np.eye(len(others)), np.zeros(len(others))
    if guess.within is not None:
        inner = guess.within[np.ix_(others, others)] + guess.ridge * np.eye(len(others))
        slope = np.linalg.solve(inner, guess.within[others, at])
        values, vectors = np.linalg.eigh(inner)
        metric = vectors / np.sqrt(np.maximum(values, guess.ridge))
    own = squares_between(rows[:, others] @ metric, guess.centroids[:, others] @ metric).argmin(axis=1)
    guessed = guess.centroids[own, at] + (rows[:, others] - guess.centroids[own][:, others]) @ slope
    return float(np.minimum(np.abs(rows[:, at] - guessed), FURTHEST).mean())
