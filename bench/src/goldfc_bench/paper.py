"""Our figures beside the paper's: every cell with its difference, and a sentence where they disagree."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from goldfc_bench.run import Run

EVALUATIONS = {
    "federated": ("Purity", "ARI", "NMI", "ACC"),
    "global": ("Purity", "ARI", "NMI", "ACC", "SC", "CH"),
}


@dataclass(frozen=True)
class Figure:
    """A mean and the deviation over the runs (population, as numpy gives it)."""

    mean: float
    std: float

    def __str__(self) -> str:
        """As in the paper's tables."""
        return f"{self.mean:.3f}±{self.std:.2f}"


@dataclass(frozen=True)
class Cell:
    """One data set and index, ours and the paper's."""

    dataset: str
    evaluation: str
    index: str
    ours: Figure
    paper: Figure
    runs: int
    failed: int

    @property
    def difference(self) -> float:
        """Ours less the paper's."""
        return self.ours.mean - self.paper.mean

    @property
    def agrees(self) -> bool:
        """Whether the means differ by no more than both deviations together."""
        return abs(self.difference) <= self.ours.std + self.paper.std

    @property
    def sentence(self) -> str:
        """The disagreement in words."""
        direction = "above" if self.difference > 0 else "below"
        return (
            f"{self.dataset}, {self.evaluation} {self.index}: ours is {self.ours}, "
            f"{abs(self.difference):.3f} {direction} the paper's {self.paper}, "
            f"which is more than both deviations together ({self.ours.std + self.paper.std:.3f})."
        )


def paper_figures(method: str = "GOLD") -> dict[tuple[str, str, str], Figure]:
    """The paper's tables for one method, by (evaluation, index, dataset); CH is a natural logarithm."""
    text = (files("goldfc_bench") / "figures_of_the_paper" / "tables.csv").read_text(encoding="utf-8")
    return {
        (row["evaluation"], row["index"], row["dataset"]): Figure(float(row["mean"]), float(row["std"]))
        for row in csv.DictReader(text.splitlines())
        if row["method"] == method
    }


def compare(runs: Sequence[Run], method: str = "GOLD") -> list[Cell]:
    """All cells of a method, in the order of the paper's tables."""
    paper = paper_figures(method)
    runs = [run for run in runs if run.method == method]
    datasets = list(dict.fromkeys(run.dataset for run in runs))
    return [
        cell(dataset, evaluation, index, runs, paper[evaluation, index, dataset])
        for evaluation, indices in EVALUATIONS.items()
        for index in indices
        for dataset in datasets
    ]


def cell(dataset: str, evaluation: str, index: str, runs: Sequence[Run], paper: Figure) -> Cell:
    """Mean and deviation over all runs on a data set, the failed ones included wherever their score is defined."""
    own = [run for run in runs if run.dataset == dataset]
    values = np.array([run.scores[evaluation, index] for run in own])
    defined = values[np.isfinite(values)]
    ours = Figure(float(defined.mean()), float(defined.std())) if len(defined) else Figure(np.nan, np.nan)
    failed = sum(run.status != "done" for run in own)
    return Cell(dataset, evaluation, index, ours, paper, len(own), failed)


def agreement(cells: Sequence[Cell], evaluation: str) -> tuple[int, int]:
    """How many of the cells with a true label agree with the paper, and how many there are."""
    external = [cell for cell in cells if cell.evaluation == evaluation and cell.index in EVALUATIONS["federated"]]
    return sum(cell.agrees for cell in external), len(external)


def as_markdown(cells: Sequence[Cell], runs: Sequence[Run], command: str) -> str:
    """The comparison as a page for a repository."""
    return "\n".join(_page(cells, runs, command)) + "\n"


def _page(cells: Sequence[Cell], runs: Sequence[Run], command: str) -> Iterator[str]:
    yield "# GOLD on the paper's ten splits"
    yield ""
    yield f"Made by `{command}`; every run is a row of [rows.jsonl](rows.jsonl)."
    yield ""
    yield from summary(cells, runs)
    for evaluation, indices in EVALUATIONS.items():
        yield ""
        yield f"## {evaluation.capitalize()}"
        yield ""
        yield "Mean±deviation over the runs; in brackets the paper's, then the difference of the means."
        yield "**Bold**: they differ by more than both deviations together."
        yield ""
        yield "| | " + " | ".join(indices) + " |"
        yield "|---" * (len(indices) + 1) + "|"
        for dataset in dict.fromkeys(cell.dataset for cell in cells):
            row = [cell for cell in cells if (cell.dataset, cell.evaluation) == (dataset, evaluation)]
            yield f"| {dataset} | " + " | ".join(map(_cell_text, row)) + " |"
        yield "| mean | " + " | ".join(_mean_text(cells, evaluation, index) for index in indices) + " |"
    yield ""
    yield "## Where we and the paper disagree"
    yield ""
    disagreements = [f"- {cell.sentence}" for cell in cells if not cell.agrees]
    yield from disagreements or ["Nowhere."]


def summary(cells: Sequence[Cell], runs: Sequence[Run]) -> Iterator[str]:
    """The result in a few sentences."""
    for evaluation in EVALUATIONS:
        agreeing, total = agreement(cells, evaluation)
        yield f"- {evaluation.capitalize()}: {agreeing} of {total} cells (Purity, ARI, NMI, ACC) agree with the paper."
    failed = [run for run in runs if run.status != "done"]
    yield (
        f"- {len(failed)} of {len(runs)} runs failed; they count in every mean as all rows in one cluster, and are "
        "left out only of SC and CH, which are not defined for that."
        if failed
        else f"- None of the {len(runs)} runs failed."
    )
    for run in failed:
        yield f"  - {run.dataset}, seed {run.seed} ({run.status}): {run.reason}"


def _cell_text(cell: Cell) -> str:
    text = f"{cell.ours} ({cell.paper}) {cell.difference:+.3f}"
    return text if cell.agrees else f"**{text}**"


def _mean_text(cells: Sequence[Cell], evaluation: str, index: str) -> str:
    column = [cell for cell in cells if (cell.evaluation, cell.index) == (evaluation, index)]
    ours, theirs = np.mean([cell.ours.mean for cell in column]), np.mean([cell.paper.mean for cell in column])
    return f"{ours:.3f} ({theirs:.3f}) {ours - theirs:+.3f}"
