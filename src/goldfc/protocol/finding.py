"""From rows to micro-clusters, and what is known of each: at once, or where rows are many in blocks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.learning.blocks import BLOCK, learn_in_blocks, nearest
from goldfc.learning.competition import compete
from goldfc.learning.mixture import form_of_shape, scatter_of, sums_by_label
from goldfc.learning.moments import Moments, pool_moments
from goldfc.learning.thinning import thin
from goldfc.protocol.message import Scaling, Task
from goldfc.protocol.rows import RowSource, blocks_of
from goldfc.protocol.terms import Terms, ranges_of, with_fixed_scales

Transform = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Blocks:
    """When rows are learned in blocks: if there are more than `most_at_once`.

    Blocks are learned side by side if `n_jobs` says so; the result does not hang on that.
    """

    most_at_once: int = 10_000
    n_jobs: int | None = None


WHEN_MANY = Blocks()


@dataclass(frozen=True)
class Found:
    """The micro-cluster of every row; `blocks` is how many blocks the rows were learned in (0: at once)."""

    labels: RowLabels
    blocks: int = 0
    centroids: FloatArray | None = None  # as the competition left them; None: they are still to be measured


def moments_of(source: RowSource) -> Moments:
    """Those of all rows."""
    return pool_moments([Moments.of(rows) for _, rows in blocks_of(source)])


def unit_scale(moments: Moments, scaling: Scaling, terms: Terms) -> Transform:
    """How rows are brought to the scale they are learned in: all features of about the same spread."""
    if scaling == "given":
        return lambda rows: rows
    if scaling == "ranges":
        low, high = ranges_of(terms)
        return lambda rows: np.asarray((rows - low) / (high - low))
    scale = with_fixed_scales(moments.scale, terms)
    return lambda rows: np.asarray((rows - moments.mean) / scale)


def find_micro_clusters(
    source: RowSource, to_unit: Transform, task: Task, rng: np.random.Generator, blocks: Blocks
) -> Found:
    """At once or in blocks."""
    if source.shape[0] > blocks.most_at_once:
        return find_in_blocks(source, to_unit, task, rng, blocks.n_jobs)
    return find_at_once(source, to_unit, task, rng)


def find_at_once(source: RowSource, to_unit: Transform, task: Task, rng: np.random.Generator) -> Found:
    """The paper's FCPL on all rows; what it leaves is merged if it is more than wanted."""
    n_rows = source.shape[0]
    rows = to_unit(source.read(0, n_rows))
    outcome = compete(rows, task.learning.candidates(n_rows), task.learning, rng)
    if outcome.n_clusters <= task.limit(n_rows):
        return Found(outcome.labels.astype(np.int32), centroids=outcome.centroids if task.scaling == "given" else None)
    into = thin(outcome.centroids, np.bincount(outcome.labels).astype(np.float64), task.limit(n_rows))
    return Found(into[outcome.labels].astype(np.int32))


def find_in_blocks(
    source: RowSource, to_unit: Transform, task: Task, rng: np.random.Generator, n_jobs: int | None
) -> Found:
    """Half of the rows, in blocks, and their micro-clusters merged; then all rows go to the nearest of these."""
    n_rows = source.shape[0]
    blocks = (to_unit(rows) for rows in half_of(source, *rng.spawn(1)))
    micro = learn_in_blocks(blocks, task.learning, rng, n_jobs)
    micro = micro.merged(thin(micro.centroids, micro.mass, task.limit(n_rows)))
    labels = np.empty(n_rows, dtype=np.int32)
    for where, rows in blocks_of(source):
        labels[where] = nearest(to_unit(rows), micro.centroids)
    return Found(without_gaps(labels, len(micro)), blocks=-(-n_rows // (2 * BLOCK)))


def half_of(source: RowSource, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Half of the rows, in blocks: of every two, one by lot, because what alternates in a table may mean something."""
    for _, rows in blocks_of(source, 2 * BLOCK):
        first = np.arange(0, len(rows), 2)
        yield rows[np.minimum(first + rng.integers(2, size=len(first)), len(rows) - 1)]


def without_gaps(labels: RowLabels, count: int) -> RowLabels:
    """Numbered 0, 1, ... if nobody went to some of them."""
    used = np.zeros(count, dtype=bool)
    for start in range(0, len(labels), 1_000_000):
        used[labels[start : start + 1_000_000]] = True
    return labels if used.all() else renamed(labels, np.cumsum(used) - 1)


def renamed(labels: RowLabels, into: IntArray | RowLabels) -> RowLabels:
    """The labels after clusters went into others; in place, because there may be many."""
    for start in range(0, len(labels), 1_000_000):
        part = labels[start : start + 1_000_000]
        part[:] = into[part]
    return labels


# --- what is known of each micro-cluster ---


@dataclass(frozen=True)
class Measured:
    """Of every micro-cluster: how many rows it has, and their mean."""

    size: IntArray  # (micro-clusters,)
    mean: FloatArray  # (micro-clusters, features)

    def merged(self, into: IntArray) -> "Measured":
        """Those that go into the same one, put together."""
        size = np.bincount(into, weights=self.size)
        return Measured(size.astype(np.int64), sums_by_label(self.mean * self.size[:, None], into) / size[:, None])


def labelled(source: RowSource, labels: RowLabels) -> Iterator[tuple[FloatArray, IntArray]]:
    """Blocks of rows, each with the labels of its rows."""
    for where, rows in blocks_of(source):
        yield rows, labels[where].astype(np.int64)


def measure(source: RowSource, labels: RowLabels) -> Measured:
    """In one pass over the rows."""
    count = int(labels.max()) + 1
    size, total = np.zeros(count, dtype=np.int64), np.zeros((count, source.shape[1]))
    for rows, own in labelled(source, labels):
        size += np.bincount(own, minlength=count)
        total += sums_by_label(rows, own, count)
    return Measured(size, total / size[:, None])


@dataclass(frozen=True)
class Ends:
    """Of every micro-cluster: the smallest and the largest value of every feature."""

    low: FloatArray  # (micro-clusters, features)
    high: FloatArray


def ends_of(source: RowSource, labels: RowLabels, grid: FloatArray | None = None) -> Ends:
    """In one pass over the rows; with a grid, of their values rounded to it."""
    shape = int(labels.max()) + 1, source.shape[1]
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    for rows, own in labelled(source, labels):
        points = rows if grid is None else to_grid(rows, grid)
        order = np.argsort(own, kind="stable")
        those, first = np.unique(own[order], return_index=True)
        low[those] = np.minimum(low[those], np.minimum.reduceat(points[order], first))
        high[those] = np.maximum(high[those], np.maximum.reduceat(points[order], first))
    return Ends(low, high)


def to_grid(values: FloatArray, grid: FloatArray) -> FloatArray:
    """The nearest points of the grid."""
    return np.asarray(np.round(values / grid) * grid)


def shape_of(source: RowSource, labels: RowLabels, centroids: FloatArray) -> FloatArray:
    """How rows lie around their own micro-centroids, in the mean: a covariance, or with many features variances."""
    scatter = np.zeros(form_of_shape(source.shape[1]))
    for rows, own in labelled(source, labels):
        scatter += scatter_of(rows, centroids, own)
    return scatter / source.shape[0]
