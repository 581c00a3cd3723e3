"""Where the time goes: the stages of a federation, each against what the machine could do."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from goldfc.demo.data import Split, sites_of
from goldfc.learning import consensus, finding, judge, k_means, linkage, micro_clusters, mixture
from goldfc.randomness import generator
from goldfc.server import one_shot as server
from goldfc.site import learn, participant
from goldfc.site import summarize as site
from goldfc.site.label import label
from goldfc.site.rows import checked
from goldfc.transport.local import LocalPort
from goldfc_bench.methods.oneshot import OneShotMethod
from goldfc_bench.run import warm_up
from goldfc_bench.scale import needs
from goldfc_bench.scale.machine import Machine, measure_machine
from goldfc_bench.scale.needs import Need
from goldfc_bench.scale.parts import Section, Table, Tick, in_seconds, short
from goldfc_bench.scale.plan import FEATURES, SITES, Plan

ELSE = "everything else"
CLUSTERS = 5
Needs = Callable[..., Need]


@dataclass(frozen=True)
class Probe:
    """A function that belongs to a stage (None: to the one that calls it), who calls it, and what it needs."""

    stage: str | None
    function: Callable[..., Any]
    caller: object  # a module or class that knows the function; only its calls are watched
    need: Needs | None = None

    @property
    def name(self) -> str:
        """What the caller knows the function as."""
        names = [name for name, value in vars(self.caller).items() if value is self.function]
        if len(names) != 1:
            raise LookupError(f"{self.caller} should know {self.function} by one name, but these are {names}.")
        return names[0]


# In the order of the protocol.
PROBES = (
    Probe("checking rows, moments", checked, site, partial(needs.of_rows, 3)),
    Probe("micro-clusters: scaling rows, a sample", site.find_at_most, site, partial(needs.of_rows, 1)),
    Probe("micro-clusters: k-means", k_means.k_means, k_means),
    Probe("micro-clusters: all rows to the nearest", k_means.nearest, finding),
    Probe(None, k_means.product, k_means, needs.of_product),
    Probe("measuring, shape", finding.Tally.add, finding.Tally, needs.of_block),
    Probe("measuring, shape", learn.Shape.see, learn.Shape, needs.of_shape),
    Probe("putting sites together", server.pool, server),
    Probe("putting sites together", server.merge_many, server),
    Probe("putting sites together", micro_clusters.standardized, server),
    Probe("judge: spanning tree", linkage.spanning_tree, judge, needs.of_all_pairs),
    Probe("judge: linkages, gaps", judge.best_linked, judge),
    Probe("judge: linkages, gaps", linkage.gap_of, judge),
    Probe("judge: mixtures", judge.Court.kind_of_mixture, judge.Court),
    Probe("judge: mixtures", consensus.draw_mixture, consensus),
    Probe(None, mixture.clusters_of, mixture, needs.of_em_step),
    Probe("judge: embedding, cut", consensus.fuse_partitions, consensus),
    Probe(None, consensus.embed, consensus, needs.of_embedding),
    Probe("describing clusters", server.describe_clusters, server),
    Probe("describing clusters", server.reach_of, server),
    Probe("labelling", label, participant, needs.of_labelling),
)
STAGES = (*dict.fromkeys(probe.stage for probe in PROBES if probe.stage), ELSE)


class StageClock:
    """Seconds and needs by stage. One runs at a time: a stage inside another stops the outer one's clock."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self.seconds: dict[str, float] = defaultdict(float)
        self.needs: dict[str, Need] = defaultdict(Need)
        self._running = ELSE
        self._since = now()

    def switch(self, stage: str) -> str:
        """From here on another stage runs; the answer is the one that did."""
        now, before = self._now(), self._running
        self.seconds[before] += now - self._since
        self._running, self._since = stage, now
        return before

    def watch(self, probe: Probe) -> Callable[..., Any]:
        """The same function, under the clock."""

        def watched(*arguments: Any, **named: Any) -> Any:
            before = self.switch(probe.stage or self._running)
            result = probe.function(*arguments, **named)
            if probe.need is not None:
                self.needs[self._running] += probe.need(result, *arguments, **named)
            self.switch(before)
            return result

        return watched


@contextmanager
def under(clock: StageClock) -> Iterator[None]:
    """All probes in place, for the time being."""
    with ExitStack() as stack:
        for probe in PROBES:
            name = probe.name
            stack.callback(setattr, probe.caller, name, probe.function)
            setattr(probe.caller, name, clock.watch(probe))
        yield


