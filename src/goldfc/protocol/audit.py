"""What would a message give away? Looked at with the rows at hand, before it is written."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import pairwise_distances_argmin_min, roc_auc_score

from goldfc._types import FloatArray, IntArray
from goldfc.learning.moments import Moments
from goldfc.protocol.message import Summary
from goldfc.protocol.privacy import ends_by_label, equals_a_row
from goldfc.protocol.terms import with_fixed_scales

# Above this, somebody who has a row can guess too well whether it was among those summarised.
TELLS_MEMBERS = 0.65
# Rows that are looked at for typical distances.
SAMPLE = 2000


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
        for name, count in self.constant_columns:
            found.append(f"column {name!r} has one and the same value in all rows of {count} micro-clusters")
        if self.change is not None and 0 < self.change.added + self.change.removed < max(self.required, 2):
            found.append(
                f"since the message of {self.change.sent} only {self.change.added} rows came and "
                f"{self.change.removed} went: the difference of the two messages may show them"
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
    scale = with_fixed_scales(moments.scale, summary.terms)
    unit, centroids = (rows - moments.mean) / scale, (summary.centroids - moments.mean) / scale
    return Audit(
        rows=len(rows),
        micro_clusters=len(centroids),
        smallest=int(np.bincount(micro_clusters).min()),
        required=required,
        exact_matches=int(equals_a_row(summary.centroids, rows).sum()),
        distance_ratio=distance_ratio(unit, centroids),
        membership_auc=membership_auc(rows, scale, again) if again is not None else None,
        constant_columns=constant_columns(rows, micro_clusters, summary, moments),
        change=change,
    )


def distance_ratio(rows: FloatArray, centroids: FloatArray) -> float:
    """How far a centroid is from its nearest row, against how far a row is from its nearest: medians."""
    sample = rows[:: max(1, len(rows) // SAMPLE)]
    of_centroids = np.median(pairwise_distances_argmin_min(centroids, rows)[1])
    distinct = np.unique(sample, axis=0)
    if len(distinct) < 2:
        return 0.0
    return float(of_centroids / np.median(nearest_other(distinct)))


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


def constant_columns(
    rows: FloatArray, micro_clusters: IntArray, summary: Summary, moments: Moments
) -> tuple[tuple[str, int], ...]:
    """Columns that vary, but not inside some micro-clusters: there, one row's value is everybody's."""
    low, high = ends_by_label(rows, micro_clusters)
    names = summary.terms.feature_names or tuple(f"{number}" for number in range(rows.shape[1]))
    kinds = [column.kind for column in summary.terms.features] or ["number"] * rows.shape[1]
    counts = (low == high).sum(axis=0)
    return tuple(
        (name, int(count))
        for name, kind, count, varies in zip(names, kinds, counts, moments.variance > 0.0, strict=True)
        if count and varies and kind == "number"
    )
