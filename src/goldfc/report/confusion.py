"""Which clusters are taken for one another: rows are drawn as the model describes them, and labelled by it."""

import numpy as np

from goldfc._types import FloatArray
from goldfc.message.model import Model
from goldfc.site.label import predict_proba

# So many rows are drawn of every cluster; of many features fewer, so that there are no more numbers than this in all.
ROWS_DRAWN, MOST_DRAWN = 200, 4_000_000
# A table of more clusters is no table.
MOST_CLUSTERS = 40


def confusion(model: Model) -> FloatArray | None:
    """How likely a row that is in one cluster (down) is labelled as each (across); the draw is always the same."""
    count, features = model.centroids.shape
    if not 1 < count <= MOST_CLUSTERS:
        return None
    each, rng = min(ROWS_DRAWN, MOST_DRAWN // (count * features)), np.random.default_rng(0)
    rows = np.vstack([drawn(model, cluster, each, rng) for cluster in range(count)])
    return np.asarray(predict_proba(model, rows).reshape(count, each, count).mean(axis=1))


def drawn(model: Model, cluster: int, count: int, rng: np.random.Generator) -> FloatArray:
    """Rows like those of a cluster."""
    rows = centres(model, cluster, count, rng)
    numbers = model.layout.numbers
    rows[:, numbers] += rows_around(model, cluster, count, rng)[:, : len(numbers)]
    for levels in model.layout.categories:
        rows[:, levels] = chosen_levels(np.clip(model.centroids[cluster, levels], 0.0, 1.0), count, rng)
    return rows


def centres(model: Model, cluster: int, count: int, rng: np.random.Generator) -> FloatArray:
    """What rows lie around: the mean of their cluster, or one of its prototypes each."""
    if model.prototypes is None:
        return np.tile(model.centroids[cluster], (count, 1))
    own = model.prototypes.labels == cluster
    mass = model.prototypes.mass[own]
    return np.asarray(rng.choice(model.prototypes.points[own], size=count, p=mass / mass.sum()))


def rows_around(model: Model, cluster: int, count: int, rng: np.random.Generator) -> FloatArray:
    """How numbers of rows lie around that."""
    covariance = model.covariance[cluster] if model.covariance.ndim == 3 else model.covariance
    unit = rng.standard_normal((count, covariance.shape[-1]))
    return np.asarray(unit * np.sqrt(covariance) if covariance.ndim == 1 else unit @ np.linalg.cholesky(covariance).T)


def chosen_levels(shares: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Yes or no, or one level of a category."""
    if len(shares) == 1:
        return (rng.random((count, 1)) < shares).astype(np.float64)
    total = shares.sum()
    likely = shares / total if total > 0.0 else np.full(len(shares), 1.0 / len(shares))
    return np.eye(len(shares))[rng.choice(len(shares), size=count, p=likely)]
