"""What would a message give away? Looked at with the rows at hand, before it is written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin_min, roc_auc_score

from goldfc._types import FloatArray, IntArray
from goldfc.learning.moments import Moments
from goldfc.protocol.message import Summary
from goldfc.protocol.privacy import ends_by_label, equals_a_row, grid_of, to_grid
from goldfc.protocol.terms import with_fixed_scales

# Above this, somebody who has a row can guess too well whether it was among those summarised.
TELLS_MEMBERS = 0.65
# Rows that are looked at for typical distances.
SAMPLE = 2000
# A row dominates a mean when it makes up more than this share of all distances from the median, and is further out
# than so many times what is usual in the column.
DOMINATES, FAR = 0.8, 10.0


@dataclass(frozen=True)
class Change:
    """Rows that came and went since the last message of the same data."""

    sent: str  # when
    added: int
    removed: int


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

    @property
    def failures(self) -> tuple[str, ...]:
        """Why the message must not leave."""
        found = []
        if self.exact_matches:
            found.append(f"{self.exact_matches} of {self.micro_clusters} centroids are the same as a row")
        if self.smallest < self.required:
            found.append(f"the smallest micro-cluster has {self.smallest} rows, and {self.required} are required")
        return tuple(found)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What whoever sends it should know."""
        found = []
        if self.membership_auc is not None and self.membership_auc > TELLS_MEMBERS:
            found.append(
                f"whoever has a row can guess whether it is in here (AUC {self.membership_auc:.2f}; "
                f"0.5 is chance, above {TELLS_MEMBERS:g} is a risk): more rows, fewer columns or a larger "
                "`smallest` would help"
            )
        if self.distance_ratio < 0.5:
            found.append(
                f"centroids lie closer to rows than rows to each other ({self.distance_ratio:.2f} times as far)"
            )
        for name, count, row in self.dominated:
            found.append(
                f"in {count} micro-clusters the mean of column {name!r} is mostly the value of one row, which can be "
                f"worked out from it: look at row {row + 1}, correct it, or agree on a range"
            )
        for name, count in self.constant_columns:
            found.append(f"column {name!r} has one and the same value in all rows of {count} micro-clusters")
        if self.change is not None and 0 < self.change.added + self.change.removed < max(self.required, 2):
            found.append(
                f"since the message of {self.change.sent} only {self.change.added} rows came and "
                f"{self.change.removed} went: the difference of the two messages may show them; wait until more have "
                "changed, unless the earlier message was never handed over"
            )
        return tuple(found)


def audit(
    rows: FloatArray,
    summary: Summary,
    micro_clusters: IntArray,
    *,
    again: Callable[[FloatArray], Summary] | None = None,
    change: Change | None = None,
    required: int = 1,
) -> Audit:
    """Look at a summary with the rows it was made of; `again` makes one of other rows in the same way."""
    moments = Moments.of(rows)
    scale, grid = with_fixed_scales(moments.scale, summary.terms), grid_of(moments, summary.terms)
    unit, centroids = (rows - moments.mean) / scale, (summary.centroids - moments.mean) / scale
    return Audit(
        rows=len(rows),
        micro_clusters=len(centroids),
        smallest=int(np.bincount(micro_clusters).min()),
        required=required,
        exact_matches=int((equals_a_row(summary.centroids, rows, grid) | all_alike(rows, micro_clusters, grid)).sum()),
        distance_ratio=distance_ratio(unit, centroids),
        membership_auc=membership_auc(rows, scale, again) if again is not None else None,
        constant_columns=constant_columns(rows, micro_clusters, summary, moments),
        dominated=dominated_columns(rows, micro_clusters, summary),
        change=change,
    )


def all_alike(rows: FloatArray, micro_clusters: IntArray, grid: FloatArray) -> NDArray[np.bool_]:
    """Which micro-clusters have rows that are all the same up to rounding: their mean is each of them."""
    low, high = ends_by_label(to_grid(rows, grid), micro_clusters)
    return np.asarray((low == high).all(axis=1))


