"""What comes back to the sites: the global clusters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np
from pydantic import FailFast, Field

from goldfc._looks import Explored
from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadMessage
from goldfc.learning.judge import KINDS, Kind
from goldfc.learning.levels import Levels
from goldfc.learning.micro_clusters import Layout, diagonal_of, form_of_shape
from goldfc.learning.mixture import MOST_FOR_OWN
from goldfc.learning.moments import LARGEST_VALUE, Moments
from goldfc.learning.proposal import Candidate, Proposal
from goldfc.message.columns import MOST_FEATURES, UNNAMED, Name, Number, Terms, Text, as_facts
from goldfc.message.descent import LARGEST_ID, MOST_ANCESTORS, MOST_CHANGES, Change, Descent, changes_in
from goldfc.message.message import Message
from goldfc.message.schema import Array, Content, Fact, array, fact, facts, group
from goldfc.message.summary import Count, Summary, is_covariance

LARGEST_TOTAL = 1e15
MOST_SITES = 10_000
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
NumberAndReason = Annotated[tuple[Count, Text], Field(strict=False)]
PositiveFloat = Annotated[float, Field(gt=0.0, allow_inf_nan=False, strict=False)]
# How far a share may be from one that rows can have: what leaves a site is rounded.
ROUNDING_OF_SHARES = 0.5
# No row has such a likelihood.
LARGEST_EVIDENCE = 1e9


def several(kind: Any, most: int = max(MOST_SITES, MOST_FEATURES)) -> Any:
    """A tuple that JSON writes as a list."""
    return Annotated[tuple[kind, ...], Field(strict=False, max_length=most), FailFast()]


def can_be_undone(covariance: FloatArray) -> bool:
    """Whether no direction is without variance, so that distances can be divided by it."""
    if covariance.ndim == 1:
        return bool((covariance > 0.0).all())
    try:
        np.linalg.cholesky(covariance)  # of several at once, if there are several
    except np.linalg.LinAlgError:
        return False
    return True


def candidates_in(pairs: Sequence[Sequence[Any]]) -> tuple[Candidate, ...]:
    """The short list, from pairs of a number and the reason for it."""
    return tuple(Candidate(*pair) for pair in pairs)


def candidates_as_told(candidates: Sequence[Candidate]) -> list[list[Any]]:
    """And as such pairs."""
    return [[candidate.n_clusters, candidate.reason] for candidate in candidates]


@dataclass(frozen=True)
class Prototypes:
    """Points whose neighbourhood a cluster is, where it is not convex: merged micro-centroids of all sites."""

    points: FloatArray  # (prototypes, features)
    labels: IntArray  # (prototypes,) 0, 0, ..., 1, 1, ...: those of a cluster stand together
    mass: FloatArray  # (prototypes,)


@dataclass(frozen=True, repr=False)
class Model(Explored, Content):
    """All that comes back: the global clusters, and which of them each micro-cluster belongs to.

    A cluster is told by its mean (of categories: shares) and the covariance of its numbers; of the kind "linked" by
    prototypes, and the covariance is that of rows around these. Micro-clusters are in the order of `sites`, then in
    the order in which the site sent them. It goes to every site, so that each learns the others' names, how many
    micro-clusters they sent and how these fell at every level; and a global cluster or a prototype that is a single
    micro-cluster of somebody has that centroid as its own.
    """

    kind: Kind = fact(Kind, "cluster_kind")  #: of clusters: "shared", "own" or "linked"
    why: str = fact(Text)  #: this kind, in a sentence
    centroids: FloatArray = array(2)  #: (clusters, features)
    mass: FloatArray = array(1, name="cluster_mass")  #: (clusters,) rows, as far as they count
    #: of numbers: (numbers,), (numbers, numbers) or (clusters, numbers, numbers)
    covariance: FloatArray = array(1, 2, 3)
    reach: FloatArray = array(1)  #: (clusters,) how far from its centroid or prototypes a cluster goes
    sites: tuple[str, ...] = facts(several(Name))  #: in the order of their names
    micro_counts: tuple[int, ...] = facts(several(Count))  #: micro-clusters per site
    micro_labels: IntArray = array(1, whole=True)  #: (micro-clusters,) the global cluster of each
    micro_certainty: FloatArray = array(1)  #: (micro-clusters,) how sure that is, in [0, 1]
    #: the micro-clusters at every granularity
    levels: Levels = group(
        Levels,
        labels=Array((2,), "levels", whole=True),
        n_clusters=Fact(several(Count), "level_clusters", read=tuple, write=list),
    )
    digests: tuple[str, ...] = facts(several(Digest))  #: of every site's summary
    #: How often a partition is right, as far as they agree: no label is more certain.
    agreement: float = fact(Annotated[float, Field(ge=0.0, le=1.0, strict=False)], default=1.0)
    #: of the kind "linked"
    prototypes: Prototypes | None = group(
        Prototypes,
        default=None,
        points=Array((2,), "prototypes"),
        labels=Array((1,), "prototype_labels", whole=True),
        mass=Array((1,), "prototype_mass"),
    )
    #: how many clusters were asked for, if somebody did
    asked: Count | None = fact(Count, default=None)
    #: the evidence for every number of clusters, if that was weighed
    proposal: Proposal | None = group(
        Proposal,
        default=None,
        n_clusters=Fact(several(Count), "tried", read=tuple, write=list),
        evidence=Fact(several(Number), read=tuple, write=list),
        candidates=Fact(
            several(Annotated[tuple[Count, Text], Field(strict=False)], most=20),
            read=candidates_in,
            write=candidates_as_told,
        ),
    )
    #: of all rows, where sites tell theirs
    moments: Moments | None = group(
        Moments, default=None, count=Fact(PositiveFloat), mean=Array((1,)), squares=Array((1,))
    )
    terms: Terms = fact(Terms, default=UNNAMED, read=Terms.model_validate, write=as_facts)  #: what it is about
    #: where there was a model before
    descent: Descent | None = group(
        Descent,
        default=None,
        ids=Array((1,), whole=True),
        next_id=Fact(Annotated[int, Field(ge=1, le=LARGEST_ID)]),
        generation=Fact(Annotated[int, Field(ge=1, le=10**9)]),
        found=Fact(PositiveFloat),
        ancestors=Fact(several(Digest, most=MOST_ANCESTORS), read=tuple, write=list),
        joined=Fact(several(Name), read=tuple, write=list),
        left=Fact(several(Name), read=tuple, write=list),
        changes=Fact(
            several(Change, most=MOST_CHANGES), read=changes_in, write=lambda changes: list(map(as_facts, changes))
        ),
    )

    KIND = "model"

    def __repr__(self) -> str:
        """What it is, and no arrays."""
        clusters, micro, sites = len(self.centroids), len(self.micro_labels), len(self.sites)
        return f"<Model {self.fingerprint}: {clusters} clusters from {micro} micro-clusters of {sites} sites>"

    def _told(self) -> "tuple[Model, tuple[Summary, ...]]":
        return self, ()

    @property
    def ids(self) -> IntArray:
        """What the clusters are called, ascending; in a first model 0, 1, ..."""
        return np.arange(len(self.centroids)) if self.descent is None else self.descent.ids

    @property
    def next_id(self) -> int:
        """The first id that no cluster ever had."""
        return len(self.centroids) if self.descent is None else self.descent.next_id

    @property
    def found(self) -> float:
        """How many rows there were when its clusters were last found anew."""
        return float(self.mass.sum()) if self.descent is None else self.descent.found

    @property
    def after(self) -> str | None:
        """The digest of the model before."""
        return None if self.descent is None else self.descent.ancestors[-1]

    @property
    def digest(self) -> str:
        """What tells it from every other model."""
        return self.to_message().digest

    @property
    def micro_sites(self) -> tuple[str, ...]:
        """The site of every micro-cluster."""
        return tuple(np.repeat(self.sites, self.micro_counts).tolist())

    def own(self, site: str) -> slice:
        """Where the micro-clusters of one site are."""
        if site not in self.sites:
            raise BadMessage(
                f"Site {site!r} took no part in this model; its sites are {', '.join(self.sites)}.", "no-part-in-model"
            )
        number = self.sites.index(site)
        start = sum(self.micro_counts[:number])
        return slice(start, start + self.micro_counts[number])

    @property
    def fingerprint(self) -> str:
        """The digest, in short."""
        return self.digest[:12]

    def digest_of(self, site: str) -> str:
        """The digest of one site's summary."""
        return self.digests[self.sites.index(site)]

    def labels_of(self, site: str) -> IntArray:
        """The global cluster of each micro-cluster of one site."""
        return self.micro_labels[self.own(site)]

    @property
    def layout(self) -> Layout:
        """Which features are numbers."""
        return self.terms.layout(self.centroids.shape[1])

    @classmethod
    def from_message(cls, message: Message) -> Self:
        """Read it back; refuse what does not fit together."""
        model = super().from_message(message)
        for rule in RULES:
            if not rule.holds(model):
                raise BadMessage(f"The model does not fit together: {rule.sentence}.", rule.code)
        return model


