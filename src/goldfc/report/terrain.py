"""Where micro-clusters are on a map."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.micro_clusters import means_of
from goldfc.learning.mixture import whiten
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.report.profiles import Profiles, correlation_inside

# The drawing, and the discs in it; of very many discs the largest is smaller, so that they do not cover each other.
WIDTH, HEIGHT, EDGE = 720.0, 430.0, 36.0
LARGEST_DISC, LEAST_DISC, ROOM_OF_DISCS = 17.0, 2.5, 230.0
# Means stand for many micro-clusters, and are drawn so much larger.
MEANS_LARGER = 2.0
# More points than this are no picture, and the page would be large.
MOST_POINTS = 3_000
# Less than this share of the largest mass is as good as this.
LEAST_MASS = 1e-9
# So much of every column is taken to be its own, however much it is correlated with others.
OF_ITS_OWN = 1e-3
# Points that are closer together than this are one.
SAME_PLACE = 1e-9

PointKind = Literal["micro-cluster", "prototype", "mean"]


@dataclass(frozen=True)
class Mapped:
    """What is known of where rows are: micro-clusters where their summaries are given, or what the model has."""

    what: PointKind
    centres: FloatArray  # (points, features)
    mass: FloatArray
    labels: IntArray  # the cluster of each, by its place in the model
    titles: tuple[str, ...]

    @classmethod
    def of(cls, model: Model, summaries: Sequence[Summary]) -> "Mapped":
        """Micro-clusters; without all summaries prototypes, or no more than the clusters' means."""
        told = {summary.site: summary for summary in summaries}
        if set(told) == set(model.sites):
            return micro_clusters(model, [told[site] for site in model.sites])
        if model.prototypes is not None:
            own = model.prototypes
            return cls("prototype", own.points, own.mass, own.labels, tuple(f"{mass:,.0f} rows" for mass in own.mass))
        titles = tuple(f"{mass:,.0f} rows" for mass in model.mass)
        return cls("mean", model.centroids, model.mass, np.arange(len(model.mass)), titles)

    def largest(self, most: int) -> "Mapped":
        """The heaviest of very many, in their order; the largest mass is 1."""
        chosen = np.sort(np.argsort(-self.mass, kind="stable")[:most])
        mass = np.maximum(self.mass[chosen] / self.mass.max(), LEAST_MASS)
        return Mapped(
            self.what, self.centres[chosen], mass, self.labels[chosen], tuple(self.titles[n] for n in chosen.tolist())
        )


@dataclass(frozen=True)
class Terrain:
    """Points of the map, and where they are if distances are those that the clusters' covariance means."""

    points: Mapped
    flat: FloatArray  # (points, directions)

    @classmethod
    def of(cls, model: Model, summaries: Sequence[Summary], profiles: Profiles) -> "Terrain":
        """PointKind is known of where rows are."""
        points = Mapped.of(model, summaries).largest(MOST_POINTS)
        return cls(points, flattened(model, points.centres, profiles))

    @property
    def places(self) -> FloatArray:
        """On the map."""
        return on_the_map(self.flat @ directions(self.flat, self.points.mass, self.points.labels).T)

    @property
    def radii(self) -> FloatArray:
        """Areas are as masses are."""
        most = LARGEST_DISC * (MEANS_LARGER if self.points.what == "mean" else 1.0)
        largest = min(most, ROOM_OF_DISCS / math.sqrt(len(self.points.mass)))
        return np.asarray(np.maximum(largest * np.sqrt(self.points.mass), LEAST_DISC))


def micro_clusters(model: Model, summaries: Sequence[Summary]) -> Mapped:
    """Those of all sites, in the model's order; where masses are withheld, all count alike."""
    masses = [np.ones(len(one.centroids)) if one.mass is None else one.mass.astype(np.float64) for one in summaries]
    rows = [
        "" if one.mass is None else f", {rows:,.0f} rows"
        for one, mass in zip(summaries, masses, strict=True)
        for rows in mass.tolist()
    ]
    titles = tuple(
        f"{site}{own}, {100.0 * sure:.0f} % certain"
        for site, own, sure in zip(model.micro_sites, rows, model.micro_certainty.tolist(), strict=True)
    )
    centres = np.vstack([one.centroids for one in summaries])
    return Mapped("micro-cluster", centres, np.concatenate(masses), model.micro_labels, titles)


def flattened(model: Model, points: FloatArray, profiles: Profiles) -> FloatArray:
    """Seen where rows of a cluster lie round; of clusters that are not convex, in standard deviations of all."""
    unit = profiles.unit(points)
    if model.prototypes is not None:
        return unit
    correlation = correlation_inside(model)
    if correlation.ndim == 2:
        correlation = (1.0 - OF_ITS_OWN) * correlation + OF_ITS_OWN * np.eye(len(correlation))
    return whiten(unit / profiles.steps.mean(axis=0), correlation)


def directions(flat: FloatArray, mass: FloatArray, labels: IntArray) -> FloatArray:
    """The two in which clusters are furthest apart; where fewer tell them apart, those in which points are."""
    centred, own = flat - np.average(flat, axis=0, weights=mass), np.unique(labels, return_inverse=True)[1]
    found = leading(means_of(centred, own, mass) * np.sqrt(np.bincount(own, weights=mass))[:, None], 2)
    rest = centred - centred @ found.T @ found
    return np.vstack([found, leading(rest * np.sqrt(mass)[:, None], 2 - len(found))])


def leading(points: FloatArray, most: int) -> FloatArray:
    """At most so many directions in which points are furthest from 0; the largest part of each is positive."""
    _, sizes, axes = np.linalg.svd(points, full_matrices=False)
    axes = axes[: int((sizes[:most] > max(SAME_PLACE, SAME_PLACE * float(sizes[0]))).sum())]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    return np.asarray(axes * np.sign(largest))


def on_the_map(places: FloatArray) -> FloatArray:
    """Both directions at one scale, in the middle of the drawing."""
    both = np.hstack([places, np.zeros((len(places), 2 - places.shape[1]))])
    low, high = both.min(axis=0), both.max(axis=0)
    room = np.array([WIDTH, HEIGHT]) - 2.0 * EDGE
    scale = (room / np.maximum(high - low, SAME_PLACE)).min()
    return np.asarray((both - (low + high) / 2.0) * scale * [1.0, -1.0] + np.array([WIDTH, HEIGHT]) / 2.0)
