"""Micro-clusters by k-means: what must hold for any rows, and for any number of threads."""

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.learning import rows as rows_module
from goldfc.learning.finding import Found, find_micro_clusters
from goldfc.learning.k_means import Points, fill, k_means, nearest, product, sample, sums_by_label
from goldfc.learning.rows import InMemory, RowSource
from sites import Counted
from strategies import blobs, rows, same_partition, seeds


def found_in(source: RowSource, count: int, seed: int = 0, size: int = 10_000) -> Found:
    """In blocks of a size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "MOST_ROWS", size)
        return find_micro_clusters(source, lambda rows: rows, count, np.random.default_rng(seed))


def found(X: FloatArray, count: int, seed: int = 0, size: int = 10_000) -> tuple[RowLabels, FloatArray]:
    all_of_it = found_in(InMemory(X), count, seed, size)
    return all_of_it.labels, all_of_it.micro.centroids


def sums_in_a_loop(points: FloatArray, labels: IntArray, count: int, mass: FloatArray) -> FloatArray:
    sums = np.zeros((count, points.shape[1]))
    for point, label, weight in zip(points, labels, mass, strict=True):
        sums[label] += weight * point
    return sums


def distances(X: FloatArray, centres: FloatArray) -> FloatArray:
    return np.asarray(((X[:, None] - centres) ** 2).sum(axis=2))


def spread_inside(X: FloatArray, labels: RowLabels | IntArray) -> float:
    """The mean squared distance of rows from the mean of those that have the same label."""
    means = np.array([X[labels == label].mean(axis=0) for label in range(labels.max() + 1)])
    return float(((X - means[labels]) ** 2).sum(axis=1).mean())


@pytest.fixture
def small_samples() -> Iterator[None]:
    """Tables of a few hundred rows are large: they are sampled, and gone through twice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("goldfc.learning.k_means.ROWS_AT_MOST", 12)
        yield


# --- whatever the rows ---


