"""The runner: a method on a case with a seed, scored both ways; one row for every run, whatever became of it.

Rows are appended to a file as runs end, each safely on disk before the next, so that a killed runner goes on where it
was. A failed run is a row with its reason, is never tried again in silence, and counts: as the answer of somebody who
has none, all rows in one cluster.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import goldfc
from goldfc._parallel import side_by_side
from goldfc._types import IntArray
from goldfc.demo.data import Dataset, Split, gather, sites_of
from goldfc.learning.paper import compilation
from goldfc.message.message import Message
from goldfc.randomness import generator
from goldfc.server.round import Port
from goldfc.transport.local import LocalPort
from goldfc_bench.cases import dataset_of, split_of
from goldfc_bench.digest import digest_of
from goldfc_bench.methods import method_named, module_of
from goldfc_bench.methods.protocol import Answer, Method
from goldfc_bench.rows import OUT_OF_TIME, RowFile, Status, attempt
from goldfc_bench.score import external_scores, internal_scores

Scores = dict[tuple[str, str], float]  # (evaluation, index) -> value
# The internal indices compare all pairs of rows, which the largest synthetic sets would not bear.
LARGEST_FOR_INTERNAL = 25_000
SITES, PORT = sites_of.__module__, LocalPort.__module__


@dataclass(frozen=True)
class Job:
    """One run to be made."""

    dataset: str
    split: str
    method: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    limit: float = 600.0  # seconds
    # Jobs of one chain are made by increasing size; after the first that takes too long, larger ones are not tried.
    chain: str = ""
    size: int = 0
    skip: str = ""  # why it is not tried

    @property
    def key(self) -> str:
        """What makes it one and the same run."""
        parts = [self.dataset, self.split, self.method, json.dumps(dict(self.settings), sort_keys=True), self.seed]
        return json.dumps(parts)


@dataclass(frozen=True)
class Run:
    """One run that was made, one row."""

    dataset: str
    split: str
    method: str
    settings: Mapping[str, Any]
    seed: int
    status: Status
    reason: str
    scores: Scores
    rows: int
    clusters: int
    seconds_sites: float
    seconds_server: float
    uplinks: int
    declared_uplinks: int
    bytes_up: int
    bytes_down: int
    details: Mapping[str, Any]
    version: str
    code: str = ""  # the digest of the code it was made with; "": nobody knows

    @property
    def key(self) -> str:
        """That of its job."""
        return Job(self.dataset, self.split, self.method, self.seed, self.settings).key

    @property
    def was_tried(self) -> bool:
        """Whether it was made at all: what took too long is not tried with a larger size."""
        return self.status != "not tried"

    @property
    def is_out_of_time(self) -> bool:
        """Whether it has no answer for lack of time."""
        return self.status in OUT_OF_TIME

    def to_json(self) -> str:
        """One line."""
        scores = {f"{evaluation} {index}": _rounded(value) for (evaluation, index), value in self.scores.items()}
        row = {name: _rounded(value) for name, value in vars(self).items()}
        return json.dumps({**row, "scores": scores}, default=list)

    @classmethod
    def from_json(cls, line: str) -> "Run":
        """Read it back."""
        row = json.loads(line)
        scores = {}
        for key, value in row["scores"].items():
            evaluation, index = key.split(" ", maxsplit=1)
            scores[evaluation, index] = math.nan if value is None else value
        return cls(**{**row, "scores": scores})


def _rounded(value: Any) -> Any:
    """Six decimals are plenty; JSON has no nan."""
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


# --- one run ---


def run_job(job: Job) -> Run:
    """One federation, from the sites' rows to both scores. Only the scorer sees the truth."""
    method = method_named(job.method, job.settings)
    warm_up(method)
    complete, split = dataset_of(job.dataset), split_of(job.dataset, job.split)
    sites = sites_of(method.site, split, job.seed)
    local = LocalPort(sites)
    port = TimedPort(local)
    labels, global_labels = np.zeros_like(split.y), np.zeros_like(complete.y)
    begin = time.perf_counter()
    status, reason, answer = serve(method, port, complete.n_clusters, job)
    seconds = time.perf_counter() - begin
    if answer is not None:
        labels, global_labels = gather(sites, split), answer.label(complete.X)
    return Run(
        dataset=job.dataset,
        split=job.split,
        method=job.method,
        settings=dict(job.settings),
        seed=job.seed,
        status=status,
        reason=reason,
        scores=score_both_ways(split, labels, complete, global_labels),
        rows=len(split.y),
        clusters=len(np.unique(labels)),
        seconds_sites=port.seconds,
        seconds_server=seconds - port.seconds,
        uplinks=local.traffic.uplinks,
        declared_uplinks=answer.uplinks if answer is not None else 0,
        bytes_up=local.traffic.bytes_up,
        bytes_down=local.traffic.bytes_down,
        details=dict(answer.details or {}) if answer is not None else {},
        version=goldfc.__version__,
    )


