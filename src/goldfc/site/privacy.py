"""The privacy level `suppressed`: no small groups, no row itself, nothing more exact than the rows behind it can bear.

Every mean and variance is rounded to its standard error, or coarser. Whoever has a row can tell the better whether it
is part of a mean of s people, the larger directions / s is: the AUC of the best test is Phi(sqrt(directions / 2 s)).
The directions that count are those that rounding leaves (`directions_of`), so what a site tells shrinks with its people
in small steps (`ladder`): micro-clusters, variances and a covariance; without the covariance, and coarser; larger
micro-clusters; one mean; nothing. After learning, micro-clusters of too few people, and those whose rows are all alike,
are merged into their nearest neighbour. It is suppression, not differential privacy: docs/privacy.md says what it does
not do, and benchmarks/attacks what it was tried against.
"""

import math
import secrets
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.errors import BadRows
from goldfc.learning.finding import Found
from goldfc.learning.micro_clusters import MicroClusters, diagonal_of
from goldfc.learning.moments import Moments
from goldfc.message.columns import UNNAMED, Terms
from goldfc.message.levels import MULTIPLE, Suppressed
from goldfc.message.summary import Summary
from goldfc.message.task import Part, Task, rows_each
from goldfc.site.learn import Shape, to_grid
from goldfc.site.membership import Guess
from goldfc.site.private.noise import Source
from goldfc.site.rows import Rows

# So many people for every direction behind a micro-cluster, and whether there may be a covariance: the first with which
# the audit is content. And so many behind one mean of all rows. Found by attack.
RUNGS, FOR_MEAN = ((1.0, True), (2.0, True), (2.0, False), (4.0, False), (8.0, False)), 4.0
# Where there are fewer people than so many such micro-clusters take, everything is told more coarsely.
ROOM_FOR = 8
# A covariance is told if there are so many people for every feature, and nothing need be coarser.
FOR_COVARIANCE = 20
# Steps in standard errors: at least, and at most.
FINEST_STEP, COARSEST_STEP = 1.0, 20.0
# And at most in standard deviations.
WIDEST_STEP = 2.0
# Where few values are possible, one row moves a mean by the smallest difference / n: steps are so many times that.
STEP_OF_GRAIN, STEP_OF_ONE_ROW = 2.0, 4.0
# Steps have so many digits, so that people can read what is rounded to them.
DIGITS = 2
# No step is finer than this share of what is rounded.
FINEST = 1e-12


# --- how much, and how exact ---


@dataclass(frozen=True)
class Allowed:
    """How much a site may tell."""

    task: Task
    moments: bool
    coarseness: float = FINEST_STEP  # of steps, in standard errors

    @property
    def is_one_mean(self) -> bool:
        """Of all rows, and nothing else."""
        return self.task.most == 1 and not self.moments


@dataclass(frozen=True)
class Spread:
    """The variances of rows along the directions that they spread in, of columns with a variance of 1 each."""

    of_all: FloatArray  # around the mean of all
    within: FloatArray  # around their micro-centroids


def ladder(spread: Spread, n_people: int, task: Task, site: str) -> Iterator[Allowed]:
    """From the most that so many people allow to the least; there must be somebody to hide among."""
    before = None
    for people_each, shape in RUNGS:
        coarseness = coarseness_for(spread.within, n_people / (ROOM_FOR * people_each))
        each = max(task.smallest, math.ceil(people_each * directions_of(spread.within, coarseness)))
        few = coarseness > FINEST_STEP or n_people < FOR_COVARIANCE * np.count_nonzero(spread.of_all > FINEST)
        told = replace(stricter(task, each), shape=task.shape and shape and not few)
        if n_people >= 2 * each and coarseness <= WIDEST_STEP * math.sqrt(each) and told != before:
            yield Allowed(told, task.scaling == "pooled", coarseness)
            before = told
    coarseness = coarseness_for(spread.of_all, n_people / FOR_MEAN)
    least = max(2 * task.smallest, math.ceil(FOR_MEAN * directions_of(spread.of_all, coarseness)))
    refuse_too_few(n_people, least, 2 * task.smallest, site)
    yield one_mean(task, n_people, coarseness)


