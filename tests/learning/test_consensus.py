"""The consensus: what the partitions agree on is found, and how far they agree is told."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from goldfc._types import FloatArray
from goldfc.learning.consensus import GRANULARITIES, co_membership, cut, embed, find_consensus, fuse_partitions, stack
from goldfc.learning.micro_clusters import MicroClusters, standardized
from strategies import KINDS, blobs, micro_clusters, mixed, same_partition, seeds

kinds = pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])


def separate(n_clusters: int, n_rows: int, n_features: int, seed: int) -> MicroClusters:
    X, _ = blobs(n_clusters, n_rows, n_features, seed)
    mass = np.random.default_rng(seed).integers(1, 30, size=n_rows).astype(float)
    return standardized(MicroClusters(X, mass, mass.sum() * 0.1 * np.eye(n_features)))[0]


def standardised_rows(X: FloatArray, mass: FloatArray | None = None) -> MicroClusters:
    none = np.zeros((X.shape[1], X.shape[1]))
    return standardized(MicroClusters(X, np.ones(len(X)) if mass is None else mass, none))[0]


def random_memberships(n_rows: int, seed: int) -> list[FloatArray]:
    rng = np.random.default_rng(seed)
    soft = [rng.dirichlet(np.full(n_clusters, 0.3), size=n_rows) for n_clusters in (2, 3, 5)]
    return [np.where(those < 0.01, 0.0, those) for those in soft]


# --- the whole -------------------------------------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize(
    ("n_clusters", "n_features", "seed"), [(1, 2, 0), (2, 1, 1), (2, 6, 2), (5, 3, 3), (9, 2, 4), (15, 4, 5)]
)
def test_well_separated_clusters_are_found_exactly_and_with_certainty(
    n_clusters: int, n_features: int, seed: int, own: bool
) -> None:
    truth = blobs(n_clusters, 20 * n_clusters, n_features, seed)[1]
    micro = separate(n_clusters, 20 * n_clusters, n_features, seed)
    fused = find_consensus(micro, n_clusters, np.random.default_rng(seed), own=own)
    assert same_partition(fused.labels, truth)
    assert np.average(fused.certainty, weights=micro.mass) > 0.9


@settings(max_examples=40, deadline=None)
@given(sent=micro_clusters(), seed=seeds, own=st.booleans(), with_categories=st.booleans(), data=st.data())
def test_labels_are_numbered_by_first_appearance_certainty_lies_in_0_to_1_and_the_seed_decides_all(
    sent: MicroClusters, seed: int, own: bool, with_categories: bool, data: st.DataObject
) -> None:
    micro = standardized(mixed(sent, seed) if with_categories else sent)[0]
    n_clusters = data.draw(st.integers(1, min(micro.distinct, 6)))
    before = micro.centroids.copy(), micro.mass.copy(), micro.scatter.copy()
    one, other = (find_consensus(micro, n_clusters, np.random.default_rng(seed), own=own, starts=2) for _ in range(2))
    names, first = np.unique(one.labels, return_index=True)
    assert names.tolist() == list(range(len(names)))
    assert first.tolist() == sorted(first)
    assert one.labels.max() < n_clusters
    assert one.certainty.shape == one.labels.shape == (len(micro.centroids),)
    assert ((one.certainty >= 0.0) & (one.certainty <= 1.0)).all()
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.certainty, other.certainty)
    np.testing.assert_array_equal(one.levels.labels, other.levels.labels)
    for array, copy in zip((micro.centroids, micro.mass, micro.scatter), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_another_seed_gives_other_mixtures() -> None:
    micro = standardised_rows(np.random.default_rng(0).normal(size=(60, 3)))
    one, other = (find_consensus(micro, 5, np.random.default_rng(seed), starts=2) for seed in range(2))
    assert (one.certainty != other.certainty).any()


@pytest.mark.parametrize("seed", range(3))
def test_order_of_micro_clusters_changes_the_names_of_labels_at_most(seed: int) -> None:
    micro = separate(4, 80, 3, seed)
    order = np.random.default_rng(seed).permutation(80)
    shuffled = MicroClusters(micro.centroids[order], micro.mass[order], micro.scatter)
    straight = find_consensus(micro, 4, np.random.default_rng(seed))
    other = find_consensus(shuffled, 4, np.random.default_rng(seed))
    assert same_partition(straight.labels[order], other.labels)


@settings(max_examples=20, deadline=None)
@given(sent=micro_clusters(kinds=["few distinct rows", "on a grid, so that ties abound"]), seed=seeds)
def test_equal_micro_clusters_have_equal_labels_and_certainties(sent: MicroClusters, seed: int) -> None:
    micro = standardized(sent)[0]
    fused = find_consensus(micro, min(3, micro.distinct), np.random.default_rng(seed), starts=2)
    which = np.unique(micro.centroids, axis=0, return_inverse=True)[1]
    assert len(np.unique(np.column_stack([which, fused.labels]), axis=0)) == micro.distinct
    for number in range(micro.distinct):
        assert np.ptp(fused.certainty[which == number]) < 1e-9


def test_mass_decides_where_there_are_too_few_clusters_for_all() -> None:
    X = np.array([[0.0], [1.0], [2.0]]).repeat(10, axis=0) * 10.0
    X = X + np.random.default_rng(0).normal(scale=0.1, size=X.shape)
    heavy_left = np.repeat([100.0, 1.0, 1.0], 10)
    fused = find_consensus(standardised_rows(X, heavy_left), 2, np.random.default_rng(0))
    assert len(set(fused.labels[:10])) == 1
    assert not set(fused.labels[:10]) & set(fused.labels[20:])


@kinds
@pytest.mark.parametrize("seed", range(3))
def test_what_differs_by_rounding_alone_has_the_same_labels(seed: int, own: bool) -> None:
    rng = np.random.default_rng(seed)
    X = blobs(4, 80, 3, seed)[0] + rng.normal(scale=1.5, size=(80, 3))
    mass = rng.integers(1, 30, size=80).astype(float)
    one, other = (
        find_consensus(standardised_rows(rows, mass), 4, np.random.default_rng(seed), own=own)
        for rows in (X, 1000.0 * X + 7.0)
    )
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_allclose(one.certainty, other.certainty, atol=1e-6)


# --- levels ----------------------------------------------------------------------------------------------------------


def test_levels_go_from_fine_to_coarse() -> None:
    for seed in range(2):
        micro = standardised_rows(np.random.default_rng(seed).normal(size=(80, 3)))
        levels = find_consensus(micro, 4, np.random.default_rng(seed), starts=3).levels
        assert len(levels) == len(GRANULARITIES)
        assert list(levels.n_clusters) == sorted(levels.n_clusters, reverse=True)
        assert levels.n_clusters[0] > levels.n_clusters[-1]
        assert levels.n_clusters == tuple(len(set(level)) for level in levels.labels.T)


def test_levels_go_from_fine_to_coarse_even_where_fine_mixtures_lose_more_clusters() -> None:
    X = KINDS["far apart"](np.random.default_rng(0), (40, 1))
    levels = find_consensus(standardised_rows(X), 3, np.random.default_rng(0)).levels
    assert list(levels.n_clusters) == sorted(levels.n_clusters, reverse=True)


def test_no_level_is_finer_than_the_micro_clusters_are_different() -> None:
    few = standardised_rows(np.repeat(np.random.default_rng(0).normal(size=(5, 2)), 4, axis=0))
    levels = find_consensus(few, 5, np.random.default_rng(0), starts=2).levels
    assert len(levels) == 1
    assert levels.n_clusters[0] <= 5


# --- the parts -------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(seed=seeds, n_rows=st.integers(1, 25), n_labels=st.integers(1, 4))
def test_agreement_equals_its_naive_twin(seed: int, n_rows: int, n_labels: int) -> None:
    rng = np.random.default_rng(seed)
    memberships = random_memberships(n_rows, seed)
    mass = rng.integers(1, 9, size=n_rows).astype(float)
    labels = np.unique(rng.integers(n_labels, size=n_rows), return_inverse=True)[1].astype(np.int64)
    certainty = co_membership(stack(memberships), mass, labels)
    np.testing.assert_allclose(certainty, naive.agreement(memberships, mass, labels), atol=1e-12)


def test_stacked_partitions_give_the_share_of_mixtures_that_put_two_together() -> None:
    apart, together = np.eye(3), np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    partitions = stack([apart, together, together, together])
    expected = [[1.0, 0.75, 0.0], [0.75, 1.0, 0.0], [0.0, 0.0, 1.0]]
    np.testing.assert_allclose((partitions @ partitions.T).toarray(), expected)


@settings(max_examples=50, deadline=None)
@given(seed=seeds, n_rows=st.integers(2, 40), n_clusters=st.integers(1, 4))
def test_what_all_partitions_agree_on_is_found_with_full_certainty(seed: int, n_rows: int, n_clusters: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.unique(rng.integers(min(n_clusters, n_rows), size=n_rows), return_inverse=True)[1]
    mass = rng.integers(1, 9, size=n_rows).astype(float)
    names = [rng.permutation(truth.max() + 1) for _ in range(4)]
    memberships = [np.eye(truth.max() + 1)[own[truth]] for own in names]
    labels, certainty = fuse_partitions(memberships, mass, int(truth.max()) + 1, rng)
    assert same_partition(labels, truth)
    np.testing.assert_allclose(certainty, 1.0)


def test_certainty_is_low_where_partitions_disagree_and_only_there() -> None:
    rng = np.random.default_rng(0)
    partitions = []
    for _ in range(20):
        labels = np.repeat([0, 1], 30)
        labels[[3, 40]] = rng.integers(2, size=2)
        partitions.append(np.eye(2)[labels])
    labels, certainty = fuse_partitions(partitions, np.ones(60), 2, rng)
    torn = np.isin(np.arange(60), [3, 40])
    assert certainty[torn].max() < 0.8
    assert certainty[~torn].min() > 0.95


@settings(max_examples=30, deadline=None)
@given(seed=seeds, n_rows=st.integers(1, 30), n_clusters=st.integers(1, 6))
def test_embedded_micro_clusters_have_unit_length(seed: int, n_rows: int, n_clusters: int) -> None:
    rng = np.random.default_rng(seed)
    partitions = stack(random_memberships(n_rows, seed))
    points = embed(partitions, rng.integers(1, 9, size=n_rows).astype(float), n_clusters, rng)
    assert len(points) == n_rows
    assert 1 <= points.shape[1] <= min(n_clusters, n_rows, partitions.shape[1])
    length = np.linalg.norm(points, axis=1)
    assert (np.isclose(length, 1.0) | (length == 0.0)).all()


def test_what_no_partition_tells_apart_is_not_cut_however_many_clusters_are_asked_for() -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(30) % 3
    names = [rng.permutation(3) for _ in range(6)]
    memberships = [np.eye(3)[own[truth]] for own in names]
    points = embed(stack(memberships), rng.uniform(1.0, 9.0, 30), 5, rng)
    assert len(np.unique(points, axis=0)) == 3
    assert same_partition(cut(points, np.ones(30), 5, rng), truth)
