"""What crosses between a client and the server, and nothing else does.

rows -> client -> Summary (one message up) -> server -> Model (one message down) -> client -> labels

A `Message` is a kind, some numeric arrays and a few plain facts: the shape that every transport carries. `Task`,
`Summary` and `Model` are its typed faces.
"""

import hashlib
import json
import numbers
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadMessage, BadSettings
from goldfc.learning.judge import KINDS, Kind
from goldfc.learning.levels import Levels
from goldfc.learning.micro_clusters import Layout, diagonal_of, form_of_shape
from goldfc.learning.mixture import MOST_FOR_OWN
from goldfc.learning.moments import LARGEST_VALUE, Moments
from goldfc.learning.proposal import Candidate, Proposal
from goldfc.protocol.terms import UNNAMED, Terms, as_facts, first_complaint

Scaling = Literal["pooled", "ranges", "given"]
Face = TypeVar("Face")

# More rows than this in one micro-cluster are no data, but an attempt to outweigh everybody else.
LARGEST_MASS = 10**8
LARGEST_TOTAL = 1e15
# How far a shape may be from symmetric, and from having no negative variance in any direction: rounding.
ROUNDING = 1e-9
# How far a share may be from one that rows can have: what leaves a site is rounded.
ROUNDING_OF_SHARES = 0.5
# Numbers below this have fewer digits than others, and are as good as zero.
FEWER_DIGITS = 1e-290
# No row has such a likelihood.
LARGEST_EVIDENCE = 1e9


@dataclass(frozen=True)
class Message:
    """A kind, numeric arrays and plain facts. All are copies, arrays read-only: the two sides share no memory."""

    kind: str
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Detach it from the sender's memory."""
        copies = {name: np.array(array, order="C") for name, array in self.arrays.items()}
        for array in copies.values():
            array.flags.writeable = False
        object.__setattr__(self, "arrays", copies)
        object.__setattr__(self, "facts", deepcopy(dict(self.facts)))

    @cached_property
    def header(self) -> str:
        """The kind and the facts as JSON, always in the same form."""
        return canonical_json({"kind": self.kind, **self.facts})

    @cached_property
    def nbytes(self) -> int:
        """Size on the way: the arrays, and the rest as compact JSON."""
        return len(self.header.encode()) + sum(array.nbytes for array in self.arrays.values())

    @property
    def digest(self) -> str:
        """A short text that no other content has."""
        content = hashlib.blake2b(self.header.encode(), digest_size=16)
        for name, array in sorted(self.arrays.items()):
            content.update(f"\0{name}{array.shape}".encode())
            content.update(array.astype("<f8").tobytes())
        return content.hexdigest()

    def once(self, read: Callable[["Message"], Face]) -> Face:
        """What `read` makes of it; that is done once for all sites of a process, of which there may be thousands."""
        if read not in self._faces:
            self._faces[read] = read(self)
        face: Face = self._faces[read]
        return face

    @cached_property
    def _faces(self) -> dict[Callable[["Message"], Any], Any]:
        return {}

    @contextmanager
    def read_as(self, kind: str) -> Iterator[None]:
        """Refuse to read a message as something that it is not, or that lacks what its kind must have."""
        if self.kind != kind:
            raise BadMessage(f"Expected a message of kind {kind!r}, got {self.kind!r}.")
        try:
            yield
        except ValidationError as error:
            raise BadMessage(f"A message of kind {kind!r} is not as it should be: {first_complaint(error)}.") from error
        except (KeyError, TypeError) as error:
            raise BadMessage(f"A message of kind {kind!r} is not as it should be: {error}.") from error