def serve(method: Method, port: Port, n_clusters: int, job: Job) -> tuple[Status, str, Answer | None]:
    """Status, reason, and the answer if there is one."""
    if job.skip:
        return "not tried", job.skip, None
    # One thread: runs are made side by side, and what is compared is work, not cores.
    with threadpool_limits(limits=1):
        return attempt(lambda: method.serve(port, n_clusters, generator(job.seed, "server")), job.limit)


class TimedPort:
    """A port that knows how long its sites took."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self.seconds = 0.0

    def ask(self, message: Message, sites: Sequence[str] | None = None) -> dict[str, Message]:
        """Pass the message on, with the clock running."""
        begin = time.perf_counter()
        try:
            return self._port.ask(message, sites)
        finally:
            self.seconds += time.perf_counter() - begin


@cache
def warm_up(method: Method) -> None:
    """Compile, or load what was compiled, outside the clock; once per method in every process."""
    rows = np.random.default_rng(0).normal(size=(30, 3))
    sites = [method.site(name, rows, generator(0, name)) for name in ("a", "b")]
    # If it breaks here, it will break there, where it is written down.
    with suppress(Exception):
        method.serve(LocalPort(sites), 2, generator(0, "server"))


def score_both_ways(split: Split, labels: IntArray, complete: Dataset, global_labels: IntArray) -> Scores:
    """Federated: the sites' rows by the labels they got. Global: all rows, each with its nearest global cluster."""
    scores = {("federated", index): value for index, value in external_scores(split.y, labels).items()}
    scores |= {("global", index): value for index, value in external_scores(complete.y, global_labels).items()}
    if len(complete.X) <= LARGEST_FOR_INTERNAL:
        scores |= {("global", index): value for index, value in internal_scores(complete.X, global_labels).items()}
    return scores


# --- many runs ---


class Rows(RowFile[Run]):
    """A file of runs."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Run.from_json)


def code_of(method: str) -> str:
    """The digest of what makes the rows of a method, but for the runner itself: data, sites, the method, scores."""
    return digest_of("goldfc_bench.cases", "goldfc_bench.score", SITES, PORT, module_of(method))


def run_jobs(jobs: Sequence[Job], rows: Rows, n_jobs: int, on_run: Callable[[Run], None]) -> list[Run]:
    """Make the runs that are not yet in the file, and give those of all jobs, in their order.

    In the end the file has them in this order, too, after whatever other rows it had. Rows of methods whose code has
    changed are made anew. `on_run` hears of every run, those that were there already included.
    """
    if any(job.method.startswith("GOLD") for job in jobs):
        compilation.announce(compilation.LEARNING)  # here, because runs are made in processes of their own
    wanted = {job.key: job for job in jobs}
    codes = {method: code_of(method) for method in {job.method for job in jobs}}
    there = rows.read()
    others = [run for run in there if run.key not in wanted]
    runs = {run.key: run for run in there if run.key in wanted and run.code == codes[run.method]}
    rows.rewrite([*others, *runs.values()])
    for run in runs.values():
        on_run(run)
    for made in make_missing(list(wanted.values()), runs, n_jobs):
        run = replace(made, code=codes[made.method])
        rows.append(run)
        runs[run.key] = run
        on_run(run)
    in_order = [runs[key] for key in wanted]
    rows.rewrite([*others, *in_order])
    return in_order


def make_missing(jobs: Sequence[Job], runs: Mapping[str, Run], n_jobs: int) -> Iterator[Run]:
    """Make the runs that `runs` does not have yet (it must have them by the time the next is asked for).

    Small ones come first; what took too long is not tried with a larger size.
    """
    too_long: dict[str, str] = {}
    for size in sorted({job.size for job in jobs}):
        stage = [job for job in jobs if job.size == size]
        missing = [replace(job, skip=too_long.get(job.chain, "")) for job in stage if job.key not in runs]
        # Processes, because a run that takes too long is stopped by a signal.
        yield from side_by_side(run_job, missing, n_jobs, prefer="processes", ordered=False)
        for job in stage:
            if job.chain and runs[job.key].status == "timeout":
                too_long.setdefault(job.chain, f"not done within {job.limit:g} s at size {job.size}")
