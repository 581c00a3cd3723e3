"""How many clusters? A curve over k of fit against simplicity, and a short list of what it speaks for.

For every k, one mixture: started from Ward's tree of the micro-clusters, cut at k, so that there is no luck in it. Its
evidence is the Bayesian information criterion, of clusters that are all of one size or of clusters with a size each,
whichever is larger: without the second, a wide cluster would be cut into several of the common size. A micro-cluster
stands for many rows that are much alike: counted as one observation it would weigh too little, as all its rows far too
much.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from sklearn.metrics import euclidean_distances

from goldfc._types import FloatArray
from goldfc.learning.mixture import (
    AT_REST,
    MAX_STEPS,
    MicroClusters,
    Mixture,
    covariance_inside,
    covariance_of_all,
    fit_mixture,
    solve,
    standardized,
    whiten,
)
from goldfc.learning.thinning import grow_tree

# How many observations a micro-cluster counts as.
OBSERVATIONS = 1.6
# A cluster's own size is held to the common one as if so many more micro-clusters had that.
HELD = 1.0
# The mass of a cluster that has lost all its micro-clusters.
NOTHING = 1e-300
# Every k up to here is tried; above, steps of an eighth, and then every k around the best.
EVERY_ONE_UP_TO = 12
MOST = 100
# No k beyond this many times the best one so far is tried.
FAR_ENOUGH = 3.0
SHORT_LIST = 3
NEARLY_ALL = 0.9


@dataclass(frozen=True)
class Candidate:
    """A number of clusters that something speaks for."""

    n_clusters: int
    reason: str


@dataclass(frozen=True)
class Proposal:
    """The evidence for every number of clusters that was tried, and the short list, best first."""

    n_clusters: tuple[int, ...]  # ascending, from 1 on
    evidence: tuple[float, ...]  # per observation; larger is better, differences count
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> int:
        """The number to take."""
        return self.candidates[0].n_clusters


def propose(micro: MicroClusters) -> Proposal:
    """Try numbers of clusters until more do not help."""
    most = min(MOST, micro.distinct, max(2, len(micro.centroids) // 2))
    curve = climb(evidence_for(standardized(micro)[0]), most)
    tried = tuple(sorted(curve))
    return Proposal(tried, tuple(curve[k] for k in tried), short_list(curve))


def evidence_for(micro: MicroClusters) -> Callable[[int], float]:
    """A function of k: the criterion of the better of two mixtures, per observation, with or without own sizes.

    Their starts are two trees: one of the features as they are, one with all correlations undone.
    """
    n_features = micro.centroids.shape[1]
    points = (micro.centroids, whiten(micro.centroids, covariance_of_all(micro)))
    trees = [grow_tree(those, micro.mass) for those in points]
    observations = float(min(OBSERVATIONS * len(micro.centroids), micro.total_mass))
    price = math.log(observations) / observations

    def evidence(n_clusters: int) -> float:
        fits = [fit_mixture(micro, tree.cut(n_clusters)) for tree in trees]
        best = max(fits, key=lambda fit: fit.log_likelihood)
        parameters = n_clusters * (n_features + 1) - 1
        of_one_size = 2.0 * best.log_likelihood - price * parameters
        of_own_sizes = 2.0 * fit_with_sizes(micro, best) - price * (parameters + n_clusters - 1)
        return float(max(of_one_size, of_own_sizes))

    return evidence


def fit_with_sizes(micro: MicroClusters, mixture: Mixture) -> float:
    """The mean log-likelihood of a row when clusters have sizes: their covariances are the common one times that.

    EM goes on from the mixture, in the space where its covariance is round; that stays as it is.
    """
    memberships = mixture.memberships
    mass, means = clusters_of(micro.centroids, micro.mass, memberships)
    covariance = covariance_inside(micro, means, mass, trust=1.0)
    _, log_determinant, spread = solve(covariance, means, micro)
    points = whiten(micro.centroids, covariance)
    within = (spread - float(micro.mass @ (points**2).sum(axis=1))) / micro.total_mass
    usual = (spread - float(mass @ (whiten(means, covariance) ** 2).sum(axis=1))) / micro.total_mass
    before = log_likelihood = -math.inf
    for _ in range(MAX_STEPS):
        mass, means = clusters_of(points, micro.mass, memberships)
        # The squared distance of a row from a mean: that of its micro-centroid, and its own from this.
        apart = euclidean_distances(points, means, squared=True) + within
        sizes = sizes_of((memberships * apart).T @ micro.mass / mass - usual, mass, points.shape)
        logits = np.log(mass / micro.total_mass) - 0.5 * (apart / sizes + points.shape[1] * np.log(sizes))
        top = logsumexp(logits, axis=1)
        memberships = np.exp(logits - top[:, None])
        log_likelihood = float(micro.mass @ top) / micro.total_mass - 0.5 * log_determinant
        if log_likelihood - before < AT_REST:
            break
        before = log_likelihood
    return log_likelihood


def clusters_of(points: FloatArray, mass: FloatArray, memberships: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mass of every cluster, never quite nothing, and its mean."""
    total = np.maximum(memberships.T @ mass, NOTHING)
    return total, (memberships.T @ (points * mass[:, None])) / total[:, None]


