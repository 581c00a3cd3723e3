"""The privacy level `suppressed`: no small groups, no row itself, nothing more exact than it needs to be.

After learning, micro-clusters of fewer than `smallest` rows, and those whose rows are all alike, are merged into their
nearest neighbour. Centroids are means of their rows, rounded to a grid that everybody can know; sizes are rounded to
multiples of `smallest`. It is suppression, not differential privacy: docs/privacy.md says what it does not do.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadRows
from goldfc.learning.mixture import diagonal_of, means_of
from goldfc.learning.moments import Moments
from goldfc.protocol.message import Summary
from goldfc.protocol.terms import Terms

# Of yes and no, and of categories, shares are told in steps of one per cent.
STEP_OF_SHARES = 0.01
# Variances and M2 keep so many digits, correlations so many decimals.
DIGITS = 4
DECIMALS = 6
# A value lies on the grid when it is as near, in steps.
NEARLY = 1e-6


def merge_small(unit: FloatArray, labels: IntArray, smallest: int, on_grid: FloatArray) -> IntArray:
    """Merge micro-clusters, the smallest first, until each has enough rows and not all of them are alike.

    `unit` are the rows in the scale they were learned in, `on_grid` the rows rounded as centroids are.
    """
    size = np.bincount(labels).astype(np.float64)
    centre = means_of(unit, labels, np.ones(len(unit)))
    low, high = ends_by_label(on_grid, labels)
    goes_to = np.arange(len(size))
    alive = np.ones(len(size), dtype=bool)
    while alive.sum() > 1:
        wanting = alive & ((size < smallest) | (low == high).all(axis=1))
        if not wanting.any():
            break
        one = int(np.flatnonzero(wanting)[size[wanting].argmin()])
        others = np.flatnonzero(alive & (np.arange(len(size)) != one))
        other = int(others[((centre[others] - centre[one]) ** 2).sum(axis=1).argmin()])
        total = size[one] + size[other]
        centre[other] = (size[one] * centre[one] + size[other] * centre[other]) / total
        low[other], high[other] = np.minimum(low[one], low[other]), np.maximum(high[one], high[other])
        size[other], alive[one] = total, False
        goes_to[goes_to == one] = other
    return np.unique(goes_to[labels], return_inverse=True)[1].astype(np.int64)


def ends_by_label(points: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest value of every feature in every label."""
    shape = (int(labels.max()) + 1, points.shape[1])
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    np.minimum.at(low, labels, points)
    np.maximum.at(high, labels, points)
    return low, high


def grid_of(moments: Moments, terms: Terms) -> FloatArray:
    """The step that every feature is rounded to.

    Agreed, or the power of ten below a hundredth of the standard deviation: the message tells that anyway.
    """
    steps = 10.0 ** np.floor(np.log10(moments.scale / 100.0))
    for number, column in enumerate(terms.features):
        if column.kind != "number":
            steps[number] = STEP_OF_SHARES
        elif column.step is not None:
            steps[number] = column.step
    return np.asarray(steps)


def suppressed(summary: Summary, rows: FloatArray, moments: Moments) -> Summary:
    """The summary as it may leave: everything rounded, no centroid the same as a row."""
    grid, m = grid_of(moments, summary.terms), summary.smallest
    count = round_to_multiple(np.array([moments.count]), m)[0]
    coarse = Moments(float(count), to_grid(moments.mean, grid), keep_digits(moments.variance, DIGITS) * float(count))
    return replace(
        summary,
        centroids=off_the_rows(to_grid(summary.centroids, grid), rows, grid, summary.terms),
        mass=None if summary.mass is None else round_to_multiple(summary.mass, m),
        shape=None if summary.shape is None else coarse_shape(summary.shape),
        moments=None if summary.moments is None else coarse,
    )


def to_grid(values: FloatArray, grid: FloatArray) -> FloatArray:
    """The nearest points of the grid."""
    return np.asarray(np.round(values / grid) * grid)


