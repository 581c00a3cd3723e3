"""What must be done within a minute and two gigabytes: wide rows, and a fleet of sites."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from goldfc import OneShotClustering
from goldfc._types import FloatArray, IntArray
from goldfc_bench.scale.memory import in_fresh_process, peak_of_process
from goldfc_bench.scale.parts import Section, Table, Target, Tick, in_seconds, spaced
from goldfc_bench.scale.plan import FEATURES, SITES, Plan

SECONDS, GIGABYTES = 60.0, 2.0
CLUSTERS = 5
# How far the centres of clusters lie from each other, in deviations of their rows.
APART = 8.0
TEXT = f"""\
`OneShotClustering` from rows to labels, with one thread, each in a fresh process; {CLUSTERS} round clusters, the number
given. Memory is the most that the process held meanwhile (resident set), rows, Python and libraries included. Wide rows
are as text and image embeddings have them; a fleet is many sites of which each has next to nothing."""


@dataclass(frozen=True)
class Limited:
    """One case: what it took."""

    what: str
    seconds: float
    bytes: float  # nan where the system does not tell


def steps(plan: Plan, repeats: int) -> int:  # noqa: ARG001
    """How often it ticks."""
    return 2


def measure(plan: Plan, repeats: int, tick: Tick) -> Section:  # noqa: ARG001
    """Once each: limits are met with room to spare, or they are not met."""
    cases: list[Callable[[], Limited]] = [partial(cluster_wide, *plan.wide), partial(cluster_fleet, *plan.fleet)]
    found = []
    for case in cases:
        found.append(in_fresh_process(case))
        tick()
    return section(found)


def cluster_wide(n_rows: int, n_features: int) -> Limited:
    """Many features at a few sites."""
    rows = mixture(n_rows, n_features)
    what = f"{SITES} sites, {spaced(n_rows)} rows x {spaced(n_features)}"
    return cluster(what, rows, np.arange(n_rows) % SITES)


def cluster_fleet(n_sites: int, rows_each: int) -> Limited:
    """A few rows at many sites."""
    rows = mixture(n_sites * rows_each, FEATURES)
    return cluster(f"{spaced(n_sites)} sites, {rows_each} rows x {FEATURES} each", rows, np.arange(len(rows)) % n_sites)


def cluster(what: str, rows: FloatArray, sites: IntArray) -> Limited:
    """From rows to labels."""
    estimator = OneShotClustering(CLUSTERS, random_state=0)
    return Limited(what, *peak_of_process(lambda: estimator.fit(rows, groups=sites)))


def mixture(n_rows: int, n_features: int) -> FloatArray:
    """Rows of round clusters, in any order."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=APART / np.sqrt(2.0 * n_features), size=(CLUSTERS, n_features))
    rows = rng.normal(size=(n_rows, n_features))
    rows += centres[rng.integers(CLUSTERS, size=n_rows)]
    return rows


def section(found: list[Limited]) -> Section:
    """For the page."""
    columns = ("what", "seconds", "at most", "memory", "at most")
    rows, targets = [], []
    for one in found:
        gigabytes = one.bytes / 1e9
        limits = f"{SECONDS:g} s", f"{gigabytes:.2f} GB", f"{GIGABYTES:g} GB"
        rows.append((one.what, in_seconds(one.seconds), *limits))
        targets.append(Target(f"{one.what}, seconds", one.seconds, SECONDS, " s"))
        targets.append(Target(f"{one.what}, memory", gigabytes, GIGABYTES, " GB"))
    figures = [asdict(one) for one in found]
    return Section("limits", "Wide rows, and a fleet", TEXT, Table(columns, rows), targets, figures)
