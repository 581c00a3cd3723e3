"""Both estimators are scikit-learn's clusterers; what the default gives hangs on rows, sites and seed, not on units."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import goldfc
from goldfc import GOLD, Model, OneShotClustering, Site
from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadRows, BadSettings
from goldfc.learning.paper.competition import Learning, compete
from goldfc.learning.paper.fusion import fuse_levels
from goldfc.learning.paper.granularity import find_levels
from goldfc.message import model as model_module
from goldfc.message.levels import with_fewest
from goldfc.message.model import RULES, Rule
from goldfc.message.task import Task, rows_each
from goldfc.randomness import generator, site_generator
from sentences import refused
from strategies import same_partition

Either = OneShotClustering | GOLD


@parametrize_with_checks(
    [OneShotClustering(), OneShotClustering(3, random_state=0), GOLD(), GOLD(2, random_state=0)]
)  # no failure is expected
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_contract(estimator: Either, check: Callable[[Either], None]) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def blobs() -> FloatArray:
    X, _ = make_blobs(400, n_features=3, centers=4, cluster_std=0.6, random_state=3)
    return np.asarray(X)


@pytest.fixture(scope="module")
def wards(blobs: FloatArray) -> IntArray:
    return np.random.default_rng(0).integers(5, size=len(blobs))


def fitted(X: Any, groups: Any = None, n_clusters: int | None = None, **settings: Any) -> OneShotClustering:
    return OneShotClustering(n_clusters, **{"random_state": 0, **settings}).fit(X, groups=groups)


def right(truth: IntArray, model: Either) -> float:
    return float(adjusted_rand_score(truth, model.labels_))


# --- laws: units, shifts and the order of anything ---


def separate(seed: int) -> FloatArray:
    return np.asarray(make_blobs(300, n_features=4, centers=4, random_state=seed)[0])


def overlapping(seed: int) -> FloatArray:
    return np.asarray(make_blobs(300, n_features=3, centers=5, cluster_std=3.0, random_state=seed)[0])


def of_own_forms(seed: int) -> FloatArray:
    """Three long clusters, each in a direction of its own."""
    rng = np.random.default_rng(seed)
    angle = np.pi / 3.0 * (np.arange(600) % 3)
    along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    return np.asarray(
        (rng.normal(scale=3.0, size=600) * along + rng.normal(scale=0.3, size=600) * across + 3.0 * across).T
    )


def moons(seed: int) -> FloatArray:
    return np.asarray(make_moons(400, noise=0.05, random_state=seed)[0])


def with_tails(seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    return rng.standard_t(3, size=(300, 3)) + 6.0 * rng.integers(2, size=(300, 1))


CHANGES: dict[str, Callable[[FloatArray, np.random.Generator], FloatArray]] = {
    "times 1000": lambda X, _: 1000.0 * X,
    "shifted": lambda X, rng: X + 100.0 * rng.normal(size=X.shape[1]),
    "features permuted": lambda X, rng: X[:, rng.permutation(X.shape[1])],
    "each feature in another unit": lambda X, rng: X * 10.0 ** rng.integers(-5, 5, size=X.shape[1]),
}


@pytest.mark.parametrize(
    ("make", "n_clusters"),
    [(separate, None), (overlapping, None), (overlapping, 5), (of_own_forms, 3), (moons, None), (with_tails, 4)],
)
def test_units_shifts_and_the_order_of_features_change_no_label(
    make: Callable[[int], FloatArray], n_clusters: int | None
) -> None:
    X, rng = make(1), np.random.default_rng(1)
    sites = rng.integers(3, size=len(X))
    usual = fitted(X, sites, n_clusters)
    for name, change in CHANGES.items():
        other = fitted(change(X, rng), sites, n_clusters)
        np.testing.assert_array_equal(other.labels_, usual.labels_, err_msg=name)
        np.testing.assert_allclose(other.certainty_, usual.certainty_, atol=1e-3, err_msg=name)
        assert other.kind_ == usual.kind_


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32), n_features=st.integers(1, 6), n_sites=st.integers(1, 4))
def test_units_change_no_label_of_any_rows_in_general_position(seed: int, n_features: int, n_sites: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, n_features)) + 4.0 * rng.normal(size=(3, n_features))[rng.integers(3, size=100)]
    sites = rng.integers(n_sites, size=100)
    usual = fitted(X, sites, 3)
    for name, change in CHANGES.items():
        np.testing.assert_array_equal(fitted(change(X, rng), sites, 3).labels_, usual.labels_, err_msg=name)


def assert_same_fit(one: Either, other: Either) -> None:
    for name in ("labels_", "certainty_", "cluster_centers_", "micro_centroids_", "micro_labels_", "micro_certainty_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.levels_.labels, other.levels_.labels)
    np.testing.assert_array_equal(one.model_.covariance, other.model_.covariance)
    np.testing.assert_array_equal(one.model_.reach, other.model_.reach)
    assert one.model_.proposal == other.model_.proposal


EVERY_WAY = [OneShotClustering(4, random_state=7), OneShotClustering(random_state=7), GOLD(4, random_state=7)]
every_way = pytest.mark.parametrize("way", EVERY_WAY, ids=["default", "proposed", "GOLD"])
both = pytest.mark.parametrize("way", EVERY_WAY[::2], ids=["default", "GOLD"])


@every_way
def test_same_seed_same_result(way: Either, blobs: FloatArray, wards: IntArray) -> None:
    first, second = (clone(way).fit(blobs, groups=wards) for _ in range(2))
    assert_same_fit(first, second)


@every_way
def test_number_of_jobs_changes_nothing(way: Either, blobs: FloatArray, wards: IntArray) -> None:
    alone, together = (clone(way).set_params(n_jobs=n_jobs).fit(blobs, groups=wards) for n_jobs in (1, 4))
    assert_same_fit(alone, together)


@every_way
def test_order_of_sites_changes_nothing(way: Either, blobs: FloatArray, wards: IntArray) -> None:
    order = np.concatenate([np.flatnonzero(wards == ward) for ward in (3, 0, 4, 1, 2)])
    straight, shuffled = (clone(way).fit(blobs[rows], groups=wards[rows]) for rows in (np.arange(400), order))
    np.testing.assert_array_equal(straight.labels_[order], shuffled.labels_)
    np.testing.assert_array_equal(straight.certainty_[order], shuffled.certainty_)
    assert straight.model_.proposal == shuffled.model_.proposal


@pytest.mark.parametrize("n_clusters", [4, None])
def test_order_of_rows_changes_the_names_of_separate_clusters_at_most(
    blobs: FloatArray, wards: IntArray, n_clusters: int | None
) -> None:
    order = np.random.default_rng(1).permutation(400)
    straight, shuffled = fitted(blobs, wards, n_clusters), fitted(blobs[order], wards[order], n_clusters)
    assert same_partition(straight.labels_[order], shuffled.labels_)


def global_random_state() -> str:
    return repr(np.random.get_state())  # noqa: NPY002 (the legacy state is what must not change)


@both
def test_inputs_and_global_random_state_are_untouched(way: Either, blobs: FloatArray, wards: IntArray) -> None:
    rows, held_by = blobs.copy(), wards.copy()
    before = global_random_state()
    for random_state in (0, None, np.random.default_rng(0), np.random.RandomState(0)):
        clone(way).set_params(random_state=random_state).fit(rows, groups=held_by)
    assert global_random_state() == before
    np.testing.assert_array_equal(rows, blobs)
    np.testing.assert_array_equal(held_by, wards)


@both
def test_truth_is_ignored(way: Either, blobs: FloatArray, wards: IntArray) -> None:
    truth = np.random.default_rng(1).integers(3, size=len(blobs))
    with_truth, without = clone(way).fit(blobs, truth, groups=wards), clone(way).fit(blobs, groups=wards)
    np.testing.assert_array_equal(with_truth.labels_, without.labels_)


@both
def test_other_parallel_backends_give_the_same(way: Either, blobs: FloatArray, wards: IntArray) -> None:
    usual = clone(way).fit(blobs, groups=wards).labels_
    with joblib.parallel_config(backend="loky"):
        np.testing.assert_array_equal(clone(way).set_params(n_jobs=2).fit(blobs, groups=wards).labels_, usual)


# --- labels of rows ---


KINDS_OF_ROWS: dict[str, tuple[FloatArray, int]] = {
    "shared": (overlapping(0), 5),
    "own": (of_own_forms(0), 3),
    "linked": (moons(0), 2),
}


@pytest.mark.parametrize("kind", KINDS_OF_ROWS)
def test_a_rows_label_is_the_same_by_fit_and_by_predict_and_the_likeliest_one(kind: str) -> None:
    X, n_clusters = KINDS_OF_ROWS[kind]
    model = fitted(X, np.arange(len(X)) % 3, n_clusters)
    assert model.kind_ == kind
    probability = model.predict_proba(X)
    assert probability.shape == (len(X), model.n_clusters_)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, probability.argmax(axis=1))
    np.testing.assert_allclose(model.certainty_, probability.max(axis=1))
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert ((probability >= 0.0) & (probability <= 1.0)).all()


@pytest.mark.parametrize("make", [separate, moons])
def test_the_nearest_cluster_of_separate_ones_is_the_likeliest(make: Callable[[int], FloatArray]) -> None:
    X = make(0)
    model = fitted(X, np.arange(len(X)) % 3)
    distance = model.transform(X)
    assert distance.shape == (len(X), model.n_clusters_)
    assert (distance >= 0.0).all()
    np.testing.assert_array_equal(distance.argmin(axis=1), model.labels_)
    np.testing.assert_array_equal(clone(model).fit_transform(X, groups=np.arange(len(X)) % 3), distance)


def test_distances_have_names() -> None:
    model = fitted(separate(0), n_clusters=3)
    names = ["oneshotclustering0", "oneshotclustering1", "oneshotclustering2"]
    assert model.get_feature_names_out().tolist() == names
    assert model.set_output(transform="pandas").transform(separate(0)).columns.tolist() == names


def test_rows_of_three_kinds_at_a_small_site_have_labels_of_three_kinds() -> None:
    X, truth = make_blobs(612, n_features=3, centers=[[0, 0, 0], [8, 0, 0], [0, 8, 0]], random_state=0)
    sites = np.repeat(["large", "small"], [600, 12])
    model = fitted(X, sites, 3)
    small = sites == "small"
    assert sorted(np.bincount(truth[small], minlength=3)) != [0, 0, 12]
    assert same_partition(model.labels_[small], truth[small])
    assert model.micro_sites_.count("small") < 3


def test_certainty_is_low_where_clusters_overlap_and_about_as_high_as_labels_are_right() -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(800) % 2
    X = rng.normal(size=(800, 2)) + 2.5 * truth[:, None] * np.array([1.0, 0.0])
    model = fitted(X, np.arange(800) % 4, 2)
    between = np.abs(X[:, 0] - 1.25) < 0.2
    assert model.certainty_[between].mean() < model.certainty_[~between].mean() - 0.15
    hit = (model.labels_ == truth).mean()
    assert max(hit, 1.0 - hit) == pytest.approx(model.certainty_.mean(), abs=0.15)


def test_rows_like_nothing_that_was_sent_are_far(blobs: FloatArray, wards: IntArray) -> None:
    model = fitted(blobs, wards, 4)
    assert model.is_far(blobs).mean() < 0.01
    assert model.is_far(blobs + 100.0).all()


def test_predict_wants_the_same_columns(blobs: FloatArray) -> None:
    with pytest.raises(ValueError, match="X has 2 features, but OneShotClustering is expecting 3"):
        fitted(blobs, n_clusters=4).predict(blobs[:, :2])


# --- what is fitted ---


def test_fitted_parts_fit_together(blobs: FloatArray, wards: IntArray) -> None:
    model = fitted(blobs, wards, 4)
    n_micro = len(model.micro_centroids_)
    assert model.labels_.shape == model.certainty_.shape == (len(blobs),)
    assert model.n_clusters_ == len(model.cluster_centers_) == 4
    assert model.micro_labels_.shape == model.micro_certainty_.shape == (n_micro,)
    assert len(model.micro_sites_) == n_micro
    assert set(model.micro_sites_) == {"0", "1", "2", "3", "4"}
    assert model.levels_.labels.shape == (n_micro, len(model.levels_))
    for cluster, center in enumerate(model.cluster_centers_):
        np.testing.assert_allclose(center, blobs[model.labels_ == cluster].mean(axis=0))
    assert model.proposal_ is None
    assert model.kind_ in ("shared", "own")
    assert len(model.why_.split()) > 5


def test_a_number_of_clusters_is_proposed_unless_it_is_given(blobs: FloatArray, wards: IntArray) -> None:
    model = fitted(blobs, wards)
    assert model.proposal_ is not None
    assert model.n_clusters_ == model.proposal_.best == 4


@both
def test_one_message_up_and_two_down_for_every_site(way: Either, blobs: FloatArray, wards: IntArray) -> None:
    traffic = clone(way).fit(blobs, groups=wards).traffic_
    assert traffic.uplinks == 5
    assert traffic.downlinks == 10
    assert 0 < traffic.bytes_up < blobs.nbytes


def test_data_frames_keep_their_names() -> None:
    frame = load_iris(as_frame=True).data
    for way in (OneShotClustering(2, random_state=1), GOLD(2, random_state=1)):
        model = way.fit(frame, groups=pd.Series(["a", "b", "c"] * 50))
        assert model.feature_names_in_.tolist() == frame.columns.tolist()
        assert len(model.predict(frame)) == 150
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(frame[frame.columns[::-1]])


def test_repr_says_that_nobody_named_the_sites(blobs: FloatArray, wards: IntArray) -> None:
    for way in (OneShotClustering(4, random_state=0), GOLD(4, random_state=0)):
        before = repr(way)
        assert "#" not in before
        assert repr(way.fit(blobs)) == f"{before}  # one site held all rows: no groups were given"
        assert repr(way.fit(blobs, groups=wards)) == before


# --- data of every kind ---


@pytest.mark.parametrize("known", [True, False])
def test_two_moons(known: bool) -> None:
    X, truth = make_moons(1000, noise=0.06, random_state=0)
    model = fitted(X, np.arange(1000) % 4, 2 if known else None)
    assert model.kind_ == "linked"
    assert "gaps" in model.why_
    assert right(truth, model) > 0.95


@pytest.mark.parametrize("known", [True, False])
def test_fifty_blobs_in_two_features(known: bool) -> None:
    truth = np.arange(5000) % 50
    grid = 8.0 * np.array([(across, down) for across in range(8) for down in range(7)])
    X = grid[truth] + np.random.default_rng(1).normal(size=(5000, 2))
    assert right(truth, fitted(X, np.arange(5000) % 4, 50 if known else None)) > 0.9


@pytest.mark.parametrize(("n_rows", "n_features"), [(1500, 768), (300, 4096)])
def test_many_features(n_rows: int, n_features: int) -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(n_rows) % 5
    X = rng.normal(size=(n_rows, n_features)) + 0.3 * rng.normal(size=(5, n_features))[truth]
    assert right(truth, fitted(X, np.arange(n_rows) % 3, 5)) > 0.9


@pytest.mark.parametrize("known", [True, False])
def test_a_single_feature(known: bool) -> None:
    truth = np.arange(300) % 3
    X = np.random.default_rng(0).normal(size=(300, 1)) + 8.0 * truth[:, None]
    assert right(truth, fitted(X, np.arange(300) % 3, 3 if known else None)) > 0.95


@pytest.mark.parametrize("known", [True, False])
def test_ten_rows(known: bool) -> None:
    truth = np.arange(10) % 2
    X = np.random.default_rng(0).normal(size=(10, 2)) + 20.0 * truth[:, None]
    assert right(truth, fitted(X, n_clusters=2 if known else None)) == 1.0


def test_grams_beside_metres() -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(600) % 3
    X = (rng.normal(size=(600, 3)) + 6.0 * np.eye(3)[truth]) * [1e9, 1e-9, 1.0] + [1e12, 0.0, 5.0]
    assert right(truth, fitted(X, np.arange(600) % 3, 3)) > 0.95


@pytest.mark.parametrize("value", [0.0, 0.1, -7e8])
def test_constant_columns_change_nothing(blobs: FloatArray, wards: IntArray, value: float) -> None:
    with_constants = np.column_stack([np.full(400, value), blobs, np.full(400, value)])
    for n_clusters in (4, None):
        usual, other = fitted(blobs, wards, n_clusters), fitted(with_constants, wards, n_clusters)
        np.testing.assert_array_equal(other.labels_, usual.labels_)


def test_values_whose_squares_are_too_small_to_be_told_are_as_good_as_zero(blobs: FloatArray, wards: IntArray) -> None:
    assert same_partition(fitted(1e-90 * blobs, wards, 4).labels_, fitted(blobs, wards, 4).labels_)
    assert fitted(1e-200 * blobs, wards).n_clusters_ == 1


def test_a_column_that_is_constant_at_every_site_but_differs_between_them_counts() -> None:
    rng = np.random.default_rng(0)
    sites = np.arange(300) % 2
    X = np.column_stack([rng.normal(size=300), 5.0 * sites])
    assert same_partition(fitted(X, sites, 2).labels_, sites)


def test_scaling_as_given_leaves_columns_as_they_count() -> None:
    rng = np.random.default_rng(0)
    loud, quiet = np.arange(600) % 2, np.arange(600) // 2 % 2
    X = np.column_stack([100.0 * loud + rng.normal(size=600), 8.0 * quiet + 0.5 * rng.normal(size=600)])
    sites = np.arange(600) // 4 % 3
    assert right(loud, fitted(X, sites, 2, scaling="given")) == 1.0
    assert right(loud, fitted(X, sites, 4, scaling="given")) < 1.0
    assert right(2 * loud + quiet, fitted(X, sites, 4)) == 1.0


@pytest.mark.parametrize("make", [separate, moons])
def test_given_scales_may_be_multiplied_all_together(make: Callable[[int], FloatArray]) -> None:
    X = make(0)
    sites = np.arange(len(X)) % 3
    one, other = (fitted(rows, sites, 3, scaling="given") for rows in (X, 1000.0 * X))
    np.testing.assert_array_equal(one.labels_, other.labels_)


@pytest.mark.parametrize("withhold", [("mass",), ("shape",), ("mass", "shape")])
def test_what_is_withheld_does_not_cross_and_separate_clusters_are_found_without(
    blobs: FloatArray, wards: IntArray, withhold: tuple[str, ...]
) -> None:
    whole, less = fitted(blobs, wards, 4), fitted(blobs, wards, 4, withhold=withhold)
    sizes = {"mass": 8 * len(whole.micro_centroids_), "shape": 5 * 3 * 3 * 8}
    assert whole.traffic_.bytes_up - less.traffic_.bytes_up == sum(sizes[part] for part in withhold)
    assert same_partition(whole.labels_, less.labels_)


def test_no_micro_cluster_has_fewer_rows_than_the_smallest(blobs: FloatArray, wards: IntArray) -> None:
    model = fitted(blobs, wards, 4, smallest=5)
    masses = rows_per_micro_cluster(model, blobs, wards)
    assert len(masses) == len(model.micro_centroids_) > 20
    assert min(masses) >= 5
    assert same_partition(model.labels_, fitted(blobs, wards, 4).labels_)
    with refused(BadRows, "people-too-few", "at least 10"):
        fitted(blobs[:9], smallest=5)


def rows_per_micro_cluster(model: OneShotClustering, X: FloatArray, wards: IntArray) -> list[int]:
    """By what the sites themselves know: their rows, learned once more with the same seed."""
    sizes = []
    for ward in np.unique(wards):
        site = Site(str(ward), X[wards == ward])
        site.answer(Task(level=with_fewest(model.smallest), rows_each=rows_each(model.smallest)).to_message())
        sizes += np.bincount(site.micro_clusters).tolist()
    return sizes


def test_many_sites_take_seconds() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=10_000)
    X = rng.normal(size=(10_000, 5)) + 8.0 * rng.normal(size=(4, 5))[truth]
    begin = time.process_time()
    model = fitted(X, np.repeat(np.arange(500), 20), 4)
    assert time.process_time() - begin < 10.0  # one or two where nobody else computes
    assert right(truth, model) > 0.99
    assert model.traffic_.uplinks == 500


def test_a_model_is_read_once_however_many_sites_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Model] = []

    noted = Rule("it is noted", "noted", lambda model: not read.append(model))  # type: ignore[func-returns-value]
    monkeypatch.setattr(model_module, "RULES", (noted, *RULES))
    fitted(np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 20, 2)
    assert len(read) == 1


# --- answers instead of errors ---


@pytest.mark.parametrize("n_clusters", [5, 40])
def test_more_clusters_than_different_rows_is_a_warning_and_an_answer(n_clusters: int) -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 2)), 30, axis=0)
    with pytest.warns(ConvergenceWarning, match=f"Only 4 clusters were found, and {n_clusters} were asked for"):
        model = fitted(X, np.arange(120) % 3, n_clusters)
    assert model.n_clusters_ == 4
    assert same_partition(model.labels_, np.arange(120) // 30)


def test_rows_that_are_all_the_same_are_one_cluster() -> None:
    with pytest.warns(ConvergenceWarning, match="Only 1 cluster was found, and 3 were asked for"):
        assert fitted(np.full((30, 2), 7.0), n_clusters=3).n_clusters_ == 1
    assert fitted(np.full((30, 2), 7.0)).n_clusters_ == 1
    assert fitted(np.ones((1, 2))).labels_.tolist() == [0]


def test_twelve_rows_of_three_kinds_at_one_site_have_an_answer() -> None:
    truth = np.arange(12) % 3
    X = np.random.default_rng(0).normal(size=(12, 2)) + 20.0 * np.eye(3, 2)[truth]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a site with so few rows has few micro-clusters
        model = fitted(X, n_clusters=3)
    assert 2 <= model.n_clusters_ <= 3
    assert len(np.unique(np.column_stack([truth, model.labels_]), axis=0)) == 3


def test_more_clusters_than_gold_can_tell_apart_is_a_warning_and_an_answer(blobs: FloatArray, wards: IntArray) -> None:
    for rows, sites, n_clusters in ((blobs, wards, 300), (blobs[:5], None, 8)):
        with pytest.warns(ConvergenceWarning, match=f"found, and {n_clusters} were asked for"):
            model = GOLD(n_clusters, random_state=7).fit(rows, groups=sites)
        assert 1 <= model.n_clusters_ < n_clusters
        assert set(model.labels_) <= set(range(model.n_clusters_))


@both
def test_sites_in_the_place_of_y_are_a_warning(way: Either, blobs: FloatArray, wards: IntArray) -> None:
    for sites in (wards.astype(str), wards.astype(str).tolist(), pd.Series(wards.astype(str)), wards.astype(object)):
        with pytest.warns(UserWarning, match=r"pass it by its name: fit\(X, groups=sites\)"):
            clone(way).fit(blobs, sites)
    clone(way).fit(blobs, wards)  # numbers may well be the truth
    clone(way).fit(blobs, wards.astype(str), groups=wards)


# --- categories ---


def mixed_table() -> tuple[pd.DataFrame, IntArray]:
    """Two numbers, a category, yes or no, and a text, all of which tell three clusters apart, more or less."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=400)

    def level_of(count: int) -> IntArray:
        return np.where(rng.random(400) < 0.8, truth % count, rng.integers(count, size=400))

    frame = pd.DataFrame(
        {
            "weight": 1000.0 * (rng.normal(size=400) + 2.0 * truth),
            "ward": pd.Categorical.from_codes(level_of(3), ["east", "north", "west"]),
            "smokes": level_of(2) == 1,
            "height": 0.01 * (rng.normal(size=400) - 2.0 * truth),
            "group": pd.Series(np.array(["A", "B", "AB"], dtype=object)[level_of(3)], dtype=object),
        }
    )
    return frame, truth


