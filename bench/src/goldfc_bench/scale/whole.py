"""The whole of OneShot against other ways to cluster the same rows: only the federation itself is timed."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import NamedTuple

from sklearn.cluster import KMeans

from goldfc.demo.data import Split, sites_of
from goldfc.randomness import generator
from goldfc.transport.local import LocalPort
from goldfc_bench.cases import dataset_of, split_of
from goldfc_bench.methods import method_named
from goldfc_bench.run import TimedPort, warm_up
from goldfc_bench.scale.clock import median_ratio, seconds
from goldfc_bench.scale.parts import Section, Table, Target, Tick, in_seconds, short, times
from goldfc_bench.scale.plan import SITES, Plan, Size

OURS, K_FED, CORESET, POOLED = "OneShot", "k-Fed", "coreset k-means", "pooled KMeans(n_init=1)"
RIVALS = (K_FED, CORESET, POOLED)
# At the rows that the targets name: at most so many times as long as the rival.
TARGETS = {(100_000, K_FED): 5.0, (100_000, POOLED): 10.0, (1_000_000, POOLED): 4.0}
TEXT = """\
From the sites' rows to their labels: eight sites hold evenly dealt rows of SD, a mixture of five clusters, and
everybody is told that there are five. Neither the making of data nor scoring is in the clock. OneShot is the default of
this package: up to 100 micro-clusters a site with their masses and a shape, clusters of the kind to believe at the
server, and the likeliest of them for every row. k-Fed finds three centres at every site and five at the server, by
k-means to convergence from one careful start. Coreset k-means finds 50 centres at every site and five at the server,
the best of ten starts of `sklearn.cluster.KMeans` each. Pooled k-means is `KMeans(5, n_init=1)` on all rows in one
place, which no federation could do; moving the rows there is not counted. On clusters that lie so far apart k-means is
at rest after a few steps, and OneShot sees the gaps without trying mixtures: this is the rivals' easy case, and
ours."""


class Sample(NamedTuple):
    """One run, in seconds."""

    all: float
    sites: float  # nan where there are none


Runner = Callable[[Split, int], Sample]


def federated(method_name: str) -> Runner:
    """A method of the benchmark, from the first question to the last label."""
    method = method_named(method_name)
    warm_up(method)

    def run(split: Split, seed: int) -> Sample:
        port = TimedPort(LocalPort(sites_of(method.site, split, seed)))
        n_clusters = dataset_of(split.dataset).n_clusters
        begin = time.perf_counter()
        method.serve(port, n_clusters, generator(seed, "server"))
        return Sample(time.perf_counter() - begin, port.seconds)

    return run


def pooled(split: Split, seed: int) -> Sample:
    """K-means in one place."""
    k_means = KMeans(dataset_of(split.dataset).n_clusters, n_init=1, random_state=seed)
    return Sample(seconds(lambda: k_means.fit(split.X)), float("nan"))


@dataclass
class Race:
    """All runs at one size."""

    size: Size
    split: Split
    samples: dict[str, list[Sample]]
    skipped: dict[str, str] = field(default_factory=dict)  # why a method was not run

    def seconds(self, method: str) -> float:
        """The median; nan if it was not run."""
        return median(sample.all for sample in self.samples[method]) if self.samples.get(method) else float("nan")

    def seconds_sites(self, method: str) -> float:
        """The sites' part of it."""
        return median(sample.sites for sample in self.samples[method])

    def ratio(self, rival: str) -> float:
        """Ours to the rival's, of the same turns; nan if it was not run."""
        if not self.samples.get(rival):
            return float("nan")
        ours, others = ([sample.all for sample in self.samples[method]] for method in (OURS, rival))
        return median_ratio(ours, others)


def run_races(plan: Plan, repeats: int, tick: Tick) -> list[Race]:
    """All methods at all sizes in turn, small sizes first."""
    runners: dict[str, Runner] = {**{name: federated(name) for name in (OURS, K_FED, CORESET)}, POOLED: pooled}
    races = []
    for size in [*plan.by_rows, *plan.by_features]:
        names = (OURS, *RIVALS) if size in plan.with_rivals else (OURS,)
        races.append(Race(size, split_of(size.dataset, f"even-{SITES}"), {name: [] for name in names}))
    for turn in range(repeats):
        for race in races:
            take_turn(race, races, runners, turn, plan)
            tick()
    return races


def take_turn(race: Race, races: list[Race], runners: Mapping[str, Runner], turn: int, plan: Plan) -> None:
    """Every method once at one size, unless it has had its time or would take too long."""
    for method, samples in race.samples.items():
        if sum(sample.all for sample in samples) > plan.patience or method in race.skipped:
            continue
        expected = expected_seconds(method, race.size, races)
        if method != OURS and not samples and expected > plan.longest:
            race.skipped[method] = f"left out: about {expected:.0f} s to expect"
            continue
        samples.append(runners[method](race.split, turn))


def expected_seconds(method: str, size: Size, races: list[Race]) -> float:
    """By the largest smaller size that it was run at, as if time grew with the numbers; 0 if there is none."""
    smaller = [
        race
        for race in races
        if race.samples.get(method)
        and race.size < size
        and 1 in (rows_ratio(race.size, size), width_ratio(race.size, size))
    ]
    if not smaller:
        return 0.0
    last = max(smaller, key=lambda race: race.size)
    return last.seconds(method) * rows_ratio(last.size, size) * width_ratio(last.size, size)


def rows_ratio(one: Size, other: Size) -> float:
    """How many times the rows."""
    return other.rows / one.rows


def width_ratio(one: Size, other: Size) -> float:
    """How many times the features."""
    return other.features / one.features


# --- the page ---


def section(races: list[Race], plan: Plan) -> Section:
    """Seconds of ours, and how many times those of every rival."""
    columns = ("rows x features", OURS, *(f"{rival} ({OURS} / it)" for rival in RIVALS))
    compared = [race for race in races if race.size in plan.with_rivals]
    rows = [
        (
            f"{short(race.size.rows)} x {short(race.size.features)}",
            in_seconds(race.seconds(OURS)),
            *(cell(race, rival) for rival in RIVALS),
        )
        for race in compared
    ]
    targets = [
        Target(f"{OURS} / {rival}, N = {short(race.size.rows)}", race.ratio(rival), TARGETS[race.size.rows, rival])
        for race in compared
        for rival in RIVALS
        if (race.size.rows, rival) in TARGETS
    ]
    figures = [figure for race in races for figure in figures_of(race)]
    return Section("whole", "The whole federation against others", TEXT, Table(columns, rows), targets, figures)


def cell(race: Race, rival: str) -> str:
    """Seconds and ratio, or why there are none."""
    if rival in race.skipped:
        return race.skipped[rival]
    return f"{in_seconds(race.seconds(rival))} ({times(race.ratio(rival))})"


def figures_of(race: Race) -> list[dict[str, object]]:
    """For machines: every sample."""
    return [
        {
            **asdict(race.size),
            "method": method,
            "seconds": [sample.all for sample in samples],
            "seconds_sites": [sample.sites for sample in samples if method != POOLED],
            "left_out": race.skipped.get(method, ""),
        }
        for method, samples in race.samples.items()
    ]
