"""The default: all sites' micro-clusters are put together, and a judge decides which kind of clusters to believe."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.agreement import Agreement
from goldfc.learning.consensus import STARTS
from goldfc.learning.judge import KINDS, Kind, Verdict, judge
from goldfc.learning.k_means import k_means
from goldfc.learning.levels import Levels
from goldfc.learning.micro_clusters import (
    Layout,
    MicroClusters,
    diagonal_of,
    form_of_shape,
    means_of,
    no_scatter,
    standardized,
)
from goldfc.learning.mixture import clusters_of, one_hot, squares_between, whiten
from goldfc.learning.moments import Moments, pool_moments
from goldfc.learning.proposal import OBSERVATIONS_OF_FORM, OBSERVATIONS_THROUGH_NOISE
from goldfc.learning.staying import Past
from goldfc.message.density import shares_of_density
from goldfc.message.model import Model, Prototypes
from goldfc.message.summary import Summary
from goldfc.message.task import Task
from goldfc.server.changes import has_outgrown
from goldfc.server.fusions import newest, one_thread, warn_of_fewer

# A row is far from a cluster when it is further out than any of its micro-centroids by so many times the typical
# distance of a row from its micro-centroid.
MARGIN_OF_REACH = 3.0
# Micro-clusters that are too many to fuse are merged into so many.
MERGED = 1_000
# A cluster that is not convex is told by its prototypes; all clusters together have no more than this.
MOST_PROTOTYPES = 1_000
# Around prototypes rows lie so many times as wide as around their own micro-centroids, and a little more: the variance
# of all rows times this.
WIDER, LITTLE = 2.0, 1e-4
# What stays of the scatter at least where the noise in micro-centroids is taken from it; less than any scatter is.
LEAST_SCATTER, TINY = 0.05, 1e-300


@dataclass(frozen=True)
class OneShot:
    """The default: clusters of the kind that the sites' micro-clusters speak for.

    Parameters
    ----------
    task
        What is asked of every site.
    kinds
        The kinds of clusters to choose from: "shared", "own", "linked".
    starts
        How many mixtures are fitted; the more they agree, the surer a label.
    at_most
        The server fuses no more micro-clusters; of more, neighbours are merged first.
    mass_cap
        The rows of a site count no more than so many times those of the median site; None: all.
    half_life
        They count half as much for every so many rounds that the summary is older than the newest; None: as much.
    before
        The model before: its clusters go on, unless there are many more rows now, or clear evidence against it.
    explain
        Where the number of clusters is given, the evidence for every number is told all the same.
    """

    task: Task = field(default_factory=Task)
    kinds: tuple[Kind, ...] = KINDS
    starts: int = STARTS
    at_most: int = 5_000
    mass_cap: float | None = None
    half_life: float | None = None
    before: Model | None = None
    explain: bool = False

    def staying(self, before: Model) -> "OneShot":
        """The same, after a model."""
        return replace(self, before=before)

    def shares(self, summaries: Sequence[Summary]) -> list[float]:
        """How much every row of a site counts: by how many it has, and how old they are."""
        by_size, by_age = shares_of(summaries, self.mass_cap), freshness(summaries, self.half_life)
        return [one * other for one, other in zip(by_size, by_age, strict=True)]

    def fuse(self, summaries: Sequence[Summary], n_clusters: int | None, rng: np.random.Generator) -> Model:
        """The kind of clusters that the micro-clusters speak for; with `n_clusters` None their number is proposed."""
        layout = summaries[0].layout
        shares = self.shares(summaries)
        with one_thread():
            micro = pool(summaries, layout, by_mass=self.task.mass, shares=shares)
            group = merge_many(micro, self.at_most, rng)
            merged = micro.merged(group)
            unit, scale = standardized(merged, one_scale=self.task.scaling == "given")
            centroids = np.vstack([summary.centroids for summary in summaries])
            past = self.past(means_of(centroids, group, micro.mass), merged.total_mass, scale)
            verdict = judge(
                unit,
                n_clusters,
                rng,
                kinds=self.kinds,
                starts=self.starts,
                past=past,
                explain=self.explain,
                observations=observations_of(summaries),
            )
            made = Made(layout, centroids, micro.mass, verdict.labels[group])
            covariance, prototypes = describe_clusters(unit, scale, verdict, made)
            reach = reach_of(merged, verdict, covariance, prototypes)
        warn_of_fewer(n_clusters, len(made.means))
        return Model(
            kind=verdict.kind,
            why=verdict.why,
            centroids=made.means,
            mass=np.bincount(made.labels, weights=micro.mass).astype(np.float64),
            covariance=covariance,
            reach=reach,
            sites=tuple(summary.site for summary in summaries),
            micro_counts=tuple(len(summary.centroids) for summary in summaries),
            micro_labels=made.labels,
            micro_certainty=verdict.certainty[group],
            # Two partitions agree where both are right: each is right as often as the root of that says.
            agreement=float(np.sqrt(np.average(verdict.certainty, weights=merged.mass))),
            levels=Levels(verdict.levels.labels[group], verdict.levels.n_clusters),
            digests=tuple(summary.to_message().digest for summary in summaries),
            prototypes=prototypes,
            proposal=verdict.proposal,
            asked=None if n_clusters is None else int(n_clusters),
            moments=pooled_moments(summaries, shares),
            terms=newest(summaries),
        )

    def past(self, points: FloatArray, rows: float, scale: FloatArray) -> Past | None:
        """What there was before, as micro-centroids of today show it; None where clusters are to be found anew."""
        before = self.before
        if before is None or has_outgrown(before, rows):
            return None
        means = before.layout.numbers_of(before.centroids)
        return Past(
            labels=shares_of_density(before, points).argmax(axis=1),
            means=(means - means.mean(axis=0)) / scale,
            mass=before.mass,
            own=before.kind == "own",
            by_gaps=before.kind == "linked" or (before.proposal is not None and before.proposal.of_gaps),
        )


def observations_of(summaries: Sequence[Summary]) -> float:
    """As how many observations a micro-cluster counts, to tell the form of clusters."""
    noisy = all(summary.error is not None for summary in summaries)
    return OBSERVATIONS_THROUGH_NOISE if noisy else OBSERVATIONS_OF_FORM


@dataclass(frozen=True)
class Made:
    """All micro-clusters as they were sent, and the global cluster of each."""

    layout: Layout
    centroids: FloatArray  # (micro-clusters, features)
    mass: FloatArray
    labels: IntArray

    @property
    def means(self) -> FloatArray:
        """Of every cluster, all features in their own units."""
        return means_of(self.centroids, self.labels, self.mass)


def describe_clusters(
    unit: MicroClusters, scale: FloatArray, verdict: Verdict, made: Made
) -> tuple[FloatArray, Prototypes | None]:
    """How rows lie in clusters, in the numbers' own units: covariances, and prototypes of those that are not convex."""
    if verdict.kind == "linked":
        within = unit.scatter * (WIDER / unit.total_mass)
        little = np.full(len(scale), LITTLE)
        covariance, prototypes = within + (little if within.ndim == 1 else np.diag(little)), prototypes_of(made, scale)
    else:
        covariance = clusters_of(unit, one_hot(verdict.labels), own=verdict.kind == "own").covariance
        prototypes = None
    return covariance * (scale**2 if covariance.ndim == 1 else np.outer(scale, scale)), prototypes


