"""What would a message give away? Looked at with the rows at hand, before it is written."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, RowLabels
from goldfc.learning.finding import Found
from goldfc.learning.k_means import squares, sums_by_label, tiles
from goldfc.learning.moments import Moments
from goldfc.learning.rows import Sample
from goldfc.message.columns import Column
from goldfc.message.summary import Summary
from goldfc.site.learn import to_grid, unit_of
from goldfc.site.membership import Guess, Trial, areas, guess_by_score, statistics_of, train, try_out
from goldfc.site.privacy import SameAsRows, Told, people_of_each
from goldfc.site.rows import Rows

# Above this, somebody who has a row can guess whether it was among those summarised: the area under the curve, and the
# share of members found when one in a hundred others is taken for one. A site then tells less, as long as there is less
# to tell; above the second pair the message is refused, unless the site's policy says otherwise.
TELLS_MEMBERS, FINDS_MEMBERS = 0.68, 0.05
MOST_AUC, MOST_FOUND = 0.7, 0.1
# What theory expects counts as much as what so many people show.
EXPECTED_COUNTS = 60
# What a warning may be called; a site's policy accepts warnings by these names.
WARNINGS = ("membership", "near", "dominated", "constant")
# With fewer people nothing can be measured. Tables are split so often, as far as so many rows in all allow.
FEWEST_PEOPLE, MOST_SPLITS, ROWS_TO_SPLIT = 12, 40, 10_000
# Shares of the people that are summarised again, and that are tried beside these; the rest is the attacker's own. She
# has more others than that: half as many members make up for it. Of more than so many people a sample is split.
SHARE_INSIDE, OUTSIDE = 0.5, 0.12
MANY_PEOPLE, PEOPLE_AT_MOST = 20_000, 40_000
# Rows of each kind that are looked at in a split.
MOST_LOOKED_AT = 2_000
# Rows that are looked at for typical distances, and for what is usual in a column.
SAMPLE, LARGE_SAMPLE = 2000, 20_000
# A row dominates a mean when it makes up more than this share of all distances from the mean of the others, and is
# further out than so many times what is usual in the column.
DOMINATES, FAR = 0.7, 10.0


@dataclass(frozen=True)
class Finding:
    """Something that speaks against a message: a short name that stays the same, and half a sentence."""

    name: str
    sentence: str


@dataclass(frozen=True)
class Limits:
    """How much a message may give away, by the policy of the site that sends it."""

    most_auc: float = MOST_AUC
    most_tpr: float = MOST_FOUND
    least_changed: int | None = None  # people, since an earlier message of largely the same ones; None: as `required`
    most_messages: int | None = None  # of largely the same people, this one included
    most_questions: int | None = None  # that these answer


USUAL = Limits()


@dataclass(frozen=True)
class Change:
    """People who came and went since the closest earlier message of largely the same people."""

    sent: str  # when
    added: int
    removed: int
    messages: int = 1  # so many of largely the same people were sent before, as far back as they are counted
    questions: int = 1  # so many different ones they answered, with this message's

    @property
    def people(self) -> int:
        """How many came or went."""
        return self.added + self.removed


@dataclass(frozen=True)
class Audit:
    """What was found. `failures` forbid the message, `warnings` do not."""

    rows: int
    micro_clusters: int
    smallest: int  # rows in the smallest micro-cluster
    required: int  # how many there must be
    exact_matches: int  # centroids that are a row
    distance_ratio: float  # of a centroid to its nearest row, against that of a row to its nearest: medians
    membership: Guess | None  # how well members are told from others, at best; None: too few people to measure it
    constant_columns: tuple[tuple[str, int], ...]  # columns with one value in a micro-cluster, and in how many of these
    dominated: tuple[tuple[str, int, int], ...]  # columns, micro-clusters whose mean is one row's, and that row
    change: Change | None
    limits: Limits = USUAL

    @property
    def failures(self) -> tuple[Finding, ...]:
        """Why the message must not leave."""
        return (*self._failures_of_rows(), *self._failures_of_change())

    def _failures_of_rows(self) -> Iterator[Finding]:
        yield from self._failures_of_membership()
        if self.exact_matches:
            yield Finding("exact", f"{self.exact_matches} of {self.micro_clusters} centroids are the same as a row")
        if self.smallest < self.required:
            yield Finding(
                "small", f"the smallest micro-cluster has {self.smallest} rows, and {self.required} are required"
            )

    def _failures_of_membership(self) -> Iterator[Finding]:
        if self.required > 1 and self.membership is None:
            yield Finding("unmeasured", "there are too few people to measure what it gives away")
        elif self.membership is not None and self._is_above(self.limits.most_auc, self.limits.most_tpr):
            yield Finding(
                "membership", f"{self._membership} (limits: {self.limits.most_auc:g} and {self.limits.most_tpr:g})"
            )

    def _is_above(self, auc: float, found: float) -> bool:
        return self.membership is not None and (self.membership.auc > auc or self.membership.found > found)

    @property
    def _membership(self) -> str:
        guess = self.membership or Guess(0.5, 0.01)
        return (
            f"whoever has a row can guess whether it is in here (AUC {guess.auc:.2f}, 0.5 is chance; {guess.found:.0%} "
            "of members found at 1% false alarms): more rows, fewer columns or a larger `smallest` would help"
        )

    def _failures_of_change(self) -> Iterator[Finding]:
        least, most = self.limits.least_changed, self.limits.most_messages
        least = max(self.required, 2) if least is None else least
        if self.change is not None and 0 < self.change.people < least:
            yield Finding(
                "change",
                f"since the message of {self.change.sent} only {self.change.added} people came and "
                f"{self.change.removed} went: the difference of the two messages may show them; wait until {least} "
                "have changed, or let `goldfc forget` remove the earlier message if it was never handed over",
            )
        if self.change is not None and most is not None and self.change.messages >= most:
            yield Finding(
                "messages",
                f"{self.change.messages} messages of largely the same people have left before, and {most} are the most",
            )
        yield from self._failures_of_questions()

    def _failures_of_questions(self) -> Iterator[Finding]:
        change, most = self.change, self.limits.most_questions
        if change is not None and most is not None and change.questions > most:
            yield Finding(
                "questions",
                f"largely the same people have answered {change.questions - 1} different questions before (columns and "
                f"settings), and {most} are the most: together, such answers tell who is in them",
            )

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What whoever sends it should know."""
        return tuple(self._warnings())

    def _warnings(self) -> Iterator[Finding]:
        if self._is_above(TELLS_MEMBERS, FINDS_MEMBERS) and not tuple(self._failures_of_membership()):
            yield Finding("membership", self._membership)
        if self.distance_ratio < 0.5:
            yield Finding(
                "near", f"centroids lie closer to rows than rows to each other ({self.distance_ratio:.2f} times as far)"
            )
        for name, count, row in self.dominated:
            yield Finding(
                "dominated",
                f"in {count} micro-clusters the mean of column {name!r} is mostly the value of one row, which can be "
                f"worked out from it: look at row {row + 1}, correct it, or agree on a range",
            )
        for name, count in self.constant_columns:
            yield Finding(
                "constant", f"column {name!r} has one and the same value in all rows of {count} micro-clusters"
            )