def one_mean(task: Task, n_people: int, coarseness: float) -> Allowed:
    """The mean of all rows, and nothing else."""
    told = replace(task, level=Suppressed(smallest=n_people - n_people % MULTIPLE), most=1, shape=False)
    return Allowed(told, moments=False, coarseness=coarseness)


def spread_of(rows: FloatArray) -> FloatArray:
    """The variances along the directions that rows spread in, in units in which every feature has a variance of 1."""
    centred = rows - rows.mean(axis=0)
    deviation = centred.std(axis=0)
    varies = deviation > FINEST * np.abs(rows).max(axis=0)
    if not varies.any():
        return np.ones(1)
    unit = centred[:, varies] / deviation[varies]
    # Both products have the same eigenvalues, but for zeros.
    product = unit @ unit.T if len(unit) < unit.shape[1] else unit.T @ unit
    return np.asarray(np.maximum(np.linalg.eigvalsh(product), 0.0) / len(unit))


def spread_around(rows: Rows, found: Found) -> FloatArray:
    """The same of rows around the means of their micro-clusters."""
    return spread_of(rows.sample - found.micro.centroids[rows.of_sample(found.labels)])


def directions_of(spread: FloatArray, coarseness: float) -> float:
    """How many directions are left when every mean is rounded to so many standard errors.

    A row moves a mean of s rows by 1 / s of itself. Along a direction with variance v the mean varies by v / s, and by
    r / s for rounding, so that the best test of membership has a signal to noise ratio (squared) of
    (v / s^2) / (v / s + r / s): summed over directions, 1 / s times what is counted here.
    """
    # Rounded: the last digits of a product may depend on the number of threads.
    return max(1.0, round(float((spread / (spread + noise_of_rounding(coarseness))).sum()), 6))


def expected_auc(told: "Told") -> float:
    """That of the best test by theory, by whoever knows exactly what other rows are like: the mean over people."""
    directions = directions_of(spread_around(told.rows, told.found), told.allowed.coarseness)
    each = people_of_each(told.found.labels, told.rows.people)
    return float(np.average(scipy.special.ndtr(np.sqrt(directions / (2.0 * each))), weights=each))


def noise_of_rounding(coarseness: float) -> float:
    """The variance of noise that hides as much as rounding to so many standard errors, for a variance of 1.

    Fine steps hide like uniform noise. Of coarse ones c, 1.8 / c is left: the Fisher information of a rounded Gaussian.
    """
    return coarseness**2 / 12.0 if coarseness <= 4.0 else coarseness / 1.8 - 0.9


def coarseness_for(spread: FloatArray, most: float) -> float:
    """The least with which no more than so many directions are left; the most if there is none."""
    steps = np.geomspace(FINEST_STEP, COARSEST_STEP, 31).tolist()
    return next((step for step in steps if directions_of(spread, step) <= most), COARSEST_STEP)


def stricter(task: Task, smallest: int) -> Task:
    """The same task with larger micro-clusters, and as many fewer."""
    return task.with_smallest(smallest, max(task.rows_each, rows_each(smallest)))


@dataclass(frozen=True)
class Steps:
    """What means are rounded to, by the people behind each."""

    deviation: FloatArray  # (features,) of the rows around their mean
    widest: FloatArray  # (features,)
    grain: FloatArray  # (features,) the smallest difference of two values
    least: FloatArray  # (features,) no step is finer, however many people there are
    coarseness: float

    def of_means(self, people: NDArray[np.generic]) -> FloatArray:
        """Of means of so many people each (down), of every feature (across)."""
        fewest = fewest_told_alike(people)[:, None]
        wide = np.minimum(self.coarseness * self.deviation / np.sqrt(fewest), self.widest)
        return rounded_up(np.maximum(np.maximum(wide, STEP_OF_GRAIN * self.grain / fewest), self.least))

    def finest(self, n_people: int) -> FloatArray:
        """That of means of everybody."""
        return np.asarray(self.of_means(np.array([n_people]))[0])

    def around(self, micro: MicroClusters, moments: Moments) -> "Steps":
        """Those of micro-clusters, whose rows lie nearer to their mean: the variance of all less that between them."""
        between = micro.mass @ (micro.centroids - moments.mean) ** 2 / moments.count
        return replace(self, deviation=np.sqrt(np.maximum(moments.variance - between, 0.0)))


