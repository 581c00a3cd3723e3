"""Experiment 1: all methods on the paper's splits, in every index, beside the paper's own figures."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from goldfc._types import FloatArray
from goldfc_bench.experiments import TEN
from goldfc_bench.methods import METHODS
from goldfc_bench.paper import EVALUATIONS, Cell, Figure, compare
from goldfc_bench.report.parts import Entry, Heading, Lines, Part, Table, Text, entries
from goldfc_bench.report.ranks import best_and_second, mean_ranks, sign_against
from goldfc_bench.report.tables import (
    EXTERNAL,
    GOLD,
    NINE,
    OURS,
    UNDEFINED,
    by_dataset,
    datasets_of,
    failure_tables,
    failures_of,
    figure_of,
    grouped,
    methods_of,
    number,
    score_of,
    seconds_of,
    shown,
    title_of,
)
from goldfc_bench.report.why import WHY
from goldfc_bench.run import Run

ROWS_SENT = {"never": "none", "lone": "lone ones", "all": "all"}
HOW_TO_READ = (
    "Mean±deviation over the seeds. A run that did not end counts as all rows in one cluster, except in SC and CH, "
    "which are not defined for that. **Bold** is the best of a row, underlined the second; equal ones share. Mean "
    "ranks are over the data sets that all were run on, 1 is the best; who has no defined score is last."
)
SIGNS = (
    "The last two lines compare GOLD, and OneShot, with each method over the data sets (Wilcoxon signed-rank "
    "test, two-sided, 95 %): **+** it is significantly better, **-** significantly worse, **=** neither can be said."
)
BESIDE_THE_PAPER = (
    "Under each table ours is put beside the paper's: the first line is ours, the second the paper's in brackets and "
    "the difference. Cells agree where the means differ by no more than both deviations together; the "
    "others are marked."
)
MEANINGS = {
    "federated": "The rows of all sites, with the labels that they got in the federation, scored as one clustering.",
    "global": "The rows of the complete data set, each with the label of its nearest global centroid (OneShot: of the "
    "likeliest cluster by its model).",
}
RANKS = (
    "Whatever it is: the mean rank in every index of GOLD as in the paper. The paper's nine are the methods of its "
    "tables; all methods are these, our OneShot, and the two rivals that the paper leaves out, pooled k-means "
    "(all rows in one place: what may not be done) and coreset k-means (the simplest one-shot method)."
)


def performance(runs: Sequence[Run]) -> Iterator[Part]:
    """Ranks first, then every index, then every method in words."""
    grids = grids_of(runs)
    cells = {method: cells_of(runs, method) for method in methods_of(runs)}
    yield Heading("GOLD's rank", "gold-rank")
    yield Text(RANKS)
    yield gold_rank_table(grids)
    yield rank_table(grids)
    yield Heading("How to read the tables")
    yield from map(Text, (HOW_TO_READ, SIGNS, BESIDE_THE_PAPER))
    for evaluation in EVALUATIONS:
        yield Heading(f"{evaluation.capitalize()} scores", f"{evaluation}-scores")
        yield Text(MEANINGS[evaluation])
        for grid in grids:
            if grid.evaluation == evaluation:
                yield score_table(grid)
                yield paper_table(grid, cells)
    yield Heading("Traffic, time, and runs without an answer", "costs")
    yield cost_table(runs)
    yield from failure_tables("performance", runs, by_dataset)
    yield Heading("Method by method, beside the paper", "methods")
    yield difference_table(cells)
    for method in methods_of(runs):
        yield from account_of(method, [run for run in runs if run.method == method], cells[method])


# --- tables of scores ---


@dataclass(frozen=True)
class Grid:
    """One index in one evaluation: a figure for every data set and method that there are runs of."""

    evaluation: str
    index: str
    datasets: Sequence[str]
    methods: Sequence[str]
    figures: Mapping[tuple[str, str], Figure]

    @property
    def title(self) -> str:
        """Both in words."""
        return f"{self.evaluation.capitalize()} {title_of(self.index)}"

    @property
    def nine(self) -> list[str]:
        """Those of the paper's methods that there are runs of."""
        return [method for method in self.methods if method in NINE]

    def means(self, methods: Sequence[str]) -> FloatArray:
        """A row per data set that all these methods were run on, a column per method."""
        whole = [name for name in self.datasets if all((name, method) in self.figures for method in methods)]
        means = [[self.figures[name, method].mean for method in methods] for name in whole]
        return np.array(means).reshape(len(whole), len(methods))

    def ranks(self, methods: Sequence[str]) -> dict[str, float]:
        """The mean rank of each among these; none without a data set that all were run on."""
        means = self.means(methods)
        return dict(zip(methods, map(float, mean_ranks(means)), strict=True)) if means.size else {}

    def signs(self, one: str) -> list[str]:
        """One method against each of the others."""
        return [self._sign(one, other) if other != one else "" for other in self.methods]

    def _sign(self, one: str, other: str) -> str:
        return sign_against(*self.means([one, other]).T)


