"""Coreset k-means: the simplest one-shot method, which the paper leaves out.

Source: folklore; see e.g. the distributed coresets of Balcan, Ehrlich and Liang (2013).
Site: k-means with up to 50 clusters. Upload, once: the centres and how many rows each has. Server: k-means on the
centres, weighted by those sizes. Labels: of a row, that of its own centre; for new rows, the nearest global centre.
Settings: 50 centres; k-means++ with 10 starts at both ends.
Uploads a row where a centre has no other: all rows of a site that has no more than 50.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from goldfc._types import FloatArray
from goldfc.message.message import Message
from goldfc.server.round import Port
from goldfc_bench.methods.protocol import Answer, Site, UploadsRows
from goldfc_bench.methods.steps import ask_all, check_enough, k_means, n_distinct, send_labels, stacked


@dataclass(frozen=True)
class CoresetKMeans:
    """50 k-means centres with their sizes per site, weighted k-means at the server."""

    name: ClassVar[str] = "coreset k-means"
    uploads_rows: ClassVar[UploadsRows] = "lone"
    centres: int = 50
    starts: int = 10

    def site(self, name: str, rows: FloatArray, rng: np.random.Generator) -> "CoresetSite":
        """The program of one site."""
        return CoresetSite(name, rows, rng)

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:
        """The program of the server."""
        answers = ask_all(port, Message("summarize", facts={"centres": self.centres, "starts": self.starts}))
        centres, sizes = stacked(answers, "centres"), stacked(answers, "sizes")
        check_enough(centres, n_clusters)
        means = k_means(centres, n_clusters, self.starts, rng, sizes)
        send_labels(port, answers, means.labels_)
        return Answer(means.cluster_centers_, uplinks=len(answers))


class CoresetSite(Site):
    """Centres and sizes go up; which row has which centre stays."""

    def on_summarize(self, message: Message) -> Message:
        """K-means on the own rows."""
        k = min(message.facts["centres"], n_distinct(self.rows))
        means = k_means(self.rows, k, message.facts["starts"], self.rng)
        self.own = means.labels_
        return Message("summary", {"centres": means.cluster_centers_, "sizes": np.bincount(self.own, minlength=k)})
