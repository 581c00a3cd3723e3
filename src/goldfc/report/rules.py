"""A rule for every cluster: a few columns by which people find its rows, and how far that can be trusted.

Nobody but the sites has rows. So rows are drawn as the model describes its clusters, and labelled by it: some to find a
rule, others to tell how precise it is.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.learning.mixture import NOTHING
from goldfc.message.density import shares_of_density
from goldfc.message.model import Model
from goldfc.report.confusion import drawn
from goldfc.report.features import Feature
from goldfc.report.profiles import Profiles, both_steps

# No rule has more columns, and of more than so many that tell clusters apart the others are not looked at.
COLUMNS_IN_A_RULE, MOST_TELLING = 3, 12
# A rule goes on while that makes it better by so much; a false row weighs more than one that is missed.
BETTER, MISSED_WEIGHS = 0.01, 0.25
# So many ends of a column are tried.
CUTS_TRIED = 30
# Clusters that are further apart in a column need not be.
FAR_APART = 10.0
# Rows that are drawn of every cluster, and of all, at most; and of many features so many numbers.
DRAWN_OF_EACH, DRAWN_OF_ALL, NUMBERS_DRAWN = 400, 4_000, 2_000_000


@dataclass(frozen=True)
class Condition:
    """What a value must be: at least `low`, and below `high`; of shares, that it is so or not."""

    place: int  # of the feature
    feature: Feature
    low: float = -math.inf
    high: float = math.inf

    def holds(self, rows: FloatArray) -> NDArray[np.bool_]:
        """For each of some rows."""
        return np.asarray((rows[:, self.place] >= self.low) & (rows[:, self.place] < self.high))

    @property
    def is_low(self) -> bool:
        """Whether its end is a lower one, if it has one end."""
        return math.isinf(self.high)

    def __and__(self, other: "Condition") -> "Condition":
        """Both, of the same feature."""
        return Condition(self.place, self.feature, max(self.low, other.low), min(self.high, other.high))

    @property
    def text(self) -> str:
        """In words."""
        feature = self.feature
        if feature.is_share:
            return feature.name if self.low > 0.0 else f"not {feature.name}"
        if self.is_low:
            return f"{feature.name} at least {feature.with_unit(self.low)}"
        if math.isinf(self.low):
            return f"{feature.name} below {feature.with_unit(self.high)}"
        return f"{feature.name} from {feature.text(self.low)} to below {feature.with_unit(self.high)}"


@dataclass(frozen=True)
class ClusterRule:
    """Conditions that must all hold; how many of the rows that fit are of the cluster, and the other way round."""

    conditions: tuple[Condition, ...]
    precision: float
    covered: float

    @property
    def text(self) -> str:
        """In words."""
        return " and ".join(condition.text for condition in self.conditions) or "every row"


@dataclass(frozen=True)
class Drawn:
    """Rows like those of all clusters: what each counts, and which cluster the model says it is of."""

    rows: FloatArray
    weight: FloatArray
    labels: IntArray  # by the place in the model
    centres: FloatArray  # what the rows lie around

    @classmethod
    def of(cls, model: Model, rng: np.random.Generator) -> "Drawn":
        """As many of each cluster; they count as its rows do."""
        count, features = model.centroids.shape
        each = max(1, min(DRAWN_OF_EACH, DRAWN_OF_ALL // count, NUMBERS_DRAWN // (count * features)))
        rows = np.vstack([drawn(model, cluster, each, rng) for cluster in range(count)])
        weight = np.repeat(model.mass / model.mass.sum() / each, each)
        centres = model.centroids if model.prototypes is None else model.prototypes.points
        return cls(rows, weight, shares_of_density(model, rows).argmax(axis=1), centres)

    def scores(self, fits: FloatArray, among: FloatArray, cluster: int) -> tuple[FloatArray, FloatArray]:
        """Precision, and how much of the cluster is covered, by each line of `fits`; 1 says that a row does."""
        own = self.weight * (self.labels == cluster)
        found, right = (fits @ np.column_stack([self.weight * among, own * among])).T
        return right / np.maximum(found, NOTHING), right / max(own.sum(), NOTHING)

    def by(self, rule: tuple[Condition, ...], cluster: int) -> tuple[float, float]:
        """The same of rows for which all conditions hold."""
        holds = reduce(np.multiply, (one.holds(self.rows) for one in rule), np.ones(len(self.rows)))
        precision, covered = self.scores(np.ones_like(holds)[None], holds, cluster)
        return min(1.0, float(precision[0])), min(1.0, float(covered[0]))


def rules(model: Model, profiles: Profiles) -> list[ClusterRule]:
    """One for every cluster, in the order of the model; the same for the same model."""
    found, measured = (Drawn.of(model, np.random.default_rng(seed)) for seed in (0, 1))
    return [rule_for(cluster, profiles, found, measured) for cluster in range(len(model.centroids))]


def rule_for(cluster: int, profiles: Profiles, found: Drawn, measured: Drawn) -> ClusterRule:
    """Grown by the condition that helps most, until none helps; measured on rows that it was not found by."""
    options = list(conditions(cluster, profiles, found))
    fits = np.array([one.holds(found.rows) for one in options], dtype=np.float64).reshape(-1, len(found.rows))
    rule: dict[int, Condition] = {}
    now = np.ones(len(found.rows))
    while options:
        best = worth(*found.by(tuple(rule.values()), cluster))
        allowed = [may_join(one, rule) for one in options]
        values = np.where(allowed, worth(*found.scores(fits, now, cluster)), 0.0)
        chosen = middle_of_best(values, options)
        if values[chosen] < best + BETTER:
            break
        new, now = options[chosen], now * fits[chosen]
        rule[new.place] = rule[new.place] & new if new.place in rule else new
    shortest = pruned(tuple(rule.values()), found, cluster)
    return ClusterRule(shortest, *measured.by(shortest, cluster))


def middle_of_best(values: FloatArray, options: Sequence[Condition]) -> int:
    """The most helpful one; of several ends of a column that help as much, the one in the middle."""
    best = np.flatnonzero(values == values.max()).tolist()
    first = options[best[0]]
    alike = [one for one in best if options[one].place == first.place and options[one].is_low == first.is_low]
    return int(alike[len(alike) // 2])


def pruned(rule: tuple[Condition, ...], found: Drawn, cluster: int) -> tuple[Condition, ...]:
    """Without conditions that it is as good without."""
    for one in rule:
        rest = tuple(other for other in rule if other is not one)
        if worth(*found.by(rest, cluster)) >= worth(*found.by(rule, cluster)):
            rule = rest
    return rule


def worth(precision: FloatArray | float, covered: FloatArray | float) -> FloatArray:
    """The F-score that minds false rows more than missed ones; of two that differ by rounding, neither is better."""
    both = MISSED_WEIGHS * precision + covered
    return np.asarray(np.round((1.0 + MISSED_WEIGHS) * precision * covered / np.maximum(both, NOTHING), 9))


def may_join(condition: Condition, rule: dict[int, Condition]) -> bool:
    """Whether a rule with it too has few enough columns."""
    columns = {one.feature.column for one in rule.values()}
    return len(columns | {condition.feature.column}) <= COLUMNS_IN_A_RULE


def conditions(cluster: int, profiles: Profiles, found: Drawn) -> Iterator[Condition]:
    """What may be asked of the columns that tell a cluster from the others: above or below some value."""
    for place in telling(cluster, profiles).tolist():
        feature = profiles.features[place]
        for end in (0.5,) if feature.is_share else ends(found.rows[:, place], found.centres[:, place], feature):
            yield Condition(place, feature, low=end)
            yield Condition(place, feature, high=end)


def telling(cluster: int, profiles: Profiles) -> IntArray:
    """The features that tell it from the others best, by the spread inside clusters."""
    steps = both_steps(profiles.steps[cluster], profiles.steps)
    apart = np.minimum(np.abs(profiles.z[cluster] - profiles.z) / steps, FAR_APART).sum(axis=0)
    return np.argsort(-apart, kind="stable")[:MOST_TELLING]


def ends(values: FloatArray, centres: FloatArray, feature: Feature) -> list[float]:
    """Where a column may be cut, with no more digits than are read: in the middle between quantiles of the rows.

    All cuts are between what rows lie around: how far rows go beyond these the model does not know.
    """
    quantiles = np.quantile(values, np.linspace(0.0, 1.0, CUTS_TRIED + 1), method="lower")
    cuts = (quantiles[:-1] + quantiles[1:]) / 2.0
    inner = cuts[(cuts > centres.min()) & (cuts < centres.max())]
    return sorted({feature.rounded(value) for value in inner.tolist()})
