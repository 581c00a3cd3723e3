"""What a model says of points, whatever they stand for: how likely each is of every cluster, and how far from it.

Sites ask it of their rows, the server of micro-centroids and of points that it draws.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadRows
from goldfc.learning.mixture import (
    NOTHING,
    ROWS_BEFORE,
    Clusters,
    shares_and_sum,
    squared_distances,
    squares_between,
    whiten,
)
from goldfc.message.model import Model, Prototypes

# Rows are looked at so many numbers at a time, all clusters or prototypes counted; but at least so many rows, because
# what must be known of the clusters is worked out for every part.
NUMBERS_AT_ONCE, ROWS_AT_LEAST = 200_000, 100
# Squared distances beyond this cannot be told.
FURTHEST_SQUARE = 1e300


def shares_of_density(model: Model, rows: FloatArray) -> FloatArray:
    """How likely that is by the clusters' densities alone."""
    return in_parts(model, rows, lambda part: shares_and_sum(log_density(model, part))[0])


def distances(model: Model, rows: FloatArray) -> FloatArray:
    """How far every row (down) is from every cluster (across), in distances that undo how rows lie in it.

    Of clusters that are not convex: from the nearest_centroid of its prototypes. Only numbers count.
    """
    return in_parts(model, rows, lambda part: distance_of_part(model, part))


def is_far(model: Model, rows: FloatArray) -> NDArray[np.bool_]:
    """Whether a row lies beyond the reach of all clusters: it may be of a kind that nobody has."""
    return np.asarray((distances(model, rows) > model.reach).all(axis=1))


def in_parts(model: Model, rows: FloatArray, work: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """The results for all rows, some rows at a time."""
    if rows.ndim != 2 or rows.shape[1] != model.centroids.shape[1]:
        raise BadRows(
            f"The model was made from {model.centroids.shape[1]} features, but the rows have the shape {rows.shape}; "
            "pass the same columns in the same order.",
            "rows-of-other-columns",
        )
    with np.errstate(over="ignore", invalid="ignore"):  # rows may be further away than can be told
        return np.concatenate([np.empty((0, len(model.centroids))), *map(work, rows_in_parts(model, rows))])


def rows_in_parts(model: Model, rows: FloatArray) -> Iterator[FloatArray]:
    """Some rows at a time."""
    compared = model.centroids if model.prototypes is None else model.prototypes.points
    # Where every cluster has a covariance of its own, a row becomes as many rows as there are clusters.
    step = max(ROWS_AT_LEAST, NUMBERS_AT_ONCE // (compared.size if model.covariance.ndim == 3 else max(compared.shape)))
    return (rows[start : start + step] for start in range(0, len(rows), step))


def log_density(model: Model, rows: FloatArray) -> FloatArray:
    """Of every row in every cluster, with the cluster's share of all rows; up to a constant."""
    layout = model.layout
    # Around a centroid, because what is large and the same in all rows would cost digits.
    numbers = layout.numbers_of(rows) - layout.numbers_of(model.centroids)[0]
    if model.prototypes is not None:
        return near_prototypes(model, model.prototypes, numbers)
    return -as_told(-clusters_in(model).log_density(numbers, layout.shares_of(rows)))


def clusters_in(model: Model) -> Clusters:
    """The clusters of a model as densities, around its first centroid."""
    layout = model.layout
    # Shares are rounded, so that some may be below 0.
    means, shares = layout.numbers_of(model.centroids), np.maximum(layout.shares_of(model.centroids), 0.0)
    usual = np.maximum(np.average(shares, axis=0, weights=model.mass), NOTHING)
    mass = model.mass[:, None]
    smooth = (mass * shares + ROWS_BEFORE * usual) / (mass + ROWS_BEFORE)
    return Clusters(model.mass, means - means[0], model.covariance, smooth)


def near_prototypes(model: Model, prototypes: Prototypes, numbers: FloatArray) -> FloatArray:
    """The densities of clusters that are not convex: those of their prototypes, added up."""
    log_each = np.log(prototypes.mass) - 0.5 * squares_from(model, prototypes, numbers)
    top = log_each.max(axis=1, keepdims=True)
    parts = np.exp(log_each - top)
    sums = np.add.reduceat(parts, first_of_each(prototypes), axis=1)
    return np.asarray(top + np.log(np.maximum(sums, NOTHING)))


def first_of_each(prototypes: Prototypes) -> IntArray:
    """Where the prototypes of every cluster begin."""
    return np.unique(prototypes.labels, return_index=True)[1]


def squares_from(model: Model, prototypes: Prototypes, numbers: FloatArray) -> FloatArray:
    """Squared distances of rows from prototypes, undoing how rows lie around these."""
    layout = model.layout
    points = layout.numbers_of(prototypes.points) - layout.numbers_of(model.centroids)[0]
    return as_told(squares_between(whiten(numbers, model.covariance), whiten(points, model.covariance)))


def as_told(squared: FloatArray) -> FloatArray:
    """Squared distances, as far as they can be told."""
    return np.asarray(np.fmin(squared, FURTHEST_SQUARE))


def distance_of_part(model: Model, rows: FloatArray) -> FloatArray:
    """Of some rows from all clusters."""
    layout = model.layout
    means = layout.numbers_of(model.centroids)
    numbers = layout.numbers_of(rows) - means[0]
    if model.prototypes is None:
        return np.asarray(np.sqrt(as_told(squared_distances(numbers, means - means[0], model.covariance)[0])))
    squared = squares_from(model, model.prototypes, numbers)
    return np.asarray(np.sqrt(np.minimum.reduceat(squared, first_of_each(model.prototypes), axis=1)))
