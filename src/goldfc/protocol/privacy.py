"""The privacy level `suppressed`: no small groups, no row itself, nothing more exact than it needs to be.

After learning, micro-clusters of fewer than `smallest` rows, and those whose rows are all alike, are merged into their
nearest neighbour. Centroids are means of their rows, rounded to a grid that everybody can know; sizes are rounded to
multiples of `smallest`. It is suppression, not differential privacy: docs/privacy.md says what it does not do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadRows
from goldfc.learning.micro_clusters import diagonal_of
from goldfc.learning.moments import Moments
from goldfc.protocol.finding import Ends, Measured, to_grid
from goldfc.protocol.message import Summary
from goldfc.protocol.rows import RowSource, blocks_of
from goldfc.protocol.terms import Terms

# Of yes and no, and of categories, shares are told in steps of one per cent.
STEP_OF_SHARES = 0.01
# Variances and M2 keep so many digits, correlations so many decimals.
DIGITS = 4
DECIMALS = 6
# A value lies on the grid when it is as near, in steps.
NEARLY = 1e-6


def merge_small(micro: Measured, ends: Ends, centre: FloatArray, smallest: int) -> IntArray:
    """Of every micro-cluster, which it goes into, so that each has enough rows and not all of them are alike.

    `ends` are those of rows rounded to the grid. The smallest is merged first, with the one that is nearest by its
    `centre`, in the scale they were learned in.
    """
    size, centre, low, high = micro.size.astype(np.float64), centre.copy(), ends.low.copy(), ends.high.copy()
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
    return np.unique(goes_to, return_inverse=True)[1].astype(np.int64)


def grid_of(moments: Moments, terms: Terms, coarser: Mapping[str, float] = MappingProxyType({})) -> FloatArray:
    """The step that every feature is rounded to.

    Agreed, or the power of ten below a hundredth of the standard deviation: the message tells that anyway. A site may
    have a `coarser` one for some columns.
    """
    steps = 10.0 ** np.floor(np.log10(moments.scale / 100.0))
    for number, column in enumerate(terms.features):
        if column.kind != "number":
            steps[number] = STEP_OF_SHARES
        elif column.step is not None:
            steps[number] = column.step
        steps[number] = max(steps[number], coarser.get(column.name, 0.0))
    return np.asarray(steps)


def suppressed(
    summary: Summary, rows: RowSource, moments: Moments, steps: Mapping[str, float] = MappingProxyType({})
) -> Summary:
    """The summary as it may leave: everything rounded, no centroid the same as a row."""
    grid, m = grid_of(moments, summary.terms, steps), summary.smallest
    count = round_to_multiple(np.array([moments.count]), m)[0]
    coarse = Moments(float(count), to_grid(moments.mean, grid), keep_digits(moments.variance, DIGITS) * float(count))
    return replace(
        summary,
        centroids=off_the_rows(to_grid(summary.centroids, grid), rows, grid, summary.terms),
        mass=None if summary.mass is None else round_to_multiple(summary.mass, m),
        shape=None if summary.shape is None else coarse_shape(summary.shape),
        moments=None if summary.moments is None else coarse,
    )


def off_the_rows(centroids: FloatArray, rows: RowSource, grid: FloatArray, terms: Terms) -> FloatArray:
    """Centroids that happen to lie on a row, moved to the nearest free point of the grid.

    Only a coincidence can put them there: micro-clusters whose rows are all alike were merged. Where rows fill the grid
    around them they go half a step aside.
    """
    moved = centroids.copy()
    limits = np.array([column.limits for column in terms.features] or [(-np.inf, np.inf)] * rows.shape[1])
    on_rows = np.flatnonzero(equals_a_row(centroids, rows, grid))
    nearby = [
        (number, place) for number in on_rows for place in around(centroids[number], grid) if inside(place, limits)
    ]
    if nearby:
        taken = equals_a_row(np.array([place for _, place in nearby]), rows, grid)
        for number, place in reversed([one for one, is_taken in zip(nearby, taken, strict=True) if not is_taken]):
            moved[number] = place  # the nearest last, so that it stays
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


def equals_a_row(points: FloatArray, rows: RowSource, grid: FloatArray) -> NDArray[np.bool_]:
    """Which of the points are the same as one of the rows, up to a millionth of a step."""
    as_they_are, (steps, on_grid) = keys_of(points), steps_of(points, grid)
    found = np.zeros(len(points), dtype=bool)
    for _, block in blocks_of(rows):
        known = set(keys_of(block))
        found |= [key in known for key in as_they_are]
        # Only rows that lie on the grid themselves can be the same as a point of it.
        own, exact = steps_of(block, grid)
        known = set(keys_of(own[exact]))
        found |= on_grid & [key in known for key in keys_of(steps)]
    return found


def steps_of(points: FloatArray, grid: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """How many steps of the grid every value is, rounded; and which points lie on the grid."""
    steps = np.rint(points / grid)
    return steps, np.asarray((np.abs(points / grid - steps) <= NEARLY).all(axis=1))


def keys_of(points: FloatArray) -> list[bytes]:
    """The bytes of every point, to compare by; adding 0 makes -0 the same as 0."""
    n_features = points.shape[1]
    keys: list[bytes] = np.ascontiguousarray(points + 0.0).view(f"V{8 * n_features}").ravel().tolist()
    return keys


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