SITES = np.arange(400) % 3


def test_categories_are_the_same_by_dtype_by_name_by_number_and_as_an_array() -> None:
    frame, truth = mixed_table()
    by_dtype = fitted(frame, SITES, 3)
    assert right(truth, by_dtype) > 0.8
    codes = frame.assign(
        ward=frame["ward"].cat.codes,
        smokes=frame["smokes"].astype(int),
        group=frame["group"].map({"A": 0, "AB": 1, "B": 2}),
    )
    same = {
        "by name": fitted(frame, SITES, 3, categorical=["ward", "smokes", "group"]),
        "by number": fitted(frame, SITES, 3, categorical=[4, 1, 2]),
        "an array of objects": fitted(frame.to_numpy(dtype=object), SITES, 3, categorical=(1, 2, 4)),
        "codes": fitted(codes, SITES, 3, categorical=["ward", "smokes", "group"]),
        "an array of codes": fitted(codes.to_numpy(dtype=float), SITES, 3, categorical={1, 2, 4}),
        "texts": fitted(frame.astype({"ward": str, "group": "string", "smokes": "boolean"}), SITES, 3),
    }
    for name, other in same.items():
        np.testing.assert_array_equal(other.labels_, by_dtype.labels_, err_msg=name)
        np.testing.assert_array_equal(other.certainty_, by_dtype.certainty_, err_msg=name)
    # One feature for every level, and for yes or no a single one.
    assert by_dtype.cluster_centers_.shape == (3, 1 + 3 + 1 + 1 + 3)
    assert by_dtype.n_features_in_ == 5
    np.testing.assert_allclose(by_dtype.cluster_centers_[:, 1:4].sum(axis=1), 1.0)


