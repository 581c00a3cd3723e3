"""Every kernel gives what the paper's formulas give in slow loops; labels to the last row, on degenerate rows too."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naive
from goldfc._types import FloatArray, IntArray
from goldfc.learning.levels import Levels
from goldfc.learning.paper import _kernels
from goldfc.learning.paper.competition import Learning, compete, start
from goldfc.learning.paper.fusion import draw_modes, fuse_levels, level_weights
from goldfc.learning.paper.granularity import find_levels
from goldfc.learning.paper.importance import feature_importance
from strategies import KINDS, rows, seeds


@st.composite
def partitioned_rows(draw: st.DrawFn) -> tuple[FloatArray, IntArray]:
    X = draw(rows())
    raw = draw(st.lists(st.integers(0, 5), min_size=len(X), max_size=len(X)))
    return X, np.unique(raw, return_inverse=True)[1].astype(np.int64)


learning_rates = st.sampled_from([0.001, 0.05, 0.5, 1.0])
fractions = st.sampled_from([0.1, 0.3, 0.5, 1.0])


@settings(max_examples=500, deadline=None)
@given(X=rows(), rate=learning_rates, fraction=fractions, seed=seeds)
def test_competition_gives_the_labels_of_its_naive_twin(X: FloatArray, rate: float, fraction: float, seed: int) -> None:
    learning = Learning(rate, fraction)
    fast = compete(X, learning.candidates(len(X)), learning, np.random.default_rng(seed))
    slow = naive.compete(X, learning.candidates(len(X)), learning, np.random.default_rng(seed))
    np.testing.assert_array_equal(fast.labels, naive.labels_of(slow, len(X)))
    np.testing.assert_allclose(fast.centroids, [cluster.centroid for cluster in slow], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fast.objective, naive.objective(X.tolist(), slow), rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(X=rows(max_rows=40), repeats=st.integers(20, 30), seed=seeds)
def test_long_competitions_too_where_clusters_die_and_standings_grow_stale(
    X: FloatArray, repeats: int, seed: int
) -> None:
    noise = np.random.default_rng(seed).normal(scale=0.3, size=(repeats * len(X), X.shape[1]))
    many = np.tile(X, (repeats, 1)) + noise
    learning = Learning(max_epochs=3)
    fast = compete(many, min(30, len(many)), learning, np.random.default_rng(seed))
    slow = naive.compete(many, min(30, len(many)), learning, np.random.default_rng(seed))
    np.testing.assert_array_equal(fast.labels, naive.labels_of(slow, len(many)))


# Of these a mean of equal values may be off by its last digit, which is noise beside what differs, if anything does.
VARIED = sorted(set(KINDS) - {"constant columns", "all rows equal"})


@settings(max_examples=200, deadline=None)
@given(X=rows(kinds=VARIED), fraction=fractions, seed=seeds, data=st.data())
def test_rows_with_masses_too(X: FloatArray, fraction: float, seed: int, data: st.DataObject) -> None:
    mass = np.array(data.draw(st.lists(st.sampled_from([0.25, 1.0, 2.0, 8.0]), min_size=len(X), max_size=len(X))))
    learning = Learning(initial_fraction=fraction, max_epochs=4)
    fast = compete(X, learning.candidates(len(X)), learning, np.random.default_rng(seed), mass=mass)
    slow = naive.compete(X, learning.candidates(len(X)), learning, np.random.default_rng(seed), mass)
    np.testing.assert_array_equal(fast.labels, naive.labels_of(slow, len(X)))
    expected = naive.objective(X.tolist(), slow, (mass / mass.mean()).tolist())
    np.testing.assert_allclose(fast.objective, expected, rtol=1e-9)


@settings(max_examples=200, deadline=None)
@given(X=rows(), fraction=fractions, seed=seeds, data=st.data())
def test_in_one_epoch_masses_may_be_of_any_magnitude(
    X: FloatArray, fraction: float, seed: int, data: st.DataObject
) -> None:
    mass = np.array(data.draw(st.lists(st.sampled_from([1e-9, 1e-3, 1.0, 1e4]), min_size=len(X), max_size=len(X))))
    learning = Learning(initial_fraction=fraction, max_epochs=1)
    fast = compete(X, learning.candidates(len(X)), learning, np.random.default_rng(seed), mass=mass)
    slow = naive.compete(X, learning.candidates(len(X)), learning, np.random.default_rng(seed), mass)
    np.testing.assert_array_equal(fast.labels, naive.labels_of(slow, len(X)))


ROUNDING = np.tile([[0.345584192064786, 0.8216181435011584], [0.33043707618338714, -1.303157231604361]], (2, 1))


@settings(max_examples=300, deadline=None)
@given(case=partitioned_rows())
@example(case=(ROUNDING, np.array([0, 0, 1, 1])))  # inside and outside are the same but for rounding
def test_importance_equals_its_naive_twin(case: tuple[FloatArray, IntArray]) -> None:
    X, labels = case
    importance, centroids = feature_importance(X, np.ones(len(X)), labels, np.bincount(labels))
    for j in range(labels.max() + 1):
        centroid, expected = naive.feature_importance(
            X.tolist(), set(np.flatnonzero(labels == j).tolist()), [1.0] * len(X)
        )
        np.testing.assert_allclose(importance[j], expected, atol=1e-9)
        np.testing.assert_allclose(centroids[j], centroid, rtol=1e-12, atol=1e-12)


def test_more_candidates_than_fit_into_one_tile() -> None:
    X = np.random.default_rng(0).normal(size=(1300, 2))
    fast = compete(X, 650, Learning(max_epochs=2), np.random.default_rng(1))
    slow = naive.compete(X, 650, Learning(max_epochs=2), np.random.default_rng(1))
    np.testing.assert_array_equal(fast.labels, naive.labels_of(slow, len(X)))


@settings(max_examples=100, deadline=None)
@given(X=rows(), rate=learning_rates, fraction=fractions, seed=seeds)
def test_levels_are_those_of_the_naive_twin(X: FloatArray, rate: float, fraction: float, seed: int) -> None:
    learning = Learning(rate, fraction, max_epochs=10)
    fast = find_levels(X, learning, np.random.default_rng(seed))
    slow = naive.find_levels(X, learning, np.random.default_rng(seed))
    np.testing.assert_array_equal(fast.labels, np.array(slow).T)


@st.composite
def levels(draw: st.DrawFn) -> Levels:
    n_rows, n_levels = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = [
        np.unique(rng.integers(6 - level, size=n_rows), return_inverse=True)[1].astype(np.int64)
        for level in range(n_levels)
    ]
    return Levels(np.column_stack(columns), tuple(int(column.max()) + 1 for column in columns))


@settings(max_examples=300, deadline=None)
@given(levels=levels(), seed=seeds, data=st.data())
def test_fusion_gives_the_labels_of_its_naive_twin(levels: Levels, seed: int, data: st.DataObject) -> None:
    n_clusters = data.draw(st.integers(1, len(np.unique(levels.labels, axis=0))))
    fast = fuse_levels(levels, n_clusters, np.random.default_rng(seed))
    modes = draw_modes(levels.labels, n_clusters, np.random.default_rng(seed)).tolist()
    slow = naive.fuse_levels(levels.labels.tolist(), modes, max_rounds=30)
    np.testing.assert_array_equal(fast, np.unique(slow, return_inverse=True)[1])


def test_ties_in_fusion_do_not_hang_on_the_order_of_sums() -> None:
    levels = Levels(np.array([[0, 0], [1, 3], [3, 0], [0, 2], [3, 2], [2, 1]]), (4, 4))
    fast = fuse_levels(levels, 3, np.random.default_rng(2984))
    modes = draw_modes(levels.labels, 3, np.random.default_rng(2984)).tolist()
    slow = naive.fuse_levels(levels.labels.tolist(), modes, max_rounds=30)
    np.testing.assert_array_equal(fast, np.unique(slow, return_inverse=True)[1])


@settings(max_examples=100, deadline=None)
@given(levels=levels(), data=st.data())
def test_level_weights_equal_their_naive_twin(levels: Levels, data: st.DataObject) -> None:
    codes = levels.labels
    raw = data.draw(st.lists(st.integers(0, 3), min_size=len(codes), max_size=len(codes)))
    labels = np.unique(raw, return_inverse=True)[1]
    counts = [
        np.array([[np.sum((labels == j) & (level == value)) for value in range(level.max() + 1)] for j in set(labels)])
        for level in codes.T
    ]
    weights = level_weights([count.astype(float) for count in counts], np.bincount(labels))
    for j in range(labels.max() + 1):
        expected = naive.level_weights(codes[labels == j].tolist(), codes[labels != j].tolist())
        np.testing.assert_allclose(weights[j], expected, atol=1e-12)


@pytest.mark.parametrize("raw_weight", [-1e6, -50.0, -1.0, 0.0, 0.5, 1.0, 50.0, 1e6])
def test_log_weight_is_finite_everywhere_and_that_of_the_naive_twin(raw_weight: float) -> None:
    assert np.isfinite(_kernels.log_weight(raw_weight))
    assert _kernels.log_weight(raw_weight) == naive.log_weight(raw_weight)


def test_weighted_distance_equals_its_naive_twin() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 4))
    _, clusters = start(X, np.ones(len(X)), 60, rng)
    clusters.importance[:] = rng.dirichlet(np.ones(4), size=60)
    for j in range(60):
        cluster = naive.Cluster(clusters.centroid[j].tolist(), clusters.importance[j].tolist())
        assert _kernels.weighted_distance(X[0], clusters, j) == naive.weighted_distance(X[0].tolist(), cluster)
