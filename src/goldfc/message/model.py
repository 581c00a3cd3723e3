"""What comes back to the sites: the global clusters."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np
from pydantic import FailFast, Field

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadMessage
from goldfc.learning.judge import KINDS, Kind
from goldfc.learning.levels import Levels
from goldfc.learning.micro_clusters import Layout, diagonal_of, form_of_shape
from goldfc.learning.mixture import MOST_FOR_OWN
from goldfc.learning.moments import LARGEST_VALUE, Moments
from goldfc.learning.proposal import Candidate, Proposal
from goldfc.message.columns import MOST_FEATURES, UNNAMED, Name, Number, Terms, Text, as_facts
from goldfc.message.message import Message
from goldfc.message.schema import Array, Content, Fact, array, fact, facts, group
from goldfc.message.summary import Count, is_covariance

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


@dataclass(frozen=True)
class Model(Content):
    """All that comes back: the global clusters, and which of them each micro-cluster belongs to.

    A cluster is told by its mean (of categories: shares) and the covariance of its numbers; of the kind "linked" by
    prototypes, and the covariance is that of rows around these. Micro-clusters are in the order of `sites`, then in
    the order in which the site sent them. It goes to every site, so that each learns the others' names, how many
    micro-clusters they sent and how these fell at every level; and a global cluster or a prototype that is a single
    micro-cluster of somebody has that centroid as its own.
    """

    kind: Kind = fact(Kind, "cluster_kind")
    why: str = fact(Text)  # this kind, in a sentence
    centroids: FloatArray = array(2)  # (clusters, features)
    mass: FloatArray = array(1, name="cluster_mass")  # (clusters,) rows, as far as they count
    covariance: FloatArray = array(
        1, 2, 3
    )  # of numbers: (numbers,), (numbers, numbers) or (clusters, numbers, numbers)
    reach: FloatArray = array(1)  # (clusters,) how far from its centroid or prototypes a cluster goes
    sites: tuple[str, ...] = facts(several(Name))
    micro_counts: tuple[int, ...] = facts(several(Count))  # micro-clusters per site
    micro_labels: IntArray = array(1, whole=True)  # (micro-clusters,) the global cluster of each
    micro_certainty: FloatArray = array(1)  # (micro-clusters,) how sure that is, in [0, 1]
    levels: Levels = group(  # the micro-clusters at every granularity
        Levels,
        labels=Array((2,), "levels", whole=True),
        n_clusters=Fact(several(Count), "level_clusters", read=tuple, write=list),
    )
    digests: tuple[str, ...] = facts(several(Digest))  # of every site's summary
    # How often a partition is right, as far as they agree: no label is more certain.
    agreement: float = fact(Annotated[float, Field(ge=0.0, le=1.0, strict=False)], default=1.0)
    prototypes: Prototypes | None = group(  # of the kind "linked"
        Prototypes,
        default=None,
        points=Array((2,), "prototypes"),
        labels=Array((1,), "prototype_labels", whole=True),
        mass=Array((1,), "prototype_mass"),
    )
    proposal: Proposal | None = group(  # where nobody said how many clusters there are
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
    moments: Moments | None = group(  # of all rows, where sites tell theirs
        Moments, default=None, count=Fact(PositiveFloat), mean=Array((1,)), squares=Array((1,))
    )
    terms: Terms = fact(Terms, default=UNNAMED, read=Terms.model_validate, write=as_facts)

    KIND = "model"

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
        for broken, kept in rules_of(model):
            if not kept():
                raise broken
        return model


def unfit(rule: str, code: str) -> BadMessage:
    """What to say of a model that breaks a rule."""
    return BadMessage(f"The model does not fit together: {rule}.", code)


def rules_of(model: Model) -> Iterator[tuple[BadMessage, Callable[[], bool]]]:
    """What must hold for a model, each as its refusal; later ones build on earlier ones."""
    shape, micro, levels = model.centroids.shape, len(model.micro_labels), model.levels
    yield unfit("centroids must form a table", "model-centroids-form"), lambda: len(shape) == 2 and 0 not in shape
    yield (
        unfit("its columns must make as many features as centroids have", "model-features"),
        lambda: model.terms.n_features in (0, shape[1]),
    )
    yield unfit("agreement must lie between 0 and 1", "model-agreement"), lambda: 0.0 <= model.agreement <= 1.0
    yield unfit("its kind of cluster must be known", "model-kind"), lambda: model.kind in KINDS
    yield (
        unfit("there must be one reach and one mass per cluster", "model-reach-form"),
        lambda: model.reach.shape == model.mass.shape == shape[:1],
    )
    yield (
        unfit("the covariance must have the form for its numbers and its kind", "model-covariance-form"),
        lambda: model.covariance.shape in forms_of_covariance(model),
    )
    yield (
        unfit("masses of clusters must be above 0", "model-mass"),
        lambda: bool(((model.mass > 0.0) & (model.mass <= LARGEST_TOTAL)).all()),
    )
    yield (
        unfit("it must have prototypes if it is linked, and only then", "model-linked"),
        lambda: (model.kind == "linked") == (model.prototypes is not None),
    )
    yield (
        unfit("every cluster must have its prototypes", "model-prototypes"),
        lambda: model.prototypes is None or fits(model.prototypes, shape),
    )
    yield (
        unfit("centroids, covariance and reach must be finite", "model-not-finite"),
        lambda: all(
            (np.abs(values) <= limit).all()
            for values, limit in (
                (model.centroids, LARGEST_VALUE),
                (model.covariance, LARGEST_VALUE**2),
                (model.reach, LARGEST_VALUE),
            )
        ),
    )
    yield (
        unfit("shares must lie between 0 and 1", "model-shares"),
        lambda: are_shares(model.layout.shares_of(model.centroids)),
    )
    yield (
        unfit("variances and reaches must not be negative", "model-negative"),
        lambda: bool((diagonal_of(model.covariance) > 0.0).all() and (model.reach >= 0.0).all()),
    )
    yield (
        unfit("the covariance must be one that rows can have", "model-covariance"),
        lambda: is_covariance(model.covariance),
    )
    yield unfit("the covariance must allow distances", "model-distances"), lambda: can_be_undone(model.covariance)
    yield unfit("every site must be named once", "model-sites"), lambda: 0 < len(set(model.sites)) == len(model.sites)
    yield unfit("every site must have a digest", "model-digests"), lambda: len(model.digests) == len(model.sites)
    yield (
        unfit("every site must have a count of micro-clusters", "model-counts"),
        lambda: len(model.micro_counts) == len(model.sites),
    )
    yield (
        unfit("the micro-clusters of all sites must be there", "model-micro-clusters"),
        lambda: sum(model.micro_counts) == micro,
    )
    yield (
        unfit("every site must have at least one micro-cluster", "model-count-of-none"),
        lambda: min(model.micro_counts) >= 1,
    )
    yield (
        unfit("every label must be a cluster", "model-labels"),
        lambda: model.micro_labels.ndim == 1 and int(model.micro_labels.max()) < shape[0],
    )
    yield (
        unfit("certainty must lie between 0 and 1", "model-certainty"),
        lambda: (
            model.micro_certainty.shape == (micro,)
            and bool(((model.micro_certainty >= 0.0) & (model.micro_certainty <= 1.0)).all())
        ),
    )
    yield (
        unfit("every level must have all micro-clusters", "model-levels"),
        lambda: levels.labels.shape == (micro, len(levels.n_clusters)),
    )
    yield (
        unfit("levels must hold no more clusters than they say", "model-level-counts"),
        lambda: bool((levels.labels.max(axis=0) < np.array(levels.n_clusters)).all()),
    )
    yield (
        unfit("the pooled moments must have its features", "model-moments-form"),
        lambda: model.moments is None or model.moments.mean.shape == model.moments.squares.shape == shape[1:],
    )
    yield (
        unfit("the pooled moments must be those of rows", "model-moments"),
        lambda: model.moments is None or could_be_of_rows(model.moments),
    )
    yield (
        unfit("what is proposed must have evidence", "model-proposal"),
        lambda: model.proposal is None or is_proposal(model.proposal),
    )


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
