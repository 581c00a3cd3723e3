"""The benchmark on generated families scores what it says it scores."""

import json
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from goldfc._types import IntArray
from goldfc.errors import BadSettings, TooFewMicroClusters
from goldfc.learning.judge import KINDS
from goldfc_bench.cli import main
from goldfc_bench.errors import NotForThis
from goldfc_bench.families import BACKGROUND, FAMILIES, Family, Table, equal, round_clusters
from goldfc_bench.rows import RowFile
from goldfc_bench.score import ari
from goldfc_bench.shapes import run
from goldfc_bench.shapes.ours import DEFAULT, default, only
from goldfc_bench.shapes.page import as_markdown
from goldfc_bench.shapes.results import Results, short
from goldfc_bench.shapes.rivals import K_MEANS, POOLED, filled, mixed_mixture
from goldfc_bench.shapes.sites import Outcome, Sites, draw_sites


def three_blobs(rng: np.random.Generator) -> Table:
    table = round_clusters(rng, n_rows=240, d=3, gap=8.0, masses=equal(3))
    y = table.y.copy()
    y[:20] = BACKGROUND
    return Table(table.X, y)


BLOBS = Family("three blobs", "convex", three_blobs)
MIXED = next(family for family in FAMILIES if family.name == "all informative")


def row(family: str, method: str, score: float | None, **others: object) -> run.Row:
    plain = run.Row(family, 0, method, "done", "", score, 100, 3, 3, 0.5, details={"kind": "shared"})
    return replace(plain, **others)  # type: ignore[arg-type]


def rows_of(family: Family, score: Callable[[str], float | None]) -> list[run.Row]:
    return [row(family.name, method, score(method)) for method in run.methods_for(family)]


# --- what methods get ---


def test_no_method_is_told_the_truth() -> None:
    assert {field.name for field in fields(Sites)} == {"X", "scaled", "site", "row", "categorical", "n_clusters"}


@pytest.mark.parametrize("family", [BLOBS, MIXED], ids=lambda family: family.name)
def test_all_kinds_together_are_the_default(family: Family) -> None:
    sites, _ = draw_sites(family, 0)
    whole, parts = default(sites, 5), only(sites, 5, kinds=KINDS)
    np.testing.assert_array_equal(whole.labels, parts.labels)
    np.testing.assert_array_equal(whole.certainty, parts.certainty)


def test_a_draw_is_the_same_every_time() -> None:
    (first, truth), (again, same) = draw_sites(BLOBS, 1), draw_sites(BLOBS, 1)
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.site, again.site)
    np.testing.assert_array_equal(truth, same)


def test_copies_of_a_row_get_one_label() -> None:
    sites, _ = draw_sites(BLOBS, 0)
    assert len(np.unique(sites.row)) < len(sites.row)
    labels = sites.label_once(lambda rows: np.arange(len(rows)))
    assert len(np.unique(labels)) == len(np.unique(sites.row))
    assert all(len(np.unique(labels[sites.row == number])) == 1 for number in np.unique(sites.row))


@pytest.mark.parametrize("name", POOLED)
def test_pooled_algorithms_find_clear_blobs(name: str) -> None:
    sites, truth = draw_sites(BLOBS, 0)
    made = run.run_method(run.Job(BLOBS, 0, (name,)), name, sites, truth)
    assert made.status == "done", made.reason
    assert made.ari is not None
    assert made.ari > 0.9


def test_the_pooled_mixed_mixture_finds_mixed_clusters() -> None:
    sites, truth = draw_sites(MIXED, 0)
    assert ari(truth, mixed_mixture(sites, 0).labels) > 0.85


def test_noise_gets_the_label_of_the_nearest_row_that_has_one() -> None:
    rows = np.array([[0.0], [1.0], [10.0], [9.0]])
    np.testing.assert_array_equal(filled(np.array([0, -1, 1, -1]), rows), [0, 0, 1, 1])
    np.testing.assert_array_equal(filled(np.full(4, -1), rows), 0)


# --- what is scored ---


def test_background_is_not_scored() -> None:
    truth = np.array([0, 0, 1, 1, BACKGROUND, BACKGROUND])
    sites = Sites(np.zeros((6, 1)), np.zeros((6, 1)), np.zeros(6, dtype=np.int64), np.arange(6), (), 2)
    outcome = Outcome(np.array([1, 1, 0, 0, 0, 1]), np.array([0.95, 0.9, 0.9, 0.9, 0.1, 0.1]))
    made = score(lambda *_: outcome, sites, truth)
    assert made.ari == 1.0
    assert made.certainty[-1] == (4, 3.65, 4)
    assert made.certainty[1] == (0, 0.0, 0)


def score(method: Callable[[Sites, int], Outcome], sites: Sites, truth: IntArray) -> run.Row:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, run.methods_for.__name__, lambda _: {"any": method})
        return run.run_method(run.Job(BLOBS, 0, ("any",)), "any", sites, truth)


def breaking(error: Exception) -> Callable[[Sites, int], Outcome]:
    def method(_sites: Sites, _seed: int) -> Outcome:
        raise error

    return method


