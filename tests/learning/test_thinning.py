"""Ward's tree: always the cheapest merge, by mass; and cuts of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage

import naive
from goldfc._types import FloatArray, IntArray
from goldfc.learning import _fusion_kernels
from goldfc.learning.thinning import grow_tree, thin
from strategies import WITHOUT_TIES, rows, same_partition, seeds


def masses(n: int, seed: int) -> FloatArray:
    return np.random.default_rng(seed).integers(1, 9, size=n).astype(float)


def as_sets(labels: IntArray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


@settings(max_examples=200, deadline=None)
@given(X=rows(max_rows=14, kinds=WITHOUT_TIES), seed=seeds)
def test_every_cut_is_that_of_the_naive_twin(X: FloatArray, seed: int) -> None:
    tree = grow_tree(X, masses(len(X), seed))
    for partition in naive.ward_partitions(X.tolist(), masses(len(X), seed).tolist()):
        assert as_sets(tree.cut(len(partition))) == partition


@settings(max_examples=200, deadline=None)
@given(X=rows(max_rows=14), seed=seeds)
def test_every_merge_is_the_cheapest_there_is_then_whatever_the_ties(X: FloatArray, seed: int) -> None:
    mass = masses(len(X), seed).tolist()
    points = X.tolist()
    rounding = 1e-9 * naive.scatter_around_mean(frozenset(range(len(X))), points, mass) + 1e-15
    clusters = {i: frozenset([i]) for i in range(len(X))}
    for low, high in grow_tree(X, masses(len(X), seed)).merges.tolist():
        one, other = clusters[low], clusters[high]
        assert one != other
        least = min(naive.cost_of_merging(*pair, points, mass) for pair in naive.pairs_of(list(set(clusters.values()))))
        assert naive.cost_of_merging(one, other, points, mass) <= least + rounding
        clusters |= dict.fromkeys(one | other, one | other)
    assert len(set(clusters.values())) == 1


@settings(max_examples=100, deadline=None)
@given(X=rows(kinds=WITHOUT_TIES))
def test_equal_masses_give_scipys_tree(X: FloatArray) -> None:
    if len(X) == 1:
        return
    expected = linkage(X, method="ward")
    pairs, costs = np.empty((len(X) - 1, 2), dtype=np.int64), np.empty(len(X) - 1)
    _fusion_kernels.ward_merges(X.T.copy(), np.ones(len(X)), pairs, costs)
    # SciPy's height is the root of twice the cost.
    np.testing.assert_allclose(np.sort(costs), expected[:, 2] ** 2 / 2, rtol=1e-6)
    tree = grow_tree(X, np.ones(len(X)))
    for n_clusters in range(1, len(X) + 1):
        assert same_partition(tree.cut(n_clusters), fcluster(expected, n_clusters, criterion="maxclust"))


@settings(max_examples=100, deadline=None)
@given(X=rows(max_rows=20, kinds=WITHOUT_TIES), seed=seeds)
def test_weighted_equals_repeated(X: FloatArray, seed: int) -> None:
    mass = masses(len(X), seed)
    repeats = mass.astype(np.int64)
    weighted, repeated = grow_tree(X, mass), grow_tree(np.repeat(X, repeats, axis=0), np.ones(repeats.sum()))
    for n_clusters in range(1, len(X) + 1):
        assert same_partition(np.repeat(weighted.cut(n_clusters), repeats), repeated.cut(n_clusters))


@settings(max_examples=100, deadline=None)
@given(X=rows(), seed=seeds, limit=st.integers(1, 50))
def test_no_limit_is_exceeded_none_is_missed_and_numbers_have_no_gaps(X: FloatArray, seed: int, limit: int) -> None:
    labels = thin(X, masses(len(X), seed), limit)
    assert len(labels) == len(X)
    first_seen = list(dict.fromkeys(labels.tolist()))
    assert first_seen == list(range(min(limit, len(X))))


@settings(max_examples=50, deadline=None)
@given(X=rows(), seed=seeds)
def test_a_coarser_cut_only_joins_what_a_finer_one_has(X: FloatArray, seed: int) -> None:
    tree = grow_tree(X, masses(len(X), seed))
    for n_clusters in range(1, len(X)):
        coarse, fine = tree.cut(n_clusters), tree.cut(n_clusters + 1)
        assert len(np.unique(np.column_stack([coarse, fine]), axis=0)) == n_clusters + 1


def test_a_limit_that_is_kept_already_changes_nothing() -> None:
    X = np.random.default_rng(0).normal(size=(7, 2))
    for limit in (7, 8, 100):
        np.testing.assert_array_equal(thin(X, np.ones(7), limit), np.arange(7))


def test_inputs_are_untouched() -> None:
    X, mass = np.random.default_rng(0).normal(size=(30, 2)), masses(30, 0)
    copies = X.copy(), mass.copy()
    thin(X, mass, 4)
    np.testing.assert_array_equal(X, copies[0])
    np.testing.assert_array_equal(mass, copies[1])


def test_read_only_and_transposed_centroids_are_taken_too() -> None:
    X = np.random.default_rng(0).normal(size=(2, 30)).T
    expected = thin(np.ascontiguousarray(X), np.ones(30), 5)
    X.flags.writeable = False
    np.testing.assert_array_equal(thin(X, np.ones(30), 5), expected)


@pytest.mark.parametrize("n", [1, 2])
def test_the_smallest_trees_can_be_cut(n: int) -> None:
    tree = grow_tree(np.zeros((n, 3)), np.ones(n))
    np.testing.assert_array_equal(tree.cut(1), np.zeros(n))
    np.testing.assert_array_equal(tree.cut(n), np.arange(n))
    np.testing.assert_array_equal(tree.cut(n + 5), np.arange(n))


def test_heavy_clusters_are_merged_later_than_light_ones() -> None:
    X = np.array([[0.0], [1.0], [10.0], [11.5]])
    np.testing.assert_array_equal(thin(X, np.ones(4), 3), [0, 0, 1, 2])
    np.testing.assert_array_equal(thin(X, np.array([100.0, 100.0, 1.0, 1.0]), 3), [0, 1, 2, 2])
