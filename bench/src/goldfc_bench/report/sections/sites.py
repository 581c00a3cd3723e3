"""Experiment 5: from a hundred to a thousand sites."""

import re
from collections.abc import Iterator, Sequence

from goldfc_bench.report.figures import draw_lines, draw_times
from goldfc_bench.report.parts import Drawing, Heading, Panels, Part, Text
from goldfc_bench.report.tables import (
    CORESET,
    EXTERNAL,
    OURS,
    change_table,
    curves_of,
    datasets_of,
    duel,
    failure_tables,
    figure_of,
    grouped,
    ranges,
    score_of,
    seconds_of,
)
from goldfc_bench.run import Run

WHAT = (
    "Federated scores against the number of sites; one draw of the sites each. A line ends where a run was not "
    "done within the limit, which says nothing of how good it would have been. Hollow: the run said that it had no "
    "answer, and counts as all rows in one cluster."
)
SECONDS = (
    "At all sites, one after the other, and at the server, on one core. Hollow and not joined: the run did not end "
    "within its limit, and would have taken longer."
)


def sites(runs: Sequence[Run]) -> Iterator[Part]:
    """Every index, seconds, and what did not end."""
    datasets = datasets_of(runs)
    yield Text(WHAT)
    for index in EXTERNAL:
        yield Heading(f"{index} against the number of sites")
        yield Panels([_score_panel(runs, dataset, index) for dataset in datasets])
    yield duel(runs, OURS, CORESET)
    ended = [run for run in runs if not run.is_out_of_time]
    yield change_table("sites", ended, number_of_sites, "of the numbers of sites")
    yield Heading("Seconds against the number of sites")
    yield Text(SECONDS)
    yield Panels([_time_panel(runs, dataset) for dataset in datasets])
    numbers = [number_of_sites(run) for run in runs]
    yield from failure_tables("sites", runs, lambda bad: _where(bad, numbers))


def number_of_sites(run: Run) -> int:
    """As the name of the split says."""
    match = re.search(r"-(\d+)", run.split)
    return int(match[1]) if match else 0


def _where(runs: Sequence[Run], numbers: Sequence[int]) -> str:
    groups = grouped(runs, lambda run: run.dataset)
    return "; ".join(f"{name} {ranges(map(number_of_sites, own), numbers)}" for name, own in groups.items())


def _score_panel(runs: Sequence[Run], dataset: str, index: str) -> Drawing:
    own = [run for run in runs if run.dataset == dataset and not run.is_out_of_time]
    curves = curves_of(own, number_of_sites, lambda group: score_of(group, "federated", index).mean)
    svg = draw_lines(f"{dataset}, {index}", curves, "sites")
    return Drawing(f"sites-{index}-{dataset}", f"{index} against the number of sites on {dataset}", svg)


def _time_panel(runs: Sequence[Run], dataset: str) -> Drawing:
    own = [run for run in runs if run.dataset == dataset and run.was_tried]
    curves = curves_of(own, number_of_sites, lambda group: figure_of(map(seconds_of, group)).mean)
    svg = draw_times(f"{dataset}, seconds", curves, "sites")
    return Drawing(f"sites-seconds-{dataset}", f"Seconds against the number of sites on {dataset}", svg)