@dataclass(frozen=True)
class Rule:
    """What must hold for a model: in words, the code of its refusal, and whether it does."""

    sentence: str
    code: str
    holds: Callable[[Model], bool]


def forms_of_covariance(model: Model) -> list[tuple[int, ...]]:
    """What a covariance may look like; a table without numbers is taken to have one that is always 0."""
    count = max(1, len(model.layout.numbers))
    if model.kind == "own":
        return [(len(model.centroids), count, count)] if count <= MOST_FOR_OWN else []
    return [(count,), form_of_shape(count)]


def fits(prototypes: Prototypes, shape: tuple[int, ...]) -> bool:
    """Whether prototypes are points of the same features, and every cluster has one, in the order of clusters."""
    points, labels, mass = prototypes.points, prototypes.labels, prototypes.mass
    return (
        points.ndim == 2
        and points.shape[1] == shape[1]
        and labels.shape == mass.shape == points.shape[:1]
        and bool((np.abs(points) <= LARGEST_VALUE).all() and ((mass > 0.0) & (mass <= LARGEST_TOTAL)).all())
        and np.array_equal(labels, np.sort(labels))
        and np.array_equal(np.unique(labels), np.arange(shape[0]))
    )


def are_ids(ids: IntArray, model: Model) -> bool:
    """Whether they are one for every cluster, ascending, and all of them given out."""
    return ids.shape == model.mass.shape and bool((np.diff(ids) > 0).all() and ids[-1] < model.next_id)


