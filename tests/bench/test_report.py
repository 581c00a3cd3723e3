"""The report says what the rows say: ranks, signs, differences, failures, and what is missing."""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from goldfc_bench.cli import main
from goldfc_bench.errors import DataNotFound
from goldfc_bench.experiments import degree_of
from goldfc_bench.paper import EVALUATIONS, paper_figures
from goldfc_bench.report import write_report
from goldfc_bench.report.figures import LABEL_GAP, STYLES, Curve, Heat, draw_heat, draw_lines, draw_times, spread
from goldfc_bench.report.parts import Table
from goldfc_bench.report.ranks import best_and_second, growth_exponent, mean_ranks, sign_against
from goldfc_bench.report.sections import degree
from goldfc_bench.report.sections.ablation import paper_ablation, wins_of_both
from goldfc_bench.report.sections.degree import degrees_of
from goldfc_bench.report.sections.granularity import levels_of
from goldfc_bench.report.sections.performance import (
    cells_of,
    gold_rank_table,
    grids_of,
    paper_table,
    performance,
    score_table,
)
from goldfc_bench.report.sections.seconds import growth_table, rows_of
from goldfc_bench.report.sections.unknown import sentence_of, separate_table, unknown, way_of
from goldfc_bench.report.tables import (
    CORESET,
    NINE,
    OURS,
    RIVALS,
    change_table,
    curves_of,
    duel,
    failures_of,
    origin,
    ranges,
    seconds_of,
)
from goldfc_bench.rows import Status
from goldfc_bench.run import Rows, Run

TWELVE = (*NINE, OURS, *RIVALS)
TOO_FEW = "8 clusters were asked for, but only {} kinds of micro-clusters can be told apart."


def make_run(dataset: str = "EC", method: str = "GOLD", seed: int = 0, score: float = 0.5, **changes: Any) -> Run:
    scores = {(evaluation, index): score for evaluation, indices in EVALUATIONS.items() for index in indices}
    run = Run(dataset, "paper", method, {}, seed, "done", "", scores, 100, 3, 0.2, 0.1, 8, 8, 4000, 500, {}, "0.1.0")
    return replace(run, **changes)


def failed(run: Run, reason: str = "not done within 60 s", status: Status = "timeout") -> Run:
    nothing = {key: np.nan if key[1] in ("SC", "CH") else 0.0 for key in run.scores}
    return replace(run, status=status, reason=reason, scores=nothing, details={})


def performance_rows() -> Iterator[Run]:
    for dataset in ("EC", "US"):
        for place, method in enumerate(TWELVE):
            for seed in range(2):
                run = make_run(dataset, method, seed, 0.3 + 0.02 * place + 0.01 * seed)
                lost = method == "FedSC" and dataset == "US"
                yield failed(run, TOO_FEW.format(3 + seed), "failed") if lost else run


def level_rows() -> Iterator[Run]:
    found = {0: [9, 4], 1: [8, 5, 3]}
    for seed, levels in found.items():
        for which in ("first", "without"):
            for level in (1, 2, 3):
                settings = {"levels": which, "level": level}
                run = make_run(
                    "EC", "GOLD ablated", seed, 0.4 + 0.1 * seed, settings=settings, details={"levels": levels}
                )
                lacking = which == "without" and level > len(levels)
                yield failed(run, f"There is no level {level} to leave out.", "skipped") if lacking else run


def unknown_rows() -> Iterator[Run]:
    yield make_run("iris", OURS, score=0.6, settings={"given_k": True})
    for seed, proposed in enumerate((2, 4)):
        settings = {"given_k": False}
        yield make_run("iris", OURS, seed, 0.54, settings=settings, details={"proposed": [proposed, 3]})
    for by, score in (("silhouette", 0.5), ("gap", 0.4)):
        choice = {"by": by, "then": OURS}
        yield make_run("iris", "k chosen on pooled rows", score=score, settings=choice, details={"proposed": [2]})
    for clusters, proposed in ((2, 2), (7, 8)):
        yield make_run(
            f"separate-{clusters}-0",
            OURS,
            split="even-2",
            settings={"given_k": False},
            details={"proposed": [proposed]},
        )


