"""Mixtures of micro-clusters: what EM promises, what their slow twin gives, and what scikit-learn has for rows."""

import math
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
from goldfc.learning.micro_clusters import MicroClusters, diagonal_of, means_of, standardized
from goldfc.learning.mixture import (
    RIDGE,
    ROWS_BEFORE,
    Clusters,
    clusters_of,
    fit_mixture,
    inside,
    one_hot,
    own_covariances,
    random_start,
    shared_covariance,
    shares_and_sum,
    squared_distances,
    start_points,
    whiten,
)
from strategies import WITHOUT_TIES, blobs, micro_clusters, mixed, seeds

trusts = st.floats(0.0, 1.0)
forms = st.sampled_from(["shared", "diagonal", "own", "mixed", "mixed and own"])


def partition_of(micro: MicroClusters, seed: int, most: int = 5) -> IntArray:
    raw = np.random.default_rng(seed).integers(most, size=len(micro.centroids))
    return np.unique(raw, return_inverse=True)[1].astype(np.int64)


def in_form(micro: MicroClusters, form: str, seed: int) -> MicroClusters:
    """Standardised; with the diagonal of the scatter alone, or with categories beside the numbers."""
    if form == "diagonal":
        micro = replace(micro, scatter=diagonal_of(micro.scatter))
    return standardized(mixed(micro, seed) if "mixed" in form else micro)[0]


def em_step(
    micro: MicroClusters, memberships: FloatArray, *, own: bool = False, trust: float = 1.0
) -> tuple[FloatArray, float, Clusters]:
    """One step, as `fit_mixture` makes it."""
    clusters = clusters_of(micro, memberships, own=own, trust=trust)
    log_density = clusters.log_density(micro.centroids, micro.shares) - 0.5 * inside(clusters, micro)
    memberships, each = shares_and_sum(log_density)
    return memberships, float(micro.mass @ each) / micro.total_mass, clusters


# --- EM --------------------------------------------------------------------------------------------------------------


def climb(micro: MicroClusters, start: IntArray, trust: float) -> Iterator[float]:
    """EM's log-likelihood, less what the ridge takes and with the row that every cluster has before: what it climbs."""
    memberships = one_hot(start)
    for _ in range(20):
        memberships, log_likelihood, clusters = em_step(micro, memberships, trust=trust)
        covariance = clusters.covariance if clusters.covariance.ndim == 2 else np.diag(clusters.covariance)
        ridge = 0.5 * RIDGE * np.trace(np.linalg.inv(covariance))
        usual = np.maximum(micro.usual_shares, 1e-300)
        before = ROWS_BEFORE * float((usual * np.log(clusters.shares)).sum()) / micro.total_mass
        yield log_likelihood - ridge + before


@settings(max_examples=80, deadline=None)
@given(
    micro=micro_clusters(),
    seed=seeds,
    trust=st.sampled_from([0.0, 1.0]),
    form=st.sampled_from(["shared", "diagonal", "mixed"]),
)
def test_em_never_lowers_what_it_climbs(micro: MicroClusters, seed: int, trust: float, form: str) -> None:
    unit = in_form(micro, form, seed)
    values = np.array(list(climb(unit, partition_of(micro, seed), trust)))
    assert (np.diff(values) >= -1e-8).all()


@settings(max_examples=50, deadline=None)
@given(micro=micro_clusters(kinds=["in general position"]), seed=seeds)
def test_em_with_own_covariances_never_lowers_the_likelihood_if_nothing_holds_them(
    micro: MicroClusters, seed: int
) -> None:
    solid = replace(micro, scatter=micro.scatter + len(micro.mass) * np.eye(micro.centroids.shape[1]))
    unit, memberships = standardized(solid)[0], one_hot(partition_of(micro, seed))
    values = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("RIDGE", "HELD", "HELD_EACH"):
            patch.setattr(f"goldfc.learning.mixture.{name}", 0.0)
        for _ in range(20):
            memberships, log_likelihood, _ = em_step(unit, memberships, own=True)
            values.append(log_likelihood)
    assert (np.diff(values) >= -1e-8).all()


