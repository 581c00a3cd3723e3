"""A method that is told a number of clusters which somebody chose from all rows in one place.

Source: silhouette, Rousseeuw (1987); gap statistic, Tibshirani, Walther and Hastie (2001); BIC, Schwarz (1978).
Site: sends all rows, and then does what its method asks. Server: clusters the rows with every k on a list (k-means
for silhouette and gap, Gaussian mixtures for BIC), takes the k that the criterion likes best, and runs the method.
Settings: the k of `TRIED`; at most 2000 rows, drawn at random, are looked at.
Uploads all rows: it is there to be compared with, and none to be used.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture

from goldfc import Site
from goldfc._types import FloatArray, IntArray
from goldfc.errors import TooFewMicroClusters
from goldfc.message.message import Message
from goldfc.server.round import Port
from goldfc_bench.methods.oneshot import OneShotMethod
from goldfc_bench.methods.pooled import PooledKMeans, PooledSite
from goldfc_bench.methods.protocol import Answer, UploadsRows
from goldfc_bench.methods.steps import ask_all, integer_seed, k_means, n_distinct, stacked

TRIED: tuple[int, ...] = (*range(2, 13), 14, 16, 18, 20, 23, 26, 30, 34, 39)
MOST_ROWS = 2000
STARTS = 2
REFERENCES = 4  # data sets without clusters, for the gap statistic


@dataclass(frozen=True)
class ChosenK:
    """Another method with k chosen on the pooled rows."""

    name: ClassVar[str] = "k chosen on pooled rows"
    uploads_rows: ClassVar[UploadsRows] = "all"
    by: Literal["silhouette", "gap", "BIC"] = "silhouette"
    then: Literal["OneShot", "pooled k-means"] = "OneShot"

    def site(self, name: str, rows: FloatArray, rng: np.random.Generator) -> "ChosenKSite":
        """The program of one site."""
        return ChosenKSite(name, rows, rng)

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:  # noqa: ARG002 (it is not told)
        """The program of the server."""
        uploads = ask_all(port, Message("upload"))
        rows = stacked(uploads, "rows")
        chosen = CRITERIA[self.by](sample(rows, rng), rng)
        method = OneShotMethod() if self.then == OneShotMethod.name else PooledKMeans()
        answer = method.serve(port, chosen, rng)
        details = {**(answer.details or {}), "proposed": [chosen]}
        return Answer(answer.centroids, len(uploads) + answer.uplinks, details, answer.predict)


class ChosenKSite:
    """A site of pooled k-means and of OneShot at once: it answers as the one that knows the message."""

    def __init__(self, name: str, rows: FloatArray, rng: np.random.Generator) -> None:
        self.name = name
        self._pooled = PooledSite(name, rows, rng)
        self._one_shot = Site(name, rows)
        self._last: PooledSite | Site = self._pooled

    @property
    def labels(self) -> IntArray:
        """Those of the method that came last."""
        return self._last.labels

    def answer(self, message: Message) -> Message | None:
        """All rows, nearest centroids, micro-clusters, or labels by the model, as asked."""
        self._last = self._pooled if message.kind in ("upload", "centroids") else self._one_shot
        return self._last.answer(message)


def sample(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """So many rows that every criterion ends within seconds."""
    return rows[np.sort(rng.choice(len(rows), size=min(MOST_ROWS, len(rows)), replace=False))]


def by_silhouette(rows: FloatArray, rng: np.random.Generator) -> int:
    """The k whose clusters are nearest to their own and farthest from the next."""
    return best(rows, lambda k: silhouette_score(rows, k_means(rows, k, STARTS, rng).labels_))


def by_bic(rows: FloatArray, rng: np.random.Generator) -> int:
    """The k of the mixture, each cluster with a covariance of its own, that has the best criterion."""

    def fit(k: int) -> float:
        mixture = GaussianMixture(k, reg_covar=1e-3, random_state=integer_seed(rng), max_iter=50, tol=1e-2)
        with catch_warnings():
            simplefilter("ignore", ConvergenceWarning)  # fifty steps are enough to compare
            return -float(mixture.fit(rows).bic(rows))

    return best(rows, fit)


def by_gap(rows: FloatArray, rng: np.random.Generator) -> int:
    """The smallest k whose gap is within one error of the next one's: the criterion's own rule."""
    axes = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2]
    turned = rows @ axes.T
    boxes = [rng.uniform(turned.min(axis=0), turned.max(axis=0), turned.shape) @ axes for _ in range(REFERENCES)]
    tried = possible(rows)
    gaps: list[float] = []
    errors: list[float] = []
    for k in tried:
        references = [log_scatter(box, k, rng) for box in boxes]
        gaps.append(float(np.mean(references)) - log_scatter(rows, k, rng))
        errors.append(float(np.std(references)) * math.sqrt(1 + 1 / REFERENCES))
    for number in range(len(tried) - 1):
        if gaps[number] >= gaps[number + 1] - errors[number + 1]:
            return tried[number]
    return tried[int(np.argmax(gaps))]


def best(rows: FloatArray, quality: Callable[[int], float]) -> int:
    """Of all k that there are rows for, the one of the highest quality."""
    return max(possible(rows), key=quality)


def possible(rows: FloatArray) -> list[int]:
    """All k that there are rows for."""
    distinct = n_distinct(rows)
    if distinct < 3:
        raise TooFewMicroClusters(
            f"There are only {distinct} different rows: nothing to choose a number of clusters by."
        )
    return [k for k in TRIED if k < distinct]


def log_scatter(rows: FloatArray, k: int, rng: np.random.Generator) -> float:
    """The logarithm of the scatter inside clusters."""
    return float(np.log(k_means(rows, k, STARTS, rng).inertia_))


CRITERIA: dict[str, Callable[[FloatArray, np.random.Generator], int]] = {
    "silhouette": by_silhouette,
    "gap": by_gap,
    "BIC": by_bic,
}