def test_categories_as_numbers_would_be_another_thing() -> None:
    frame, _ = mixed_table()
    numbers = frame.assign(ward=frame["ward"].cat.codes, smokes=frame["smokes"].astype(int)).drop(columns="group")
    assert fitted(numbers, SITES, 3).cluster_centers_.shape == (3, 4)


def test_rows_with_categories_have_the_same_label_by_fit_and_by_predict() -> None:
    frame, _ = mixed_table()
    model = fitted(frame, SITES, 3)
    np.testing.assert_array_equal(model.labels_, model.predict(frame))
    np.testing.assert_array_equal(model.labels_, model.predict_proba(frame).argmax(axis=1))
    assert model.transform(frame).shape == (400, 3)
    few = frame[frame["ward"] == "west"][:7]
    np.testing.assert_array_equal(model.predict(few), model.labels_[few.index])
    assert model.feature_names_in_.tolist() == frame.columns.tolist()


def test_units_and_the_order_of_columns_change_no_label_of_a_mixed_table() -> None:
    frame, _ = mixed_table()
    usual = fitted(frame, SITES, 3).labels_
    np.testing.assert_array_equal(fitted(frame.assign(weight=0.001 * frame["weight"] + 5.0), SITES, 3).labels_, usual)
    turned = frame[["smokes", "height", "group", "weight", "ward"]]
    np.testing.assert_array_equal(fitted(turned, SITES, 3).labels_, usual)


