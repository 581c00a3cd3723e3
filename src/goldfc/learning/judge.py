"""Which kind of cluster to believe: the judge needs no truth.

Three kinds are tried. *Shared*: round or stretched clusters that all have one covariance. *Own*: each has a covariance
of its own. *Linked*: clusters of any form with gaps between them. Between the first two the Bayesian information
criterion decides. Linked clusters are believed where their gaps are clear, and clearly larger than the others'.

Where there were clusters before, their number and kind are the usual ones, and another must be clearly better.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.consensus import GRANULARITIES, STARTS, find_consensus
from goldfc.learning.levels import Levels
from goldfc.learning.linkage import LIMITS, Linkage, SpanningTree, evenness, gap_of, gap_of_linkage, link, spanning_tree
from goldfc.learning.micro_clusters import MicroClusters
from goldfc.learning.mixture import clusters_of, may_be_own, one_hot
from goldfc.learning.proposal import (
    OBSERVATIONS_OF_FORM,
    Candidate,
    Curve,
    Fits,
    Proposal,
    best_of,
    gap_curve,
    proposal_of,
    short_list,
    weigh,
)

Kind = Literal["shared", "own", "linked"]
KINDS: tuple[Kind, ...] = ("shared", "own", "linked")

# Linked clusters are believed if they are at least so clear (of 1), and clearer by so much than the others; more is
# asked for, and a smaller lead is enough, where the number of clusters is not known.
GAP, LEAD = 0.5, 0.35
GAP_OF_ANY_NUMBER, LEAD_OF_ANY_NUMBER = 0.7, 0.2
# With fewer micro-clusters for every cluster, gaps are chance, unless all of them are clear.
FEWEST_LINKED = 12
# Linked clusters that are as well told by a mean and a covariance each need no more to describe them.
AS_WELL = 0.995
# After a model its number of clusters stays if it lacks no more evidence than the price of so many clusters, or if its
# gaps are hardly less clear; and its kind if gaps are no more clear, or less, than this beyond what is else asked for.
NEARLY, NEARLY_AS_CLEAR, MORE = 0.5, 0.02, 0.1


@dataclass(frozen=True)
class Usual:
    """What there was before: clusters of a kind, and how many."""

    kind: Kind
    n_clusters: int
    by_gaps: bool  # whether they were found by linkage


@dataclass(frozen=True)
class Verdict:
    """The clusters, the kind that was believed, and why, in a sentence."""

    kind: Kind
    why: str
    labels: IntArray  # of every micro-cluster: 0, 1, ... without gaps
    certainty: FloatArray  # in [0, 1]
    levels: Levels
    proposal: Proposal | None = None


@dataclass(frozen=True)
class Linked:
    """Clusters by linkage, and how clear the gaps between them are."""

    linkage: Linkage
    labels: IntArray
    gap: float
    clarity: float


def judge(
    micro: MicroClusters,
    n_clusters: int | None,
    rng: np.random.Generator,
    *,
    kinds: tuple[Kind, ...] = KINDS,
    starts: int = STARTS,
    usual: Usual | None = None,
    observations: float = OBSERVATIONS_OF_FORM,
) -> Verdict:
    """Cluster standardised micro-clusters in the way that is to be believed; fewer than asked for if many are alike."""
    court = Court(micro, rng, kinds, starts, usual, observations)
    if n_clusters is None:
        return court.propose()
    return court.decide(min(n_clusters, micro.distinct))


@dataclass(frozen=True)
class Court:
    """What a decision is made from."""

    micro: MicroClusters
    rng: np.random.Generator
    kinds: tuple[Kind, ...]
    starts: int
    usual: Usual | None = None
    observations: float = OBSERVATIONS_OF_FORM  # of a micro-cluster, to tell the form of clusters

    def decide(self, n_clusters: int) -> Verdict:
        """So many clusters, of the kind to believe."""
        tree = self.tree()
        # Around a single cluster there are no gaps.
        linked = None if tree is None or n_clusters == 1 else best_linked(tree, self.micro.mass, n_clusters)
        if linked is not None and (linked.gap == 1.0 or self.only_linked):
            return self.linked(linked)
        verdict = self.mixture(n_clusters)
        if tree is None or linked is None or len(self.micro.mass) < FEWEST_LINKED * n_clusters:
            return verdict
        gap = gap_of(self.micro.centroids, tree, self.micro.mass, verdict.labels)
        other = clarity(gap, self.micro.mass, verdict.labels)
        return self.linked(linked) if self.are_clear(linked.clarity, other, GAP, LEAD) else verdict

    def propose(self) -> Verdict:
        """As many clusters as the evidence speaks for."""
        if self.micro.distinct == 1:
            return replace(self.mixture(1), proposal=proposal_of({1: 0.0}, short_list({1: 0.0})))
        tree = self.tree()
        gaps = {} if tree is None else gap_curve(tree, self.micro.mass)
        clear = self.number_in(gaps, NEARLY_AS_CLEAR, linked=True)
        evidence = weigh(self.micro)
        verdict = self.mixture(self.number_in(evidence.curve, self.nearly, linked=False))
        candidates = short_list(evidence.curve)
        if tree is None or clear == 1:
            return replace(verdict, proposal=proposal_of(evidence.curve, candidates))
        other = gap_of(self.micro.centroids, tree, self.micro.mass, verdict.labels)
        clearest = Candidate(clear, f"the clearest gaps between clusters ({gaps[clear]:.2f} of 1)")
        if not (self.only_linked or self.are_clear(gaps[clear], other, GAP_OF_ANY_NUMBER, LEAD_OF_ANY_NUMBER)):
            return replace(verdict, proposal=proposal_of(evidence.curve, with_another(candidates, clearest)))
        linked = best_linked(tree, self.micro.mass, clear)
        by_fit = Candidate(candidates[0].n_clusters, f"{candidates[0].reason}, if clusters were round or stretched")
        return replace(self.linked(linked), proposal=proposal_of(gaps, with_another((clearest,), by_fit)))

    def number_in(self, curve: Curve, nearly: float, *, linked: bool) -> int:
        """Where the curve is highest, or the usual number of such clusters, if that is nearly as high."""
        best, usual = best_of(curve), self.usual
        if usual is None or usual.by_gaps != linked:
            return best
        return usual.n_clusters if curve.get(usual.n_clusters, -math.inf) >= curve.get(best, 0.0) - nearly else best

    @property
    def nearly(self) -> float:
        """How much evidence may be missing of the best one's."""
        return float(NEARLY * Fits(self.micro).price * (self.micro.centroids.shape[1] + 1))

    def are_clear(self, gap: float, other: float, at_least: float, lead: float) -> bool:
        """Whether gaps are clear, and clearly larger than others; it takes more, or less, where that is unusual."""
        more = 0.0 if self.usual is None else -MORE if self.usual.by_gaps else MORE
        return is_clear(gap, other, at_least + more, lead + more)

    @property
    def only_linked(self) -> bool:
        """Whether no other kind may be believed."""
        return set(self.kinds) == {"linked"}

    def tree(self) -> SpanningTree | None:
        """The spanning tree, if clusters may be linked; categories have no gaps."""
        if "linked" not in self.kinds or self.micro.levels or self.micro.distinct < 2:
            return None
        return spanning_tree(self.micro.centroids)

    def mixture(self, n_clusters: int) -> Verdict:
        """The consensus of mixtures, of the kind that has more evidence."""
        kind = self.kind_of_mixture(n_clusters)
        found = find_consensus(self.micro, n_clusters, self.rng, own=kind == "own", starts=self.starts)
        return Verdict(kind, WHY[kind], found.labels, found.certainty, found.levels)

    def kind_of_mixture(self, n_clusters: int) -> Kind:
        """Whether clusters share a covariance, or each has its own; there is no luck in it."""
        if "own" not in self.kinds or not may_be_own(self.micro, n_clusters):
            return "shared"
        if "shared" not in self.kinds:
            return "own"
        fits = Fits(self.micro, self.observations)
        usual = 0.0 if self.usual is None else self.nearly if self.usual.kind == "own" else -self.nearly
        return "own" if fits.own(n_clusters) + usual > fits.shared(n_clusters) else "shared"

    def linked(self, linked: Linked) -> Verdict:
        """Clusters with gaps; of kind `own` if a mean and a covariance each tell them as well."""
        counts = [factor * (int(linked.labels.max()) + 1) for factor in reversed(GRANULARITIES)]
        cuts = [linked.linkage.cut(min(count, len(linked.labels))) for count in counts]
        levels = Levels(np.column_stack(cuts), tuple(int(labels.max()) + 1 for labels in cuts))
        convex = may_be_own(self.micro) and told_by_covariances(self.micro, linked.labels)
        kind: Kind = "own" if convex else "linked"
        certainty = np.full(len(linked.labels), linked.gap)
        why = f"there are clear gaps between clusters ({linked.gap:.2f} of 1)"
        return Verdict(kind, f"{why}; {FORM_IN_WORDS[kind]}", linked.labels, certainty, levels)


