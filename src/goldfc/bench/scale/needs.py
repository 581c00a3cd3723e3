"""What a piece of work cannot do without: bytes that must pass and operations that must be done, by formula.

These are lower bounds of a plain program: every array that is gone through counts once, temporary ones do not.
"""

from dataclasses import dataclass
from typing import Any

from goldfc.bench.scale.machine import Machine

NUMBER = 8  # bytes
# For every number of a row and every candidate: a difference, two products, a sum.
PER_WEIGHTED_DISTANCE = 4
# A difference, a product, a sum.
PER_DISTANCE = 3
# Of the randomised singular value decomposition: products with the matrix and its transpose, and extra directions.
SVD_PRODUCTS, SVD_EXTRA = 16, 10


@dataclass(frozen=True)
class Need:
    """Bytes and operations."""

    bytes: float = 0.0
    flops: float = 0.0

    def __add__(self, other: "Need") -> "Need":
        """Both."""
        return Need(self.bytes + other.bytes, self.flops + other.flops)

    def seconds_at_best(self, machine: Machine) -> tuple[float, str]:
        """How long the machine would take if it did nothing else, and what would hold it up."""
        by_bytes, by_flops = self.bytes / machine.bandwidth, self.flops / machine.flops_float64
        return (by_bytes, "bandwidth") if by_bytes > by_flops else (by_flops, "operations")


# Each takes what a function returned, and what it was called with.


def of_rows(passes: int, result: Any, source: Any, *_others: Any) -> Need:  # noqa: ARG001
    """Going through all rows."""
    n_rows, n_features = source.shape
    return Need(bytes=passes * NUMBER * n_rows * n_features)


def of_competition(outcome: Any, rows: Any, n_candidates: int, *_others: Any, **_named: Any) -> Need:
    """Every row with every candidate in every epoch; from first to last, half of those that go are still there."""
    n_rows, n_features = rows.shape
    compared = outcome.epochs * n_rows * (n_candidates + outcome.n_clusters) / 2.0
    return Need(flops=PER_WEIGHTED_DISTANCE * n_features * compared)


def of_thinning(_into: Any, centroids: Any, _mass: Any, limit: int) -> Need:
    """All pairs of clusters, about twice, if there are more than the limit."""
    n_clusters, n_features = centroids.shape
    return Need(flops=2.0 * PER_DISTANCE * n_features * n_clusters**2 if n_clusters > limit else 0.0)


def of_shape(shape: Any, source: Any, *_others: Any) -> Need:
    """One pass over the rows, and products of their residuals: with all others, or with themselves."""
    n_rows, n_features = source.shape
    return Need(NUMBER * n_rows * n_features, 2.0 * n_rows * shape.size)


def of_em_step(_result: Any, micro: Any, means: Any, *_others: Any) -> Need:
    """Means from memberships and memberships from means: two products; an exponential and a logarithm for each."""
    n_micro, n_features = micro.centroids.shape
    return Need(flops=n_micro * len(means) * (4.0 * n_features + 20.0))


def of_embedding(_points: Any, partitions: Any, _mass: Any, n_clusters: int, *_others: Any) -> Need:
    """Products of a sparse matrix and its transpose with a few directions."""
    return Need(flops=2.0 * SVD_PRODUCTS * partitions.nnz * (n_clusters + SVD_EXTRA))


def of_nearest(_labels: Any, rows: Any, centroids: Any) -> Need:
    """Every row with every centroid, a product and a sum for each feature."""
    n_rows, n_features = rows.shape
    return Need(NUMBER * n_rows * n_features, 2.0 * n_rows * n_features * len(centroids))
