"""What can be done with a model once it is there."""

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadRows
from goldfc.protocol.message import Model


def predict(model: Model, rows: FloatArray) -> IntArray:
    """The nearest global cluster of every row, whether it took part or not."""
    if rows.shape[1] != model.centroids.shape[1]:
        raise BadRows(
            f"The model was made from {model.centroids.shape[1]} features, but the rows have {rows.shape[1]}; "
            "pass the same columns in the same order."
        )
    return nearest(rows, model.centroids)


def nearest(rows: FloatArray, centroids: FloatArray) -> IntArray:
    """Eq. (7). The plain similarity: every row goes to the centroid at the smallest Euclidean distance."""
    return np.asarray(pairwise_distances_argmin(rows, centroids), dtype=np.int64)
