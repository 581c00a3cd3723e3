"""What all sections share: rows become figures in a fixed order, lines for drawings, and a table of what went wrong."""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

import numpy as np

from goldfc_bench.experiments import TEN
from goldfc_bench.paper import EVALUATIONS, Figure
from goldfc_bench.report.figures import Curve
from goldfc_bench.report.parts import Table, Text, entries
from goldfc_bench.run import Run

GOLD = "GOLD"
NINE = ("k-Fed", "FFCM-avg1", "FFCM-avg2", "OSFSC-SSC", "OSFSC-TSC", "FedSC", "NN-FC", "AFCL", GOLD)
OURS = "OneShot"
CORESET = "coreset k-means"
RIVALS = ("pooled k-means", CORESET)
EXTERNAL = EVALUATIONS["federated"]
UNDEFINED = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
LONGEST_REASON = 160
NEAR_CHANCE = 0.02  # an ARI below this falls or rises by no share of itself that means anything

Key = TypeVar("Key", bound=Hashable)


# --- figures ---


def figure_of(values: Iterable[float]) -> Figure:
    """Mean and population deviation of those that are defined."""
    defined = np.array([value for value in values if np.isfinite(value)])
    return Figure(float(defined.mean()), float(defined.std())) if len(defined) else Figure(np.nan, np.nan)


def score_of(runs: Sequence[Run], evaluation: str, index: str) -> Figure:
    """One index over some runs; those that failed count as they were scored, as all rows in one cluster."""
    return figure_of(run.scores.get((evaluation, index), np.nan) for run in runs)


def mean_over_sets(runs: Sequence[Run], datasets: Sequence[str], index: str) -> float:
    """A federated index in the mean over the data sets, each of which counts the same."""
    own = ([run for run in runs if run.dataset == name] for name in datasets)
    return figure_of(score_of(group, "federated", index).mean for group in own).mean


def seconds_of(run: Run) -> float:
    """At the sites, one after the other, and at the server."""
    return run.seconds_sites + run.seconds_server


def shown(figure: Figure) -> str:
    """Mean±deviation, or a dash."""
    return str(figure).replace("-", MINUS) if np.isfinite(figure.mean) else UNDEFINED


def number(value: float, form: str = ".3f") -> str:
    """A number, or a dash."""
    return format(value, form).replace("-", MINUS) if np.isfinite(value) else UNDEFINED


def title_of(index: str) -> str:
    """As the paper's tables have it."""
    return "CH (log)" if index == "CH" else index


# --- order ---


