"""lambda, the Non-ICD degree: how differently the sites' rows are distributed (Eqs. 1-4).

Densities live as logarithms throughout, so that nothing underflows far from a site's rows.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import scipy

from goldfc._types import FloatArray
from goldfc.errors import BadRows, BadSettings

# Bandwidths that are tried, in units of the spread of all sites' rows.
BANDWIDTHS = np.geomspace(0.01, 3.0, 26)
# Squared distances held at once: 16 MB.
DISTANCES_AT_ONCE = 2_000_000


def non_icd_degree(sites: Sequence[FloatArray]) -> float:
    """Eq. (1). lambda: the mean Jensen-Shannon divergence over all pairs of sites, each given by its rows.

    0: all sites hold the same; 1: no site's rows are where another's are.
    Note: the paper divides by L(L - 1), twice the number of pairs, which would keep lambda below 1/2, although its
    text puts it in [0, 1]; this is the mean over the pairs.
    Note: of the paper's lambdas (its Table I) none is met; docs/non-icd.md has both side by side.
    """
    _check(sites)
    scale = spread(np.vstack(sites))
    scaled = [rows / scale for rows in sites]
    bandwidths = [choose_bandwidth(rows) for rows in scaled]
    # log_f[b][a] is site a's log density at the rows of site b.
    log_f = [[log_kernel_density(at, rows, h) for rows, h in zip(scaled, bandwidths, strict=True)] for at in scaled]
    pairs = combinations(range(len(sites)), 2)
    return float(np.mean([jensen_shannon(_on_pair(log_f, a, a, b), _on_pair(log_f, b, a, b)) for a, b in pairs]))


def log_kernel_density(at: FloatArray, rows: FloatArray, bandwidth: float) -> FloatArray:
    """Eq. (2). Logarithm of the Gaussian kernel density of `rows`, at every row of `at`.

    Note: (2) is for one feature and has a second 1/h that does not integrate to one; here the kernel is the round
    Gaussian in as many dimensions as there are features.
    """
    kernels = [_log_kernel_sum(squares, bandwidth) for _, squares in _squared_distances(at, rows)]
    return np.concatenate(kernels) - math.log(len(rows)) - _log_volume(rows.shape[1], bandwidth)


def jensen_shannon(log_p: FloatArray, log_q: FloatArray) -> float:
    """Eq. (3). Jensen-Shannon divergence, in bits, of two distributions over the same points; in [0, 1]."""
    log_mean = np.logaddexp(log_p, log_q) - math.log(2.0)
    divergence = 0.5 * (kullback_leibler(log_p, log_mean) + kullback_leibler(log_q, log_mean))
    return min(max(divergence, 0.0), 1.0)


def kullback_leibler(log_p: FloatArray, log_q: FloatArray) -> float:
    """Eq. (4). Kullback-Leibler divergence, in bits, of p from q, over the points where both are given.

    Note: the paper sums over one site's rows; a density normalised there says nothing of the other's, so that the
    points are the rows of both sites of a pair.
    """
    return float(np.sum(np.exp(log_p) * (log_p - log_q)) / math.log(2.0))


def choose_bandwidth(rows: FloatArray) -> float:
    """h: of `BANDWIDTHS`, the one under which every row is likeliest given all other rows; for a single row, 1."""
    if len(rows) == 1:
        return 1.0
    likelihood = np.array([-len(rows) * _log_volume(rows.shape[1], h) for h in BANDWIDTHS])
    for start, squares in _squared_distances(rows, rows):
        own = np.arange(len(squares))
        squares[own, start + own] = np.inf
        likelihood += [np.sum(_log_kernel_sum(squares, h)) for h in BANDWIDTHS]
    return float(BANDWIDTHS[np.argmax(likelihood)])


def spread(rows: FloatArray) -> float:
    """The root of the mean variance of the columns; 1 where nothing varies."""
    return float(np.sqrt(np.mean(np.var(rows, axis=0)))) or 1.0


def _on_pair(log_f: list[list[FloatArray]], site: int, a: int, b: int) -> FloatArray:
    """A site's density on the rows of the pair a and b, as a distribution over these rows: it sums to one."""
    log_density_there = np.concatenate([log_f[a][site], log_f[b][site]])
    return np.asarray(log_density_there - np.logaddexp.reduce(log_density_there))


def _squared_distances(at: FloatArray, rows: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """Squared distances of some rows of `at` to all `rows`, with the number of the first: memory stays bounded."""
    step = max(1, DISTANCES_AT_ONCE // len(rows))
    for start in range(0, len(at), step):
        yield start, scipy.spatial.distance.cdist(at[start : start + step], rows, "sqeuclidean")


def _log_kernel_sum(squares: FloatArray, bandwidth: float) -> FloatArray:
    """The logarithm of sum_t exp(-squares_t / (2 h^2)), its largest term taken out so that one of them is always 1."""
    nearest = squares.min(axis=1, keepdims=True)
    terms = np.exp((nearest - squares) / (2.0 * bandwidth**2))
    return np.asarray(np.log(terms.sum(axis=1)) - nearest[:, 0] / (2.0 * bandwidth**2))


def _log_volume(n_features: int, bandwidth: float) -> float:
    """What a kernel integrates to: (2 pi h^2)^(d/2), as a logarithm."""
    return n_features / 2.0 * math.log(2.0 * math.pi * bandwidth**2)


def _check(sites: Sequence[FloatArray]) -> None:
    if len(sites) < 2:
        raise BadSettings(
            f"The Non-ICD degree compares sites: at least 2 are needed, got {len(sites)}.", "degree-of-few-sites"
        )
    if min(len(rows) for rows in sites) == 0:
        raise BadRows("A site without rows has no distribution; leave it out.", "site-without-rows")
