"""A row came between two messages. Whoever has both, and knows how many rows there were, subtracts."""

from typing import NamedTuple

import numpy as np

from goldfc._types import FloatArray
from goldfc.message.summary import Summary
from goldfc_bench.attacks.sites import Target, Told

TRIES = 8
# Nobody is further out, as far as the attacker knows.
FURTHEST = 3.0


class Errors(NamedTuple):
    """How far off the best guess of a row that came is: standard deviations, the median over columns and rows."""

    told: float  # with both messages
    untold: float  # with neither, by the mean or the median of other rows


def errors_of_new_row(target: Target, told: Told) -> Errors:
    """Of a few rows that come, one at a time."""
    first, centre, scale = told(target.inside), target.others.mean(axis=0), target.others.std(axis=0)
    known, errors = scale > 0.0, []
    for new in target.outside[:TRIES]:
        guesses = guesses_of(first, told(np.vstack([target.inside, new])), len(target.inside))
        guesses += [centre, np.median(target.others, axis=0)]
        unit = [np.clip((guess - centre)[known] / scale[known], -FURTHEST, FURTHEST) for guess in guesses]
        truth = (new - centre)[known] / scale[known]
        errors.append([np.median(np.abs(one - truth)) for one in unit])
    *told_errors, by_mean, by_median = np.median(errors, axis=0).tolist()
    return Errors(min(told_errors), min(by_mean, by_median))


def guesses_of(first: Summary, second: Summary, n_rows: int) -> list[FloatArray]:
    """By the means of all rows, by the sums of all micro-clusters, both, and by what is usual there."""
    found = []
    if first.moments is not None and second.moments is not None:
        found.append((n_rows + 1) * second.moments.mean - n_rows * first.moments.mean)
    found.append(total_of(second, n_rows + 1) - total_of(first, n_rows))
    return [*found, np.mean(found, axis=0), total_of(first, 1)]


def total_of(summary: Summary, n_rows: int) -> FloatArray:
    """The sum of all rows, by the masses told, scaled to the number that is known."""
    mass = np.ones(len(summary.centroids)) if summary.mass is None else summary.mass.astype(np.float64)
    return np.asarray(mass @ summary.centroids * (n_rows / mass.sum()))
