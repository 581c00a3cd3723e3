"""The scale that a site's rows are learned in, and how they lie around their micro-centroids."""

from dataclasses import dataclass

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.finding import Found
from goldfc.learning.micro_clusters import form_of_shape, scatter_of
from goldfc.learning.moments import Moments
from goldfc.message.columns import Terms, ranges_of
from goldfc.message.task import Scaling

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


class Shape:
    """Collects how the numbers of rows lie around their micro-centroids: a covariance, or with many variances."""

    def __init__(self, found: Found, numbers: IntArray) -> None:
        self._labels, self._numbers = found.labels, numbers
        self._centres = found.micro.centroids[:, numbers]
        self._scatter = np.zeros(form_of_shape(len(numbers)))

    def see(self, where: slice, rows: FloatArray) -> None:
        """One more block."""
        own = self._labels[where].astype(np.int64)
        self._scatter += scatter_of(rows[:, self._numbers], self._centres, own)

    @property
    def mean(self) -> FloatArray:
        """Over all rows."""
        return np.asarray(self._scatter / len(self._labels))


def to_grid(values: FloatArray, grid: FloatArray) -> FloatArray:
    """The nearest points of the grid."""
    return np.asarray(np.round(values / grid) * grid)
