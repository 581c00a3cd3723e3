"""Our figures beside the paper's: every run counts, and disagreement is said in words."""

from pathlib import Path

import pytest

from goldfc_bench.paper import EVALUATIONS, Cell, Figure, agreement, as_markdown, compare, paper_figures
from goldfc_bench.rows import Status
from goldfc_bench.run import Job, Rows, Run, run_jobs
from needs import needs_splits


def make_run(seed: int, score: float, status: Status = "done") -> Run:
    scores = {(evaluation, index): score for evaluation, indices in EVALUATIONS.items() for index in indices}
    return Run(
        dataset="EC",
        split="paper",
        method="GOLD",
        settings={},
        seed=seed,
        status=status,
        reason="",
        scores=scores,
        rows=433,
        clusters=8,
        seconds_sites=0.1,
        seconds_server=0.2,
        uplinks=8,
        declared_uplinks=8,
        bytes_up=100,
        bytes_down=200,
        details={},
        version="0",
    )


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
    page = as_markdown(compare(runs), runs, "goldfc-bench paper")
    assert "1 of 2 runs failed" in page
    assert "EC, seed 1" in page
    for cell in compare(runs):
        assert (cell.sentence in page) == (not cell.agrees)


@needs_splits
def test_gold_agrees_with_the_paper_on_its_own_splits(tmp_path: Path) -> None:
    jobs = [Job(name, "paper", "GOLD", seed) for name in ("EC", "VE", "YE") for seed in range(6)]
    runs = run_jobs(jobs, Rows(tmp_path / "rows.jsonl"), 1, lambda _: None)
    assert all(run.uplinks == 8 for run in runs)
    # The whole comparison, with ten seeds and all sets, is `goldfc-bench paper`.
    for evaluation in EVALUATIONS:
        agreeing, total = agreement(compare(runs), evaluation)
        assert (agreeing >= 11, total) == (True, 12)
