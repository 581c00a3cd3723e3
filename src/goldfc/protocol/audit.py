"""What would a message give away? Looked at with the rows at hand, before it is written."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin_min, roc_auc_score

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.learning.k_means import sums_by_label
from goldfc.learning.moments import Moments
from goldfc.protocol.finding import Ends, Measured, ends_of, labelled, measure, moments_of, unit_of
from goldfc.protocol.message import Summary
from goldfc.protocol.privacy import equals_a_row
from goldfc.protocol.rows import MOST_ROWS, Chosen, RowSource, as_source, blocks_of, sample_of

# Above this, somebody who has a row can guess too well whether it was among those summarised: the area under the curve,
# and the share of members found when one in a hundred others is taken for one.
TELLS_MEMBERS, MOST_FOUND = 0.65, 0.05
# What a warning may be called; a site's policy accepts warnings by these names.
WARNINGS = ("membership", "near", "dominated", "constant")
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

    most_auc: float = TELLS_MEMBERS
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
    membership_auc: float | None  # how well members are told from others, by splitting; None: too few rows to try
    constant_columns: tuple[tuple[str, int], ...]  # columns with one value in a micro-cluster, and in how many of these
    dominated: tuple[tuple[str, int, int], ...]  # columns, micro-clusters whose mean is one row's, and that row
    change: Change | None
    limits: Limits = USUAL

    @property
    def failures(self) -> tuple[Finding, ...]:
        """Why the message must not leave."""
        return (*self._failures_of_rows(), *self._failures_of_change())

    def _failures_of_rows(self) -> Iterator[Finding]:
        if self.exact_matches:
            yield Finding("exact", f"{self.exact_matches} of {self.micro_clusters} centroids are the same as a row")
        if self.smallest < self.required:
            yield Finding(
                "small", f"the smallest micro-cluster has {self.smallest} rows, and {self.required} are required"
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
        if self.membership_auc is not None and self.membership_auc > self.limits.most_auc:
            yield Finding(
                "membership",
                f"whoever has a row can guess whether it is in here (AUC {self.membership_auc:.2f}; "
                f"0.5 is chance, above {self.limits.most_auc:g} is a risk): more rows, fewer columns or a larger "
                "`smallest` would help",
            )
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


def audit(  # noqa: PLR0913 (most have a default)
    rows: FloatArray | RowSource,
    summary: Summary,
    micro_clusters: RowLabels,
    *,
    again: Callable[[FloatArray | RowSource], Summary] | None = None,
    change: Change | None = None,
    required: int = 1,
    people: IntArray | None = None,  # noqa: ARG001 (whose each row is; rows are counted so far)
    steps: Mapping[str, float] = MappingProxyType({}),
    limits: Limits = USUAL,
) -> Audit:
    """Look at a summary with the rows it was made of; `again` makes one of other rows in the same way."""
    source = as_source(rows)
    moments = moments_of(source)
    scale, grid = unit_of(moments, "pooled", summary.terms).scale, grid_of(moments, summary.terms, steps)
    micro, ends = measure(source, micro_clusters), ends_of(source, micro_clusters)
    alike = all_alike(ends_of(source, micro_clusters, grid))
    return Audit(
        rows=source.shape[0],
        micro_clusters=len(summary.centroids),
        smallest=int(micro.size.min()),
        required=required,
        exact_matches=int((equals_a_row(summary.centroids, source, grid) | alike).sum()),
        distance_ratio=distance_ratio(source, summary.centroids, moments.mean, scale),
        membership_auc=membership_auc(source, scale, again) if again is not None else None,
        constant_columns=constant_columns(ends, summary, moments),
        dominated=dominated_columns(source, micro_clusters, micro, ends, summary),
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


def membership_auc(rows: RowSource, scale: FloatArray, again: Callable[[FloatArray | RowSource], Summary]) -> float:
    """How well the distance to the nearest centroid tells rows of a summary from rows that are not in it.

    About half of the rows are summarised, chosen by what they are and not by where they stand in the file. 0.5 is
    chance. Of many rows, a sample is guessed.
    """
    inside = every_other(rows)
    summary = again(Chosen(rows, np.flatnonzero(inside).astype(np.int32)))
    step = -(-len(inside) // LARGE_SAMPLE)
    distance = pairwise_distances_argmin_min(sample_of(rows, LARGE_SAMPLE) / scale, summary.centroids / scale)[1]
    return float(roc_auc_score(inside[::step], -distance))


def every_other(rows: RowSource) -> NDArray[np.bool_]:
    """Half of the rows: every other one in a sorted table, or of a table that is too large to sort by a hash."""
    inside = np.zeros(rows.shape[0], dtype=bool)
    if len(inside) <= MOST_ROWS:
        inside[np.lexsort(rows.read(0, len(inside)).T)[::2]] = True
        return inside
    odd = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    for where, block in blocks_of(rows):
        mixed = (np.ascontiguousarray(block).view(np.uint64) * odd).sum(axis=1, dtype=np.uint64)
        # Low bits of decimals are all alike; multiplying once more carries the others' differences to the top.
        inside[where] = ((mixed ^ (mixed >> np.uint64(32))) * odd[0]) >> np.uint64(63) == 1
    return inside


def dominated_columns(
    rows: RowSource, micro_clusters: RowLabels, micro: Measured, ends: Ends, summary: Summary
) -> tuple[tuple[str, int, int], ...]:
    """Columns of numbers where a micro-cluster's mean is mostly one row's: how many micro-clusters, and the worst row.

    As in the dominance rule of official statistics: whoever knows the size can multiply, and has that row's value.
    """
    sample = sample_of(rows, LARGE_SAMPLE)
    usual = np.median(np.abs(sample - np.median(sample, axis=0)), axis=0)
    counts, worst = np.zeros(rows.shape[1], dtype=np.int64), np.zeros((2, rows.shape[1]))
    for end in (ends.low, ends.high):
        others = (micro.mean * micro.size[:, None] - end) / np.maximum(micro.size - 1, 1)[:, None]
        apart, total = np.abs(end - others), np.zeros_like(end)
        for block, own in labelled(rows, micro_clusters):
            total += sums_by_label(np.abs(block - others[own]), own, len(total))
        alone = (apart > DOMINATES * total) & (apart > FAR * usual) & (usual > 0.0) & (micro.size > 1)[:, None]
        counts += alone.sum(axis=0)
        for column in np.flatnonzero(alone.any(axis=0)).tolist():
            one = int(np.where(alone[:, column], apart[:, column], -1.0).argmax())
            if apart[one, column] > worst[0, column]:
                worst[:, column] = apart[one, column], first_row(rows, micro_clusters, one, column, end[one, column])
    names, kinds = names_and_kinds(summary, rows.shape[1])
    return tuple(
        (name, int(count), int(row))
        for name, kind, count, row in zip(names, kinds, counts, worst[1], strict=True)
        if count and kind == "number"
    )


def first_row(rows: RowSource, micro_clusters: RowLabels, label: int, column: int, value: float) -> int:
    """Which row of a micro-cluster has a value in a column."""
    for where, block in blocks_of(rows):
        found = np.flatnonzero((micro_clusters[where] == label) & (block[:, column] == value))
        if len(found):
            return int(where.start + found[0])
    raise ValueError("there is no such row")


def names_and_kinds(summary: Summary, n_features: int) -> tuple[Sequence[str], Sequence[str]]:
    """Of every feature; where nobody named any, they are numbers."""
    names = summary.terms.feature_names or tuple(map(str, range(n_features)))
    return names, [column.kind for column in summary.terms.features] or ["number"] * n_features


def constant_columns(ends: Ends, summary: Summary, moments: Moments) -> tuple[tuple[str, int], ...]:
    """Columns that vary, but not inside some micro-clusters: there, one row's value is everybody's."""
    names, kinds = names_and_kinds(summary, len(moments.mean))
    counts = (ends.low == ends.high).sum(axis=0)
    return tuple(
        (name, int(count))
        for name, kind, count, varies in zip(names, kinds, counts, moments.variance > 0.0, strict=True)
        if count and varies and kind == "number"
    )
