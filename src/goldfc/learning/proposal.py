"""How many clusters? For every kind of cluster a curve over k, and a short list of what the curves speak for.

Of mixtures, for every k: one fit from Ward's trees of the micro-clusters, cut at k, so that there is no luck in it. Its
evidence is the Bayesian information criterion: of clusters that share a covariance, all of one size or with a size
each, and of clusters with a covariance each. A micro-cluster stands for many rows that are much alike: counted as one
observation it would weigh too little, as all its rows far too much. Of linkage: how clear the gaps are.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from goldfc._looks import Shown
from goldfc._types import FloatArray
from goldfc.learning.linkage import SpanningTree, gap_of_linkage, link
from goldfc.learning.micro_clusters import MicroClusters
from goldfc.learning.mixture import (
    AT_REST,
    MAX_STEPS,
    NOTHING,
    Mixture,
    fit_mixture,
    may_be_own,
    shared_covariance,
    shares_and_sum,
    squared_distances,
    squares_between,
    start_points,
    whiten,
)
from goldfc.learning.ward import Tree, grow_tree

# How many observations a micro-cluster counts as; where there are categories or very many numbers, one tells more. To
# tell the form of clusters it counts as more than to tell their number; and as far more if noise lets a site tell but
# few micro-clusters, each of which then stands for so many more rows.
OBSERVATIONS, OBSERVATIONS_OF_MORE, OBSERVATIONS_OF_FORM, OBSERVATIONS_THROUGH_NOISE = 1.0, 3.0, 1.6, 14.0
# A cluster's own size is held to the common one as if so many more micro-clusters had that.
SIZE_HELD = 1.0
# Every k up to here is tried; above, steps of an eighth, and then every k around the best.
EVERY_ONE_UP_TO = 12
MOST = 100
# No k beyond this many times the best one so far is tried.
FAR_ENOUGH = 3.0
# Gaps around fewer micro-clusters than this, in the mean, may be there by chance; and how unequal clusters may grow.
MICRO_EACH, LIMIT = 8, 0.3
SHORT_LIST = 3
NEARLY_ALL = 0.9

Curve = dict[int, float]


@dataclass(frozen=True)
class Candidate:
    """A number of clusters that something speaks for."""

    n_clusters: int
    reason: str


@dataclass(frozen=True)
class Proposal(Shown):
    """The evidence for every number of clusters that was tried, and the short list, best first."""

    n_clusters: tuple[int, ...]  # ascending
    evidence: tuple[float, ...]  # larger is better; per observation, or of linkage how clear the gaps are, up to 1
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> int:
        """The number to take."""
        return self.candidates[0].n_clusters

    @property
    def of_gaps(self) -> bool:
        """Whether the evidence is that of linkage; around a single cluster there are no gaps."""
        return self.n_clusters[0] > 1


def proposal_of(curve: Curve, candidates: tuple[Candidate, ...]) -> Proposal:
    """One curve, for people to look at, and the short list."""
    tried = tuple(sorted(curve))
    return Proposal(tried, tuple(curve[k] for k in tried), candidates)


# --- gaps ---


def gap_curve(tree: SpanningTree, mass: FloatArray, also: int = 2) -> Curve:
    """How clear the gaps between k clusters are, for every k from 2 on, and for one more."""
    linkage = link(tree, mass, LIMIT)
    most = min(MOST, len(mass) // MICRO_EACH)
    tried = sorted({*range(2, max(2, most) + 1), also})
    return {k: gap_of_linkage(tree, mass, linkage.cut(k)) for k in tried if k <= len(mass)}


# --- mixtures ---


@dataclass(frozen=True)
class Evidence:
    """Of every k: the evidence for clusters that share a covariance, and for those with one each, if that was tried."""

    shared: Curve
    own: Curve

    @property
    def curve(self) -> Curve:
        """The better of the two."""
        return {k: max(curve[k] for curve in (self.shared, self.own) if k in curve) for k in self.shared | self.own}


def weigh(micro: MicroClusters, also: int = 1) -> Evidence:
    """Try numbers of clusters until more do not help, and one more."""
    most = min(MOST, micro.distinct, max(2, len(micro.centroids) // 2))
    fits = Fits(micro)
    shared, own = climb(fits.sized, most), climb(fits.own, most) if may_be_own(micro) else {}
    return Evidence(shared if also in shared else {**shared, also: fits.sized(also)}, own)


@dataclass(frozen=True)
class Fits:
    """Mixtures of k clusters from Ward's trees, cut at k: there is no luck in it."""

    micro: MicroClusters
    observations: float = OBSERVATIONS  # of a micro-cluster

    @cached_property
    def trees(self) -> list[Tree]:
        """Of points with correlations as they are, and undone."""
        return [grow_tree(start_points(self.micro, trust), self.micro.mass) for trust in (0.0, 1.0)]

    @cached_property
    def price(self) -> float:
        """What one more parameter must gain, by the Bayesian information criterion."""
        tells_more = self.micro.levels or self.micro.scatter.ndim == 1
        each = OBSERVATIONS_OF_MORE if tells_more else self.observations
        observations = min(each * len(self.micro.mass), self.micro.total_mass)
        return math.log(max(observations, 2.0)) / observations

    def best(self, n_clusters: int, *, own: bool) -> Mixture:
        """The likelier of the fits from both trees."""
        fits = [fit_mixture(self.micro, tree.cut(n_clusters), own=own) for tree in self.trees]
        return max(fits, key=lambda fit: fit.log_likelihood)

    def shared(self, n_clusters: int) -> float:
        """The evidence for clusters that share a covariance."""
        return self._evidence(n_clusters, self.best(n_clusters, own=False), own=False)

    def sized(self, n_clusters: int) -> float:
        """The evidence for clusters that share a covariance, or share it up to a size each, whichever is larger."""
        fit = self.best(n_clusters, own=False)
        of_one_size = self._evidence(n_clusters, fit, own=False)
        if self.micro.levels:
            return of_one_size
        gain = 2.0 * (fit_with_sizes(self.micro, fit) - fit.log_likelihood) - self.price * (n_clusters - 1)
        return of_one_size + max(gain, 0.0)

    def own(self, n_clusters: int) -> float:
        """The evidence for clusters with a covariance each."""
        return self._evidence(n_clusters, self.best(n_clusters, own=True), own=True)

    def _evidence(self, n_clusters: int, fit: Mixture, *, own: bool) -> float:
        parameters = parameters_of(n_clusters, self.micro.centroids.shape[1], own=own)
        worth = worth_of_categories(self.micro, fit, self.price)
        return float(2.0 * fit.log_likelihood - self.price * parameters + worth)