def test_categories_alone_make_clusters_and_their_number_is_proposed() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=600)
    X = np.where(rng.random((600, 6)) < 0.85, truth[:, None], rng.integers(3, size=(600, 6)))
    for n_clusters in (3, None):
        model = fitted(X, np.arange(600) % 3, n_clusters, categorical=range(6))
        assert model.n_clusters_ == 3
        assert right(truth, model) > 0.9


def test_a_new_level_is_refused_with_a_sentence() -> None:
    frame, _ = mixed_table()
    model = fitted(frame, SITES, 3)
    with refused(BadRows, "category-unknown", "Column 4 holds 'O'", "the 3 categories"):
        model.predict(frame.assign(group="O"))
    with refused(BadRows, "category-unknown", "Column 1 holds nan", "the 3 categories"):
        model.predict(frame.assign(ward=np.nan))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("dtype", ["object", "category", "string"])
def test_a_missing_category_is_refused_with_a_sentence(missing: object, dtype: str) -> None:
    frame, _ = mixed_table()
    values = frame["group"].tolist()
    values[17] = missing
    column = pd.Series(np.array(values, dtype=object), dtype=object).astype(dtype)
    with refused(BadRows, "missing-values", "Column 4"):
        fitted(frame.assign(group=column), SITES, 3)