@settings(max_examples=200, deadline=None)
@given(X=rows(max_rows=60), seed=seeds, count=st.integers(1, 25), size=st.integers(1, 70))
def test_there_are_as_many_micro_clusters_as_asked_for_unless_fewer_rows_differ(
    X: FloatArray, seed: int, count: int, size: int
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels, centroids = found(X, count, seed, size)
    assert labels.dtype == np.int32
    assert len(centroids) == min(count, len(np.unique(X, axis=0)))
    np.testing.assert_array_equal(np.unique(labels), np.arange(len(centroids)))


@settings(max_examples=100, deadline=None)
@given(X=rows(max_rows=60), seed=seeds, count=st.integers(1, 25))
def test_centroids_are_the_means_of_their_rows(X: FloatArray, seed: int, count: int) -> None:
    labels, centroids = found(X, count, seed)
    means = [X[labels == label].mean(axis=0) for label in range(len(centroids))]
    np.testing.assert_allclose(centroids, means, rtol=1e-9, atol=1e-9 * np.abs(X).max())


@settings(max_examples=100, deadline=None)
@given(X=rows(max_rows=60), seed=seeds, count=st.integers(1, 25))
def test_rows_that_are_equal_are_in_the_same_micro_cluster(X: FloatArray, seed: int, count: int) -> None:
    labels, _ = found(X, count, seed)
    _, value = np.unique(X, axis=0, return_inverse=True)
    assert len(np.unique(np.column_stack([value, labels]), axis=0)) == len(np.unique(value))


@settings(max_examples=100, deadline=None)
@given(X=rows(max_rows=400), seed=seeds, count=st.integers(1, 20), size=st.integers(50, 500))
@pytest.mark.usefixtures("small_samples")
def test_of_a_sampled_table_too_all_rows_have_labels_without_gaps_and_centroids_are_means(
    X: FloatArray, seed: int, count: int, size: int
) -> None:
    labels, centroids = found(X, count, seed, size)
    assert len(centroids) <= min(count, len(np.unique(X, axis=0)))
    np.testing.assert_array_equal(np.unique(labels), np.arange(len(centroids)))
    means = [X[labels == label].mean(axis=0) for label in range(len(centroids))]
    np.testing.assert_allclose(centroids, means, rtol=1e-9, atol=1e-9 * np.abs(X).max())


@pytest.mark.parametrize(
    ("n_rows", "n_features", "count"), [(10, 1, 2), (50, 4, 10), (600, 4096, 100), (25_000, 3, 100)]
)
def test_the_count_is_reached_in_tables_of_any_form(n_rows: int, n_features: int, count: int) -> None:
    labels, centroids = found(np.random.default_rng(0).normal(size=(n_rows, n_features)), count)
    assert np.bincount(labels).min() >= 1
    assert centroids.shape == (count, n_features)


def test_values_that_nearly_all_rows_share_do_not_hide_the_others() -> None:
    X = np.zeros((5000, 2))
    X[:30] = np.random.default_rng(0).normal(size=(30, 2))
    labels, centroids = found(X, 31)
    assert len(centroids) == 31
    assert np.bincount(labels).max() == 4970


def test_rows_far_from_zero_are_told_apart_as_they_are_near_it() -> None:
    X = np.random.default_rng(0).integers(1000, size=(300, 3)).astype(float)
    np.testing.assert_array_equal(found(X, 20)[0], found(X + 2.0**30, 20)[0])


@pytest.mark.parametrize("factor", [1e-3, 1000.0])
@pytest.mark.parametrize("n_rows", [300, 3000])
def test_neither_units_nor_the_order_of_features_change_the_labels(factor: float, n_rows: int) -> None:
    X = np.random.default_rng(0).normal(size=(n_rows, 5))
    labels, _ = found(X, 20)
    np.testing.assert_array_equal(found(factor * X, 20)[0], labels)
    np.testing.assert_array_equal(found(X + 7.0, 20)[0], labels)
    np.testing.assert_array_equal(found(np.ascontiguousarray(X[:, ::-1]), 20)[0], labels)


# --- passes and threads ---


@pytest.mark.parametrize(("n_rows", "count", "passes"), [(200, 20, 2), (300, 20, 2), (300, 1, 1)])
@pytest.mark.usefixtures("small_samples")
def test_a_table_is_gone_through_twice_or_for_a_single_micro_cluster_once(n_rows: int, count: int, passes: int) -> None:
    counted = Counted(np.random.default_rng(0).normal(size=(n_rows, 2)))
    found_in(counted, count, size=64)
    assert counted.rows_read == passes * n_rows


@settings(max_examples=60, deadline=None)
@given(X=rows(max_rows=300), count=st.integers(1, 25), size=st.integers(20, 300), data=st.data())
@pytest.mark.usefixtures("small_samples")
def test_what_is_known_of_micro_clusters_is_that_of_their_rows_merged_or_not(
    X: FloatArray, count: int, size: int, data: st.DataObject
) -> None:
    first = found_in(InMemory(X), count, size=size)
    groups = data.draw(st.lists(st.integers(0, 3), min_size=len(first.micro.mass), max_size=len(first.micro.mass)))
    into = np.unique(groups, return_inverse=True)[1]
    for one in (first, first.merged(into)):
        own = [X[one.labels == label] for label in range(len(one.micro.mass))]
        np.testing.assert_array_equal(one.micro.mass, [len(some) for some in own])
        np.testing.assert_array_equal(one.low, [some.min(axis=0) for some in own])
        np.testing.assert_array_equal(one.high, [some.max(axis=0) for some in own])
        means = [some.mean(axis=0) for some in own]
        np.testing.assert_allclose(one.micro.centroids, means, rtol=1e-9, atol=1e-9 * np.abs(X).max())
    np.testing.assert_array_equal(first.merged(into).labels, into[first.labels])


@pytest.mark.parametrize("n_features", [1, 10, 300])
@pytest.mark.parametrize("kind", ["anywhere", "on a grid, so that ties abound"])
def test_the_number_of_threads_does_not_change_anything(n_features: int, kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, n_features)) if kind == "anywhere" else rng.integers(3, size=(2500, n_features)) / 7.0
    outcomes = []
    for threads in (1, 2, 3):
        with threadpool_limits(limits=threads):
            outcomes.append(found(X, 60))
    for labels, centroids in outcomes[1:]:
        np.testing.assert_array_equal(labels, outcomes[0][0])
        np.testing.assert_array_equal(centroids, outcomes[0][1])


def test_where_a_block_ends_does_not_matter_for_a_table_that_is_learned_whole() -> None:
    X = np.random.default_rng(0).normal(size=(500, 3))
    np.testing.assert_array_equal(found(X, 30)[0], found(X, 30, size=7)[0])


# --- how good ---


@pytest.mark.parametrize("n_rows", [400, 5000, 30_000])
def test_rows_are_as_near_to_their_centroids_as_with_k_means_to_the_end(n_rows: int) -> None:
    X, _ = blobs(5, n_rows, 6, seed=0)
    count = min(100, n_rows // 5)
    with threadpool_limits(limits=1):
        theirs = np.mean([spread_inside(X, KMeans(count, n_init=1, random_state=s).fit_predict(X)) for s in range(3)])
    ours = np.mean([spread_inside(X, found(X, count, seed)[0]) for seed in range(3)])
    assert ours < 1.03 * theirs


@pytest.mark.parametrize("n_rows", [1000, 25_000])
def test_no_micro_cluster_has_rows_of_two_clusters_that_are_apart(n_rows: int) -> None:
    X, truth = blobs(20, n_rows, 4, seed=1)
    labels, _ = found(X, 60)
    assert all(len(np.unique(truth[labels == label])) == 1 for label in range(60))


# --- k-means of points with mass ---


def test_masses_count_as_points_that_are_there_more_than_once() -> None:
    rng = np.random.default_rng(0)
    points, mass = rng.normal(size=(200, 3)), rng.integers(1, 50, 200)
    labels, centres = k_means(points, 5, np.random.default_rng(0), mass.astype(float))
    repeated = np.repeat(points, mass, axis=0)
    for label in range(5):
        np.testing.assert_allclose(centres[label], repeated[np.repeat(labels, mass) == label].mean(axis=0))


def test_only_how_masses_compare_counts() -> None:
    rng = np.random.default_rng(2)
    points, mass = rng.normal(size=(900, 3)), rng.integers(1, 50, 900).astype(float)
    one, other = (k_means(points, 8, np.random.default_rng(0), factor * mass)[0] for factor in (1.0, 64.0))
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, k_means(points, 8, np.random.default_rng(0))[0])


