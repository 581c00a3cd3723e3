"""GOLD: the paper's method, as the package runs it.

Source: Zhang et al., One-Shot Federated Clustering of Non-Independent Completely Distributed Data (2026).
Client: FCPL finds micro-clusters. Upload, once: their centroids. Server: MCPL finds partitions of them at several
granularities, REMC fuses these into k clusters. Labels: of a row, that of its micro-cluster; for new rows, the nearest
global centroid.
Settings: learning rate 0.05, half of the rows as first candidates, at most 30 epochs.
Uploads a row where a micro-cluster has no other. Where we depart from the printed paper: docs/method.md.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from goldfc import Client, Learning, run_round
from goldfc._types import FloatArray
from goldfc.bench.methods.protocol import Answer, UploadsRows
from goldfc.protocol.federation import Port


@dataclass(frozen=True)
class Gold:
    """The paper's GOLD."""

    name: ClassVar[str] = "GOLD"
    uploads_rows: ClassVar[UploadsRows] = "lone"
    learning_rate: float = 0.05
    initial_fraction: float = 0.5
    max_epochs: int = 30

    def client(self, name: str, rows: FloatArray, rng: np.random.Generator) -> Client:
        """The program of one client."""
        return Client(name, rows, rng)

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:
        """The program of the server."""
        learning = Learning(self.learning_rate, self.initial_fraction, self.max_epochs)
        result = run_round(port, n_clusters, learning, rng)
        details = {"micro_clusters": len(result.model.micro_labels), "levels": result.model.levels.n_clusters}
        return Answer(result.model.centroids, uplinks=len(result.summaries), details=details)
