"""What the Non-ICD degree does by itself: the same rows at sites of the same sizes, mixed more and less."""

from collections.abc import Iterator, Sequence

from goldfc_bench.report.parts import Part, Text
from goldfc_bench.report.sections.degree import Degrees
from goldfc_bench.report.tables import CORESET, OURS, by_dataset, change_table, duel, failure_tables, figure_of
from goldfc_bench.run import Run

WHAT = (
    "Draws of the simulator differ in lambda, but also in how many rows and classes their sites have. Here none of "
    "this changes: of six draws, none, half or all of the rows have changed places at random. What is left is who "
    "holds which rows."
)


def exchange(runs: Sequence[Run], degrees: Degrees) -> Iterator[Part]:
    """From fully mixed to as drawn."""
    yield Text(WHAT)
    shares = sorted({in_place(run) for run in runs})
    means = [
        figure_of([degrees[run.dataset, run.split] for run in runs if in_place(run) == share]).mean for share in shares
    ]
    steps = ", ".join(f"{mean:.2f} with {share} % in place" for share, mean in zip(shares, means, strict=True))
    yield Text(f"Mean lambda: {steps}.")
    yield change_table("exchange", runs, lambda run: float(in_place(run)), "of rows left in place")
    yield duel(runs, OURS, CORESET)
    yield from failure_tables("exchange", runs, by_dataset)


def in_place(run: Run) -> int:
    """The per cent of rows that are where the simulator had put them."""
    return 100 - int(run.split.rsplit("-", maxsplit=1)[1])
