"""Every row, exactly, from sums: of whole numbers, lattice reduction finds the rows behind a Gram matrix.

Shares and means of whole numbers are multiples of 1 / m, so m is known although it is rounded, and m times the mean is
the exact sum. Covariance and sums give the Gram matrix G = X'X, exact once it is rounded to whole numbers. Its rows
generate the lattice of the rows of X (if there are more features than rows); in the metric of its pseudo-inverse the
rows are orthonormal, so the lattice's form is equivalent to the identity, and LLL finds the change of basis.
"""

from dataclasses import dataclass

import numpy as np
from flint import fmpz_mat

from goldfc._types import FloatArray, IntArray
from goldfc.learning.micro_clusters import diagonal_of
from goldfc.message.summary import Summary

# Whole numbers are known if they are told as near as this.
NEAR = 0.2
# How far a rounded number of rows may be off.
OFF_BY = 3


@dataclass(frozen=True)
class Restored:
    """How many rows came back, of how many, and how far the attack got."""

    rows: int
    of: int
    stage: str


def restore(summary: Summary, rows: IntArray) -> Restored:
    """Try to restore rows of whole numbers from their message alone; `rows` are only to count with."""
    n_rows = len(rows)
    if summary.shape is None or summary.shape.ndim == 1:
        return Restored(0, n_rows, "no covariance is told")
    sizes = exact_sizes(summary)
    if sizes is None:
        return Restored(0, n_rows, "sizes stay unknown")
    gram = exact_gram(summary, sizes)
    if gram is None:
        return Restored(0, n_rows, "sums stay unknown")
    found = rows_behind(gram)
    if found is None:
        return Restored(0, n_rows, "no lattice of rows")
    return Restored(len({tuple(row) for row in np.abs(found)} & {tuple(row) for row in rows}), n_rows, "done")


def exact_sizes(summary: Summary) -> IntArray | None:
    """For every micro-cluster, the one number of rows near the told one that makes all sums whole numbers."""
    if summary.mass is None:
        return None
    found = []
    for mean, told in zip(summary.centroids, summary.mass.tolist(), strict=True):
        sizes = np.arange(max(1, told - OFF_BY), told + OFF_BY + 1)
        sums = sizes[:, None] * mean
        off = np.abs(sums - np.round(sums)).max(axis=1)
        if off.min() > NEAR:
            return None
        found.append(int(sizes[off.argmin()]))
    return np.array(found)


def exact_gram(summary: Summary, sizes: IntArray) -> IntArray | None:
    """X'X = rows times the covariance around micro-centroids + the sums' own products, if that is whole numbers."""
    if summary.shape is None:
        return None
    means = np.round(sizes[:, None] * summary.centroids) / sizes[:, None]
    between = means.T @ (means * sizes[:, None])
    told = sizes.sum() * diagonal_of(summary.shape) + diagonal_of(between)
    if np.abs(told - np.round(told)).max() > NEAR:
        return None
    # Correlations are told with more digits than variances, which are now known exactly.
    exact = np.sqrt(np.maximum(np.round(told) - diagonal_of(between), 0.0))
    deviation = np.sqrt(np.where(diagonal_of(summary.shape) > 0.0, diagonal_of(summary.shape), 1.0))
    shrunk = 1.0 - len(deviation) * 1e-6
    off_diagonal = summary.shape / np.outer(deviation, deviation) / shrunk
    np.fill_diagonal(off_diagonal, 1.0)
    gram = off_diagonal * np.outer(exact, exact) + between
    return np.round(gram).astype(np.int64) if np.abs(gram - np.round(gram)).max() <= 2.0 * NEAR else None


def rows_behind(gram: IntArray) -> FloatArray | None:
    """The rows whose Gram matrix it is, up to their signs; None if there are more of them than features."""
    basis = np.array(fmpz_mat(gram.tolist()).lll().tolist(), dtype=object)
    basis = basis[[any(row) for row in basis.tolist()]].astype(np.float64)
    form = basis @ np.linalg.pinv(gram.astype(np.float64), rcond=1e-9) @ basis.T
    if np.abs(form - np.round(form)).max() > NEAR:
        return None
    whole = fmpz_mat(np.round(form).astype(np.int64).tolist())
    _, change = whole.lll(True, 0.99, 0.51, "gram")
    return np.asarray(np.array(change.tolist(), dtype=np.float64) @ basis)


def whole_numbers(rows: FloatArray) -> bool:
    """Whether the attack applies."""
    return bool((rows == np.round(rows)).all())