def off_the_rows(centroids: FloatArray, rows: FloatArray, grid: FloatArray, terms: Terms) -> FloatArray:
    """Centroids that happen to lie on a row, moved to the nearest free point of the grid.

    Only a coincidence can put them there: micro-clusters whose rows are all alike were merged. Where rows fill the grid
    around them they go half a step aside.
    """
    moved = centroids.copy()
    limits = np.array([column.limits for column in terms.features] or [(-np.inf, np.inf)] * rows.shape[1])
    for number in np.flatnonzero(equals_a_row(centroids, rows, grid)):
        nearby = [place for place in around(centroids[number], grid) if inside(place, limits)]
        free = ~equals_a_row(np.array(nearby), rows, grid)
        if free.any():
            moved[number] = nearby[int(free.argmax())]
    return moved


def around(point: FloatArray, grid: FloatArray) -> Iterator[FloatArray]:
    """Places one, two and three steps from a point of the grid, up or down in one feature; then half a step."""
    for steps in (1.0, 2.0, 3.0, 0.5):
        for feature, step in enumerate(grid):
            for sign in (1.0, -1.0):
                place = point.copy()
                place[feature] += sign * steps * step
                yield place


def inside(point: FloatArray, limits: FloatArray) -> bool:
    """Whether all values are possible."""
    return bool(((point >= limits[:, 0]) & (point <= limits[:, 1])).all())


def equals_a_row(centroids: FloatArray, rows: FloatArray, grid: FloatArray) -> NDArray[np.bool_]:
    """Which of the centroids are the same as one of the rows, up to a millionth of a step."""
    on_grid = np.rint(rows / grid)
    # Only rows that lie on the grid themselves can be the same as a point of it.
    exact = (np.abs(rows / grid - on_grid) <= NEARLY).all(axis=1)
    known = {row.tobytes() for row in on_grid[exact] + 0.0}  # so that -0 is 0
    as_they_are = {row.tobytes() for row in np.ascontiguousarray(rows) + 0.0}
    places = centroids / grid
    return np.array(
        [
            centroid.tobytes() in as_they_are
            or (bool((np.abs(place - np.rint(place)) <= NEARLY).all()) and (np.rint(place) + 0.0).tobytes() in known)
            for centroid, place in zip(np.ascontiguousarray(centroids) + 0.0, places, strict=True)
        ],
        dtype=bool,
    )


def round_to_multiple(counts: NDArray[np.generic], multiple: int) -> IntArray:
    """To the nearest multiple; at least one."""
    nearest = np.floor(counts.astype(np.float64) / multiple + 0.5).astype(np.int64)
    return np.maximum(nearest, 1) * multiple


def keep_digits(values: FloatArray, digits: int) -> FloatArray:
    """Rounded to so many significant digits."""
    return np.array([float(f"{value:.{digits - 1}e}") for value in values])


def coarse_shape(shape: FloatArray) -> FloatArray:
    """Rounded variances and correlations.

    Correlations shrink by what rounding can do to the smallest eigenvalue, so that it stays a covariance.
    """
    variance = keep_digits(diagonal_of(shape), DIGITS)
    if shape.ndim == 1:
        return variance
    deviation = np.sqrt(np.where(diagonal_of(shape) > 0.0, diagonal_of(shape), 1.0))
    correlation = np.round(shape / np.outer(deviation, deviation), DECIMALS)
    correlation *= 1.0 - len(shape) * 10.0**-DECIMALS
    np.fill_diagonal(correlation, 1.0)
    new = np.sqrt(variance)
    return np.asarray(correlation * np.outer(new, new))


def refuse_too_few(n_rows: int, smallest: int, client: str) -> None:
    """There must be something to hide in."""
    if n_rows < 2 * smallest:
        raise BadRows(
            f"Client {client!r} has {n_rows} rows, but at least {2 * smallest} are needed when no micro-cluster may "
            f"have fewer than {smallest}; join with another site."
        )
