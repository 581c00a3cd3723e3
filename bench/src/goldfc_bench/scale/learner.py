"""FCPL, the learner of GOLD, with all its epochs against one distance matrix of the same size."""

from dataclasses import asdict, dataclass

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from goldfc._types import FloatArray
from goldfc.demo.data import scaled_columns
from goldfc.learning.paper.competition import Learning, Outcome, compete
from goldfc_bench.datasets import synthetic
from goldfc_bench.methods.gold import Gold
from goldfc_bench.run import warm_up
from goldfc_bench.scale.clock import seconds, time_pair
from goldfc_bench.scale.parts import Section, Table, Target, Tick, in_seconds, times
from goldfc_bench.scale.plan import Plan

# At most so many times one distance matrix.
TARGETS = {("SD", 12_500, 10): 1.5, ("SD", 5_000, 36): 3.0, ("SD", 2_000, 500): 4.0}
TEXT = """\
FCPL is what a site of GOLD does with its rows: half of them are candidates in the beginning, and every row is
compared with every candidate that is left, epoch after epoch. Here it runs to its end, against a single
`sklearn.metrics.pairwise.euclidean_distances(X, X[seeds])` of the same rows and as many seeds, which does a part of the
work of the first epoch. SD is a mixture of five clusters. One Gaussian is the hard case: there is nothing to find, so
that thousands of candidates live on through all epochs. Mind the seconds beside the ratio: a distance matrix takes
several times as long when the system hands out its memory in small pages, which flatters the learner."""


@dataclass(frozen=True)
class Measurement:
    """One size of data: medians over the repeats."""

    data: str
    rows: int
    features: int
    seconds_learning: float
    seconds_distances: float
    ratio: float
    epochs: int
    clusters: int


def steps(plan: Plan, repeats: int) -> int:
    """How often it ticks."""
    return 2 * repeats * len(plan.learner)


def measure(plan: Plan, repeats: int, tick: Tick) -> Section:
    """All sizes."""
    warm_up(Gold())
    return section([measure_size(size, repeats, plan.patience, tick) for size in plan.learner])


def measure_size(size: tuple[str, int, int], repeats: int, patience: float, tick: Tick) -> Measurement:
    """Time both sides in turn."""
    data, rows, features = size
    X = rows_of(data, rows, features)
    seeds = np.random.default_rng(1).choice(rows, size=rows // 2, replace=False)
    outcome = learn(X)
    euclidean_distances(X, X[seeds])
    pair = time_pair(
        lambda: seconds(lambda: learn(X)),
        lambda: seconds(lambda: euclidean_distances(X, X[seeds])),
        repeats,
        patience,
        tick,
    )
    return Measurement(
        data=data,
        rows=rows,
        features=features,
        seconds_learning=pair.seconds,
        seconds_distances=pair.seconds_other,
        ratio=pair.ratio,
        epochs=outcome.epochs,
        clusters=outcome.n_clusters,
    )


def learn(X: FloatArray) -> Outcome:
    """As the paper has it."""
    return compete(X, len(X) // 2, Learning(), np.random.default_rng(1))


def rows_of(data: str, rows: int, features: int) -> FloatArray:
    """SD or one Gaussian, scaled as all data of the experiments are."""
    rng = np.random.default_rng(0)
    return scaled_columns(synthetic(rows, features, rng, n_clusters=5 if data == "SD" else 1).X)


def section(measurements: list[Measurement]) -> Section:
    """For the page."""
    columns = ("data", "FCPL", "one distance matrix", "ratio", "target", "epochs", "clusters")
    rows, targets = [], []
    for one in measurements:
        limit = TARGETS.get((one.data, one.rows, one.features))
        name = f"{one.data}, {one.rows} x {one.features}"
        if limit is not None:
            targets.append(Target(f"FCPL / one distance matrix, {name}", one.ratio, limit))
        times_taken = in_seconds(one.seconds_learning), in_seconds(one.seconds_distances), times(one.ratio)
        rows.append((name, *times_taken, f"{limit:g}" if limit else "-", str(one.epochs), str(one.clusters)))
    return Section(
        "learner",
        "The paper's learner against one distance matrix",
        TEXT,
        Table(columns, rows),
        targets,
        [asdict(one) for one in measurements],
    )
