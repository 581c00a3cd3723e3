"""The server's side: let all clients' micro-clusters compete, and fuse the levels into the global clusters."""

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadMessage, BadSettings
from goldfc.learning.competition import Learning
from goldfc.learning.fusion import fuse_levels
from goldfc.learning.granularity import find_levels
from goldfc.protocol.federation import Port
from goldfc.protocol.message import Model, Summary, Task


@dataclass(frozen=True)
class Round:
    """One finished round: what came up, in the order of the clients' names, and what went down."""

    summaries: tuple[Summary, ...]
    model: Model


def run_round(port: Port, n_clusters: int, learning: Learning, rng: np.random.Generator) -> Round:
    """GOLD, whole: ask every client once, fuse what they send, and send them the model."""
    check_n_clusters(n_clusters)  # before anybody works for it
    answers = port.ask(Task(learning).to_message())
    summaries = in_order(Summary.from_message(answer) for answer in answers.values())
    model = fuse(summaries, n_clusters, learning, rng)
    port.ask(model.to_message())
    return Round(summaries, model)


def fuse(
    summaries: Sequence[Summary],
    n_clusters: int,
    learning: Learning,
    rng: np.random.Generator,
    *,
    tolerance: float | None = None,
) -> Model:
    """MCPL and REMC on the centroids of all clients; the order in which they arrived does not matter."""
    check_n_clusters(n_clusters)
    summaries = in_order(summaries)
    centroids = np.vstack([summary.centroids for summary in summaries])
    levels = find_levels(centroids, learning, rng, tolerance=tolerance)
    labels = fuse_levels(levels, n_clusters, rng)
    return Model(
        centroids=means_of(centroids, labels),
        clients=tuple(summary.client for summary in summaries),
        micro_counts=tuple(len(summary.centroids) for summary in summaries),
        micro_labels=labels,
        levels=levels,
    )


def check_n_clusters(n_clusters: int) -> None:
    """Refuse what is no number of clusters."""
    if not (isinstance(n_clusters, numbers.Integral) and n_clusters >= 1):
        raise BadSettings(f"n_clusters must be a whole number from 1 on, got {n_clusters!r}.")


def in_order(summaries: Iterable[Summary]) -> tuple[Summary, ...]:
    """The summaries by client name; refuse them if they do not fit together."""
    ordered = tuple(sorted(summaries, key=lambda summary: summary.client))
    if not ordered:
        raise BadMessage("There is no summary to fuse; at least one client must answer.")
    for before, after in pairwise(ordered):
        if before.client == after.client:
            raise BadMessage(f"Client {after.client!r} sent two summaries; fuse one of them.")
        if before.centroids.shape[1] != after.centroids.shape[1]:
            raise BadMessage(
                f"Client {after.client!r} sent {after.centroids.shape[1]} features, "
                f"client {before.client!r} sent {before.centroids.shape[1]}; all must have the same columns."
            )
    return ordered


def means_of(centroids: FloatArray, labels: IntArray) -> FloatArray:
    """A global centroid is the mean of its micro-centroids."""
    return np.vstack([centroids[labels == cluster].mean(axis=0) for cluster in range(labels.max() + 1)])
