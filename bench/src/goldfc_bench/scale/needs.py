"""What a piece of work cannot do without: bytes that must pass and operations that must be done, by formula.

These are lower bounds of a plain program: every array that is gone through counts once, temporary ones do not.
"""

from dataclasses import dataclass
from typing import Any

from goldfc_bench.scale.machine import Machine

NUMBER = 8  # bytes
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


def of_product(_result: Any, left: Any, right: Any) -> Need:
    """A matrix product, by which k-means compares rows with centres."""
    return Need(flops=2.0 * left.shape[0] * right.size)


def of_all_pairs(_result: Any, points: Any, *_others: Any) -> Need:
    """Every point with every other, once."""
    n_points, n_features = points.shape
    return Need(flops=PER_DISTANCE * n_features * n_points**2 / 2.0)


def of_block(_result: Any, _collector: Any, _where: Any, rows: Any) -> Need:
    """Rows that somebody collects something of."""
    return Need(bytes=NUMBER * rows.size)


def of_shape(_result: Any, shape: Any, _where: Any, rows: Any) -> Need:
    """The same, and products of their residuals: with all others, or with themselves."""
    return Need(NUMBER * rows.size, 2.0 * len(rows) * shape.mean.size)


def of_em_step(clusters: Any, micro: Any, *_others: Any, **_named: Any) -> Need:
    """Means from memberships and memberships from means: two products; an exponential and a logarithm for each.

    Where every cluster has a covariance of its own, this is made and undone, too.
    """
    n_micro, n_numbers = micro.centroids.shape
    of_covariances = 4.0 * n_numbers**2 if clusters.covariance.ndim == 3 else 0.0
    return Need(flops=n_micro * len(clusters.mass) * (4.0 * n_numbers + of_covariances + 20.0))


def of_embedding(_points: Any, partitions: Any, _mass: Any, n_clusters: int, *_others: Any) -> Need:
    """Products of a sparse matrix and its transpose with a few directions."""
    return Need(flops=2.0 * SVD_PRODUCTS * partitions.nnz * (n_clusters + SVD_EXTRA))


def of_labelling(_labels: Any, rows: Any, model: Any) -> Need:
    """Every row, its covariance undone, with every centroid or prototype: a product and a sum for each feature."""
    (n_rows, n_features), covariance = rows.shape, model.covariance
    compared = len(model.centroids if model.prototypes is None else model.prototypes.points)
    undone = 0.0 if covariance.ndim == 1 else 2.0 * covariance.size
    return Need(NUMBER * rows.size, n_rows * (undone + 2.0 * n_features * compared))