def test_a_missing_yes_or_no_is_refused_with_a_sentence() -> None:
    frame, _ = mixed_table()
    smokes = frame["smokes"].astype("boolean")
    smokes[3] = pd.NA
    with refused(BadRows, "missing-values", "Column 2"):
        fitted(frame.assign(smokes=smokes), SITES, 3)


@pytest.mark.parametrize(
    ("categorical", "code"),
    [
        ("group", "categorical-form got 'group'"),
        (["colour"], "column-name-unknown 'colour'"),
        ([5], "column-number-unknown names column 5, and X has 5"),
        ([-1], "column-number-unknown names column -1, and X has 5"),
        ([False, True, True, False, True], "categorical-names holds False"),
        ([1.5], "categorical-names holds 1.5"),
    ],
)
def test_columns_that_are_not_there_are_refused_with_a_sentence(categorical: Any, code: str) -> None:
    with refused(BadSettings, code):
        fitted(mixed_table()[0], SITES, 3, categorical=categorical)


def test_a_column_of_names_is_no_category() -> None:
    X = np.array([[str(number), 1.0] for number in range(1001)], dtype=object)
    with refused(BadRows, "too-many-categories", "Column 0 has 1001", "1000"):
        fitted(X, n_clusters=2, categorical=[0])


def test_a_table_of_one_dimension_is_refused_as_scikit_learn_does() -> None:
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        fitted(np.arange(9.0), categorical=[0])


