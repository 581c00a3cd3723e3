"""Peak memory, each in a process of its own, so that nothing is left over from what went before."""

import ctypes
import gc
import math
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from goldfc._types import IntArray
from goldfc.demo.data import sites_of
from goldfc.learning.micro_clusters import MicroClusters
from goldfc.learning.paper._kernels import Candidates
from goldfc.learning.paper.competition import Learning
from goldfc.learning.paper.fusion import fuse_levels
from goldfc.learning.paper.granularity import find_levels
from goldfc.message.task import Task
from goldfc.randomness import generator
from goldfc.site.summarize import summarize
from goldfc.transport.local import LocalPort
from goldfc_bench.cases import dataset_of, split_of
from goldfc_bench.methods.gold import Gold
from goldfc_bench.methods.oneshot import OneShotMethod
from goldfc_bench.run import warm_up
from goldfc_bench.scale.clock import seconds
from goldfc_bench.scale.fusion import find_clusters, overlapping
from goldfc_bench.scale.learner import learn, rows_of
from goldfc_bench.scale.parts import Section, Table, Target, Tick, short
from goldfc_bench.scale.plan import FEATURES, SITES, Plan, Size

Result = TypeVar("Result")

NUMBER = 8  # bytes
ANSWER = 20  # of a row: its micro-cluster, its cluster, and how certain that is
SITE_DATA, DATA_AND_STATE, GIGABYTES = 3.0, 4.0, 2.0
# The server's: features and clusters of the micro-clusters.
MICRO_FEATURES, MICRO_CLUSTERS = 16, 2
# Two arrays of the competition have a number for every feature of every candidate, the others one per candidate.
WIDE = ("centroid", "importance")
TEXT = """\
How far the peak of resident memory rose above what was in use when the rows had been made, each measured in a fresh
process after compilation, and beside it what it is measured by. The federation holds all rows of its eight sites,
whose programs run two at a time; the unit is the data of one of them. What all eight have in the end, for every row its
micro-cluster, its cluster and how certain that is, is counted in the first line and not in the second. The lone site
has all rows itself, and summarises them; its peak counts the rows, too. So does that of exact FCPL, the learner of
GOLD; its state is what it has to keep of every candidate: a centroid, as many feature weights, and five numbers. An n x
k matrix of distances, 625 MB for the first, is never made. The last two lines are the servers of OneShot and of
GOLD."""


@dataclass(frozen=True)
class Peak:
    """One measurement, in bytes; nan where the system does not tell."""

    what: str
    extra: float
    own: float  # what is counted besides, the rows; or, if negative, what is not
    unit: float
    unit_name: str
    limit: float  # nan: none

    @property
    def ratio(self) -> float:
        """In units."""
        return (self.extra + self.own) / self.unit


def steps(plan: Plan, repeats: int) -> int:  # noqa: ARG001
    """How often it ticks."""
    return 2 + len(plan.learner) + 2


def measure(plan: Plan, repeats: int, tick: Tick) -> Section:  # noqa: ARG001
    """All of them, one after the other."""
    rows = max(plan.two_jobs)
    federation = in_fresh_process(partial(peak_of_federation, Size(rows, FEATURES)))
    peaks = [federation, without_answers(federation, rows)]
    tick()
    jobs: list[Callable[[], Peak]] = [
        partial(peak_of_site, Size(rows, FEATURES)),
        *(partial(peak_of_learner, *size) for size in plan.learner),
        *(partial(peak_of_fusion, name, plan.micro_clusters) for name in FUSIONS),
    ]
    for job in jobs:
        peaks.append(in_fresh_process(job))
        tick()
    return section(peaks)


# --- each in its own process ---


def peak_of_federation(size: Size) -> Peak:
    """Eight sites in one process, two at a time; all rows are there before."""
    warm_up(OneShotMethod())
    split = split_of(size.dataset, f"even-{SITES}")
    sites, n_clusters = sites_of(OneShotMethod().site, split, 0), len(set(split.y.tolist()))
    one = NUMBER * size.features * int(np.bincount(split.site).max())
    del split
    forget_cases()
    port = LocalPort(sites, n_jobs=2)
    _, extra = peak_bytes(lambda: OneShotMethod().serve(port, n_clusters, generator(0, "server")))
    what = f"federation of {short(size.rows)} rows, two jobs"
    return Peak(what, extra, 0.0, one, "one site's data", SITE_DATA)


