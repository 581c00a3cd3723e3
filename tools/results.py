"""The README's table of results, made from the committed rows; writes it, or checks it with --check."""

import re
import sys
from collections.abc import Iterator

import numpy as np
from scipy.stats import rankdata
from tools.derived import ROOT, keep

from goldfc_bench.paper import paper_figures
from goldfc_bench.run import Rows, Run

README = ROOT / "README.md"
ROWS = ROOT / "benchmarks" / "results" / "performance.jsonl"
MARKS = re.compile(r"(<!-- results: made by `make format` -->\n).*?(<!-- end of results -->)", flags=re.DOTALL)
LEGEND = (
    "OneShot is the default of goldfc: every site sends up to 100 micro-clusters with their masses and one shape, and "
    "the server finds clusters of the kind that these speak for. GOLD is the paper's method."
)
COLUMNS = (("federated", "ARI"), ("federated", "NMI"), ("global", "ARI"))


def table() -> str:
    """Methods down, best first; means over the data sets; and who is who."""
    runs = Rows(ROWS).read()
    methods = list(dict.fromkeys(run.method for run in runs))
    ranks = mean_ranks(runs, methods)
    header = [f"{evaluation} {index}" for evaluation, index in COLUMNS]
    lines = [
        "| | " + " | ".join([*header, "rank by federated ARI", "messages up", "kB up"]) + " |",
        "|---" * (len(header) + 4) + "|",
    ]
    for method in sorted(methods, key=lambda method: ranks[method]):
        own = [run for run in runs if run.method == method]
        cells = [*figures(own, method), f"{ranks[method]:.1f}", f"{mean(own, 'uplinks'):,.0f}"]
        lines.append(f"| {method} | " + " | ".join([*cells, f"{mean(own, 'bytes_up') / 1000:,.0f}"]) + " |")
    return "\n".join([*lines, "", LEGEND]) + "\n"


def figures(runs: list[Run], method: str) -> Iterator[str]:
    """Ours, and in brackets the paper's where it has the method."""
    paper = paper_figures(method)
    for evaluation, index in COLUMNS:
        theirs = [figure.mean for (where, what, _), figure in paper.items() if (where, what) == (evaluation, index)]
        ours = np.mean([run.scores[evaluation, index] for run in runs])
        yield f"{ours:.3f}" + (f" ({np.mean(theirs):.3f})" if theirs else "")


def mean(runs: list[Run], field: str) -> float:
    """Over all runs of a method."""
    return float(np.mean([getattr(run, field) for run in runs]))


def mean_ranks(runs: list[Run], methods: list[str]) -> dict[str, float]:
    """Mean rank over the data sets by federated ARI, to three decimals, 1 being best."""
    datasets = list(dict.fromkeys(run.dataset for run in runs))
    scores = np.array(
        [
            [
                np.mean(
                    [run.scores["federated", "ARI"] for run in runs if (run.method, run.dataset) == (method, dataset)]
                )
                for method in methods
            ]
            for dataset in datasets
        ]
    )
    return dict(zip(methods, rankdata(-scores.round(3), axis=1).mean(axis=0), strict=True))


def page() -> str:
    """The README, as it should be."""
    return MARKS.sub(lambda match: match[1] + table() + match[2], README.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(keep(README, page()))