def test_too_many_features_beside_categories_are_refused_with_a_sentence() -> None:
    X = np.column_stack([np.arange(30) % 3, np.zeros((30, 4100))])
    with refused(BadRows, "too-many-features", "4103", "4096"):
        fitted(X, categorical=[0])


# --- GOLD is the paper's ---


# What GOLD gave for the blobs with seed 7 when it was the only method here.
MICRO_CLUSTERS_AND_LEVELS = 93, (14, 7, 6)
SIZES = [100, 100, 149, 51]
CENTERS = [
    [-7.4638037, -5.8138472, -9.0500974],
    [-1.2164740, -9.4423631, -1.0566714],
    [0.4896603, 6.4191630, 3.7064862],
    [1.0197098, 4.5325442, -3.7729296],
]


def test_gold_is_fcpl_mcpl_and_remc_one_after_the_other(blobs: FloatArray, wards: IntArray) -> None:
    model = GOLD(4, random_state=7).fit(blobs, groups=wards)
    learning = Learning()
    outcomes = {}
    for ward in ("0", "1", "2", "3", "4"):
        own = np.ascontiguousarray(blobs[wards == int(ward)])
        outcomes[ward] = compete(own, learning.candidates(len(own)), learning, site_generator(7, ward))
    centroids = np.vstack([outcome.centroids for outcome in outcomes.values()])
    rng = generator(7, "server")
    levels = find_levels(centroids, learning, rng)
    micro_labels = fuse_levels(levels, 4, rng)
    np.testing.assert_array_equal(model.micro_centroids_, centroids)
    np.testing.assert_array_equal(model.levels_.labels, levels.labels)
    np.testing.assert_array_equal(model.micro_labels_, micro_labels)
    start = 0
    for ward, outcome in outcomes.items():
        own_labels = micro_labels[start : start + outcome.n_clusters][outcome.labels]
        np.testing.assert_array_equal(model.labels_[wards == int(ward)], own_labels)
        start += outcome.n_clusters
    means = [centroids[micro_labels == cluster].mean(axis=0) for cluster in range(micro_labels.max() + 1)]
    np.testing.assert_allclose(model.cluster_centers_, means, rtol=1e-12)