def grids_of(runs: Sequence[Run]) -> list[Grid]:
    """All indices in both evaluations."""
    groups = grouped(runs, lambda run: (run.dataset, run.method))
    datasets, methods = datasets_of(runs), methods_of(runs)
    return [
        Grid(
            evaluation,
            index,
            datasets,
            methods,
            {key: score_of(group, evaluation, index) for key, group in groups.items()},
        )
        for evaluation, indices in EVALUATIONS.items()
        for index in indices
    ]


def score_table(grid: Grid) -> Table:
    """Data sets x methods, with ranks and signs below."""
    return Table(
        name=f"performance-{grid.evaluation}-{grid.index}",
        title=grid.title,
        columns=["", *grid.methods],
        rows=[list(_scores(grid, dataset)) for dataset in grid.datasets],
        foot=[
            _rank_row(f"rank of {len(grid.nine)}", grid, grid.nine),
            _rank_row(f"rank of {len(grid.methods)}", grid, grid.methods),
            *(entries(f"Wilcoxon, {one}", *grid.signs(one)) for one in (GOLD, OURS) if one in grid.methods),
        ],
    )


def _scores(grid: Grid, dataset: str) -> Iterator[Entry]:
    yield Entry(dataset)
    own = [grid.figures.get((dataset, method), Figure(np.nan, np.nan)) for method in grid.methods]
    for figure, mark in zip(own, best_and_second([figure.mean for figure in own]), strict=True):
        yield Entry(shown(figure), mark=mark)


def _rank_row(title: str, grid: Grid, among: Sequence[str]) -> list[Entry]:
    ranks = grid.ranks(among)
    return entries(title, *(number(ranks[name], ".2f") if name in ranks else "" for name in grid.methods))


def gold_rank_table(grids: Sequence[Grid]) -> Table:
    """GOLD's mean rank, among the nine and among all."""
    indices = EVALUATIONS["global"]
    by_key = {(grid.evaluation, grid.index): grid for grid in grids}
    return Table(
        name="gold-ranks",
        title="GOLD's mean rank over the data sets, and its place by mean rank",
        columns=["", *map(title_of, indices)],
        rows=[
            [
                Entry(f"{evaluation}, {'all methods' if everybody else 'the nine'}"),
                *(_gold_rank(by_key.get((evaluation, index)), everybody) for index in indices),
            ]
            for evaluation in EVALUATIONS
            for everybody in (False, True)
        ],
    )


def _gold_rank(grid: Grid | None, everybody: bool) -> Entry:
    ranks = grid.ranks(grid.methods if everybody else grid.nine) if grid else {}
    if GOLD not in ranks:
        return Entry(UNDEFINED)
    place = 1 + sum(rank < ranks[GOLD] for rank in ranks.values())
    return Entry(number(ranks[GOLD], ".2f"), f"{ordinal(place)} of {len(ranks)}", "best" if place == 1 else "")


def ordinal(place: int) -> str:
    """1st, 2nd, 3rd, 4th; enough for as many methods as there are."""
    return f"{place}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(place, 'th') }"


