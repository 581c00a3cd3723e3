"""Rows of a site as its page sees them, without a file."""

from collections.abc import Callable

import numpy as np

from goldfc import Model
from goldfc._types import FloatArray
from goldfc.report.own_rows import OwnRows
from goldfc.site.labels import LabelCounts, Labels, label_rows


def own_rows(
    model: Model, rows: FloatArray, size: int = 10**9, name: Callable[[int], str] = str, reason: str = "no value"
) -> tuple[OwnRows, LabelCounts]:
    """Some rows at a time; those that begin with what is not a number have no label, for a reason."""
    own, counts = OwnRows(model), LabelCounts()
    for first in range(0, len(rows), size):
        block = rows[first : first + size]
        kept = np.flatnonzero(~np.isnan(block[:, 0]))
        cluster, certainty, far = np.full(len(block), -1), np.full(len(block), np.nan), np.zeros(len(block), dtype=bool)
        cluster[kept], certainty[kept], far[kept] = label_rows(block[kept], model)
        ids = tuple(name(first + number + 1) for number in range(len(block)))
        why = tuple("" if one >= 0 else reason for one in cluster.tolist())
        labels = Labels(ids, cluster, certainty, far, why)
        own.see(labels, block[kept])
        counts.add(labels)
    return own, counts
