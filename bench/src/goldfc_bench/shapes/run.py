"""The runner: one row for every family, draw and method, whatever became of it; only here the truth is known."""

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from threadpoolctl import threadpool_limits

from goldfc._parallel import side_by_side
from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadSettings
from goldfc_bench.digest import digest_of
from goldfc_bench.families import BACKGROUND, FAMILIES, Family
from goldfc_bench.rows import RowFile, Status, attempt
from goldfc_bench.score import ari
from goldfc_bench.shapes.ours import OURS
from goldfc_bench.shapes.rivals import AT_SITES, MIXED, POOLED, warm_up
from goldfc_bench.shapes.sites import Method, Outcome, Sites, draw_sites

LIMIT = 60.0  # seconds
BINS = 10  # of certainty
ALL: dict[str, Method] = {**OURS, **AT_SITES, **POOLED, **MIXED}


@dataclass(frozen=True)
class Row:
    """One run; what failed counts as all rows in one cluster, and what was skipped or took too long has no ARI."""

    family: str
    draw: int
    method: str
    status: Status
    reason: str
    ari: float | None
    rows: int
    true_clusters: int
    clusters: int
    seconds: float
    # For every tenth of certainty: rows, their certainties added up, and how many of them are right.
    certainty: Sequence[tuple[int, float, int]] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""  # the digest of the code it was made with; "": nobody knows

    @property
    def key(self) -> tuple[str, int, str]:
        """What makes it one and the same run."""
        return self.family, self.draw, self.method

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> "Row":
        """Read it back."""
        row = json.loads(line)
        return cls(**{**row, "certainty": tuple(map(tuple, row["certainty"]))})


@dataclass(frozen=True)
class Job:
    """A draw of a family, and what is still to be run on it."""

    family: Family
    draw: int
    methods: tuple[str, ...]


def methods_for(family: Family) -> dict[str, Method]:
    """All that apply to a family, in the order of the tables."""
    return ALL if family.kind == "mixed" else {name: method for name, method in ALL.items() if name not in MIXED}


# --- one row ---


def run_job(job: Job) -> list[Row]:
    """All missing rows of one draw. One thread: what is compared is work, not cores."""
    with threadpool_limits(limits=1):
        warm_up()
        sites, truth = draw_sites(job.family, job.draw)
        return [run_method(job, name, sites, truth) for name in job.methods]


def run_method(job: Job, name: str, sites: Sites, truth: IntArray) -> Row:
    """One method, with the clock running, and its score."""
    begin = time.perf_counter()
    status, reason, outcome = cluster(methods_for(job.family)[name], sites, job.draw)
    seconds = time.perf_counter() - begin
    one_cluster = Outcome(np.zeros_like(truth)) if status in ("failed", "error") else None
    answer = outcome or one_cluster
    scored = truth != BACKGROUND
    return Row(
        family=job.family.name,
        draw=job.draw,
        method=name,
        status=status,
        reason=reason,
        ari=None if answer is None else round(ari(truth[scored], answer.labels[scored]), 6),
        rows=len(truth),
        true_clusters=sites.n_clusters,
        clusters=0 if answer is None else len(np.unique(answer.labels)),
        seconds=round(seconds, 3),
        certainty=() if outcome is None else certainty_bins(truth, outcome),
        details={} if outcome is None else outcome.details,
    )


def cluster(method: Method, sites: Sites, seed: int) -> tuple[Status, str, Outcome | None]:
    """Status, reason, and the outcome if there is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that fewer clusters were found is seen from the outcome
        return attempt(lambda: method(sites, seed), LIMIT)


def certainty_bins(truth: IntArray, outcome: Outcome) -> tuple[tuple[int, float, int], ...]:
    """For every tenth of certainty: rows, their certainties added up, and how many of them are right."""
    if outcome.certainty is None:
        return ()
    scored = truth != BACKGROUND
    certainty, right = outcome.certainty[scored], is_right(truth[scored], outcome.labels[scored])
    bins = np.minimum((certainty * BINS).astype(np.int64), BINS - 1)
    sums = [np.bincount(bins, weights, BINS) for weights in (np.ones_like(certainty), certainty, right)]
    return tuple((int(rows), round(float(sure), 3), int(hits)) for rows, sure, hits in zip(*sums, strict=True))


def is_right(truth: IntArray, labels: IntArray) -> FloatArray:
    """1 where the cluster of a row is matched to its class, one cluster to one class, as well as can be."""
    classes, clusters = (np.unique(names, return_inverse=True)[1] for names in (truth, labels))
    matches = np.zeros((int(classes.max()) + 1, int(clusters.max()) + 1))
    np.add.at(matches, (classes, clusters), 1)
    matched = np.zeros_like(matches)
    matched[linear_sum_assignment(matches, maximize=True)] = 1.0
    return np.asarray(matched[classes, clusters])


# --- all rows ---


def run_all(
    families: Sequence[Family], draws: int, file: RowFile[Row], n_jobs: int, on_draw: Callable[[], None]
) -> list[Row]:
    """Make the rows that are not yet in the file, and give all, in the order of families, draws and methods.

    Rows of methods whose code has changed are made anew. `on_draw` hears of every draw, also of those that were
    complete already.
    """
    wanted = [(family.name, draw, name) for family in families for draw in range(draws) for name in methods_for(family)]
    codes = {name: code_of(name) for name in ALL}
    rows = {row.key: row for row in file.read() if row.key not in set(wanted) or row.code == codes[row.method]}
    file.rewrite(rows.values())  # without what is left of a last line
    jobs = [Job(family, draw, missing(family, draw, rows)) for family in families for draw in range(draws)]
    for found in make(jobs, n_jobs):
        made = [replace(row, code=codes[row.method]) for row in found]
        file.append(*made)
        rows |= {row.key: row for row in made}
        on_draw()
    others = [row for key, row in rows.items() if key not in set(wanted)]
    in_order = [rows[key] for key in wanted]
    file.rewrite([*in_order, *others])
    return in_order


def missing(family: Family, draw: int, rows: Mapping[tuple[str, int, str], Row]) -> tuple[str, ...]:
    """The methods whose rows are not there."""
    return tuple(name for name in methods_for(family) if (family.name, draw, name) not in rows)


def make(jobs: Sequence[Job], n_jobs: int) -> Iterator[list[Row]]:
    """The rows of every draw as it ends; in processes, because what takes too long is stopped by a signal."""
    yield from ([] for job in jobs if not job.methods)
    yield from side_by_side(run_job, [job for job in jobs if job.methods], n_jobs, prefer="processes", ordered=False)


def code_of(method: str) -> str:
    """The digest of what makes the rows of a method, but for the runner itself: families, sites, the method, scores."""
    function = ALL[method]
    own = function.func if isinstance(function, partial) else function
    return digest_of("goldfc_bench.families", "goldfc_bench.score", "goldfc_bench.shapes.sites", own.__module__)


def families_named(names: Sequence[str]) -> list[Family]:
    """Some of them, or all."""
    known = {family.name for family in FAMILIES}
    if unknown := [name for name in names if name not in known]:
        raise BadSettings(f"There is no family {unknown[0]!r}; the known ones are {', '.join(sorted(known))}.")
    return [family for family in FAMILIES if not names or family.name in names]
