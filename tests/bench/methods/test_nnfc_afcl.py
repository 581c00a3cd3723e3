"""NN-FC and AFCL: their steps against slow twins, and their figures on the paper's splits."""

from collections.abc import Sequence

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadSettings, GoldError
from goldfc.message.message import Message
from goldfc.randomness import generator, site_generator
from goldfc.transport.local import LocalPort, Participant
from goldfc_bench.datasets import load, load_split
from goldfc_bench.methods import nnfc
from goldfc_bench.methods._afcl_kernels import interact
from goldfc_bench.methods.afcl import AFCL, AFCLSite, Heard, attend, merged, moved, shares
from goldfc_bench.methods.nnfc import NNFC, density_peaks, perturbed, smallest_distance
from goldfc_bench.methods.protocol import Answer, Method
from goldfc_bench.score import ari, purity
from needs import needs_splits


class WatchedPort(LocalPort):
    """A port that remembers who answered what."""

    def __init__(self, participants: Sequence[Participant]) -> None:
        super().__init__(participants)
        self.asked: list[tuple[str, list[str]]] = []

    def ask(self, message: Message, sites: Sequence[str] | None = None) -> dict[str, Message]:
        """Pass it on, and write it down."""
        answers = super().ask(message, sites)
        self.asked.append((message.kind, sorted(answers)))
        return answers


def federate(
    method: Method, rows: Sequence[FloatArray], n_clusters: int, seed: int = 0
) -> tuple[list[IntArray], Answer, WatchedPort]:
    sites = [method.site(str(n), own, site_generator(seed, str(n))) for n, own in enumerate(rows)]
    port = WatchedPort(sites)
    with threadpool_limits(limits=1):  # as in the runner; k-means on few rows is slower with more
        answer = method.serve(port, n_clusters, generator(seed, "server"))
    return [site.labels for site in sites], answer, port


def mean_scores(method: Method, name: str, n_seeds: int) -> tuple[float, float]:
    """Purity and ARI of all sites' rows."""
    split, n_clusters = load_split(name), load(name).n_clusters
    truth = np.concatenate([split.y[split.site == site] for site in np.unique(split.site)])
    runs = [federate(method, split.rows_per_site(), n_clusters, seed)[0] for seed in range(n_seeds)]
    labels = [np.concatenate(run) for run in runs]
    return float(np.mean([purity(truth, own) for own in labels])), float(np.mean([ari(truth, own) for own in labels]))


# --- the figures ---


@needs_splits
@pytest.mark.parametrize(("name", "figures"), [("EC", (0.66, 0.45)), ("US", (0.46, 0.11)), ("VE", (0.355, 0.053))])
def test_nnfc_scores_as_the_authors_code_does(name: str, figures: tuple[float, float]) -> None:
    found = mean_scores(NNFC(), name, 8)
    assert found[0] == pytest.approx(figures[0], abs=0.06)
    assert found[1] == pytest.approx(figures[1], abs=0.08)


@needs_splits
@pytest.mark.parametrize(("name", "majority"), [("US", 0.337), ("VE", 0.298)])
def test_afcl_ends_in_one_cluster_after_the_authors_100_rounds(name: str, majority: float) -> None:
    assert mean_scores(AFCL(), name, 3) == pytest.approx((majority, 0.0), abs=0.0006)


@needs_splits
def test_afcl_has_clusters_after_30_rounds() -> None:
    assert mean_scores(AFCL(max_rounds=30), "EC", 8) == pytest.approx((0.72, 0.36), abs=0.06)


# --- NN-FC ---


def slow_density_peaks(points: FloatArray, n_neighbours: int, count: int) -> list[int]:
    """SNN-DPC, word by word."""
    n = len(points)
    d = [[float(np.linalg.norm(a - b)) for b in points] for a in points]
    near = [sorted(range(n), key=lambda j, i=i: (d[i][j], j != i))[:n_neighbours] for i in range(n)]  # type: ignore[misc]
    similarity = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            shared = set(near[i]) & set(near[j])
            if i != j and {i, j} <= shared:
                similarity[i, j] = len(shared) ** 2 / sum(d[i][p] + d[j][p] for p in sorted(shared))
    rho = np.sort(similarity)[:, -n_neighbours:].sum(axis=1)
    reach = [sum(d[i][j] for j in near[i]) for i in range(n)]
    order = sorted(range(n), key=lambda i: (-round(rho[i], 9), i))
    delta = np.zeros(n)
    for place in range(1, n):
        i = order[place]
        delta[i] = min(d[i][j] * (reach[i] + reach[j]) for j in order[:place])
    delta[order[0]] = max(delta)
    return sorted(range(n), key=lambda i: (-rho[i] * delta[i], i))[:count]