def rows_of_all() -> dict[str, list[Run]]:
    degree = [
        make_run(method=method, score=0.5 - 0.1 * draw, split=f"non-icd-8-{draw}")
        for method in TWELVE
        for draw in (0, 1)
    ]
    ablated = [
        make_run(method="GOLD ablated", score=0.3 + 0.1 * fcpl + 0.2 * mcpl, settings={"fcpl": fcpl, "mcpl": mcpl})
        for fcpl in (False, True)
        for mcpl in (False, True)
    ]
    sites = [make_run(method=method, split=f"non-icd-{count}-0") for method in TWELVE for count in (100, 200, 300)]
    sites[-1:] = [failed(sites[-1])]
    times = [
        make_run(f"SD-{rows}x{features}", method, seconds_sites=rows * features / 1e5, seconds_server=0.0)
        for method in TWELVE
        for rows, features in ((1000, 10), (2000, 10), (500, 100), (500, 1000))
    ]
    hyper = [
        make_run(score=0.4 + rate, settings={"learning_rate": rate, "initial_fraction": fraction})
        for rate in (0.001, 0.05)
        for fraction in (0.3, 0.5)
    ]
    return {
        "performance": list(performance_rows()),
        "unknown": list(unknown_rows()),
        "degree": degree,
        "ablation": ablated,
        "granularity": list(level_rows()),
        "sites": sites,
        "time": times,
        "hyper": hyper,
    }


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on made-up rows of all experiments but the picture."""
    folder = tmp_path_factory.mktemp("rows")
    for name, runs in rows_of_all().items():
        Rows(folder / f"{name}.jsonl").rewrite(runs)
    (folder / "degrees.json").write_text(json.dumps({"EC non-icd-8-0": 0.2, "EC non-icd-8-1": 0.6}), encoding="utf-8")
    write_report(folder, folder)
    return folder


@pytest.fixture(scope="module")
def page(out: Path) -> str:
    return (out / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def readme(out: Path) -> str:
    return (out / "README.md").read_text(encoding="utf-8")


def texts(table: Table) -> dict[str, list[str]]:
    return {row[0].text: [entry.text for entry in row[1:]] for row in (*table.rows, *table.foot)}


# --- who is better ---


def test_equal_values_share_best_and_second() -> None:
    assert best_and_second([0.5, 0.7, 0.7, 0.6]) == ["", "best", "best", "second"]
    assert best_and_second([0.5, 0.6, 0.6, np.nan]) == ["second", "best", "best", ""]


def test_what_looks_equal_is_equal() -> None:
    assert best_and_second([0.70004, 0.70001, 0.2]) == ["best", "best", "second"]


def test_mean_ranks_of_a_hand_worked_example() -> None:
    # ranks 1, 2.5, 2.5 and 2, 1, 3
    means = np.array([[0.9, 0.5, 0.5], [0.2, 0.4, 0.1]])
    np.testing.assert_allclose(mean_ranks(means), [1.5, 1.75, 2.75])


def test_an_undefined_score_is_last() -> None:
    np.testing.assert_allclose(mean_ranks(np.array([[np.nan, -0.3, np.nan, 0.1]])), [3.5, 2.0, 3.5, 1.0])


def test_signs_are_from_golds_point_of_view() -> None:
    gold = np.linspace(0.2, 0.9, 8)
    better = gold - np.linspace(0.01, 0.08, 8)
    assert sign_against(gold, better) == "+"
    assert sign_against(better, gold) == "-"


def test_a_sign_needs_enough_data_sets_that_differ() -> None:
    gold = np.linspace(0.2, 0.9, 8)
    assert sign_against(gold, gold) == "="
    assert sign_against(gold[:5], gold[:5] - 0.1) == "="
    assert sign_against(gold, np.where(np.arange(8) < 5, gold - 0.1, gold)) == "="
    assert sign_against(gold, np.where(np.arange(8) < 5, gold - 0.1, np.nan)) == "="
    mixed = gold + 0.1 * np.array([1, -1, 1, -1, 1, -1, 1, -1])
    assert sign_against(gold, mixed) == "="


def test_the_exponent_of_a_power_is_its_exponent() -> None:
    sizes = np.array([10.0, 20.0, 40.0])
    assert growth_exponent(sizes, 0.3 * sizes**1.7) == pytest.approx(1.7)
    assert np.isnan(growth_exponent(sizes[:1], sizes[:1]))


# --- tables ---


def test_a_score_table_has_means_marks_ranks_and_signs() -> None:
    runs = [make_run("EC", "k-Fed", 0, 0.2), make_run("EC", "k-Fed", 1, 0.4), make_run("EC", "GOLD", 0, 0.25)]
    runs += [make_run("US", "k-Fed", 0, 0.1), make_run("US", "GOLD", 0, 0.6), make_run("EC", "coreset k-means", 0, 0.9)]
    runs += [make_run("US", "coreset k-means", 0, 0.1)]
    table = score_table(next(grid for grid in grids_of(runs) if grid.index == "ARI"))
    assert list(table.columns) == ["", "k-Fed", "GOLD", "coreset k-means"]
    assert texts(table) == {
        "EC": ["0.300±0.10", "0.250±0.00", "0.900±0.00"],
        "US": ["0.100±0.00", "0.600±0.00", "0.100±0.00"],
        "rank of 2": ["1.50", "1.50", ""],
        "rank of 3": ["2.25", "2.00", "1.75"],
        "Wilcoxon, GOLD": ["=", "", "="],
    }
    assert [[entry.mark for entry in row[1:]] for row in table.rows] == [
        ["second", "", "best"],
        ["second", "best", "second"],
    ]


def test_undefined_scores_are_left_out_of_means() -> None:
    runs = [make_run(seed=0, score=0.6), failed(make_run(seed=1))]
    figures = {grid.title: grid.figures["EC", "GOLD"].mean for grid in grids_of(runs)}
    assert figures["Federated ARI"] == pytest.approx(0.3)
    assert figures["Global SC"] == pytest.approx(0.6)


def test_golds_rank_is_told_whatever_it_is() -> None:
    runs = [
        make_run(dataset, method, score=0.9 - 0.05 * place)
        for dataset in ("EC", "US")
        for place, method in enumerate(TWELVE)
    ]
    table = gold_rank_table(grids_of(runs))
    assert [row[0].text for row in table.rows] == [
        "federated, the nine",
        "federated, all methods",
        "global, the nine",
        "global, all methods",
    ]
    assert [(entry.text, entry.below) for entry in table.rows[0][1:5]] == [("9.00", "9th of 9")] * 4
    assert [(entry.text, entry.below) for entry in table.rows[3][1:]] == [("9.00", "9th of 12")] * 6


def test_data_sets_that_not_all_were_run_on_do_not_rank() -> None:
    runs = [make_run("EC", "k-Fed", score=0.9), make_run("EC", "GOLD", score=0.5), make_run("US", "GOLD", score=0.5)]
    assert grids_of(runs)[0].ranks(["k-Fed", "GOLD"]) == {"k-Fed": 1.0, "GOLD": 2.0}


def test_ours_is_beside_the_papers() -> None:
    paper = paper_figures("k-Fed")["federated", "ARI", "EC"]
    near, far = make_run("EC", "k-Fed", score=paper.mean), make_run("EC", "k-Fed", score=paper.mean + 0.4)
    for run, mark, difference in ((near, "", "+0.000"), (far, "differs", "+0.400")):
        grid = next(grid for grid in grids_of([run]) if grid.index == "ARI")
        entry = paper_table(grid, {"k-Fed": cells_of([run], "k-Fed")}).rows[0][1]
        assert (entry.mark, entry.below) == (mark, f"({paper}) {difference}")


def test_failures_that_differ_in_numbers_only_are_one_kind() -> None:
    runs = [failed(make_run(seed=seed), TOO_FEW.format(seed), "failed") for seed in range(3)] + [
        failed(make_run(seed=3))
    ]
    assert [(failure.status, len(failure.runs)) for failure in failures_of(runs)] == [("failed", 3), ("timeout", 1)]
    assert failures_of(runs)[0].reason.startswith("for example: 8 clusters")
    assert origin("degree", runs).text.endswith("4 runs, 0 ended well, the others did not: 3 failed, 1 timeout.")


def test_runs_without_the_level_are_not_counted_as_failures_of_leaving_it_out() -> None:
    levels = {(level.level, level.having): level for level in levels_of(list(level_rows()), "without")}
    assert list(levels) == [(1, 2), (2, 2), (3, 1)]
    assert levels[3, 1].scores["ARI"].mean == pytest.approx(0.5)
    assert levels[1, 2].clusters == pytest.approx(8.5)
    assert [level.clusters for level in levels_of(list(level_rows()), "first")] == pytest.approx([8.5, 4.5, 3.0])


def test_the_paper_has_both_components_first_everywhere() -> None:
    assert wins_of_both(paper_ablation()) == (24, 24)


def test_the_papers_ablation_is_of_neither_of_its_tables() -> None:
    gold = paper_figures("GOLD")
    for evaluation in EVALUATIONS:
        equal = [
            (dataset, index)
            for dataset, variants in paper_ablation().items()
            for index, score in zip(EVALUATIONS["federated"], variants[True, True], strict=True)
            if abs(gold[evaluation, index, dataset].mean - score) <= 0.000501
        ]
        assert len(equal) == 1


def test_growth_is_fitted_over_the_runs_that_ended() -> None:
    runs = [make_run(f"SD-{rows}x10", seconds_sites=rows**2 / 1e6, seconds_server=0.0) for rows in (1000, 2000, 4000)]
    runs.append(failed(make_run("SD-8000x10", seconds_sites=1.0, seconds_server=0.0)))
    growth = curves_of(runs, rows_of, lambda group: seconds_of(group[0]))
    assert texts(growth_table({"N": growth})) == {"GOLD": ["2.00", "3 of 4", "4,000 in 16.00 s"]}


def test_a_proposal_is_compared_with_k_given_and_with_the_best_choice_on_pooled_rows() -> None:
    runs = [run for run in unknown_rows() if run.dataset == "iris"]
    sentence = sentence_of({way: [run for run in runs if way_of(run) == way] for way in map(way_of, runs)}, ["iris"])
    assert "**0.540** with the proposed number, 0.600 with k* given (90% of it)" in sentence
    assert "(silhouette on pooled rows, then OneShot) leads to 0.500" in sentence
    (choices,) = [part for part in unknown(runs) if isinstance(part, Table) and part.name == "unknown"]
    assert choices.columns == ["", "iris (k* = 3)", "mean"]
    assert [(row[0].text, row[1].text, row[1].below) for row in choices.rows][1] == ("proposed", "0.540", "k = 2 to 4")


def test_exact_proposals_are_counted() -> None:
    table = separate_table([run for run in unknown_rows() if run.dataset.startswith("separate")])
    assert table.title == "Exact in 1 of 2"
    assert texts(table) == {"k from 1 to 5": ["1", "1", "none"], "k from 6 to 10": ["1", "0", "+1"]}


def test_what_changes_from_the_lowest_to_the_highest_third_is_told() -> None:
    runs = [
        make_run(method=method, split=f"non-icd-{100 * (1 + step)}-0", score=0.5 - fall * step)
        for method, fall in ((OURS, 0.0), (CORESET, 0.1))
        for step in range(3)
    ]
    table = change_table("sites", runs, lambda run: int(run.split.split("-")[2]), "of the numbers of sites")
    assert texts(table) == {
        OURS: ["0.500 to 0.500", "+0.000", "+0%"],
        CORESET: ["0.500 to 0.300", "\N{MINUS SIGN}0.200", "\N{MINUS SIGN}40%"],
    }
    assert "on **2 of 3** draws" in duel(runs, OURS, CORESET).text


def test_neighbours_are_written_as_ranges() -> None:
    assert ranges([100, 300, 400, 500], range(100, 701, 100)) == "100, 300 to 500"


def test_lambdas_are_computed_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def slow(dataset: str, split: str) -> float:
        asked.append((dataset, split))
        return 0.25

    monkeypatch.setattr(degree, degree_of.__name__, slow)
    runs = [make_run(split="non-icd-8-1"), make_run(split="non-icd-8-1", seed=1)]
    for _ in range(2):
        assert degrees_of(runs, tmp_path / "degrees.json") == {("EC", "non-icd-8-1"): 0.25}
    assert asked == [("EC", "non-icd-8-1")]


# --- figures ---


def test_names_keep_their_distance_and_their_order() -> None:
    wanted = np.array([0.5, 0.51, 0.1, 0.52, 0.99])
    heights = spread(wanted, 0.1, 0.0, 1.0)
    order = np.argsort(wanted)
    assert np.diff(heights[order]).min() >= 0.1 - 1e-12
    assert heights.min() >= 0.0
    assert heights.max() <= 1.0
    assert heights[2] == pytest.approx(0.1)


def test_every_method_has_a_colour_and_marker_of_its_own() -> None:
    assert len({(STYLES[method].colour, STYLES[method].marker) for method in TWELVE}) == 12
    assert len({STYLES[method].colour for method in TWELVE}) == 12
    assert [method for method in TWELVE if STYLES[method].thick] == ["GOLD", OURS]
    assert tuple(method for method in TWELVE if STYLES[method].dashed) == RIVALS


def name_heights(svg: str) -> list[float]:
    found = [re.search(rf'y="([\d.]+)"[^>]*>{re.escape(name)}</text>', svg) for name in TWELVE]
    return [float(match[1]) for match in found if match]


@pytest.mark.parametrize("draw", [draw_lines, draw_times])
def test_names_do_not_overlap_even_if_all_lines_do(draw: Any) -> None:
    x, ended = np.array([1.0, 2.0]), np.array([True, False])
    svg = draw("EC", [Curve(method, x, np.array([0.5, 0.5]), ended) for method in TWELVE], "lambda")
    heights = sorted(name_heights(svg))
    assert len(heights) == 12
    assert np.diff(heights).min() >= 72 * LABEL_GAP - 0.1


def test_the_same_numbers_give_the_same_drawing() -> None:
    heat = Heat(np.array([[0.1, 0.2], [0.3, np.nan]]), [0.001, 0.05], [0.3, 0.5], (0.05, 0.5), 0.2)
    assert draw_heat("EC", heat) == draw_heat("EC", heat)


def test_numbers_in_drawings_are_not_cut() -> None:
    svg = draw_heat("EC", Heat(np.array([[0.123]]), [0.001], [0.3], (0.05, 0.5), 0.2))
    assert ">0.001</text>" in svg
    assert ">.12</text>" in svg


# --- the page and the files ---


def test_every_method_and_data_set_is_there(page: str, readme: str) -> None:
    plain = re.sub(r"<[^>]*>", "", page)
    for name in (*TWELVE, "EC", "US"):
        assert name in plain
        assert name in readme


def test_every_section_says_where_its_rows_come_from(page: str, readme: str) -> None:
    for name, runs in rows_of_all().items():
        assert f"Made by <code>goldfc-bench {name}</code>, version 0.1.0: {len(runs)} runs" in page
        assert f"Made by `goldfc-bench {name}`, version 0.1.0: {len(runs)} runs" in readme


def test_what_is_missing_is_named(page: str, readme: str, tmp_path: Path) -> None:
    assert "<code>goldfc-bench picture</code> makes it" in page
    assert "`goldfc-bench picture` makes it" in readme
    Rows(tmp_path / "performance.jsonl").rewrite([make_run()])
    write_report(tmp_path, tmp_path / "report")
    sparse = (tmp_path / "report" / "README.md").read_text(encoding="utf-8")
    for name in ("degree", "ablation", "granularity", "sites", "time", "hyper", "picture"):
        assert f"`goldfc-bench {name}` makes it" in sparse


def test_failed_runs_are_counted_with_their_reasons(page: str, readme: str) -> None:
    for text in (page, readme):
        assert "48 runs, 46 ended well, the others did not: 2 failed." in text
        assert "2 of 4 runs did not end: 2 failed (for example: 8 clusters were asked for" in text
        assert "Runs that did not end, and why: 1 of 36" in text
        assert "not done within 60 s" in text


def test_the_page_loads_nothing_from_outside(page: str) -> None:
    assert not re.findall(r"https?:|//[a-z]", re.sub(r"base64,[^\"]*", "", page))
    assert "<script" not in page


def test_the_page_is_well_formed_and_its_contents_lead_somewhere(page: str) -> None:
    class Checker(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []
            self.names: list[str] = []
            self.links: list[str] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.names += [value for name, value in attrs if name == "id" and value]
            self.links += [value for name, value in attrs if name == "href" and value]
            if tag not in ("meta", "img"):
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert len(checker.names) == len(set(checker.names))
    assert len(checker.links) > 8
    assert {link.removeprefix("#") for link in checker.links} <= set(checker.names)


def test_the_files_are_there_and_none_is_missed(out: Path, readme: str) -> None:
    linked = re.findall(r'src="(figures/[^"]+)"', readme)
    assert sorted(linked) == sorted(str(path.relative_to(out)) for path in (out / "figures").iterdir())
    assert len(linked) == 2 + 1 + 1 + 5 + 2 + 4
    names = {path.stem for path in (out / "tables").iterdir()}
    assert {"gold-ranks", "performance-federated-ARI", "paper-global-CH", "ablation-global", "time-growth"} <= names


def test_tables_can_be_read_by_machines(out: Path) -> None:
    with (out / "tables" / "performance.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10 * 2 * 12
    own = next(row for row in rows if (row["method"], row["dataset"], row["index"]) == ("GOLD", "EC", "ARI"))
    assert float(own["mean"]) - float(own["paper_mean"]) == pytest.approx(float(own["difference"]))
    with (out / "tables" / "ablation-federated.csv").open(encoding="utf-8") as file:
        assert [row[:3] for row in csv.reader(file)][1:] == [
            ["EC", "k-means", "k-means"],
            ["EC", "on", "k-means"],
            ["EC", "k-means", "on"],
            ["EC", "on", "on"],
        ]


def test_a_single_method_makes_a_report_too() -> None:
    tables = [part for part in performance([make_run(method="coreset k-means")]) if isinstance(part, Table)]
    assert texts(tables[0])["federated, all methods"] == ["\N{EN DASH}"] * 6


def test_no_rows_no_report(tmp_path: Path) -> None:
    with pytest.raises(DataNotFound, match="goldfc-bench performance"):
        write_report(tmp_path, tmp_path)


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    Rows(tmp_path / "ablation.jsonl").rewrite(rows_of_all()["ablation"])
    result = CliRunner().invoke(main, ["report", "--rows", str(tmp_path), "--out", str(tmp_path / "out")])
    assert result.exit_code == 0
    assert (tmp_path / "out" / "report.html").is_file()
