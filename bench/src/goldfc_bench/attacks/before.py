"""The level `suppressed` before it was attacked: five rows, fine steps, and a covariance whatever the rows."""

from dataclasses import replace

import numpy as np

from goldfc._types import FloatArray
from goldfc.learning.finding import Found
from goldfc.learning.micro_clusters import diagonal_of
from goldfc.learning.moments import Moments
from goldfc.message.columns import Terms
from goldfc.message.levels import with_fewest
from goldfc.message.summary import Summary
from goldfc.message.task import Task
from goldfc.site.learn import unit_of
from goldfc.site.privacy import Allowed, Rules, groups_of, merge_small
from goldfc.site.rows import Rows
from goldfc.site.summarize import tell_as

SMALLEST, STEP_OF_SHARES, DIGITS, DECIMALS = 5, 0.01, 4, 6
TASK = Task(rows_each=8)


def told_before(rows: FloatArray, terms: Terms) -> Summary:
    """What a site would have sent."""
    told = tell_as(Rows.of(rows), "a", Allowed(TASK, moments=True), Rules(terms))
    plain, labels, moments = told.summary, told.found.labels, told.rows.moments
    centre = unit_of(moments, "pooled", terms)(plain.centroids)
    # Whether rows are all alike was not looked at.
    found = Found(labels, told.found.micro, np.zeros_like(centre), np.ones_like(centre))
    into = merge_small(groups_of(found, centre, np.ones(centre.shape[1])), SMALLEST)
    merged = found.merged(into).micro
    grid = 10.0 ** np.floor(np.log10(moments.scale / 100.0))
    grid[[number for number, column in enumerate(terms.features) if column.kind != "number"]] = STEP_OF_SHARES
    residuals = (rows - merged.centroids[into[labels]])[:, plain.layout.numbers]
    return replace(
        plain,
        centroids=np.round(merged.centroids / grid) * grid,
        mass=np.maximum(np.floor(merged.mass / 5 + 0.5).astype(np.int64), 1) * 5,
        shape=fine_shape(residuals.T @ residuals / len(rows)) if residuals.shape[1] else None,
        moments=Moments(5.0 * round(len(rows) / 5), np.round(moments.mean / grid) * grid, keep_digits(moments.squares)),
        level=with_fewest(SMALLEST),
    )


def keep_digits(values: FloatArray) -> FloatArray:
    """Rounded to so many significant digits."""
    return np.array([float(f"{value:.{DIGITS - 1}e}") for value in values])


def fine_shape(shape: FloatArray) -> FloatArray:
    """Variances with four digits, correlations with six decimals."""
    variance = keep_digits(diagonal_of(shape))
    deviation = np.sqrt(np.where(diagonal_of(shape) > 0.0, diagonal_of(shape), 1.0))
    correlation = np.round(shape / np.outer(deviation, deviation), DECIMALS) * (1.0 - len(shape) * 10.0**-DECIMALS)
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation * np.sqrt(np.outer(variance, variance)))