def canonical_json(value: object) -> str:
    """Compact JSON, sorted by key: the same content has the same text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


@dataclass(frozen=True)
class Task:
    """What the server asks of every site: how fine to stay, and what to tell of each micro-cluster.

    `most` is the largest number of micro-clusters, and `rows_each` how many rows there must be for each of them, in the
    mean. Each site brings its rows to the scale of its own spread (the server pools them), or to the agreed `ranges`,
    or leaves them as `given`. With `smallest` above 1 no micro-cluster has fewer rows, and what leaves is rounded: see
    `privacy`.
    """

    most: int = 100
    rows_each: int = 5
    mass: bool = True
    shape: bool = True
    scaling: Scaling = "pooled"
    smallest: int = 1

    KIND = "summarize"

    def __post_init__(self) -> None:
        """Refuse what no site could do."""
        for name in ("most", "rows_each", "smallest"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Integral) or int(value) < 1:
                raise BadSettings(f"{name} must be a whole number from 1 on, got {value!r}.")
            object.__setattr__(self, name, int(value))  # numpy's numbers cannot travel
        if self.scaling not in get_args(Scaling):
            raise BadSettings(f"scaling must be one of {', '.join(get_args(Scaling))}, got {self.scaling!r}.")

    def limit(self, n_rows: int) -> int:
        """How many micro-clusters a site with so many rows may have."""
        return max(1, min(self.most, n_rows // self.rows_each))

    def to_message(self) -> Message:
        """As it travels."""
        return Message(self.KIND, facts=asdict(self))

    @classmethod
    def from_message(cls, message: Message) -> "Task":
        """Read it back; settings out of range are refused as they are anywhere else."""
        with message.read_as(cls.KIND):
            return cls(**message.facts)


@dataclass(frozen=True)
class Summary:
    """All that leaves a client: its micro-clusters, by their centroids, and, unless withheld, their mass and shape.

    Where clients learn in scales of their own, the moments of their columns go along. `smallest` is the privacy level:
    above 1, no micro-cluster has fewer rows, and all is rounded. `terms` say what it is about.
    """

    client: str
    centroids: FloatArray  # (micro-clusters, features)
    mass: IntArray | None = None  # (micro-clusters,) rows in each
    shape: FloatArray | None = None  # of numbers: (numbers, numbers), or with many (numbers,); see `finding`
    moments: Moments | None = None
    smallest: int = 1
    terms: Terms = UNNAMED

    KIND = "summary"

    def __post_init__(self) -> None:
        """Refuse what no server could use."""
        object.__setattr__(self, "centroids", self._numbers("centroids that are", self.centroids))
        if self.centroids.ndim != 2 or 0 in self.centroids.shape:
            raise BadMessage(
                f"The summary of client {self.client!r} must hold a table of centroids, "
                f"at least 1 x 1; its shape is {self.centroids.shape}."
            )
        if not (np.abs(self.centroids) <= LARGEST_VALUE).all():
            raise BadMessage(
                f"The summary of client {self.client!r} holds centroids that are not finite numbers of at most "
                f"{LARGEST_VALUE:g} in size."
            )
        if self.terms.columns and self.terms.n_features != self.centroids.shape[1]:
            raise BadMessage(
                f"The summary of client {self.client!r} has centroids of {self.centroids.shape[1]} features, but its "
                f"columns make {self.terms.n_features}."
            )
        if self.mass is not None:
            object.__setattr__(self, "mass", self._checked_mass(self._numbers("masses that are", self.mass)))
        if self.shape is not None:
            object.__setattr__(self, "shape", self._checked_shape(self._numbers("a shape that is", self.shape)))
        if self.moments is not None:
            self._check_moments(self.moments)

    @property
    def layout(self) -> Layout:
        """Which features are numbers."""
        return self.terms.layout(self.centroids.shape[1])

    @property
    def rows(self) -> float | None:
        """How many rows it stands for, if it tells."""
        if self.mass is not None:
            return float(self.mass.sum())
        return None if self.moments is None else self.moments.count

    def _numbers(self, what: str, values: NDArray[Any]) -> FloatArray:
        try:
            return np.require(values, np.float64, ["C"])
        except (TypeError, ValueError) as error:
            raise BadMessage(f"The summary of client {self.client!r} holds {what} not numbers.") from error

    def _checked_mass(self, mass: FloatArray) -> IntArray:
        if mass.shape != (len(self.centroids),):
            raise BadMessage(
                f"The summary of client {self.client!r} must hold one mass per micro-cluster, {len(self.centroids)}; "
                f"it has the shape {mass.shape}."
            )
        if not ((mass >= self.smallest) & (mass <= LARGEST_MASS) & (mass == np.floor(mass))).all():
            raise BadMessage(
                f"The summary of client {self.client!r} holds masses that are not whole numbers from {self.smallest} "
                f"to {LARGEST_MASS}."
            )
        return mass.astype(np.int64)

    def _checked_shape(self, shape: FloatArray) -> FloatArray:
        if not len(self.layout.numbers):
            raise BadMessage(f"The summary of client {self.client!r} holds a shape, but no column of numbers.")
        wanted = form_of_shape(len(self.layout.numbers))
        if shape.shape != wanted:
            raise BadMessage(
                f"The summary of client {self.client!r} must hold a shape of {' x '.join(map(str, wanted))} numbers; "
                f"it has {' x '.join(map(str, shape.shape))}."
            )
        if not (np.abs(shape) <= LARGEST_VALUE**2).all():
            raise BadMessage(
                f"The summary of client {self.client!r} holds a shape with numbers that are not finite or too large."
            )
        if not is_covariance(shape):
            raise BadMessage(
                f"The summary of client {self.client!r} holds a shape that no rows can have: it is not symmetric, or "
                "some direction would have a negative variance."
            )
        return shape

    def _check_moments(self, moments: Moments) -> None:
        width = (self.centroids.shape[1],)
        sizes = np.abs(np.concatenate([moments.mean, np.sqrt(np.abs(moments.squares))]))
        if moments.mean.shape != width or moments.squares.shape != width:
            raise BadMessage(f"The summary of client {self.client!r} must hold one mean and one M2 for every feature.")
        if not (sizes <= LARGEST_VALUE).all() or (moments.squares < 0.0).any():
            raise BadMessage(
                f"The summary of client {self.client!r} holds moments that are not finite, too large or negative."
            )
        if not (1 <= moments.count <= LARGEST_MASS and moments.count == int(moments.count)):
            raise BadMessage(
                f"The summary of client {self.client!r} counts {moments.count:g} rows; it must be a whole number from "
                f"1 to {LARGEST_MASS}."
            )
        # Each mass and the count are rounded on their own.
        if self.mass is not None and abs(self.mass.sum() - moments.count) > self.smallest * (len(self.mass) + 1):
            raise BadMessage(
                f"The summary of client {self.client!r} counts {moments.count:g} rows, but its micro-clusters have "
                f"{self.mass.sum()}."
            )
        if not self._spreads_as(moments):
            raise BadMessage(
                f"The summary of client {self.client!r} tells moments that its micro-clusters cannot have: they spread "
                "further."
            )

    def _spreads_as(self, moments: Moments) -> bool:
        """Whether the spread of the micro-clusters and the shape are no more than the moments tell.

        M2 = the masses times the squared distances of the micro-centroids from the mean + rows times the variance
        around them. Masses, centroids and moments are rounded, each on its own, by up to a standard deviation.
        """
        mass = np.full(len(self.centroids), float(self.smallest)) if self.mass is None else self.mass
        told = mass @ (self.centroids - moments.mean) ** 2
        if self.shape is not None:
            told[self.layout.numbers] += moments.count * diagonal_of(self.shape)
        steps = np.array([column.step or 0.0 for column in self.terms.features] or [0.0])
        slack = moments.count * (moments.scale + 4.0 * steps) ** 2
        return bool((told <= 20.0 * moments.squares + slack).all())

    def to_message(self) -> Message:
        """As it travels."""
        arrays = {"centroids": self.centroids, "mass": self.mass, "shape": self.shape}
        facts: dict[str, Any] = {"client": self.client}
        if self.smallest > 1:
            facts["smallest"] = self.smallest
        if self.terms != UNNAMED:
            facts["terms"] = as_facts(self.terms)
        if self.moments is not None:
            arrays |= {"mean": self.moments.mean, "squares": self.moments.squares}
            facts["count"] = int(self.moments.count)
        return Message(self.KIND, {name: array for name, array in arrays.items() if array is not None}, facts)

    @classmethod
    def from_message(cls, message: Message) -> "Summary":
        """Read it back."""
        with message.read_as(cls.KIND):
            arrays, facts = message.arrays, message.facts
            count = facts.get("count")
            if (count is not None) != ("mean" in arrays) or ("mean" in arrays) != ("squares" in arrays):
                raise BadMessage("A summary must hold all of count, mean and squares, or none of them.")
            return cls(
                client=facts["client"],
                centroids=arrays["centroids"],
                mass=arrays.get("mass"),
                shape=arrays.get("shape"),
                moments=None if count is None else Moments(float(count), arrays["mean"], arrays["squares"]),
                smallest=facts.get("smallest", 1),
                terms=Terms.model_validate(facts.get("terms", {})),
            )


def is_covariance(shape: FloatArray) -> bool:
    """Whether there are rows that lie like this, up to rounding; of several covariances, whether all are such."""
    if shape.ndim == 1:
        return bool((shape >= 0.0).all())
    variance = np.abs(diagonal_of(shape))
    scale = np.where(variance > FEWER_DIGITS, np.sqrt(variance), 1.0)
    with np.errstate(over="ignore"):
        relative = shape / (scale[..., :, None] * scale[..., None, :])
    # No correlation is above 1, and far larger ones cannot be calculated with.
    if not (np.abs(relative) <= 2.0).all() or np.abs(relative - relative.swapaxes(-2, -1)).max() > ROUNDING:
        return False
    return bool(np.linalg.eigvalsh(relative).min() >= -ROUNDING * shape.shape[-1])


def can_be_undone(covariance: FloatArray) -> bool:
    """Whether no direction is without variance, so that distances can be divided by it."""
    if covariance.ndim == 1:
        return bool((covariance > 0.0).all())
    try:
        np.linalg.cholesky(covariance)  # of several at once, if there are several
    except np.linalg.LinAlgError:
        return False
    return True


@dataclass(frozen=True)
class Prototypes:
    """Points whose neighbourhood a cluster is, where it is not convex: merged micro-centroids of all sites."""

    points: FloatArray  # (prototypes, features)
    labels: IntArray  # (prototypes,) 0, 0, ..., 1, 1, ...: those of a cluster stand together
    mass: FloatArray  # (prototypes,)


@dataclass(frozen=True)
class Model:
    """All that comes back: the global clusters, and which of them each micro-cluster belongs to.

    A cluster is told by its mean (of categories: shares) and the covariance of its numbers; of the kind "linked" by
    prototypes, and the covariance is that of rows around these. Micro-clusters are in the order of `clients`, then in
    the order in which the site sent them. It goes to every site, so that each learns the others' names, how many
    micro-clusters they sent and how these fell at every level; and a global cluster or a prototype that is a single
    micro-cluster of somebody has that centroid as its own.
    """

    kind: Kind
    why: str  # this kind, in a sentence
    centroids: FloatArray  # (clusters, features)
    mass: FloatArray  # (clusters,) rows, as far as they count
    covariance: FloatArray  # of numbers: (numbers,), (numbers, numbers) or (clusters, numbers, numbers)
    reach: FloatArray  # (clusters,) how far from its centroid or prototypes a cluster goes
    clients: tuple[str, ...]
    micro_counts: tuple[int, ...]  # micro-clusters per site
    micro_labels: IntArray  # (micro-clusters,) the global cluster of each
    micro_certainty: FloatArray  # (micro-clusters,) how sure that is, in [0, 1]
    levels: Levels  # the micro-clusters at every granularity
    digests: tuple[str, ...]  # of every site's summary
    agreement: float = 1.0  # how often a partition is right, as far as they agree: no label is more certain
    prototypes: Prototypes | None = None  # of the kind "linked"
    proposal: Proposal | None = None  # where nobody said how many clusters there are
    moments: Moments | None = None  # of all rows, where sites tell theirs
    terms: Terms = UNNAMED

    KIND = "model"

    @property
    def micro_clients(self) -> tuple[str, ...]:
        """The client of every micro-cluster."""
        return tuple(np.repeat(self.clients, self.micro_counts).tolist())

    def own(self, client: str) -> slice:
        """Where the micro-clusters of one client are."""
        if client not in self.clients:
            raise BadMessage(
                f"Client {client!r} took no part in this model; its clients are {', '.join(self.clients)}."
            )
        number = self.clients.index(client)
        start = sum(self.micro_counts[:number])
        return slice(start, start + self.micro_counts[number])

    def digest_of(self, client: str) -> str:
        """The digest of one client's summary."""
        return self.digests[self.clients.index(client)]

    def labels_of(self, client: str) -> IntArray:
        """The global cluster of each micro-cluster of one client."""
        return self.micro_labels[self.own(client)]

    @property
    def layout(self) -> Layout:
        """Which features are numbers."""
        return self.terms.layout(self.centroids.shape[1])

    def to_message(self) -> Message:
        """As it travels."""
        arrays: dict[str, NDArray[Any]] = {
            "centroids": self.centroids,
            "cluster_mass": self.mass,
            "covariance": self.covariance,
            "reach": self.reach,
            "micro_labels": self.micro_labels,
            "micro_certainty": self.micro_certainty,
            "levels": self.levels.labels,
        }
        if self.prototypes is not None:
            arrays |= {
                "prototypes": self.prototypes.points,
                "prototype_labels": self.prototypes.labels,
                "prototype_mass": self.prototypes.mass,
            }
        facts: dict[str, Any] = {
            "cluster_kind": self.kind,
            "why": self.why,
            "agreement": self.agreement,
            "clients": list(self.clients),
            "micro_counts": list(self.micro_counts),
            "digests": list(self.digests),
            "level_clusters": list(self.levels.n_clusters),
            "proposal": facts_of(self.proposal) if self.proposal else None,
        }
        if self.terms != UNNAMED:
            facts["terms"] = as_facts(self.terms)
        if self.moments is not None:
            arrays |= {"mean": self.moments.mean, "squares": self.moments.squares}
            facts["count"] = self.moments.count
        return Message(self.KIND, arrays, facts)

    @classmethod
    def from_message(cls, message: Message) -> "Model":
        """Read it back; refuse what does not fit together."""
        with message.read_as(cls.KIND):
            arrays, facts = message.arrays, message.facts
            count = facts.get("count")
            if {name in arrays for name in ("mean", "squares")} != {count is not None}:
                raise BadMessage("A model must hold all of count, mean and squares, or none of them.")
            model = cls(
                kind=facts["cluster_kind"],
                why=facts["why"],
                agreement=facts["agreement"],
                centroids=arrays["centroids"],
                mass=arrays["cluster_mass"],
                prototypes=prototypes_from(arrays),
                covariance=arrays["covariance"],
                reach=arrays["reach"],
                clients=tuple(facts["clients"]),
                micro_counts=tuple(facts["micro_counts"]),
                micro_labels=whole_numbers(arrays["micro_labels"]),
                micro_certainty=arrays["micro_certainty"],
                levels=Levels(whole_numbers(arrays["levels"]), tuple(facts["level_clusters"])),
                digests=tuple(facts["digests"]),
                proposal=proposal_from(facts["proposal"]),
                moments=None if count is None else Moments(count, arrays["mean"], arrays["squares"]),
                terms=Terms.model_validate(facts.get("terms", {})),
            )
        for rule, kept in rules_of(model):
            if not kept():
                raise BadMessage(f"The model does not fit together: {rule}.")
        return model


