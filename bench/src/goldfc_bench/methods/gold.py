"""GOLD, as in the paper.

Source: the paper this package builds on.
Site: FCPL, see docs/method.md. Upload, once: centroids of the micro-clusters. Server: MCPL and REMC. Labels: of a
row, that of its micro-cluster; for new rows, the nearest global centroid.
Settings: eta = 0.05, k0 = n / 2, at most 30 epochs.
Uploads a row where a micro-cluster has no other.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from goldfc._types import FloatArray
from goldfc.learning.paper.competition import Learning
from goldfc.server import gold
from goldfc.server.round import Port, run_round
from goldfc.site.gold import GoldSite
from goldfc_bench.methods.protocol import Answer, UploadsRows


@dataclass(frozen=True)
class Gold:
    """The paper's GOLD."""

    name: ClassVar[str] = "GOLD"
    uploads_rows: ClassVar[UploadsRows] = "lone"
    learning_rate: float = 0.05
    initial_fraction: float = 0.5
    max_epochs: int = 30

    def site(self, name: str, rows: FloatArray, rng: np.random.Generator) -> GoldSite:
        """The program of one site."""
        return GoldSite(name, rows, rng)

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:
        """The program of the server."""
        learning = Learning(self.learning_rate, self.initial_fraction, self.max_epochs)
        model = run_round(port, n_clusters, gold.Gold(learning), rng).model
        details = {"micro_clusters": len(model.micro_labels), "levels": model.levels.n_clusters}
        return Answer(model.centroids, uplinks=len(model.sites), details=details)
