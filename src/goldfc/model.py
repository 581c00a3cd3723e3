"""What can be done with a model once it is there."""

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin, pairwise_distances_argmin_min

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadRows
from goldfc.learning.mixture import whiten
from goldfc.protocol.message import Model


def predict(model: Model, rows: FloatArray) -> IntArray:
    """The nearest global cluster of every row, whether it took part or not."""
    return nearest_with_distance(model, rows)[0]


def is_far(model: Model, rows: FloatArray) -> NDArray[np.bool_]:
    """Whether a row lies beyond the reach of its nearest cluster: it may be of a kind that nobody has."""
    labels, distance = nearest_with_distance(model, rows)
    return np.asarray(distance > model.reach[labels])


def nearest_with_distance(model: Model, rows: FloatArray) -> tuple[IntArray, FloatArray]:
    """The nearest cluster and how far it is, in distances that undo how rows lie around their centroids."""
    if rows.shape[1] != model.centroids.shape[1]:
        raise BadRows(
            f"The model was made from {model.centroids.shape[1]} features, but the rows have {rows.shape[1]}; "
            "pass the same columns in the same order."
        )
    # Around a centroid, because what is large and the same in all rows would cost digits.
    origin = model.centroids[0]
    points = whiten(rows - origin, model.covariance)
    labels, distance = pairwise_distances_argmin_min(points, whiten(model.centroids - origin, model.covariance))
    return np.asarray(labels, dtype=np.int64), np.asarray(distance)


def nearest(rows: FloatArray, centroids: FloatArray) -> IntArray:
    """Eq. (7). The plain similarity: every row goes to the centroid at the smallest Euclidean distance."""
    return np.asarray(pairwise_distances_argmin(rows, centroids), dtype=np.int64)
