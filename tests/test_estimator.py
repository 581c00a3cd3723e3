"""GOLD is a scikit-learn clusterer, and its result hangs on nothing but rows, clients and seed."""

from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

import goldfc
from goldfc import GOLD
from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadSettings, TooFewMicroClusters

# These fit a few rows at a single client. The paper's learner then leaves so few micro-clusters that its levels cannot
# tell as many apart as the check asks for, and GOLD says so (docs/method.md) instead of inventing clusters.
TOO_FEW_ROWS = "its few rows at one client end in TooFewMicroClusters, as documented"
EXPECTED_FAILURES = {
    "check_n_features_in_after_fitting": TOO_FEW_ROWS,
    "check_clustering": TOO_FEW_ROWS,
}


@parametrize_with_checks([GOLD(n_clusters=2, random_state=0)], expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_scikit_learn_contract(estimator: GOLD, check: Callable[[GOLD], None]) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def blobs() -> FloatArray:
    X, _ = make_blobs(400, n_features=3, centers=4, cluster_std=0.6, random_state=3)
    return np.asarray(X)


@pytest.fixture(scope="module")
def wards(blobs: FloatArray) -> IntArray:
    return np.random.default_rng(0).integers(5, size=len(blobs))


def test_same_seed_same_result(blobs: FloatArray, wards: IntArray) -> None:
    first = GOLD(4, random_state=7).fit(blobs, groups=wards)
    second = GOLD(4, random_state=7).fit(blobs, groups=wards)
    np.testing.assert_array_equal(first.labels_, second.labels_)
    np.testing.assert_array_equal(first.cluster_centers_, second.cluster_centers_)


def test_number_of_threads_changes_nothing(blobs: FloatArray, wards: IntArray) -> None:
    alone = GOLD(4, random_state=7, n_jobs=1).fit(blobs, groups=wards)
    together = GOLD(4, random_state=7, n_jobs=4).fit(blobs, groups=wards)
    np.testing.assert_array_equal(alone.labels_, together.labels_)
    np.testing.assert_array_equal(alone.micro_centroids_, together.micro_centroids_)


def test_order_of_clients_changes_nothing(blobs: FloatArray, wards: IntArray) -> None:
    order = np.concatenate([np.flatnonzero(wards == ward) for ward in (3, 0, 4, 1, 2)])
    straight = GOLD(4, random_state=7).fit_predict(blobs, groups=wards)
    shuffled = GOLD(4, random_state=7).fit_predict(blobs[order], groups=wards[order])
    np.testing.assert_array_equal(straight[order], shuffled)


def global_random_state() -> str:
    return repr(np.random.get_state())  # noqa: NPY002 (the legacy state is what must not change)


def test_inputs_and_global_random_state_are_untouched(blobs: FloatArray, wards: IntArray) -> None:
    rows, held_by = blobs.copy(), wards.copy()
    before = global_random_state()
    for random_state in (0, None, np.random.default_rng(0)):
        GOLD(2, random_state=random_state).fit(rows, groups=held_by)
    assert global_random_state() == before
    np.testing.assert_array_equal(rows, blobs)
    np.testing.assert_array_equal(held_by, wards)


def test_truth_is_ignored(blobs: FloatArray, wards: IntArray) -> None:
    truth = np.random.default_rng(1).integers(3, size=len(blobs))
    with_truth = GOLD(4, random_state=7).fit(blobs, truth, groups=wards)
    without = GOLD(4, random_state=7).fit(blobs, groups=wards)
    np.testing.assert_array_equal(with_truth.labels_, without.labels_)


def test_fitted_parts_fit_together(blobs: FloatArray, wards: IntArray) -> None:
    model = GOLD(4, random_state=7).fit(blobs, groups=wards)
    n_micro = len(model.micro_centroids_)
    assert model.labels_.shape == (len(blobs),)
    assert len(model.cluster_centers_) <= 4
    assert model.micro_labels_.shape == (n_micro,)
    assert len(model.micro_clients_) == n_micro
    assert set(model.micro_clients_) == {"0", "1", "2", "3", "4"}
    assert model.levels_.labels.shape == (n_micro, len(model.levels_))
    assert set(model.labels_) == set(model.micro_labels_) == set(range(len(model.cluster_centers_)))
    for cluster, center in enumerate(model.cluster_centers_):
        np.testing.assert_allclose(center, model.micro_centroids_[model.micro_labels_ == cluster].mean(axis=0))


def test_predict_gives_the_nearest_center(blobs: FloatArray, wards: IntArray) -> None:
    model = GOLD(4, random_state=7).fit(blobs, groups=wards)
    distances = ((blobs[:, None, :] - model.cluster_centers_) ** 2).sum(axis=2)
    np.testing.assert_array_equal(model.predict(blobs), distances.argmin(axis=1))


def test_one_message_up_and_two_down_for_every_client(blobs: FloatArray, wards: IntArray) -> None:
    traffic = GOLD(4, random_state=7).fit(blobs, groups=wards).traffic_
    assert traffic.uplinks == 5
    assert traffic.downlinks == 10
    assert 0 < traffic.bytes_up < blobs.nbytes


def test_data_frames_keep_their_names() -> None:
    frame = load_iris(as_frame=True).data
    model = GOLD(2, random_state=1).fit(frame, groups=pd.Series(["a", "b", "c"] * 50))
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame[frame.columns]))


