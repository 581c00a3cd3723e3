"""The spectral steps that OSFSC and FedSC share: affinity -> eigenvectors -> k-means on their rows.

Source: Ng, Jordan and Weiss (2001). The affinity W becomes D^(-1/2) W D^(-1/2), where D has the sums of its rows; the
eigenvectors of the largest eigenvalues stand side by side, the rows of that table are brought to length 1, and k-means
clusters them.
"""

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.cluster import KMeans

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadRows, TooFewMicroClusters
from goldfc_bench.methods.steps import integer_seed, n_distinct

# Up to so many nodes, it is as quick to compute all eigenvectors.
DENSE = 300
# Eigenvectors are trusted to so many decimals: rows that differ by less are the same to k-means.
DECIMALS = 6


def spectral_clusters(
    affinity: sparse.csr_array, n_clusters: int, starts: int, rng: np.random.Generator, max_iterations: int = 300
) -> IntArray:
    """The cluster of every node, numbered from 0 without gaps; fewer clusters where fewer nodes can be told apart."""
    k = min(n_clusters, affinity.shape[0])
    rows = unit_rows(top_eigenvectors(normalised(affinity), k, rng)).round(DECIMALS)
    k = min(k, n_distinct(rows))
    means = KMeans(k, n_init=starts, max_iter=max_iterations, random_state=integer_seed(rng)).fit(rows)
    return np.unique(means.labels_, return_inverse=True)[1].astype(np.int64)


def refuse_too_few(labels: IntArray, n_clusters: int) -> None:
    """A server that was asked for k clusters must have found them."""
    found = int(labels.max()) + 1
    if found < n_clusters:
        raise TooFewMicroClusters(
            f"{n_clusters} clusters were asked for, but what the sites sent falls into {found} at most."
        )


def normalised(affinity: sparse.csr_array) -> sparse.csr_array:
    """D^(-1/2) W D^(-1/2); a node without neighbours gets the degree 1."""
    degree = affinity.sum(axis=1)
    scale = sparse.diags_array(1.0 / np.sqrt(np.where(degree > 0.0, degree, 1.0)))
    return sparse.csr_array(scale @ affinity @ scale)


def top_eigenvectors(matrix: sparse.csr_array, count: int, rng: np.random.Generator) -> FloatArray:
    """The eigenvectors of the largest eigenvalues of a symmetric matrix, as columns."""
    n = matrix.shape[0]
    if n <= max(DENSE, 2 * count):
        return np.asarray(eigh(matrix.toarray(), subset_by_index=(n - count, n - 1))[1])
    # With 1 added to every eigenvalue, the eigenvectors stay, and ARPACK need not fail on a matrix of zeros.
    shifted = matrix + sparse.eye_array(n, format="csr")
    try:
        return np.asarray(eigsh(shifted, count, which="LA", v0=rng.standard_normal(n), rng=rng)[1])
    except ArpackNoConvergence as reason:
        raise BadRows(f"The eigenvectors of an affinity of {n} nodes could not be found: {reason}.") from reason


def unit_rows(rows: FloatArray) -> FloatArray:
    """Rows at length 1; those of length 0 stay."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0.0, length, 1.0))
