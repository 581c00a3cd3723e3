"""Was a row among those that a message was made of? The tests of whoever has the row, the message, and other rows.

Some forty statistics of a row and a message: how near it is to the nearest micro-centroid in several metrics (with the
site's covariance that is its leverage), and how much nearer than to the next; how far micro-centroids are drawn towards
it from where other rows would put them (the likelihood ratio of Homer and of Sankararaman); how it would move means and
variances. Each is a test by itself, and a classifier puts them together, trained on *shadow sites*, of whose rows it is
known which were members. The audit makes these of the site's own rows, the attacks of the benchmark of other people's.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from goldfc._types import FloatArray, IntArray
from goldfc.learning.k_means import ONE_THREAD, ROWS_AT_ONCE
from goldfc.learning.micro_clusters import diagonal_of
from goldfc.learning.mixture import squares_between
from goldfc.message.summary import Summary

# Other rows around a micro-centroid, which say where it would lie without its members.
NEIGHBOURS = 10
# At most so many others may be taken for members.
FALSE_ALARMS = 0.01
# Rows that are compared with all others at once: few, so that what is compared stays near the processor.
COMPARED_AT_ONCE = 100
# Rows that classifiers are trained on.
TRAINED_ON = 20_000
# How strongly their weights are held to zero; steps and halves of steps to find these, until so little is gained.
HELD_TO_ZERO = 10.0
MOST_NEWTON_STEPS, PARTS_OF_STEP, SETTLED = 30, 0.5 ** np.arange(5), 1e-6
# Quantiles that statistics are made normal by, and what is as good as the first or the last of these.
MOST_QUANTILES, AT_THE_END = 100, 1e-7
TINY_VARIANCE = 1e-12
# Of the metrics of a covariance: shares of the largest variance that are added to all.
RIDGES, RIDGES_OF_OTHERS = (1e-6, 1e-3, 3e-2), (1e-3, 3e-2)

Classifier = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Guess:
    """How well members are told from others: the AUC, and the share of members found at 1 % false alarms."""

    auc: float
    found: float


@dataclass(frozen=True)
class Trial:
    """Statistics of rows (down), and which of these are members."""

    statistics: FloatArray
    member: IntArray


def try_out(inside: FloatArray, outside: FloatArray, others: FloatArray, summary: Summary) -> Trial:
    """Rows that a summary was made of and rows that it was not, as seen by somebody who has `others`."""
    view = View.of(others, summary)
    rows = np.vstack([inside, outside])
    statistics = [
        view.statistics(rows[start : start + COMPARED_AT_ONCE]) for start in range(0, len(rows), COMPARED_AT_ONCE)
    ]
    return Trial(np.vstack(statistics), np.repeat([1, 0], [len(inside), len(outside)]))


def statistics_of(trials: Sequence[Trial]) -> FloatArray:
    """Those of all rows."""
    return np.vstack([one.statistics for one in trials])


def train(trials: Sequence[Trial]) -> Classifier:
    """All statistics in one, by logistic regression: the higher what comes out, the likelier a member."""
    X, y = statistics_of(trials), np.concatenate([one.member for one in trials])
    step = -(-len(X) // TRAINED_ON)
    to_normal = Normal.of(X[::step])
    weights = logistic_regression(to_normal(X[::step]), y[::step])
    return lambda statistics: np.asarray(to_normal(statistics) @ weights)


def logistic_regression(X: FloatArray, y: IntArray) -> FloatArray:
    """Weights of the features, held to zero; that of the constant beside them is left out, since it orders nothing.

    Newton's steps, each halved until it gains: scikit-learn gets as far in more of them, and takes longer to load.
    """
    X, signs = np.column_stack([X, np.ones(len(X))]), 2.0 * y - 1.0
    held = np.append(np.full(X.shape[1] - 1, HELD_TO_ZERO), 0.0)

    def loss(weights: FloatArray) -> float:
        return float(np.logaddexp(0.0, -signs * (X @ weights)).sum() + 0.5 * held @ weights**2)

    weights = np.zeros(X.shape[1])
    for _ in range(MOST_NEWTON_STEPS):
        chance = scipy.special.expit(X @ weights)
        slope = X.T @ (chance - y) + held * weights
        # Not by @, whose last digits may depend on the number of threads.
        curvature = np.einsum("ni,nj->ij", X * (chance * (1.0 - chance))[:, None], X) + np.diag(held)
        step = np.linalg.solve(curvature, slope)
        nearer = min((weights - part * step for part in PARTS_OF_STEP), key=loss)
        if loss(nearer) > loss(weights) - SETTLED:
            break
        weights = nearer
    return weights[:-1]


@dataclass(frozen=True)
class Normal:
    """Brings every statistic to a normal distribution by its quantiles: scikit-learn's transformer, all at once."""

    shares: FloatArray  # (quantiles,)
    quantiles: FloatArray  # (quantiles, statistics)

    @classmethod
    def of(cls, statistics: FloatArray) -> "Normal":
        """By some rows."""
        shares = np.linspace(0.0, 1.0, min(MOST_QUANTILES, len(statistics)))
        return cls(shares, np.percentile(statistics, 100.0 * shares, axis=0))

    def __call__(self, statistics: FloatArray) -> FloatArray:
        """Of any rows; where values are shared by many, the middle of their quantiles."""
        found = np.empty(statistics.shape)
        for column, values in enumerate(statistics.T):
            known = self.quantiles[:, column]
            up, down = np.interp(values, known, self.shares), np.interp(-values, -known[::-1], -self.shares[::-1])
            found[:, column] = 0.5 * (up - down)
        found[statistics + AT_THE_END > self.quantiles[-1]] = 1.0
        found[statistics - AT_THE_END < self.quantiles[0]] = 0.0
        first, last = scipy.special.ndtri([AT_THE_END - np.spacing(1.0), 1.0 - AT_THE_END + np.spacing(1.0)])
        return np.asarray(np.clip(scipy.special.ndtri(found), first, last))