def test_too_many_clusters_is_a_named_error(blobs: FloatArray, wards: IntArray) -> None:
    with pytest.raises(TooFewMicroClusters, match=r"300 clusters were asked for.*ask for at most"):
        GOLD(300, random_state=7).fit(blobs, groups=wards)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number from 1 on, got 0"),
        ({"n_clusters": 2.5}, "n_clusters must be a whole number from 1 on, got 2.5"),
        ({"n_clusters": None}, "n_clusters must be a whole number from 1 on, got None"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0, got 0.0"),
        ({"learning_rate": float("inf")}, "learning_rate must be a number above 0, got inf"),
        ({"max_epochs": 2.5}, "max_epochs must be a whole number from 1 on, got 2.5"),
        ({"initial_fraction": 1.5}, r"initial_fraction must lie in \(0, 1\]"),
        ({"max_epochs": 0}, "max_epochs must be a whole number from 1 on, got 0"),
        ({"random_state": -1}, "random_state must be a whole number from 0 on"),
    ],
)
def test_bad_settings_are_refused_with_a_sentence(blobs: FloatArray, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadSettings, match=sentence):
        GOLD(**{"n_clusters": 2, **settings}).fit(blobs)


def test_settings_reach_the_clients_and_the_server(blobs: FloatArray, wards: IntArray) -> None:
    usual = GOLD(2, random_state=7).fit(blobs, groups=wards)
    for settings in ({"learning_rate": 0.5}, {"initial_fraction": 0.9}, {"max_epochs": 1}):
        other = GOLD(2, random_state=7, **settings).fit(blobs, groups=wards)
        assert other.micro_centroids_.shape != usual.micro_centroids_.shape, settings
        assert other.levels_.n_clusters != usual.levels_.n_clusters, settings


def test_numpys_numbers_are_settings_too(blobs: FloatArray, wards: IntArray) -> None:
    usual = GOLD(2, random_state=7, max_epochs=10).fit(blobs, groups=wards)
    numpys = GOLD(np.int64(2), random_state=np.int64(7), max_epochs=np.int64(10), learning_rate=np.float64(0.05))  # type: ignore[arg-type]
    np.testing.assert_array_equal(numpys.fit(blobs, groups=wards).labels_, usual.labels_)


def test_other_parallel_backends_give_the_same(blobs: FloatArray, wards: IntArray) -> None:
    usual = GOLD(4, random_state=7).fit_predict(blobs, groups=wards)
    with joblib.parallel_config(backend="loky"):
        np.testing.assert_array_equal(GOLD(4, random_state=7, n_jobs=2).fit_predict(blobs, groups=wards), usual)


def test_groups_must_name_a_client_for_every_row(blobs: FloatArray) -> None:
    held_by = ["a"] * (len(blobs) - 1)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GOLD(2).fit(blobs, groups=held_by)
    for missing in (None, float("nan"), pd.NA):
        with pytest.raises(BadSettings, match="row 399 has none"):
            GOLD(2).fit(blobs, groups=np.array([*held_by, missing], dtype=object))
    with pytest.raises(BadSettings, match=r"one dimension; its shape is \(400, 1\)"):
        GOLD(2).fit(blobs, groups=np.zeros((400, 1)))
    with pytest.raises(BadSettings, match="differ in kind only"):
        GOLD(2).fit(blobs, groups=np.array([1, "1"] * 200, dtype=object))


def test_public_names_are_documented_and_there() -> None:
    assert goldfc.__all__ == sorted(goldfc.__all__, key=lambda name: (not name.isupper(), name.islower(), name))
    for name in goldfc.__all__:
        assert getattr(goldfc, name).__doc__, name