def test_gold_gives_what_it_gave_when_it_was_the_only_method(blobs: FloatArray, wards: IntArray) -> None:
    model = GOLD(4, random_state=7).fit(blobs, groups=wards)
    assert (len(model.micro_centroids_), model.levels_.n_clusters) == MICRO_CLUSTERS_AND_LEVELS
    assert np.bincount(model.labels_).tolist() == SIZES
    np.testing.assert_allclose(model.cluster_centers_, CENTERS, atol=1e-6)


def test_golds_certainty_is_that_of_the_micro_cluster(blobs: FloatArray, wards: IntArray) -> None:
    model = GOLD(3, random_state=7).fit(blobs, groups=wards)
    assert model.certainty_.shape == (len(blobs),)
    assert ((model.certainty_ >= 0.0) & (model.certainty_ <= 1.0)).all()
    assert set(model.certainty_) == set(model.micro_certainty_)


def test_gold_predicts_the_plainly_nearest_center(blobs: FloatArray, wards: IntArray) -> None:
    model = GOLD(4, random_state=7).fit(blobs * [1.0, 9.0, 1.0], groups=wards)
    rows = np.random.default_rng(0).uniform(-90.0, 90.0, (500, 3))
    distances = ((rows[:, None, :] - model.cluster_centers_) ** 2).sum(axis=2)
    np.testing.assert_array_equal(model.predict(rows), distances.argmin(axis=1))


