"""The runner: one row for every family, draw and method, whatever became of it; only here the truth is known."""

import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from threadpoolctl import threadpool_limits

from goldfc._parallel import side_by_side
from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadSettings, GoldError
from goldfc.files import write_durably
from goldfc_bench.families import BACKGROUND, FAMILIES, Family
from goldfc_bench.run import Clock
from goldfc_bench.score import ari
from goldfc_bench.shapes.ours import OURS
from goldfc_bench.shapes.rivals import AT_SITES, MIXED, POOLED, warm_up
from goldfc_bench.shapes.sites import Method, NotForThese, Outcome, Sites, draw_sites

LIMIT = 60.0  # seconds
BINS = 10  # of certainty


@dataclass(frozen=True)
class Row:
    """One run; what failed counts as all rows in one cluster, and what was skipped or took too long has no ARI."""

    family: str
    draw: int
    method: str
    status: str  # "done", "skipped" (not for such data), "failed" (it said why), "timeout", or "error" (it broke)
    reason: str
    ari: float | None
    rows: int
    true_clusters: int
    clusters: int
    seconds: float
    # For every tenth of certainty: rows, their certainties added up, and how many of them are right.
    certainty: Sequence[tuple[int, float, int]] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int, str]:
        """What makes it one and the same run."""
        return self.family, self.draw, self.method

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
    return {**OURS, **AT_SITES, **POOLED, **(MIXED if family.kind == "mixed" else {})}


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
    status, reason, outcome = attempt(methods_for(job.family)[name], sites, job.draw)
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


def attempt(method: Method, sites: Sites, seed: int) -> tuple[str, str, Outcome | None]:
    """Status, reason, and the outcome if there is one."""
    clock = Clock(LIMIT)
    try:
        with clock, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that fewer clusters were found is seen from the outcome
            return "done", "", method(sites, seed)
    except NotForThese as reason:
        return "skipped", str(reason), None
    except Exception as error:  # whatever a method breaks with belongs into its row, not into the runner
        if clock.is_up:
            return "timeout", f"not done within {LIMIT:g} s", None
        if isinstance(error, GoldError):
            return "failed", str(error), None
        return "error", f"{type(error).__name__}: {error}", None


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


class RowFile:
    """A file of rows; those of a draw are safely on disk before others are waited for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Row]:
        """All complete rows; what a killed runner left of its last line is not one."""
        if not self.path.is_file():
            return []
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        return [Row.from_json(line) for line in lines if line.endswith("\n")]

    def append(self, rows: Iterable[Row]) -> None:
        """Put rows on disk before anything else happens."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(as_lines(rows))
            file.flush()
            os.fsync(file.fileno())

    def rewrite(self, rows: Iterable[Row]) -> None:
        """All rows anew, at once or not at all."""
        write_durably(self.path, as_lines(rows).encode())


def as_lines(rows: Iterable[Row]) -> str:
    """One line of JSON for every row."""
    return "".join(json.dumps(asdict(row)) + "\n" for row in rows)


def run_all(
    families: Sequence[Family], draws: int, file: RowFile, n_jobs: int, on_draw: Callable[[], None]
) -> list[Row]:
    """Make the rows that are not yet in the file, and give all, in the order of families, draws and methods.

    `on_draw` hears of every draw, those that were complete already included.
    """
    file.path.parent.mkdir(parents=True, exist_ok=True)
    rows = {row.key: row for row in file.read()}
    file.rewrite(rows.values())  # without what is left of a last line
    jobs = [Job(family, draw, missing(family, draw, rows)) for family in families for draw in range(draws)]
    for made in make(jobs, n_jobs):
        file.append(made)
        rows |= {row.key: row for row in made}
        on_draw()
    wanted = [(family.name, draw, name) for family in families for draw in range(draws) for name in methods_for(family)]
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


def families_named(names: Sequence[str]) -> list[Family]:
    """Some of them, or all."""
    known = {family.name for family in FAMILIES}
    if unknown := [name for name in names if name not in known]:
        raise BadSettings(f"There is no family {unknown[0]!r}; the known ones are {', '.join(sorted(known))}.")
    return [family for family in FAMILIES if not names or family.name in names]
