"""Nobody knows the number of clusters: what is proposed, what it leads to, and what others would have chosen."""

from collections.abc import Iterator, Sequence

import numpy as np

from goldfc_bench.cases import dataset_of, split_of
from goldfc_bench.report.parts import Entry, Heading, Part, Table, Text, entries
from goldfc_bench.report.tables import (
    EXTERNAL,
    by_dataset,
    datasets_of,
    failure_tables,
    grouped,
    mean_over_sets,
    number,
    score_of,
)
from goldfc_bench.run import Run

WHAT = (
    "OneShot when the number of classes k* is given, and when it proposes a number itself; beside it, what silhouette, "
    "gap statistic and BIC choose on the rows of all sites in one place, which no federation can do, and what "
    "OneShot and pooled k-means make of that choice. Federated ARI; under it the numbers of clusters, over the seeds. "
    "Classes need not be clusters: a number that differs from k* may fit the data better."
)
SEPARATE = (
    "Mixtures of round clusters that lie at least eight deviations apart, k from 2 to 30, cut by the simulator into "
    "eight Non-ICD sites; three mixtures for each k. To be found are the clusters that any site has rows of."
)


def unknown(runs: Sequence[Run]) -> Iterator[Part]:
    """The paper's splits, then mixtures that everybody can tell apart."""
    yield Text(WHAT)
    real = [run for run in runs if not run.dataset.startswith("separate")]
    made = [run for run in runs if run.dataset.startswith("separate")]
    ways = grouped(real, way_of)
    yield Text(sentence_of(ways, datasets_of(real)))
    yield choice_table(ways, datasets_of(real))
    yield index_table(ways, datasets_of(real))
    if made:
        yield Heading("Clusters that can be told apart")
        yield Text(SEPARATE)
        yield separate_table(made)
    yield from failure_tables("unknown", runs, by_dataset)


def way_of(run: Run) -> str:
    """How the number of clusters came about, and who used it."""
    if "by" in run.settings:
        return f"{run.settings['by']} on pooled rows, then {run.settings['then']}"
    return "k* given" if run.settings["given_k"] else "proposed"


def sentence_of(ways: dict[str, list[Run]], datasets: Sequence[str]) -> str:
    """The proposal against k* given and against the best choice on pooled rows."""
    means = {way: mean_over_sets(own, datasets, "ARI") for way, own in ways.items()}
    others = {way: mean for way, mean in means.items() if "pooled rows" in way}
    if not others or not {"proposed", "k* given"} <= set(means):
        return ""
    best = max(others, key=lambda way: others[way])
    share = means["proposed"] / means["k* given"]
    return (
        f"Mean ARI over the data sets: **{number(means['proposed'])}** with the proposed number, "
        f"{number(means['k* given'])} with k* given ({share:.0%} of it); the best choice on pooled rows ({best}) leads "
        f"to {number(others[best])}."
    )


def choice_table(ways: dict[str, list[Run]], datasets: Sequence[str]) -> Table:
    """ARI and the numbers of clusters, for every data set."""
    truth = [dataset_of(name).n_clusters for name in datasets]
    rows = [
        [
            Entry(way),
            *(_choice([run for run in own if run.dataset == name]) for name in datasets),
            Entry(number(mean_over_sets(own, datasets, "ARI"))),
        ]
        for way, own in ways.items()
    ]
    return Table(
        name="unknown",
        title="Federated ARI, and the number of clusters used",
        columns=["", *(f"{name} (k* = {k})" for name, k in zip(datasets, truth, strict=True)), "mean"],
        rows=rows,
    )


def _choice(runs: Sequence[Run]) -> Entry:
    used = sorted({number_of_clusters(run) for run in runs})
    span = f"{used[0]}" if len(used) == 1 else f"{used[0]} to {used[-1]}"
    return Entry(number(score_of(runs, "federated", "ARI").mean), f"k = {span}")


def number_of_clusters(run: Run) -> int:
    """What was proposed or chosen; if k* was given, what was left of it."""
    return int(run.details["proposed"][0]) if "proposed" in run.details else run.clusters


def index_table(ways: dict[str, list[Run]], datasets: Sequence[str]) -> Table:
    """All indices in the mean."""
    return Table(
        name="unknown-indices",
        title="Federated scores in the mean over the data sets",
        columns=["", *EXTERNAL],
        rows=[
            entries(way, *(number(mean_over_sets(own, datasets, index)) for index in EXTERNAL))
            for way, own in ways.items()
        ],
    )


def separate_table(runs: Sequence[Run]) -> Table:
    """How often the number is exact, by how many clusters there are."""
    found = [(clusters_there(run), number_of_clusters(run)) for run in runs]
    rows = []
    for low, high in ((1, 5), (6, 10), (11, 20), (21, 30)):
        misses = [number - there for there, number in found if low <= there <= high]
        if misses:
            off = ", ".join(f"{miss:+d}" for miss in sorted(misses) if miss) or "none"
            rows.append(entries(f"k from {low} to {high}", len(misses), misses.count(0), off))
    title = f"Exact in {sum(there == number for there, number in found)} of {len(found)}"
    return Table("unknown-separate", title, ["", "mixtures", "exact", "missed by"], rows)


def clusters_there(run: Run) -> int:
    """How many of the clusters any site has rows of."""
    return len(np.unique(split_of(run.dataset, run.split).y))