@pytest.mark.parametrize("n_neighbours", [2, 3, 6])
def test_density_peaks_are_those_of_the_slow_loops(n_neighbours: int) -> None:
    for seed in range(5):
        points = np.random.default_rng(seed).normal(size=(40, 3))
        peaks = density_peaks(points, n_neighbours, 4).tolist()
        assert peaks == slow_density_peaks(points, n_neighbours, 4)


def test_size_of_blocks_does_not_change_the_peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(0).normal(size=(101, 3))
    at_once = density_peaks(points, 3, 20)
    monkeypatch.setattr(nnfc, "BLOCK", 500)
    np.testing.assert_array_equal(density_peaks(points, 3, 20), at_once)


def test_points_that_coincide_have_finite_density() -> None:
    points = np.repeat(np.random.default_rng(0).normal(size=(10, 2)), 3, axis=0)
    assert sorted(density_peaks(points, 2, 30)) == list(range(30))
    assert density_peaks(points[:1], 2, 1).tolist() == [0]


def test_laplace_noise_is_weak_and_centred_while_the_shipped_one_shifts() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 4))
    weak = perturbed(rows, "laplace", rng) - rows
    assert 0.0 < np.abs(weak).max() < smallest_distance(rows)
    assert (weak > 0).mean() == pytest.approx(0.5, abs=0.05)
    shift = perturbed(rows, "as_shipped", rng) - rows
    assert shift.mean() == pytest.approx(0.25, abs=0.01)
    assert shift.max() <= 0.5 + 1e-12
    assert perturbed(rows, "none", rng) is rows


def test_noise_of_equal_rows_or_of_one_is_the_uniform_part_alone() -> None:
    rng = np.random.default_rng(0)
    for rows in (np.zeros((1, 3)), np.zeros((4, 3))):
        np.testing.assert_array_equal(perturbed(rows, "laplace", rng), rows)
        assert perturbed(rows, "as_shipped", rng).min() > 0.0


def test_centroids_of_nnfc_are_uploaded_centres() -> None:
    rows = [np.random.default_rng(n).normal(size=(30, 2)) for n in range(3)]
    labels, answer, port = federate(NNFC(), rows, 4)
    assert answer.centroids.shape == (4, 2)
    assert [len(own) for own in labels] == [30, 30, 30]
    assert port.asked == [("summarize", ["0", "1", "2"]), ("centroids", [])]


# --- AFCL ---


def slow_interact(objects: FloatArray, rate: FloatArray, seeds: FloatArray, wins: FloatArray) -> None:
    """The server's step, word by word."""
    for o in objects:
        distance = [float(((o - m) ** 2).sum()) for m in seeds]
        winner = int(np.argmin([share * d for share, d in zip(wins / wins.sum(), distance, strict=True)]))
        wins[winner] += 1
        apart = [float(((m - seeds[winner]) ** 2).sum()) for m in seeds]
        for number in [n for n, gap in enumerate(apart) if gap <= distance[winner] or gap <= 1e-4]:
            seeds[number] += rate * (o - seeds[number])


