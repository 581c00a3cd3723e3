"""GOLD with parts replaced or left out, to see what each part is worth.

The paper's: FCPL off: k-means with k clusters at every client. MCPL off: k-means on the uploaded centroids, and no
levels. Levels: only the first so many, from the finest on, or all but one.
The consensus: mass or shape withheld; another number of epochs or of micro-clusters; other granularities; MCPL's levels
among the partitions, or nothing else; or no consensus, but the one mixture of k clusters that fits best.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from sklearn.cluster import KMeans

from goldfc import Client, Consensus, Learning, Task, run_round, summarize
from goldfc._types import FloatArray, IntArray
from goldfc.bench.methods.gold import answer_of
from goldfc.bench.methods.protocol import (
    Answer,
    Site,
    UploadsRows,
    check_enough,
    in_name_order,
    integer_seed,
    n_distinct,
    send_labels,
)
from goldfc.errors import BadSettings
from goldfc.learning.consensus import GRANULARITIES, STARTS, Fused, best_of_each, fit_levels, fuse_partitions
from goldfc.learning.paper.fusion import fuse_levels
from goldfc.learning.levels import Levels, find_levels
from goldfc.learning.mixture import MicroClusters, means_of
from goldfc.protocol.client import Part
from goldfc.protocol.federation import Port
from goldfc.protocol.message import Message


@dataclass(frozen=True)
class AblatedGold:
    """GOLD without FCPL, without MCPL, or without some levels."""

    name: ClassVar[str] = "GOLD ablated"
    uploads_rows: ClassVar[UploadsRows] = "lone"
    fcpl: bool = True
    mcpl: bool = True
    levels: Literal["all", "first", "without"] = "all"
    level: int = 0  # how many levels with "first"; which one, counted from 1, with "without"

    def client(self, name: str, rows: FloatArray, rng: np.random.Generator) -> "AblatedSite":
        """The program of one client."""
        return AblatedSite(name, rows, rng)

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:
        """The program of the server."""
        task = Message("summarize", facts={"n_clusters": n_clusters, "fcpl": self.fcpl})
        answers = in_name_order(port.ask(task))
        centroids = np.vstack([answer.arrays["centroids"] for _, answer in answers])
        details: dict[str, object] = {"micro_clusters": len(centroids)}
        if self.mcpl:
            found = find_levels(centroids, Learning(), rng)
            labels = fuse_levels(choose_levels(found, self.levels, self.level), n_clusters, rng)
            details["levels"] = found.n_clusters
        else:
            labels = k_means(centroids, n_clusters, rng)
        send_labels(port, {name: len(answer.arrays["centroids"]) for name, answer in answers}, labels)
        return Answer(means_of(centroids, labels, np.ones(len(labels))), uplinks=len(answers), details=details)


class AblatedSite(Site):
    """FCPL, or k-means in its place."""

    def on_summarize(self, message: Message) -> Message:
        """Centroids of the micro-clusters."""
        if message.facts["fcpl"]:
            summary, membership = summarize(self.rows, self.name, Task(Learning()), self.rng)
            self.own = membership.micro_clusters.astype(np.int64)
            return Message("summary", {"centroids": summary.centroids})
        self.own = k_means(self.rows, min(message.facts["n_clusters"], n_distinct(self.rows)), self.rng)
        return Message("summary", {"centroids": means_of(self.rows, self.own, np.ones(len(self.own)))})


def k_means(rows: FloatArray, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """What stands in for the learner; one start, as the learner has."""
    check_enough(rows, n_clusters)
    return np.asarray(KMeans(n_clusters, n_init=1, random_state=integer_seed(rng)).fit_predict(rows), dtype=np.int64)


def choose_levels(levels: Levels, which: str, level: int) -> Levels:
    """Some of the levels."""
    numbers = list(range(len(levels)))
    if which == "first":
        numbers = numbers[:level]
    elif which == "without":
        if level > len(levels) or len(levels) == 1:
            raise BadSettings(f"There is no level {level} to leave out; this run found {len(levels)}.")
        del numbers[level - 1]
    return Levels(levels.labels[:, numbers], tuple(levels.n_clusters[number] for number in numbers))


@dataclass(frozen=True)
class AblatedConsensus:
    """GOLD consensus without some of its parts, or with other settings."""

    name: ClassVar[str] = "GOLD consensus ablated"
    uploads_rows: ClassVar[UploadsRows] = "lone"
    withhold: tuple[Part, ...] = ()
    max_epochs: int = 8
    most: int | None = 100
    rows_each: int = 5
    granularities: tuple[float, ...] = GRANULARITIES
    starts: int = STARTS
    trust: tuple[float, float] = (0.0, 1.0)  # the range from which every start draws how far correlations count
    partitions: Literal["mixtures", "mixtures and MCPL", "MCPL", "best mixture"] = "mixtures"

    def __post_init__(self) -> None:
        """Settings come from JSON, which knows no tuples."""
        for field in ("withhold", "granularities", "trust"):
            object.__setattr__(self, field, tuple(getattr(self, field)))

    def client(self, name: str, rows: FloatArray, rng: np.random.Generator) -> Client:
        """The program of one client."""
        return Client(name, rows, rng, withhold=self.withhold)

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:
        """The program of the server."""
        fusion = AblatedFusion(
            Learning(max_epochs=self.max_epochs),
            self.most,
            self.rows_each,
            granularities=self.granularities,
            starts=self.starts,
            trust=self.trust,
            partitions=self.partitions,
        )
        return answer_of(run_round(port, n_clusters, fusion, rng))


@dataclass(frozen=True)
class AblatedFusion(Consensus):
    """The consensus of other partitions, or none."""

    trust: tuple[float, float] = (0.0, 1.0)
    partitions: str = "mixtures"

    def fuse(self, micro: MicroClusters, n_clusters: int, rng: np.random.Generator) -> Fused:
        """Global clusters."""
        mixtures = fit_levels(
            micro, n_clusters, rng, granularities=self.granularities, starts=self.starts, trust=self.trust
        )
        levels = best_of_each(mixtures)
        if self.partitions == "best mixture":
            labels = best_of_each(mixtures[-1:]).labels[:, 0]  # the last have k clusters
            return Fused(labels, np.ones(len(labels)), levels)
        memberships = [mixture.memberships for level in mixtures for mixture in level]
        if "MCPL" in self.partitions:
            found = find_levels(micro.centroids, Learning(), rng)
            by_level = [np.eye(level.max() + 1)[level] for level in found.labels.T]
            memberships = by_level if self.partitions == "MCPL" else memberships + by_level
        labels, certainty = fuse_partitions(memberships, micro.mass, n_clusters, rng)
        return Fused(labels, certainty, levels)