def audit(told: Told, *, change: Change | None = None, required: int = 1, limits: Limits = USUAL) -> Audit:
    """Look at what a site would send with the rows it was made of, in one pass over these."""
    rows, summary, found = told.rows, told.summary, told.found
    columns, each = columns_of(summary), people_of_each(found.labels, rows.people)
    near, same = NearestRow(rows, summary), SameAsRows(summary.centroids, told.grid)
    low, high = Apart(found, found.low), Apart(found, found.high)
    usual = Sample(rows.source, LARGE_SAMPLE)
    rows.sweep(near, same, low, high, usual)
    hidden = told.grid * each[:, None] if required > 1 else np.zeros(told.grid.shape)
    return Audit(
        rows=rows.shape[0],
        micro_clusters=len(summary.centroids),
        smallest=int(each.min()),
        required=required,
        exact_matches=int((same.found | all_alike(found, told.grid.min(axis=0))).sum()),
        distance_ratio=near.ratio,
        membership=told.membership,
        constant_columns=constant_columns(found, columns, rows.moments),
        dominated=dominated_columns(rows, found, (low, high), columns, np.maximum(FAR * usual_in(usual.rows), hidden)),
        change=change,
        limits=limits,
    )


def all_alike(found: Found, grid: FloatArray) -> NDArray[np.bool_]:
    """Which micro-clusters have rows that are all the same up to rounding: their mean is each of them."""
    return np.asarray((to_grid(found.low, grid) == to_grid(found.high, grid)).all(axis=1))


