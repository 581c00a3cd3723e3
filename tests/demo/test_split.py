from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import KMeans

from goldfc._types import IntArray
from goldfc.demo.data import bundled, scaled_columns
from goldfc.demo.split import (
    ClassRows,
    as_split,
    choose_classes,
    choose_subclusters,
    class_rows,
    cut_class,
    draw_class_count,
    draw_part,
    sample_pool,
    simulate,
    simulate_split,
)
from goldfc.errors import BadSettings

MEASURED = bundled("iris")
IRIS = replace(MEASURED, X=scaled_columns(MEASURED.X))
every_seed = pytest.mark.parametrize("seed", range(10))


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _one_class() -> ClassRows:
    return class_rows(IRIS.X, np.flatnonzero(IRIS.y == 1))


# --- The five steps ---


def test_step_1_a_site_sees_one_class_to_all_of_them() -> None:
    rng = _rng(0)
    assert {draw_class_count(4, rng) for _ in range(200)} == {1, 2, 3, 4}


@every_seed
def test_step_2_classes_are_chosen_without_repetition(seed: int) -> None:
    chosen = choose_classes(6, 4, _rng(seed))
    assert len(set(chosen.tolist())) == 4
    assert set(chosen.tolist()) <= set(range(6))


@every_seed
def test_step_3_every_row_of_a_class_is_in_one_of_at_most_ten_subclusters(seed: int) -> None:
    members = _one_class()
    subcluster = cut_class(members, 10, _rng(seed))
    assert subcluster.shape == members.rows.shape
    assert set(subcluster.tolist()) == set(range(subcluster.max() + 1))
    assert subcluster.max() < 10


def test_step_3_the_number_of_subclusters_is_random() -> None:
    rng = _rng(0)
    assert {cut_class(_one_class(), 3, rng).max() + 1 for _ in range(50)} == {1, 2, 3}


@every_seed
def test_step_3_the_same_row_is_never_in_two_subclusters(seed: int) -> None:
    X = _rng(seed).integers(0, 3, (60, 2)).astype(np.float64)
    subcluster = cut_class(class_rows(X, np.arange(60)), 10, _rng(seed))
    for row in X:
        assert len(set(subcluster[(row == X).all(axis=1)].tolist())) == 1


@every_seed
def test_step_4_takes_one_subcluster_to_all_of_them(seed: int) -> None:
    taken = choose_subclusters(np.array([0, 1, 1, 2, 0]), _rng(seed))
    assert 1 <= len(set(taken.tolist())) == len(taken) <= 3


def test_step_4_takes_any_number_of_them() -> None:
    counts = {len(choose_subclusters(np.array([0, 1, 1, 2, 0]), _rng(seed))) for seed in range(50)}
    assert counts == {1, 2, 3}


def test_step_3_starts_k_means_at_random_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: list[dict[str, object]] = []

    class Watched(KMeans):  # type: ignore[misc]
        def __init__(self, n_clusters: int = 8, **options: object) -> None:
            settings.append(options)
            super().__init__(n_clusters, **options)

    monkeypatch.setattr("goldfc.demo.split.KMeans", Watched)
    cut_class(_one_class(), 10, _rng(0))
    assert (settings[0]["init"], settings[0]["n_init"]) == ("random", 1)


