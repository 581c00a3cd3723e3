"""What clusters are like: every column in every cluster, what is special about each, and what tells two apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.learning.micro_clusters import diagonal_of
from goldfc.message.model import Model
from goldfc.report.features import Feature, features_of

# How many columns a card shows, if they are so many standard deviations from the mean of all.
MOST_TRAITS = 5
LEAST_TRAIT = 0.2
# Columns that are so much correlated inside clusters say the same thing.
SAME_THING = 0.8
# No bar is longer than this many standard deviations; its number still says how many there are.
LONGEST_BAR = 3.0
# How far from the mean of all, in words.
HOW_FAR = ((2.0, "far "), (1.0, "well "), (0.5, ""), (0.0, "a little "))
# Of shares near 0 or 1 nobody knows the spread.
LEAST_SPREAD_OF_SHARES = 0.05
# What tells two clusters apart: so many columns, if they differ by so many spreads.
MOST_APART, LEAST_APART = 3, 0.5
# So many standard deviations are as good as infinitely many, and one of so many as good as none.
FURTHEST_APART = 1e6


@dataclass(frozen=True)
class Trait:
    """What is special about a cluster: one feature, and how far it lies from the mean of all, in deviations."""

    feature: Feature
    value: float
    spread: float  # of rows inside the cluster
    z: float
    also: tuple[str, ...]  # columns that say the same thing

    @property
    def text(self) -> str:
        """The mean in the cluster, and, of numbers, how far its rows lie around it."""
        around = "" if self.feature.is_share else f" \N{PLUS-MINUS SIGN} {self.feature.text(self.spread)}"
        return f"{self.feature.text(self.value)}{around} {self.feature.unit}".strip()

    @property
    def words(self) -> str:
        """How far it is from all."""
        size = next(word for least, word in HOW_FAR if abs(self.z) >= least)
        return f"{size}{'above' if self.z > 0.0 else 'below'} all"

    @property
    def short(self) -> str:
        """The same in two words."""
        if self.feature.is_share:
            return f"{'mostly' if self.value > 0.5 else 'more' if self.z > 0.0 else 'fewer'} {self.feature.name}"
        return f"{'high' if self.z > 0.0 else 'low'} {self.feature.name}"

    @property
    def bar(self) -> tuple[float, float]:
        """Where its bar begins and how long it is, in per cent; the mean of all is in the middle."""
        length = 50.0 * min(abs(self.z) / LONGEST_BAR, 1.0)
        return 50.0 - (length if self.z < 0.0 else 0.0), length


@dataclass(frozen=True)
class Profiles:
    """Every feature (across) in every cluster (down), with what all rows are like."""

    features: tuple[Feature, ...]
    means: FloatArray
    spread: FloatArray  # standard deviations inside clusters, in the features' units
    alike: NDArray[np.bool_]  # (features, features): which say the same thing

    @classmethod
    def of(cls, model: Model, weight: IntArray) -> "Profiles":
        """As the model tells them; `weight` is how much every cluster counts where it does not tell the mean of all."""
        return cls(tuple(features_of(model, weight)), model.centroids, spread_within(model), alike_in(model))

    @cached_property
    def z(self) -> FloatArray:
        """How far each mean lies from that of all rows."""
        return self.unit(self.means)

    def unit(self, points: FloatArray) -> FloatArray:
        """Points in standard deviations of all rows, from their mean."""
        mean, deviation = np.array([(feature.mean, feature.deviation) for feature in self.features]).T
        with np.errstate(over="ignore"):
            return np.asarray(np.clip((points - mean) / deviation, -FURTHEST_APART, FURTHEST_APART))

    @cached_property
    def steps(self) -> FloatArray:
        """The spread inside clusters as distances are measured by it: in standard deviations of all."""
        least = [LEAST_SPREAD_OF_SHARES if feature.is_share else 0.0 for feature in self.features]
        deviation = [feature.deviation for feature in self.features]
        with np.errstate(over="ignore"):
            return np.clip(np.maximum(self.spread, least) / deviation, 1.0 / FURTHEST_APART, FURTHEST_APART)

    def most_different_first(self, features: IntArray) -> IntArray:
        """Some features, those first in which clusters differ most from the mean of all."""
        return np.asarray(features[np.argsort(-np.abs(self.z[:, features]).max(axis=0), kind="stable")])

    def traits(self, cluster: int) -> tuple[Trait, ...]:
        """What is special about a cluster."""
        return tuple(
            Trait(
                self.features[f],
                float(self.means[cluster, f]),
                float(self.spread[cluster, f]),
                float(self.z[cluster, f]),
                self.others(f, also),
            )
            for f, also in most_special(self.z[cluster], self.alike)
        )

    def others(self, first: int, features: Sequence[int]) -> tuple[str, ...]:
        """The columns of some features, each once, but not that of the first one."""
        names = dict.fromkeys(self.features[f].column for f in features)
        return tuple(name for name in names if name != self.features[first].column)

    def apart(self, one: FloatArray, other: FloatArray, steps: FloatArray) -> str:
        """What tells two means apart, in words: the features that differ most, by the spread inside them."""
        distance = np.abs(self.unit(one) - self.unit(other)) / steps
        chosen = [f for f, _ in most_special(distance, self.alike, least=LEAST_APART)[:MOST_APART]]
        return ", ".join(
            f"{self.features[f].name} ({self.features[f].text(one[f])} against {self.features[f].with_unit(other[f])})"
            for f in chosen
        )

    def between(self, one: int, other: int) -> str:
        """What tells two clusters apart."""
        return self.apart(self.means[one], self.means[other], both_steps(self.steps[one], self.steps[other]))

    def nearest(self, cluster: int) -> int | None:
        """The cluster that is most like this one, if there is another."""
        distance = ((self.z[cluster] - self.z) / both_steps(self.steps[cluster], self.steps)) ** 2
        distance[cluster] = np.inf
        return int(distance.sum(axis=1).argmin()) if len(distance) > 1 else None


def both_steps(one: FloatArray, other: FloatArray) -> FloatArray:
    """The spread inside two clusters."""
    return np.asarray(np.sqrt((one**2 + other**2) / 2.0))


def most_special(z: FloatArray, alike: NDArray[np.bool_], *, least: float = LEAST_TRAIT) -> list[tuple[int, list[int]]]:
    """The features furthest from 0, each with those beside it that say the same thing; of two as far, the larger."""
    chosen: list[tuple[int, list[int]]] = []
    for f in np.lexsort((-z, -np.round(np.abs(z), 6))).tolist():
        if abs(z[f]) < least:
            break
        same = [also for first, also in chosen if alike[f, first]]
        if same:
            same[0].append(f)
        else:
            chosen.append((f, []))
    return chosen[:MOST_TRAITS]


def spread_within(model: Model) -> FloatArray:
    """The standard deviation of every feature (across) inside every cluster (down), as the model tells it."""
    share = np.clip(model.centroids, 0.0, 1.0)
    variance, numbers = share * (1.0 - share), model.layout.numbers
    variance[:, numbers] = diagonal_of(model.covariance)[..., : len(numbers)]
    if model.prototypes is not None:
        points, labels, mass = model.prototypes.points, model.prototypes.labels, model.prototypes.mass
        for cluster in range(len(variance)):
            own = points[labels == cluster][:, numbers]
            centre = np.average(own, axis=0, weights=mass[labels == cluster])
            variance[cluster, numbers] += np.average((own - centre) ** 2, axis=0, weights=mass[labels == cluster])
    return np.asarray(np.sqrt(variance))


def correlation_inside(model: Model) -> FloatArray:
    """How features are correlated inside clusters on the whole; ones alone where the model tells of no correlation."""
    numbers, inside = model.layout.numbers, model.covariance
    if inside.ndim == 1 or not len(numbers):
        return np.ones(model.centroids.shape[1])
    spread, found = np.sqrt(diagonal_of(inside)), np.eye(model.centroids.shape[1])
    each = inside / spread[..., :, None] / spread[..., None, :]
    found[np.ix_(numbers, numbers)] = each.mean(axis=0) if inside.ndim == 3 else each
    return found


def alike_in(model: Model) -> NDArray[np.bool_]:
    """Which features say the same thing: those of one column, and numbers that are correlated inside clusters."""
    places = np.repeat(np.arange(len(model.terms.columns)), [column.features for column in model.terms.columns])
    columns = places if len(places) else np.arange(model.centroids.shape[1])
    alike = columns[:, None] == columns
    correlation = correlation_inside(model)
    same = np.abs(correlation) >= SAME_THING
    return np.asarray(alike | same if correlation.ndim == 2 else alike)