class NearestRow:
    """Collects how far a centroid is from its nearest row, and a few rows to compare with."""

    def __init__(self, rows: Rows, summary: Summary) -> None:
        self._mean, self._scale = rows.moments.mean, unit_of(rows.moments, "pooled", summary.terms).scale
        self._places = (summary.centroids - self._mean) / self._scale
        # Of a row x and its square x x, what its squared distance from a place p is but for p p: x x - 2 x p.
        self._columns = np.vstack([-2.0 * self._places.T, np.ones(len(self._places))])
        self._nearest = np.full(len(self._places), np.inf)
        self._sample = Sample(rows.source, SAMPLE)

    def see(self, where: slice, rows: FloatArray) -> None:
        """One more block."""
        unit = np.empty((len(rows), len(self._columns)))
        np.divide(rows - self._mean, self._scale, out=unit[:, :-1])
        unit[:, -1] = squares(unit[:, :-1])
        for few in tiles(unit, self._columns):
            np.minimum(self._nearest, few.min(axis=0), out=self._nearest)
        self._sample.see(where, rows)

    @property
    def ratio(self) -> float:
        """That distance against how far a row is from its nearest: medians."""
        squares = (self._places**2).sum(axis=1) + self._nearest
        of_centroids = float(np.median(np.sqrt(np.maximum(squares, 0.0))))
        distinct = np.unique((self._sample.rows - self._mean) / self._scale, axis=0)
        if len(distinct) < 2:
            return 0.0
        between = float(np.median(nearest_other(distinct)))
        return of_centroids / between if between > 0.0 else 0.0


def nearest_other(rows: FloatArray) -> FloatArray:
    """The distance of every row to the nearest other one; rows are looked at in blocks.

    Half the squared distance of x and y is x^2 / 2 + y^2 / 2 - x y.
    """
    half, found = 0.5 * squares(rows), np.empty(len(rows))
    for start in range(0, len(rows), 256):
        own = slice(start, start + 256)
        apart = half - rows[own] @ rows.T
        np.fill_diagonal(apart[:, start:], np.inf)
        found[own] = half[own] + apart.min(axis=1)
    return np.sqrt(np.maximum(2.0 * found, 0.0))


# --- membership ---

Again = Callable[[Rows], Summary]  # other rows, told as exactly