def areas(trial: Trial) -> FloatArray:
    """The AUC of every statistic: how often a member has more of it than another, ties counting half."""
    members, others = int(trial.member.sum()), int((1 - trial.member).sum())
    ranks = np.array([ranks_of(column)[trial.member == 1].sum() for column in trial.statistics.T])
    return np.asarray((ranks - members * (members + 1) / 2.0) / (members * others))


def ranks_of(values: FloatArray) -> FloatArray:
    """From 1 on; those that are equal share the mean of theirs."""
    _, number, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((count.cumsum() - 0.5 * (count - 1))[number])


def guess_by_score(score: FloatArray, member: IntArray) -> Guess:
    """How well a score tells members from others."""
    area = float(areas(Trial(score[:, None], member))[0])
    alarms = np.sort(score[member == 0])[::-1]
    # As many alarms as may be false are raised, and no more: whoever has the score of the next is taken for none.
    allowed = int(FALSE_ALARMS * len(alarms) + 1e-9)
    return Guess(area, float((score[member == 1] > alarms[allowed]).mean()))


@dataclass(frozen=True)
class View:
    """What is known of a site from its message, beside what other rows are like; all in units of the others' spread."""

    centre: FloatArray
    scale: FloatArray
    centroids: FloatArray
    mass: FloatArray
    local: FloatArray  # where other rows put every micro-centroid
    within: FloatArray  # covariance, or variances, of rows around their micro-centroids
    metrics: tuple["Metric", ...]
    shift: FloatArray  # of the site's mean from the others'
    growth: FloatArray  # of the site's variances over the others'

    @classmethod
    def of(cls, others: FloatArray, summary: Summary) -> "View":
        """The message as seen by somebody who has other rows."""
        centre, scale = others.mean(axis=0), others.std(axis=0)
        known = scale > TINY_VARIANCE
        scale = np.where(known, scale, np.inf)
        points, rows = (summary.centroids - centre) / scale, (others - centre) / scale
        mass = np.ones(len(points)) if summary.mass is None else summary.mass.astype(np.float64)
        within = within_of(summary, points, mass, centre, scale)
        moments = summary.moments
        shift = mass @ points / mass.sum() if moments is None else (moments.mean - centre) / scale
        growth = np.zeros(len(scale)) if moments is None else moments.variance / scale**2 - known
        nearest = np.argsort(squares_between(points, rows), axis=1)[:, : min(NEIGHBOURS, len(rows))]
        local = rows[nearest].mean(axis=1)
        metrics = tuple(Metric.of(weight, points, local, rows) for weight in weights_of(within, rows))
        return cls(centre, scale, points, mass, local, within, metrics, shift, growth)

    def statistics(self, rows: FloatArray) -> FloatArray:
        """All of them, of every row by itself."""
        return np.column_stack([*self.nearness(rows), *self.pull(rows), *self.moments(rows)])

    def nearness(self, rows: FloatArray) -> list[FloatArray]:
        """How near rows are to micro-centroids, in several metrics."""
        unit = (rows - self.centre) / self.scale
        found = [statistic for metric in self.metrics for statistic in metric.nearness(unit)]
        return [*found, self.mass[squares_between(unit, self.centroids).argmin(axis=1)]]

    def pull(self, rows: FloatArray) -> list[FloatArray]:
        """How far micro-centroids are drawn towards rows from where other rows would put them."""
        unit = (rows - self.centre) / self.scale
        own = squares_between(unit, self.centroids).argmin(axis=1)
        drawn, apart = (self.centroids - self.local)[own], unit - self.local[own]
        variances = np.maximum(diagonal_of(self.within), 1e-3)
        along = (apart * drawn / variances).sum(axis=1)
        length = np.sqrt((drawn**2 / variances).sum(axis=1)) + TINY_VARIANCE
        agree = (np.sign(apart) == np.sign(drawn)).mean(axis=1)
        largest = np.abs(unit - self.centroids[own]).max(axis=1)
        return [along, along / length, (apart * drawn).sum(axis=1), agree, -largest]

    def moments(self, rows: FloatArray) -> list[FloatArray]:
        """How rows would move the site's means and variances the way that they differ from other rows'."""
        unit = (rows - self.centre) / self.scale
        squared = unit**2 - 1.0
        return [
            unit @ self.shift,
            squared @ self.growth,
            np.abs(unit).max(axis=1),
            (unit**2).sum(axis=1),
            np.where(np.abs(unit) > 3.0, unit**2 * np.sign(self.growth), 0.0).sum(axis=1),
        ]