def test_compiled_step_of_the_server_is_that_of_the_slow_loops() -> None:
    rng = np.random.default_rng(0)
    for n_seeds in (1, 2, 9):
        objects, rate = rng.normal(size=(200, 4)), rng.uniform(0.0, 0.05, 4)
        seeds, wins = rng.normal(size=(n_seeds, 4)), np.ones(n_seeds)
        slow_seeds, slow_wins = seeds.copy(), wins.copy()
        interact(objects, rate, seeds, wins)
        slow_interact(objects, rate, slow_seeds, slow_wins)
        np.testing.assert_allclose(seeds, slow_seeds, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(wins, slow_wins)


def test_only_some_sites_take_part_in_a_round_and_nobody_else_is_asked() -> None:
    rows = [np.random.default_rng(n).normal(size=(12, 2)) for n in range(6)]
    _, answer, port = federate(AFCL(max_rounds=40), rows, 2)
    everybody = [str(n) for n in range(6)]
    rounds = [names for kind, names in port.asked if kind == "compete"]
    assert port.asked[0] == ("seed", everybody)
    assert 20 < len(rounds) <= 40
    assert sum(names == everybody for names in rounds) < 10
    assert len({tuple(names) for names in rounds}) > 10
    assert answer.uplinks == port.traffic.uplinks == 6 + sum(len(names) for names in rounds)
    assert answer.details == {"rounds": 40, "k": len(answer.centroids)}


def test_all_rows_can_be_restored_from_a_message() -> None:
    rng = np.random.default_rng(0)
    rows, seeds, rates = rng.normal(size=(30, 3)), rng.normal(size=(4, 3)), np.full(3, 1e-3)
    message = AFCLSite("a", rows, rng).on_compete(Message("compete", {"seeds": seeds, "rates": rates}))
    restored = Heard.of(message, seeds).restored(rates)
    expected = np.vstack([rows, seeds])
    np.testing.assert_allclose(np.sort(restored, axis=0), np.sort(expected, axis=0), atol=1e-12)


def test_who_takes_part_least_is_replayed_but_not_who_was_never_heard() -> None:
    times = np.array([9, 1, 0, 8])
    replayed, balance = attend(times, np.array([True, False, False, False]))
    assert replayed.tolist() == [False, True, False, False]
    assert times.tolist() == [10, 2, 0, 8]
    np.testing.assert_allclose(balance, 1 / (1 + np.array([10 / 19, 2 / 20, 0 / 19, 8 / 19])))


def test_features_along_which_rows_are_near_get_larger_shares() -> None:
    changes = np.array([[0.1, -0.4, 0.0], [0.2, 0.2, 0.0]])
    found = shares([changes, changes], delta=8.0)
    total = 2 * np.abs(changes).sum(axis=0)
    expected = [1 / sum((total[j] / total[h]) ** (1 / 7) for h in (0, 1)) for j in (0, 1)]
    np.testing.assert_allclose(found, [*expected, 0.0])
    assert found[0] > found[1]
    assert shares([np.zeros((2, 3))], delta=8.0).tolist() == [0.0, 0.0, 0.0]


def test_seeds_that_are_chained_become_one() -> None:
    seeds = np.array([[0.0, 0.0], [5.0, 5.0], [0.0016, 0.0], [0.0008, 0.0008], [0.0, 0.1]])
    assert merged(seeds, 1e-3).tolist() == [[0.0, 0.0], [5.0, 5.0], [0.0, 0.1]]


def test_no_message_makes_seeds_overflow() -> None:
    seeds = np.array([[0.0, 1.0], [1.0, 0.0]])
    heard = Heard(np.full((50, 2), 1e99), np.zeros(50, dtype=np.int64), seeds)
    for rates in ([1e-40, 1e-3], [0.0, 5.0]):
        after = moved(seeds, np.array(rates), [(heard, 0.5), (heard, 1.0)])
        assert np.isfinite(after).all()
        assert np.abs(after).max() <= 1e100


# --- both ---

METHODS: list[Method] = [NNFC(), NNFC(noise="none"), NNFC(noise="laplace", neighbours=4), AFCL()]
BLOB = np.random.default_rng(0).normal(size=(24, 3))
DEGENERATE = {
    "one-row sites": [BLOB[[n]] for n in range(5)],
    "constant columns": [BLOB[:12] * [1, 0, 1] + [0, 0.1, 0], BLOB[12:] * [1, 0, 1] + [0, 0.1, 0]],
    "duplicated rows": [np.repeat(BLOB[:4], 6, axis=0), np.repeat(BLOB[2:6], 6, axis=0)],
    "all rows equal": [np.full((7, 3), 0.3), np.full((2, 3), 0.3)],
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_degenerate_sites_get_an_answer_or_a_named_error(method: Method, case: str) -> None:
    for n_clusters in (1, 4):
        try:
            labels, answer, _ = federate(method, DEGENERATE[case], n_clusters)
        except GoldError:
            assert n_clusters == 4
            continue
        assert np.isfinite(answer.centroids).all()
        assert [len(own) for own in labels] == [len(own) for own in DEGENERATE[case]]


def test_settings_out_of_range_are_refused() -> None:
    for refused in (
        lambda: NNFC(neighbours=1),
        lambda: NNFC(max_centres=0),
        lambda: NNFC(noise="gauss"),  # type: ignore[arg-type]
        lambda: AFCL(max_rounds=-1),
        lambda: AFCL(learning_rate=0.0),
        lambda: AFCL(delta=1.0),
    ):
        with pytest.raises(BadSettings):
            refused()