@every_seed
def test_step_4_takes_subclusters_whole_or_not_at_all(seed: int) -> None:
    members = _one_class()
    subcluster = cut_class(members, 10, _rng(seed))
    part = draw_part(members, 10, _rng(seed))
    for number in np.unique(subcluster):
        taken = np.isin(members.rows[subcluster == number], part)
        assert taken.all() or not taken.any()


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 5, 8, 101])
def test_step_5_samples_a_quarter_to_three_quarters_without_replacement(n_rows: int) -> None:
    pool, rng = np.arange(100, 100 + n_rows), _rng(0)
    samples = [sample_pool(pool, rng) for _ in range(300)]
    sizes = {len(sample) for sample in samples}
    fewest, most = -(-n_rows // 4), max(1, 3 * n_rows // 4)
    assert sizes == set(range(fewest, most + 1))
    for sample in samples:
        assert len(set(sample.tolist())) == len(sample)
        assert set(sample.tolist()) <= set(pool.tolist())


# --- Sites ---


def test_sites_hold_rows_in_ascending_order_and_none_twice() -> None:
    for rows in simulate(IRIS.X, IRIS.y, 50, _rng(0)):
        assert len(rows) >= 1
        assert (np.diff(rows) > 0).all()


def test_sites_see_one_class_to_all_of_them_and_some_see_each_number() -> None:
    seen = {len(np.unique(IRIS.y[rows])) for rows in simulate(IRIS.X, IRIS.y, 100, _rng(0))}
    assert seen == {1, 2, 3}


def test_the_same_seed_gives_the_same_sites() -> None:
    assert _equal(simulate(IRIS.X, IRIS.y, 8, _rng(5)), simulate(IRIS.X, IRIS.y, 8, _rng(5)))


def test_another_seed_gives_other_sites() -> None:
    assert not _equal(simulate(IRIS.X, IRIS.y, 8, _rng(5)), simulate(IRIS.X, IRIS.y, 8, _rng(6)))


def test_a_site_does_not_depend_on_how_many_there_are() -> None:
    assert _equal(simulate(IRIS.X, IRIS.y, 4, _rng(5)), simulate(IRIS.X, IRIS.y, 40, _rng(5))[:4])


def test_simulating_draws_nothing_from_the_callers_generator() -> None:
    rng = _rng(5)
    simulate(IRIS.X, IRIS.y, 4, rng)
    assert rng.random() == _rng(5).random()


def test_simulating_leaves_the_global_random_state_alone() -> None:
    np.random.seed(3)  # noqa: NPY002  (the global state is what this is about)
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    simulate(IRIS.X, IRIS.y, 3, _rng(0))
    assert np.random.random() == expected  # noqa: NPY002


@every_seed
def test_classes_of_the_same_few_rows_are_no_trouble(seed: int) -> None:
    rng = _rng(seed)
    X, y = rng.integers(0, 2, (30, 2)).astype(np.float64), rng.integers(0, 4, 30)
    assert len(simulate(X, y, 20, rng)) == 20


def test_labels_may_be_any_numbers() -> None:
    assert _equal(simulate(IRIS.X, IRIS.y * 7 - 3, 5, _rng(1)), simulate(IRIS.X, IRIS.y, 5, _rng(1)))


def test_one_subcluster_at_most_means_whole_classes() -> None:
    for rows in simulate(IRIS.X, IRIS.y, 20, _rng(2), max_subclusters=1):
        pool = np.isin(IRIS.y, IRIS.y[rows]).sum()
        assert pool / 4 <= len(rows) <= 3 * pool / 4


@pytest.mark.parametrize(("n_sites", "max_subclusters"), [(0, 10), (8, 0)])
def test_no_sites_and_no_subclusters_are_refused(n_sites: int, max_subclusters: int) -> None:
    with pytest.raises(BadSettings, match="at least 1"):
        simulate(IRIS.X, IRIS.y, n_sites, _rng(0), max_subclusters=max_subclusters)


# --- Splits ---


def test_a_simulated_split_points_into_its_data_set() -> None:
    split = simulate_split(IRIS, 6, _rng(0))
    assert split.dataset == "iris"
    assert split.n_sites == 6
    assert np.array_equal(split.X, IRIS.X[split.row])
    assert np.array_equal(split.y, IRIS.y[split.row])


def test_a_split_holds_what_the_sites_hold() -> None:
    sites = simulate(IRIS.X, IRIS.y, 6, _rng(0))
    split = as_split(IRIS, sites)
    assert _equal([split.row[split.site == site] for site in range(6)], sites)


def _equal(some: list[IntArray], others: list[IntArray]) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(some, others, strict=True))