def steps_of(rows: Rows, own: "Rules", coarseness: float) -> Steps:
    """By the spread of all rows; not finer than was agreed, nor than the site itself allows."""
    least = FINEST * np.maximum(np.abs(rows.moments.mean), rows.moments.scale)
    for number, column in enumerate(own.terms.features):
        least[number] = max(least[number], column.step or 0.0, own.steps.get(column.name, 0.0))
    deviation = np.sqrt(rows.moments.variance)
    return Steps(deviation, WIDEST_STEP * deviation, grain_of(rows.sample), least, coarseness)


def fewest_told_alike(people: NDArray[np.generic]) -> FloatArray:
    """The fewest people whose number is told as theirs is: steps by the exact one would tell it."""
    exact = people.astype(np.float64)
    return np.minimum(exact, np.maximum(coarse_counts(people) - MULTIPLE // 2, MULTIPLE))


def grain_of(rows: FloatArray) -> FloatArray:
    """The smallest difference of two values in every feature: where few values are rare, a row moves a sum by that."""
    ordered = np.sort(rows, axis=0)
    apart = np.diff(ordered, axis=0, prepend=ordered[:1])
    smallest = np.where(apart > 0.0, apart, np.inf).min(axis=0)
    return np.where(np.isfinite(smallest), smallest, 0.0)


def rounded_up(steps: FloatArray) -> FloatArray:
    """To few digits."""
    unit = 10.0 ** (np.floor(np.log10(steps)) - (DIGITS - 1))
    return np.asarray(np.ceil(steps / unit - 1e-9) * unit)


@dataclass(frozen=True)
class Rules:
    """What a site goes by beside the task: its columns, what it withholds, how coarse it is, and its noise."""

    terms: Terms = UNNAMED
    withhold: Collection[Part] = ()
    steps: Mapping[str, float] = field(default_factory=dict)
    randomness: Source = secrets.token_bytes  # of noise, at the level `private`


@dataclass(frozen=True)
class Told:
    """What a site would send, and what it knows about it, which stays there."""

    rows: Rows
    rules: Rules
    allowed: Allowed
    summary: Summary
    found: Found  # the micro-clusters as they are
    grid: FloatArray  # what every micro-centroid is rounded to
    membership: Guess | None = None  # how well members are told from others; None: not measured


# --- who is merged ---


def label_and_person(labels: RowLabels, people: IntArray) -> tuple[IntArray, IntArray]:
    """All pairs that there are, each once, in order."""
    n_people = int(people.max()) + 1
    pairs = np.unique(labels.astype(np.int64) * n_people + people)
    return pairs // n_people, pairs % n_people


def people_of_each(labels: RowLabels, people: IntArray | None) -> IntArray:
    """How many people have rows in every micro-cluster."""
    if people is None:
        return np.bincount(labels)
    return np.bincount(label_and_person(labels, people)[0])


@dataclass
class Groups:
    """Micro-clusters while they are merged."""

    people: FloatArray  # how many each has
    rows: FloatArray
    centre: FloatArray  # in the scale they were learned in
    low: FloatArray  # the ends of rows as they are told apart
    high: FloatArray
    members: list[IntArray] | None  # the people themselves, where they may be in several

    def merge(self, one: int, other: int) -> None:
        """Put one into another."""
        total = self.rows[one] + self.rows[other]
        self.centre[other] = (self.rows[one] * self.centre[one] + self.rows[other] * self.centre[other]) / total
        self.low[other] = np.minimum(self.low[one], self.low[other])
        self.high[other] = np.maximum(self.high[one], self.high[other])
        self.rows[other] = total
        if self.members is None:
            self.people[other] += self.people[one]
        else:
            self.members[other] = np.union1d(self.members[one], self.members[other])
            self.people[other] = len(self.members[other])


def groups_of(found: Found, centre: FloatArray, grid: FloatArray, people: IntArray | None = None) -> Groups:
    """Micro-clusters as they were found, their rows as the grid tells them apart; without `people` all are others."""
    # Rounding keeps the order of values: the ends of rounded rows are the rounded ends of the rows.
    rows, low, high = found.micro.mass, to_grid(found.low, grid), to_grid(found.high, grid)
    if people is None:
        return Groups(rows.copy(), rows.copy(), centre.copy(), low, high, None)
    label, person = label_and_person(found.labels, people)
    members = np.split(person, np.flatnonzero(np.diff(label)) + 1)
    each = np.array([float(len(own)) for own in members])
    return Groups(each, rows.copy(), centre.copy(), low, high, members)


def merge_small(groups: Groups, smallest: int) -> IntArray:
    """Of every micro-cluster, which it goes into, so that each has enough people and its rows are not all alike.

    The smallest is merged first, with the one that is nearest by its centre.
    """
    count = len(groups.people)
    goes_to, alive = np.arange(count), np.ones(count, dtype=bool)
    while alive.sum() > 1:
        wanting = alive & ((groups.people < smallest) | (groups.low == groups.high).all(axis=1))
        if not wanting.any():
            break
        one = int(np.flatnonzero(wanting)[groups.people[wanting].argmin()])
        others = np.flatnonzero(alive & (np.arange(count) != one))
        other = int(others[((groups.centre[others] - groups.centre[one]) ** 2).sum(axis=1).argmin()])
        groups.merge(one, other)
        alive[one] = False
        goes_to[goes_to == one] = other
    return np.unique(goes_to, return_inverse=True)[1].astype(np.int64)


def refuse_too_few(n_people: int, least: int, fewest: int, site: str) -> None:
    """There must be somebody to hide among: so many at least, and `fewest` however few columns there are."""
    if n_people < fewest:
        raise BadRows(
            f"Site {site!r} has {n_people} rows (or people), and at least {fewest} are needed so that nobody stands "
            "out; join with another site.",
            "people-too-few",
        )
    if n_people < least:
        raise BadRows(
            f"Site {site!r} has {n_people} rows (or people), and with so many columns at least {least} are needed "
            "so that nobody stands out; join with another site, or use fewer columns.",
            "people-too-few-for-columns",
        )


# --- what is rounded ---


@dataclass(frozen=True)
class Precision:
    """How exactly everything is told, by the people behind it."""

    each: IntArray  # how many people every micro-cluster has
    in_all: int
    of_all: Steps
    near: Steps  # of rows around their micro-centroids

    @cached_property
    def grid(self) -> FloatArray:
        """What every micro-centroid is rounded to."""
        return self.near.of_means(self.each)


def suppressed(summary: Summary, rows: Rows, precision: Precision, shape: Shape | None = None) -> Summary:
    """The summary as it may leave: everything rounded by the people behind it, no centroid the same as a row.

    The shape is collected on the pass that looks for such rows.
    """
    grid = precision.grid
    means = told_means(summary.centroids, grid, summary.terms)
    same = SameAsRows(means, grid)
    rows.sweep(same, *([shape] if shape else []))
    told = replace(
        summary,
        centroids=off_the_rows(means, same.found, rows, grid, summary.terms),
        mass=None if summary.mass is None else coarse_counts(summary.mass, summary.level.fewest),
        moments=None,
    )
    return replace(
        told,
        shape=None if shape is None else coarse_shape(shape.mean, precision),
        moments=None if summary.moments is None else coarse_moments(rows.moments, precision, told),
    )


def told_means(means: FloatArray, grid: FloatArray, terms: Terms) -> FloatArray:
    """Rounded, inside what is possible; shares of what is sensitive are neither 0 nor 1."""
    return not_all_or_none(to_grid_inside(means, grid, limits_of(terms, means.shape[1])), grid, terms)


def limits_of(terms: Terms, n_features: int) -> FloatArray:
    """Between which values the means of every feature lie (down: features)."""
    return np.array([column.limits for column in terms.features] or [(-np.inf, np.inf)] * n_features)


def to_grid_inside(values: FloatArray, grid: FloatArray, limits: FloatArray) -> FloatArray:
    """The nearest points of the grid that are possible; the nearer limit, where the grid has none."""
    low, high = limits.T
    with np.errstate(over="ignore"):
        inside = np.clip(np.round(values / grid), np.ceil(low / grid - 1e-9), np.floor(high / grid + 1e-9)) * grid
    return np.asarray(np.clip(inside, low, high))


def not_all_or_none(centroids: FloatArray, grid: FloatArray, terms: Terms) -> FloatArray:
    """Shares of what is sensitive are told as neither 0 nor 1: the next step stands for both."""
    step = np.minimum(grid, 0.5)
    return np.where(hidden_shares(terms, centroids.shape[1]), np.clip(centroids, step, 1.0 - step), centroids)


def hidden_shares(terms: Terms, n_features: int) -> NDArray[np.bool_]:
    """Which features are shares of what is sensitive."""
    return np.array([one.sensitive and one.kind != "number" for one in terms.features] or [False] * n_features)


def off_the_rows(
    centroids: FloatArray, on_rows: NDArray[np.bool_], rows: Rows, grid: FloatArray, terms: Terms
) -> FloatArray:
    """Centroids that happen to lie on a row, moved to a free point of their grid beside them.

    Only a coincidence can put them there: micro-clusters whose rows are all alike were merged. Where rows fill the grid
    around them they go less than a step aside.
    """
    if not on_rows.any():
        return centroids
    moved, limits, grain = centroids.copy(), limits_of(terms, rows.shape[1]), grain_of(rows.sample)
    nearby = [
        (number, place)
        for number in np.flatnonzero(on_rows)
        for place in places_beside(centroids[number], grid[number], grain)
        if is_possible(place, limits)
    ]
    if nearby:
        same = SameAsRows(np.array([place for _, place in nearby]), grid)
        rows.sweep(same)
        for number, place in reversed([one for one, taken in zip(nearby, same.found, strict=True) if not taken]):
            moved[number] = place  # the first one last, so that it stays
    return moved


def places_beside(point: FloatArray, grid: FloatArray, grain: FloatArray) -> Iterator[FloatArray]:
    """Places beside a point, up or down in one feature: by a step, by a part of it, and at last between the rows."""
    for apart in (grid, 0.5 * grid, 0.25 * grid, 0.5 * np.minimum(grain, grid)):
        for feature, aside in enumerate(apart):
            for sign in (1.0, -1.0):
                place = point.copy()
                place[feature] += sign * aside
                yield place


def is_possible(point: FloatArray, limits: FloatArray) -> bool:
    """Whether all values are possible."""
    return bool(((point >= limits[:, 0]) & (point <= limits[:, 1])).all())


class SameAsRows:
    """Collects which points, each on its own grid, are the same as a row, up to a small part of a step."""

    def __init__(self, points: FloatArray, grid: FloatArray) -> None:
        # Every grid has few digits, so all of them lie on one that is as fine as this.
        self._fine = 10.0 ** (np.floor(np.log10(grid.min(axis=0))) - DIGITS)
        wanted = np.rint(points / self._fine)
        self._wanted = keys_of(wanted)
        # Of every feature the values that are looked for; first of those that tell most apart.
        values = [np.unique(column) for column in wanted.T]
        self._values = {number: values[number] for number in sorted(range(len(values)), key=lambda n: -len(values[n]))}
        self.found = np.zeros(len(points), dtype=bool)

    def see(self, where: slice, rows: FloatArray) -> None:  # noqa: ARG002
        """One more block."""
        for number, values in self._values.items():
            own = np.rint(rows[:, number] / self._fine[number])
            rows = rows[values[np.minimum(np.searchsorted(values, own), len(values) - 1)] == own]
            if not len(rows):
                return
        known = set(keys_of(np.rint(rows / self._fine)))
        self.found |= [key in known for key in self._wanted]


def keys_of(points: FloatArray) -> list[bytes]:
    """The bytes of every point, to compare by; adding 0 makes -0 the same as 0."""
    n_features = points.shape[1]
    keys: list[bytes] = np.ascontiguousarray(points + 0.0).view(f"V{8 * n_features}").ravel().tolist()
    return keys


def coarse_counts(counts: NDArray[np.generic], smallest: int = 1) -> IntArray:
    """To the nearest multiple, none below `smallest`."""
    nearest = np.floor(counts.astype(np.float64) / MULTIPLE + 0.5).astype(np.int64)
    return np.maximum(nearest, math.ceil(smallest / MULTIPLE)) * MULTIPLE


def coarse_moments(moments: Moments, precision: Precision, told: Summary) -> Moments:
    """Mean and variance of every column, each in its steps; of what is sensitive no more than is told already."""
    count = float(coarse_counts(np.array([moments.count]))[0])
    limits, hidden = limits_of(told.terms, len(moments.mean)), hidden_shares(told.terms, len(moments.mean))
    share = np.average(told.centroids, axis=0, weights=told.mass)
    mean = np.where(hidden, share, to_grid_inside(moments.mean, precision.of_all.finest(precision.in_all), limits))
    # What is left of it around micro-centroids should not be lost in rounding, nor should a row be seen in it.
    finer = np.maximum(error_of(precision.near.deviation**2, precision), moments.variance * one_row(precision))
    variance = np.where(hidden, share * (1.0 - share), coarse_variances(moments.variance, finer))
    return Moments(count, mean, variance * count)


def error_of(variance: FloatArray, precision: Precision) -> FloatArray:
    """So many standard errors of a variance as everything is rounded to; as of a Gaussian."""
    return variance * (precision.near.coarseness * math.sqrt(2.0 / told_as_few(precision)))


def one_row(precision: Precision) -> float:
    """More than what one row can change, as a share of a variance or a correlation."""
    return STEP_OF_ONE_ROW / told_as_few(precision)


def told_as_few(precision: Precision) -> float:
    """The fewest people in all whose number is told like theirs."""
    return float(fewest_told_alike(np.array([precision.in_all]))[0])


def coarse_variances(variances: FloatArray, steps: FloatArray) -> FloatArray:
    """Rounded in steps no larger than themselves; what varies is not told as constant."""
    step = rounded_up(np.where(variances > 0.0, np.minimum(steps, variances), 1.0))
    return np.where(variances > 0.0, np.maximum(to_grid(variances, step), step), 0.0)


def coarse_shape(shape: FloatArray, precision: Precision) -> FloatArray:
    """Rounded variances and correlations; what rounding does to the smallest eigenvalue is undone."""
    variance = diagonal_of(shape)
    coarse = coarse_variances(variance, error_of(variance, precision))
    if shape.ndim == 1:
        return coarse
    deviation = np.sqrt(np.where(variance > 0.0, variance, 1.0))
    step = float(rounded_up(np.array([min(1.0, one_row(precision))]))[0])
    correlation = to_grid(shape / np.outer(deviation, deviation), np.asarray(step))
    np.fill_diagonal(correlation, 1.0)
    lacking = max(0.0, 1e-6 - float(np.linalg.eigvalsh(correlation)[0]))
    correlation = (correlation + lacking * np.eye(len(correlation))) / (1.0 + lacking)
    return np.asarray(correlation * np.sqrt(np.outer(coarse, coarse)))