def sizes_of(excess: FloatArray, mass: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """How much larger than the common covariance every cluster's is: by its rows' squared distances above the usual.

    The less mass, the nearer to 1: a cluster could else shrink around a single micro-cluster.
    """
    n_points, n_features = shape
    held = HELD * mass.sum() / n_points
    return np.asarray(1.0 + mass / (mass + held) * excess / n_features)


def climb(evidence: Callable[[int], float], most: int) -> dict[int, float]:
    """The evidence for small k, for ever larger steps until far beyond the best, and for all around the best."""
    curve = {1: evidence(1)}
    k = 2
    while k <= most and k <= max(EVERY_ONE_UP_TO, FAR_ENOUGH * best_of(curve)):
        curve[k] = evidence(k)
        step = max(1, k // 8) if k >= EVERY_ONE_UP_TO else 1
        k = min(k + step, most) if k < most else k + 1
    while missing := [k for k in around(best_of(curve), curve) if k not in curve]:
        curve |= {k: evidence(k) for k in missing}
    return curve


def around(best: int, curve: dict[int, float]) -> range:
    """All numbers between the neighbours of the best one."""
    below, above = [k for k in curve if k < best], [k for k in curve if k > best]
    return range(max(below, default=best), min(above, default=best) + 1)


def best_of(curve: dict[int, float]) -> int:
    """Where the evidence is largest; 1 only where nothing else was tried, for that would be no clustering."""
    return max((k for k in curve if k > 1), key=lambda k: curve[k], default=1)


def short_list(curve: dict[int, float]) -> tuple[Candidate, ...]:
    """The best, other peaks of the curve, and the coarsest that is nearly as good."""
    best = best_of(curve)
    if best == 1:
        return (Candidate(1, "all micro-clusters are the same"),)
    if curve[best] <= curve[1]:
        why = "the best of two or more, but a single cluster fits as well: there may be nothing to find"
        return (Candidate(best, why),)
    others = [k for k in sorted(peaks(curve), key=lambda k: -curve[k]) if k != best]
    enough = curve[1] + NEARLY_ALL * (curve[best] - curve[1])
    coarsest = min(k for k in curve if curve[k] >= enough)
    reasons = {best: "the best balance of fit and simplicity"}
    reasons |= dict.fromkeys(others[: SHORT_LIST - 1], "another peak of the curve")
    reasons.setdefault(coarsest, f"the fewest clusters with {NEARLY_ALL:.0%} of the best one's evidence")
    return tuple(Candidate(k, reason) for k, reason in reasons.items())


def peaks(curve: dict[int, float]) -> list[int]:
    """Numbers of clusters, from 2 on, with more evidence than both neighbours that were tried."""
    tried = sorted(curve)
    return [
        k
        for before, k, after in zip(tried, tried[1:], tried[2:], strict=False)
        if curve[k] > max(curve[before], curve[after])
    ]
