"""Which kind of cluster to believe: the judge needs no truth.

Three kinds are tried. *Shared*: round or stretched clusters that all have one covariance. *Own*: each has a covariance
of its own. *Linked*: clusters of any form with gaps between them. Between the first two the Bayesian information
criterion decides. Linked clusters are believed where their gaps are clear, and clearly larger than the others'.

Clusters that were there before go on, unless the evidence is clearly against it (`staying`).
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.consensus import GRANULARITIES, STARTS, consent_to, find_consensus
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
from goldfc.learning.staying import Past, carry_on

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
# What is said of a number that nobody but a person speaks for, and of one that the model before does.
ASKED, NO_MORE = "asked for", "as many of those asked for as can be told apart"
GO_ON = "the clusters that were there before go on"
# Clusters that were found by their gaps go on while these are hardly less clear than they could be, or must be.
LESS_CLEAR = 0.1


@dataclass(frozen=True)
class Verdict:
    """The clusters, the kind that was believed, and why, in a sentence."""

    kind: Kind
    why: str
    labels: IntArray  # of every micro-cluster: 0, 1, ... without gaps
    certainty: FloatArray  # in [0, 1]
    levels: Levels
    proposal: Proposal | None = None
    by_gaps: bool = False  # whether they were found by linkage


@dataclass(frozen=True)
class Linked:
    """Clusters by linkage, and how clear the gaps between them are."""

    linkage: Linkage
    labels: IntArray
    gap: float
    clarity: float


def judge(  # noqa: PLR0913 (what is given, and what is known of it)
    micro: MicroClusters,
    n_clusters: int | None,
    rng: np.random.Generator,
    *,
    kinds: tuple[Kind, ...] = KINDS,
    starts: int = STARTS,
    past: Past | None = None,
    explain: bool = False,
    observations: float = OBSERVATIONS_OF_FORM,
) -> Verdict:
    """Cluster standardised micro-clusters in the way that is to be believed; fewer than asked for if many are alike.

    Clusters of the past go on, if they can. To `explain` is to tell the evidence for every number also where one is
    given.
    """
    court = Court(micro, rng, kinds, starts, observations)
    verdict = None if past is None else court.go_on(past, n_clusters)
    if n_clusters is None:
        return verdict or court.propose()
    verdict = verdict or court.decide(min(n_clusters, micro.distinct))
    return replace(verdict, proposal=court.evidence_for(verdict, n_clusters)) if explain else verdict


@dataclass(frozen=True)
class Court:
    """What a decision is made from."""

    micro: MicroClusters
    rng: np.random.Generator
    kinds: tuple[Kind, ...]
    starts: int
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
        return self.linked(linked) if is_clear(linked.clarity, other, GAP, LEAD) else verdict

    def propose(self) -> Verdict:
        """As many clusters as the evidence speaks for."""
        if self.micro.distinct == 1:
            return replace(self.mixture(1), proposal=proposal_of({1: 0.0}, short_list({1: 0.0})))
        tree = self.tree()
        gaps = {} if tree is None else gap_curve(tree, self.micro.mass)
        clear = best_of(gaps)
        evidence = weigh(self.micro)
        verdict = self.mixture(best_of(evidence.curve))
        candidates = short_list(evidence.curve)
        if tree is None or clear == 1:
            return replace(verdict, proposal=proposal_of(evidence.curve, candidates))
        other = gap_of(self.micro.centroids, tree, self.micro.mass, verdict.labels)
        clearest = clearest_gaps(clear, gaps)
        if not (self.only_linked or is_clear(gaps[clear], other, GAP_OF_ANY_NUMBER, LEAD_OF_ANY_NUMBER)):
            return replace(verdict, proposal=proposal_of(evidence.curve, with_another(candidates, clearest)))
        linked = best_linked(tree, self.micro.mass, clear)
        by_fit = Candidate(candidates[0].n_clusters, f"{candidates[0].reason}, if clusters were round or stretched")
        return replace(self.linked(linked), proposal=proposal_of(gaps, with_another((clearest,), by_fit)))

    def evidence_for(self, verdict: Verdict, n_clusters: int) -> Proposal:
        """The evidence for every number of such clusters, with that of the verdict on the short list."""
        given, tree = int(verdict.labels.max()) + 1, self.tree()
        asked = Candidate(given, ASKED if given == n_clusters else NO_MORE)
        if self.micro.distinct == 1:
            return proposal_of({1: 0.0}, (asked,))
        if tree is not None and verdict.by_gaps:
            curve = gap_curve(tree, self.micro.mass, given)
            best = best_of(curve)
            return proposal_of(curve, with_another((clearest_gaps(best, curve),), asked))
        curve = weigh(self.micro, given).curve
        return proposal_of(curve, with_another(short_list(curve), asked))

    def go_on(self, past: Past, n_clusters: int | None) -> Verdict | None:
        """The clusters of the past as they are today; None where clusters must be found anew."""
        kind: Kind = "linked" if past.by_gaps else "own" if past.own else "shared"
        if kind not in self.kinds or (past.labels == past.labels[0]).all():
            return None
        return self.gaps_go_on(past, n_clusters) if past.by_gaps else self.mixture_goes_on(past, kind, n_clusters)

    def mixture_goes_on(self, past: Past, kind: Kind, n_clusters: int | None) -> Verdict | None:
        """Some may have split, or be gone."""
        labels = carry_on(self.micro, past, own=past.own)
        count = int(labels.max()) + 1
        if n_clusters not in (None, count):
            return None
        found = consent_to(self.micro, labels, self.rng, own=past.own, starts=self.starts)
        verdict = Verdict(kind, GO_ON, found.labels, found.certainty, found.levels)
        if n_clusters is not None:
            return verdict
        curve = weigh(self.micro, count).curve
        return replace(verdict, proposal=proposal_of(curve, with_first(count, short_list(curve))))

    def gaps_go_on(self, past: Past, n_clusters: int | None) -> Verdict | None:
        """As long as their gaps are clear."""
        labels = np.unique(past.labels, return_inverse=True)[1]
        tree, mass, count = self.tree(), self.micro.mass, int(labels.max()) + 1
        if tree is None or n_clusters not in (None, count):
            return None
        gaps, gap = gap_curve(tree, mass, count), gap_of(self.micro.centroids, tree, mass, labels)
        if gap < max(GAP_OF_ANY_NUMBER, *gaps.values()) - LESS_CLEAR:
            return None
        verdict = replace(self.linked(replace(best_linked(tree, mass, count), labels=labels, gap=gap)), why=GO_ON)
        if n_clusters is not None:
            return verdict
        curve = {**gaps, count: gap}
        return replace(verdict, proposal=proposal_of(curve, with_first(count, (clearest_gaps(best_of(gaps), gaps),))))

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
        return "own" if fits.own(n_clusters) > fits.shared(n_clusters) else "shared"

    def linked(self, linked: Linked) -> Verdict:
        """Clusters with gaps; of kind `own` if a mean and a covariance each tell them as well."""
        counts = [factor * (int(linked.labels.max()) + 1) for factor in reversed(GRANULARITIES)]
        cuts = [linked.linkage.cut(min(count, len(linked.labels))) for count in counts]
        levels = Levels(np.column_stack(cuts), tuple(int(labels.max()) + 1 for labels in cuts))
        convex = may_be_own(self.micro) and told_by_covariances(self.micro, linked.labels)
        kind: Kind = "own" if convex else "linked"
        certainty = np.full(len(linked.labels), linked.gap)
        why = f"there are clear gaps between clusters ({linked.gap:.2f} of 1)"
        return Verdict(kind, f"{why}; {FORM_IN_WORDS[kind]}", linked.labels, certainty, levels, by_gaps=True)


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


def clearest_gaps(n_clusters: int, gaps: Curve) -> Candidate:
    """The number that gaps speak for."""
    return Candidate(n_clusters, f"the clearest gaps between clusters ({gaps[n_clusters]:.2f} of 1)")


def with_first(n_clusters: int, others: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """As many as go on, and after these what else the evidence speaks for."""
    return (Candidate(n_clusters, GO_ON), *(one for one in others if one.n_clusters != n_clusters))


def with_another(candidates: tuple[Candidate, ...], other: Candidate) -> tuple[Candidate, ...]:
    """One more, unless its number is there already."""
    if other.n_clusters in [candidate.n_clusters for candidate in candidates]:
        return candidates
    return (*candidates, other)
