"""A gateway: a server to its devices, and a site to whoever is above it.

The summaries of many devices, or of other gateways, become one, which is no larger than a site's and passes the same
checks. So a hostile device can do no more than at a server, and whoever is above sees a region and no device.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from threadpoolctl import threadpool_limits

from goldfc._types import FloatArray, IntArray
from goldfc.agreement import Agreement
from goldfc.learning.k_means import nearest, sums_by_label
from goldfc.learning.micro_clusters import MicroClusters, diagonal_of, means_of, standardized
from goldfc.learning.moments import Moments
from goldfc.message.levels import weakest
from goldfc.message.summary import Summary
from goldfc.randomness import generator
from goldfc.server.admit import check_enough
from goldfc.server.fusions import in_order
from goldfc.server.one_shot import merge_many, pool, pooled_moments, shares_of
from goldfc.server.round import judged


@dataclass(frozen=True)
class Merged:
    """What goes up, and what the gateway knows besides."""

    summary: Summary
    left_out: Mapping[str, str]  # devices whose summary is not in it, and why
    odd: tuple[str, ...]  # which columns look odd at whom


def merge_admitted(summaries: Sequence[Summary], own: Agreement, above: Agreement, region: str) -> Merged:
    """One summary of those that were admitted, by the gateway's own agreement, as the one above takes it."""
    ordered = in_order(summaries)
    left_out, odd = judged(ordered, own)
    usable = [summary for summary in ordered if summary.site not in left_out]
    check_enough(len(usable), own)
    with threadpool_limits(limits=1):
        summary = merge(usable, above, region, own.limits.mass_cap)
    return Merged(above.read_summary(summary.to_message()), left_out, odd)


def merge(summaries: Sequence[Summary], above: Agreement, region: str, mass_cap: float | None = None) -> Summary:
    """The micro-clusters of all, neighbours put together until they are few enough; what they tell adds up."""
    level, withheld = weakest([summary.level for summary in summaries]), above.withhold
    together = Together.of(summaries, above, level.fewest, region, mass_cap)
    return Summary(
        region,
        together.centroids,
        mass=together.mass if together.by_mass and "mass" not in withheld else None,
        shape=together.shape if "shape" not in withheld else None,
        moments=together.moments if above.scaling == "pooled" and level.tells_moments else None,
        level=level,
        terms=summaries[0].terms,
        error=together.error,
        sites=sum(summary.sites for summary in summaries),
    )


@dataclass(frozen=True)
class Together:
    """The micro-clusters of all devices, and which of them become one."""

    summaries: Sequence[Summary]
    shares: Sequence[float]  # of its rows, what each device counts
    by_mass: bool
    fewest: int  # rows in one that may be told
    micro: MicroClusters
    group: IntArray

    @classmethod
    def of(
        cls, summaries: Sequence[Summary], above: Agreement, fewest: int, region: str, mass_cap: float | None
    ) -> "Together":
        """As few as the agreement with the one above allows."""
        by_mass, shares = all(one.mass is not None for one in summaries), shares_of(summaries, mass_cap)
        micro = pool(summaries, summaries[0].layout, by_mass=by_mass, shares=shares)
        group = merge_many(micro, above.limits.most_micro_clusters, generator(above.seed, "gateway", region))
        return cls(summaries, shares, by_mass, fewest, micro, with_enough(micro, group, fewest))

    @cached_property
    def merged(self) -> MicroClusters:
        """Those that go up."""
        return self.micro.merged(self.group)

    @cached_property
    def centroids(self) -> FloatArray:
        """Theirs, all features in their own units."""
        return means_of(np.vstack([one.centroids for one in self.summaries]), self.group, self.micro.mass)

    @property
    def mass(self) -> IntArray:
        """Whole rows, as many as may be told."""
        return np.maximum(np.rint(self.merged.mass), self.fewest).astype(np.int64)

    @property
    def shape(self) -> FloatArray | None:
        """How rows lie around the new micro-centroids: what merged ones lie apart is part of it, and what is noise."""
        if not len(self.summaries[0].layout.numbers):
            return None
        scatter = self.merged.scatter
        noise = np.zeros(len(scatter)) if self.noise is None else self.noise
        return np.asarray((scatter + (noise if scatter.ndim == 1 else np.diag(noise))) / self.total)

    @property
    def error(self) -> FloatArray | None:
        """The variance of the noise that is left in micro-centroids."""
        return None if self.noise is None else self.noise / self.total

    @property
    def total(self) -> float:
        """All rows, as far as they count."""
        return self.merged.total_mass

    @property
    def moments(self) -> Moments:
        """Those that the devices tell; unless all do, as micro-clusters have them."""
        told = pooled_moments(self.summaries, self.shares) if all(one.moments for one in self.summaries) else None
        found = told or moments_of(self.centroids, self.merged, self.summaries[0].layout.numbers)
        count = float(self.mass.sum() if self.by_mass else np.rint(found.count))
        return replace(found.weighing(count / found.count), count=count)  # whole, without what rounding adds

    @cached_property
    def noise(self) -> FloatArray | None:
        """How much noise in the new micro-centroids adds to the scatter of all rows: in means it partly cancels."""
        if all(one.error is None for one in self.summaries):
            return None
        none, mass = np.zeros(len(self.summaries[0].layout.numbers)), self.micro.mass
        each = [np.tile(none if one.error is None else one.error, (len(one.centroids), 1)) for one in self.summaries]
        of_sums = sums_by_label(np.vstack(each), self.group, len(self.merged.mass), mass**2)
        return np.asarray((of_sums / self.merged.mass[:, None]).sum(axis=0))


def with_enough(micro: MicroClusters, group: IntArray, fewest: int) -> IntArray:
    """Groups of fewer rows than may be told, each micro-cluster of them put into the nearest other group."""
    few = np.bincount(group, weights=micro.mass) < fewest
    if not few.any():
        return group
    if few.all():
        return np.zeros_like(group)
    unit, _ = standardized(micro)
    points, moved, kept = np.hstack([unit.centroids, unit.shares]), few[group], np.flatnonzero(~few)
    group = group.copy()
    group[moved] = kept[nearest(points[moved], means_of(points, group, micro.mass)[kept])]
    return np.unique(group, return_inverse=True)[1].astype(np.int64)


def moments_of(centroids: FloatArray, merged: MicroClusters, numbers: IntArray) -> Moments:
    """Of all rows, as far as micro-clusters tell: what these lie apart, and rows around them; a level is there or not.

    Where a share p of the rows has a level, M2 is p (1 - p) for each row.
    """
    mean = merged.mass @ centroids / merged.total_mass
    squares = merged.total_mass * mean * (1.0 - mean)
    squares[numbers] = (merged.mass @ (centroids - mean) ** 2)[numbers]
    squares[numbers] += diagonal_of(merged.scatter)[: len(numbers)]
    return Moments(merged.total_mass, mean, np.maximum(squares, 0.0))
