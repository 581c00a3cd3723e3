"""A row came between two messages. Whoever has both, and knows how many rows there were, subtracts."""

import numpy as np

from goldfc._types import FloatArray
from goldfc.bench.attacks.sites import Target, Told
from goldfc.protocol.message import Summary

TRIES = 8
# Nobody is further out, as far as the attacker knows.
FURTHEST = 3.0


def error_of_new_row(target: Target, told: Told) -> float:
    """How far off the best guess of a row that came is: standard deviations, the median over columns and rows."""
    first = told(target.inside)
    scale = target.others.std(axis=0)
    known = scale > 0.0
    errors = []
    for new in target.outside[:TRIES]:
        second = told(np.vstack([target.inside, new]))
        guesses = guesses_of(first, second, len(target.inside))
        unit = [
            np.clip((guess - target.others.mean(axis=0))[known] / scale[known], -FURTHEST, FURTHEST)
            for guess in guesses
        ]
        truth = (new - target.others.mean(axis=0))[known] / scale[known]
        errors.append([np.median(np.abs(one - truth)) for one in unit])
    return float(np.median(errors, axis=0).min())


def guesses_of(first: Summary, second: Summary, n_rows: int) -> list[FloatArray]:
    """By the means of all rows, by the sums of all micro-clusters, and both."""
    found = []
    if first.moments is not None and second.moments is not None:
        found.append((n_rows + 1) * second.moments.mean - n_rows * first.moments.mean)
    found.append(total_of(second, n_rows + 1) - total_of(first, n_rows))
    return [*found, np.mean(found, axis=0), np.zeros_like(found[0]) + first.centroids.mean(axis=0)]


def total_of(summary: Summary, n_rows: int) -> FloatArray:
    """The sum of all rows, by the masses told, scaled to the number that is known."""
    mass = np.ones(len(summary.centroids)) if summary.mass is None else summary.mass.astype(np.float64)
    return np.asarray(mass @ summary.centroids * (n_rows / mass.sum()))
