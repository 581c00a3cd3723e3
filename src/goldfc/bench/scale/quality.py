"""What block learning costs in quality: the same federations with rows learned in blocks and all at once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from goldfc.bench.run import Job, Run
from goldfc.bench.scale.parts import Table, Target, spaced
from goldfc.learning.paper.blocks import BLOCK
from goldfc.protocol.finding import WHEN_MANY

METHOD, SPLIT = "GOLD consensus", "even-2"
DATASETS = ("LA", "WI", "PE", "LE", "SD-20000x10")
QUICK_DATASETS = ("SD-5000x5",)
IN_BLOCKS, AT_ONCE = {"most_at_once": 0}, {"most_at_once": 10**9}
LIMIT = 0.01
PAGE = """# What block learning costs in quality

Made by `{command}`.

A client with more than {most} rows learns them in blocks of {block}, whose micro-clusters then compete once more; with
fewer rows it learns all at once, which is exact but takes time that grows with their square. Here the same federations
are run both ways: two clients that hold evenly dealt rows, so that each has several blocks (SD: a synthetic mixture of
five round clusters; the others are public sets), {seeds} seeds each, the number of clusters given. The figures are
means of the federated ARI (1: the labels agree with the true classes perfectly; 0: no better than chance). A negative
difference means that blocks cost something. Its standard error is that of the paired difference over the seeds, on the
same clients and data: what lies within two of them may be chance.

{table}

Target: in the mean of all sets, the two are within {limit:g} of each other. The mean difference is {mean:+.4f}, with a
standard error of {error:.4f}: {verdict}.{failed}

Rows of all runs are in [rows.jsonl](rows.jsonl). Started again, the command makes what is missing; `--fresh` makes all
anew, which is what to do when the code has changed.
"""


def jobs(datasets: Sequence[str], seeds: int) -> list[Job]:
    """Both ways, on every set with every seed."""
    return [
        Job(dataset, SPLIT, METHOD, seed, settings)
        for dataset in datasets
        for seed in range(seeds)
        for settings in (AT_ONCE, IN_BLOCKS)
    ]


@dataclass(frozen=True)
class Pair:
    """One data set: the ARI of every seed, both ways."""

    dataset: str
    at_once: tuple[float, ...]
    in_blocks: tuple[float, ...]

    @property
    def differences(self) -> list[float]:
        """Of every seed: blocks minus at once."""
        return [blocks - once for blocks, once in zip(self.in_blocks, self.at_once, strict=True)]

    @property
    def difference(self) -> float:
        """In the mean."""
        return fmean(self.differences)

    @property
    def standard_error(self) -> float:
        """Of the mean difference; nan with a single seed."""
        return standard_error(self.differences)


def standard_error(values: Sequence[float]) -> float:
    """Of their mean; nan for a single one."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else float("nan")


def pairs_of(runs: Sequence[Run]) -> list[Pair]:
    """By data set; seeds in their order."""
    scores = {(run.dataset, run.seed, run.settings == IN_BLOCKS): run.scores["federated", "ARI"] for run in runs}
    seeds = sorted({run.seed for run in runs})
    return [
        Pair(dataset, *(tuple(scores[dataset, seed, blocks] for seed in seeds) for blocks in (False, True)))
        for dataset in dict.fromkeys(run.dataset for run in runs)
    ]


def overall(pairs: Sequence[Pair]) -> tuple[float, float]:
    """The mean difference over all sets, and its standard error: sets are given, seeds are chance."""
    error = math.sqrt(sum(pair.standard_error**2 for pair in pairs)) / len(pairs)
    return fmean(pair.difference for pair in pairs), error


def table_of(pairs: Sequence[Pair]) -> Table:
    """A line for every set, and one for all."""
    rows = [
        line(pair.dataset, fmean(pair.at_once), fmean(pair.in_blocks), pair.difference, pair.standard_error)
        for pair in pairs
    ]
    once = fmean(fmean(pair.at_once) for pair in pairs)
    blocks = fmean(fmean(pair.in_blocks) for pair in pairs)
    return Table(
        ("data", "all at once", "in blocks", "difference", "its standard error"),
        [*rows, line("mean", once, blocks, *overall(pairs))],
    )


def line(name: str, once: float, blocks: float, difference: float, error: float) -> tuple[str, ...]:
    """Three decimals; four where it is about thousandths."""
    return name, f"{once:.3f}", f"{blocks:.3f}", f"{difference:+.4f}", f"{error:.4f}"


def target_of(pairs: Sequence[Pair]) -> Target:
    """How far blocks may be from all at once, either way."""
    return Target("ARI of block learning, away from the exact one in the mean", abs(overall(pairs)[0]), LIMIT)


def as_markdown(runs: Sequence[Run], command: str) -> str:
    """The page."""
    pairs = pairs_of(runs)
    mean, error = overall(pairs)
    failed = sum(run.status != "done" for run in runs)
    return PAGE.format(
        command=command,
        seeds=len(pairs[0].at_once),
        table="\n".join(table_of(pairs).as_markdown()),
        limit=LIMIT,
        most=spaced(WHEN_MANY.most_at_once),
        block=spaced(BLOCK),
        mean=mean,
        error=error,
        verdict=target_of(pairs).verdict,
        failed=f" {failed} of {len(runs)} runs failed; they count as all rows in one cluster." if failed else "",
    )
