"""Our figures beside the paper's: every run counts, and disagreement is said in words."""

import csv
from pathlib import Path

import numpy as np
import pytest

from goldfc.bench.datasets import Dataset, data_folder, load
from goldfc.bench.paper import EVALUATIONS, Cell, Figure, agreement, as_markdown, compare, paper_figures
from goldfc.bench.run import Run, run_gold, run_paper, write_rows
from goldfc.bench.split import as_split, simulate_split

needs_data = pytest.mark.skipif(
    not (data_folder() / "splits").is_dir(), reason="the paper's splits are not on this machine"
)


def make_run(seed: int, score: float, status: str = "done") -> Run:
    scores = {(evaluation, index): score for evaluation, indices in EVALUATIONS.items() for index in indices}
    return Run("EC", "GOLD", seed, status, "", scores, 0.1, 0.2, 8, 100, 200, 50, (9, 4))


def test_the_papers_figures_are_complete() -> None:
    figures = paper_figures()
    assert len(figures) == 10 * (4 + 6)
    assert figures["federated", "ARI", "EC"] == Figure(0.452, 0.09)
    assert len(paper_figures("k-Fed")) == 100


def test_every_cell_of_the_papers_tables_is_compared() -> None:
    cells = compare([make_run(0, 0.4), make_run(1, 0.6)])
    assert len(cells) == 10
    assert all(cell.ours.mean == pytest.approx(0.5) and cell.ours.std == pytest.approx(0.1) for cell in cells)


def test_failed_runs_stay_in_the_mean() -> None:
    cells = compare([make_run(0, 0.6), make_run(1, 0.0, "failed")])
    assert cells[0].ours.mean == pytest.approx(0.3)
    assert (cells[0].runs, cells[0].failed) == (2, 1)


def test_cells_agree_when_the_difference_is_within_both_deviations() -> None:
    cell = Cell("EC", "federated", "ARI", Figure(0.31, 0.06), Figure(0.45, 0.09), 10, 0)
    assert cell.agrees
    other = Cell("EC", "federated", "ARI", Figure(0.29, 0.06), Figure(0.45, 0.09), 10, 0)
    assert not other.agrees
    assert other.sentence == (
        "EC, federated ARI: ours is 0.290±0.06, 0.160 below the paper's 0.450±0.09, "
        "which is more than both deviations together (0.150)."
    )


def test_the_page_names_every_disagreement_and_failure() -> None:
    runs = [make_run(0, 0.9), make_run(1, 0.9, "failed")]
    page = as_markdown(compare(runs), runs, "goldfc bench paper")
    assert "1 of 2 runs failed" in page
    assert "EC, seed 1" in page
    for cell in compare(runs):
        assert (cell.sentence in page) == (not cell.agrees)


def test_rows_on_disk_hold_every_run(tmp_path: Path) -> None:
    write_rows([make_run(0, 0.5), make_run(1, 0.0, "failed")], tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["done", "failed"]
    assert rows[0]["federated ARI"] == "0.5"
    assert rows[0]["levels"] == "9 4"


def test_a_run_that_cannot_answer_is_a_row_that_says_why() -> None:
    rng = np.random.default_rng(0)
    dataset = Dataset("tiny", rng.normal(size=(12, 2)), np.arange(12) % 6, ("a", "b"), tuple("uvwxyz"))
    run = run_gold(as_split(dataset, [np.arange(12)]), dataset, seed=0)
    assert run.status == "failed"
    assert "6 clusters were asked for" in run.reason
    assert run.scores["federated", "ARI"] == 0.0
    assert run.scores["federated", "Purity"] == pytest.approx(1 / 6)
    assert np.isnan(run.scores["global", "SC"])


def test_same_seed_same_row_whatever_the_number_of_jobs() -> None:
    dataset = load("iris")
    split = simulate_split(dataset, 4, np.random.default_rng(1))
    assert run_gold(split, dataset, 3).scores == run_gold(split, dataset, 3).scores


@needs_data
def test_gold_agrees_with_the_paper_on_its_own_splits() -> None:
    names, seen = ["EC", "VE", "YE"], list[Run]()
    runs = run_paper(names, range(6), 1, seen.append)
    assert [(run.dataset, run.seed) for run in runs] == [(name, seed) for name in names for seed in range(6)]
    assert seen == runs
    assert all(run.uplinks == 8 for run in runs)
    # The whole comparison, with ten seeds and all sets, is `goldfc bench paper`.
    for evaluation in EVALUATIONS:
        agreeing, total = agreement(compare(runs), evaluation)
        assert (agreeing >= 11, total) == (True, 12)
