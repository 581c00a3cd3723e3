"""FFCM: fuzzy c-means at the sites, an average of their centres at the server, round after round.

Source: Stallmann and Wilbik, "Towards Federated Clustering: A Federated Fuzzy c-Means Algorithm (FFCM)" (2022).
Site, every round: fuzzy c-means on its rows, from the global centres to convergence. Upload, every round: its k
centres, and their supports, which are sums of memberships. Server: FFCM-avg1 averages the j-th centres of all sites,
weighted by their supports; FFCM-avg2 has k-means on all centres, from the global centres of the round before. It ends
when the global centres stand still. Labels: the nearest global centre, where a row's membership is largest.
Settings: fuzzifier 2, at most 1000 rounds of at most 1000 iterations, tolerances 1e-4: those of the authors' code.
Uploads rows where a site has no more different rows than clusters: that is where its centres then go.

Note: what the paper may say otherwise (it was not read in full) is here as the authors' code has it. The first centres
are uniform in [0, 1], whatever the range of the data. The support is the sum of u, though centres are means by u^m. A
cluster with none of a site's rows still has a centre there, and avg1 averages it in: a weakness, and the method's.
Note: the server's k-means has the seed of the run, and not the same one in all runs.
Note: the centres may go round in circles, of two to four rounds as a rule, and the authors' code then makes all 1000.
Ours ends when they are back where they were in any earlier round, with what the last of all rounds would have given: in
seven such runs, no label was another. It counts the rounds that were made.
"""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from goldfc._types import FloatArray
from goldfc.errors import BadSettings
from goldfc.message.message import Message
from goldfc.server.round import Port
from goldfc_bench.methods.protocol import Answer, Site, UploadsRows
from goldfc_bench.methods.steps import ask_all, integer_seed

# So many rows at a time: memberships of more are never held.
BLOCK = 2048
# No row is nearer to a centre than this.
SMALLEST_DISTANCE = 1e-12
# No row is less of a cluster than this, before memberships are made to sum to one; it matters for fuzzifiers near 1.
SMALLEST_MEMBERSHIP = 1e-100


@dataclass(frozen=True)
class FFCM(ABC):
    """All but the average, which is what the two variants differ in."""

    name: ClassVar[str]
    uploads_rows: ClassVar[UploadsRows] = "lone"
    fuzzifier: float = 2.0
    max_rounds: int = 1000
    tolerance: float = 1e-4
    local_iterations: int = 1000
    local_tolerance: float = 1e-4

    def __post_init__(self) -> None:
        """Refuse what cannot be learned with."""
        if self.fuzzifier <= 1.0:
            raise BadSettings(f"fuzzifier must be above 1, got {self.fuzzifier}; 2 is the usual one.")
        if min(self.max_rounds, self.local_iterations) < 1:
            raise BadSettings(
                "max_rounds and local_iterations must be at least 1, "
                f"got {self.max_rounds} and {self.local_iterations}."
            )

    @abstractmethod
    def merge(
        self, centres: FloatArray, supports: FloatArray, previous: FloatArray | None, rng: np.random.Generator
    ) -> FloatArray:
        """The global centres, from all sites' (sites, clusters, features) and their supports."""

    def site(self, name: str, rows: FloatArray, rng: np.random.Generator) -> "FFCMSite":
        """The program of one site."""
        return FFCMSite(name, rows, rng)

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:
        """The program of the server."""
        settings = {
            "fuzzifier": self.fuzzifier,
            "iterations": self.local_iterations,
            "tolerance": self.local_tolerance,
        }
        task = Message("learn", facts={**settings, "n_clusters": n_clusters, "seed": integer_seed(rng)})
        history, uplinks, period = list[FloatArray](), 0, None
        while period is None and len(history) < self.max_rounds:
            answers = [answer.arrays for answer in ask_all(port, task).values()]
            uplinks += len(answers)
            centres = np.stack([arrays["centres"] for arrays in answers])
            supports = np.stack([arrays["supports"] for arrays in answers])
            history.append(self.merge(centres, supports, history[-1] if history else None, rng))
            period = rounds_since(history, self.tolerance)
            task = Message("learn", {"centres": history[-1]}, settings)
        # After round r, in circles of p rounds, round R would end where round r - (r - R) mod p did.
        final = history[-1 - (len(history) - self.max_rounds) % (period or 1)]
        port.ask(Message("centroids", {"centroids": final}))
        return Answer(final, uplinks, {"rounds": len(history), "period": period})


@dataclass(frozen=True)
class FFCMAverage(FFCM):
    """FFCM-avg1. Index j is trusted to mean the same cluster everywhere, as all sites started from the same."""

    name: ClassVar[str] = "FFCM-avg1"

    def merge(
        self,
        centres: FloatArray,
        supports: FloatArray,
        previous: FloatArray | None,  # noqa: ARG002
        rng: np.random.Generator,  # noqa: ARG002
    ) -> FloatArray:
        """Average by index, weighted by support."""
        return np.asarray(np.einsum("lk,lkd->kd", supports, centres) / supports.sum(axis=0)[:, None])


