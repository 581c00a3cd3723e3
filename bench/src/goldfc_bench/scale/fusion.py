"""OneShot's server against weighted k-means on the same micro-clusters."""

from dataclasses import asdict, dataclass

import numpy as np
from sklearn.cluster import KMeans

from goldfc.learning.judge import Verdict, judge
from goldfc.learning.micro_clusters import MicroClusters, standardized
from goldfc.server.one_shot import OneShot, merge_many
from goldfc_bench.scale.clock import seconds
from goldfc_bench.scale.parts import Section, Table, Tick, in_seconds, spaced
from goldfc_bench.scale.plan import Plan

TEXT = f"""\
What the server of OneShot does with synthetic micro-clusters that overlap: try three kinds of clusters and judge
between them, with the number of clusters given, and with a number to propose. More than {spaced(OneShot().at_most)} are
merged first. Beside it, weighted k-means with ten starts on the same centroids, which is what coreset k-means does.
Once each: it does not grow with the rows."""


@dataclass(frozen=True)
class FusionMeasurement:
    """One number of micro-clusters."""

    micro_clusters: int
    features: int
    clusters: int
    seconds_given: float
    seconds_proposed: float
    seconds_k_means: float


def steps(plan: Plan, repeats: int) -> int:  # noqa: ARG001
    """How often it ticks."""
    return len(plan.fusion)


def measure(plan: Plan, repeats: int, tick: Tick) -> Section:  # noqa: ARG001
    """All sizes, once each."""
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
        seconds_given=seconds(lambda: find_clusters(micro, clusters, np.random.default_rng(1))),
        seconds_proposed=seconds(lambda: find_clusters(micro, None, np.random.default_rng(1))),
    )


def find_clusters(micro: MicroClusters, n_clusters: int | None, rng: np.random.Generator) -> Verdict:
    """From the micro-clusters of all sites to clusters of the kind to believe."""
    merged = micro.merged(merge_many(micro, OneShot().at_most, rng))
    return judge(standardized(merged)[0], n_clusters, rng)


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
    columns = ("micro-clusters", "clusters", "number given", "number proposed", "weighted k-means")
    rows = [
        (
            f"{one.micro_clusters} x {one.features}",
            str(one.clusters),
            *map(in_seconds, (one.seconds_given, one.seconds_proposed, one.seconds_k_means)),
        )
        for one in measurements
    ]
    figures = [asdict(one) for one in measurements]
    return Section("fusion", "OneShot's server", TEXT, Table(columns, rows), figures=figures)
