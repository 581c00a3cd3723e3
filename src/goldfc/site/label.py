"""What a model says of rows, whether they took part or not: their cluster, and how certain that is."""

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.k_means import nearest as nearest_centre
from goldfc.message.density import shares_of_density
from goldfc.message.model import Model


def label(rows: FloatArray, model: Model) -> tuple[IntArray, FloatArray]:
    """The cluster of every row, by its id, and how certain that is.

    Parameters
    ----------
    rows
        A table of numbers with the columns of the model, (rows, features); they need not have taken part.
    model
        What came back from the server.

    Returns
    -------
    labels, certainty
        One of each for every row; certainty is in [0, 1].
    """
    by_density = shares_of_density(model, rows)
    places = by_density.argmax(axis=1)
    return model.ids[places], believed(model, by_density[np.arange(len(places)), places])


def predict(model: Model, rows: FloatArray) -> IntArray:
    """The likeliest cluster of every row, by its id."""
    return label(rows, model)[0]


def predict_proba(model: Model, rows: FloatArray) -> FloatArray:
    """How likely every row (down) belongs to every cluster (across)."""
    return believed(model, shares_of_density(model, rows))


def believed(model: Model, likely: FloatArray) -> FloatArray:
    """As likely as that, if the partitions that were fused agree; as far as they do not, all clusters are alike."""
    return model.agreement * likely + (1.0 - model.agreement) / len(model.centroids)


def nearest_centroid(rows: FloatArray, centroids: FloatArray) -> IntArray:
    """Eq. (7). The plain similarity: every row goes to the centroid at the smallest Euclidean distance."""
    return nearest_centre(rows, centroids)
