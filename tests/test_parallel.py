"""However work is shared out, the result is the same: threads, processes, blocks, benchmark rows."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone

from goldfc import GOLD, OneShotClustering
from goldfc._parallel import side_by_side
from goldfc._types import FloatArray
from goldfc.learning.paper.competition import Learning
from goldfc.randomness import generator
from goldfc.site.gold import Blocks, learn
from goldfc_bench.run import Job, Rows, run_jobs

JOBS = [1, 2, 5]
# Every process loads everything first.
BACKENDS_AND_JOBS = [*(("threading", n_jobs) for n_jobs in JOBS), *(("loky", n_jobs) for n_jobs in (1, 2, 3))]
both_estimators = pytest.mark.parametrize("estimator", [GOLD(4, random_state=0), OneShotClustering(random_state=0)])


def mixture(n_rows: int, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, 3)) + 5.0 * rng.integers(0, 4, (n_rows, 1))


def negative(number: int) -> int:
    return -number


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_results_come_in_the_order_of_the_items(backend: str) -> None:
    with parallel_config(backend):
        assert list(side_by_side(negative, range(50), 2)) == [-number for number in range(50)]
        assert sorted(side_by_side(negative, range(50), 2, ordered=False)) == list(range(-49, 1))


def test_one_at_a_time_takes_no_items_ahead() -> None:
    items = iter(range(1000))
    assert list(islice(side_by_side(negative, items, 1), 3)) == [0, -1, -2]
    assert next(items) == 3


def test_what_the_context_says_is_used_where_nobody_says_how_many() -> None:
    with parallel_config("threading", n_jobs=2):
        assert list(side_by_side(negative, range(5), None)) == [0, -1, -2, -3, -4]


@pytest.mark.parametrize("n_jobs", JOBS)
def test_blocks_learned_side_by_side_are_those_learned_one_by_one(n_jobs: int) -> None:
    rows = mixture(12_000)
    labels, centroids = learn(rows, "a", Learning(), generator(0), Blocks(5000))
    beside, theirs = learn(rows, "a", Learning(), generator(0), Blocks(5000, n_jobs))
    np.testing.assert_array_equal(labels, beside)
    np.testing.assert_array_equal(centroids, theirs)


@both_estimators
@pytest.mark.parametrize(("backend", "n_jobs"), BACKENDS_AND_JOBS)
def test_labels_do_not_hang_on_jobs_or_backend(estimator: GOLD | OneShotClustering, backend: str, n_jobs: int) -> None:
    rows = mixture(600)
    expected = clone(estimator).fit(rows, groups=np.arange(600) % 4)
    with parallel_config(backend):
        found = clone(estimator).set_params(n_jobs=n_jobs).fit(rows, groups=np.arange(600) % 4)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_array_equal(found.certainty_, expected.certainty_)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_a_single_site_shares_out_its_blocks(backend: str) -> None:
    rows = mixture(6_000)
    expected = GOLD(4, random_state=0, most_at_once=2_000).fit(rows)
    with parallel_config(backend):
        found = GOLD(4, random_state=0, most_at_once=2_000, n_jobs=2).fit(rows)
    np.testing.assert_array_equal(found.labels_, expected.labels_)


def test_benchmark_rows_do_not_hang_on_how_many_are_made_at_a_time(tmp_path: Path) -> None:
    jobs = [Job("SD-200x3", "even-4", "OneShot", seed) for seed in range(3)]
    made = [run_jobs(jobs, Rows(tmp_path / f"{n_jobs}.jsonl"), n_jobs, lambda _: None) for n_jobs in (1, 2)]
    for one, other in zip(*made, strict=True):
        assert one.scores == other.scores
        assert one.bytes_up == other.bytes_up
