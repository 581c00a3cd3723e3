"""What holds for every competition, level and fusion, whatever the rows."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldfc._types import FloatArray
from goldfc.errors import BadSettings, TooFewMicroClusters
from goldfc.learning.levels import Levels
from goldfc.learning.paper import _fusion_kernels
from goldfc.learning.paper.competition import Learning, compete
from goldfc.learning.paper.fusion import draw_modes, fuse_levels
from goldfc.learning.paper.granularity import find_levels
from goldfc.learning.paper.importance import feature_importance
from sentences import refused
from strategies import rows, seeds


@settings(max_examples=200, deadline=None)
@given(X=rows(), seed=seeds)
def test_every_row_has_one_cluster_and_no_cluster_is_empty(X: FloatArray, seed: int) -> None:
    outcome = compete(X, Learning().candidates(len(X)), Learning(), np.random.default_rng(seed))
    assert sorted(set(outcome.labels)) == list(range(outcome.n_clusters))


@settings(max_examples=200, deadline=None)
@given(X=rows(), seed=seeds)
def test_centroids_are_the_means_of_their_members(X: FloatArray, seed: int) -> None:
    outcome = compete(X, Learning().candidates(len(X)), Learning(), np.random.default_rng(seed))
    for j, centroid in enumerate(outcome.centroids):
        np.testing.assert_allclose(centroid, X[outcome.labels == j].mean(axis=0), rtol=1e-9, atol=1e-9)


@settings(max_examples=200, deadline=None)
@given(X=rows(), seed=seeds)
def test_importance_sums_to_one_in_every_cluster(X: FloatArray, seed: int) -> None:
    outcome = compete(X, Learning().candidates(len(X)), Learning(), np.random.default_rng(seed))
    importance, _ = feature_importance(X, np.ones(len(X)), outcome.labels, np.bincount(outcome.labels))
    assert (importance >= 0.0).all()
    np.testing.assert_allclose(importance.sum(axis=1), 1.0, atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(X=rows(), seed=seeds, tolerance=st.sampled_from([None, 0.0, 1e-3, 1.0]))
def test_a_level_never_has_more_clusters_than_the_one_before(X: FloatArray, seed: int, tolerance: float | None) -> None:
    levels = find_levels(X, Learning(), np.random.default_rng(seed), tolerance=tolerance)
    assert len(levels) >= 1
    assert list(levels.n_clusters) == sorted(levels.n_clusters, reverse=True)
    assert levels.n_clusters == tuple(len(set(level)) for level in levels.labels.T)
    if tolerance is None:
        assert len(set(levels.n_clusters)) == len(levels)


def test_the_objective_rule_goes_on_at_least_as_long_as_the_plain_one() -> None:
    X = np.random.default_rng(3).normal(size=(120, 4))
    plain = find_levels(X, Learning(), np.random.default_rng(0))
    strict = find_levels(X, Learning(), np.random.default_rng(0), tolerance=0.0)
    assert strict.n_clusters[: len(plain)] == plain.n_clusters
    assert len(strict) > len(plain)
    for tolerance in (-1.0, float("nan")):
        with refused(BadSettings, "tolerance"):
            find_levels(X, Learning(), np.random.default_rng(0), tolerance=tolerance)


def test_first_modes_are_different_codes_and_common_ones_come_first_more_often() -> None:
    codes = np.array([[0, 0]] * 8 + [[1, 0], [2, 1]])
    firsts = []
    for seed in range(300):
        modes = draw_modes(codes, 2, np.random.default_rng(seed))
        assert len(np.unique(modes, axis=0)) == 2
        firsts.append(modes[0, 0])
    assert 0.7 < np.mean(np.array(firsts) == 0) < 0.9


def test_fusion_goes_on_until_labels_rest() -> None:
    rng = np.random.default_rng(2)
    levels = Levels(rng.integers(5, size=(200, 3)), (5, 5, 5))
    labels = fuse_levels(levels, 4, np.random.default_rng(0))
    once = np.full(200, -1)
    modes = draw_modes(levels.labels, 4, np.random.default_rng(0))
    _fusion_kernels.best_matches(levels.labels, modes, np.full((4, 3), 1 / 3), once)
    assert (labels != np.unique(once, return_inverse=True)[1]).any()


@settings(max_examples=50, deadline=None)
@given(X=rows(), seed=seeds)
def test_same_seed_same_levels_and_rows_untouched(X: FloatArray, seed: int) -> None:
    before = X.copy()
    first = find_levels(X, Learning(), np.random.default_rng(seed))
    second = find_levels(X, Learning(), np.random.default_rng(seed))
    np.testing.assert_array_equal(first.labels, second.labels)
    np.testing.assert_array_equal(X, before)


DEGENERATE = {
    "one row": np.zeros((1, 2)),
    "two rows": np.array([[0.0, 1.0], [2.0, 3.0]]),
    "one column": np.arange(20.0)[:, None],
    "constant columns": np.column_stack([np.arange(20.0), np.full(20, 0.1), np.zeros(20)]),
    "all rows equal": np.full((20, 3), 0.3),
    "two distinct rows, many times": np.repeat([[0.1, 0.2], [0.3, 0.4]], 15, axis=0),
    "huge values": np.random.default_rng(0).normal(size=(20, 2)) * 1e99,
    "tiny differences": 1.0 + np.random.default_rng(0).normal(size=(20, 2)) * 1e-14,
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("fraction", [0.01, 0.5, 1.0])
def test_degenerate_rows_give_numbers_and_no_warning(case: str, fraction: float) -> None:
    X = DEGENERATE[case]
    learning = Learning(initial_fraction=fraction)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome = compete(X, learning.candidates(len(X)), learning, np.random.default_rng(0))
        levels = find_levels(X, learning, np.random.default_rng(0))
        labels = fuse_levels(levels, 1, np.random.default_rng(0))
    assert np.isfinite(outcome.centroids).all()
    assert np.isfinite(outcome.objective)
    assert (labels == 0).all()


def test_fusion_says_when_more_clusters_are_asked_for_than_can_be_told_apart() -> None:
    levels = Levels(np.array([[0, 0], [1, 0], [1, 0], [2, 1]]), (3, 2))
    assert len(set(fuse_levels(levels, 3, np.random.default_rng(0)))) == 3
    with refused(TooFewMicroClusters, "too-few-micro-clusters", "4 clusters", "only 3 kinds", "at most 3"):
        fuse_levels(levels, 4, np.random.default_rng(0))


def test_clearly_separate_clusters_are_found() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 100)
    X = rng.normal(size=(300, 2)) * 0.1 + np.array([[0, 0], [8, 0], [0, 8]])[truth]
    outcome = compete(X, 150, Learning(), rng)
    for cluster in range(outcome.n_clusters):
        assert len(set(truth[outcome.labels == cluster])) == 1
