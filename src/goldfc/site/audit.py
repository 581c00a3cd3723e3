"""What would a message give away? Looked at with the rows at hand, before it is written."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.learning.k_means import sums_by_label
from goldfc.learning.moments import Moments
from goldfc.learning.rows import Chosen, RowSource, as_source, blocks_of, sample_of
from goldfc.message.columns import Column
from goldfc.message.summary import Summary
from goldfc.site.learn import Ends, Measured, ends_of, labelled, measure, moments_of, unit_of
from goldfc.site.membership import Guess, Trial, guess_of, learn, try_out
from goldfc.site.privacy import Told, count_people, equals_a_row, people_of_each

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
# has more others than that: half as many members make up for it.
INSIDE, OUTSIDE = 0.5, 0.12
MANY_PEOPLE = 20_000
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


USUAL = Limits()


@dataclass(frozen=True)
class Change:
    """People who came and went since the closest earlier message of largely the same people."""

    sent: str  # when
    added: int
    removed: int
    messages: int = 1  # so many of largely the same people were sent before, as far back as they are counted

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


def audit(
    rows: FloatArray | RowSource,
    told: Told,
    *,
    change: Change | None = None,
    required: int = 1,
    people: IntArray | None = None,
    limits: Limits = USUAL,
) -> Audit:
    """Look at what a site would send with the rows it was made of."""
    source, summary, labels = as_source(rows), told.summary, told.micro_clusters
    moments = moments_of(source)
    micro, ends, columns = measure(source, labels), ends_of(source, labels), columns_of(summary)
    each = people_of_each(labels, people)
    hidden = told.grid * each[:, None] if required > 1 else np.zeros(micro.mean.shape)
    same = all_alike(ends_of(source, labels, told.grid.min(axis=0)))
    return Audit(
        rows=source.shape[0],
        micro_clusters=len(summary.centroids),
        smallest=int(each.min()),
        required=required,
        exact_matches=int((equals_a_row(summary.centroids, source, told.grid) | same).sum()),
        distance_ratio=distance_ratio(
            source, summary.centroids, moments.mean, unit_of(moments, "pooled", summary.terms).scale
        ),
        membership=told.membership,
        constant_columns=constant_columns(ends, columns, moments),
        dominated=dominated_columns(source, labels, micro, ends, columns, hidden),
        change=change,
        limits=limits,
    )


def all_alike(ends: Ends) -> NDArray[np.bool_]:
    """Which micro-clusters have rows that are all the same up to rounding: their mean is each of them."""
    return np.asarray((ends.low == ends.high).all(axis=1))


def distance_ratio(rows: RowSource, centroids: FloatArray, mean: FloatArray, scale: FloatArray) -> float:
    """How far a centroid is from its nearest row, against how far a row is from its nearest: medians."""
    places = (centroids - mean) / scale
    nearest, own = np.full(len(places), np.inf), (places**2).sum(axis=1)
    for _, block in blocks_of(rows):
        unit = (block - mean) / scale
        nearest = np.minimum(nearest, ((unit**2).sum(axis=1) - 2.0 * (places @ unit.T)).min(axis=1))
    of_centroids = float(np.median(np.sqrt(np.maximum(own + nearest, 0.0))))
    distinct = np.unique((sample_of(rows, SAMPLE) - mean) / scale, axis=0)
    if len(distinct) < 2:
        return 0.0
    between = float(np.median(nearest_other(distinct)))
    return of_centroids / between if between > 0.0 else 0.0


def nearest_other(rows: FloatArray) -> FloatArray:
    """The distance of every row to the nearest other one; rows are looked at in blocks."""
    found = np.empty(len(rows))
    for start in range(0, len(rows), 256):
        block = rows[start : start + 256]
        squares = (block**2).sum(axis=1)[:, None] - 2.0 * block @ rows.T + (rows**2).sum(axis=1)
        squares[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        found[start : start + 256] = np.sqrt(np.maximum(squares.min(axis=1), 0.0))
    return found


# --- membership ---

Again = Callable[[FloatArray | RowSource, IntArray | None], Summary]  # other rows (and people), told as exactly


def membership_of(
    rows: RowSource, again: Again, people: IntArray | None = None, expected: float | None = None
) -> Guess | None:
    """How well the best test we know tells members from others; None if there are too few people to try.

    The rows are split again and again into some that are summarised as exactly as in the message, some that are not,
    and some that an attacker would have of her own. What is learned from half of the splits is tried on the other half.
    Few people are a poor measure, and they are few others to compare with: the mean with the area that is `expected`.
    """
    if count_people(rows, people) < FEWEST_PEOPLE:
        return None
    rng = np.random.default_rng(0)
    trials = [split_once(rows, again, people, rng) for _ in range(n_splits(rows.shape[0]))]
    halves = (trials[::2], trials[1::2])
    scored = [
        (rule(one.statistics), one.member)
        for learned, tried in (halves, halves[::-1])
        for rule in [learn(learned)]
        for one in tried
    ]
    combined = guess_of(np.concatenate([score for score, _ in scored]), np.concatenate([own for _, own in scored]))
    single = float(np.mean([single_test(learned, tried) for learned, tried in (halves, halves[::-1])]))
    auc, n_people = max(combined.auc, single), count_people(rows, people)
    if expected is not None:
        auc = (n_people * auc + EXPECTED_COUNTS * expected) / (n_people + EXPECTED_COUNTS)
    return Guess(auc, combined.found)


def n_splits(n_rows: int) -> int:
    """An even number."""
    return 2 * max(1, min(MOST_SPLITS, ROWS_TO_SPLIT // n_rows) // 2)


def split_once(rows: RowSource, again: Again, people: IntArray | None, rng: np.random.Generator) -> Trial:
    """One site of some of the rows, and what can be guessed of all of them."""
    if people is None:
        part = parts_of(rows.shape[0], rng)
    else:
        names, number = np.unique(people, return_inverse=True)
        part = parts_of(len(names), rng)[number]
    inside, outside, others = (np.flatnonzero(part == number).astype(np.int32) for number in range(3))
    summary = again(Chosen(rows, inside), None if people is None else people[inside])
    return try_out(some_of(rows, inside), some_of(rows, outside), some_of(rows, others), summary)


def parts_of(count: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """For every person the part she is in: 0 inside, 1 outside, 2 the attacker's own.

    Of few people exactly so many; of many by lot, a piece at a time, because there may be more than fit into memory.
    """
    if count > MANY_PEOPLE:
        part = np.empty(count, dtype=np.uint8)
        for start in range(0, count, MANY_PEOPLE):
            own = part[start : start + MANY_PEOPLE]
            own[:] = np.searchsorted((INSIDE, INSIDE + OUTSIDE), rng.random(len(own)), side="right")
        return part
    first = int(INSIDE * count)
    second = first + max(2, int(OUTSIDE * count))
    return np.repeat(np.arange(3, dtype=np.uint8), (first, second - first, count - second))[rng.permutation(count)]


def some_of(rows: RowSource, places: NDArray[np.int32]) -> FloatArray:
    """Rows at some places, not too many of them."""
    chosen = places[:: -(-len(places) // MOST_LOOKED_AT)]
    return Chosen(rows, chosen).read(0, len(chosen))


def single_test(learned: Sequence[Trial], tried: Sequence[Trial]) -> float:
    """The AUC of the one statistic that was the best before."""
    best = int(np.mean([areas(one) for one in learned], axis=0).argmax())
    return float(np.mean([areas(one)[best] for one in tried]))


def areas(trial: Trial) -> FloatArray:
    """The AUC of every statistic: how often a member has more of it than another, ties counting half."""
    members, others = int(trial.member.sum()), int((1 - trial.member).sum())
    ranks = rankdata(trial.statistics, axis=0)[trial.member == 1].sum(axis=0)
    return np.asarray((ranks - members * (members + 1) / 2.0) / (members * others))


# --- columns ---


def dominated_columns(
    rows: RowSource,
    micro_clusters: RowLabels,
    micro: Measured,
    ends: Ends,
    columns: Sequence[Column],
    hidden: FloatArray,
) -> tuple[tuple[str, int, int], ...]:
    """Columns of numbers where a micro-cluster's mean is mostly one row's: how many micro-clusters, and the worst row.

    As in the dominance rule of official statistics: whoever knows the size can multiply, and has that row's value. What
    is `hidden` by rounding cannot be had in this way.
    """
    sample = sample_of(rows, LARGE_SAMPLE)
    apart = np.abs(sample - np.median(sample, axis=0))
    # Where most values are one and the same, the mean of the differences says what is usual.
    usual = np.where(np.median(apart, axis=0) > 0.0, np.median(apart, axis=0), apart.mean(axis=0))
    counts, worst = np.zeros(rows.shape[1], dtype=np.int64), np.zeros((2, rows.shape[1]))
    for end in (ends.low, ends.high):
        others = (micro.mean * micro.size[:, None] - end) / np.maximum(micro.size - 1, 1)[:, None]
        apart, total = np.abs(end - others), np.zeros_like(end)
        for block, own in labelled(rows, micro_clusters):
            total += sums_by_label(np.abs(block - others[own]), own, len(total))
        alone = (apart > DOMINATES * total) & (apart > np.maximum(FAR * usual, hidden)) & (micro.size > 1)[:, None]
        counts += alone.sum(axis=0)
        for column in np.flatnonzero(alone.any(axis=0)).tolist():
            one = int(np.where(alone[:, column], apart[:, column], -1.0).argmax())
            if apart[one, column] > worst[0, column]:
                worst[:, column] = apart[one, column], first_row(rows, micro_clusters, one, column, end[one, column])
    return tuple(
        (column.name, int(count), int(row))
        for column, count, row in zip(columns, counts, worst[1], strict=True)
        if count and column.kind == "number"
    )


def first_row(rows: RowSource, micro_clusters: RowLabels, label: int, column: int, value: float) -> int:
    """Which row of a micro-cluster has a value in a column."""
    for where, block in blocks_of(rows):
        found = np.flatnonzero((micro_clusters[where] == label) & (block[:, column] == value))
        if len(found):
            return int(where.start + found[0])
    raise ValueError("there is no such row")


def columns_of(summary: Summary) -> Sequence[Column]:
    """That of every feature; where nobody named any, they are numbers."""
    return summary.terms.features or tuple(Column(name=str(number)) for number in range(summary.centroids.shape[1]))


def constant_columns(ends: Ends, columns: Sequence[Column], moments: Moments) -> tuple[tuple[str, int], ...]:
    """Columns that vary, but not inside some micro-clusters: there, one row's value is everybody's.

    Of yes and no and of categories, those that are sensitive: others often tell micro-clusters apart.
    """
    counts = (ends.low == ends.high).sum(axis=0)
    return tuple(
        (column.name, int(count))
        for column, count, varies in zip(columns, counts, moments.variance > 0.0, strict=True)
        if count and varies and (column.kind == "number" or column.sensitive)
    )
