"""From rows to micro-clusters, and what is known of each; rows may be more than fit into memory."""

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.learning.k_means import learn_centres, nearest, sums_by_label
from goldfc.learning.micro_clusters import MicroClusters, means_of
from goldfc.learning.rows import RowSource, blocks_of, meanwhile


@dataclass(frozen=True)
class Found:
    """The micro-cluster of every row, without gaps, and of each its mean, its mass and its ends, in the rows' units."""

    labels: RowLabels
    micro: MicroClusters
    low: FloatArray  # (micro-clusters, features) the smallest value of every feature
    high: FloatArray

    def merged(self, into: IntArray) -> "Found":
        """Those that go into the same one, put together; labels that stay what they are are not copied."""
        shape = int(into.max()) + 1, self.low.shape[1]
        low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
        np.minimum.at(low, into, self.low)
        np.maximum.at(high, into, self.high)
        mass = np.bincount(into, weights=self.micro.mass).astype(np.float64)
        micro = MicroClusters(means_of(self.micro.centroids, into, self.micro.mass), mass)
        same = np.array_equal(into, np.arange(len(into)))
        labels = self.labels if same else into.astype(np.int32)[self.labels]
        return Found(labels, micro, low, high)


def find_micro_clusters(
    source: RowSource, to_unit: Callable[[FloatArray], FloatArray], count: int, rng: np.random.Generator
) -> Found:
    """As many as that, if so many of the rows that are learned differ; rows are compared as `to_unit` makes them.

    A table that is not large is learned whole; of a larger one a sample is, and then every row goes to the nearest
    centre. That takes two passes, and one if there is to be a single micro-cluster.
    """
    n_rows = source.shape[0]
    if count == 1:
        return measured(source, np.zeros(n_rows, dtype=np.int32), 1)
    blocks = meanwhile(source, (to_unit(rows) for _, rows in blocks_of(source)))
    learned, centres = learn_centres(blocks, n_rows, count, rng)
    if len(learned) == n_rows:
        return measured(source, learned.astype(np.int32), len(centres))
    labels = np.zeros(n_rows, dtype=np.int32)
    return measured(source, labels, len(centres), lambda rows: nearest(to_unit(rows), centres))


class Tally:
    """What is known of so many micro-clusters, collected while rows go by."""

    def __init__(self, count: int, n_features: int) -> None:
        self.size, self.total = np.zeros(count), np.zeros((count, n_features))
        self.low, self.high = np.full((count, n_features), np.inf), np.full((count, n_features), -np.inf)

    def add(self, own: IntArray, rows: FloatArray) -> None:
        """Some more: which micro-clusters they are in, and what they are."""
        self.size += np.bincount(own, minlength=len(self.size))
        self.total += sums_by_label(rows, own, len(self.size))
        order = np.argsort(own, kind="stable")
        those, first = np.unique(own[order], return_index=True)
        ordered = rows[order]
        self.low[those] = np.minimum(self.low[those], np.minimum.reduceat(ordered, first))
        self.high[those] = np.maximum(self.high[those], np.maximum.reduceat(ordered, first))


def measured(
    source: RowSource, labels: RowLabels, count: int, label: Callable[[FloatArray], IntArray] | None = None
) -> Found:
    """In one pass over the rows, in which they may still be labelled; who has no rows is left out."""

    def labelled() -> Generator[tuple[IntArray, FloatArray], None, None]:
        for where, rows in blocks_of(source):
            if label is not None:
                labels[where] = label(rows)
            yield labels[where].astype(np.int64), rows

    tally = Tally(count, source.shape[1])
    for own, rows in meanwhile(source, labelled()):
        tally.add(own, rows)
    used = tally.size > 0
    if not used.all():
        labels = (np.cumsum(used, dtype=np.int32) - 1)[labels]
    size = tally.size[used]
    return Found(labels, MicroClusters(tally.total[used] / size[:, None], size), tally.low[used], tally.high[used])
