"""Experiment 3: FCPL and MCPL, each on or replaced by k-means, beside the paper's table."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files

import numpy as np

from goldfc_bench.paper import EVALUATIONS, Figure
from goldfc_bench.report.parts import Entry, Part, Table, Text, entries
from goldfc_bench.report.ranks import best_and_second
from goldfc_bench.report.tables import (
    EXTERNAL,
    by_dataset,
    datasets_of,
    failure_tables,
    grouped,
    number,
    score_of,
    shown,
)
from goldfc_bench.run import Run

Variant = tuple[bool, bool]  # FCPL, MCPL
Scores = Mapping[str, Mapping[Variant, Sequence[Figure]]]  # data set, variant, the four indices
WHAT = (
    "Both off is k-means at the sites and on their centroids; both on is GOLD. First line: ours, mean±deviation over "
    "the seeds; second line: the paper's in brackets, and the difference. **Bold** is the best of the four, underlined "
    "the second. The paper does not say which of the two evaluations its table is of, and with both on it fits neither "
    "of its own tables of GOLD (of 24 cells one equals the federated table's, one the global table's): both are here."
)


def ablation(runs: Sequence[Run]) -> Iterator[Part]:
    """The four rows of each data set, in both evaluations."""
    yield Text(WHAT)
    paper = paper_ablation()
    datasets = datasets_of(runs)
    scores = {
        evaluation: {name: variants_of([run for run in runs if run.dataset == name], evaluation) for name in datasets}
        for evaluation in EVALUATIONS
    }
    yield Text(_wins(scores, {name: paper[name] for name in datasets if name in paper}))
    for evaluation, own in scores.items():
        yield ablation_table(own, paper, evaluation)
    yield from failure_tables("ablation", runs, by_dataset)


def _wins(scores: Mapping[str, Scores], paper: Mapping[str, Mapping[Variant, Sequence[float]]]) -> str:
    tables = {"in the paper": paper} | {
        f"in our {evaluation} scores": {name: _means(variants) for name, variants in own.items()}
        for evaluation, own in scores.items()
    }
    wins = {title: wins_of_both(table) for title, table in tables.items()}
    counts = ", ".join(f"{title} in {won} of {cells}" for title, (won, cells) in wins.items())
    return f"Both on is the best of the four, by data sets and indices: {counts}."


def paper_ablation() -> dict[str, dict[Variant, list[float]]]:
    """The paper's table: data set, variant, the four indices."""
    text = (files("goldfc_bench") / "figures_of_the_paper" / "ablation.csv").read_text(encoding="utf-8")
    table: dict[str, dict[Variant, list[float]]] = {}
    for row in csv.DictReader(text.splitlines()):
        variant = row["fcpl"] == "1", row["mcpl"] == "1"
        table.setdefault(row["dataset"], {})[variant] = [float(row[index.lower()]) for index in EXTERNAL]
    return table


def variants_of(runs: Sequence[Run], evaluation: str) -> dict[Variant, list[Figure]]:
    """The four indices of each variant, of one data set."""
    groups = grouped(runs, lambda run: (bool(run.settings["fcpl"]), bool(run.settings["mcpl"])))
    order = sorted(groups, key=lambda variant: (sum(variant), variant[1]))
    return {variant: [score_of(groups[variant], evaluation, index) for index in EXTERNAL] for variant in order}


def _means(variants: Mapping[Variant, Sequence[Figure]]) -> dict[Variant, list[float]]:
    return {variant: [figure.mean for figure in figures] for variant, figures in variants.items()}


def wins_of_both(table: Mapping[str, Mapping[Variant, Sequence[float]]]) -> tuple[int, int]:
    """In how many data sets and indices no variant is better than both on, and of how many."""
    wins = [
        both >= max(means[column] for means in variants.values())
        for variants in table.values()
        for column, both in enumerate(variants.get((True, True), ()))
    ]
    return sum(wins), len(wins)


def ablation_table(scores: Scores, paper: Mapping[str, Mapping[Variant, Sequence[float]]], evaluation: str) -> Table:
    """Four rows per data set, the paper's below ours."""
    rows = [row for name, variants in scores.items() for row in _rows(name, variants, paper.get(name, {}))]
    return Table(
        name=f"ablation-{evaluation}",
        title=f"{evaluation.capitalize()}, ours with the paper's below",
        columns=["", "FCPL", "MCPL", *EXTERNAL],
        rows=rows,
    )


def _rows(
    name: str, variants: Mapping[Variant, Sequence[Figure]], paper: Mapping[Variant, Sequence[float]]
) -> list[list[Entry]]:
    columns = zip(*_means(variants).values(), strict=True)
    marks = zip(*map(best_and_second, columns), strict=True)
    rows = []
    for (variant, figures), own_marks in zip(variants.items(), marks, strict=True):
        theirs = paper.get(variant, [np.nan] * len(figures))
        cells = [
            Entry(shown(figure), _below(figure, other), mark)
            for figure, other, mark in zip(figures, theirs, own_marks, strict=True)
        ]
        rows.append([*entries(name, *("on" if on else "k-means" for on in variant)), *cells])
    return rows


def _below(figure: Figure, paper: float) -> str:
    return f"({paper:.3f}) {number(figure.mean - paper, '+z.3f')}" if np.isfinite(paper) else ""
