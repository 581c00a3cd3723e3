"""The server's side: put all clients' micro-clusters together, and fuse them into the global clusters."""

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from threadpoolctl import threadpool_limits

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadMessage, BadSettings, TooFewMicroClusters
from goldfc.learning.consensus import Fused
from goldfc.learning.granularity import Levels
from goldfc.learning.mixture import (
    MicroClusters,
    diagonal_of,
    means_of,
    no_scatter,
    round_covariance,
    spread_around_means,
    whiten,
)
from goldfc.learning.moments import Moments, pool_moments
from goldfc.learning.proposal import Proposal, propose
from goldfc.learning.thinning import thin
from goldfc.protocol.federation import Port
from goldfc.protocol.fusion import Fusion
from goldfc.protocol.message import Model, Scaling, Summary
from goldfc.protocol.terms import Terms, ranges_of, with_fixed_scales

# A row is far from a cluster when it is further out than any of its micro-centroids by so many times the typical
# distance of a row from its micro-centroid.
MARGIN = 3.0
# The number of clusters is proposed from no more micro-clusters than this.
ENOUGH_TO_PROPOSE = 5_000
# How much of the variance of yes and no is taken to be inside clusters, besides what is measured. (With .1 some
# combinations of values are still clusters, with 1 categories no longer tell clusters apart.)
BLUR = 0.3


@dataclass(frozen=True)
class Round:
    """One finished round: what came up, in the order of the clients' names, and what went down."""

    summaries: tuple[Summary, ...]
    model: Model


def run_round(port: Port, n_clusters: int | None, fusion: Fusion, rng: np.random.Generator) -> Round:
    """GOLD, whole: ask every client once, fuse what they send, and send them the model."""
    check_n_clusters(n_clusters)  # before anybody works for it
    answers = port.ask(fusion.task.to_message())
    summaries = in_order(Summary.from_message(answer) for answer in answers.values())
    model = fuse(summaries, n_clusters, fusion, rng)
    port.ask(model.to_message())
    return Round(summaries, model)


def fuse(summaries: Sequence[Summary], n_clusters: int | None, fusion: Fusion, rng: np.random.Generator) -> Model:
    """Global clusters from all clients' summaries; the order in which they arrived does not matter.

    With `n_clusters` None the number is proposed from the evidence, which is then part of the model.
    """
    check_n_clusters(n_clusters)
    summaries = in_order(summaries)
    counts = tuple(len(summary.centroids) for summary in summaries)
    shares = shares_of(summaries, fusion.mass_cap)
    micro = pool(summaries, by_mass=fusion.task.mass, shares=shares)
    moments, scale = common_scale(summaries, fusion.task.scaling, shares)
    unit = blurred(micro if scale is None else divided(micro, scale), summaries[0].terms)
    group = thin_by_client(unit, counts, fusion.at_most)
    # One thread: sums that are made by several depend in their last digits on how many there are.
    with threadpool_limits(limits=1):
        merged = merge(unit, group)
        count, proposal = decide(n_clusters, merged)
        fused = fusion.fuse(merged, count, rng) if proposal is None else fuse_proposed(merged, count, fusion, rng)
        labels = fused.labels[group]
        centroids = means_of(micro.centroids, labels, micro.mass)
        covariance = spread_around_means(micro, labels)
        if fusion.plain_distances:
            covariance = round_covariance(covariance, scale)
        reach = reach_of(micro, centroids, covariance, labels)
    return Model(
        centroids=centroids,
        covariance=covariance,
        reach=reach,
        clients=tuple(summary.client for summary in summaries),
        micro_counts=counts,
        micro_labels=labels,
        micro_certainty=fused.certainty[group],
        levels=Levels(fused.levels.labels[group], fused.levels.n_clusters),
        digests=tuple(summary.to_message().digest for summary in summaries),
        proposal=proposal,
        moments=moments,
        terms=summaries[0].terms,
    )