def rank_table(grids: Sequence[Grid]) -> Table:
    """Everybody's mean rank among all."""
    methods = grids[0].methods
    ranks = [grid.ranks(methods) for grid in grids]
    columns = [[own.get(method, np.nan) for method in methods] for own in ranks]
    marks = [best_and_second([-rank for rank in column]) for column in columns]
    cells = [
        [Entry(number(rank, ".2f"), mark=mark) for rank, mark in zip(column, own, strict=True)]
        for column, own in zip(columns, marks, strict=True)
    ]
    return Table(
        name="ranks",
        title=f"Everybody's mean rank among all {len(methods)}",
        columns=["", *(grid.title for grid in grids)],
        rows=[[Entry(method), *row] for method, row in zip(methods, zip(*cells, strict=True), strict=True)],
    )


# --- beside the paper ---


def cells_of(runs: Sequence[Run], method: str) -> list[Cell]:
    """A method's cells that can be compared with the paper's, wherever ours is defined."""
    cells = compare([run for run in runs if run.dataset in TEN], method) if method in NINE else []
    return [cell for cell in cells if np.isfinite(cell.difference)]


def paper_table(grid: Grid, cells: Mapping[str, Sequence[Cell]]) -> Table:
    """Ours, the paper's and the difference, for the paper's methods."""
    columns = {
        method: {
            cell.dataset: cell
            for cell in cells[method]
            if (cell.evaluation, cell.index) == (grid.evaluation, grid.index)
        }
        for method in grid.nine
    }
    there = [cell for column in columns.values() for cell in column.values()]
    differences = [figure_of(cell.difference for cell in column.values()).mean for column in columns.values()]
    return Table(
        name=f"paper-{grid.evaluation}-{grid.index}",
        title=f"{grid.title} beside the paper's: {sum(cell.agrees for cell in there)} of {len(there)} cells agree",
        columns=["", *columns],
        rows=[
            [Entry(name), *(_beside(column.get(name)) for column in columns.values())]
            for name in grid.datasets
            if name in TEN
        ],
        foot=[entries("mean difference", *(number(difference, "+z.3f") for difference in differences))],
        folded=True,
    )


def _beside(cell: Cell | None) -> Entry:
    if cell is None:
        return Entry(UNDEFINED)
    below = f"({shown(cell.paper)}) {number(cell.difference, '+z.3f')}"
    return Entry(shown(cell.ours), below, "" if cell.agrees else "differs")


def difference_table(cells: Mapping[str, Sequence[Cell]]) -> Table:
    """Ours less the paper's, on average over the data sets."""
    keys = [(evaluation, index) for evaluation, indices in EVALUATIONS.items() for index in indices]
    rows = []
    for method, own in cells.items():
        if own:
            means = [number(figure_of(_differences(own, *key)).mean, "+z.3f") for key in keys]
            rows.append(entries(method, f"{sum(cell.agrees for cell in own)} of {len(own)}", *means))
    titles = [f"{evaluation.capitalize()} {title_of(index)}" for evaluation, index in keys]
    title = "Cells that agree, and ours less the paper's on average over the data sets"
    return Table("differences", title, ["", "cells that agree", *titles], rows)


def _differences(cells: Iterable[Cell], evaluation: str, index: str) -> list[float]:
    return [cell.difference for cell in cells if (cell.evaluation, cell.index) == (evaluation, index)]


def all_figures(runs: Sequence[Run]) -> Table:
    """Everything in long lines for a machine, in the form of the paper's own figures."""
    paper = {
        (method, cell.evaluation, cell.index, cell.dataset): cell
        for method in methods_of(runs)
        for cell in cells_of(runs, method)
    }
    columns = ["evaluation", "index", "dataset", "method", "mean", "std", "paper_mean", "paper_std", "difference"]
    rows = []
    for grid in grids_of(runs):
        for (dataset, method), ours in grid.figures.items():
            cell = paper.get((method, grid.evaluation, grid.index, dataset))
            theirs = (cell.paper.mean, cell.paper.std, round(cell.difference, 6)) if cell else ("", "", "")
            figures = (
                (round(ours.mean, 6), round(ours.std, 6), *theirs) if np.isfinite(ours.mean) else ("", "", *theirs)
            )
            rows.append(entries(grid.evaluation, grid.index, dataset, method, *figures))
    return Table("performance", "", columns, rows)