def is_proposal(proposal: Proposal) -> bool:
    """Whether it fits together."""
    tried = proposal.n_clusters
    return (
        0 < len(tried) == len(proposal.evidence)
        and all(before < after for before, after in pairwise(tried))
        and all(abs(value) < LARGEST_EVIDENCE for value in proposal.evidence)
        and len(proposal.candidates) > 0
        and proposal.best in tried
    )


def are_shares(values: FloatArray) -> bool:
    """Whether these are shares of rows, up to rounding, which may be coarse."""
    return bool(((values >= -ROUNDING_OF_SHARES) & (values <= 1.0 + ROUNDING_OF_SHARES)).all())


def could_be_of_rows(moments: Moments) -> bool:
    """Whether there are rows with such means and spreads; M2 is a sum over many rows."""
    means, squares = np.abs(moments.mean), moments.squares
    return bool(
        moments.count > 0.0
        and (means <= LARGEST_VALUE).all()
        and ((squares >= 0.0) & (squares <= 10.0 * LARGEST_VALUE**2 * moments.count)).all()
    )


# What must hold for a model; later rules build on earlier ones.
RULES = (
    Rule(
        "centroids must form a table",
        "model-centroids-form",
        lambda model: len(model.centroids.shape) == 2 and 0 not in model.centroids.shape,
    ),
    Rule(
        "its columns must make as many features as centroids have",
        "model-features",
        lambda model: model.terms.n_features in (0, model.centroids.shape[1]),
    ),
    Rule("agreement must lie between 0 and 1", "model-agreement", lambda model: 0.0 <= model.agreement <= 1.0),
    Rule("its kind of cluster must be known", "model-kind", lambda model: model.kind in KINDS),
    Rule(
        "there must be one reach and one mass per cluster",
        "model-reach-form",
        lambda model: model.reach.shape == model.mass.shape == model.centroids.shape[:1],
    ),
    Rule(
        "the covariance must have the form for its numbers and its kind",
        "model-covariance-form",
        lambda model: model.covariance.shape in forms_of_covariance(model),
    ),
    Rule(
        "masses of clusters must be above 0",
        "model-mass",
        lambda model: bool(((model.mass > 0.0) & (model.mass <= LARGEST_TOTAL)).all()),
    ),
    Rule(
        "it must have prototypes if it is linked, and only then",
        "model-linked",
        lambda model: (model.kind == "linked") == (model.prototypes is not None),
    ),
    Rule(
        "every cluster must have its prototypes",
        "model-prototypes",
        lambda model: model.prototypes is None or fits(model.prototypes, model.centroids.shape),
    ),
    Rule(
        "centroids, covariance and reach must be finite",
        "model-not-finite",
        lambda model: all(
            (
                (np.abs(values) <= limit).all()
                for values, limit in (
                    (model.centroids, LARGEST_VALUE),
                    (model.covariance, LARGEST_VALUE**2),
                    (model.reach, LARGEST_VALUE),
                )
            )
        ),
    ),
    Rule(
        "shares must lie between 0 and 1",
        "model-shares",
        lambda model: are_shares(model.layout.shares_of(model.centroids)),
    ),
    Rule(
        "variances and reaches must not be negative",
        "model-negative",
        lambda model: bool((diagonal_of(model.covariance) > 0.0).all() and (model.reach >= 0.0).all()),
    ),
    Rule(
        "the covariance must be one that rows can have",
        "model-covariance",
        lambda model: is_covariance(model.covariance),
    ),
    Rule("the covariance must allow distances", "model-distances", lambda model: can_be_undone(model.covariance)),
    Rule("every site must be named once", "model-sites", lambda model: 0 < len(set(model.sites)) == len(model.sites)),
    Rule("every site must have a digest", "model-digests", lambda model: len(model.digests) == len(model.sites)),
    Rule(
        "every site must have a count of micro-clusters",
        "model-counts",
        lambda model: len(model.micro_counts) == len(model.sites),
    ),
    Rule(
        "the micro-clusters of all sites must be there",
        "model-micro-clusters",
        lambda model: sum(model.micro_counts) == len(model.micro_labels),
    ),
    Rule(
        "every site must have at least one micro-cluster",
        "model-count-of-none",
        lambda model: min(model.micro_counts) >= 1,
    ),
    Rule(
        "every label must be a cluster",
        "model-labels",
        lambda model: model.micro_labels.ndim == 1 and int(model.micro_labels.max()) < model.centroids.shape[0],
    ),
    Rule(
        "certainty must lie between 0 and 1",
        "model-certainty",
        lambda model: (
            model.micro_certainty.shape == (len(model.micro_labels),)
            and bool(((model.micro_certainty >= 0.0) & (model.micro_certainty <= 1.0)).all())
        ),
    ),
    Rule(
        "every level must have all micro-clusters",
        "model-levels",
        lambda model: model.levels.labels.shape == (len(model.micro_labels), len(model.levels.n_clusters)),
    ),
    Rule(
        "levels must hold no more clusters than they say",
        "model-level-counts",
        lambda model: bool((model.levels.labels.max(axis=0) < np.array(model.levels.n_clusters)).all()),
    ),
    Rule(
        "the pooled moments must have its features",
        "model-moments-form",
        lambda model: (
            model.moments is None
            or model.moments.mean.shape == model.moments.squares.shape == model.centroids.shape[1:]
        ),
    ),
    Rule(
        "the pooled moments must be those of rows",
        "model-moments",
        lambda model: model.moments is None or could_be_of_rows(model.moments),
    ),
    Rule(
        "what is proposed must have evidence",
        "model-proposal",
        lambda model: model.proposal is None or is_proposal(model.proposal),
    ),
    Rule(
        "every cluster must have an id of its own, ascending, and below the next one",
        "model-ids",
        lambda model: are_ids(model.ids, model),
    ),
    Rule(
        "its lineage must be one that a model can have",
        "model-lineage",
        lambda model: model.descent is None or model.descent.fits(model.centroids.shape[1]),
    ),
)