@settings(max_examples=80, deadline=None)
@given(micro=micro_clusters(), seed=seeds, trust=trusts, form=forms)
def test_memberships_sum_to_one_and_labels_have_no_gaps(
    micro: MicroClusters, seed: int, trust: float, form: str
) -> None:
    mixture = fit_mixture(in_form(micro, form, seed), partition_of(micro, seed), own="own" in form, trust=trust)
    assert np.isfinite(mixture.log_likelihood)
    assert (mixture.memberships >= 0.0).all()
    np.testing.assert_allclose(mixture.memberships.sum(axis=1), 1.0)
    assert sorted(set(mixture.labels)) == list(range(mixture.labels.max() + 1))


@settings(max_examples=60, deadline=None)
@given(micro=micro_clusters(max_rows=12), seed=seeds, trust=trusts, form=forms)
def test_a_step_is_that_of_the_naive_twin(micro: MicroClusters, seed: int, trust: float, form: str) -> None:
    unit = in_form(micro, form, seed)
    soft = np.random.default_rng(seed).dirichlet(np.ones(3), size=len(micro.mass))
    memberships, log_likelihood, _ = em_step(unit, soft, own="own" in form, trust=trust)
    expected, expected_log_likelihood = naive.em_step(
        unit, soft.tolist(), own="own" in form, trust=0.0 if form == "diagonal" else trust
    )
    np.testing.assert_allclose(memberships, expected, atol=1e-7)
    assert log_likelihood == pytest.approx(expected_log_likelihood, rel=1e-7, abs=1e-7)


@settings(max_examples=20, deadline=None)
@given(micro=micro_clusters(max_rows=12, kinds=WITHOUT_TIES), seed=seeds, trust=trusts, form=forms)
def test_the_whole_is_that_of_the_naive_twin(micro: MicroClusters, seed: int, trust: float, form: str) -> None:
    unit, start = in_form(micro, form, seed), partition_of(micro, seed, most=3)
    mixture = fit_mixture(unit, start, own="own" in form, trust=trust)
    memberships, log_likelihood = naive.fit_mixture(
        unit, start, own="own" in form, trust=0.0 if form == "diagonal" else trust
    )
    # Both rest when a step gains less than this: rounding may decide which step is the last.
    assert mixture.log_likelihood == pytest.approx(log_likelihood, abs=2e-4)
    np.testing.assert_allclose(mixture.memberships, memberships, atol=0.05)


@pytest.mark.parametrize("form", ["shared", "diagonal", "own", "mixed"])
def test_one_cluster_has_everything_and_the_covariance_of_all_rows(form: str) -> None:
    rng = np.random.default_rng(0)
    sent = MicroClusters(rng.normal(size=(30, 2)), rng.integers(1, 9, 30).astype(float), 20.0 * np.eye(2) + 5.0)
    unit = in_form(sent, form, seed=0)
    mixture = fit_mixture(unit, np.zeros(30, dtype=np.int64), own="own" in form)
    np.testing.assert_array_equal(mixture.memberships, 1.0)
    all_rows = unit.all_scatter / unit.total_mass
    ridge = RIDGE * (np.ones(2) if form == "diagonal" else np.eye(2))
    np.testing.assert_allclose(mixture.clusters.covariance.squeeze(), all_rows + ridge, atol=1e-12)
    np.testing.assert_allclose(mixture.clusters.shares, [unit.usual_shares])


