"""joblib's Ray backend, on a cluster of one machine that the test starts: the same results."""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, _parallel_backends, delayed, parallel_config
from joblib.pool import MemmappingPool, PicklingPool
from sklearn.base import clone

from goldfc import GOLD, OneShotClustering
from goldfc.learning.paper.competition import Learning
from goldfc.randomness import generator
from goldfc.site.gold import Blocks, learn
from goldfc_bench.run import Job, Rows, run_jobs
from transport.flower.loopback import RAY

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    from ray.util.joblib import register_ray  # noqa: PLC0415 (only where it is installed)

    with pytest.MonkeyPatch.context() as patch:
        for setting in RAY.items():
            patch.setenv(*setting)
        ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    register_ray()  # type: ignore[no-untyped-call]
    bases = PicklingPool.__bases__  # for which Ray puts its own
    with pytest.MonkeyPatch.context() as patch:
        keep_workers(patch)
        yield
    PicklingPool.__bases__ = bases
    ray.shutdown()


def keep_workers(patch: pytest.MonkeyPatch) -> None:
    """Those of one call of joblib are those of the next: to load everything takes longer than their work."""
    pool_of = cache(MemmappingPool)
    patch.setattr(_parallel_backends, "MemmappingPool", lambda n_jobs, **_: pool_of(n_jobs))
    for name in ("close", "terminate"):
        patch.setattr(MemmappingPool, name, lambda _: None)


def test_work_is_done_on_the_cluster() -> None:
    with parallel_config("ray"):
        found = set(Parallel(n_jobs=2)(delayed(os.getpid)() for _ in range(8)))
    assert found.isdisjoint({os.getpid()})


def test_sites_on_a_cluster_give_the_same_labels() -> None:
    rng = np.random.default_rng(0)
    rows, groups = rng.normal(size=(400, 3)) + 5.0 * rng.integers(0, 3, (400, 1)), np.arange(400) % 4
    for estimator in (GOLD(3, random_state=0), OneShotClustering(random_state=0)):
        expected = clone(estimator).fit(rows, groups=groups)
        with parallel_config("ray"):
            found = clone(estimator).set_params(n_jobs=2).fit(rows, groups=groups)
        np.testing.assert_array_equal(found.labels_, expected.labels_)


def test_blocks_on_a_cluster_give_the_same_micro_clusters() -> None:
    rows = np.random.default_rng(0).normal(size=(10_001, 2))
    labels, centroids = learn(rows, "a", Learning(), generator(0), Blocks(5_000))
    with parallel_config("ray"):
        beside, theirs = learn(rows, "a", Learning(), generator(0), Blocks(5_000, n_jobs=2))
    np.testing.assert_array_equal(labels, beside)
    np.testing.assert_array_equal(centroids, theirs)


def test_benchmark_rows_on_a_cluster_are_the_same(tmp_path: Path) -> None:
    jobs = [Job("SD-200x3", "even-4", "OneShot", seed) for seed in range(2)]
    alone = run_jobs(jobs, Rows(tmp_path / "alone.jsonl"), 1, lambda _: None)
    with parallel_config("ray"):
        beside = run_jobs(jobs, Rows(tmp_path / "beside.jsonl"), 2, lambda _: None)
    assert [run.scores for run in alone] == [run.scores for run in beside]
    assert all(run.status == "done" for run in beside)