def test_golds_settings_reach_the_sites_and_the_server(blobs: FloatArray, wards: IntArray) -> None:
    usual = GOLD(2, random_state=7).fit(blobs, groups=wards)
    for setting in ({"learning_rate": 0.5}, {"initial_fraction": 0.9}, {"max_epochs": 1}):
        other = GOLD(2, random_state=7, **setting).fit(blobs, groups=wards)
        assert other.micro_centroids_.shape != usual.micro_centroids_.shape, setting
        assert other.levels_.n_clusters != usual.levels_.n_clusters, setting


def test_gold_learns_in_blocks_only_if_asked_to(blobs: FloatArray) -> None:
    whole, blocks = (GOLD(2, random_state=0, most_at_once=most).fit(blobs) for most in (None, 100))
    assert whole.micro_centroids_.shape != blocks.micro_centroids_.shape
    np.testing.assert_array_equal(whole.labels_, GOLD(2, random_state=0, most_at_once=400).fit(blobs).labels_)


def test_numpys_numbers_are_settings_too(blobs: FloatArray, wards: IntArray) -> None:
    usual = GOLD(2, random_state=7, max_epochs=10).fit(blobs, groups=wards)
    numpys = GOLD(np.int64(2), random_state=np.int64(7), max_epochs=np.int64(10), learning_rate=np.float64(0.05))  # type: ignore[arg-type]
    np.testing.assert_array_equal(numpys.fit(blobs, groups=wards).labels_, usual.labels_)
    default = OneShotClustering(np.int64(4), smallest=np.int64(2), random_state=np.int64(0))  # type: ignore[arg-type]
    np.testing.assert_array_equal(default.fit(blobs, groups=wards).labels_, fitted(blobs, wards, 4, smallest=2).labels_)


# --- refusals ---


@pytest.mark.parametrize(
    ("way", "settings", "code"),
    [
        (
            OneShotClustering,
            {"n_clusters": 0},
            "n-clusters or None to have it proposed, got 0",
        ),
        (OneShotClustering, {"n_clusters": 2.5}, "n-clusters or None to have it proposed, got 2.5"),
        (
            OneShotClustering,
            {"withhold": "mass"},
            "withhold got 'mass'",
        ),
        (OneShotClustering, {"withhold": None}, "withhold got None"),
        (OneShotClustering, {"withhold": ("rows",)}, "withhold got ('rows',)"),
        (OneShotClustering, {"scaling": "ranges"}, "scaling got 'ranges'"),
        (OneShotClustering, {"smallest": 0}, "whole-number got 0"),
        (OneShotClustering, {"smallest": 2.5}, "whole-number got 2.5"),
        (OneShotClustering, {"random_state": -1}, "random-state"),
        (GOLD, {"n_clusters": None}, "n-clusters OneShotClustering"),
        (GOLD, {"n_clusters": 0}, "n-clusters"),
        (GOLD, {"learning_rate": 0.0}, "learning-rate got 0.0"),
        (GOLD, {"learning_rate": float("inf")}, "learning-rate got inf"),
        (GOLD, {"max_epochs": 2.5}, "whole-number got 2.5"),
        (GOLD, {"initial_fraction": 1.5}, "initial-fraction"),
        (GOLD, {"max_epochs": 0}, "whole-number got 0"),
        (GOLD, {"random_state": "seven"}, "random-state"),
    ],
)
def test_bad_settings_are_refused_with_a_sentence(
    blobs: FloatArray, way: type[Either], settings: dict[str, Any], code: str
) -> None:
    with refused(BadSettings, code):
        way(**{"n_clusters": 2, **settings}).fit(blobs)


@both
def test_groups_must_name_a_site_for_every_row(way: Either, blobs: FloatArray) -> None:
    held_by = ["a"] * (len(blobs) - 1)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(way).fit(blobs, groups=held_by)
    for missing in (None, float("nan"), pd.NA):
        with refused(BadSettings, "groups-missing", "row 399"):
            clone(way).fit(blobs, groups=np.array([*held_by, missing], dtype=object))
    with refused(BadSettings, "groups-form", "(400, 1)"):
        clone(way).fit(blobs, groups=np.zeros((400, 1)))
    with refused(BadSettings, "groups-alike"):
        clone(way).fit(blobs, groups=np.array([1, "1"] * 200, dtype=object))


def test_public_names_are_documented_and_there() -> None:
    assert goldfc.__all__ == sorted(goldfc.__all__, key=lambda name: (not name.isupper(), name.islower(), name))
    for name in goldfc.__all__:
        assert getattr(goldfc, name).__doc__, name
