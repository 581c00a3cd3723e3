"""How many clusters: exact where they lie apart, honest where there are none, and a list that says why."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldfc import LocalPort, Model, OneShot, Site, run_round
from goldfc._types import FloatArray, IntArray
from goldfc.demo.split import simulate
from goldfc.learning.judge import judge
from goldfc.learning.linkage import spanning_tree
from goldfc.learning.micro_clusters import MicroClusters, standardized
from goldfc.learning.mixture import fit_mixture, one_hot
from goldfc.learning.proposal import (
    EVERY_ONE_UP_TO,
    MOST,
    NEARLY_ALL,
    OBSERVATIONS,
    OBSERVATIONS_OF_MORE,
    SHORT_LIST,
    Evidence,
    Fits,
    Proposal,
    best_of,
    climb,
    fit_with_sizes,
    gap_curve,
    peaks,
    short_list,
    weigh,
    worth_of_categories,
)
from goldfc.randomness import generator
from goldfc_bench.cases import split_of
from strategies import blobs, micro_clusters, mixed, same_partition, seeds


def micro_of(X: FloatArray, mass: float = 10.0) -> MicroClusters:
    n_rows, n_features = X.shape
    return standardized(MicroClusters(X, np.full(n_rows, mass), 0.1 * mass * n_rows * np.eye(n_features)))[0]


def propose(unit: MicroClusters) -> Proposal:
    proposal = judge(unit, None, np.random.default_rng(0), starts=1).proposal
    assert proposal is not None
    return proposal


# --- what is found ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_clusters", [2, 3, 4, 5, 7, 10, 12, 13, 16, 20, 25, 30])
def test_the_number_of_well_separated_clusters_is_found_exactly(n_clusters: int) -> None:
    assert propose(micro_of(blobs(n_clusters, 15 * n_clusters, 4, seed=n_clusters)[0])).best == n_clusters


def model_of(X: FloatArray, held: list[IntArray]) -> tuple[Model, IntArray]:
    """That of a whole round, and the labels of all rows, site after site."""
    sites = [Site(f"{number}", X[rows]) for number, rows in enumerate(held)]
    model = run_round(LocalPort(sites), None, OneShot(), generator(0, "server")).model
    return model, np.concatenate([site.labels for site in sites])


@pytest.mark.parametrize(("n_clusters", "n_features"), [(2, 2), (3, 3), (8, 4), (20, 4)])
def test_whole_rounds_of_simulated_sites_find_it_too(n_clusters: int, n_features: int) -> None:
    X, truth = blobs(n_clusters, 200 * n_clusters, n_features, seed=n_clusters)
    held = simulate(X, truth, 12, np.random.default_rng(0))
    model, labels = model_of(X, held)
    assert model.proposal is not None
    assert model.proposal.best == n_clusters == len(np.unique(truth[np.concatenate(held)]))
    assert same_partition(labels, truth[np.concatenate(held)])


@pytest.mark.parametrize(("n_clusters", "draw"), [(4, 1), (9, 2), (15, 2), (22, 1), (30, 2)])
def test_it_is_exact_on_separate_mixtures_as_benchmarked(n_clusters: int, draw: int) -> None:
    """Some of the 87 of `goldfc-bench unknown`."""
    split = split_of(f"separate-{n_clusters}-{draw}", f"non-icd-8-{draw}")
    model, _ = model_of(split.X, [np.flatnonzero(split.site == site) for site in np.unique(split.site)])
    assert model.proposal is not None
    assert model.proposal.best == len(model.centroids) == len(np.unique(split.y))


@pytest.mark.parametrize("stretch", [1.0, 30.0])
def test_correlated_and_stretched_clusters_are_counted_too(stretch: float) -> None:
    X, _ = blobs(4, 100, 3, seed=5)
    mixing = np.array([[stretch, 0.0, 0.0], [0.7, 1.0, 0.0], [0.4, -0.6, 1.0]])
    micro = standardized(MicroClusters(X @ mixing, np.full(100, 10.0), 100.0 * mixing.T @ mixing))[0]
    assert propose(micro).best == 4


@pytest.mark.parametrize("n_features", [1, 2, 5, 10])
def test_a_single_gaussian_has_nothing_to_find(n_features: int) -> None:
    for seed in range(2):
        curve = weigh(micro_of(np.random.default_rng(seed).normal(size=(100, n_features)))).curve
        assert curve[1] >= max(curve.values())
        assert [candidate.reason for candidate in short_list(curve)] == [
            "the best of two or more, but a single cluster fits as well: there may be nothing to find"
        ]


@pytest.mark.parametrize("n", [1, 2, 30])
def test_micro_clusters_that_are_all_the_same_are_one_cluster(n: int) -> None:
    proposal = propose(standardized(MicroClusters(np.full((n, 2), 0.3), np.ones(n), np.zeros((2, 2))))[0])
    assert proposal.n_clusters == (1,)
    assert proposal.best == 1
    assert [candidate.reason for candidate in proposal.candidates] == ["all micro-clusters are the same"]


# --- what a proposal is ----------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(sent=micro_clusters(), seed=seeds, with_categories=st.booleans())
def test_numbers_tried_ascend_and_the_best_comes_first_without_luck(
    sent: MicroClusters, seed: int, with_categories: bool
) -> None:
    micro = standardized(mixed(sent, seed) if with_categories else sent)[0]
    proposal = propose(micro)
    assert proposal.n_clusters[0] in (1, 2)
    assert list(proposal.n_clusters) == sorted(set(proposal.n_clusters))
    assert proposal.n_clusters[-1] <= min(micro.distinct, MOST)
    assert len(proposal.evidence) == len(proposal.n_clusters)
    assert np.isfinite(proposal.evidence).all()
    listed = [candidate.n_clusters for candidate in proposal.candidates]
    assert len(set(listed)) == len(listed)
    assert 1 <= len(listed) <= SHORT_LIST + 2
    assert all(candidate.reason for candidate in proposal.candidates)
    curve = dict(zip(proposal.n_clusters, proposal.evidence, strict=True))
    assert proposal.best == listed[0]
    assert curve[proposal.best] == max((value for k, value in curve.items() if k > 1), default=curve.get(1))
    assert weigh(micro) == weigh(micro)


# --- evidence --------------------------------------------------------------------------------------------------------


def test_evidence_is_the_bayesian_information_criterion_per_observation() -> None:
    micro = micro_of(np.random.default_rng(0).normal(size=(40, 3)))
    fits = Fits(micro)
    one = fit_mixture(micro, np.zeros(40, dtype=np.int64)).log_likelihood
    observations = OBSERVATIONS * 40
    price = math.log(observations) / observations
    assert [fits.shared(1), fits.own(1)] == pytest.approx([2.0 * one - 3 * price] * 2)
    # A mean of three numbers and a mass for each, less one; and six of a covariance for each more.
    for own, parameters in ((False, 2 * 4 - 1), (True, 2 * 4 - 1 + 6)):
        two = fits.best(2, own=own).log_likelihood
        assert (fits.own if own else fits.shared)(2) == pytest.approx(2.0 * two - parameters * price)


def test_no_more_observations_than_rows_are_counted() -> None:
    few = standardized(MicroClusters(np.random.default_rng(0).normal(size=(40, 2)), np.ones(40), np.zeros((2, 2))))[0]
    assert Fits(few).price == pytest.approx(math.log(40) / 40)


def test_a_category_that_tells_nothing_costs_the_same_for_every_number_of_clusters() -> None:
    X, truth = blobs(3, 90, 2, seed=0)
    shares = np.tile([0.3, 0.7], (90, 1))
    micro = standardized(MicroClusters(X, np.full(90, 10.0), 90.0 * np.eye(2), shares, (2,)))[0]
    fits = Fits(micro)
    assert fits.price == pytest.approx(math.log(OBSERVATIONS_OF_MORE * 90) / (OBSERVATIONS_OF_MORE * 90))
    for labels in (np.zeros(90, dtype=np.int64), truth):
        fit = fit_mixture(micro, labels)
        assert worth_of_categories(micro, fit, fits.price) == pytest.approx(-fits.price, abs=1e-6)


def test_a_category_that_tells_clusters_apart_is_worth_its_price() -> None:
    X, truth = blobs(2, 80, 2, seed=0)
    micro = standardized(MicroClusters(X, np.full(80, 10.0), 80.0 * np.eye(2), one_hot(truth), (2,)))[0]
    price = Fits(micro).price
    # One share of all rows, and one more of the second cluster; what it gains is in the likelihood.
    assert worth_of_categories(micro, fit_mixture(micro, truth), price) == pytest.approx(-2.0 * price)


def test_noise_in_categories_changes_no_number_of_clusters() -> None:
    rng = np.random.default_rng(0)
    X, _ = blobs(4, 120, 3, seed=2)
    shares = rng.multinomial(10, [0.2, 0.3, 0.5], size=120) / 10.0
    micro = standardized(MicroClusters(X, np.full(120, 10.0), 120.0 * np.eye(3), shares, (3,)))[0]
    assert propose(micro).best == 4


def test_sizes_of_clusters_explain_clusters_of_different_sizes_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(300) % 3
    for spread, gains in (([1.0, 1.0, 1.0], False), ([0.2, 1.0, 3.0], True)):
        X = rng.normal(size=(300, 2)) * np.array(spread)[truth, None] + 12.0 * np.eye(3, 2)[truth]
        micro = standardized(MicroClusters(X, np.ones(300), np.zeros((2, 2))))[0]
        fit = fit_mixture(micro, truth.astype(np.int64))
        assert (fit_with_sizes(micro, fit) - fit.log_likelihood > 0.3) == gains


def test_the_curve_has_every_number_that_any_kind_tried_with_the_better_evidence() -> None:
    evidence = Evidence({1: 0.0, 2: 1.0, 4: 3.0}, {1: 0.0, 2: 2.0, 3: 5.0})
    assert evidence.curve == {1: 0.0, 2: 2.0, 3: 5.0, 4: 3.0}
    assert Evidence({1: 0.0, 2: 1.0}, {}).curve == {1: 0.0, 2: 1.0}


def test_gaps_are_clearest_at_the_number_of_far_blobs() -> None:
    for n_clusters in (2, 4, 7):
        X = blobs(n_clusters, 30 * n_clusters, 2, seed=n_clusters)[0]
        curve = gap_curve(spanning_tree(X), np.ones(len(X)))
        assert best_of(curve) == n_clusters
        assert min(curve) == 2


# --- the climb -------------------------------------------------------------------------------------------------------


def hill(k: int, *, top: int) -> float:
    return -float(abs(k - top))


@pytest.mark.parametrize("most", [2, 12, 19, 23, 40, MOST])
def test_the_climb_ends_at_the_top_of_every_hill(most: int) -> None:
    for top in range(2, most + 1):
        curve = climb(partial(hill, top=top), most)
        assert best_of(curve) == top
        assert {k for k in (top - 1, top, top + 1) if k <= most} <= set(curve)
        assert max(curve) <= most


@settings(max_examples=200, deadline=None)
@given(values=st.lists(st.floats(-10, 10), min_size=1, max_size=100), most=st.integers(1, 100))
def test_the_climb_tries_every_small_number_and_all_around_the_best(values: list[float], most: int) -> None:
    curve = climb(lambda k: values[k % len(values)], most)
    assert set(range(1, min(EVERY_ONE_UP_TO, most) + 1)) <= set(curve)
    assert max(curve) <= max(1, most)
    best = best_of(curve)
    if best > 1:
        assert best - 1 in curve
        assert best == max(curve) or best + 1 in curve


def test_the_climb_goes_no_further_than_is_of_use() -> None:
    assert max(climb(partial(hill, top=3), MOST)) <= EVERY_ONE_UP_TO
    assert max(climb(partial(hill, top=20), MOST)) <= 3 * 20


def test_the_short_list_has_other_peaks_and_the_coarsest_that_is_nearly_as_good() -> None:
    curve = {1: 0.0, 2: 5.0, 3: 9.5, 4: 9.2, 5: 10.0, 6: 8.0, 7: 8.5, 8: 8.0, 9: 8.4, 10: 1.0}
    assert peaks(curve) == [3, 5, 7, 9]
    listed = {candidate.n_clusters: candidate.reason for candidate in short_list(curve)}
    assert list(listed) == [5, 3, 7]
    assert listed[3] == listed[7] == "another peak of the curve"
    smooth = {1: 0.0, 2: 5.0, 3: 9.5, 4: 9.8, 5: 10.0, 6: 8.0}
    listed = {candidate.n_clusters: candidate.reason for candidate in short_list(smooth)}
    assert listed == {
        5: "the best balance of fit and simplicity",
        3: f"the fewest clusters with {NEARLY_ALL:.0%} of the best one's evidence",
    }


def test_a_proposals_best_is_its_first_candidate() -> None:
    curve = {1: 0.0, 2: 5.0, 3: 1.0}
    proposal = Proposal((1, 2, 3), (0.0, 5.0, 1.0), short_list(curve))
    assert proposal.best == 2