def grouped(runs: Iterable[Run], key: Callable[[Run], Key]) -> dict[Key, list[Run]]:
    """Runs that have something in common."""
    groups: dict[Key, list[Run]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def in_order(methods: Iterable[str]) -> list[str]:
    """The paper's nine as in its tables, ours, the rivals, and whoever else there is."""
    there = dict.fromkeys(methods)
    return [name for name in dict.fromkeys((*NINE, OURS, *RIVALS, *there)) if name in there]


def methods_of(runs: Iterable[Run]) -> list[str]:
    """Whose runs they are."""
    return in_order(run.method for run in runs)


def datasets_of(runs: Iterable[Run]) -> list[str]:
    """The paper's ten as in its tables, then others."""
    there = dict.fromkeys(run.dataset for run in runs)
    return [name for name in dict.fromkeys((*TEN, *there)) if name in there]


def curves_of(runs: Sequence[Run], x: Callable[[Run], float], y: Callable[[Sequence[Run]], float]) -> list[Curve]:
    """One line a method: y of all its runs that have the same x."""
    curves = []
    for method in methods_of(runs):
        points = sorted(grouped((run for run in runs if run.method == method), x).items())
        heights = np.array([y(group) for _, group in points])
        ended = np.array([all(run.status == "done" for run in group) for _, group in points])
        curves.append(Curve(method, np.array([place for place, _ in points], dtype=float), heights, ended))
    return curves


def change_table(name: str, runs: Sequence[Run], x: Callable[[Run], float], along: str) -> Table:
    """From the lowest third of x to the highest: the ARI of each method there and there, and what has changed."""
    datasets = datasets_of(runs)
    rows = []
    for method in methods_of(runs):
        ends = [ends_of([run for run in runs if (run.method, run.dataset) == (method, own)], x) for own in datasets]
        cells = [f"{number(low)} to {number(high)}" for low, high in ends]
        changes = [high - low for low, high in ends]
        relative = [(high - low) / low for low, high in ends if low > NEAR_CHANCE]
        rows.append(
            entries(method, *cells, number(figure_of(changes).mean, "+z.3f"), number(figure_of(relative).mean, "+.0%"))
        )
    return Table(
        name=f"{name}-change",
        title=f"ARI from the lowest to the highest third {along}",
        columns=["", *datasets, "change in the mean", "relative"],
        rows=rows,
    )


def duel(runs: Sequence[Run], one: str, other: str) -> Text:
    """On how many cases the mean ARI of one method is above that of another."""
    cases = grouped((run for run in runs if not run.is_out_of_time), lambda run: (run.dataset, run.split))
    pairs = [
        tuple(
            score_of([run for run in own if run.method == method], "federated", "ARI").mean for method in (one, other)
        )
        for own in cases.values()
    ]
    both = [(mine, theirs) for mine, theirs in pairs if np.isfinite(mine) and np.isfinite(theirs)]
    ahead = sum(mine > theirs for mine, theirs in both)
    return Text(f"{one} is ahead of {other} in ARI on **{ahead} of {len(both)}** draws of the sites.")


def ends_of(runs: Sequence[Run], x: Callable[[Run], float]) -> tuple[float, float]:
    """Mean ARI over the lowest and over the highest third of the places."""
    places = sorted(grouped(runs, x).items())
    third = max(1, len(places) // 3)
    heights = [score_of(group, "federated", "ARI").mean for _, group in places]
    return figure_of(heights[:third]).mean, figure_of(heights[-third:]).mean


# --- where rows come from, and those that say why there is no answer ---


def origin(name: str, runs: Sequence[Run]) -> Text:
    """Which command made how many runs, how they ended, and with which version."""
    counts = Counter(run.status for run in runs)
    bad = ", ".join(f"{count:,} {status}" for status, count in counts.items() if status != "done")
    versions = ", ".join(sorted({run.version for run in runs}))
    ends = f"{counts['done']:,} ended well, the others did not: {bad}" if bad else "all ended well"
    return Text(f"Made by `goldfc-bench {name}`, version {versions}: {len(runs):,} runs, {ends}.")


@dataclass(frozen=True)
class Failure:
    """Runs of a method that ended in the same way."""

    method: str
    status: str
    reason: str
    runs: Sequence[Run]


def failures_of(runs: Sequence[Run]) -> list[Failure]:
    """By method, status and reason, where reasons that differ in numbers only are the same."""
    bad = [run for run in runs if run.status != "done"]
    groups = grouped(bad, lambda run: (run.method, run.status, re.sub(r"\d+", "#", run.reason)))
    found = [Failure(method, status, _reason(group), group) for (method, status, _), group in groups.items()]
    order = methods_of(bad)
    return sorted(found, key=lambda failure: order.index(failure.method))


def _reason(runs: Sequence[Run]) -> str:
    reason = " ".join(runs[0].reason.split())
    reason = reason if len(reason) <= LONGEST_REASON else reason[:LONGEST_REASON].rsplit(" ", 1)[0] + " …"
    return reason if len({run.reason for run in runs}) == 1 else f"for example: {reason}"


def failure_tables(name: str, runs: Sequence[Run], where: Callable[[Sequence[Run]], str]) -> list[Table]:
    """Which runs did not end, and why; no table if all did."""
    bad = sum(run.status != "done" for run in runs)
    table = Table(
        name=f"{name}-not-ended",
        title=f"Runs that did not end, and why: {bad:,} of {len(runs):,}",
        columns=["", "runs", "where", "status", "reason"],
        rows=[
            entries(failure.method, len(failure.runs), where(failure.runs), failure.status, failure.reason)
            for failure in failures_of(runs)
        ],
    )
    return [table] if bad else []


def by_dataset(runs: Sequence[Run]) -> str:
    """Where runs are, and how many."""
    counts = Counter(run.dataset for run in runs)
    return ", ".join(f"{name} ({counts[name]})" if counts[name] > 1 else name for name in datasets_of(runs))


def ranges(values: Iterable[int], every: Iterable[int]) -> str:
    """Some of all the values there are, neighbours together: 100, 300 to 500."""
    order, chosen = sorted(set(every)), set(values)
    texts = []
    for there, group in groupby(order, key=lambda value: value in chosen):
        own = list(group)
        if there:
            texts.append(f"{own[0]:,}" if len(own) == 1 else f"{own[0]:,} to {own[-1]:,}")
    return ", ".join(texts)
