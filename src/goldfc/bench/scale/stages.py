"""Where the time goes: the stages of a federation, each against what the machine could do."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any

from goldfc.bench.cases import split_of
from goldfc.bench.methods.gold import GoldConsensus
from goldfc.bench.run import clients_of, warm_up
from goldfc.bench.scale import needs
from goldfc.bench.scale.machine import Machine, measure_machine
from goldfc.bench.scale.needs import Need
from goldfc.bench.scale.parts import Section, Table, Tick, in_seconds, short
from goldfc.bench.scale.plan import CLIENTS, FEATURES, Plan, Size
from goldfc.learning import blocks, consensus, mixture
from goldfc.protocol import client, finding
from goldfc.protocol.federation import LocalPort, generator

ELSE = "everything else"
Needs = Callable[..., Need]


@dataclass(frozen=True)
class Probe:
    """A function that belongs to a stage (None: to the one that calls it), and what it needs."""

    stage: str | None
    owner: object
    name: str
    need: Needs | None = None


# In the order of the protocol.
PROBES = (
    Probe("checking rows, moments", client, "checked", lambda source, *_: needs.of_rows(1, None, source)),
    Probe("checking rows, moments", client, "moments_of", partial(needs.of_rows, 2)),
    Probe("learning at once", finding, "find_at_once"),
    Probe("learning blocks", blocks, "learn_block"),
    Probe("merging blocks", blocks.Merger, "add"),
    Probe("merging blocks", blocks.Merger, "finish"),
    Probe(None, finding, "compete", needs.of_competition),
    Probe(None, blocks, "compete", needs.of_competition),
    Probe("thinning to 100", finding, "thin", needs.of_thinning),
    Probe("rows to the nearest", finding, "nearest", needs.of_nearest),
    Probe("measuring, shape", client, "measure", partial(needs.of_rows, 1)),
    Probe("measuring, shape", client, "shape_of", needs.of_shape),
    Probe("mixtures", consensus, "fit_levels"),
    Probe(None, mixture, "memberships_of", needs.of_em_step),
    Probe("embedding, cut", consensus, "fuse_partitions"),
    Probe(None, consensus, "embed", needs.of_embedding),
    Probe("labelling", client, "label_micro_clusters"),
)
STAGES = (*dict.fromkeys(probe.stage for probe in PROBES if probe.stage), ELSE)


class StageClock:
    """Seconds and needs by stage. One runs at a time: a stage inside another stops the outer one's clock."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.needs: dict[str, Need] = defaultdict(Need)
        self._running = ELSE
        self._since = time.perf_counter()

    def switch(self, stage: str) -> str:
        """From here on another stage runs; the answer is the one that did."""
        now, before = time.perf_counter(), self._running
        self.seconds[before] += now - self._since
        self._running, self._since = stage, now
        return before

    def watch(self, probe: Probe, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, under the clock."""

        def watched(*arguments: Any, **named: Any) -> Any:
            before = self.switch(probe.stage or self._running)
            result = function(*arguments, **named)
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
            function = getattr(probe.owner, probe.name)
            stack.callback(setattr, probe.owner, probe.name, function)
            setattr(probe.owner, probe.name, clock.watch(probe, function))
        yield


@dataclass(frozen=True)
class Stage:
    """One stage, and what it would take at the least."""

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
    warm_up(GoldConsensus())
    split = split_of(Size(plan.profiled, FEATURES).dataset, f"even-{CLIENTS}")
    clocks = []
    for seed in range(repeats):
        port = LocalPort(clients_of(GoldConsensus().client, split, seed))
        clocks.append(profile(port, len(set(split.y.tolist())), seed))
        tick()
    machine = measure_machine(plan)
    tick()
    return section(stages_of(clocks, machine), machine, plan.profiled)


def profile(port: LocalPort, n_clusters: int, seed: int) -> StageClock:
    """One federation under the clock."""
    clock = StageClock()
    with under(clock):
        clock.switch(ELSE)
        clock.seconds.clear()
        GoldConsensus().serve(port, n_clusters, generator(seed, "server"))
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
The stages of one federation of {rows} rows x {features} at eight clients, one at a time; the time of all clients is
added up. Beside the seconds stands what a stage cannot do without, counted by formula: the bytes of the arrays that it
goes through, and the operations on them, temporary arrays not counted. Of the two limits, the one that would hold up a
perfect program longer is named, and how near the stage comes to it: "x % of peak" says that a program at that limit
would take x hundredths of the time. {machine} Peaks are out of reach for most work: a matrix product uses every number
many times, with a multiplication and an addition in one instruction; a competition has to look at the winner of every
row before it may go on to the next. Competitions are counted as if candidates went evenly from first to last, and all
that are left were compared: where some are ruled out unseen, the figure is too high."""


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