@pytest.mark.parametrize("trust", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("own", [False, True])
def test_em_stays_where_separate_clusters_are(own: bool, trust: float) -> None:
    X, truth = blobs(4, 80, 3, seed=0)
    unit = standardized(MicroClusters(X, np.ones(80), np.zeros((3, 3))))[0]
    mixture = fit_mixture(unit, truth, own=own, trust=trust)
    np.testing.assert_array_equal(mixture.labels, truth)
    assert mixture.memberships.max(axis=1).min() > 0.999


# --- rows of mass one are rows ---------------------------------------------------------------------------------------


def overlapping_rows() -> tuple[MicroClusters, IntArray]:
    """Rows of two clusters of other forms, as micro-clusters of one row each."""
    truth = np.arange(80) % 2
    rng = np.random.default_rng(1)
    X = np.where(truth[:, None] == 0, rng.normal(size=(80, 2)), rng.normal(size=(80, 2)) @ [[0.4, 0.3], [0.0, 1.5]])
    return standardized(MicroClusters(X + 1.5 * np.eye(2)[truth], np.ones(80), np.zeros((2, 2))))[0], truth


@pytest.mark.parametrize("own", [False, True], ids=["tied", "full"])
def test_rows_themselves_have_the_log_likelihood_of_scikit_learns_mixture(own: bool) -> None:
    unit, truth = overlapping_rows()
    memberships, log_likelihood, clusters = em_step(unit, one_hot(truth), own=own)
    theirs = GaussianMixture(2, covariance_type="full" if own else "tied")
    theirs.weights_, theirs.means_, theirs.covariances_ = clusters.mass / 80, clusters.means, clusters.covariance
    theirs.precisions_cholesky_ = np.linalg.cholesky(np.linalg.inv(clusters.covariance))
    # Ours leaves out the constant of the Gaussian.
    assert log_likelihood == pytest.approx(theirs.score(unit.centroids) + np.log(2.0 * np.pi))
    np.testing.assert_allclose(memberships, theirs.predict_proba(unit.centroids), atol=1e-12)


@pytest.mark.parametrize("own", [False, True], ids=["tied", "full"])
def test_without_a_ridge_em_steps_as_scikit_learns_mixture_does(own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RIDGE", "HELD", "HELD_EACH"):
        monkeypatch.setattr(f"goldfc.learning.mixture.{name}", 0.0)
    unit, truth = overlapping_rows()
    memberships, _, clusters = em_step(unit, one_hot(truth), own=own)
    theirs = GaussianMixture(
        2, covariance_type="full" if own else "tied", reg_covar=0.0, max_iter=1, weights_init=clusters.mass / 80,
        means_init=clusters.means, precisions_init=np.linalg.inv(clusters.covariance),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one step is not enough for it, and it says so
        theirs.fit(unit.centroids)
    after = clusters_of(unit, memberships, own=own)
    np.testing.assert_allclose(after.means, theirs.means_)
    np.testing.assert_allclose(after.mass / 80, theirs.weights_)
    np.testing.assert_allclose(after.covariance, theirs.covariances_)


@settings(max_examples=50, deadline=None)
@given(
    micro=micro_clusters(max_rows=15), seed=seeds, trust=trusts, form=st.sampled_from(["shared", "diagonal", "mixed"])
)
def test_weighted_equals_repeated(micro: MicroClusters, seed: int, trust: float, form: str) -> None:
    one, start = in_form(micro, form, seed), partition_of(micro, seed)
    times = micro.mass.astype(np.int64)
    other = replace(
        one,
        centroids=one.centroids.repeat(times, axis=0),
        mass=np.ones(times.sum()),
        shares=one.shares.repeat(times, 0),
    )
    weighted, repeated = fit_mixture(one, start, trust=trust), fit_mixture(other, start.repeat(times), trust=trust)
    assert weighted.log_likelihood == pytest.approx(repeated.log_likelihood, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(weighted.memberships.repeat(times, axis=0), repeated.memberships, atol=1e-5)


def test_a_doubled_micro_cluster_is_one_of_twice_the_mass_also_with_own_covariances_if_nothing_holds_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What holds them counts in micro-clusters, of which there is one more.
    monkeypatch.setattr("goldfc.learning.mixture.HELD", 0.0)
    monkeypatch.setattr("goldfc.learning.mixture.HELD_EACH", 0.0)
    unit, truth = overlapping_rows()
    heavy = replace(unit, mass=np.where(np.arange(80) == 7, 2.0, 1.0))
    twice = np.append(np.arange(80), 7)
    doubled = replace(unit, centroids=unit.centroids[twice], mass=np.ones(81), shares=unit.shares[twice])
    one, other = fit_mixture(heavy, truth, own=True), fit_mixture(doubled, truth[twice], own=True)
    assert one.log_likelihood == pytest.approx(other.log_likelihood)
    np.testing.assert_allclose(one.memberships[twice], other.memberships, atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(micro=micro_clusters(), seed=seeds)
def test_the_diagonal_form_is_the_full_one_with_no_trust_in_correlations(micro: MicroClusters, seed: int) -> None:
    start = partition_of(micro, seed)
    full = fit_mixture(standardized(micro)[0], start, trust=0.0)
    short = fit_mixture(in_form(micro, "diagonal", seed), start)
    assert short.log_likelihood == pytest.approx(full.log_likelihood, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(short.memberships, full.memberships, atol=1e-6)


# --- covariance ------------------------------------------------------------------------------------------------------


def test_the_covariance_around_means_is_that_of_the_rows_and_a_hundredth_of_all_variance() -> None:
    X, truth = blobs(3, 600, 2, seed=1)
    unit, _ = standardized(MicroClusters(X, np.ones(600), np.zeros((2, 2))))
    means = means_of(unit.centroids, truth, unit.mass)
    apart = unit.centroids - means[truth]
    covariance = shared_covariance(unit, means, np.bincount(truth).astype(float))
    np.testing.assert_allclose(covariance, apart.T @ apart / 600 + RIDGE * np.eye(2), rtol=1e-9)


def test_own_covariances_of_many_micro_clusters_are_nearly_those_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(4000) % 2
    X = np.where(truth[:, None] == 0, rng.normal(size=(4000, 2)), rng.normal(size=(4000, 2)) @ [[0.2, 0.1], [0.0, 1.0]])
    unit = standardized(MicroClusters(X, np.ones(4000), np.zeros((2, 2))))[0]
    covariances = clusters_of(unit, one_hot(truth), own=True).covariance - RIDGE * np.eye(2)
    for cluster in range(2):
        np.testing.assert_allclose(covariances[cluster], np.cov(unit.centroids[truth == cluster].T), atol=0.01)


def test_a_single_micro_cluster_has_nearly_the_common_covariance() -> None:
    rng = np.random.default_rng(0)
    points = np.vstack([rng.normal(size=(50, 3)), [[9.0, 9.0, 9.0]]])
    unit = standardized(MicroClusters(points, np.ones(51), np.zeros((3, 3))))[0]
    weight = one_hot(np.repeat([0, 1], [50, 1]))
    covariances = own_covariances(unit, weight, means_of(unit.centroids, np.repeat([0, 1], [50, 1]), unit.mass))
    assert np.trace(covariances[1]) > 0.7 * np.trace(covariances[0])


@pytest.mark.parametrize("form", ["diagonal", "shared", "own"])
def test_squared_distances_undo_the_covariance_of_every_cluster(form: str) -> None:
    rng = np.random.default_rng(0)
    points, means, directions = rng.normal(size=(6, 3)), rng.normal(size=(2, 3)), rng.normal(size=(2, 3, 3))
    each = directions @ directions.swapaxes(1, 2) + 0.1 * np.eye(3)
    covariance = {"diagonal": np.diagonal(each[0]), "shared": each[0], "own": each}[form]
    squared, log_determinant = squared_distances(points, means, covariance)
    for cluster in range(2):
        matrix = {"diagonal": np.diag(np.diagonal(each[0])), "shared": each[0], "own": each[cluster]}[form]
        apart = points - means[cluster]
        np.testing.assert_allclose(squared[:, cluster], np.einsum("ni,ij,nj->n", apart, np.linalg.inv(matrix), apart))
        assert np.broadcast_to(log_determinant, 2)[cluster] == pytest.approx(np.linalg.slogdet(matrix)[1])
    if form != "own":
        white = whiten(np.vstack([points, means]), covariance)
        np.testing.assert_allclose(((white[0] - white[6]) ** 2).sum(), squared[0, 0])


# --- categories ------------------------------------------------------------------------------------------------------


def categories_only(shares: FloatArray, mass: FloatArray, levels: tuple[int, ...]) -> MicroClusters:
    return MicroClusters(np.zeros((len(mass), 1)), mass, np.zeros((1, 1)), shares, levels)


def test_the_shares_of_a_cluster_are_those_of_its_rows_and_one_more_that_is_like_all_rows() -> None:
    micro = categories_only(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]), np.array([2.0, 4.0, 3.0]), (2,))
    clusters = clusters_of(micro, one_hot(np.array([0, 0, 1])))
    usual = np.array([4.0, 5.0]) / 9.0
    np.testing.assert_allclose(
        clusters.shares, [(np.array([4.0, 2.0]) + usual) / 7.0, (np.array([0.0, 3.0]) + usual) / 4]
    )


def test_the_log_density_of_categories_by_hand() -> None:
    shares = np.array([[0.2, 0.8, 0.5, 0.25, 0.25], [0.9, 0.1, 0.1, 0.1, 0.8]])
    clusters = Clusters(np.array([1.0, 3.0]), np.zeros((2, 1)), np.eye(1), shares)
    row = np.array([[1.0, 0.0, 0.0, 0.0, 1.0]])  # the first of two levels, and the last of three
    expected = [math.log(0.25) + math.log(0.2) + math.log(0.25), math.log(0.75) + math.log(0.9) + math.log(0.8)]
    np.testing.assert_allclose(clusters.log_density(np.zeros((1, 1)), row), [expected])
    half = np.array([[0.5, 0.5, 0.0, 0.0, 1.0]])  # of a micro-cluster: the mean over its rows
    first = math.log(0.25) + 0.5 * (math.log(0.2) + math.log(0.8)) + math.log(0.25)
    assert clusters.log_density(np.zeros((1, 1)), half)[0, 0] == pytest.approx(first)


def test_categories_alone_make_clusters() -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    shares = np.hstack([0.1 + 0.8 * np.eye(3)[truth], 0.1 + 0.8 * np.eye(3)[truth]]) + rng.uniform(0.0, 0.05, (60, 6))
    shares = np.hstack([part / part.sum(axis=1, keepdims=True) for part in (shares[:, :3], shares[:, 3:])])
    micro = categories_only(shares, np.full(60, 10.0), (3, 3))
    mixture = fit_mixture(micro, random_start(start_points(micro), micro.mass, 3, rng))
    assert len(np.unique(np.column_stack([mixture.labels, truth]), axis=0)) == 3


def test_a_level_that_nobody_has_does_no_harm() -> None:
    micro = categories_only(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), np.ones(2), (3,))
    mixture = fit_mixture(micro, np.array([0, 1]))
    assert np.isfinite(mixture.log_likelihood)
    assert (mixture.clusters.shares > 0.0).all()


# --- starts ----------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(micro=micro_clusters(), seed=seeds, trust=trusts, form=forms)
def test_a_random_start_has_no_more_clusters_than_asked_for_and_hangs_on_the_seed_alone(
    micro: MicroClusters, seed: int, trust: float, form: str
) -> None:
    unit = in_form(micro, form, seed)
    n_clusters = min(4, unit.distinct)
    points = start_points(unit, trust)
    one, other = (random_start(points, unit.mass, n_clusters, np.random.default_rng(seed)) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert sorted(set(one)) == list(range(one.max() + 1))
    assert one.max() < n_clusters


def test_rare_levels_are_further_apart_than_common_ones_in_a_start() -> None:
    shares = np.repeat(np.eye(3), [1, 10, 10], axis=0)
    points = start_points(categories_only(shares, np.ones(21), (3,)))
    rare, common = np.linalg.norm(points[0] - points[1]), np.linalg.norm(points[1] - points[11])
    assert rare > 1.5 * common
