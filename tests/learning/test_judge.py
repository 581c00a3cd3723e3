"""The judge: linked where clusters are not convex, otherwise a covariance for each or for all; and it says why."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from goldfc._types import FloatArray, IntArray
from goldfc.learning.judge import GO_ON, KINDS, Kind, Verdict, is_clear, judge
from goldfc.learning.k_means import k_means
from goldfc.learning.micro_clusters import MicroClusters, no_scatter, scatter_of, standardized
from goldfc.learning.mixture import clusters_of, one_hot
from goldfc.learning.proposal import OBSERVATIONS_OF_FORM, OBSERVATIONS_THROUGH_NOISE
from goldfc.learning.staying import Past
from strategies import blobs, micro_clusters, mixed, seeds

Rows = tuple[FloatArray, IntArray]


def moons(seed: int) -> Rows:
    return make_moons(1200, noise=0.06, random_state=seed)  # type: ignore[no-any-return]


def rings(seed: int) -> Rows:
    return make_circles(1200, noise=0.04, factor=0.4, random_state=seed)  # type: ignore[no-any-return]


def own_forms(seed: int) -> Rows:
    """Long clusters, each in a direction of its own, that cross the space between the others."""
    rng = np.random.default_rng(seed)
    y = np.arange(1500) % 3
    angle = np.pi / 3.0 * y + rng.uniform(0.0, np.pi)
    along, across = rng.normal(scale=3.0, size=1500), rng.normal(scale=0.35, size=1500)
    X = along[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    X += across[:, None] * np.column_stack([-np.sin(angle), np.cos(angle)])
    return X + 3.0 * np.column_stack([np.cos(2.0 * y), np.sin(2.0 * y)]), y


def stretched_alike(seed: int) -> Rows:
    """Four clusters that one covariance tells, all correlated alike; they overlap a little."""
    rng = np.random.default_rng(seed)
    y = np.arange(1600) % 4
    round_ones = rng.normal(size=(1600, 3)) + 4.5 * np.eye(4, 3)[y]
    return round_ones @ np.array([[4.0, 0.0, 0.0], [1.5, 1.0, 0.0], [-1.0, 0.5, 0.6]]), y


def judged(
    rows: Rows,
    n_clusters: int | None,
    seed: int = 0,
    kinds: tuple[Kind, ...] = KINDS,
    count: int = 160,
    observations: float = OBSERVATIONS_OF_FORM,
) -> tuple[Verdict, float]:
    """What is said of so many micro-clusters of the rows, and how well it goes with the truth."""
    X, y = rows
    own, centroids = k_means(X / X.std(axis=0), count, np.random.default_rng(seed))
    X = X / X.std(axis=0)
    micro = MicroClusters(centroids, np.bincount(own).astype(float), scatter_of(X, centroids, own))
    unit, rng = standardized(micro)[0], np.random.default_rng(seed)
    verdict = judge(unit, n_clusters, rng, kinds=kinds, observations=observations)
    return verdict, float(adjusted_rand_score(y, verdict.labels[own]))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("known", [True, False])
def test_moons_are_linked(known: bool, seed: int) -> None:
    verdict, right = judged(moons(seed), 2 if known else None)
    assert verdict.kind == "linked"
    assert right > 0.95
    assert "gaps between clusters" in verdict.why
    assert "not convex" in verdict.why


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("known", [True, False])
def test_rings_are_found_by_linkage_and_told_as_a_narrow_cluster_in_a_wide_one(known: bool, seed: int) -> None:
    verdict, right = judged(rings(seed), 2 if known else None)
    assert verdict.kind in ("linked", "own")
    assert right > 0.95
    assert "gaps between clusters" in verdict.why


@pytest.mark.parametrize("seed", range(3))
def test_clusters_of_their_own_forms_have_their_own_covariances(seed: int) -> None:
    verdict, right = judged(own_forms(seed), 3)
    assert verdict.kind == "own"
    assert right > judged(own_forms(seed), 3, kinds=("shared",))[1] + 0.1
    assert "in their own way" in verdict.why


@pytest.mark.parametrize("seed", range(3))
def test_clusters_that_are_stretched_alike_share_a_covariance(seed: int) -> None:
    verdict, right = judged(stretched_alike(seed), 4)
    assert verdict.kind == "shared"
    assert right > 0.8
    assert "stretched alike" in verdict.why


@pytest.mark.parametrize("seed", range(3))
def test_where_noise_leaves_few_micro_clusters_these_tell_the_form_of_clusters_too(seed: int) -> None:
    few = partial(judged, count=15, observations=OBSERVATIONS_THROUGH_NOISE)
    assert few(own_forms(seed), 3)[0].kind == "own"
    assert few(stretched_alike(seed), 4)[0].kind == "shared"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_clusters", [3, None])
def test_a_kind_alone_is_taken_at_its_word(kind: Kind, n_clusters: int | None) -> None:
    X, y = blobs(3, 600, 2, seed=1)
    verdict, right = judged((X, y), n_clusters, kinds=(kind,))
    assert right == 1.0
    # Linked clusters that are convex are told by a covariance each.
    assert verdict.kind == ("own" if kind == "linked" else kind)


def test_linkage_alone_is_believed_even_where_there_are_no_gaps() -> None:
    rng = np.random.default_rng(0)
    verdict, _ = judged((rng.normal(size=(1000, 2)), np.zeros(1000, dtype=np.int64)), 2, kinds=("linked",))
    assert "gaps" in verdict.why


def test_without_linkage_moons_are_cut_by_a_mixture() -> None:
    verdict, right = judged(moons(0), 2, kinds=("shared", "own"))
    assert verdict.kind in ("shared", "own")
    assert right < 0.9


def test_around_a_single_cluster_there_are_no_gaps() -> None:
    verdict, _ = judged(blobs(3, 300, 2, seed=0), 1)
    assert verdict.kind == "shared"
    assert (verdict.labels == 0).all()
    assert "gap" not in verdict.why


def test_far_blobs_of_any_number_are_found_whatever_is_asked_for() -> None:
    for n_clusters in (2, 5, 9):
        X, y = blobs(n_clusters, 200 * n_clusters, 2, seed=n_clusters)
        for known in (n_clusters, None):
            verdict, right = judged((X, y), known)
            assert right == 1.0
            assert (verdict.proposal is None) == (known is not None)


def test_categories_have_no_gaps() -> None:
    X, _ = blobs(2, 100, 2, seed=0)
    micro = standardized(mixed(MicroClusters(X, np.ones(100), np.zeros((2, 2))), seed=0))[0]
    assert judge(micro, 2, np.random.default_rng(0)).kind in ("shared", "own")


def test_gaps_are_clear_if_they_are_large_and_clearly_larger_than_others() -> None:
    assert is_clear(0.8, 0.3, 0.6, 0.3)
    assert not is_clear(0.5, 0.0, 0.6, 0.3)
    assert not is_clear(0.9, 0.7, 0.6, 0.3)


@settings(max_examples=25, deadline=None)
@given(
    sent=micro_clusters(), seed=seeds, with_categories=st.booleans(), n_clusters=st.sampled_from([None, 1, 2, 4, 50])
)
def test_whatever_is_sent_there_is_a_verdict_with_a_sentence(
    sent: MicroClusters, seed: int, with_categories: bool, n_clusters: int | None
) -> None:
    micro = standardized(mixed(sent, seed) if with_categories else sent)[0]
    verdict = judge(micro, n_clusters, np.random.default_rng(seed), starts=2)
    found = int(verdict.labels.max()) + 1
    assert sorted(set(verdict.labels)) == list(range(found))
    assert found <= min(micro.distinct, n_clusters or micro.distinct)
    assert ((verdict.certainty >= 0.0) & (verdict.certainty <= 1.0)).all()
    assert verdict.kind in KINDS
    assert len(verdict.why.split()) > 5
    assert verdict.levels.labels.shape == (len(micro.mass), len(verdict.levels))
    assert verdict.levels.n_clusters == tuple(len(set(level)) for level in verdict.levels.labels.T)
    assert (verdict.proposal is None) == (n_clusters is not None)


@settings(max_examples=15, deadline=None)
@given(sent=micro_clusters(), seed=seeds, with_categories=st.booleans(), n_clusters=st.sampled_from([1, 2, 4, 50]))
def test_to_explain_a_number_that_is_given_changes_no_label_and_marks_it(
    sent: MicroClusters, seed: int, with_categories: bool, n_clusters: int
) -> None:
    micro = standardized(mixed(sent, seed) if with_categories else sent)[0]
    verdict, explained = (
        judge(micro, n_clusters, np.random.default_rng(seed), starts=2, explain=explain) for explain in (False, True)
    )
    np.testing.assert_array_equal(explained.labels, verdict.labels)
    found, proposal = int(verdict.labels.max()) + 1, explained.proposal
    assert proposal is not None
    assert found in proposal.n_clusters
    assert found in [candidate.n_clusters for candidate in proposal.candidates]
    assert list(proposal.n_clusters) == sorted(set(proposal.n_clusters))


@pytest.mark.parametrize(("rows", "n_clusters"), [(moons(0), 3), (stretched_alike(0), 6)])
def test_the_evidence_beside_a_given_number_is_that_of_the_kind_that_is_believed(rows: Rows, n_clusters: int) -> None:
    X = rows[0] / rows[0].std(axis=0)
    own, centroids = k_means(X, 120, np.random.default_rng(0))
    micro = standardized(MicroClusters(centroids, np.bincount(own).astype(float), scatter_of(X, centroids, own)))[0]
    verdict = judge(micro, n_clusters, np.random.default_rng(0), explain=True)
    proposed = judge(micro, None, np.random.default_rng(0)).proposal
    assert verdict.proposal is not None
    assert proposed is not None
    assert verdict.proposal.of_gaps == verdict.by_gaps
    assert verdict.proposal.n_clusters == proposed.n_clusters
    assert verdict.proposal.evidence == proposed.evidence
    assert verdict.proposal.best == proposed.best


# --- units and degenerate features ---


def with_column(value: float, rounding: float = 0.0) -> FloatArray:
    column = value * (1.0 + np.arange(60) % 7 * rounding)
    return np.column_stack([blobs(3, 60, 2, seed=0)[0], column])


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
@pytest.mark.parametrize("n_clusters", [3, None])
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_features_give_numbers_and_no_warning(case: str, n_clusters: int | None, diagonal: bool) -> None:
    X = DEGENERATE[case]
    none = np.zeros(X.shape[1] if diagonal else (X.shape[1],) * 2)
    micro = standardized(MicroClusters(X, np.arange(1.0, len(X) + 1.0), none))[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verdict = judge(micro, n_clusters, np.random.default_rng(0), starts=4)
    assert sorted(set(verdict.labels)) == list(range(verdict.labels.max() + 1))
    assert verdict.labels.max() < min(n_clusters or micro.distinct, micro.distinct)
    assert np.isfinite(verdict.certainty).all()
    if verdict.proposal is not None:
        assert np.isfinite(verdict.proposal.evidence).all()


@pytest.mark.parametrize("case", [case for case in DEGENERATE if "column" in case])
def test_a_column_in_which_nothing_varies_changes_no_label(case: str) -> None:
    X = DEGENERATE[case]
    one, other = (
        judge(standardized(MicroClusters(rows, np.ones(60), np.zeros((width, width))))[0], 3, np.random.default_rng(0))
        for rows, width in ((X, 3), (X[:, :2], 2))
    )
    np.testing.assert_array_equal(one.labels, other.labels)


# --- after a model


def found_before(micro: MicroClusters, n_clusters: int, *, by_gaps: bool = False) -> Past:
    """What would have been found before."""
    kinds: tuple[Kind, ...] = ("linked",) if by_gaps else ("shared",)
    labels = judge(micro, n_clusters, np.random.default_rng(0), kinds=kinds, starts=2).labels
    clusters = clusters_of(micro, one_hot(labels))
    return Past(labels, clusters.means, clusters.mass, own=False, by_gaps=by_gaps)


FAR_BLOBS = standardized(MicroClusters(blobs(4, 200, 2, seed=0)[0], np.ones(200)))[0]
FAR_RINGS = standardized(MicroClusters(rings(0)[0][:400], np.ones(400)))[0]


@pytest.mark.parametrize("by_gaps", [False, True])
def test_clusters_that_were_there_go_on_where_nothing_speaks_against_them(by_gaps: bool) -> None:
    micro = FAR_RINGS if by_gaps else FAR_BLOBS
    past = found_before(micro, 2 if by_gaps else 4, by_gaps=by_gaps)
    verdict = judge(micro, None, np.random.default_rng(1), starts=2, past=past)
    np.testing.assert_array_equal(verdict.labels, past.labels)
    assert verdict.why == GO_ON
    assert verdict.proposal is not None
    assert verdict.proposal.of_gaps == by_gaps
    assert verdict.proposal.best == len(past.mass)


@pytest.mark.parametrize(
    ("n_clusters", "kinds", "halves"),
    [(3, KINDS, False), (None, ("own",), False), (None, KINDS, True)],
    ids=["another number is asked for", "they are of a kind that is not", "their gaps are gone"],
)
def test_clusters_are_found_anew_as_if_there_were_none_before_where_those_cannot_go_on(
    n_clusters: int | None, kinds: tuple[Kind, ...], halves: bool
) -> None:
    micro = FAR_RINGS if halves else FAR_BLOBS
    past = found_before(micro, 2 if halves else 4, by_gaps=halves)
    if halves:
        past = replace(past, labels=(micro.centroids[:, 0] > 0.0).astype(np.int64))
    anew, after = (
        judge(micro, n_clusters, np.random.default_rng(1), kinds=kinds, starts=2, past=one) for one in (None, past)
    )
    np.testing.assert_array_equal(anew.labels, after.labels)
    np.testing.assert_array_equal(anew.certainty, after.certainty)


@settings(max_examples=25, deadline=None)
@given(
    sent=micro_clusters(),
    seed=seeds,
    own=st.booleans(),
    by_gaps=st.booleans(),
    n_clusters=st.sampled_from([None, 2]),
    explain=st.booleans(),
)
def test_whatever_there_was_before_there_is_a_verdict(
    sent: MicroClusters, seed: int, own: bool, by_gaps: bool, n_clusters: int | None, explain: bool
) -> None:
    micro, rng = standardized(sent)[0], np.random.default_rng(seed)
    labels, width = rng.integers(5, size=len(micro.mass)), micro.centroids.shape[1]
    past = Past(labels, rng.normal(size=(5, width)), rng.uniform(1.0, 9.0, 5), own=own, by_gaps=by_gaps)
    verdict = judge(micro, n_clusters, rng, starts=2, past=past, explain=explain)
    found = int(verdict.labels.max()) + 1
    assert sorted(set(verdict.labels)) == list(range(found))
    assert ((verdict.certainty >= 0.0) & (verdict.certainty <= 1.0)).all()
    assert (verdict.proposal is not None) == (explain or n_clusters is None)
    assert verdict.proposal is None or verdict.proposal.best in verdict.proposal.n_clusters


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("by_gaps", [False, True])
def test_micro_clusters_that_are_all_the_same_are_one_cluster(own: bool, by_gaps: bool) -> None:
    micro = MicroClusters(np.ones((2, 3)), np.array([4.0, 5.0]), no_scatter(3))
    past = Past(np.array([0, 1]), np.eye(2, 3), np.ones(2), own=own, by_gaps=by_gaps)
    verdict = judge(standardized(micro)[0], 2, np.random.default_rng(0), past=past, explain=True)
    assert verdict.labels.tolist() == [0, 0]
    assert verdict.proposal is not None
    assert verdict.proposal.best == 1