def prototypes_of(made: Made, scale: FloatArray) -> Prototypes:
    """The micro-centroids of every cluster; of too many, as many means of neighbours as are its share.

    Neighbours are told by the `scale` of their numbers; clusters that are not convex have no categories.
    """
    n_clusters, total = int(made.labels.max()) + 1, len(made.labels)
    points, labels, mass = [], [], []
    for cluster in range(n_clusters):
        own = np.flatnonzero(made.labels == cluster)
        group = np.arange(len(own))
        if total > MOST_PROTOTYPES:
            # One, and of all others its share.
            wanted = 1 + max(0, MOST_PROTOTYPES - n_clusters) * (len(own) - 1) // max(1, total - n_clusters)
            # No luck in it: which of many neighbours are merged hardly matters.
            group, _ = k_means(made.centroids[own] / scale, wanted, np.random.default_rng(0), made.mass[own])
        means = means_of(made.centroids[own], group, made.mass[own])
        sizes = np.bincount(group, weights=made.mass[own])
        order = np.lexsort([sizes, *means.T])  # as they lie, not as sites sent them: that would tell whose they are
        points.append(means[order])
        mass.append(sizes[order])
        labels.append(np.full(len(order), cluster, dtype=np.int64))
    return Prototypes(np.concatenate(points), np.concatenate(labels), np.concatenate(mass).astype(np.float64))