def without_answers(peak: Peak, rows: int) -> Peak:
    """Without what all sites have in the end, which each would keep on its own machine."""
    return replace(
        peak, what="the same without the answers of all eight", own=-float(ANSWER * rows), limit=float("nan")
    )


def peak_of_site(size: Size) -> Peak:
    """One site with all rows."""
    warm_up(OneShotMethod())
    rows = dataset_of(size.dataset).X
    forget_cases()
    _, extra = peak_bytes(lambda: summarize(rows, "all", Task()))
    what = f"lone site of {short(size.rows)} rows"
    return Peak(what, extra, rows.nbytes, rows.nbytes, "its data", SITE_DATA)


def peak_of_learner(data: str, rows: int, features: int) -> Peak:
    """Exact FCPL."""
    warm_up(Gold())
    X = rows_of(data, rows, features)
    forget_cases()
    _, extra = peak_bytes(lambda: learn(X))
    unit = X.nbytes + state_bytes(rows // 2, features)
    return Peak(f"exact FCPL, {data}, {rows} x {features}", extra, X.nbytes, unit, "data and state", DATA_AND_STATE)


def peak_of_fusion(name: str, micro_clusters: int) -> Peak:
    """The server's part."""
    warm_up(OneShotMethod())
    warm_up(Gold())
    micro = overlapping(micro_clusters, MICRO_FEATURES, MICRO_CLUSTERS)
    forget_cases()
    _, extra = peak_bytes(lambda: FUSIONS[name](micro, MICRO_CLUSTERS, generator(0, "server")))
    what = f"{name} of {short(micro_clusters)} micro-clusters x {MICRO_FEATURES}"
    return Peak(what, extra, 0.0, 1e9, "GB", GIGABYTES)


def fuse_as_the_paper(micro: MicroClusters, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """MCPL and REMC, which know nothing but centroids."""
    return fuse_levels(find_levels(micro.centroids, Learning(), rng), n_clusters, rng)


FUSIONS: Mapping[str, Callable[[MicroClusters, int, np.random.Generator], object]] = {
    "merging and judging": find_clusters,
    "MCPL and REMC": fuse_as_the_paper,
}


def state_bytes(candidates: int, features: int) -> int:
    """What the competition keeps of its candidates."""
    return NUMBER * candidates * (len(WIDE) * features + len(Candidates._fields) - len(WIDE))


# --- how it is measured ---


def in_fresh_process(work: Callable[[], Result]) -> Result:
    """The result of work that is done in a new process, with one thread."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(with_one_thread, work).result()


def with_one_thread(work: Callable[[], Result]) -> Result:
    """One for BLAS and OpenMP."""
    with threadpool_limits(limits=1):
        return work()


def forget_cases() -> None:
    """Give back the memory that making rows took, so that it does not pass for what is in use."""
    dataset_of.cache_clear()
    split_of.cache_clear()
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def peak_bytes(work: Callable[[], Result]) -> tuple[Result, float]:
    """The result, and how much the peak of resident memory rose above what was in use; Linux only, else nan."""
    try:
        forget_peak()
        before = resident_bytes("VmRSS")
    except OSError:
        return work(), float("nan")
    result = work()
    return result, resident_bytes("VmHWM") - before


def peak_of_process(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and the most bytes that the whole process held meanwhile; Linux only, else nan."""
    try:
        forget_peak()
    except OSError:
        return seconds(work), float("nan")
    return seconds(work), resident_bytes("VmHWM")


def forget_peak() -> None:
    """From here on, the peak of resident memory is a new one."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def resident_bytes(field: str) -> float:
    """A line of the kernel's account of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith(field))


# --- the page ---


def section(peaks: list[Peak]) -> Section:
    """For the page."""
    columns = ("what", "extra memory", "measured by", "peak in these units", "target")
    rows = [
        (
            one.what,
            f"{(one.extra + min(one.own, 0.0)) / 1e6:.1f} MB",
            one.unit_name if one.unit_name == "GB" else f"{one.unit_name}, {one.unit / 1e6:.1f} MB",
            f"{one.ratio:.2f}",
            "-" if math.isnan(one.limit) else f"{one.limit:g}",
        )
        for one in peaks
    ]
    targets = [
        Target(f"memory of {one.what}, in {one.unit_name}", one.ratio, one.limit)
        for one in peaks
        if not math.isnan(one.limit)
    ]
    figures = [{**asdict(one), "ratio": one.ratio} for one in peaks]
    return Section("memory", "Peak memory", TEXT, Table(columns, rows), targets, figures)