def membership_of(rows: Rows, again: Again, expected: float | None = None) -> Guess | None:
    """How well the best test we know tells members from others; None if there are too few people to try.

    The rows are split again and again into some that are summarised as exactly as in the message, some that are not,
    and some that an attacker would have of her own. What is learned from half of the splits is tried on the other half.
    Few people are a poor measure, and they are few others to compare with: the mean with the area that is `expected`.
    """
    if rows.n_people < FEWEST_PEOPLE:
        return None
    trials = trials_of(rows, again, np.random.default_rng(0))
    halves = (slice(0, None, 2), slice(1, None, 2))
    crossed = (halves, halves[::-1])
    score = [train(trials[learned])(statistics_of(trials[tried])) for learned, tried in crossed]
    member = [one.member for _, tried in crossed for one in trials[tried]]
    combined = guess_by_score(np.concatenate(score), np.concatenate(member))
    # And by the one statistic that was the best before.
    each = np.array([areas(one) for one in trials])
    single = float(np.mean([each[tried][:, each[learned].mean(axis=0).argmax()].mean() for learned, tried in crossed]))
    auc = max(combined.auc, single)
    if expected is not None:
        auc = (rows.n_people * auc + EXPECTED_COUNTS * expected) / (rows.n_people + EXPECTED_COUNTS)
    return Guess(auc, combined.found)


