"""Linkage: the spanning tree, Genie's rule, and gaps that tell how far to believe it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, single
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons

import naive
from goldfc._types import FloatArray, IntArray
from goldfc.learning.judge import GAP, LEAD, best_linked, is_clear
from goldfc.learning.k_means import k_means
from goldfc.learning.linkage import Ascending, gap_of, gap_of_linkage, link, spanning_tree
from strategies import WITHOUT_TIES, blobs, rows, same_partition, seeds

limits = st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0])


def as_sets(labels: IntArray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


def scaled(points: FloatArray) -> FloatArray:
    return np.asarray((points - points.mean(axis=0)) / (points.std(axis=0) + 1e-300))


def masses(n: int, seed: int) -> FloatArray:
    return np.random.default_rng(seed).integers(1, 20, size=n).astype(float)


# --- the tree ---


@settings(max_examples=100, deadline=None)
@given(points=rows(max_rows=60, kinds=WITHOUT_TIES))
def test_the_spanning_tree_is_as_short_as_scipys(points: FloatArray) -> None:
    points = scaled(points)
    tree = spanning_tree(points)
    ends = points[tree.edges[:, 0]] - points[tree.edges[:, 1]]
    np.testing.assert_allclose(tree.length, np.linalg.norm(ends, axis=1), atol=1e-7)
    assert tree.length.sum() == pytest.approx(minimum_spanning_tree(cdist(points, points)).sum(), abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(points=rows(max_rows=60))
def test_every_edge_leads_from_a_point_that_was_reached_to_a_new_one(points: FloatArray) -> None:
    tree = spanning_tree(points)
    reached = {0}
    for source, new in tree.edges.tolist():
        assert source in reached
        assert new not in reached
        reached.add(new)
    assert reached == set(range(len(points)))
    assert (tree.length >= 0.0).all()


# --- Genie ---


@settings(max_examples=60, deadline=None)
@given(points=rows(max_rows=12, kinds=WITHOUT_TIES), seed=seeds, limit=limits)
def test_every_cut_is_that_of_the_naive_twin(points: FloatArray, seed: int, limit: float) -> None:
    points, mass = scaled(points), masses(len(points), seed)
    linkage = link(spanning_tree(points), mass, limit)
    for number, partition in enumerate(naive.genie_partitions(points.tolist(), mass.tolist(), limit)):
        assert as_sets(linkage.cut(len(points) - number)) == partition


def test_without_a_limit_it_is_single_linkage() -> None:
    points = np.random.default_rng(0).normal(size=(70, 2))
    linkage = link(spanning_tree(points), masses(70, 0), 1.0)
    for n_clusters in (1, 2, 7, 30, 70):
        assert same_partition(linkage.cut(n_clusters), fcluster(single(points), n_clusters, "maxclust"))


def test_a_limit_keeps_outliers_from_being_clusters() -> None:
    X, truth = blobs(2, 100, 2, seed=0)
    points, mass = np.vstack([X, [[60.0, 60.0]]]), np.ones(101)
    tree = spanning_tree(points)
    assert not same_partition(link(tree, mass, 1.0).cut(2)[:100], truth)
    assert same_partition(link(tree, mass, 0.3).cut(2)[:100], truth)


@settings(max_examples=100, deadline=None)
@given(points=rows(max_rows=40), seed=seeds, limit=limits, wanted=st.integers(1, 50))
def test_a_cut_has_as_many_clusters_as_asked_for_numbered_by_first_appearance(
    points: FloatArray, seed: int, limit: float, wanted: int
) -> None:
    labels = link(spanning_tree(points), masses(len(points), seed), limit).cut(wanted)
    names, first = np.unique(labels, return_index=True)
    assert names.tolist() == list(range(min(wanted, len(points))))
    assert first.tolist() == sorted(first)


@settings(max_examples=100, deadline=None)
@given(values=st.lists(st.integers(1, 1000), min_size=2, max_size=30), data=st.data())
def test_masses_are_as_unequal_as_all_their_differences_say_also_when_two_become_one(
    values: list[int], data: st.DataObject
) -> None:
    held = Ascending(np.array(values, dtype=float))
    while True:
        assert held.gini() == pytest.approx(naive.gini([float(value) for value in values]), abs=1e-9)
        assert held.smallest == min(values)
        if len(values) == 1:
            break
        one, other = (values.pop(data.draw(st.integers(0, len(values) - 1))) for _ in range(2))
        held.remove(one)
        held.remove(other)
        held.add(one + other)
        values.append(one + other)


# --- gaps ---


@settings(max_examples=60, deadline=None)
@given(points=rows(max_rows=25, kinds=["in general position"]), seed=seeds, limit=limits, wanted=st.integers(2, 5))
def test_the_gap_of_a_linkage_is_that_of_its_labels_and_of_the_naive_twin(
    points: FloatArray, seed: int, limit: float, wanted: int
) -> None:
    points, mass = scaled(points), masses(len(points), seed)
    tree = spanning_tree(points)
    labels = link(tree, mass, limit).cut(wanted)
    if labels.max() == 0:
        return
    gap = gap_of_linkage(tree, mass, labels)
    assert gap == pytest.approx(gap_of(points, tree, mass, labels), abs=1e-9)
    assert gap == pytest.approx(naive.gap(points.tolist(), mass.tolist(), labels.tolist()), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(points=rows(max_rows=25, kinds=["in general position"]), seed=seeds, wanted=st.integers(2, 5))
def test_the_gap_of_any_partition_is_that_of_the_naive_twin(points: FloatArray, seed: int, wanted: int) -> None:
    points, mass = scaled(points), masses(len(points), seed)
    labels = np.unique(np.random.default_rng(seed).integers(wanted, size=len(points)), return_inverse=True)[1]
    if labels.max() == 0:
        return
    gap = gap_of(points, spanning_tree(points), mass, labels.astype(np.int64))
    assert gap == pytest.approx(naive.gap(points.tolist(), mass.tolist(), labels.tolist()), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(points=rows(max_rows=30), seed=seeds, wanted=st.integers(2, 6))
def test_gaps_lie_between_0_and_1_even_where_points_are_the_same(points: FloatArray, seed: int, wanted: int) -> None:
    mass = masses(len(points), seed)
    tree = spanning_tree(points)
    labels = link(tree, mass, 0.3).cut(wanted)
    if labels.max() > 0:
        assert 0.0 <= gap_of_linkage(tree, mass, labels) <= 1.0
        assert 0.0 <= gap_of(points, tree, mass, labels) <= 1.0


@pytest.mark.parametrize("seed", range(5))
def test_gaps_between_far_blobs_are_as_clear_as_can_be(seed: int) -> None:
    X, truth = blobs(2, 80, 2, seed)
    points = scaled(X)
    tree, mass = spanning_tree(points), masses(80, seed)
    labels = link(tree, mass, 0.3).cut(2)
    assert same_partition(labels, truth)
    assert gap_of_linkage(tree, mass, labels) == 1.0


@pytest.mark.parametrize("n_features", [2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_one_blob_has_no_gaps_that_would_be_believed(n_features: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    own, points = k_means(rng.normal(size=(1000, n_features)), 100, rng)
    tree, mass = spanning_tree(points), np.bincount(own).astype(float)
    halves = gap_of(points, tree, mass, (points[:, 0] > 0.0).astype(np.int64))
    assert halves < GAP
    assert not is_clear(best_linked(tree, mass, 2).gap, halves, GAP, LEAD)


def test_moons_are_linked() -> None:
    X, truth = make_moons(300, noise=0.04, random_state=0)
    points = scaled(X)
    tree = spanning_tree(points)
    labels = link(tree, np.ones(300), 0.3).cut(2)
    assert same_partition(labels, truth)
    assert (
        gap_of_linkage(tree, np.ones(300), labels)
        >= GAP
        > gap_of(points, tree, np.ones(300), (X[:, 0] > 0.5).astype(np.int64))
    )
