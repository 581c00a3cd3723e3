"""Run GOLD on a split, score it both ways, and keep one row for every run, whatever became of it."""

import csv
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

import goldfc
from goldfc import Client, Learning, LocalPort, fuse, run_round, summarize
from goldfc._types import IntArray
from goldfc.bench.datasets import Dataset, Split, load, load_split
from goldfc.bench.score import external_scores, internal_scores
from goldfc.errors import GoldError
from goldfc.model import predict
from goldfc.protocol.federation import Port, generator
from goldfc.protocol.message import Message

Scores = dict[tuple[str, str], float]  # (evaluation, index) -> value


@dataclass(frozen=True)
class Run:
    """One run, one row.

    A failed run counts, too: as the answer of somebody who has none, all rows in one cluster. Where an index is not
    defined for that, its score is nan.
    """

    dataset: str
    method: str
    seed: int
    status: str  # "done" or "failed"
    reason: str
    scores: Scores
    seconds_clients: float
    seconds_server: float
    uplinks: int
    bytes_up: int
    bytes_down: int
    micro_clusters: int
    levels: tuple[int, ...]

    def as_row(self) -> dict[str, object]:
        """For a CSV file."""
        row = {name: value for name, value in vars(self).items() if name != "scores"}
        row |= {"levels": " ".join(map(str, self.levels)), "version": goldfc.__version__}
        row |= {name: round(row[name], 4) for name in ("seconds_clients", "seconds_server")}
        return row | {f"{evaluation} {index}": round(value, 6) for (evaluation, index), value in self.scores.items()}


class TimedPort:
    """A port that knows how long its clients took."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self.seconds = 0.0

    def ask(self, message: Message, clients: Sequence[str] | None = None) -> dict[str, Message]:
        """Pass the message on, with the clock running."""
        begin = time.perf_counter()
        answers = self._port.ask(message, clients)
        self.seconds += time.perf_counter() - begin
        return answers


def run_gold(split: Split, complete: Dataset, seed: int, learning: Learning | None = None) -> Run:
    """One federation, from the clients' rows to both scores. Only the scorer sees the truth."""
    warm_up()
    clients = clients_of(split, seed)
    local = LocalPort(clients)
    port = TimedPort(local)
    labels, global_labels = np.zeros_like(split.y), np.zeros_like(complete.y)
    status, reason, micro_clusters = "done", "", 0
    levels: tuple[int, ...] = ()
    begin = time.perf_counter()
    try:
        model = run_round(port, complete.n_clusters, learning or Learning(), generator(seed, "server")).model
    except GoldError as error:
        status, reason = "failed", str(error)
    seconds = time.perf_counter() - begin
    if status == "done":
        labels, global_labels = gather(clients, split), predict(model, complete.X)
        micro_clusters, levels = len(model.micro_labels), model.levels.n_clusters
    return Run(
        dataset=complete.name,
        method="GOLD",
        seed=seed,
        status=status,
        reason=reason,
        scores=score_both_ways(split.y, labels, complete, global_labels),
        seconds_clients=port.seconds,
        seconds_server=seconds - port.seconds,
        uplinks=local.ledger.uplinks,
        bytes_up=local.ledger.bytes_up,
        bytes_down=local.ledger.bytes_down,
        micro_clusters=micro_clusters,
        levels=levels,
    )


@cache
def warm_up() -> None:
    """Compile, or load what was compiled, outside the clock; once in every process."""
    rows = np.random.default_rng(0).normal(size=(20, 2))
    summary, _ = summarize(rows, "warm-up", Learning(), np.random.default_rng(0))
    fuse([summary], 1, Learning(), np.random.default_rng(0))


def clients_of(split: Split, seed: int) -> list[Client]:
    """The clients of a split, each with its own rows and its own randomness."""
    return [
        Client(str(number), rows, generator(seed, "client", str(number)))
        for number, rows in enumerate(split.rows_per_client())
    ]


def gather(clients: Sequence[Client], split: Split) -> IntArray:
    """The clients' own labels, in the order of the split's rows."""
    labels = np.empty_like(split.y)
    for number, client in zip(np.unique(split.client), clients, strict=True):
        labels[split.client == number] = client.labels
    return labels


def score_both_ways(truth: IntArray, labels: IntArray, complete: Dataset, global_labels: IntArray) -> Scores:
    """Federated: the clients' rows by the labels they got. Global: all rows, each with its nearest global centroid."""
    federated = external_scores(truth, labels)
    everywhere = external_scores(complete.y, global_labels) | internal_scores(complete.X, global_labels)
    return {("federated", index): value for index, value in federated.items()} | {
        ("global", index): value for index, value in everywhere.items()
    }


def run_paper(names: Sequence[str], seeds: Iterable[int], n_jobs: int, on_run: Callable[[Run], None]) -> list[Run]:
    """GOLD on the paper's splits; `on_run` hears of every run as it ends. The result is in order of names and seeds."""
    sets = [(load_split(name), load(name)) for name in names]
    jobs = [delayed(run_gold)(split, complete, seed) for split, complete in sets for seed in seeds]
    runs = []
    for run in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
        on_run(run)
        runs.append(run)
    return runs


def write_rows(runs: Sequence[Run], path: Path) -> None:
    """One row per run."""
    rows = [run.as_row() for run in runs]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