@dataclass(frozen=True)
class Stage:
    """One stage, and what it would take at least."""

    name: str
    seconds: float
    share: float
    gigabytes: float
    gigaflops: float
    limit: str  # "bandwidth" or "operations"
    per_cent_of_peak: float  # nan where nothing is counted


def steps(plan: Plan, repeats: int) -> int:  # noqa: ARG001
    """How often it ticks."""
    return repeats + 1


def measure(plan: Plan, repeats: int, tick: Tick) -> Section:
    """A few profiles, the medians of their stages, and the machine's limits."""
    warm_up(OneShotMethod())
    split = overlapping(plan.profiled)
    clocks = []
    for seed in range(repeats):
        clocks.append(profile(LocalPort(sites_of(OneShotMethod().site, split, seed)), CLUSTERS, seed))
        tick()
    machine = measure_machine(plan)
    tick()
    return section(stages_of(clocks, machine), machine, plan.profiled)


def overlapping(n_rows: int) -> Split:
    """Evenly dealt rows of clusters that overlap: gaps do not settle it, and the server tries every kind of cluster."""
    rng = np.random.default_rng(0)
    y, row = rng.integers(CLUSTERS, size=n_rows), np.arange(n_rows)
    centres = rng.normal(scale=1.5, size=(CLUSTERS, FEATURES))
    return Split("overlapping", centres[y] + rng.normal(size=(n_rows, FEATURES)), y, row % SITES, row)


def profile(port: LocalPort, n_clusters: int, seed: int) -> StageClock:
    """One federation under the clock."""
    clock = StageClock()
    with under(clock):
        clock.switch(ELSE)
        clock.seconds.clear()
        OneShotMethod().serve(port, n_clusters, generator(seed, "server"))
        clock.switch(ELSE)
    return clock


def stages_of(clocks: list[StageClock], machine: Machine) -> list[Stage]:
    """Those that took any time to speak of; seconds and needs are medians."""
    seconds = {name: median(clock.seconds.get(name, 0.0) for clock in clocks) for name in STAGES}
    needed = {name: typical([clock.needs.get(name, Need()) for clock in clocks]) for name in STAGES}
    total = sum(seconds.values())
    return [
        stage_of(name, seconds[name], total, needed[name], machine) for name in STAGES if seconds[name] > 2e-4 * total
    ]


def typical(several: list[Need]) -> Need:
    """The medians."""
    return Need(median(need.bytes for need in several), median(need.flops for need in several))


def stage_of(name: str, seconds: float, total: float, need: Need, machine: Machine) -> Stage:
    """How near a stage comes to what holds it up."""
    at_best, limit = need.seconds_at_best(machine)
    percentage = 100.0 * at_best / seconds if at_best > 0.0 else float("nan")
    return Stage(name, seconds, seconds / total, need.bytes / 1e9, need.flops / 1e9, limit, percentage)


# --- the page ---

TEXT = """\
The stages of one federation of {rows} rows x {features} at eight sites, one at a time; the time of all sites is
added up. Its five clusters overlap, so that the server tries every kind of cluster; where gaps are as clear as between
those of SD, it needs no mixtures. Beside the seconds stands what a stage cannot do without, counted by formula: the
bytes of the arrays that it goes through, and the operations on them, temporary arrays not counted. Of the two limits,
the one that would hold up a perfect program longer is named, and how near the stage comes to it: "x % of peak" says
that a program at that limit would take x hundredths of the time. {machine} Peaks are out of reach for most work: a
large matrix product uses every number many times, with a multiplication and an addition in one instruction; mixtures of
a few hundred micro-clusters are thousands of small products, and what they take is mostly the calls."""


def section(stages: list[Stage], machine: Machine, rows: int) -> Section:
    """For the page."""
    columns = ("stage", "seconds", "share", "goes through", "operations", "limit", "how near")
    lines = [(one.name, in_seconds(one.seconds), f"{one.share:.0%}", *need_cells(one)) for one in stages]
    text = TEXT.format(rows=short(rows), features=FEATURES, machine=machine.sentence)
    figures: list[Mapping[str, Any]] = [asdict(one) for one in stages]
    return Section("stages", "Where the time goes", text, Table(columns, lines), figures=[*figures, asdict(machine)])


def need_cells(one: Stage) -> tuple[str, str, str, str]:
    """Dashes where nothing is counted."""
    if one.gigabytes == one.gigaflops == 0.0:
        return ("-",) * 4
    passed = f"{one.gigabytes:.3f} GB" if one.gigabytes else "-"
    done = f"{one.gigaflops:.3g} billion" if one.gigaflops else "-"
    return passed, done, one.limit, f"{one.per_cent_of_peak:.2g} % of peak"
