"""Growth: to which power of rows and features the time grows, by a straight line through logarithms."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median

import numpy as np

from goldfc._types import FloatArray
from goldfc.learning.paper.competition import Learning
from goldfc.randomness import site_generator
from goldfc.site.gold import Blocks, learn
from goldfc_bench.cases import dataset_of
from goldfc_bench.scale.clock import in_turn, seconds
from goldfc_bench.scale.parts import Section, Table, Target, Tick, in_seconds, short
from goldfc_bench.scale.plan import FEATURES, ROWS, Plan, Size
from goldfc_bench.scale.whole import OURS, Race

WHOLE, SITES_ALONE, BLOCKS = "OneShot", "OneShot's sites alone", "GOLD's block learning"
# At most to this power.
IN_ROWS, IN_FEATURES = 1.05, 1.1
TEXT = f"""\
An exponent of 1 means that twice the rows take twice the time, 2 that they take four times as long. It is the slope of
a straight line, fitted by least squares, through the logarithms of seconds and size. OneShot as a whole has a part that
does not grow with the rows, the judge at the server, so its sites are shown alone, too. The paper's learner takes
time that grows with the square of the rows, unless it learns them in blocks: that is one site of GOLD that has all
rows and learns them so, however few they are. Rows grow at {FEATURES} features; features grow at {ROWS} rows."""


@dataclass(frozen=True)
class Growth:
    """Seconds against one number that grows."""

    what: str
    along: str  # "rows" or "features"
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """To which power of the size the time grows; nan with a single size."""
        return exponent(self.sizes, self.seconds)


def exponent(sizes: Sequence[float], seconds_taken: Sequence[float]) -> float:
    """The slope of log seconds over log size, by least squares."""
    if len(sizes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(seconds_taken), 1)[0])


def steps(plan: Plan, repeats: int) -> int:
    """How often it ticks."""
    return repeats * (len(plan.rows) + len(plan.features))


def measure_blocks(plan: Plan, repeats: int, tick: Tick) -> list[Growth]:
    """Block learning of one site, all sizes in turn."""
    sizes = [*plan.by_rows, *plan.by_features]
    rows = {size: dataset_of(size.dataset).X for size in sizes}
    learn_in_blocks(rows[sizes[0]][:100])  # compiles
    works = {size: lambda size=size: seconds(lambda: learn_in_blocks(rows[size])) for size in sizes}
    samples = in_turn(works, repeats, plan.patience, tick)
    medians = {size: median(samples[size]) for size in sizes}
    return [
        growth_along(BLOCKS, "rows", plan.by_rows, medians),
        growth_along(BLOCKS, "features", plan.by_features, medians),
    ]


def learn_in_blocks(rows: FloatArray) -> None:
    """What a site of GOLD does, its rows learned in blocks however few they are."""
    learn(rows, "all", Learning(), site_generator(0, "all"), Blocks(most_at_once=0, n_jobs=1))


def growth_along(what: str, along: str, sizes: Sequence[Size], medians: dict[Size, float]) -> Growth:
    """Seconds at some sizes."""
    numbers = tuple(getattr(size, along) for size in sizes)
    return Growth(what, along, numbers, tuple(medians[size] for size in sizes))


def growth_of_races(races: Sequence[Race], plan: Plan) -> list[Growth]:
    """The whole, and its sites."""
    whole = {race.size: race.seconds(OURS) for race in races}
    sites = {race.size: race.seconds_sites(OURS) for race in races}
    return [
        growth_along(what, along, sizes, medians)
        for along, sizes in (("rows", plan.by_rows), ("features", plan.by_features))
        for what, medians in ((WHOLE, whole), (SITES_ALONE, sites))
    ]


def section(growths: Sequence[Growth]) -> Section:
    """Exponents, and the seconds they are made from."""
    columns = ("what", "grows with", "seconds", "exponent")
    rows, targets = [], []
    for one in growths:
        taken = ", ".join(f"{short(size)}: {in_seconds(t)}" for size, t in zip(one.sizes, one.seconds, strict=True))
        rows.append((one.what, one.along, taken, f"{one.exponent:.2f}"))
        limit = IN_ROWS if one.along == "rows" else IN_FEATURES
        targets.append(Target(f"growth of {one.what} with {one.along}, exponent", one.exponent, limit))
    figures = [{**asdict(one), "exponent": one.exponent} for one in growths]
    return Section("growth", "How time grows", TEXT, Table(columns, rows), targets, figures)
