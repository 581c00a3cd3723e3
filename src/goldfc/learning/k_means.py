"""Micro-clusters by k-means: as many as are asked for, whatever the units and the number of features.

A table that is not large is learned whole; of a larger one a sample is, and then every row goes to the nearest centre.
Most of the learning is done on a few rows for every centre, so that a few steps with all of them are enough.

The result is the same for every number of threads. BLAS does nothing but compare distances, in products so small that
OpenBLAS keeps each in one thread; and if another BLAS rounds differently, what is equally near up to rounding is told
apart by its number, not by its last digit. Nothing global is set: sites may be learned side by side.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
import scipy

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.learning.moments import ROUNDING, Moments

# For every centre: rows that the start is found with, rows that most steps are taken with, and rows that are learned at
# the most. Twice as many of any, or of the steps, gain about half a per cent of the squared distances.
ROWS_TO_START, ROWS_FOR_MOST_STEPS, ROWS_AT_MOST = 10, 30, 200
MOST_STEPS, LAST_STEPS = 5, 4
# How far centres go towards the means of their rows: beyond. At 1, as Lloyd has it, twice as many steps do not get as
# far, and small tables come to rest where squared distances are 2 % larger; at 2 centres would never rest.
BEYOND = 1.8
# Few points are learned from several starts, of which the best is kept: so many, and so many points in all.
MOST_STARTS, POINTS_TO_START_AGAIN = 4, 4_000
# What is learned has no more numbers than this, unless it takes more to find a start.
NUMBERS_AT_MOST = 8_000_000
# A sample knows the usual distance from the mean by every tenth row: it is right with any, and with this one good.
EVERY = 10
# Squared distances by a product that differ by a smaller share of the usual one are the same up to rounding.
SAME = 1e-11
# Products of so many multiplications OpenBLAS does in one thread. To wait for others costs more than these do, and a
# hundred times as much when another process has the core.
ONE_THREAD = 2**18
# Rows whose nearest centres are looked for at once: at least so many, and more if they are one product.
ROWS_AT_ONCE = 32
# From so many numbers on it pays to make a sparse matrix to add them up by label.
MANY_NUMBERS = 20_000


class Points(NamedTuple):
    """Where they are, and how many rows each stands for."""

    rows: FloatArray  # (points, features)
    mass: FloatArray  # (points,)


def learn_centres(
    blocks: Iterator[FloatArray], n_rows: int, count: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """The centres of micro-clusters, in one pass over the rows, and the cluster of every row that was learned.

    All rows are learned if they are not many, otherwise a sample. There are `count` centres if so many of these differ.
    """
    return best_k_means(rows_to_learn(blocks, n_rows, count, rng), count, rng)


# --- which rows are learned ---


def rows_to_learn(blocks: Iterator[FloatArray], n_rows: int, count: int, rng: np.random.Generator) -> Points:
    """All of them if they are not many, otherwise a sample."""
    first = next(blocks)
    n_features = first.shape[1]
    most = max(ROWS_TO_START * count, min(ROWS_AT_MOST * count, NUMBERS_AT_MOST // n_features))
    if n_rows > most:
        every = (Points(rows, np.ones(len(rows))) for rows in chain([first], blocks))
        return sample(every, n_features, most, rng)
    return Points(np.concatenate([first, *blocks]), np.ones(n_rows))


def sample(blocks: Iterable[Points], n_features: int, size: int, rng: np.random.Generator) -> Points:
    """So many of more points, in one pass; each also stands for those like it that were left out.

    Far points are likelier to stay: where tails are heavy, few of them make most of the squared distances, and an even
    sample has none of these. Priority sampling (Duffield, Lund, Thorup 2007): points of the largest weight / u stay,
    with u uniform; given the first one that does not, a mass divided by the probability to stay is right in the mean.
    """
    held, moments = no_lots(size + 1, n_features), Moments(0.0, np.zeros(n_features), np.zeros(n_features))
    for points in blocks:
        moments = moments.merged(Moments.of(points.rows[::EVERY]))
        weight = points.mass * remoteness(points.rows, moments)
        exchange(held, Lots(*points, weight, weight / (1.0 - rng.random(len(weight)))))
    first_out = held.priority.argmin()
    mass = held.mass * np.maximum(1.0, held.priority[first_out] / held.weight)
    stay = np.arange(size + 1) != first_out
    return Points(held.rows[stay], mass[stay])


def at_most(size: int, points: Points, rng: np.random.Generator) -> Points:
    """All of them, or a sample if there are more."""
    n_points, n_features = points.rows.shape
    return sample([points], n_features, size, rng) if n_points > size else points


def remoteness(rows: FloatArray, moments: Moments) -> FloatArray:
    """One, plus the squared distance from the mean as a multiple of the usual one."""
    usual = moments.variance.sum()
    return np.asarray(1.0 + squares(rows - moments.mean) / (usual if usual > 0.0 else 1.0))


class Lots(NamedTuple):
    """Points that may stay in a sample: those of the highest priority do."""

    rows: FloatArray
    mass: FloatArray
    weight: FloatArray
    priority: FloatArray


def no_lots(size: int, n_features: int) -> Lots:
    """Places that everybody may take."""
    return Lots(np.zeros((size, n_features)), np.zeros(size), np.ones(size), np.zeros(size))


def exchange(held: Lots, coming: Lots) -> None:
    """Those of the highest priority are held, as many as before; in place, because most of them may stay."""
    size = len(held.priority)
    highest = np.argpartition(np.concatenate([held.priority, coming.priority]), -size)[-size:]
    goes = np.ones(size, dtype=bool)
    goes[highest[highest < size]] = False
    for old, new in zip(held, coming, strict=True):
        old[goes] = new[highest[highest >= size] - size]


# --- k-means ---


def best_k_means(points: Points, count: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """K-means from several starts where points are few, so that little is left to luck."""
    starts = max(1, min(MOST_STARTS, POINTS_TO_START_AGAIN // len(points.rows)))
    tried = [k_means(points.rows, count, rng, points.mass) for _ in range(starts)]
    return min(tried, key=lambda found: float(points.mass @ squares(points.rows - found[1][found[0]])))


def k_means(
    points: FloatArray, count: int, rng: np.random.Generator, mass: FloatArray | None = None
) -> tuple[IntArray, FloatArray]:
    """The cluster of every point, and the means of these by mass; fewer than `count` only if fewer points differ."""
    everything = Points(points, np.ones(len(points)) if mass is None else mass)
    some = at_most(ROWS_FOR_MOST_STEPS * count, everything, rng)
    centres = start(at_most(ROWS_TO_START * count, everything, rng), count, rng)
    _, centres = improve(some, centres, count, MOST_STEPS)
    return improve(everything, centres, count, LAST_STEPS)


def start(points: Points, count: int, rng: np.random.Generator) -> FloatArray:
    """Greedy k-means++: every next centre is the best of a few points, drawn by mass times squared distance.

    Half the squared distance of x and c is x^2 / 2 + c^2 / 2 - x c: a product of what is known of each.
    """
    rows = points.rows - points.rows.mean(axis=0)
    half, ones = 0.5 * squares(rows), np.ones(len(rows))
    same = SAME * half.mean()
    left, right = np.column_stack([-rows, ones, half - same]), np.vstack([rows.T, half, ones])
    trials = 2 + int(np.log(count))
    first_of_equals = same * points.mass.sum() * np.arange(trials)
    chosen = [int(draw(points.mass.cumsum(), rng.random(1))[0])]
    closest = 0.5 * squares(rows - rows[chosen[0]])
    for chances in rng.random((count - 1, trials)):
        up_to = (closest * points.mass).cumsum()
        if up_to[-1] == 0.0:
            break
        drawn = draw(up_to, chances)
        distance = product(left[drawn], right)
        np.maximum(np.minimum(distance, closest, out=distance), 0.0, out=distance)
        best = int((np.einsum("tp,p->t", distance, points.mass) + first_of_equals).argmin())
        closest = distance[best]
        chosen.append(int(drawn[best]))
    return points.rows[chosen]


def draw(up_to: FloatArray, chances: FloatArray) -> IntArray:
    """One point for every chance in [0, 1), by weights that are already added up."""
    return np.asarray(np.searchsorted(up_to, chances * up_to[-1], side="right"))


def improve(points: Points, centres: FloatArray, count: int, steps: int) -> tuple[IntArray, FloatArray]:
    """Lloyd's steps, until no label changes: every point to its nearest centre, every centre towards their mean.

    Beyond the mean, in fact, because it would go on that way; what is returned are the means.
    """
    before = None
    for _ in range(steps):
        labels, centres = fill(points.rows, nearest(points.rows, centres), centres, count)
        if before is not None and np.array_equal(labels, before):
            break
        size = np.bincount(labels, weights=points.mass)
        means = sums_by_label(points.rows, labels, len(centres), points.mass) / size[:, None]
        centres, before = centres + BEYOND * (means - centres), labels
    return labels, means


def fill(rows: FloatArray, labels: IntArray, centres: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    """`count` clusters, if so many rows differ: one without rows begins anew at the row furthest from its mean.

    It takes the rows that are nearer to that one than to their own means. No cluster loses all its rows in this way: on
    the whole, their mean is nearer to them than any of them is.
    """
    size = np.bincount(labels, minlength=count)
    if size.all():
        return labels, centres
    # From one of the rows, or the mean of equal rows would differ from them by rounding.
    apart = rows - rows[0]
    same = ROUNDING**2 * squares(apart - apart.mean(axis=0)).mean()
    centres = np.vstack([centres, np.zeros((count - len(centres), rows.shape[1]))])
    for empty in np.flatnonzero(size == 0):
        size = np.bincount(labels, minlength=count)
        means = sums_by_label(apart, labels, count) / np.maximum(size, 1)[:, None]
        distance = squares(apart - means[labels])
        furthest = distance.argmax()
        if distance[furthest] <= same:
            break
        labels[squares(apart - apart[furthest]) < distance] = empty
        centres[empty] = rows[furthest]
    used, labels = np.unique(labels, return_inverse=True)
    return labels, centres[used]


# --- distances and sums ---


def nearest(rows: FloatArray, centres: FloatArray) -> IntArray:
    """The nearest centre of every row; of those that are equally near up to rounding, the first.

    Nearest is where x c - c^2 / 2 is largest; both are taken from the middle of the centres, or the difference of large
    numbers would be rounding.
    """
    middle = centres.mean(axis=0)
    half = 0.5 * squares(centres - middle)
    columns = np.vstack([(centres - middle).T, -half - np.linspace(0.0, SAME * half.mean(), len(half))])
    at_once = max(ROWS_AT_ONCE, ONE_THREAD // columns.size)
    labels, ones = np.empty(len(rows), dtype=np.int64), np.ones((min(at_once, len(rows)), len(columns)))
    for first in range(0, len(rows), at_once):
        own = labels[first : first + at_once]
        np.subtract(rows[first : first + at_once], middle, out=ones[: len(own), :-1])
        product(ones[: len(own)], columns).argmax(axis=1, out=own)
    return labels


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """The matrix product, in parts that are not shared out among threads."""
    step = max(1, ONE_THREAD // (left.shape[0] * right.shape[1]))
    total = left[:, :step] @ right[:step]
    for first in range(step, len(right), step):
        total += left[:, first : first + step] @ right[first : first + step]
    return np.asarray(total)


def tiles(rows: FloatArray, columns: FloatArray) -> Iterator[FloatArray]:
    """The products of some rows with all columns, and so on; of so few that one thread does it."""
    at_once = max(ROWS_AT_ONCE, ONE_THREAD // columns.size)
    yield from (rows[first : first + at_once] @ columns for first in range(0, len(rows), at_once))


def squares(rows: FloatArray) -> FloatArray:
    """The squared length of every row."""
    return np.asarray(np.einsum("pf,pf->p", rows, rows))


def sums_by_label(
    points: FloatArray, labels: IntArray | RowLabels, count: int, mass: FloatArray | None = None
) -> FloatArray:
    """The sum of the points of every label 0 ... count - 1, by mass if they have any; added up in their order."""
    n_points, n_features = points.shape
    if points.size < MANY_NUMBERS:
        weighted = points if mass is None else points * mass[:, None]
        cells = labels[:, None] * n_features + np.arange(n_features)
        sums = np.bincount(cells.ravel(), weighted.ravel(), count * n_features)
        return sums.reshape(count, n_features).astype(np.float64, copy=False)
    entries = np.ones(n_points) if mass is None else mass
    return np.asarray(
        scipy.sparse.csc_array((entries, labels, np.arange(n_points + 1)), shape=(count, n_points)) @ points
    )
