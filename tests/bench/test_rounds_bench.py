"""The benchmark of lasting ids, in a quick form."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from goldfc import Model, fuse, label, summarize
from goldfc._types import FloatArray
from goldfc.randomness import generator
from goldfc_bench.cli import main
from goldfc_bench.rounds import growth, run, scenes
from goldfc_bench.rounds.growth import Growth
from goldfc_bench.rounds.page import targets_of
from goldfc_bench.rounds.run import Row, all_work
from goldfc_bench.rounds.scenes import LEAST_SHARE, PLANTED, ROUNDS, drifting
from goldfc_bench.rounds.ways import FUSION, WAYS, Stream, by_rows, hungarian, nearest_within, with_ids
from goldfc_bench.rows import RowFile
from needs import needs_splits

OLD = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])


@pytest.mark.parametrize("draw", range(6))
def test_what_is_planted_concerns_few_clusters_of_enough_rows(draw: int) -> None:
    rounds = list(drifting(draw))
    assert len(rounds) == ROUNDS
    before = rounds[0].truth
    for revealed in rounds[1:]:
        concerned = set(revealed.truth[~revealed.calm].tolist())
        assert len(concerned) <= 2
        assert bool(concerned) <= (revealed.planted in PLANTED)
        if revealed.planted == "disappeared":
            gone = set(before.tolist()) - set(revealed.truth.tolist())
            assert max(np.mean(before == one) for one in gone) >= LEAST_SHARE / 2.0
        before = revealed.truth


def test_the_same_draw_is_the_same_scene() -> None:
    for one, other in zip(drifting(1), drifting(1), strict=True):
        np.testing.assert_array_equal(one.all_rows, other.all_rows)
        assert one.planted == other.planted


@needs_splits
def test_a_set_is_revealed_bit_by_bit_and_calm_rows_have_the_same_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "ROUNDS", 6)
    rounds = list(scenes.bit_by_bit("EC"))
    assert [len(one.truth) for one in rounds[:4]] == sorted(len(one.truth) for one in rounds[:4])
    assert not rounds[0].calm.any()
    assert set(rounds[-1].rows) < set(rounds[-3].rows)


def test_centroids_are_matched_if_they_are_near_and_each_once() -> None:
    new = np.array([[0.5, 0.0], [1.0, 0.0], [30.0, 30.0], [10.0, 1.0]])
    assert nearest_within(OLD, new) == {0: 0, 3: 1}
    assert hungarian(OLD, new)[3] == 1
    assert len(hungarian(OLD, new)) == len(OLD)


def test_the_best_matching_of_rows_keeps_all_ids_of_a_partition_that_is_the_same() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 2)) + np.repeat([[0.0], [20.0], [40.0]], 100, axis=0)
    last, fresh = model_of(rows), model_of(rows[::-1])
    for _ in range(2):
        matched, (before, now) = by_rows(last, fresh, rows), (label(rows, model)[0] for model in (last, fresh))
        assert [last.ids[matched[int(np.flatnonzero(fresh.ids == one)[0])]] for one in now] == before.tolist()
        last = with_ids(last, fresh, {0: 2, 1: 0, 2: 1})


def model_of(rows: FloatArray) -> Model:
    return fuse([summarize(rows, "north", FUSION.task)[0]], 3, FUSION, generator(0, "server"))


def test_targets_are_counted_over_all_scenes() -> None:
    rows = [
        Row("mixture", "0", "ours", 11, 1000, 995, 5, 0, {"split": 2}, {"split": 2}, (0.9,), (0.9,)),
        Row("set", "EC", "ours", 11, 100, 90, 0, 0, {}, {}, (0.5,), (0.6,)),
    ]
    grown = Growth((1.0,) * 20, (100,) * 20, 1.0, 1.0)
    found = {what: (figure, met) for what, _, figure, met in targets_of(rows, grown)}
    assert found["rows with the same surroundings that kept their id, mixtures"] == ("99.50%", True)
    assert found["rows with the same surroundings that kept their id, sets"] == ("90.00%", False)
    assert found["ARI less that from scratch, sets"] == ("-0.1000", False)
    assert found["planted events that are named, mixtures"] == ("100.0%", True)


def test_the_command_ends_in_a_page_and_in_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "ROUNDS", 3)
    monkeypatch.setattr(scenes, "ROWS_EACH", 100)
    monkeypatch.setattr(run, "STREAMED", 0)
    monkeypatch.setattr(growth, "SITES", 3)
    result = CliRunner().invoke(main, ["rounds", "--quick", "--jobs", "1", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "rounds" / "README.md").read_text(encoding="utf-8")
    assert "| quiet rounds that change an id, mixtures | 0 | 0 of " in page
    rows = RowFile(tmp_path / "rounds" / "rows.jsonl", Row.from_json).read()
    assert {row.work for row in rows} == set(all_work(1, ()))
    assert {row.way for row in rows} == set(WAYS) - set(run.STREAMS)


@pytest.mark.parametrize("way", run.STREAMS)
def test_rivals_see_rows_and_label_them(way: str) -> None:
    pytest.importorskip("river")
    rows = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0.0], [20.0]], 20, axis=0)
    stream = WAYS[way]()
    assert isinstance(stream, Stream)
    assert stream.learn(rows, 2).now.shape == (40,)