@dataclass(frozen=True)
class FFCMKMeans(FFCM):
    """FFCM-avg2. All sites' centres are clustered, and index j may mean what it likes."""

    name: ClassVar[str] = "FFCM-avg2"
    starts: int = 10

    def merge(
        self,
        centres: FloatArray,
        supports: FloatArray,  # noqa: ARG002
        previous: FloatArray | None,
        rng: np.random.Generator,
    ) -> FloatArray:
        """K-means on all centres: k-means++ in the first round, then from the previous global centres."""
        means = KMeans(
            centres.shape[1],
            init="k-means++" if previous is None else previous,
            n_init=self.starts if previous is None else 1,
            max_iter=500,
            random_state=integer_seed(rng),
        )
        with warnings.catch_warnings():
            # Centres of different clusters may coincide; of fewer than k places, some then get two global centres.
            warnings.simplefilter("ignore", ConvergenceWarning)
            means.fit(centres.reshape(-1, centres.shape[2]))
        return np.asarray(means.cluster_centers_)


class FFCMSite(Site):
    """Centres and supports go up; memberships stay, and are not even kept."""

    def on_learn(self, message: Message) -> Message:
        """Fuzzy c-means on the own rows, from the global centres, of which the first depend on the seed alone."""
        facts = message.facts
        if "seed" in facts:
            start = first_centres(facts["seed"], facts["n_clusters"], self.rows.shape[1])
        else:
            start = message.arrays["centres"]
        end = fuzzy_c_means(self.rows, start, facts["fuzzifier"], facts["iterations"], facts["tolerance"])
        return Message("learned", {"centres": end.centres, "supports": end.supports})


class Step(NamedTuple):
    """One step of fuzzy c-means."""

    centres: FloatArray  # (clusters, features) the new ones
    supports: FloatArray  # (clusters,) sums of memberships in the old ones
    change: float  # of all memberships since the step before, Frobenius
    kept: FloatArray | None = None  # the memberships, where all rows are one block


def first_centres(seed: int, n_clusters: int, n_features: int) -> FloatArray:
    """Uniform in [0, 1]. Only sites know how many features there are; given the seed, all draw the same."""
    return np.random.default_rng(seed).random((n_clusters, n_features))


def fuzzy_c_means(rows: FloatArray, centres: FloatArray, fuzzifier: float, iterations: int, tolerance: float) -> Step:
    """Steps until memberships change by less than the tolerance; the last of them."""
    step = fuzzy_step(rows, centres, None, fuzzifier)
    for _ in range(iterations - 1):
        before, kept, centres = centres, step.kept, step.centres
        step = fuzzy_step(rows, centres, before, fuzzifier, kept)
        if step.change < tolerance:
            break
    return step


def fuzzy_step(
    rows: FloatArray,
    centres: FloatArray,
    before: FloatArray | None,
    fuzzifier: float,
    kept: FloatArray | None = None,
) -> Step:
    """New centres: means of all rows by u^m, u being their memberships in the old ones.

    The memberships of the step before are `kept` where all rows are one block; where there are more, they are made
    again from its centres, `before`: twice the time, but no n x k matrix.
    """
    sums, weights, supports = np.zeros_like(centres), np.zeros(len(centres)), np.zeros(len(centres))
    change = math.inf if before is None else 0.0
    for block in np.split(rows, range(BLOCK, len(rows), BLOCK)):
        u = memberships(block, centres, fuzzifier)
        if before is not None:
            difference = u - (memberships(block, before, fuzzifier) if kept is None else kept)
            change += float(np.vdot(difference, difference))
        supports += u.sum(axis=1)
        weight = u**fuzzifier
        weights += weight.sum(axis=1)
        sums += weight @ block
    return Step(sums / weights[:, None], supports, math.sqrt(change), u if len(rows) <= BLOCK else None)


def memberships(rows: FloatArray, centres: FloatArray, fuzzifier: float) -> FloatArray:
    """u, one column per row: 1 / sum_q (|x - c_j| / |x - c_q|)^(2 / (m - 1)).

    With a = 1 / (m - 1) and s_j = |x - c_j|^2, this is s_j^-a / sum_q s_q^-a, and both may be multiplied by (min s)^a,
    after which no power is above one.
    """
    squared = np.maximum(cdist(centres, rows, "sqeuclidean"), SMALLEST_DISTANCE**2)
    closeness = np.maximum((squared.min(axis=0) / squared) ** (1.0 / (fuzzifier - 1.0)), SMALLEST_MEMBERSHIP)
    return np.asarray(closeness / closeness.sum(axis=0))


def rounds_since(history: Sequence[FloatArray], tolerance: float) -> int | None:
    """How many rounds ago the centres were where they are now; 1 if they stand still, None if they never were."""
    for ago, earlier in enumerate(reversed(history[:-1]), start=1):
        if np.linalg.norm(history[-1] - earlier) < tolerance:
            return ago
    return None
