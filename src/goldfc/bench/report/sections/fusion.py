"""What each part of the consensus is worth: GOLD consensus with one thing changed at a time."""

import json
from collections.abc import Iterator, Mapping, Sequence

from goldfc.bench.experiments import FUSION_VARIANTS
from goldfc.bench.report.parts import Entry, Part, Table, Text, entries
from goldfc.bench.report.tables import (
    EXTERNAL,
    by_dataset,
    datasets_of,
    failure_tables,
    figure_of,
    grouped,
    mean_over_sets,
    number,
    score_of,
)
from goldfc.bench.run import Run

WHAT = (
    "GOLD consensus on the paper's splits with one thing changed at a time; federated scores. The indices are means "
    "over the data sets, in brackets the difference to the whole; then the run-to-run deviation of ARI, in the mean "
    "over the data sets, and the ARI of each data set. docs/fusion.md says what the parts are."
)


def fusion(runs: Sequence[Run]) -> Iterator[Part]:
    """One row per variant."""
    yield Text(WHAT)
    yield variant_table(runs)
    yield from failure_tables("fusion", runs, by_dataset)


def variant_table(runs: Sequence[Run]) -> Table:
    """Means, differences to the whole, luck, and the ARI of every data set."""
    datasets = datasets_of(runs)
    names = {json.dumps(settings, sort_keys=True): name for name, settings in FUSION_VARIANTS.items()}
    groups = grouped(runs, lambda run: names.get(json.dumps(dict(run.settings), sort_keys=True), "another"))
    whole = {index: mean_over_sets(groups.get("the whole", []), datasets, index) for index in EXTERNAL}
    return Table(
        name="fusion",
        title="What is changed, and what becomes of the scores",
        columns=["", *EXTERNAL, "deviation of ARI", *(f"ARI {name}" for name in datasets)],
        rows=[_row(name, own, datasets, whole) for name, own in groups.items()],
    )


def _row(name: str, runs: Sequence[Run], datasets: Sequence[str], whole: Mapping[str, float]) -> list[Entry]:
    figures = [score_of([run for run in runs if run.dataset == dataset], "federated", "ARI") for dataset in datasets]
    means = {index: mean_over_sets(runs, datasets, index) for index in EXTERNAL}
    cells = [
        Entry(number(mean), f"({number(mean - whole[index], '+z.3f')})" if name != "the whole" else "")
        for index, mean in means.items()
    ]
    luck = number(figure_of(figure.std for figure in figures).mean)
    return [Entry(name), *cells, *entries(luck, *(number(figure.mean) for figure in figures))]
