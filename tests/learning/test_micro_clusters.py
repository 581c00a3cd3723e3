"""Micro-clusters: what they tell of the rows they stand for, in any units."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldfc._types import FloatArray
from goldfc.learning.micro_clusters import (
    MOST_FEATURES_FOR_CORRELATIONS,
    Layout,
    MicroClusters,
    diagonal_of,
    means_of,
    no_scatter,
    scatter_of,
    standardized,
)
from strategies import WITHOUT_TIES, micro_clusters, rows, seeds


def micro_of(X: FloatArray, own: np.ndarray) -> MicroClusters:
    centroids = means_of(X, own, np.ones(len(X)))
    return MicroClusters(centroids, np.bincount(own).astype(float), scatter_of(X, centroids, own))


# --- scatter ---


@settings(max_examples=100, deadline=None)
@given(X=rows(kinds=WITHOUT_TIES), seed=seeds)
def test_micro_clusters_have_the_scatter_of_their_rows(X: FloatArray, seed: int) -> None:
    own = np.unique(np.random.default_rng(seed).integers(8, size=len(X)), return_inverse=True)[1]
    unit = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-300)
    np.testing.assert_allclose(micro_of(unit, own).all_scatter, unit.T @ unit, atol=1e-8)


@settings(max_examples=100, deadline=None)
@given(micro=micro_clusters(), seed=seeds, diagonal=st.booleans())
def test_merged_micro_clusters_keep_mass_mean_and_scatter(micro: MicroClusters, seed: int, diagonal: bool) -> None:
    unit = standardized(replace(micro, scatter=diagonal_of(micro.scatter)) if diagonal else micro)[0]
    group = np.unique(np.random.default_rng(seed).integers(4, size=len(micro.mass)), return_inverse=True)[1]
    merged = unit.merged(group.astype(np.int64))
    assert len(merged.mass) == group.max() + 1
    assert merged.total_mass == pytest.approx(unit.total_mass)
    np.testing.assert_allclose(merged.mass @ merged.centroids, unit.mass @ unit.centroids, atol=1e-8)
    np.testing.assert_allclose(merged.all_scatter, unit.all_scatter, atol=1e-8 * unit.total_mass)


def test_many_features_send_variances_alone() -> None:
    for n_features in (MOST_FEATURES_FOR_CORRELATIONS, MOST_FEATURES_FOR_CORRELATIONS + 1):
        X = np.random.default_rng(0).normal(size=(20, n_features))
        labels = np.arange(20) % 4
        shape = scatter_of(X, means_of(X, labels, np.ones(20)), labels)
        full = n_features == MOST_FEATURES_FOR_CORRELATIONS
        assert shape.shape == no_scatter(n_features).shape == ((n_features, n_features) if full else (n_features,))
    few = scatter_of(X[:, :200], means_of(X[:, :200], labels, np.ones(20)), labels)
    np.testing.assert_allclose(shape[:200], np.diagonal(few))


# --- units ---


@settings(max_examples=100, deadline=None)
@given(micro=micro_clusters(), diagonal=st.booleans())
def test_standardised_rows_have_mean_0_and_variance_1_or_0(micro: MicroClusters, diagonal: bool) -> None:
    unit, scale = standardized(replace(micro, scatter=diagonal_of(micro.scatter)) if diagonal else micro)
    assert (scale > 0.0).all()
    np.testing.assert_allclose(unit.mass @ unit.centroids / unit.total_mass, 0.0, atol=1e-9)
    variance = diagonal_of(unit.all_scatter) / unit.total_mass
    assert (np.isclose(variance, 1.0) | (variance <= 1e-9)).all()


@settings(max_examples=50, deadline=None)
@given(micro=micro_clusters(kinds=["in general position"]), seed=seeds)
def test_standardised_rows_know_no_units(micro: MicroClusters, seed: int) -> None:
    rng = np.random.default_rng(seed)
    factor = 10.0 ** rng.integers(-9, 9, size=micro.centroids.shape[1])
    other = MicroClusters(micro.centroids * factor, micro.mass, micro.scatter * np.outer(factor, factor))
    (one, scale), (two, scaled) = standardized(micro), standardized(other)
    np.testing.assert_allclose(one.centroids, two.centroids, atol=1e-9)
    np.testing.assert_allclose(one.scatter, two.scatter, atol=1e-9 * one.total_mass)
    np.testing.assert_allclose(scale * factor, scaled, rtol=1e-9)


def test_with_one_scale_numbers_keep_how_they_compare() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 5.0, 0.0] + 7.0
    unit, scale = standardized(MicroClusters(X, np.ones(50), np.zeros((3, 3))), one_scale=True)
    assert scale[0] == scale[1] == pytest.approx(np.sqrt(X.var(axis=0)[:2].mean()))
    assert scale[2] == 7.0
    np.testing.assert_allclose(unit.centroids[:, :2] * scale[0], X[:, :2] - X[:, :2].mean(axis=0))
    np.testing.assert_array_equal(unit.centroids[:, 2], 0.0)


# --- categories ---


def test_shares_of_yes_are_also_those_of_no_and_every_category_sums_to_one() -> None:
    layout = Layout(np.array([0]), (np.array([1]), np.array([2, 3, 4])))
    assert layout.levels == (2, 3)
    sent = np.array([[9.0, 0.25, 0.5, 0.25, 0.25], [8.0, 1.0, 0.3, 0.3, 0.3], [7.0, 0.0, -0.01, 1.0, 0.0]])
    shares = layout.shares_of(sent)
    expected = [[0.25, 0.75, 0.5, 0.25, 0.25], [1.0, 0.0, 1 / 3, 1 / 3, 1 / 3], [0.0, 1.0, 0.0, 1.0, 0.0]]
    np.testing.assert_allclose(shares, expected)
    np.testing.assert_array_equal(layout.numbers_of(sent), sent[:, :1])


def test_a_table_without_numbers_has_one_that_is_always_0() -> None:
    layout = Layout(np.empty(0, dtype=np.int64), (np.array([0]),))
    np.testing.assert_array_equal(layout.numbers_of(np.ones((4, 1))), np.zeros((4, 1)))


def test_the_usual_shares_are_those_of_all_rows_and_levels_tell_micro_clusters_apart() -> None:
    shares = np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]])
    micro = MicroClusters(np.zeros((3, 1)), np.array([1.0, 2.0, 1.0]), np.zeros((1, 1)), shares, (2,))
    np.testing.assert_allclose(micro.usual_shares, [0.625, 0.375])
    assert micro.distinct == 2
    assert replace(micro, levels=()).distinct == 1
