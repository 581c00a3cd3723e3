"""The number of clusters that others would choose: right where clusters are clear, and never told the truth."""

import numpy as np
import pytest

from goldfc_bench.cases import dataset_of
from goldfc_bench.methods.chosen import CRITERIA, MOST_ROWS, TRIED, ChosenK, sample
from goldfc_bench.run import Job, run_job
from goldfc_bench.score import ari


@pytest.mark.parametrize("by", CRITERIA)
@pytest.mark.parametrize("clusters", [2, 5])
def test_clear_clusters_are_counted(by: str, clusters: int) -> None:
    complete = dataset_of(f"separate-{clusters}-1")
    rng = np.random.default_rng(0)
    assert CRITERIA[by](sample(complete.X, rng), rng) == clusters


@pytest.mark.parametrize("then", ["OneShot", "pooled k-means"])
def test_the_method_gets_the_chosen_number_and_not_the_true_one(then: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CRITERIA, "gap", lambda rows, rng: 2)  # noqa: ARG005
    run = run_job(Job("iris", "even-3", ChosenK.name, 0, {"by": "gap", "then": then}))
    assert (run.status, run.clusters, run.details["proposed"]) == ("done", 2, [2])


def test_a_sample_is_no_larger_than_said_and_numbers_tried_ascend() -> None:
    rows = np.arange(3.0 * MOST_ROWS).reshape(-1, 1)
    assert len(sample(rows, np.random.default_rng(0))) == MOST_ROWS
    assert list(TRIED) == sorted(set(TRIED))


def test_clusters_of_a_separate_mixture_can_be_told_apart() -> None:
    for number in (2, 30):
        complete = dataset_of(f"separate-{number}-0")
        assert complete.n_clusters == number
        means = np.array([complete.X[complete.y == label].mean(axis=0) for label in range(number)])
        nearest = ((complete.X[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
        assert ari(complete.y, nearest) > 0.999
