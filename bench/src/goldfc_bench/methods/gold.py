"""GOLD, as in the paper.

Source: the paper this package builds on.
Client: FCPL, see docs/method.md. Upload, once: centroids of the micro-clusters. Server: MCPL and REMC. Labels: of a
row, that of its micro-cluster; for new rows, the nearest global centroid.
Settings: eta = 0.05, k0 = n / 2, at most 30 epochs.
Uploads a row where a micro-cluster has no other.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from goldfc._types import FloatArray
from goldfc.learning.paper.competition import Learning
from goldfc.protocol.federation import Port
from goldfc.protocol.paper import GoldClient, run_gold
from goldfc_bench.methods.protocol import Answer, UploadsRows


@dataclass(frozen=True)
class Gold:
    """The paper's GOLD."""

    name: ClassVar[str] = "GOLD"
    uploads_rows: ClassVar[UploadsRows] = "lone"
    learning_rate: float = 0.05
    initial_fraction: float = 0.5
    max_epochs: int = 30

    def client(self, name: str, rows: FloatArray, rng: np.random.Generator) -> GoldClient:
        """The program of one client."""
        return GoldClient(name, rows, rng)

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:
        """The program of the server."""
        learning = Learning(self.learning_rate, self.initial_fraction, self.max_epochs)
        model = run_gold(port, n_clusters, learning, rng).model
        details = {"micro_clusters": len(model.micro_labels), "levels": model.levels.n_clusters}
        return Answer(model.centroids, uplinks=len(model.clients), details=details)