def parameters_of(n_clusters: int, n_numbers: int, *, own: bool) -> float:
    """How many more a mixture has than one cluster's covariance, categories apart."""
    covariances = (n_clusters - 1) * n_numbers * (n_numbers + 1) / 2.0 if own else 0.0
    return n_clusters * (n_numbers + 1) - 1 + covariances


def worth_of_categories(micro: MicroClusters, fit: Mixture, price: float) -> float:
    """What is to be added for the price of levels. A category that is not worth it counts as common to all clusters.

    Its gain: by how much the likelihood is larger because clusters have shares of their own.
    """
    weight = fit.memberships * micro.mass[:, None]
    usual = np.maximum(micro.usual_shares, NOTHING)
    gain = (2.0 * (weight.T @ micro.shares) * np.log(fit.clusters.shares / usual)).sum(axis=0) / micro.total_mass
    total, first = 0.0, 0
    for levels in micro.levels:
        own = slice(first, first + levels)
        free = float((micro.usual_shares[own] > 0.0).sum() - 1)
        of_all = float(gain[own].sum())
        worth = of_all - price * (len(fit.clusters.mass) - 1) * free
        total += max(worth, 0.0) - of_all - price * free
        first += levels
    return total


def fit_with_sizes(micro: MicroClusters, mixture: Mixture) -> float:
    """The mean log-likelihood of a row when clusters have sizes: their covariances are the common one times that.

    EM goes on from the mixture, in the space where its covariance is round; that stays as it is.
    """
    memberships = mixture.memberships
    mass, means = clusters_at(micro.centroids, micro.mass, memberships)
    covariance = shared_covariance(micro, means, mass)
    _, log_determinant = squared_distances(means[:1], means[:1], covariance)
    spread = trace_of(covariance, micro.all_scatter)
    points = whiten(micro.centroids, covariance)
    within = (spread - float(micro.mass @ (points**2).sum(axis=1))) / micro.total_mass
    usual = (spread - float(mass @ (whiten(means, covariance) ** 2).sum(axis=1))) / micro.total_mass
    before = log_likelihood = -math.inf
    for _ in range(MAX_STEPS):
        mass, means = clusters_at(points, micro.mass, memberships)
        # The squared distance of a row from a mean: that of its micro-centroid, and its own from this.
        apart = squares_between(points, means) + within
        sizes = sizes_of((memberships * apart).T @ micro.mass / mass - usual, mass, points.shape)
        log_density = np.log(mass / micro.total_mass) - 0.5 * (apart / sizes + points.shape[1] * np.log(sizes))
        memberships, each = shares_and_sum(log_density)
        log_likelihood = float(micro.mass @ each) / micro.total_mass - 0.5 * float(log_determinant)
        if log_likelihood - before < AT_REST:
            break
        before = log_likelihood
    return log_likelihood


