"""Experiment 4: levels added one by one from the finest on, and each level left out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from goldfc_bench.paper import Figure
from goldfc_bench.report.figures import Curve, draw_left_out, draw_levels
from goldfc_bench.report.parts import Drawing, Entry, Heading, Panels, Part, Table, Text, entries
from goldfc_bench.report.tables import (
    EXTERNAL,
    by_dataset,
    datasets_of,
    failure_tables,
    figure_of,
    number,
    score_of,
    shown,
)
from goldfc_bench.run import Run

ADDED = (
    "Federated scores when only the finest so many levels are fused. A run that has fewer levels uses all it has, so "
    "that the last points are GOLD as it is. The bars say how many clusters the last level added has, on average over "
    "the runs that have it. Hollow: some run did not end, and counts as all rows in one cluster."
)
LEFT_OUT = (
    "Federated scores without one level (markers), and with all of them (dashed lines: all runs). Only runs that have "
    "the level, and another one, can leave it out; in the table the difference is to the same seeds with all levels."
)


def granularity(runs: Sequence[Run]) -> Iterator[Part]:
    """Both, one panel a data set."""
    added, left_out = levels_of(runs, "first"), levels_of(runs, "without")
    datasets = list(dict.fromkeys(level.dataset for level in added))
    yield Heading("Levels added, from the finest on")
    yield Text(ADDED)
    yield Panels([_added_panel(name, [own for own in added if own.dataset == name]) for name in datasets])
    yield _table("granularity-added", "Levels added: scores, and the clusters of the last one", added)
    yield Heading("Each level left out")
    yield Text(LEFT_OUT)
    yield Panels(
        [
            _left_out_panel(name, own, [level for level in added if level.dataset == name][-1])
            for name in datasets
            if (own := [level for level in left_out if level.dataset == name])
        ]
    )
    yield _table(
        "granularity-left-out", "Each level left out: scores, and below the difference to all levels", left_out
    )
    yield from failure_tables("granularity", [run for run in runs if run.status != "skipped"], by_dataset)
    without = sum(run.status == "skipped" for run in runs)
    if without:
        yield Text(f"Runs that had no such level to leave out, and are not counted here: {without}.")


@dataclass(frozen=True)
class Level:
    """One data set with so many levels, or without one of them."""

    dataset: str
    level: int
    clusters: float  # of this level, on average over the runs that have it
    having: int  # runs that have it
    ended: bool  # all of them
    scores: Mapping[str, Figure]
    whole: Mapping[str, Figure]  # with all levels, same seeds


def levels_of(runs: Sequence[Run], which: str) -> list[Level]:
    """Of every data set and level that some run has."""
    levels = sorted({run.settings["level"] for run in runs})
    found = [
        _level([run for run in runs if run.dataset == dataset], which, level)
        for dataset in datasets_of(runs)
        for level in levels
    ]
    return [level for level in found if level.having]


def _level(runs: Sequence[Run], which: str, level: int) -> Level:
    deepest = max(run.settings["level"] for run in runs)
    whole = {run.seed: run for run in _only(runs, "first", deepest)}
    own = [run for run in _only(runs, which, level) if run.status != "skipped"]
    counts = [run.details["levels"] for run in own if len(run.details.get("levels", ())) >= level]
    same_seeds = [whole[run.seed] for run in own if run.seed in whole]
    return Level(
        dataset=runs[0].dataset,
        level=level,
        clusters=figure_of(count[level - 1] for count in counts).mean,
        having=len(counts),
        ended=all(run.status == "done" for run in own),
        scores={index: score_of(own, "federated", index) for index in EXTERNAL},
        whole={index: score_of(same_seeds, "federated", index) for index in EXTERNAL},
    )


def _only(runs: Sequence[Run], which: str, level: int) -> list[Run]:
    return [run for run in runs if (run.settings["levels"], run.settings["level"]) == (which, level)]


def _curves(levels: Sequence[Level]) -> list[Curve]:
    places = np.array([float(own.level) for own in levels])
    ended = np.array([own.ended for own in levels])
    return [Curve(index, places, np.array([own.scores[index].mean for own in levels]), ended) for index in EXTERNAL]


def _added_panel(name: str, levels: Sequence[Level]) -> Drawing:
    svg = draw_levels(name, _curves(levels), {own.level: own.clusters for own in levels})
    return Drawing(f"granularity-added-{name}", f"Scores on {name} with one level more each time", svg)


def _left_out_panel(name: str, levels: Sequence[Level], all_levels: Level) -> Drawing:
    whole = {index: figure.mean for index, figure in all_levels.scores.items()}
    svg = draw_left_out(name, _curves(levels), whole)
    return Drawing(f"granularity-left-out-{name}", f"Scores on {name} without each of the levels", svg)


def _table(name: str, title: str, levels: Sequence[Level]) -> Table:
    difference = name.endswith("left-out")
    rows = [
        [
            *entries(own.dataset, own.level, number(own.clusters, ".1f"), own.having),
            *(_score(own, index, difference) for index in EXTERNAL),
        ]
        for own in levels
    ]
    return Table(name, title, ["", "level", "clusters", "runs", *EXTERNAL], rows, folded=True)


def _score(level: Level, index: str, difference: bool) -> Entry:
    ours = level.scores[index]
    return Entry(shown(ours), number(ours.mean - level.whole[index].mean, "+z.3f") if difference else "")