# --- costs, and every method in words ---


def cost_table(runs: Sequence[Run]) -> Table:
    """What a run of each method costs."""
    return Table(
        name="costs",
        title="A run on average over those that ended; lone rows are sent where a cluster has no other",
        columns=["", "runs", "ended", "uplinks", "kB up", "kB down", "s at sites", "s at server", "rows sent"],
        rows=[_costs(method, [run for run in runs if run.method == method]) for method in methods_of(runs)],
    )


def _costs(method: str, runs: Sequence[Run]) -> list[Entry]:
    done = [run for run in runs if run.status == "done"]
    sent = METHODS[method].uploads_rows if method in METHODS else ""
    return entries(
        method,
        len(runs),
        len(done),
        number(figure_of(run.uplinks for run in done).mean, ",.0f"),
        number(figure_of(run.bytes_up / 1000 for run in done).mean, ",.1f"),
        number(figure_of(run.bytes_down / 1000 for run in done).mean, ",.1f"),
        number(figure_of(run.seconds_sites for run in done).mean, ".2f"),
        number(figure_of(run.seconds_server for run in done).mean, ".2f"),
        ROWS_SENT.get(sent, UNDEFINED),
    )


def account_of(method: str, runs: Sequence[Run], cells: Sequence[Cell]) -> Iterator[Part]:
    """How near a method comes to the paper, what went wrong, and what it costs."""
    yield Heading(method, level=4)
    yield Text(" ".join([*_nearness(cells), _endings(runs), *_expense(runs)]))
    if method in WHY:
        yield Text(WHY[method])
    sentences = [cell.sentence for cell in cells if not cell.agrees]
    if sentences:
        yield Lines(f"{method}: the {len(sentences)} cells that differ by more than both deviations", sentences)


def _nearness(cells: Sequence[Cell]) -> Iterator[str]:
    if not cells:
        yield "The paper has no figures of it."
        return
    for evaluation, indices in EVALUATIONS.items():
        means = ((index, figure_of(_differences(cells, evaluation, index)).mean) for index in indices)
        texts = (f"{title_of(index)} {number(mean, '+z.3f')}" for index, mean in means if np.isfinite(mean))
        yield f"{evaluation.capitalize()}, ours less the paper's on average: {', '.join(texts)}."
    yield f"{sum(cell.agrees for cell in cells)} of {len(cells)} cells agree within both deviations."
    yield f"The data sets that differ most (mean over the indices with a truth): {_farthest(cells)}."


def _farthest(cells: Iterable[Cell], most: int = 3) -> str:
    differences: dict[str, list[float]] = {}
    for cell in cells:
        if cell.index in EXTERNAL:
            differences.setdefault(cell.dataset, []).append(cell.difference)
    order = sorted(differences, key=lambda name: -float(np.abs(differences[name]).mean()))
    return ", ".join(f"{name} ({number(float(np.mean(differences[name])), '+z.3f')})" for name in order[:most])


def _endings(runs: Sequence[Run]) -> str:
    failures = failures_of(runs)
    if not failures:
        return f"All {len(runs)} runs ended."
    reasons = "; ".join(f"{len(own.runs)} {own.status} ({own.reason.rstrip('.')})" for own in failures)
    return f"{sum(len(own.runs) for own in failures)} of {len(runs)} runs did not end: {reasons}."


def _expense(runs: Sequence[Run]) -> Iterator[str]:
    done = [run for run in runs if run.status == "done"]
    if not done:
        return
    seconds = {name: figure_of(seconds_of(run) for run in group).mean for name, group in _by_dataset(done).items()}
    slowest = max(seconds, key=lambda name: seconds[name])
    yield (
        f"A run that ended took {figure_of(run.uplinks for run in done).mean:,.0f} uplinks, "
        f"{figure_of(run.bytes_up / 1000 for run in done).mean:,.1f} kB up and "
        f"{figure_of(map(seconds_of, done)).mean:.2f} s on average (slowest on {slowest}, {seconds[slowest]:.2f} s)."
    )


def _by_dataset(runs: Sequence[Run]) -> dict[str, list[Run]]:
    return grouped(runs, lambda run: run.dataset)
