"""How many clusters? A curve over k of fit against simplicity, and a short list of what it speaks for.

For every k, one mixture: started from Ward's tree of the micro-clusters, cut at k, so that there is no luck in it. Its
evidence is the Bayesian information criterion. A micro-cluster stands for many rows that are much alike: counted as
one observation it would weigh too little, as all its rows far too much.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from goldfc.learning.mixture import MicroClusters, covariance_of_all, fit_mixture, standardized, whiten
from goldfc.learning.thinning import grow_tree

# How many observations a micro-cluster counts as.
OBSERVATIONS = 1.6
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
    """A function of k: the criterion of the better of two mixtures, per observation.

    Their starts are two trees: one of the features as they are, one with all correlations undone.
    """
    n_features = micro.centroids.shape[1]
    points = (micro.centroids, whiten(micro.centroids, covariance_of_all(micro)))
    trees = [grow_tree(those, micro.mass) for those in points]
    observations = float(min(OBSERVATIONS * len(micro.centroids), micro.total_mass))

    def evidence(n_clusters: int) -> float:
        fit = max(fit_mixture(micro, tree.cut(n_clusters)).log_likelihood for tree in trees)
        parameters = n_clusters * (n_features + 1) - 1
        return float(2.0 * fit - math.log(observations) * parameters / observations)

    return evidence


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
