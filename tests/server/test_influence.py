"""How much hangs on a single site."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from goldfc import OneShot, Summary, fuse, summarize
from goldfc._types import FloatArray
from goldfc.errors import BadMessage
from goldfc.message.levels import with_fewest
from goldfc.message.task import Task
from goldfc.randomness import generator
from goldfc.server.influence import LeftOut, adjusted_rand_index, leave_one_out
from sentences import refused
from strategies import blobs, seeds

WAY = OneShot(Task(level=with_fewest(5), rows_each=8), starts=3)
RNG_OF: Callable[[], np.random.Generator] = lambda: generator(0, "server")  # noqa: E731


def summaries_of(*rows: FloatArray) -> list[Summary]:
    return [summarize(own, name, WAY.task)[0] for name, own in zip("abcd", rows, strict=False)]


def left_out_of(summaries: list[Summary], n_clusters: int) -> list[LeftOut]:
    model = fuse(summaries, n_clusters, WAY, RNG_OF())
    return list(leave_one_out(summaries, None, WAY, RNG_OF, model))


@given(st.integers(1, 30), seeds)
def test_agreement_by_mass_is_that_of_rows_repeated(n_labels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.integers(4, size=(2, n_labels))
    mass = rng.integers(1, 6, size=n_labels)
    expected = adjusted_rand_score(np.repeat(one, mass), np.repeat(other, mass))
    assert adjusted_rand_index(one, other, mass.astype(float)) == pytest.approx(expected)


def test_who_has_nothing_of_his_own_changes_nothing() -> None:
    rows, _ = blobs(3, 360, 3, seed=0)
    left_out = left_out_of(summaries_of(*np.split(rows, 4)), 3)
    assert [without.site for without in left_out] == ["a", "b", "c", "d"]
    for without in left_out:
        assert without.agreement == pytest.approx(1.0)
        assert without.clusters == 3


def test_the_result_hangs_on_the_only_site_that_has_a_cluster() -> None:
    rows, truth = blobs(4, 960, 3, seed=1)
    common = np.split(rows[truth < 3], 4)
    left_out = left_out_of(summaries_of(*common[:3], np.vstack([common[3], rows[truth == 3]])), 4)
    assert min(left_out, key=lambda without: without.agreement).site == "d"
    assert left_out[3].agreement < 0.95 < left_out[0].agreement


def test_where_too_little_is_left_there_are_fewer_clusters() -> None:
    rows, _ = blobs(3, 300, 3, seed=0)
    summaries = summaries_of(rows[:10], rows[10:20], rows[20:])
    n_micro = sum(len(summary.centroids) for summary in summaries)
    left_out = left_out_of(summaries, n_micro - 1)
    assert left_out[2].clusters == len(summaries[0].centroids) + len(summaries[1].centroids) < n_micro - 1


def test_two_sites_are_too_few() -> None:
    rows, _ = blobs(3, 180, 3, seed=0)
    assert left_out_of(summaries_of(*np.split(rows, 2)), 3) == []


def test_the_summaries_must_be_those_of_the_model() -> None:
    rows, _ = blobs(3, 360, 3, seed=0)
    summaries = summaries_of(*np.split(rows, 4))
    model = fuse(summaries[:3], 3, WAY, RNG_OF())
    with refused(BadMessage, "summary-missing", "'c'"):
        next(leave_one_out(summaries[:2], 3, WAY, RNG_OF, model))
    with refused(BadMessage, "no-part-in-model", "'d'"):
        next(leave_one_out(summaries, 3, WAY, RNG_OF, model))
    other = summarize(rows[:90] + 1.0, "a", WAY.task)[0]
    with refused(BadMessage, "model-of-other-summary", "'a'"):
        next(leave_one_out([other, *summaries[1:3]], 3, WAY, RNG_OF, model))
