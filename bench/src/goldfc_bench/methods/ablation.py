"""GOLD with parts replaced or left out, to see what each part is worth.

FCPL off: k-means with k clusters at every site. MCPL off: k-means on the uploaded centroids, and no levels. Levels:
only the first so many, from the finest on, or all but one.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.levels import Levels
from goldfc.learning.micro_clusters import means_of
from goldfc.learning.paper.competition import Learning
from goldfc.learning.paper.fusion import fuse_levels
from goldfc.learning.paper.granularity import find_levels
from goldfc.message.message import Message
from goldfc.server.round import Port
from goldfc.site.gold import learn
from goldfc_bench.errors import NotForThis
from goldfc_bench.methods.protocol import Answer, Site, UploadsRows
from goldfc_bench.methods.steps import ask_all, check_enough, k_means, n_distinct, send_labels, stacked


@dataclass(frozen=True)
class AblatedGold:
    """GOLD without FCPL, without MCPL, or without some levels."""

    name: ClassVar[str] = "GOLD ablated"
    uploads_rows: ClassVar[UploadsRows] = "lone"
    fcpl: bool = True
    mcpl: bool = True
    levels: Literal["all", "first", "without"] = "all"
    level: int = 0  # how many levels with "first"; which one, counted from 1, with "without"

    def site(self, name: str, rows: FloatArray, rng: np.random.Generator) -> "AblatedSite":
        """The program of one site."""
        return AblatedSite(name, rows, rng)

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:
        """The program of the server."""
        task = Message("summarize", facts={"n_clusters": n_clusters, "fcpl": self.fcpl})
        answers = ask_all(port, task)
        centroids = stacked(answers, "centroids")
        details: dict[str, object] = {"micro_clusters": len(centroids)}
        if self.mcpl:
            found = find_levels(centroids, Learning(), rng)
            labels = fuse_levels(choose_levels(found, self.levels, self.level), n_clusters, rng)
            details["levels"] = found.n_clusters
        else:
            labels = in_its_place(centroids, n_clusters, rng)
        send_labels(port, answers, labels)
        return Answer(means_of(centroids, labels, np.ones(len(labels))), uplinks=len(answers), details=details)


class AblatedSite(Site):
    """FCPL, or k-means in its place."""

    def on_summarize(self, message: Message) -> Message:
        """Centroids of the micro-clusters."""
        if message.facts["fcpl"]:
            labels, centroids = learn(self.rows, self.name, Learning(), self.rng)
            self.own = labels.astype(np.int64)
            return Message("summary", {"centroids": centroids})
        self.own = in_its_place(self.rows, min(message.facts["n_clusters"], n_distinct(self.rows)), self.rng)
        return Message("summary", {"centroids": means_of(self.rows, self.own, np.ones(len(self.own)))})


def in_its_place(rows: FloatArray, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """What stands in for the learner: k-means from one start, as the learner has."""
    check_enough(rows, n_clusters)
    return np.asarray(k_means(rows, n_clusters, 1, rng).labels_, dtype=np.int64)


def choose_levels(levels: Levels, which: str, level: int) -> Levels:
    """Some of the levels."""
    numbers = list(range(len(levels)))
    if which == "first":
        numbers = numbers[:level]
    elif which == "without":
        if level > len(levels) or len(levels) == 1:
            raise NotForThis(f"There is no level {level} to leave out; this run found {len(levels)}.")
        del numbers[level - 1]
    return Levels(levels.labels[:, numbers], tuple(levels.n_clusters[number] for number in numbers))