def prototypes_from(arrays: Mapping[str, NDArray[Any]]) -> Prototypes | None:
    """Read them back, if there are any."""
    if not any(name in arrays for name in ("prototypes", "prototype_labels", "prototype_mass")):
        return None
    labels = whole_numbers(arrays["prototype_labels"])
    return Prototypes(arrays["prototypes"], labels, arrays["prototype_mass"])


def whole_numbers(values: NDArray[Any]) -> IntArray:
    """Labels, whatever kind of numbers they travelled as; -0 would be another way to write 0."""
    if not (~np.signbit(values) & (values < 2**31) & (values == np.floor(values))).all():
        raise BadMessage("The model holds labels that are not whole numbers from 0 on.")
    return values.astype(np.int64)


def rules_of(model: Model) -> Iterator[tuple[str, Callable[[], bool]]]:
    """What must hold for a model, each in words; later ones build on earlier ones."""
    shape, micro, levels = model.centroids.shape, len(model.micro_labels), model.levels
    yield "centroids form a table", lambda: len(shape) == 2 and 0 not in shape
    yield "its columns make as many features", lambda: model.terms.n_features in (0, shape[1])
    yield "agreement lies between 0 and 1", lambda: 0.0 <= model.agreement <= 1.0
    yield "its kind of cluster is known", lambda: model.kind in KINDS
    yield "there is one reach and one mass per cluster", lambda: model.reach.shape == model.mass.shape == shape[:1]
    yield (
        "the covariance is that of its numbers and its kind",
        lambda: model.covariance.shape in forms_of_covariance(model),
    )
    yield "masses of clusters are above 0", lambda: bool(((model.mass > 0.0) & (model.mass <= LARGEST_TOTAL)).all())
    yield (
        "it has prototypes if it is linked, and only then",
        lambda: (model.kind == "linked") == (model.prototypes is not None),
    )
    yield "every cluster has its prototypes", lambda: model.prototypes is None or fits(model.prototypes, shape)
    yield (
        "centroids, covariance and reach are finite",
        lambda: all(
            (np.abs(values) <= limit).all()
            for values, limit in (
                (model.centroids, LARGEST_VALUE),
                (model.covariance, LARGEST_VALUE**2),
                (model.reach, LARGEST_VALUE),
            )
        ),
    )
    yield "shares lie between 0 and 1", lambda: are_shares(model.layout.shares_of(model.centroids))
    yield (
        "variances and reaches are not negative",
        lambda: bool((diagonal_of(model.covariance) > 0.0).all() and (model.reach >= 0.0).all()),
    )
    yield "the covariance is one that rows can have", lambda: is_covariance(model.covariance)
    yield "distances can be told by the covariance", lambda: can_be_undone(model.covariance)
    yield "every client is named once", lambda: 0 < len(set(model.clients)) == len(model.clients)
    yield "every client has a digest", lambda: len(model.digests) == len(model.clients)
    yield "every client has micro-clusters", lambda: len(model.micro_counts) == len(model.clients)
    yield "the micro-clusters of all clients are there", lambda: sum(model.micro_counts) == micro
    yield "none has less than one", lambda: min(model.micro_counts) >= 1
    yield "labels are clusters", lambda: model.micro_labels.ndim == 1 and int(model.micro_labels.max()) < shape[0]
    yield (
        "certainty lies between 0 and 1",
        lambda: (
            model.micro_certainty.shape == (micro,)
            and bool(((model.micro_certainty >= 0.0) & (model.micro_certainty <= 1.0)).all())
        ),
    )
    yield "every level has all micro-clusters", lambda: levels.labels.shape == (micro, len(levels.n_clusters))
    yield (
        "levels hold no more clusters than they say",
        lambda: bool((levels.labels.max(axis=0) < np.array(levels.n_clusters)).all()),
    )
    yield (
        "the pooled moments have its features",
        lambda: model.moments is None or model.moments.mean.shape == model.moments.squares.shape == shape[1:],
    )
    yield "the pooled moments are those of rows", lambda: model.moments is None or could_be_of_rows(model.moments)
    yield "what is proposed has evidence", lambda: model.proposal is None or is_proposal(model.proposal)


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


def facts_of(proposal: Proposal) -> dict[str, Any]:
    """As it travels: JSON has lists."""
    facts = asdict(proposal)
    return {name: list(values) for name, values in facts.items()}


def proposal_from(facts: Mapping[str, Any] | None) -> Proposal | None:
    """Read it back."""
    if facts is None:
        return None
    candidates = tuple(Candidate(**candidate) for candidate in facts["candidates"])
    return Proposal(tuple(facts["n_clusters"]), tuple(facts["evidence"]), candidates)