def shares_of(summaries: Sequence[Summary], cap: float | None) -> list[float]:
    """How much of its rows every client may count: all, or less if it has far more of them than the others say."""
    told = [summary.rows for summary in summaries if summary.rows is not None]
    if cap is None or not told:
        return [1.0] * len(summaries)
    # Of an even number the lower one of the middle two: otherwise, of two sites the larger would set its own limit.
    most = cap * sorted(told)[(len(told) - 1) // 2]
    return [1.0 if summary.rows is None else min(1.0, most / summary.rows) for summary in summaries]


def common_scale(
    summaries: Sequence[Summary], scaling: Scaling, shares: Sequence[float]
) -> tuple[Moments | None, FloatArray | None]:
    """The moments of all rows and the scale of every feature; nothing if all clients had the same scale anyway."""
    if scaling == "given":
        return None, None
    if scaling == "ranges":
        low, high = ranges_of(summaries[0].terms)
        return None, high - low
    parts = [
        summary.moments.weighing(share) for summary, share in zip(summaries, shares, strict=True) if summary.moments
    ]
    if len(parts) < len(summaries):
        without = next(summary.client for summary in summaries if summary.moments is None)
        raise BadMessage(
            f"The summary of client {without!r} must tell the moments of its columns: the scale is pooled."
        )
    moments = pool_moments(parts)
    return moments, with_fixed_scales(moments.scale, summaries[0].terms)


def divided(micro: MicroClusters, scale: FloatArray) -> MicroClusters:
    """Micro-clusters on the common scale."""
    full = micro.scatter.ndim == 2
    return MicroClusters(
        micro.centroids / scale, micro.mass, micro.scatter / (np.outer(scale, scale) if full else scale**2)
    )


def blurred(micro: MicroClusters, terms: Terms) -> MicroClusters:
    """Yes and no, and categories, with some variance inside clusters, too.

    Micro-clusters often have one value only. Taken by the word, no cluster would have two, and every combination of
    values would be a cluster of its own.
    """
    shares = np.array([column.kind != "number" for column in terms.features])
    if not shares.any():
        return micro
    centred = micro.centroids - np.average(micro.centroids, axis=0, weights=micro.mass)
    extra = BLUR * shares * (micro.mass @ centred**2 + diagonal_of(micro.scatter))
    return MicroClusters(
        micro.centroids, micro.mass, micro.scatter + (np.diag(extra) if micro.scatter.ndim == 2 else extra)
    )


def decide(n_clusters: int | None, micro: MicroClusters) -> tuple[int, Proposal | None]:
    """How many clusters; and why so many, if nobody said."""
    if n_clusters is not None:
        return n_clusters, None
    proposal = propose(every_so_many(micro, ENOUGH_TO_PROPOSE))
    return proposal.best, proposal


def fuse_proposed(micro: MicroClusters, n_clusters: int, fusion: Fusion, rng: np.random.Generator) -> Fused:
    """Global clusters; fewer than proposed where the fusion cannot tell so many apart."""
    for fewer in range(n_clusters, 1, -1):
        try:
            return fusion.fuse(micro, fewer, rng)
        except TooFewMicroClusters:
            continue
    return fusion.fuse(micro, 1, rng)


def every_so_many(micro: MicroClusters, at_most: int) -> MicroClusters:
    """Evenly chosen micro-clusters, no more than so many; all of them, if they are not more."""
    step = -(-len(micro.centroids) // at_most)
    mass = micro.mass[::step]
    return MicroClusters(micro.centroids[::step], mass, micro.scatter * (mass.sum() / micro.total_mass))


def pool(summaries: Sequence[Summary], *, by_mass: bool = True, shares: Sequence[float] | None = None) -> MicroClusters:
    """All micro-clusters together; of the rows of a client only its share counts.

    Who withholds masses has micro-clusters of the others' mean mass (1 if all withhold them); who withholds the shape
    has the others' mean shape (none if all withhold it).
    """
    centroids = np.vstack([summary.centroids for summary in summaries])
    masses = masses_of(summaries, by_mass, shares or [1.0] * len(summaries))
    mass = np.concatenate(masses)
    shapes = [(own.sum(), summary.shape) for own, summary in zip(masses, summaries, strict=True)]
    known = [(weight, shape) for weight, shape in shapes if shape is not None]
    if not known:
        return MicroClusters(centroids, mass, no_scatter(centroids.shape[1]))
    share = sum(weight for weight, _ in known) / mass.sum()
    scatter = np.sum([weight * shape for weight, shape in known], axis=0) / share
    return MicroClusters(centroids, mass, scatter)


def masses_of(summaries: Sequence[Summary], by_mass: bool, shares: Sequence[float]) -> list[FloatArray]:
    """The masses of every client, of which its share counts; the mean one where they are not told.

    Nobody who does not tell counts more than the largest of those who do.
    """
    told = {
        summary.client: np.asarray(summary.mass * share, dtype=np.float64)
        for summary, share in zip(summaries, shares, strict=True)
        if by_mass and summary.mass is not None
    }
    usual = float(np.concatenate(list(told.values())).mean()) if told else 1.0
    most = max((float(mass.sum()) for mass in told.values()), default=np.inf)
    return [
        told[summary.client]
        if summary.client in told
        else np.full(len(summary.centroids), min(usual, most / len(summary.centroids)))
        for summary in summaries
    ]


def thin_by_client(micro: MicroClusters, counts: Sequence[int], at_most: int | None) -> IntArray:
    """Which of at most `at_most` groups (one per client at least) every micro-cluster joins; all keep the same share.

    Only micro-clusters of one client are merged, so that the time grows with the number of clients and no faster.
    """
    total = sum(counts)
    if at_most is None or total <= at_most:
        return np.arange(total, dtype=np.int64)
    # One for every client; what is left is shared by how many more each has.
    spare, more = max(0, at_most - len(counts)), total - len(counts)
    groups, start, first = [], 0, 0
    for count in counts:
        own = slice(start, start + count)
        group = thin(micro.centroids[own], micro.mass[own], 1 + (count - 1) * spare // max(more, 1))
        groups.append(first + group)
        start, first = start + count, first + int(group.max()) + 1
    return np.concatenate(groups)


def merge(micro: MicroClusters, group: IntArray) -> MicroClusters:
    """Every group as one micro-cluster; what its members lie apart becomes part of the scatter."""
    n_groups = int(group.max()) + 1
    if n_groups == len(group):
        return micro
    mass = np.bincount(group, weights=micro.mass, minlength=n_groups).astype(np.float64)
    centroids = means_of(micro.centroids, group, micro.mass)
    between = micro.scatter_like(micro.centroids - centroids[group], micro.mass)
    return MicroClusters(centroids, mass, micro.scatter + between)


def check_n_clusters(n_clusters: int | None) -> None:
    """Refuse what is no number of clusters."""
    if n_clusters is not None and not (isinstance(n_clusters, numbers.Integral) and n_clusters >= 1):
        raise BadSettings(
            f"n_clusters must be a whole number from 1 on, or None to have it proposed, got {n_clusters!r}."
        )


def in_order(summaries: Iterable[Summary]) -> tuple[Summary, ...]:
    """The summaries by client name; refuse them if they do not fit together."""
    ordered = tuple(sorted(summaries, key=lambda summary: summary.client))
    if not ordered:
        raise BadMessage("There is no summary to fuse; at least one client must answer.")
    for before, after in pairwise(ordered):
        if before.client == after.client:
            raise BadMessage(f"Client {after.client!r} sent two summaries; fuse one of them.")
        if before.centroids.shape[1] != after.centroids.shape[1]:
            raise BadMessage(
                f"Client {after.client!r} sent {after.centroids.shape[1]} features, "
                f"client {before.client!r} sent {before.centroids.shape[1]}; all must have the same columns."
            )
        if difference := before.terms.difference(after.terms):
            raise BadMessage(
                f"The summary of client {after.client!r} does not fit that of client {before.client!r}: {difference}."
            )
    return ordered


def reach_of(micro: MicroClusters, centroids: FloatArray, covariance: FloatArray, labels: IntArray) -> FloatArray:
    """How far every cluster goes: to its outermost micro-centroid, and a margin for the rows around it.

    Where no shape is known, rows are taken to lie around their micro-centroid as the covariance has it.
    """
    distance = np.linalg.norm(whiten(micro.centroids - centroids[labels], covariance), axis=1)
    within, variance = diagonal_of(micro.scatter), diagonal_of(covariance)
    mean_square = (within / variance).sum() / micro.total_mass if within.any() else len(variance)
    spread = np.sqrt(mean_square)
    outermost = np.zeros(len(centroids))
    np.maximum.at(outermost, labels, distance)
    return np.asarray(outermost + MARGIN * spread)