@pytest.mark.parametrize(
    ("error", "status", "figure"),
    [
        (NotForThis("no"), "skipped", None),
        (TooFewMicroClusters("no"), "failed", 0.0),
        (ValueError("no"), "error", 0.0),
    ],
)
def test_what_fails_counts_and_what_is_skipped_does_not(error: Exception, status: str, figure: float | None) -> None:
    made = score(breaking(error), *draw_sites(BLOBS, 0))
    assert (made.status, made.ari) == (status, figure)
    assert "no" in made.reason


def test_what_takes_too_long_has_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(_sites: Sites, _seed: int) -> Outcome:
        time.sleep(5.0)
        raise AssertionError

    monkeypatch.setattr(run, "LIMIT", 0.05)
    made = score(sleep, *draw_sites(BLOBS, 0))
    assert (made.status, made.ari, made.certainty) == ("timeout", None, ())


def test_rows_are_right_up_to_renaming() -> None:
    truth = np.array([0, 0, 0, 1, 1, 2])
    np.testing.assert_array_equal(run.is_right(truth, np.array([2, 2, 2, 0, 0, 1])), 1.0)
    np.testing.assert_array_equal(run.is_right(truth, np.array([0, 0, 3, 1, 1, 2])), [1, 1, 0, 1, 1, 1])
    np.testing.assert_array_equal(run.is_right(truth, np.zeros(6, dtype=np.int64)), [1, 1, 1, 0, 0, 0])


# --- rows on disk ---


def test_rows_that_are_there_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def pretend(job: run.Job) -> list[run.Row]:
        asked.append(job.methods)
        return [row(BLOBS.name, name, 1.0, certainty=((3, 2.5, 2),)) for name in job.methods]

    monkeypatch.setattr(run, run.run_job.__name__, pretend)
    file, ticks = RowFile(tmp_path / "deep" / "rows.jsonl", run.Row.from_json), []
    first = run.run_all([BLOBS], 1, file, 1, lambda: ticks.append(0))
    assert [made.method for made in first] == list(run.methods_for(BLOBS))
    lines = file.path.read_text(encoding="utf-8").splitlines(keepends=True)
    file.path.write_text("".join(lines[:-1]) + lines[-1][:20], encoding="utf-8")  # killed in the last row
    again = run.run_all([BLOBS], 1, file, 1, lambda: ticks.append(0))
    assert asked == [tuple(run.methods_for(BLOBS)), (first[-1].method,)]
    assert again == first == file.read()
    assert len(ticks) == 2


def test_rows_of_other_families_stay_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, run.run_job.__name__, lambda job: [row(BLOBS.name, name, 1.0) for name in job.methods])
    file = RowFile(tmp_path / "rows.jsonl", run.Row.from_json)
    file.append(row("another", DEFAULT, 0.5))
    run.run_all([BLOBS], 1, file, 1, lambda: None)
    assert [made.family for made in file.read()].count("another") == 1


def test_an_unknown_family_is_refused() -> None:
    with pytest.raises(BadSettings, match="no family 'squares'"):
        run.families_named(["squares"])


# --- what the page says ---


def test_the_judge_and_the_price_are_told_from_means() -> None:
    figures: dict[str, float | None] = {
        **{DEFAULT: 0.8, "default, one site": 0.9, "own alone": 0.85, "linked alone": None},
        **{"default, number proposed": 0.4, K_MEANS: 0.7, "pooled Ward": None},
    }
    results = Results([BLOBS], rows_of(BLOBS, lambda method: figures.get(method, 0.1)))
    assert results.best_kind(BLOBS.name) == ("own alone", 0.85)
    assert results.loss(BLOBS.name) == pytest.approx(0.05)
    assert results.price(BLOBS.name) == pytest.approx(0.1)
    verdicts = {target.what.split(",")[0]: target.met for target in results.targets()}
    assert verdicts["mean ARI of the default"] is False
    assert verdicts["its lead over the best single pooled algorithm"] is True
    assert verdicts["price of federation"] is False
    assert verdicts["mixed tables"] is None


def test_calibration_error_is_the_distance_of_certainty_from_truth() -> None:
    bins = [(0, 0.0, 0)] * 8 + [(10, 8.0, 10), (30, 29.0, 26)]
    results = Results([BLOBS], [row(BLOBS.name, DEFAULT, 1.0, certainty=bins)])
    assert results.calibration_error() == pytest.approx((2.0 + 3.0) / 40.0)


def test_a_failure_is_told_on_the_page() -> None:
    rows = rows_of(BLOBS, lambda _: 0.5)
    rows[-1] = replace(rows[-1], status="error", reason="ValueError: out of luck", ari=0.0)
    assert f"{rows[-1].method} on three blobs, error: ValueError: out of luck" in as_markdown(
        Results([BLOBS], rows), ""
    )


def test_figures_are_short() -> None:
    assert [short(value) for value in (0.934, -0.02, 1.0, float("nan"))] == [".93", "-.02", "1.00", "-"]


def test_the_command_ends_in_a_page_a_picture_and_rows(tmp_path: Path) -> None:
    options = ["--draws", "1", "--family", "150 rows", "--jobs", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, ["shapes", *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "shapes" / "README.md").read_text(encoding="utf-8")
    assert "| 150 rows | " in page
    assert "price of federation" in page
    assert "150 rows" in (tmp_path / "shapes" / "shapes.svg").read_text(encoding="utf-8")
    lines = (tmp_path / "shapes" / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["status"] for line in lines} == {"done"}
    assert [json.loads(line)["method"] for line in lines] == list(run.methods_for(BLOBS))
