"""Ward's tree, by mass: that of its slow twin, of scipy where masses are equal, and an end whatever the points."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, ward

import naive
from goldfc._types import FloatArray, IntArray
from goldfc.learning.ward import grow_tree
from strategies import WITHOUT_TIES, blobs, rows, same_partition, seeds


def as_sets(labels: IntArray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


@settings(max_examples=40, deadline=None)
@given(points=rows(max_rows=12, kinds=WITHOUT_TIES), seed=seeds)
def test_every_cut_is_that_of_the_naive_twin(points: FloatArray, seed: int) -> None:
    mass = np.random.default_rng(seed).integers(1, 20, size=len(points)).astype(float)
    scaled = (points - points.mean(axis=0)) / (points.std(axis=0) + 1e-300)
    tree = grow_tree(scaled, mass)
    for number, partition in enumerate(naive.ward_partitions(scaled.tolist(), mass.tolist())):
        assert as_sets(tree.cut(len(points) - number)) == partition


@pytest.mark.parametrize("seed", range(3))
def test_of_equal_masses_it_is_scipys_tree(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(80, 3))
    tree, theirs = grow_tree(points, np.full(80, 3.0)), ward(points)
    for n_clusters in (1, 2, 5, 20, 79, 80):
        assert same_partition(tree.cut(n_clusters), fcluster(theirs, n_clusters, "maxclust"))


@settings(max_examples=100, deadline=None)
@given(points=rows(max_rows=60), seed=seeds, wanted=st.integers(1, 70))
def test_a_cut_has_as_many_clusters_as_asked_for_numbered_by_first_appearance(
    points: FloatArray, seed: int, wanted: int
) -> None:
    mass = np.random.default_rng(seed).integers(1, 20, size=len(points)).astype(float)
    labels = grow_tree(points, mass).cut(wanted)
    names, first = np.unique(labels, return_index=True)
    assert names.tolist() == list(range(min(wanted, len(points))))
    assert first.tolist() == sorted(first)


def test_a_heavy_point_stays_alone_longer() -> None:
    points, light = np.array([[0.0], [1.0], [2.2]]), np.ones(3)
    assert grow_tree(points, light).cut(2).tolist() == [0, 0, 1]
    assert grow_tree(points, np.array([9.0, 9.0, 1.0])).cut(2).tolist() == [0, 1, 1]


def test_separate_clusters_are_whole_branches() -> None:
    points, truth = blobs(6, 120, 3, seed=0)
    assert same_partition(grow_tree(points, np.ones(120)).cut(6), truth)


@pytest.mark.parametrize("seed", range(20))
def test_it_ends_where_distances_are_nothing_but_rounding(seed: int) -> None:
    points = 1.0 + 1e-9 * np.random.default_rng(seed).normal(size=(60, 8))
    assert grow_tree(points, np.ones(60)).cut(3).max() == 2