def trace_of(covariance: FloatArray, scatter: FloatArray) -> float:
    """The trace of P S, with P the inverse of the covariance."""
    if covariance.ndim == 1:
        return float((scatter / covariance).sum())
    return float(np.trace(np.linalg.solve(covariance, scatter)))


def clusters_at(points: FloatArray, mass: FloatArray, memberships: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mass of every cluster, never quite nothing, and its mean."""
    total = np.maximum(memberships.T @ mass, NOTHING)
    return total, (memberships.T @ (points * mass[:, None])) / total[:, None]


def sizes_of(excess: FloatArray, mass: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """How much larger than the common covariance every cluster's is: by its rows' squared distances above the usual.

    The less mass, the nearer to 1: a cluster could else shrink around a single micro-cluster.
    """
    n_points, n_features = shape
    held = SIZE_HELD * mass.sum() / n_points
    return np.asarray(1.0 + mass / (mass + held) * excess / n_features)


# --- which k are tried, and what the curve speaks for ---


def climb(evidence: Callable[[int], float], most: int) -> Curve:
    """The evidence for small k, for ever larger steps until far beyond the best, and for all around the best."""
    curve = {1: evidence(1)}
    k = 2
    while k <= most and k <= max(EVERY_ONE_UP_TO, FAR_ENOUGH * best_of(curve)):
        curve[k] = evidence(k)
        step = max(1, k // 8) if k >= EVERY_ONE_UP_TO else 1
        k = min(k + step, most) if k < most else k + 1
    while missing := [k for k in numbers_around(best_of(curve), curve) if k not in curve]:
        curve |= {k: evidence(k) for k in missing}
    return curve


def numbers_around(best: int, curve: Curve) -> range:
    """All numbers between the neighbours of the best one."""
    below, above = [k for k in curve if k < best], [k for k in curve if k > best]
    return range(max(below, default=best), min(above, default=best) + 1)


def best_of(curve: Curve) -> int:
    """Where the evidence is largest; 1 only where nothing else was tried, for that would be no clustering."""
    return max((k for k in curve if k > 1), key=lambda k: curve[k], default=1)


def short_list(curve: Curve) -> tuple[Candidate, ...]:
    """Of mixtures: the best, other peaks of the curve, and the coarsest that is nearly as good."""
    best = best_of(curve)
    if best == 1:
        return (Candidate(1, "all micro-clusters are the same"),)
    if curve[best] <= curve.get(1, -math.inf):
        why = "the best of two or more, but a single cluster fits as well: there may be nothing to find"
        return (Candidate(best, why),)
    others = [k for k in sorted(peaks(curve), key=lambda k: -curve[k]) if k != best]
    enough = curve[1] + NEARLY_ALL * (curve[best] - curve[1])
    coarsest = min(k for k in curve if curve[k] >= enough)
    reasons = {best: "the best balance of fit and simplicity"}
    reasons |= dict.fromkeys(others[: SHORT_LIST - 1], "another peak of the curve")
    reasons.setdefault(coarsest, f"the fewest clusters with {NEARLY_ALL:.0%} of the best one's evidence")
    return tuple(Candidate(k, reason) for k, reason in reasons.items())


def peaks(curve: Curve) -> list[int]:
    """Numbers of clusters, from 2 on, with more evidence than both neighbours that were tried."""
    tried = sorted(curve)
    return [
        k
        for before, k, after in zip(tried, tried[1:], tried[2:], strict=False)
        if curve[k] > max(curve[before], curve[after])
    ]
