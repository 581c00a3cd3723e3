"""Pooled k-means: no federation at all, for what privacy costs.

Source: none; it is what one would do if rows could be moved.
Site: nothing. Upload, once: all rows. Server: k-means on them. Labels: the nearest global centre, for all rows.
Settings: k-means++ with 10 starts.
Uploads all rows of everybody. It is the one that the others are to come close to, and none to be used.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from goldfc._types import FloatArray
from goldfc.errors import TooFewMicroClusters
from goldfc.message.message import Message
from goldfc.server.round import Port
from goldfc_bench.methods.protocol import Answer, Site, UploadsRows
from goldfc_bench.methods.steps import ask_all, k_means, n_distinct, stacked


@dataclass(frozen=True)
class PooledKMeans:
    """K-means on everybody's rows."""

    name: ClassVar[str] = "pooled k-means"
    uploads_rows: ClassVar[UploadsRows] = "all"
    starts: int = 10

    def site(self, name: str, rows: FloatArray, rng: np.random.Generator) -> "PooledSite":
        """The program of one site."""
        return PooledSite(name, rows, rng)

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:
        """The program of the server."""
        answers = ask_all(port, Message("upload"))
        rows = stacked(answers, "rows")
        if n_distinct(rows) < n_clusters:
            raise TooFewMicroClusters(
                f"{n_clusters} clusters were asked for, but there are only {n_distinct(rows)} different rows."
            )
        means = k_means(rows, n_clusters, self.starts, rng)
        port.ask(Message("centroids", {"centroids": means.cluster_centers_}))
        return Answer(means.cluster_centers_, uplinks=len(answers))


class PooledSite(Site):
    """Everything goes up."""

    def on_upload(self, message: Message) -> Message:  # noqa: ARG002
        """The own rows, as they are."""
        return Message("rows", {"rows": self.rows})
