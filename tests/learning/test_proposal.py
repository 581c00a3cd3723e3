"""How many clusters: exact where they lie apart, honest where there are none, and a list that says why."""

import json
import math
from dataclasses import asdict
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldfc import Client, Consensus, LocalPort, run_round
from goldfc._types import FloatArray
from goldfc.bench.split import simulate
from goldfc.learning.mixture import MicroClusters, fit_mixture, standardized
from goldfc.learning.proposal import (
    EVERY_ONE_UP_TO,
    MOST,
    NEARLY_ALL,
    OBSERVATIONS,
    SHORT_LIST,
    Proposal,
    best_of,
    climb,
    peaks,
    propose,
    short_list,
)
from goldfc.protocol.federation import generator
from goldfc.protocol.message import Message, proposal_from
from strategies import blobs, micro_clusters, same_partition


def micro_of(X: FloatArray, mass: float = 10.0) -> MicroClusters:
    n_rows, n_features = X.shape
    return MicroClusters(X, np.full(n_rows, mass), 0.1 * mass * n_rows * np.eye(n_features))


# --- what is found ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_clusters", [2, 3, 4, 5, 7, 10, 12, 13, 16, 20, 25, 30])
def test_the_number_of_well_separated_clusters_is_found_exactly(n_clusters: int) -> None:
    proposal = propose(micro_of(blobs(n_clusters, 15 * n_clusters, 4, seed=n_clusters)[0]))
    assert proposal.best == n_clusters
    assert proposal.candidates[0].reason == "the best balance of fit and simplicity"


@pytest.mark.parametrize(("n_clusters", "n_features"), [(2, 2), (3, 3), (8, 4), (20, 4)])
def test_whole_rounds_of_simulated_clients_find_it_too(n_clusters: int, n_features: int) -> None:
    X, truth = blobs(n_clusters, 200 * n_clusters, n_features, seed=n_clusters)
    held = simulate(X, truth, 12, np.random.default_rng(0))
    sites = [Client(f"{number}", X[rows], generator(0, "client", f"{number}")) for number, rows in enumerate(held)]
    model = run_round(LocalPort(sites), None, Consensus(), generator(0, "server")).model
    assert model.proposal is not None
    assert model.proposal.best == n_clusters == len(np.unique(truth[np.concatenate(held)]))
    labels = np.concatenate([site.labels for site in sites])
    assert same_partition(labels, truth[np.concatenate(held)])


@pytest.mark.parametrize("stretch", [1.0, 30.0])
def test_correlated_and_stretched_clusters_are_counted_too(stretch: float) -> None:
    X, _ = blobs(4, 100, 3, seed=5)
    mixing = np.array([[stretch, 0.0, 0.0], [0.7, 1.0, 0.0], [0.4, -0.6, 1.0]])
    micro = MicroClusters(X @ mixing, np.full(100, 10.0), 100.0 * mixing.T @ mixing)
    assert propose(micro).best == 4


@pytest.mark.parametrize("n_features", [1, 2, 5, 10])
def test_a_single_gaussian_has_nothing_to_find(n_features: int) -> None:
    for seed in range(2):
        proposal = propose(micro_of(np.random.default_rng(seed).normal(size=(100, n_features))))
        assert proposal.evidence[0] >= max(proposal.evidence)
        assert [candidate.reason for candidate in proposal.candidates] == [
            "the best of two or more, but a single cluster fits as well: there may be nothing to find"
        ]


@pytest.mark.parametrize("n", [1, 2, 30])
def test_micro_clusters_that_are_all_the_same_are_one_cluster(n: int) -> None:
    proposal = propose(MicroClusters(np.full((n, 2), 0.3), np.ones(n), np.zeros((2, 2))))
    assert proposal.n_clusters == (1,)
    assert proposal.best == 1
    assert [candidate.reason for candidate in proposal.candidates] == ["all micro-clusters are the same"]


# --- what a proposal is ----------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(micro=micro_clusters())
def test_numbers_tried_ascend_from_1_and_candidates_are_among_them(micro: MicroClusters) -> None:
    proposal = propose(micro)
    assert proposal.n_clusters[0] == 1
    assert list(proposal.n_clusters) == sorted(set(proposal.n_clusters))
    assert proposal.n_clusters[-1] <= min(micro.distinct, MOST)
    assert len(proposal.evidence) == len(proposal.n_clusters)
    assert np.isfinite(proposal.evidence).all()
    listed = [candidate.n_clusters for candidate in proposal.candidates]
    assert len(set(listed)) == len(listed)
    assert 1 <= len(listed) <= SHORT_LIST + 1
    assert set(listed) <= set(proposal.n_clusters)
    assert all(candidate.reason for candidate in proposal.candidates)


@settings(max_examples=30, deadline=None)
@given(micro=micro_clusters())
def test_candidates_start_with_the_best_and_there_is_no_luck_in_it(micro: MicroClusters) -> None:
    proposal = propose(micro)
    curve = dict(zip(proposal.n_clusters, proposal.evidence, strict=True))
    assert proposal.best == proposal.candidates[0].n_clusters
    assert curve[proposal.best] == max((value for k, value in curve.items() if k > 1), default=curve[1])
    assert propose(micro) == proposal


def test_evidence_is_the_bayesian_information_criterion_per_observation() -> None:
    micro = micro_of(np.random.default_rng(0).normal(size=(40, 3)))
    unit = standardized(micro)[0]
    one = fit_mixture(unit, np.zeros(40, dtype=np.int64)).log_likelihood
    observations = OBSERVATIONS * 40
    assert propose(micro).evidence[0] == pytest.approx(2.0 * one - math.log(observations) * 3 / observations)


def test_a_proposal_survives_the_way_there_and_back_even_as_json() -> None:
    proposal = propose(micro_of(blobs(13, 200, 4, seed=0)[0]))
    assert len(proposal.candidates) >= 1
    message = Message("model", facts={"proposal": asdict(proposal)})
    assert proposal_from(message.facts["proposal"]) == proposal
    assert proposal_from(json.loads(json.dumps(message.facts["proposal"]))) == proposal
    assert proposal_from(None) is None


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
