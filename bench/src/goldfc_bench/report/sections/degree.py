"""Experiment 2: how scores fall as sites have less and less in common."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from goldfc_bench.experiments import degree_of
from goldfc_bench.report.figures import draw_lines
from goldfc_bench.report.parts import Drawing, Heading, Panels, Part, Text
from goldfc_bench.report.tables import (
    CORESET,
    OURS,
    by_dataset,
    change_table,
    curves_of,
    datasets_of,
    duel,
    failure_tables,
    score_of,
)
from goldfc_bench.run import Run

Degrees = Mapping[tuple[str, str], float]  # (data set, split) -> lambda
WHAT = (
    "Federated scores against lambda, the Non-ICD degree of the sites: 0, every site sees the same; 1, no two have "
    "anything in common. A point is the mean over the seeds on one draw of the sites. Hollow: some run did not end, "
    "and counts as all rows in one cluster."
)
CHANGE = (
    "Draws with a high lambda are not simply harder: their sites also have fewer rows and see fewer classes, which "
    "is easier."
)


def degree(runs: Sequence[Run], degrees: Degrees) -> Iterator[Part]:
    """One panel a data set, one line a method."""
    yield Text(WHAT)
    for index in ("Purity", "ARI"):
        yield Heading(f"{index} against lambda")
        yield Panels([_panel(runs, degrees, dataset, index) for dataset in datasets_of(runs)])
    yield duel(runs, OURS, CORESET)
    yield Text(CHANGE)
    yield change_table("degree", runs, lambda run: degrees[run.dataset, run.split], "of lambda")
    yield from failure_tables("degree", runs, by_dataset)


def _panel(runs: Sequence[Run], degrees: Degrees, dataset: str, index: str) -> Drawing:
    own = [run for run in runs if run.dataset == dataset]
    curves = curves_of(
        own, lambda run: degrees[run.dataset, run.split], lambda group: score_of(group, "federated", index).mean
    )
    svg = draw_lines(f"{dataset}, {index}", curves, "lambda")
    return Drawing(f"degree-{index}-{dataset}", f"{index} against lambda on {dataset}, one line a method", svg)


def degrees_of(runs: Sequence[Run], path: Path) -> dict[tuple[str, str], float]:
    """Lambda of every case; kept beside the rows, since it takes time."""
    known: dict[str, float] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    cases = list(dict.fromkeys((run.dataset, run.split) for run in runs))
    missing = [case for case in cases if " ".join(case) not in known]
    known |= {" ".join(case): round(degree_of(*case), 6) for case in missing}
    if missing:
        path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return {case: known[" ".join(case)] for case in cases}
