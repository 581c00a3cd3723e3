"""k-Fed, FFCM and pooled k-means: each step as its slow twin has it, and figures as they were found beforehand."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadSettings, GoldError, TooFewMicroClusters
from goldfc.message.message import Message
from goldfc.randomness import generator, site_generator
from goldfc.site.label import nearest_centroid
from goldfc.transport.local import LocalPort
from goldfc_bench.datasets import load, load_split
from goldfc_bench.methods import ffcm
from goldfc_bench.methods.ffcm import FFCM, FFCMAverage, FFCMKMeans
from goldfc_bench.methods.kfed import KFed, KFedSite, careful_starts, core_sets, farthest_first, lloyd, means_of
from goldfc_bench.methods.pooled import PooledKMeans
from goldfc_bench.methods.protocol import Answer, Method
from goldfc_bench.score import ari, purity
from needs import needs_splits

everyone = pytest.mark.parametrize(
    "method", [KFed(), FFCMAverage(), FFCMKMeans(), PooledKMeans()], ids=lambda method: str(method.name)
)


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    answer: Answer
    labels: IntArray  # of all sites' rows, site after site
    port: LocalPort


def run(method: Method, rows: Sequence[FloatArray], k: int, seed: int = 0) -> Outcome:
    names = [str(number) for number in range(len(rows))]
    sites = [method.site(name, own, site_generator(seed, name)) for name, own in zip(names, rows, strict=True)]
    port = LocalPort(sites)
    with threadpool_limits(limits=1):
        answer = method.serve(port, k, generator(seed, "server"))
    return Outcome(answer, np.concatenate([site.labels for site in sites]), port)


def blobs(rng: np.random.Generator, *, per_site: int = 2) -> list[FloatArray]:
    """Three clusters far from one another in the unit square, and four sites, each with some of them."""
    centres = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    return [
        np.vstack([centres[j % 3] + rng.normal(scale=0.05, size=(15, 2)) for j in range(number, number + per_site)])
        for number in range(4)
    ]


def truth_of_blobs(per_site: int = 2) -> IntArray:
    return np.concatenate([np.repeat(np.arange(number, number + per_site) % 3, 15) for number in range(4)])


# --- figures ---


@needs_splits
@pytest.mark.parametrize(
    ("name", "method", "seeds", "expected"),
    [
        ("EC", KFed(local_clusters=8), 20, (0.715, 0.483)),
        ("VE", KFed(local_clusters=4), 20, (0.380, 0.079)),
        ("EC", KFed(), 20, (0.723, 0.509)),
        ("EC", FFCMAverage(), 2, (0.717, 0.377)),
        ("US", FFCMAverage(), 2, (0.494, 0.158)),
        ("VE", FFCMAverage(), 1, (0.345, 0.050)),
        ("YE", FFCMAverage(max_rounds=4), 1, (0.503, 0.217)),
        ("EC", FFCMKMeans(), 2, (0.752, 0.515)),
        ("US", FFCMKMeans(), 2, (0.527, 0.243)),
        ("VE", FFCMKMeans(), 1, (0.416, 0.097)),
        ("YE", FFCMKMeans(), 1, (0.567, 0.272)),
    ],
)
def test_purity_and_ari_are_those_of_an_independent_prototype(
    name: str, method: Method, seeds: int, expected: tuple[float, float]
) -> None:
    split, k = load_split(name), load(name).n_clusters
    # Rows of a site follow one another in the paper's splits, as do the labels of `run`.
    assert (np.diff(split.site) >= 0).all()
    labels = [run(method, split.rows_per_site(), k, seed).labels for seed in range(seeds)]
    scores = np.mean([(purity(split.y, own), ari(split.y, own)) for own in labels], axis=0)
    assert scores == pytest.approx(expected, abs=0.03)


# --- all of them ---


@pytest.mark.parametrize("method", [KFed(local_clusters=3), FFCMAverage(), FFCMKMeans(), PooledKMeans()], ids=repr)
def test_clusters_that_all_sites_have_are_found(method: Method) -> None:
    rows = blobs(np.random.default_rng(3), per_site=3)
    outcome = run(method, rows, 3)
    assert ari(truth_of_blobs(3), outcome.labels) == 1.0
    assert np.array_equal(outcome.labels, nearest_centroid(np.vstack(rows), outcome.answer.centroids))


@everyone
def test_only_avg1_is_led_astray_by_sites_that_lack_a_cluster(method: Method) -> None:
    outcome = run(method, blobs(np.random.default_rng(3)), 3)
    assert (ari(truth_of_blobs(), outcome.labels) < 1.0) == (method.name == "FFCM-avg1")


@everyone
def test_declared_uplinks_are_those_in_the_ledger(method: Method) -> None:
    outcome = run(method, blobs(np.random.default_rng(0)), 3)
    assert outcome.answer.uplinks == outcome.port.traffic.uplinks
    assert outcome.answer.uplinks == 4 * (outcome.answer.details or {"rounds": 1})["rounds"]


@everyone
def test_same_seed_same_labels(method: Method) -> None:
    rows = [np.random.default_rng(number).normal(size=(40, 3)) for number in range(3)]
    first, second = run(method, rows, 4, seed=5), run(method, rows, 4, seed=5)
    assert np.array_equal(first.labels, second.labels)
    assert np.array_equal(first.answer.centroids, second.answer.centroids)


HARD: dict[str, Callable[[np.random.Generator], list[FloatArray]]] = {
    "one row each": lambda rng: [rng.normal(size=(1, 3)) for _ in range(6)],
    "one row for somebody": lambda rng: [rng.normal(size=(1, 3)), rng.normal(size=(20, 3))],
    "a lone site": lambda rng: [rng.normal(size=(20, 3))],
    "one feature": lambda rng: [rng.normal(size=(9, 1)) for _ in range(3)],
    "a constant column": lambda rng: [np.column_stack([rng.normal(size=20), np.full(20, 7.3)]) for _ in range(3)],
    "all rows the same": lambda _: [np.full((size, 2), 1.1) for size in (3, 5, 7)],
    "two rows, many times": lambda rng: [np.repeat(rng.normal(size=(2, 3)), 10, axis=0) for _ in range(3)],
    "the same few rows everywhere": lambda rng: [np.repeat(rng.normal(size=(5, 2)), 4, axis=0)] * 3,
    "rows that rounding told apart": lambda rng: [
        np.repeat(rng.normal(size=(5, 2)), 4, axis=0) * (1.0 + 2e-16 * np.arange(20)[:, None])
    ],
    "nothing but zeros for somebody": lambda rng: [np.zeros((4, 2)), rng.normal(size=(20, 2))],
    "far from zero": lambda rng: [rng.normal(size=(20, 2)) * 1e6 + 1e7 for _ in range(2)],
    "what the projection cannot see": lambda rng: [
        np.column_stack([rng.normal(size=(12, 2)) * 100.0, np.tile([0.0, 1e-9], 6)]) for _ in range(2)
    ],
}


@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize(
    "method",
    [
        KFed(),
        KFed(local_clusters=1),
        KFed(local_clusters=9),
        FFCMAverage(),
        FFCMAverage(fuzzifier=1.02),
        FFCMKMeans(),
        FFCMKMeans(fuzzifier=1.02),
        PooledKMeans(),
    ],
    ids=repr,
)
def test_hard_rows_give_an_answer_or_are_refused(case: str, method: Method) -> None:
    rows = HARD[case](np.random.default_rng(1))
    for k in (2, 4):
        try:
            outcome = run(method, rows, k)
        except TooFewMicroClusters:
            continue
        assert outcome.answer.centroids.shape == (k, rows[0].shape[1])
        assert np.isfinite(outcome.answer.centroids).all()
        assert set(outcome.labels.tolist()) <= set(range(k))


# --- k-Fed ---


def test_core_sets_are_as_defined() -> None:
    rng = np.random.default_rng(2)
    for k in (1, 2, 5):
        rows = rng.normal(size=(60, 2))
        seeds = rows[:k]
        found = core_sets(rows, seeds)
        for i, row in enumerate(rows):
            own = [math.dist(row, seed) for seed in seeds]
            cores = [r for r in range(k) if all(3.0 * own[r] <= own[s] for s in range(k) if s != r)]
            assert found[i] == (cores[0] if cores else -1)


def test_farthest_first_takes_what_is_farthest_from_all_it_has() -> None:
    points = np.random.default_rng(4).normal(size=(30, 3))
    taken = farthest_first(points, 3, 9).tolist()
    assert taken[:3] == [0, 1, 2]
    for number in range(3, 9):
        gaps = [min(math.dist(point, points[i]) for i in taken[:number]) for point in points]
        assert taken[number] == gaps.index(max(gaps))


def test_farthest_first_is_cut_to_the_number_of_clusters() -> None:
    assert farthest_first(np.random.default_rng(0).normal(size=(9, 2)), 5, 3).tolist() == [0, 1, 2]


def test_a_mean_without_rows_is_what_it_was() -> None:
    rows = np.array([[1.0], [3.0], [9.0]])
    means = means_of(rows, np.array([0, 0, -1]), np.array([[50.0], [60.0]]))
    assert means.tolist() == [[2.0], [60.0]]


def test_k_means_from_given_centres_is_scikit_learns() -> None:
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(200, 4))
    centres, labels = lloyd(rows, rows[:5])
    theirs = KMeans(5, init=rows[:5], n_init=1, tol=0.0).fit(rows)
    assert np.array_equal(labels, theirs.labels_)
    assert centres == pytest.approx(theirs.cluster_centers_)


def test_starts_are_projected_rows_for_any_number_of_clusters() -> None:
    rows = np.random.default_rng(7).normal(size=(50, 3))
    for k in (1, 2, 3, 8):  # more clusters than features, too
        starts = careful_starts(rows, k, np.random.default_rng(0))
        assert starts.shape == (k, 3)
        assert np.linalg.matrix_rank(starts) <= min(k, 3)


def test_a_site_with_few_rows_sends_them() -> None:
    rows = np.random.default_rng(8).normal(size=(3, 2))
    site = KFedSite("a", rows, np.random.default_rng(0))
    assert np.array_equal(site.on_summarize(Message("summarize", facts={"clusters": 3})).arrays["centres"], rows)
    assert len(site.on_summarize(Message("summarize", facts={"clusters": 2})).arrays["centres"]) == 2


@pytest.mark.parametrize(("k", "local_clusters"), [(2, 2), (4, 2), (5, 3), (9, 3), (10, 4), (26, 6)])
def test_by_default_sites_have_the_square_root_of_k(k: int, local_clusters: int) -> None:
    rows = [np.random.default_rng(number).normal(size=(30, 3)) for number in range(12)]
    port = run(KFed(), rows, k).port
    sent = [crossing.nbytes for crossing in port.traffic.crossings if crossing.kind == "summary"]
    assert sent == [Message("summary", {"centres": np.zeros((local_clusters, 3))}).nbytes] * 12


def test_sites_that_sent_too_little_are_refused_by_name() -> None:
    rows = blobs(np.random.default_rng(0))[:2]
    with pytest.raises(TooFewMicroClusters, match="only 4 different centres were sent; raise local_clusters above 2"):
        run(KFed(local_clusters=2), rows, 5)


# --- FFCM ---


def slow_memberships(rows: FloatArray, centres: FloatArray, fuzzifier: float) -> list[list[float]]:
    """The definition."""
    distances = [[max(math.dist(x, c), 1e-12) for c in centres] for x in rows]
    power = 2.0 / (fuzzifier - 1.0)
    return [[1.0 / sum((own / other) ** power for other in row) for own in row] for row in distances]


@pytest.mark.parametrize("fuzzifier", [1.5, 2.0, 3.0])
def test_a_fuzzy_step_is_its_definition_in_blocks_of_any_size(
    fuzzifier: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(9)
    rows, before = rng.normal(size=(23, 3)), rng.normal(size=(4, 3))
    centres = np.vstack([rows[:2], before[:2]])  # two of them are rows
    u, u_before = (np.array(slow_memberships(rows, c, fuzzifier)) for c in (centres, before))
    for block in (1, 7, 23, 100):
        monkeypatch.setattr(ffcm, "BLOCK", block)
        step = ffcm.fuzzy_step(rows, centres, before, fuzzifier)
        for j in range(4):
            weights = [u[i, j] ** fuzzifier for i in range(23)]
            mean = sum(weight * row for weight, row in zip(weights, rows, strict=True)) / sum(weights)
            assert step.centres[j] == pytest.approx(mean)
        assert step.supports == pytest.approx(u.sum(axis=0))
        assert step.change == pytest.approx(math.sqrt(((u - u_before) ** 2).sum()))


def test_memberships_sum_to_one_and_are_largest_at_the_nearest_centre() -> None:
    rng = np.random.default_rng(10)
    rows, centres = rng.normal(size=(50, 3)), rng.normal(size=(6, 3))
    u = ffcm.memberships(rows, centres, 2.0)
    assert u.sum(axis=0) == pytest.approx(np.ones(50))
    assert np.array_equal(u.argmax(axis=0), nearest_centroid(rows, centres))


def test_fuzzy_c_means_ends_where_a_step_changes_nothing() -> None:
    rng = np.random.default_rng(11)
    rows = np.vstack(blobs(rng))
    end = ffcm.fuzzy_c_means(rows, rows[:3], 2.0, 1000, 1e-9)
    assert end.change < 1e-9
    assert ffcm.fuzzy_step(rows, end.centres, None, 2.0).centres == pytest.approx(end.centres, abs=1e-6)
    assert ffcm.fuzzy_c_means(rows, rows[:3], 2.0, 1, 1e-9).change == math.inf


def test_avg1_is_the_average_by_index_weighted_by_support() -> None:
    rng = np.random.default_rng(12)
    centres, supports = rng.normal(size=(3, 4, 2)), rng.random((3, 4))
    merged = FFCMAverage().merge(centres, supports, None, rng)
    for j in range(4):
        assert merged[j] == pytest.approx(np.average(centres[:, j], axis=0, weights=supports[:, j]))


def test_avg2_goes_on_from_the_previous_centres_in_their_order() -> None:
    rng = np.random.default_rng(13)
    places = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    centres = np.stack([rng.permutation(places) + rng.normal(scale=0.1, size=(3, 2)) for _ in range(5)])
    merged = FFCMKMeans().merge(centres, np.ones((5, 3)), places[::-1].copy(), rng)
    assert merged == pytest.approx(places[::-1], abs=0.2)


def test_avg2_has_k_centres_even_of_fewer_places() -> None:
    rng = np.random.default_rng(14)
    centres = np.tile([[[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]]], (4, 1, 1))
    first = FFCMKMeans().merge(centres, np.ones((4, 3)), None, rng)
    again = FFCMKMeans().merge(centres, np.ones((4, 3)), first, rng)
    for merged in (first, again):
        assert len(merged) == 3
        assert {tuple(centre) for centre in merged.round(9).tolist()} == {(1.0, 2.0), (3.0, 4.0)}


@dataclass(frozen=True)
class Circling(FFCM):
    """Its centres are 100, 101, 0, 1, 2, 0, 1, 2, ... whatever the sites say."""

    name: ClassVar[str] = "circling"

    def merge(
        self,
        centres: FloatArray,
        supports: FloatArray,  # noqa: ARG002
        previous: FloatArray | None,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> FloatArray:
        """The next number."""
        after = {None: 100.0, 100.0: 101.0, 101.0: 0.0, 0.0: 1.0, 1.0: 2.0, 2.0: 0.0}
        return np.full(centres.shape[1:], after[None if previous is None else float(previous[0, 0])])


@pytest.mark.parametrize("max_rounds", range(1, 15))
def test_a_circle_is_cut_short_with_what_all_rounds_would_have_given(max_rounds: int) -> None:
    answer = run(Circling(max_rounds=max_rounds), blobs(np.random.default_rng(0)), 3).answer
    endless = [100.0, 101.0, *[0.0, 1.0, 2.0] * 5]
    assert answer.centroids[0, 0] == endless[max_rounds - 1]
    period = 3 if max_rounds >= 6 else None
    assert answer.details == {"rounds": min(max_rounds, 6), "period": period}


def test_centres_that_stand_still_end_it() -> None:
    history = [np.full((2, 2), value) for value in (5.0, 4.0, 3.0, 3.00001)]
    assert [ffcm.rounds_since(history[: end + 1], 1e-4) for end in range(4)] == [None, None, None, 1]
    assert all(ffcm.rounds_since(pair, 1e-9) is None for pair in pairwise(history))


# --- pooled k-means ---


def test_pooled_k_means_is_k_means_on_all_rows() -> None:
    rows = blobs(np.random.default_rng(15))
    outcome = run(PooledKMeans(), rows, 3)
    theirs = KMeans(3, n_init=10, random_state=0).fit(np.vstack(rows))
    assert ari(theirs.labels_, outcome.labels) == 1.0
    assert outcome.port.traffic.bytes_up >= np.vstack(rows).nbytes


# --- refusals ---


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: KFed(local_clusters=0), "local_clusters must be at least 1, got 0"),
        (lambda: FFCMAverage(fuzzifier=1.0), "fuzzifier must be above 1, got 1.0"),
        (lambda: FFCMKMeans(max_rounds=0), "max_rounds and local_iterations must be at least 1, got 0 and 1000"),
    ],
)
def test_settings_out_of_range_are_refused(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(BadSettings, match=sentence):
        make()
    assert issubclass(BadSettings, GoldError)