def merge_many(micro: MicroClusters, at_most: int, rng: np.random.Generator) -> IntArray:
    """Which group every micro-cluster is in: its own, or of too many that of its neighbours."""
    if len(micro.mass) <= at_most:
        return np.arange(len(micro.mass), dtype=np.int64)
    unit, _ = standardized(micro)
    return k_means(np.hstack([unit.centroids, unit.shares]), min(MERGED, at_most), rng, micro.mass)[0]


def shares_of(summaries: Sequence[Summary], cap: float | None) -> list[float]:
    """How much of its rows every site may count: all, or less if it has far more of them than the others say.

    A gateway counts as all the sites that it stands for.
    """
    told = [summary.rows / summary.sites for summary in summaries if summary.rows is not None]
    if cap is None or not told:
        return [1.0] * len(summaries)
    # Of an even number the lower one of the middle two: otherwise, of two sites the larger would set its own limit.
    most = cap * sorted(told)[(len(told) - 1) // 2]
    return [1.0 if one.rows is None else min(1.0, most * one.sites / one.rows) for one in summaries]


def freshness(summaries: Sequence[Summary], half_life: float | None) -> list[float]:
    """How much rows count by their age in rounds: half as much after every half-life."""
    if half_life is None:
        return [1.0] * len(summaries)
    latest = newest(summaries).round
    return [0.5 ** ((latest - summary.terms.round) / half_life) for summary in summaries]


def pooled_moments(summaries: Sequence[Summary], shares: Sequence[float]) -> Moments | None:
    """The moments of all rows of the sites that tell theirs."""
    told = [one.moments.weighing(share) for one, share in zip(summaries, shares, strict=True) if one.moments]
    return pool_moments(told) if told else None


def pool(
    summaries: Sequence[Summary], layout: Layout, *, by_mass: bool = True, shares: Sequence[float] | None = None
) -> MicroClusters:
    """All micro-clusters together; of the rows of a site only its share counts.

    Who withholds masses has micro-clusters of the others' mean mass (1 if all withhold them). Who tells no shape has
    the correlations of those who do; how rows spread around their micro-centroids follows from the moments.
    """
    centroids = np.vstack([summary.centroids for summary in summaries])
    numbers, levels = layout.numbers_of(centroids), layout.shares_of(centroids)
    masses = masses_of(summaries, by_mass, shares or [1.0] * len(summaries))
    mass = np.concatenate(masses)
    rows = [float(own.sum()) for own in masses]
    scatter = without_noise(pooled_scatter(summaries, rows, layout), noise_of(summaries, rows))
    return MicroClusters(numbers, mass, scatter, levels, layout.levels)


def pooled_scatter(summaries: Sequence[Summary], masses: Sequence[float], layout: Layout) -> FloatArray:
    """How the rows of all sites lie around their micro-centroids, added up."""
    n_numbers = max(1, len(layout.numbers))
    spreads = [(mass, spread_in(one)) for mass, one in zip(masses, summaries, strict=True)]
    told = [(mass, spread) for mass, spread in spreads if spread is not None]
    if not told:
        return no_scatter(n_numbers)
    share = sum(masses) / (sum(mass for mass, _ in told) or 1.0)
    variances = share * sum(mass * diagonal_of(spread) for mass, spread in told)
    if len(form_of_shape(n_numbers)) == 1:
        return np.asarray(variances)
    together = sum((mass * spread for mass, spread in told if spread.ndim == 2), np.zeros((n_numbers, n_numbers)))
    known = np.sqrt(np.where(diagonal_of(together) > 0.0, diagonal_of(together), 1.0))
    correlations = together / np.outer(known, known)
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(correlations * np.sqrt(np.outer(variances, variances)))


def noise_of(summaries: Sequence[Summary], masses: Sequence[float]) -> FloatArray | None:
    """How much the noise in the micro-centroids adds to the scatter of all rows, if any tells of noise."""
    told = [mass * one.error for mass, one in zip(masses, summaries, strict=True) if one.error is not None]
    return np.asarray(sum(told)) if told else None


def without_noise(scatter: FloatArray, noise: FloatArray | None) -> FloatArray:
    """Scatter from which is taken what noise adds to that of the micro-centroids, so that their sum is right.

    In no direction does less than a share stay, numbers being scaled to the scatter that they had.
    """
    if noise is None:
        return scatter
    usual = np.sqrt(np.maximum(diagonal_of(scatter), TINY))
    if scatter.ndim == 1:
        return np.asarray(np.maximum(scatter - noise, LEAST_SCATTER * scatter))
    values, vectors = np.linalg.eigh(scatter / np.outer(usual, usual) - np.diag(noise / usual**2))
    least = (vectors * np.maximum(values, LEAST_SCATTER)) @ vectors.T
    return np.asarray(0.5 * (least + least.T) * np.outer(usual, usual))


def spread_in(summary: Summary) -> FloatArray | None:
    """How rows lie around their micro-centroids: as told, or the variances that follow from moments and masses.

    The variance of all rows = that of the micro-centroids, by mass + that of rows around these.
    """
    if summary.shape is not None or summary.moments is None or summary.mass is None:
        return summary.shape
    moments, numbers = summary.moments, summary.layout.numbers
    between = np.average((summary.centroids - moments.mean) ** 2, axis=0, weights=summary.mass)
    return np.maximum(moments.variance - between, 0.0)[numbers] if len(numbers) else None


def masses_of(summaries: Sequence[Summary], by_mass: bool, shares: Sequence[float]) -> list[FloatArray]:
    """The masses of every site, of which its share counts; the mean one where they are not told.

    Nobody who does not tell counts more than the largest of those who do.
    """
    told = {
        summary.site: np.asarray(summary.mass * share, dtype=np.float64)
        for summary, share in zip(summaries, shares, strict=True)
        if by_mass and summary.mass is not None
    }
    usual = float(np.concatenate(list(told.values())).mean()) if told else 1.0
    most = max((float(mass.sum()) for mass in told.values()), default=np.inf)
    return [
        told[summary.site]
        if summary.site in told
        else np.full(len(summary.centroids), share * min(usual, most / len(summary.centroids)))
        for summary, share in zip(summaries, shares, strict=True)
    ]


def reach_of(
    micro: MicroClusters, verdict: Verdict, covariance: FloatArray, prototypes: Prototypes | None = None
) -> FloatArray:
    """How far every cluster goes: to its outermost micro-centroid, and a margin for the rows around it.

    Of clusters that are not convex: from one prototype to the next. Where no shape is known, rows are taken to lie
    around their micro-centroid as the covariance has it.
    """
    within, reach = diagonal_of(micro.scatter), np.zeros(int(verdict.labels.max()) + 1)
    for cluster in range(len(reach)):
        spread = covariance[cluster] if covariance.ndim == 3 else covariance
        variance = diagonal_of(spread)
        mean_square = (within / variance).sum() / micro.total_mass if within.any() else len(variance)
        if prototypes is None:
            own = verdict.labels == cluster
            origin = np.average(micro.centroids[own], axis=0, weights=micro.mass[own])
            apart = np.linalg.norm(whiten(micro.centroids[own] - origin, spread), axis=1)
        else:
            points = prototypes.points[prototypes.labels == cluster]
            apart = next_ones(whiten(points - points[0], spread))
        reach[cluster] = apart.max() + MARGIN_OF_REACH * np.sqrt(mean_square)
    return reach


def next_ones(points: FloatArray) -> FloatArray:
    """How far it is from every point to the nearest other; 0 from a single one."""
    if len(points) < 2:
        return np.zeros(len(points))
    squared = squares_between(points, points)  # of prototypes there are not many
    np.fill_diagonal(squared, np.inf)
    return np.asarray(np.sqrt(squared.min(axis=1)))


def fusion_of(agreement: Agreement) -> OneShot:
    """As was agreed on."""
    return OneShot(agreement.task, mass_cap=agreement.limits.mass_cap, half_life=agreement.memory.half_life)
