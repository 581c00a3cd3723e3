"""What a second core is worth: sites side by side, in threads."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

from goldfc.demo.data import Split, sites_of
from goldfc.randomness import generator
from goldfc.transport.local import LocalPort
from goldfc_bench.cases import split_of
from goldfc_bench.methods.oneshot import OneShotMethod
from goldfc_bench.run import warm_up
from goldfc_bench.scale.clock import seconds, time_pair
from goldfc_bench.scale.parts import Section, Table, Tick, in_seconds, short, times
from goldfc_bench.scale.plan import FEATURES, SITES, Plan, Size

TEXT = """\
The same federation with one site at a time and with two side by side. The server has one thread in either case, and
labels are the same. Two would be the most that a second core can give."""


@dataclass(frozen=True)
class Gain:
    """One size."""

    rows: int
    seconds_one: float
    seconds_two: float
    gain: float


def steps(plan: Plan, repeats: int) -> int:
    """How often it ticks."""
    return 2 * repeats * len(plan.two_jobs)


def measure(plan: Plan, repeats: int, tick: Tick) -> Section:
    """All sizes."""
    warm_up(OneShotMethod())
    return section([gain_at(rows, plan, repeats, tick) for rows in plan.two_jobs])


def gain_at(rows: int, plan: Plan, repeats: int, tick: Tick) -> Gain:
    """One job and two, in turn."""
    split = split_of(Size(rows, FEATURES).dataset, f"even-{SITES}")
    pair = time_pair(timed_federation(split, 1), timed_federation(split, 2), repeats, plan.patience, tick)
    return Gain(rows, *pair)


def timed_federation(split: Split, n_jobs: int) -> Callable[[], float]:
    """The seconds of a federation, its sites made outside the clock."""
    n_clusters = len(set(split.y.tolist()))

    def work() -> float:
        port = LocalPort(sites_of(OneShotMethod().site, split, 0), n_jobs=n_jobs)
        return seconds(lambda: OneShotMethod().serve(port, n_clusters, generator(0, "server")))

    return work


def section(gains: list[Gain]) -> Section:
    """For the page."""
    columns = ("rows", "one job", "two jobs", "gain")
    rows = [
        (short(one.rows), in_seconds(one.seconds_one), in_seconds(one.seconds_two), times(one.gain)) for one in gains
    ]
    figures = [asdict(one) for one in gains]
    return Section("two_jobs", "Two cores against one", TEXT, Table(columns, rows), figures=figures)