def within_of(
    summary: Summary, points: FloatArray, mass: FloatArray, centre: FloatArray, scale: FloatArray
) -> FloatArray:
    """How rows lie around their micro-centroids: as told, or as it follows from the moments; otherwise one."""
    numbers = summary.layout.numbers
    variances = np.ones(len(scale))
    if summary.moments is not None:
        mean = (summary.moments.mean - centre) / scale
        between = np.average((points - mean) ** 2, axis=0, weights=mass)
        variances = np.maximum(summary.moments.variance / scale**2 - between, 1e-3)
    if summary.shape is None or summary.shape.ndim == 1:
        return variances
    whole = np.diag(variances)
    whole[np.ix_(numbers, numbers)] = summary.shape / np.outer(scale[numbers], scale[numbers])
    return whole


def weights_of(within: FloatArray, others: FloatArray) -> Iterator[FloatArray]:
    """What makes a metric: a matrix, or a factor for every feature."""
    yield np.ones(others.shape[1])
    yield 1.0 / np.sqrt(np.maximum(diagonal_of(within), 1e-3))
    if within.ndim == 2:
        yield from whitenings(within, RIDGES)
    yield from whitenings(np.cov(others.T).reshape(2 * (others.shape[1],)), RIDGES_OF_OTHERS)


def whitenings(covariance: FloatArray, ridges: Sequence[float]) -> Iterator[FloatArray]:
    """What makes a covariance round."""
    values, vectors = np.linalg.eigh(covariance)
    yield from (np.asarray(vectors / np.sqrt(np.maximum(values, 0.0) + ridge)) for ridge in ridges)


@dataclass(frozen=True)
class Metric:
    """A way to measure distances, and everything else in it."""

    weight: FloatArray
    centroids: FloatArray
    local: FloatArray
    others: FloatArray

    @classmethod
    def of(cls, weight: FloatArray, *points: FloatArray) -> "Metric":
        """With centroids, where other rows put them, and these other rows."""
        return cls(weight, *(opposite(weighted(some, weight)) for some in points))

    def nearness(self, unit: FloatArray) -> list[FloatArray]:
        """To the nearest micro-centroid; against the next, against where others put it, and against other rows."""
        rows = weighted(unit, self.weight)
        own = np.column_stack([rows, np.einsum("ij,ij->i", rows, rows), np.ones(len(rows))])
        nearest, next_one = smallest(products_in_parts(own, self.centroids), 2)
        expected, near = (
            smallest(products_in_parts(own, self.local), 1)[0],
            smallest(products_in_parts(own, self.others), 3)[-1],
        )
        return [-nearest, next_one - nearest, expected - nearest, -nearest / np.maximum(near, TINY_VARIANCE)]


def opposite(points: FloatArray) -> FloatArray:
    """What rows x, their squares x x and a one are multiplied with for squared distances: x x - 2 x c + c c."""
    return np.vstack([-2.0 * points.T, np.ones(len(points)), np.einsum("ij,ij->i", points, points)])


def products_in_parts(rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Of every row with every column; of so few at a time that one thread does it."""
    found = np.empty((len(rows), columns.shape[1]))
    at_once = max(ROWS_AT_ONCE, ONE_THREAD // rows.size)
    for first in range(0, columns.shape[1], at_once):
        np.matmul(rows, columns[:, first : first + at_once], out=found[:, first : first + at_once])
    return found


def smallest(squares: FloatArray, count: int) -> list[FloatArray]:
    """Of every row the smallest, the next, and so on, none below 0; the last again if there are no more. In place."""
    found, every = list[FloatArray](), np.arange(len(squares))
    for _ in range(min(count, squares.shape[1])):
        place = squares.argmin(axis=1)
        found.append(np.maximum(squares[every, place], 0.0))
        squares[every, place] = np.inf
    return found + found[-1:] * (count - len(found))


def weighted(rows: FloatArray, weight: FloatArray) -> FloatArray:
    """Rows in a metric."""
    return np.asarray(rows @ weight if weight.ndim == 2 else rows * weight)