def test_clusters_that_are_apart_are_found_by_mass() -> None:
    X, truth = blobs(6, 2000, 3, seed=3)
    labels, _ = k_means(X, 6, np.random.default_rng(0), np.random.default_rng(1).uniform(0.1, 10.0, 2000))
    assert same_partition(labels, truth)


# --- the sample ---


def test_a_sample_stands_for_all_rows_in_the_mean() -> None:
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(2000, 2)))
    blocks = [Points(X[start : start + 300], np.ones(len(X[start : start + 300]))) for start in range(0, 2000, 300)]
    drawn = [sample(blocks, 2, 200, rng) for _ in range(300)]
    assert {len(points.rows) for points in drawn} == {200}
    assert np.mean([points.mass.sum() for points in drawn]) == pytest.approx(2000, rel=0.01)
    np.testing.assert_allclose(
        np.mean([points.mass @ points.rows for points in drawn], axis=0), X.sum(axis=0), rtol=0.01
    )


def test_outliers_are_in_every_sample() -> None:
    X = np.random.default_rng(0).normal(size=(3000, 2))
    X[1234] = 1000.0
    for seed in range(20):
        drawn = sample([Points(X, np.ones(3000))], 2, 100, np.random.default_rng(seed))
        assert drawn.mass[(drawn.rows == 1000.0).all(axis=1)].tolist() == [1.0]


def test_all_of_a_sample_are_different_rows() -> None:
    X = np.arange(5000.0)[:, None]
    blocks = (Points(X[start : start + 100], np.ones(100)) for start in range(0, 5000, 100))
    assert len(np.unique(sample(blocks, 1, 700, np.random.default_rng(0)).rows)) == 700


# --- against slow, obvious twins ---


@settings(max_examples=100, deadline=None)
@given(X=rows(max_rows=60), seed=seeds, count=st.integers(1, 9), many=st.sampled_from([0, 10_000]))
def test_sums_by_label_are_those_of_a_loop(X: FloatArray, seed: int, count: int, many: int) -> None:
    rng = np.random.default_rng(seed)
    labels, mass = rng.integers(count, size=len(X)), rng.uniform(0.5, 9.0, len(X))
    tolerance = {"rtol": 1e-12, "atol": 1e-12 * np.abs(X).max()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("goldfc.learning.k_means.MANY_NUMBERS", many)
        weighted, plain = sums_by_label(X, labels, count, mass), sums_by_label(X, labels.astype(np.int32), count)
    np.testing.assert_allclose(weighted, sums_in_a_loop(X, labels, count, mass), **tolerance)
    np.testing.assert_allclose(plain, sums_in_a_loop(X, labels, count, np.ones(len(X))), **tolerance)


@settings(max_examples=100, deadline=None)
@given(seed=seeds, n_features=st.integers(1, 200), count=st.integers(1, 70), offset=st.sampled_from([0.0, 1e6]))
def test_nearest_is_nearest(seed: int, n_features: int, count: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    X, centres = rng.normal(size=(90, n_features)) + offset, rng.normal(size=(count, n_features)) + offset
    every = distances(X, centres)
    chosen = every[np.arange(len(X)), nearest(X, centres)]
    np.testing.assert_allclose(chosen, every.min(axis=1), rtol=1e-9, atol=1e-7)


@settings(max_examples=100, deadline=None)
@given(seed=seeds, count=st.integers(2, 70))
def test_of_centres_that_are_equally_near_the_first_is_nearest(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    X, centres = rng.integers(4, size=(60, 3)) / 3.0, rng.integers(4, size=(count, 3)) / 3.0
    np.testing.assert_array_equal(nearest(X, centres), np.round(distances(X, centres), 9).argmin(axis=1))


def test_products_in_parts_are_products() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(40, 500)), rng.normal(size=(500, 300))
    np.testing.assert_allclose(product(left, right), left @ right, atol=1e-12)


@settings(max_examples=100, deadline=None)
@given(X=rows(max_rows=60), seed=seeds, count=st.integers(1, 25))
def test_empty_clusters_are_filled_and_none_is_emptied(X: FloatArray, seed: int, count: int) -> None:
    labels = np.random.default_rng(seed).integers(max(1, count // 2), size=len(X))
    filled, centres = fill(X, labels.copy(), np.zeros((max(1, count // 2), X.shape[1])), count)
    np.testing.assert_array_equal(np.unique(filled), np.arange(len(centres)))
    assert len(centres) >= min(count, len(np.unique(X, axis=0)))
