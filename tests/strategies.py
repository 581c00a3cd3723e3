"""Rows to try everything on: ordinary ones and every kind of degenerate ones."""

from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import strategies as st

from goldfc._types import FloatArray, IntArray
from goldfc.learning.micro_clusters import MicroClusters

KINDS: dict[str, Callable[[np.random.Generator, tuple[int, int]], FloatArray]] = {
    "in general position": lambda rng, shape: rng.normal(size=shape),
    "on a grid, so that ties abound": lambda rng, shape: rng.integers(3, size=shape).astype(float),
    "few distinct rows": lambda rng, shape: rng.normal(size=(3, shape[1]))[rng.integers(3, size=shape[0])],
    "constant columns": lambda rng, shape: rng.normal(size=shape) * rng.integers(2, size=shape[1]) + 0.1,
    "all rows equal": lambda rng, shape: np.full(shape, rng.normal()),
    "far apart": lambda rng, shape: rng.normal(size=shape) * 1e3 + rng.integers(2, size=(shape[0], 1)) * 1e6,
    "unequal scales": lambda rng, shape: rng.normal(size=shape) * 10.0 ** rng.integers(-4, 4, size=shape[1]),
}

# Of these no two distances are the same, so that nothing hangs on how ties are broken.
WITHOUT_TIES = ("in general position", "far apart", "unequal scales")


@st.composite
def rows(draw: st.DrawFn, max_rows: int = 40, kinds: Sequence[str] | None = None) -> FloatArray:
    shape = draw(st.integers(1, max_rows)), draw(st.integers(1, 5))
    kind = draw(st.sampled_from(sorted(KINDS if kinds is None else kinds)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return np.ascontiguousarray(KINDS[kind](rng, shape))


seeds = st.integers(0, 2**32)


@st.composite
def micro_clusters(draw: st.DrawFn, max_rows: int = 30, kinds: Sequence[str] | None = None) -> MicroClusters:
    """Any centroids, with masses, and with a scatter that is none, small or as large as that of the centroids."""
    centroids = draw(rows(max_rows, kinds))
    rng = np.random.default_rng(draw(seeds))
    directions = rng.normal(size=(centroids.shape[1], centroids.shape[1])) * centroids.std(axis=0)
    mass = rng.integers(1, 20, size=len(centroids)).astype(float)
    return MicroClusters(centroids, mass, draw(st.sampled_from([0.0, 0.01, 1.0])) * directions.T @ directions)


def mixed(micro: MicroClusters, seed: int, levels: tuple[int, ...] = (2, 3)) -> MicroClusters:
    """The same with categories: shares that are any, some of them 0."""
    rng = np.random.default_rng(seed)
    shares = [rng.dirichlet(np.full(count, 0.5), size=len(micro.mass)) for count in levels]
    shares = [np.where(those < 0.1, 0.0, those) for those in shares]
    whole = np.hstack([those / those.sum(axis=1, keepdims=True) for those in shares])
    return MicroClusters(micro.centroids, micro.mass, micro.scatter, whole, levels)


def blobs(n_clusters: int, n_rows: int, n_features: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Well separated clusters of the same round shape, with variance 1 and ten apart at least; rows in no order."""
    rng = np.random.default_rng(seed)
    grid = np.indices([3] * n_features).reshape(n_features, -1).T
    centers = 10.0 * rng.choice(grid, size=n_clusters, replace=False)
    truth = rng.permutation(np.arange(n_rows) % n_clusters)
    return centers[truth] + rng.normal(size=(n_rows, n_features)), truth


def same_partition(one: IntArray, other: IntArray) -> bool:
    """Whether two labellings differ in the names of their labels at most."""
    pairs = len(np.unique(np.column_stack([one, other]), axis=0))
    return pairs == len(np.unique(one)) == len(np.unique(other))
