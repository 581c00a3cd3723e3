"""Mixtures of micro-clusters: what EM promises, what units must not change, and what must not break it."""

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture

import naive
from goldfc._types import FloatArray, IntArray
from goldfc.learning.consensus import find_consensus
from goldfc.learning.mixture import (
    MOST_FEATURES_FOR_CORRELATIONS,
    RIDGE,
    MicroClusters,
    covariance_inside,
    covariance_of_all,
    fit_mixture,
    means_of,
    memberships_of,
    no_scatter,
    random_start,
    scatter_of,
    spread_around_means,
    standardized,
    whiten,
)
from goldfc.learning.proposal import propose
from strategies import blobs, micro_clusters, rows, seeds

trusts = st.floats(0.0, 1.0)


def partition_of(micro: MicroClusters, seed: int, most: int = 5) -> IntArray:
    raw = np.random.default_rng(seed).integers(most, size=len(micro.centroids))
    return np.unique(raw, return_inverse=True)[1].astype(np.int64)


def parameters(
    micro: MicroClusters, memberships: FloatArray, trust: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The M-step, as `fit_mixture` makes it."""
    mass = memberships.T @ micro.mass
    means = memberships.T @ (micro.centroids * micro.mass[:, None]) / np.maximum(mass, 1e-300)[:, None]
    return means, mass, covariance_inside(micro, means, mass, trust)


def climb(micro: MicroClusters, start: IntArray, trust: float) -> Iterator[float]:
    """EM's log-likelihood of a row, less what the ridge takes: that is what the ridged covariance maximises."""
    memberships = np.eye(start.max() + 1)[start]
    for _ in range(20):
        means, mass, covariance = parameters(micro, memberships, trust)
        memberships, log_likelihood = memberships_of(micro, means, mass, covariance)
        precision = np.linalg.inv(covariance if covariance.ndim == 2 else np.diag(covariance))
        yield log_likelihood - 0.5 * RIDGE * np.trace(precision)


# --- EM --------------------------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(micro=micro_clusters(), seed=seeds, trust=st.sampled_from([0.0, 1.0]), diagonal=st.booleans())
def test_em_never_lowers_the_log_likelihood_less_what_the_ridge_takes(
    micro: MicroClusters, seed: int, trust: float, diagonal: bool
) -> None:
    if diagonal:
        micro = replace(micro, scatter=np.diagonal(micro.scatter))
    unit = standardized(micro)[0]
    values = np.array(list(climb(unit, partition_of(micro, seed), trust)))
    assert (np.diff(values) >= -1e-9).all()


@settings(max_examples=80, deadline=None)
@given(micro=micro_clusters(), seed=seeds, trust=trusts)
def test_memberships_sum_to_one_and_labels_have_no_gaps(micro: MicroClusters, seed: int, trust: float) -> None:
    mixture = fit_mixture(standardized(micro)[0], partition_of(micro, seed), trust)
    assert np.isfinite(mixture.log_likelihood)
    assert (mixture.memberships >= 0.0).all()
    np.testing.assert_allclose(mixture.memberships.sum(axis=1), 1.0)
    assert sorted(set(mixture.labels)) == list(range(mixture.labels.max() + 1))


@settings(max_examples=80, deadline=None)
@given(micro=micro_clusters(max_rows=12), seed=seeds, trust=trusts, diagonal=st.booleans())
def test_memberships_and_log_likelihood_equal_their_naive_twin(
    micro: MicroClusters, seed: int, trust: float, diagonal: bool
) -> None:
    if diagonal:
        micro = replace(micro, scatter=np.diagonal(micro.scatter))
    unit = standardized(micro)[0]
    means, mass, covariance = parameters(unit, np.eye(5)[partition_of(micro, seed)], trust)
    means = means + np.random.default_rng(seed).normal(scale=0.1, size=means.shape)
    memberships, log_likelihood = memberships_of(unit, means, mass, covariance)
    expected, expected_log_likelihood = naive.memberships_of(unit, means, mass, covariance)
    np.testing.assert_allclose(memberships, expected, atol=1e-8)
    assert log_likelihood == pytest.approx(expected_log_likelihood, rel=1e-8, abs=1e-8)


def test_rows_themselves_have_the_log_likelihood_of_scikit_learns_tied_mixture() -> None:
    X, truth = blobs(3, 90, 3, seed=0)
    unit = standardized(MicroClusters(X / 4.0, np.ones(90), np.zeros((3, 3))))[0]
    means, mass, covariance = parameters(unit, np.eye(3)[truth], trust=1.0)
    memberships, log_likelihood = memberships_of(unit, means, mass, covariance)
    theirs = GaussianMixture(3, covariance_type="tied")
    theirs.weights_, theirs.means_, theirs.covariances_ = mass / 90, means, covariance
    theirs.precisions_cholesky_ = np.linalg.cholesky(np.linalg.inv(covariance))
    # Ours leaves out the constant of the Gaussian.
    assert log_likelihood == pytest.approx(theirs.score(unit.centroids) + 1.5 * np.log(2.0 * np.pi))
    np.testing.assert_allclose(memberships, theirs.predict_proba(unit.centroids), atol=1e-12)


def test_without_a_ridge_em_steps_as_scikit_learns_tied_mixture_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goldfc.learning.mixture.RIDGE", 0.0)
    X = np.random.default_rng(1).normal(size=(80, 2)) + 1.5 * np.eye(2)[np.arange(80) % 2]
    unit = standardized(MicroClusters(X, np.ones(80), np.zeros((2, 2))))[0]
    means, mass, covariance = parameters(unit, np.eye(2)[np.arange(80) % 2], trust=1.0)
    memberships, _ = memberships_of(unit, means, mass, covariance)
    theirs = GaussianMixture(
        2, covariance_type="tied", reg_covar=0.0, max_iter=1, weights_init=mass / 80, means_init=means,
        precisions_init=np.linalg.inv(covariance),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one step is not enough for it, and it says so
        theirs.fit(unit.centroids)
    after, mass, covariance = parameters(unit, memberships, trust=1.0)
    np.testing.assert_allclose(after, theirs.means_)
    np.testing.assert_allclose(mass / 80, theirs.weights_)
    np.testing.assert_allclose(covariance, theirs.covariances_)


@settings(max_examples=50, deadline=None)
@given(micro=micro_clusters(max_rows=15), seed=seeds, trust=trusts)
def test_weighted_equals_repeated(micro: MicroClusters, seed: int, trust: float) -> None:
    repeats = micro.mass.astype(np.int64)
    repeated = MicroClusters(np.repeat(micro.centroids, repeats, axis=0), np.ones(repeats.sum()), micro.scatter)
    start = partition_of(micro, seed)
    one = fit_mixture(standardized(micro)[0], start, trust)
    other = fit_mixture(standardized(repeated)[0], np.repeat(start, repeats), trust)
    assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(np.repeat(one.memberships, repeats, axis=0), other.memberships, atol=1e-5)


@settings(max_examples=100, deadline=None)
@given(micro=micro_clusters(), seed=seeds)
def test_the_diagonal_form_is_the_full_one_with_no_trust_in_correlations(micro: MicroClusters, seed: int) -> None:
    start = partition_of(micro, seed)
    diagonal = replace(micro, scatter=np.diagonal(micro.scatter).copy())
    full = fit_mixture(standardized(micro)[0], start, trust=0.0)
    short = fit_mixture(standardized(diagonal)[0], start)
    assert short.log_likelihood == pytest.approx(full.log_likelihood, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(short.memberships, full.memberships, atol=1e-6)
    np.testing.assert_allclose(
        spread_around_means(diagonal, start), np.diagonal(spread_around_means(micro, start)), rtol=1e-9
    )
    assert covariance_of_all(standardized(diagonal)[0]).shape == micro.centroids.shape[1:]


@pytest.mark.parametrize("trust", [0.0, 0.5, 1.0])
def test_em_stays_where_separate_clusters_are(trust: float) -> None:
    X, truth = blobs(4, 80, 3, seed=0)
    unit = standardized(MicroClusters(X, np.ones(80), np.zeros((3, 3))))[0]
    mixture = fit_mixture(unit, truth, trust)
    np.testing.assert_array_equal(mixture.labels, truth)
    assert mixture.memberships.max(axis=1).min() > 0.999


# --- covariance ------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(X=rows(), seed=seeds)
def test_micro_clusters_tell_the_covariance_of_the_rows_around_their_clusters(X: FloatArray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    own = np.unique(rng.integers(8, size=len(X)), return_inverse=True)[1]
    centroids = means_of(X, own, np.ones(len(X)))
    mass = np.bincount(own).astype(float)
    micro = MicroClusters(centroids, mass, scatter_of(X, centroids, own))
    labels = np.unique(rng.integers(3, size=len(mass)), return_inverse=True)[1].astype(np.int64)
    of_rows = spread_around_means(MicroClusters(X, np.ones(len(X)), np.zeros((X.shape[1],) * 2)), labels[own])
    scale = np.sqrt(np.diagonal(of_rows))
    np.testing.assert_allclose(
        spread_around_means(micro, labels) / np.outer(scale, scale), of_rows / np.outer(scale, scale), atol=1e-6
    )


def test_the_covariance_around_means_is_that_of_the_rows_and_a_hundredth_of_all_variance() -> None:
    X, truth = blobs(3, 600, 2, seed=1)
    inside = X - means_of(X, truth, np.ones(600))[truth]
    expected = inside.T @ inside / 600 + RIDGE * np.diag(X.var(axis=0))
    micro = MicroClusters(X, np.ones(600), np.zeros((2, 2)))
    np.testing.assert_allclose(spread_around_means(micro, truth), expected, rtol=1e-9)


@settings(max_examples=100, deadline=None)
@given(micro=micro_clusters(), diagonal=st.booleans())
def test_standardised_rows_have_mean_0_and_variance_1_or_0(micro: MicroClusters, diagonal: bool) -> None:
    if diagonal:
        micro = replace(micro, scatter=np.diagonal(micro.scatter))
    unit, scale = standardized(micro)
    assert (scale > 0.0).all()
    np.testing.assert_allclose(unit.mass @ unit.centroids / unit.total_mass, 0.0, atol=1e-9)
    variance = (unit.all_scatter if diagonal else np.diagonal(unit.all_scatter)) / unit.total_mass
    assert (np.isclose(variance, 1.0) | (variance <= 1e-9)).all()


def test_whitened_points_are_as_far_apart_as_the_covariance_means() -> None:
    rng = np.random.default_rng(0)
    points, directions = rng.normal(size=(6, 3)), rng.normal(size=(3, 3))
    covariance = directions @ directions.T + 0.1 * np.eye(3)
    for form, matrix in ((covariance, covariance), (np.diagonal(covariance), np.diag(np.diagonal(covariance)))):
        difference = points[0] - points[1]
        white = whiten(points, form)
        expected = difference @ np.linalg.inv(matrix) @ difference
        assert ((white[0] - white[1]) ** 2).sum() == pytest.approx(expected)


def test_many_features_send_variances_alone() -> None:
    for n_features in (MOST_FEATURES_FOR_CORRELATIONS, MOST_FEATURES_FOR_CORRELATIONS + 1):
        X = np.random.default_rng(0).normal(size=(20, n_features))
        labels = np.arange(20) % 4
        shape = scatter_of(X, means_of(X, labels, np.ones(20)), labels)
        full = n_features == MOST_FEATURES_FOR_CORRELATIONS
        assert shape.shape == no_scatter(n_features).shape == ((n_features, n_features) if full else (n_features,))
    few = scatter_of(X[:, :200], means_of(X[:, :200], labels, np.ones(20)), labels)
    np.testing.assert_allclose(shape[:200], np.diagonal(few))


# --- starts ----------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(micro=micro_clusters(), seed=seeds, trust=trusts)
def test_a_random_start_has_no_more_clusters_than_asked_for_and_hangs_on_the_seed_alone(
    micro: MicroClusters, seed: int, trust: float
) -> None:
    unit = standardized(micro)[0]
    n_clusters = min(4, micro.distinct)
    one, other = (random_start(unit, n_clusters, trust, np.random.default_rng(seed)) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert one.min() >= 0
    assert one.max() < n_clusters


# --- units and degenerate features -----------------------------------------------------------------------------------


def overlapping(seed: int) -> MicroClusters:
    X, _ = blobs(4, 80, 3, seed)
    noise = np.random.default_rng(seed).normal(scale=1.5, size=X.shape)
    mass = np.random.default_rng(seed).integers(1, 30, size=80).astype(float)
    return MicroClusters(X + noise, mass, 50.0 * (np.eye(3) + 0.5))


def in_other_units(micro: MicroClusters, scale: FloatArray, shift: FloatArray) -> MicroClusters:
    return MicroClusters(micro.centroids * scale + shift, micro.mass, micro.scatter * np.outer(scale, scale))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("scale", "shift"),
    [([1e6, 1.0, 1.0], [0.0] * 3), ([1.0, 1e-6, 1.0], [0.0] * 3), ([1.0] * 3, [0.0, 0.0, 1e6]), ([1e6] * 3, [1e6] * 3)],
)
def test_units_and_origins_of_features_change_no_label(scale: list[float], shift: list[float], seed: int) -> None:
    micro = overlapping(seed)
    moved = in_other_units(micro, np.array(scale), np.array(shift))
    usual = find_consensus(micro, 4, np.random.default_rng(seed), starts=4)
    other = find_consensus(moved, 4, np.random.default_rng(seed), starts=4)
    np.testing.assert_array_equal(other.labels, usual.labels)
    np.testing.assert_allclose(other.certainty, usual.certainty, atol=1e-5)
    assert propose(moved).best == propose(micro).best


def test_a_feature_twice_as_often_is_still_one_cluster_structure() -> None:
    X, truth = blobs(3, 60, 2, seed=0)
    twice = np.column_stack([X, X])
    fused = find_consensus(MicroClusters(twice, np.ones(60), np.zeros((4, 4))), 3, np.random.default_rng(0), starts=3)
    assert len(np.unique(np.column_stack([truth, fused.labels]), axis=0)) == 3


def with_column(value: float, rounding: float = 0.0) -> FloatArray:
    column = value * (1.0 + np.arange(60) % 7 * rounding)
    X, _ = blobs(3, 60, 2, seed=0)
    return np.column_stack([X, column])


DEGENERATE = {
    "a constant column": with_column(0.1),
    "a large constant column": with_column(1.7e18),
    "a column constant up to rounding": with_column(0.1, 1e-16),
    "a large column constant up to rounding": with_column(1.7e18, 1e-16),
    "a huge column constant up to rounding": with_column(1e30, 1e-16),
    "duplicate centroids": np.repeat(blobs(3, 6, 2, seed=0)[0], 10, axis=0),
    "one feature": blobs(3, 60, 1, seed=0)[0],
    "two micro-clusters": np.array([[0.0, 1.0], [2.0, 3.0]]),
    "a single micro-cluster": np.array([[0.3, 0.4]]),
    "all micro-clusters equal": np.full((20, 3), 0.3),
    "all equal up to rounding": 1.0 + np.random.default_rng(0).normal(size=(20, 2)) * 1e-15,
    "tiny differences": 1.0 + np.random.default_rng(0).normal(size=(20, 2)) * 1e-14,
    "huge values": np.random.default_rng(0).normal(size=(20, 2)) * 1e99,
    "tiny values": np.random.default_rng(0).normal(size=(20, 2)) * 1e-99,
    "an outlier": np.vstack([blobs(3, 60, 2, seed=0)[0], [[1e12, 1e12]]]),
    "more features than micro-clusters": np.random.default_rng(0).normal(size=(6, 30)),
}


@pytest.mark.parametrize("diagonal", [False, True], ids=["full", "diagonal"])
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_features_give_numbers_and_no_warning(case: str, diagonal: bool) -> None:
    X = DEGENERATE[case]
    none = np.zeros(X.shape[1] if diagonal else (X.shape[1],) * 2)
    micro = MicroClusters(X, np.arange(1.0, len(X) + 1.0), none)
    n_clusters = min(3, micro.distinct)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fused = find_consensus(micro, n_clusters, np.random.default_rng(0), starts=4)
        spread = spread_around_means(micro, fused.labels)
        proposal = propose(micro)
    assert sorted(set(fused.labels)) == list(range(fused.labels.max() + 1))
    assert fused.labels.max() < n_clusters
    assert np.isfinite(fused.certainty).all()
    assert np.isfinite(spread).all()
    assert np.isfinite(proposal.evidence).all()


@pytest.mark.parametrize("case", [case for case in DEGENERATE if "column" in case])
def test_a_column_in_which_nothing_varies_changes_no_label(case: str) -> None:
    X = DEGENERATE[case]
    without = find_consensus(
        MicroClusters(X[:, :2], np.ones(60), np.zeros((2, 2))), 3, np.random.default_rng(0), starts=3
    )
    fused = find_consensus(MicroClusters(X, np.ones(60), np.zeros((3, 3))), 3, np.random.default_rng(0), starts=3)
    np.testing.assert_array_equal(fused.labels, without.labels)