def trials_of(rows: Rows, again: Again, rng: np.random.Generator) -> list[Trial]:
    """An even number of splits; of many people a single one, and those who are looked at in two halves.

    Of very many a sample is split. The fewer there are, the more a site tells of each: what is measured is no less.
    """
    if rows.n_people > MANY_PEOPLE:
        return list(halves_of(rows, split_once(rows, rng), again, rng))
    count = 2 * max(1, min(MOST_SPLITS, ROWS_TO_SPLIT // rows.shape[0]) // 2)
    return [tried(rows, split_once(rows, rng), again) for _ in range(count)]


@dataclass(frozen=True)
class Places:
    """Places of the rows of one site, of others that are tried beside these, and of those that are the attacker's."""

    inside: RowLabels
    outside: RowLabels
    others: RowLabels

    def looked_at(self) -> tuple[RowLabels, RowLabels, RowLabels]:
        """Not too many of each."""
        inside, outside, others = (
            places[:: -(-len(places) // MOST_LOOKED_AT)] for places in (self.inside, self.outside, self.others)
        )
        return inside, outside, others


def split_once(rows: Rows, rng: np.random.Generator) -> Places:
    """By lot, all rows of a person alike."""
    if rows.people is None:
        part = lots_of(rows.shape[0], rng)
    else:
        names, number = np.unique(rows.people, return_inverse=True)
        part = lots_of(len(names), rng)[number]
    inside, outside, others = (np.flatnonzero(part == number).astype(np.int32) for number in range(3))
    return Places(inside, outside, others)


def lots_of(count: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """For every person the part she is in: 0 inside, 1 outside, 2 the attacker's own, 3 none of these.

    Of few people exactly so many; of many by lot, a piece at a time, because there may be more than fit into memory.
    """
    if count > MANY_PEOPLE:
        part, up_to = np.empty(count, dtype=np.uint8), np.array([SHARE_INSIDE, SHARE_INSIDE + OUTSIDE, 1.0])
        up_to *= min(1.0, PEOPLE_AT_MOST / count)
        for start in range(0, count, MANY_PEOPLE):
            own = part[start : start + MANY_PEOPLE]
            own[:] = np.searchsorted(up_to, rng.random(len(own)), side="right")
        return part
    first = int(SHARE_INSIDE * count)
    second = first + max(2, int(OUTSIDE * count))
    return np.repeat(np.arange(3, dtype=np.uint8), (first, second - first, count - second))[rng.permutation(count)]


def tried(rows: Rows, split: Places, again: Again) -> Trial:
    """One site of some of the rows, and what can be guessed of all of them."""
    summary = again(rows.chosen(split.inside))
    inside, outside, others = (rows.source.take(places) for places in split.looked_at())
    return try_out(inside, outside, others, summary)


def halves_of(rows: Rows, split: Places, again: Again, rng: np.random.Generator) -> Iterator[Trial]:
    """Those who are looked at in one split, in two halves by lot, all rows of a person in one of them."""
    trial, places = tried(rows, split, again), np.concatenate(split.looked_at()[:2])
    names, number = np.unique(places if rows.people is None else rows.people[places], return_inverse=True)
    half = (rng.permutation(len(names)) % 2)[number]
    for one in range(2):
        yield Trial(trial.statistics[half == one], trial.member[half == one])


# --- columns ---


class Apart:
    """Collects, of the micro-clusters' values at one end, how far they are from the mean of the others.

    Beside how far all rows are from there, added up: (micro-clusters, features).
    """

    def __init__(self, found: Found, end: FloatArray) -> None:
        size = found.micro.mass[:, None]
        self._labels, self.end = found.labels, end
        self._others = (found.micro.centroids * size - end) / np.maximum(size - 1, 1)
        self.apart, self.total = np.abs(end - self._others), np.zeros_like(end)

    def see(self, where: slice, rows: FloatArray) -> None:
        """One more block."""
        own = self._labels[where].astype(np.int64)
        self.total += sums_by_label(np.abs(rows - self._others[own]), own, len(self.total))


def usual_in(sample: FloatArray) -> FloatArray:
    """How far values usually are from the middle of their column."""
    apart = np.abs(sample - np.median(sample, axis=0))
    # Where most values are one and the same, the mean of the differences says what is usual.
    return np.where(np.median(apart, axis=0) > 0.0, np.median(apart, axis=0), apart.mean(axis=0))


def dominated_columns(
    rows: Rows, found: Found, ends: Sequence[Apart], columns: Sequence[Column], least: FloatArray
) -> tuple[tuple[str, int, int], ...]:
    """Columns of numbers where a micro-cluster's mean is mostly one row's: how many micro-clusters, and the worst row.

    As in the dominance rule of official statistics: whoever knows the size can multiply, and has that row's value. What
    is no further out than the `least`, because it is usual or hidden by rounding, cannot be had in this way.
    """
    several = (found.micro.mass > 1)[:, None]
    apart = np.array(
        [one.apart * ((one.apart > DOMINATES * one.total) & (one.apart > least) & several) for one in ends]
    )
    counts = (apart > 0.0).sum(axis=(0, 1))
    of_numbers = [number for number in np.flatnonzero(counts).tolist() if columns[number].kind == "number"]
    # Of every such column, the end and the micro-cluster where it is worst.
    worst = {number: divmod(int(apart[:, :, number].argmax()), apart.shape[1]) for number in of_numbers}
    first = FirstRows(found.labels, {(one, number): ends[end].end[one, number] for number, (end, one) in worst.items()})
    rows.sweep(*[first] * bool(worst))
    return tuple(
        (columns[number].name, int(counts[number]), first.places[one, number]) for number, (_, one) in worst.items()
    )


class FirstRows:
    """Collects the first row of a micro-cluster that has a certain value in a column."""

    def __init__(self, labels: RowLabels, wanted: Mapping[tuple[int, int], float]) -> None:
        self._labels, self._wanted = labels, wanted
        self.places = dict[tuple[int, int], int]()

    def see(self, where: slice, rows: FloatArray) -> None:
        """One more block."""
        for (one, column), value in self._wanted.items():
            found = np.flatnonzero((self._labels[where] == one) & (rows[:, column] == value))
            if len(found):
                self.places.setdefault((one, column), int(where.start + found[0]))


def columns_of(summary: Summary) -> Sequence[Column]:
    """That of every feature; where nobody named any, they are numbers."""
    return summary.terms.features or tuple(Column(name=str(number)) for number in range(summary.centroids.shape[1]))


def constant_columns(found: Found, columns: Sequence[Column], moments: Moments) -> tuple[tuple[str, int], ...]:
    """Columns that vary, but not inside some micro-clusters: there, one row's value is everybody's.

    Of yes and no and of categories, those that are sensitive: others often tell micro-clusters apart.
    """
    counts = (found.low == found.high).sum(axis=0)
    return tuple(
        (column.name, int(count))
        for column, count, varies in zip(columns, counts, moments.variance > 0.0, strict=True)
        if count and varies and (column.kind == "number" or column.sensitive)
    )
