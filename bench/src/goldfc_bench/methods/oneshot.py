"""OneShot, the default of this package: micro-clusters with mass and shape up, clusters of the kind to believe down.

Source: docs/default.md.
Site: k-means, up to 100 micro-clusters and one for five rows, in the scale of its own columns. Upload, once: their
centroids and masses, one shape, and mean and spread of every column. Server: three kinds of clusters (alike in form,
each of its own form, or of any form with gaps between them), of which it believes the one that the micro-clusters speak
for. Labels: the likeliest cluster by the model, for rows that took part and for new ones alike.
Settings: none to choose; `kinds` leaves some kinds out, `withhold` mass or shape, and `scaling` "given" takes columns
as they are.
Uploads a row where a micro-cluster has no other.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from goldfc import Site, run_round
from goldfc._types import FloatArray
from goldfc.agreement import Agreement
from goldfc.learning.judge import KINDS, Kind
from goldfc.message.columns import Column
from goldfc.message.model import Model
from goldfc.message.task import Part, Scaling, Task
from goldfc.server.one_shot import OneShot, fusion_of
from goldfc.server.round import Port
from goldfc.site.label import predict
from goldfc_bench.methods.protocol import Answer, UploadsRows


@dataclass(frozen=True)
class OneShotMethod:
    """What `goldfc.OneShotClustering` does."""

    name: ClassVar[str] = "OneShot"
    uploads_rows: ClassVar[UploadsRows] = "lone"
    given_k: bool = True  # otherwise the number of clusters is proposed
    withhold: tuple[Part, ...] = ()
    scaling: Scaling = "pooled"
    kinds: tuple[Kind, ...] = KINDS
    by_file: bool = False  # privacy level, limits and scaling as the federation by files has them

    def __post_init__(self) -> None:
        """Settings come from JSON, which knows no tuples."""
        object.__setattr__(self, "withhold", tuple(self.withhold))
        object.__setattr__(self, "kinds", tuple(self.kinds))

    def site(self, name: str, rows: FloatArray, rng: np.random.Generator) -> Site:  # noqa: ARG002 (there is no luck in it)
        """The program of one site."""
        return Site(name, rows, withhold=self.withhold)

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:
        """The program of the server."""
        with catch_warnings():
            simplefilter("ignore", ConvergenceWarning)  # fewer clusters than asked for: the row of the run has them
            result = run_round(port, n_clusters if self.given_k else None, self.fusion, rng)
        return Answer(
            centroids=result.model.centroids,
            uplinks=len(result.summaries),
            details=details_of(result.model),
            predict=partial(predict, result.model),
        )

    @property
    def fusion(self) -> OneShot:
        """With the settings of this run."""
        if not self.by_file:
            return OneShot(Task(scaling=self.scaling), kinds=self.kinds)
        # The columns do not matter here: nobody names them.
        return fusion_of(Agreement(federation="bench", columns=(Column(name="any"),)))


def details_of(model: Model) -> dict[str, Any]:
    """What the row of a run says of it."""
    details: dict[str, Any] = {
        "micro_clusters": len(model.micro_labels),
        "levels": model.levels.n_clusters,
        "kind": model.kind,
    }
    if model.proposal is not None:
        details["proposed"] = [candidate.n_clusters for candidate in model.proposal.candidates]
    return details
