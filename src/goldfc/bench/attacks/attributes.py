"""One column of somebody is unknown, the others are known: what a message adds, if she was in it."""

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.bench.attacks.sites import Target
from goldfc.learning.mixture import squares_between
from goldfc.protocol.message import Summary

MOST_COLUMNS = 20
RIDGE = 1e-3


def advantage(target: Target, summary: Summary) -> float:
    """How much better the column of a member is known than that of another: standard deviations, mean over columns."""
    centre, scale = target.others.mean(axis=0), target.others.std(axis=0)
    known = np.flatnonzero(scale > 0.0)
    columns = known[:: -(-len(known) // MOST_COLUMNS)]
    errors = [
        np.mean([error(rows, summary, int(column), known, centre, scale) for column in columns])
        for rows in (target.outside, target.inside)
    ]
    return float(errors[0] - errors[1])


def error(
    rows: FloatArray, summary: Summary, column: int, known: IntArray, centre: FloatArray, scale: FloatArray
) -> float:
    """How far the best guess of a column is off: the nearest micro-cluster by the others, and what follows from it."""
    rest = known[known != column]
    unit, points = (rows - centre)[:, known] / scale[known], (summary.centroids - centre)[:, known] / scale[known]
    at, others = int(np.flatnonzero(known == column)[0]), np.flatnonzero(known != column)
    metric, slope = np.eye(len(rest)), np.zeros(len(rest))
    if summary.shape is not None and summary.shape.ndim == 2 and len(summary.layout.numbers) == rows.shape[1]:
        within = (summary.shape / np.outer(scale, scale + (scale == 0.0)))[np.ix_(known, known)]
        inner = within[np.ix_(others, others)] + RIDGE * np.eye(len(rest))
        slope = np.linalg.solve(inner, within[others, at])
        values, vectors = np.linalg.eigh(inner)
        metric = vectors / np.sqrt(np.maximum(values, RIDGE))
    own = squares_between(unit[:, others] @ metric, points[:, others] @ metric).argmin(axis=1)
    guess = points[own, at] + (unit[:, others] - points[own][:, others]) @ slope
    return float(np.abs(unit[:, at] - guess).mean())
