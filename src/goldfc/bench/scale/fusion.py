"""The fusion at the server against weighted k-means on the same micro-clusters."""

from dataclasses import asdict, dataclass

import numpy as np
from sklearn.cluster import KMeans

from goldfc.bench.scale.clock import seconds
from goldfc.bench.scale.parts import Section, Table, Tick, in_seconds
from goldfc.bench.scale.plan import Plan
from goldfc.learning.consensus import find_consensus
from goldfc.learning.mixture import MicroClusters
from goldfc.learning.proposal import propose

TEXT = """\
The consensus at the server on synthetic micro-clusters that overlap; how long it takes to propose the number of
clusters, if nobody knows it; and weighted k-means with ten starts on the same centroids, which is what coreset k-means
does. Once each: it does not grow with the rows."""


@dataclass(frozen=True)
class FusionMeasurement:
    """One number of micro-clusters."""

    micro_clusters: int
    features: int
    clusters: int
    seconds_consensus: float
    seconds_proposal: float
    seconds_k_means: float


def steps(plan: Plan, repeats: int) -> int:  # noqa: ARG001
    """How often it ticks."""
    return len(plan.fusion)


def measure(plan: Plan, repeats: int, tick: Tick) -> Section:  # noqa: ARG001
    """All sizes, once each."""
    propose(overlapping(100, 3, 2))  # compiles
    measurements = []
    for size in plan.fusion:
        measurements.append(measure_size(*size))
        tick()
    return section(measurements)


def measure_size(micro_clusters: int, features: int, clusters: int) -> FusionMeasurement:
    """Once each: it takes long enough."""
    micro = overlapping(micro_clusters, features, clusters)
    k_means = KMeans(clusters, n_init=10, random_state=0)
    return FusionMeasurement(
        micro_clusters,
        features,
        clusters,
        seconds_k_means=seconds(lambda: k_means.fit(micro.centroids, sample_weight=micro.mass)),
        seconds_consensus=seconds(lambda: find_consensus(micro, clusters, np.random.default_rng(1))),
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


def section(measurements: list[FusionMeasurement]) -> Section:
    """For the page."""
    columns = ("micro-clusters", "clusters", "consensus", "proposal", "weighted k-means")
    rows = [
        (
            f"{one.micro_clusters} x {one.features}",
            str(one.clusters),
            *map(in_seconds, (one.seconds_consensus, one.seconds_proposal, one.seconds_k_means)),
        )
        for one in measurements
    ]
    figures = [asdict(one) for one in measurements]
    return Section("fusion", "The fusion at the server", TEXT, Table(columns, rows), figures=figures)