def distance_ratio(rows: FloatArray, centroids: FloatArray) -> float:
    """How far a centroid is from its nearest row, against how far a row is from its nearest: medians."""
    sample = rows[:: max(1, len(rows) // SAMPLE)]
    of_centroids = np.median(pairwise_distances_argmin_min(centroids, rows)[1])
    distinct = np.unique(sample, axis=0)
    if len(distinct) < 2:
        return 0.0
    between = float(np.median(nearest_other(distinct)))
    return float(of_centroids) / between if between > 0.0 else 0.0


def nearest_other(rows: FloatArray) -> FloatArray:
    """The distance of every row to the nearest other one; rows are looked at in blocks."""
    found = np.empty(len(rows))
    for start in range(0, len(rows), 256):
        block = rows[start : start + 256]
        squares = (block**2).sum(axis=1)[:, None] - 2.0 * block @ rows.T + (rows**2).sum(axis=1)
        squares[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        found[start : start + 256] = np.sqrt(np.maximum(squares.min(axis=1), 0.0))
    return found


def membership_auc(rows: FloatArray, scale: FloatArray, again: Callable[[FloatArray], Summary]) -> float:
    """How well the distance to the nearest centroid tells rows of a summary from rows that are not in it.

    Every other row is summarised, in an order that does not hang on where it stands in the file. 0.5 is chance.
    """
    inside = np.zeros(len(rows), dtype=bool)
    inside[np.lexsort(rows.T)[::2]] = True
    summary = again(rows[inside])
    distance = pairwise_distances_argmin_min(rows / scale, summary.centroids / scale)[1]
    return float(roc_auc_score(inside, -distance))


def dominated_columns(rows: FloatArray, micro_clusters: IntArray, summary: Summary) -> tuple[tuple[str, int, int], ...]:
    """Columns of numbers where a micro-cluster's mean is mostly one row's: how many micro-clusters, and the worst row.

    As in the dominance rule of official statistics: whoever knows the size can multiply, and has that row's value.
    """
    usual = np.median(np.abs(rows - np.median(rows, axis=0)), axis=0)
    counts, worst = np.zeros(rows.shape[1], dtype=np.int64), np.zeros((2, rows.shape[1]))
    for own in np.split(np.argsort(micro_clusters, kind="stable"), np.cumsum(np.bincount(micro_clusters))[:-1]):
        apart = np.abs(rows[own] - np.median(rows[own], axis=0))
        largest = apart.max(axis=0)
        alone = (largest > DOMINATES * apart.sum(axis=0)) & (largest > FAR * usual) & (usual > 0.0)
        counts += alone
        worse = alone & (largest > worst[0])
        worst[:, worse] = np.array([largest, own[apart.argmax(axis=0)]])[:, worse]
    names, kinds = names_and_kinds(summary, rows.shape[1])
    return tuple(
        (name, int(count), int(row))
        for name, kind, count, row in zip(names, kinds, counts, worst[1], strict=True)
        if count and kind == "number"
    )


def names_and_kinds(summary: Summary, n_features: int) -> tuple[Sequence[str], Sequence[str]]:
    """Of every feature; where nobody named any, they are numbers."""
    names = summary.terms.feature_names or tuple(map(str, range(n_features)))
    return names, [column.kind for column in summary.terms.features] or ["number"] * n_features


def constant_columns(
    rows: FloatArray, micro_clusters: IntArray, summary: Summary, moments: Moments
) -> tuple[tuple[str, int], ...]:
    """Columns that vary, but not inside some micro-clusters: there, one row's value is everybody's."""
    low, high = ends_by_label(rows, micro_clusters)
    names, kinds = names_and_kinds(summary, rows.shape[1])
    counts = (low == high).sum(axis=0)
    return tuple(
        (name, int(count))
        for name, kind, count, varies in zip(names, kinds, counts, moments.variance > 0.0, strict=True)
        if count and varies and kind == "number"
    )
