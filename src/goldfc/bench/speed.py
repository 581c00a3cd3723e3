"""How fast the learner and the fusion are, each against the best alternative, in the same run.

The learner: all epochs of FCPL against one distance matrix of the same size. The fusion: the consensus, and a proposal
of the number of clusters, against weighted k-means with ten starts on the same micro-centroids. Seconds on a shared
machine mean little; the ratio within one run means more. All use one thread.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import euclidean_distances
from threadpoolctl import threadpool_limits

from goldfc._types import FloatArray
from goldfc.bench.datasets import standardized, synthetic
from goldfc.bench.methods.gold import Gold
from goldfc.bench.run import warm_up
from goldfc.learning.competition import Learning, compete
from goldfc.learning.consensus import find_consensus
from goldfc.learning.mixture import MicroClusters
from goldfc.learning.proposal import propose

Result = TypeVar("Result")

# (data, rows, features); half of the rows are candidates. SD falls into a few clusters, so that candidates soon die; in
# one Gaussian there are no clusters to find, thousands of candidates live on, and every epoch stays expensive.
SIZES = (("SD", 12_500, 10), ("SD", 5_000, 36), ("SD", 2_000, 500), ("one Gaussian", 12_500, 10))
# (micro-clusters, features, clusters)
FUSION_SIZES = ((2_000, 10, 5), (2_000, 16, 26), (2_000, 36, 10), (2_000, 150, 10), (20_000, 16, 10))


@dataclass(frozen=True)
class Measurement:
    """One size of data: medians over the repeats, and the memory that learning took beside the data."""

    data: str
    rows: int
    features: int
    seconds_learning: float
    seconds_distances: float
    ratio: float
    extra_memory: float  # in units of the data; nan where the system does not tell
    epochs: int
    clusters: int


def measure(data: str, rows: int, features: int, repeats: int) -> Measurement:
    """Time both sides in turn, so that whatever else the machine does hits both."""
    warm_up(Gold())
    X = standardized_rows(data, rows, features)
    seeds = np.random.default_rng(1).choice(rows, size=rows // 2, replace=False)
    outcome, extra_bytes = peak_bytes(lambda: compete(X, rows // 2, Learning(), np.random.default_rng(1)))
    pairs = []
    with threadpool_limits(limits=1):
        euclidean_distances(X, X[seeds])
        for _ in range(repeats):
            distances = seconds(lambda: euclidean_distances(X, X[seeds]))
            learning = seconds(lambda: compete(X, rows // 2, Learning(), np.random.default_rng(1)))
            pairs.append((learning, distances))
    return Measurement(
        data=data,
        rows=rows,
        features=features,
        seconds_learning=median(learning for learning, _ in pairs),
        seconds_distances=median(distances for _, distances in pairs),
        ratio=median(learning / distances for learning, distances in pairs),
        extra_memory=extra_bytes / X.nbytes,
        epochs=outcome.epochs,
        clusters=outcome.n_clusters,
    )


@dataclass(frozen=True)
class FusionMeasurement:
    """One number of micro-clusters: seconds of one thread, and the memory that the consensus took."""

    micro_clusters: int
    features: int
    clusters: int
    seconds_consensus: float
    seconds_proposal: float
    seconds_k_means: float
    extra_megabytes: float  # nan where the system does not tell


def measure_fusion(micro_clusters: int, features: int, clusters: int) -> FusionMeasurement:
    """Once each: it takes long enough."""
    micro = overlapping(micro_clusters, features, clusters)
    rng = np.random.default_rng(1)
    with threadpool_limits(limits=1):
        propose(overlapping(100, 3, 2))  # compiles
        k_means = KMeans(clusters, n_init=10, random_state=0)
        return FusionMeasurement(
            micro_clusters,
            features,
            clusters,
            seconds_k_means=seconds(lambda: k_means.fit(micro.centroids, sample_weight=micro.mass)),
            extra_megabytes=peak_bytes(lambda: find_consensus(micro, clusters, rng))[1] / 1e6,
            seconds_consensus=seconds(lambda: find_consensus(micro, clusters, rng)),
            seconds_proposal=seconds(lambda: propose(micro)),
        )


def overlapping(micro_clusters: int, features: int, clusters: int) -> MicroClusters:
    """Clusters that are not easy to tell apart, so that EM takes its time."""
    rng = np.random.default_rng(0)
    centres = 1.5 * rng.normal(size=(clusters, features))
    y = rng.integers(clusters, size=micro_clusters)
    mass = rng.integers(1, 30, size=micro_clusters).astype(np.float64)
    centroids = centres[y] + 0.7 * rng.normal(size=(micro_clusters, features))
    return MicroClusters(centroids, mass, 0.3 * mass.sum() * np.eye(features))


def standardized_rows(data: str, rows: int, features: int) -> FloatArray:
    """SD or one Gaussian, scaled as all data of the experiments are."""
    rng = np.random.default_rng(0)
    return standardized(synthetic(rows, features, rng, n_clusters=5 if data == "SD" else 1).X)


def seconds(work: Callable[[], object]) -> float:
    """How long a piece of work takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def peak_bytes(work: Callable[[], Result]) -> tuple[Result, float]:
    """The result, and how much the peak of resident memory rose above what was in use; Linux only, else nan."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forgets the earlier peak
        before = resident_bytes("VmRSS")
        result = work()
        return result, resident_bytes("VmHWM") - before
    except OSError:
        return work(), float("nan")


def resident_bytes(field: str) -> float:
    """A line of the kernel's account of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def as_markdown(measurements: Sequence[Measurement], fusions: Sequence[FusionMeasurement], command: str) -> str:
    """The result as a page for a repository."""
    lines = [
        "# Speed of the learner",
        "",
        f"Made by `{command}`: FCPL with all its epochs (k0 = n / 2 candidates) on synthetic rows,",
        "against one `sklearn.metrics.pairwise.euclidean_distances(X, X[seeds])` of the same rows and as many seeds.",
        "One thread each, after compilation, in turn; medians. Extra memory is how far the peak of resident memory",
        "rose above what was in use, in units of the data. SD is a mixture of five clusters. One Gaussian is the hard",
        "case: there is nothing to find, so that thousands of candidates live on through all epochs. Mind the seconds",
        "beside the ratio: a distance matrix takes several times as long when the system hands out its memory in small",
        "pages, which flatters the learner.",
        "",
        "| data | FCPL | one distance matrix | ratio | extra memory | epochs | clusters |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in measurements:
        lines.append(
            f"| {one.data}, {one.rows} x {one.features} | {one.seconds_learning:.3f} s | {one.seconds_distances:.3f} s "
            f"| {one.ratio:.2f} | {one.extra_memory:.1f} x | {one.epochs} | {one.clusters} |"
        )
    lines += [
        "",
        "# Speed of the fusion",
        "",
        "The consensus at the server on synthetic micro-clusters that overlap; how long it takes to propose the number",
        "of clusters, if nobody knows it; and weighted k-means with ten starts on the same centroids, which is what",
        "coreset k-means does. One thread; extra memory is that of the consensus.",
        "",
        "| micro-clusters | clusters | consensus | proposal | weighted k-means | extra memory |",
        "|---|---|---|---|---|---|",
    ]
    for own in fusions:
        lines.append(
            f"| {own.micro_clusters} x {own.features} | {own.clusters} | {own.seconds_consensus:.1f} s "
            f"| {own.seconds_proposal:.1f} s | {own.seconds_k_means:.2f} s | {own.extra_megabytes:.0f} MB |"
        )
    return "\n".join(lines) + "\n"
