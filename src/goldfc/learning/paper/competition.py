"""CPL, competitive penalised learning: the one learner of sites and server (Eqs. 5-6, 8-15, 22).

Many candidate clusters compete for the rows. The winner of a row is rewarded, its nearest rival penalised, so that
superfluous candidates lose their rows and go, and the number of clusters finds itself.
"""

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadSettings
from goldfc.learning.paper import _epoch, _kernels, _screening, compilation
from goldfc.learning.paper.importance import feature_importance, measure_everyone

# The mean of about so many rows is in the middle well enough.
ROWS_FOR_CENTRE = 256


@dataclass(frozen=True)
class Learning:
    """The settings of a competition; the defaults are the paper's."""

    learning_rate: float = 0.05
    initial_fraction: float = 0.5
    max_epochs: int = 30

    def __post_init__(self) -> None:
        """Refuse what no competition could run with."""
        if not (isinstance(self.learning_rate, numbers.Real) and 0.0 < self.learning_rate < math.inf):
            raise BadSettings(
                f"learning_rate must be a number above 0, got {self.learning_rate!r}; 0.05 is the paper's.",
                "learning-rate",
            )
        if not (isinstance(self.initial_fraction, numbers.Real) and 0.0 < self.initial_fraction <= 1.0):
            raise BadSettings(
                f"initial_fraction must lie in (0, 1], got {self.initial_fraction!r}; 0.5 is the paper's.",
                "initial-fraction",
            )
        if not (isinstance(self.max_epochs, numbers.Integral) and self.max_epochs >= 1):
            raise BadSettings(
                f"max_epochs must be a whole number from 1 on, got {self.max_epochs!r}; 30 is the default.",
                "whole-number",
            )
        # numpy's numbers become Python's: settings travel in messages.
        object.__setattr__(self, "learning_rate", float(self.learning_rate))
        object.__setattr__(self, "initial_fraction", float(self.initial_fraction))
        object.__setattr__(self, "max_epochs", int(self.max_epochs))

    def candidates(self, n_rows: int) -> int:
        """k0, the number of candidate clusters to begin with."""
        return max(1, round(self.initial_fraction * n_rows))


@dataclass(frozen=True)
class Outcome:
    """How a competition ended: cluster j has the centroid `centroids[j]` and the rows where `labels == j`."""

    labels: IntArray
    centroids: FloatArray
    epochs: int
    converged: bool
    measure: Callable[[], float] = field(repr=False)

    @cached_property
    def objective(self) -> float:
        """P, how similar rows are to their own clusters; it takes as long as an epoch, and few ask for it."""
        return self.measure()

    @property
    def n_clusters(self) -> int:
        """How many clusters are left."""
        return len(self.centroids)


def compete(
    X: FloatArray,
    n_candidates: int,
    learning: Learning,
    rng: np.random.Generator,
    *,
    mass: FloatArray | None = None,
) -> Outcome:
    """CPL: let `n_candidates` clusters, each started from a row of its own, compete until no row moves.

    Rows may stand for many others, by their `mass`: only how masses compare counts, their mean becomes one.
    """
    compilation.announce(compilation.LEARNING)
    mass = np.ones(len(X)) if mass is None else mass / mass.mean()
    rows, everyone = as_rows(X, mass), measure_everyone(X, mass)
    labels, clusters = start(X, mass, n_candidates, rng)
    count, all_wins = n_candidates, float(n_candidates)
    for epoch in range(1, learning.max_epochs + 1):
        moved, count, _ = _epoch.epoch(rows, labels, clusters, count, all_wins, learning.learning_rate)
        all_wins += len(X)
        if moved == 0 or epoch == learning.max_epochs:
            break
        count = drop_singletons(clusters, count, labels)
        importance, means = feature_importance(X, mass, labels, clusters.size[:count], everyone)
        clusters.importance[:count] = importance
        clusters.centroid[:count] = means
    return finish(X, mass, labels, clusters, count, epochs=epoch, converged=moved == 0)


def as_rows(X: FloatArray, mass: FloatArray) -> _kernels.Rows:
    """The rows as the compiled part takes them."""
    centre = X[:: -(-len(X) // ROWS_FOR_CENTRE)].mean(axis=0)
    furthest = np.maximum(X.max(axis=0) - centre, centre - X.min(axis=0)).max()
    return _kernels.Rows(X, mass, centre, bool(furthest < _screening.LARGEST_SCREENED))


def start(
    X: FloatArray, mass: FloatArray, n_candidates: int, rng: np.random.Generator
) -> tuple[IntArray, _kernels.Candidates]:
    """Draw distinct rows as the first centroids; each is its cluster's only member, all others are unassigned.

    Note: the paper sets w to 1 / k0 although w is a sigmoid of W; W = 1 is the start that agrees with it.
    """
    n_rows, n_features = X.shape
    seeds = rng.choice(n_rows, size=n_candidates, replace=False)
    labels = np.full(n_rows, -1, dtype=np.int64)
    labels[seeds] = np.arange(n_candidates)
    clusters = _kernels.Candidates(
        centroid=X[seeds],
        importance=np.full((n_candidates, n_features), 1.0 / n_features),
        size=np.ones(n_candidates, dtype=np.int64),
        mass=mass[seeds],
        wins=np.ones(n_candidates),
        weight=np.ones(n_candidates),
        log_weight=np.full(n_candidates, _kernels.log_weight(1.0)),
        standing=np.zeros(n_candidates),
    )
    return labels, clusters


def drop_singletons(clusters: _kernels.Candidates, count: int, labels: IntArray) -> int:
    """Take clusters of one member, which have no variance, out of the competition, unless all are such."""
    if clusters.size[:count].max() < 2:
        return count
    return _kernels.compact(clusters, count, labels, 2)


def finish(
    X: FloatArray,
    mass: FloatArray,
    labels: IntArray,
    clusters: _kernels.Candidates,
    count: int,
    *,
    epochs: int,
    converged: bool,
) -> Outcome:
    """Eq. (5). Every row in exactly one cluster, numbered 0, 1, ...; none of them empty."""
    return Outcome(
        labels=labels,
        centroids=clusters.centroid[:count].copy(),
        epochs=epochs,
        converged=converged,
        measure=partial(_kernels.objective, X, mass, labels, clusters, count),
    )
