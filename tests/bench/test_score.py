import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldfc._types import IntArray
from goldfc_bench.score import (
    acc,
    ari,
    calinski_harabasz,
    external_scores,
    internal_scores,
    log_calinski_harabasz,
    nmi,
    purity,
    silhouette,
)

TRUTH = np.array([0, 0, 0, 1, 1, 2, 2, 2])
ROWS = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [9.0], [9.1], [9.2]])


@st.composite
def truth_and_labels(draw: st.DrawFn) -> tuple[IntArray, IntArray]:
    n = draw(st.integers(1, 12))
    numbers = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    return np.array(draw(numbers)), np.array(draw(numbers))


@pytest.mark.parametrize("names", list(permutations(range(3))))
def test_the_truth_under_any_names_is_perfect(names: tuple[int, ...]) -> None:
    scores = external_scores(TRUTH, np.array(names)[TRUTH])
    assert list(scores) == ["Purity", "ARI", "NMI", "ACC"]
    assert list(scores.values()) == pytest.approx([1.0] * 4)


@given(truth_and_labels())
def test_purity_counts_the_most_frequent_class_of_every_cluster(pair: tuple[IntArray, IntArray]) -> None:
    truth, labels = pair
    right = sum(max(np.sum(truth[labels == cluster] == label) for label in range(4)) for cluster in set(labels))
    assert purity(truth, labels) == pytest.approx(right / len(truth))


@given(truth_and_labels())
def test_acc_is_the_best_of_all_matchings(pair: tuple[IntArray, IntArray]) -> None:
    truth, labels = pair
    best = max(np.mean(np.array(names)[labels] == truth) for names in permutations(range(4)))
    assert acc(truth, labels) == pytest.approx(best)


@given(truth_and_labels())
def test_acc_is_never_above_purity(pair: tuple[IntArray, IntArray]) -> None:
    assert acc(*pair) <= purity(*pair) + 1e-12


def test_more_clusters_than_classes_cannot_all_be_right() -> None:
    assert acc(np.zeros(4, dtype=np.int64), np.arange(4)) == 0.25
    assert purity(np.zeros(4, dtype=np.int64), np.arange(4)) == 1.0


def test_one_cluster_for_all_is_no_better_than_chance() -> None:
    labels = np.zeros_like(TRUTH)
    assert ari(TRUTH, labels) == 0.0
    assert nmi(TRUTH, labels) == pytest.approx(0.0)
    assert purity(TRUTH, labels) == acc(TRUTH, labels) == 3 / 8


def test_random_labels_have_an_ari_near_zero() -> None:
    rng = np.random.default_rng(0)
    assert abs(ari(rng.integers(0, 5, 5000), rng.integers(0, 5, 5000))) < 0.01


def test_tight_clusters_have_a_high_silhouette_and_mixed_ones_a_low_one() -> None:
    assert silhouette(ROWS, TRUTH) > 0.9
    assert silhouette(ROWS, np.arange(8) % 3) < 0.0


def test_calinski_harabasz_is_between_over_within() -> None:
    clusters = [ROWS[:3], ROWS[3:5], ROWS[5:]]
    within = sum(((rows - rows.mean()) ** 2).sum() for rows in clusters)
    total = ((ROWS - ROWS.mean()) ** 2).sum()
    assert calinski_harabasz(ROWS, TRUTH) == pytest.approx((total - within) / 2 / (within / 5))


def test_ch_is_printed_as_its_natural_logarithm() -> None:
    scores = internal_scores(ROWS, TRUTH)
    assert list(scores) == ["SC", "CH"]
    assert scores["CH"] == pytest.approx(math.log(calinski_harabasz(ROWS, TRUTH)))


@pytest.mark.parametrize("labels", [np.zeros(8, dtype=np.int64), np.arange(8)])
def test_internal_scores_are_undefined_for_one_cluster_and_for_one_per_row(labels: IntArray) -> None:
    assert all(math.isnan(score) for score in internal_scores(ROWS, labels).values())


def test_clusters_around_the_same_centroid_have_no_finite_logarithm() -> None:
    assert log_calinski_harabasz(np.array([[-1.0], [1.0], [-1.0], [1.0]]), np.array([0, 0, 1, 1])) == -math.inf