WHY: dict[Kind, str] = {
    "shared": "clusters that are all stretched alike fit best for what they take to describe",
    "own": "clusters that are each stretched in their own way fit best, even for what they take to describe",
}
FORM_IN_WORDS = {
    "own": "each is round or stretched in its own way",
    "linked": "they are not convex, or not of one form",
}


def is_clear(gap: float, other: float, at_least: float, lead: float) -> bool:
    """Whether gaps are clear, and clearly larger than others."""
    return gap >= at_least and gap >= other + lead


def best_linked(tree: SpanningTree, mass: FloatArray, n_clusters: int) -> Linked:
    """The linkage with the clearest gaps, of several that let clusters grow more or less unequal."""
    tried: list[Linked] = []
    for limit in LIMITS:
        linkage = link(tree, mass, limit)
        labels = linkage.cut(n_clusters)
        gap = gap_of_linkage(tree, mass, labels)
        tried.append(Linked(linkage, labels, gap, clarity(gap, mass, labels)))
        if gap == 1.0:
            break
    return max(tried, key=lambda linked: linked.clarity)


def clarity(gap: float, mass: FloatArray, labels: IntArray) -> float:
    """How clear clusters are: by their gaps, and by how even they are, for it is easy to cut off small pieces."""
    return gap * math.sqrt(evenness(mass, labels))


def told_by_covariances(micro: MicroClusters, labels: IntArray) -> bool:
    """Whether nearly all micro-clusters are in the cluster that its mean and covariance would put them in."""
    clusters = clusters_of(micro, one_hot(labels), own=True)
    same = clusters.log_density(micro.centroids, micro.shares).argmax(axis=1) == labels
    return bool(micro.mass[same].sum() >= AS_WELL * micro.total_mass)


def with_another(candidates: tuple[Candidate, ...], other: Candidate) -> tuple[Candidate, ...]:
    """One more, unless its number is there already."""
    if other.n_clusters in [candidate.n_clusters for candidate in candidates]:
        return candidates
    return (*candidates, other)
