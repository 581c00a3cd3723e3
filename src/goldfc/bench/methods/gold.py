"""GOLD in two ways: as in the paper, and with our own fusion.

Source: the paper this package builds on; for our fusion, docs/fusion.md.
Client: FCPL, see docs/method.md. Upload, once: centroids of the micro-clusters; for the consensus, merged to at most
100 and one for five rows, also their masses and one shape. Server: MCPL and REMC; or the consensus of mixtures.
Labels: of a row, that of its micro-cluster; for new rows, the nearest global centroid, for the consensus in distances
that undo the covariance inside clusters.
Settings: eta = 0.05, k0 = n / 2, at most 30 epochs (consensus: 8).
Uploads a row where a micro-cluster has no other.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from goldfc import Client, Consensus, Learning, Remc, run_round
from goldfc._types import FloatArray
from goldfc.bench.methods.protocol import Answer, UploadsRows
from goldfc.protocol.label import predict
from goldfc.protocol.agreement import Agreement
from goldfc.protocol.client import Part
from goldfc.protocol.federation import Port
from goldfc.protocol.finding import WHEN_MANY, Blocks
from goldfc.protocol.fusion import Fusion
from goldfc.protocol.message import Scaling
from goldfc.protocol.server import Round
from goldfc.protocol.terms import Column


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
        fusion = Remc(Learning(self.learning_rate, self.initial_fraction, self.max_epochs))
        result = run_round(port, n_clusters, fusion, rng)
        return Answer(result.model.centroids, uplinks=len(result.summaries), details=details_of(result))


@dataclass(frozen=True)
class GoldConsensus:
    """GOLD with mass, shape and the consensus of mixtures."""

    name: ClassVar[str] = "GOLD consensus"
    uploads_rows: ClassVar[UploadsRows] = "lone"
    given_k: bool = True  # otherwise the number of clusters is proposed
    withhold: tuple[Part, ...] = ()
    scaling: Scaling = "given"
    by_file: bool = False  # privacy level, limits and scaling as the federation by files has them
    most_at_once: int = WHEN_MANY.most_at_once  # rows of a client that are not learned in blocks

    def __post_init__(self) -> None:
        """Settings come from JSON, which knows no tuples."""
        object.__setattr__(self, "withhold", tuple(self.withhold))

    def client(self, name: str, rows: FloatArray, rng: np.random.Generator) -> Client:
        """The program of one client."""
        return Client(name, rows, rng, withhold=self.withhold, blocks=Blocks(self.most_at_once))

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:
        """The program of the server."""
        return answer_of(run_round(port, n_clusters if self.given_k else None, self.fusion, rng))

    @property
    def fusion(self) -> Fusion:
        """With the settings of this run."""
        if not self.by_file:
            return Consensus(scaling=self.scaling)
        # The columns do not matter here: nobody names them.
        return Agreement(federation="bench", columns=(Column(name="any"),)).way


def answer_of(result: Round) -> Answer:
    """A round of the consensus, for the judge."""
    return Answer(
        centroids=result.model.centroids,
        uplinks=len(result.summaries),
        details=details_of(result),
        predict=partial(predict, result.model),
    )


def details_of(result: Round) -> dict[str, Any]:
    """What the row of a run says of it."""
    details: dict[str, Any] = {
        "micro_clusters": len(result.model.micro_labels),
        "levels": result.model.levels.n_clusters,
    }
    if result.model.proposal is not None:
        details["proposed"] = [candidate.n_clusters for candidate in result.model.proposal.candidates]
    return details
