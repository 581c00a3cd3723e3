"""From rows to micro-clusters, and what is known of each; rows may be more than fit into memory."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.learning.k_means import find_micro_clusters, sums_by_label
from goldfc.learning.micro_clusters import form_of_shape, scatter_of
from goldfc.learning.moments import Moments, pool_moments
from goldfc.learning.rows import RowSource, blocks_of
from goldfc.message.columns import Terms, ranges_of
from goldfc.message.task import Scaling, Task

# Two rows with different levels of a category are as far apart as two whose numbers differ by so many deviations. More
# would make micro-clusters of combinations of levels; less does little harm.
DIFFERENT_LEVELS = 1.0
# All categories together count no more than the numbers, or than so many numbers.
FEWEST_NUMBERS = 3


@dataclass(frozen=True)
class Unit:
    """The scale that rows are learned in: numbers of about the same spread, categories that do not outweigh them."""

    centre: FloatArray  # (features,)
    scale: FloatArray  # (features,)

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Rows in this scale."""
        return np.asarray((rows - self.centre) / self.scale)


def moments_of(source: RowSource) -> Moments:
    """Those of all rows."""
    return pool_moments([Moments.of(rows) for _, rows in blocks_of(source)])


def unit_of(moments: Moments, scaling: Scaling, terms: Terms) -> Unit:
    """The scale of rows with such moments."""
    layout, n_features = terms.layout(len(moments.mean)), len(moments.mean)
    centre, scale = np.zeros(n_features), np.ones(n_features)
    if scaling == "pooled":
        centre, scale = moments.mean, moments.scale
    elif scaling == "ranges":
        low, high = ranges_of(terms)
        centre, scale = low, high - low
    if not layout.categories:
        return Unit(centre, without_sensitive(scale, terms))
    usual = float((moments.variance / scale**2)[layout.numbers].mean()) if len(layout.numbers) else 0.0
    usual = usual or 1.0
    centre, scale = centre.copy(), scale.copy()
    # Yes or no is one feature of two.
    features = np.concatenate(layout.categories)
    twice = np.concatenate([np.full(len(own), 2.0 if len(own) == 1 else 1.0) for own in layout.categories])
    weight = 0.5 * DIFFERENT_LEVELS * usual
    total = weight * float(twice @ moments.variance[features])
    limit = usual * max(len(layout.numbers), FEWEST_NUMBERS)
    weight *= min(1.0, limit / total) if total > 0.0 else 1.0
    centre[features], scale[features] = 0.0, 1.0 / np.sqrt(weight * twice)
    return Unit(centre, without_sensitive(scale, terms))


def without_sensitive(scale: FloatArray, terms: Terms) -> FloatArray:
    """What is sensitive does not decide who is together, or whole groups would share one value of it."""
    sensitive = np.array([column.sensitive for column in terms.features] or [False] * len(scale))
    # If everything is sensitive, nothing else can decide.
    return scale if sensitive.all() else np.where(sensitive, np.inf, scale)


def find(source: RowSource, to_unit: Unit, task: Task, n_people: int) -> RowLabels:
    """The micro-cluster of every row: as many as the task wants of so many people, if so many rows differ."""
    n_rows, rng = source.shape[0], np.random.default_rng(0)
    labels, _ = find_micro_clusters(
        lambda: (to_unit(rows) for _, rows in blocks_of(source)), n_rows, task.limit(n_people), rng
    )
    return labels


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
        mean = sums_by_label(self.mean, into, len(size), self.size.astype(np.float64)) / size[:, None]
        return Measured(size.astype(np.int64), mean)


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


def shape_of(source: RowSource, labels: RowLabels, centroids: FloatArray, numbers: IntArray) -> FloatArray | None:
    """How the numbers of rows lie around their micro-centroids, in the mean: a covariance, or with many variances."""
    if not len(numbers):
        return None
    scatter = np.zeros(form_of_shape(len(numbers)))
    centres = centroids[:, numbers]
    for rows, own in labelled(source, labels):
        scatter += scatter_of(rows[:, numbers], centres, own)
    return scatter / source.shape[0]
