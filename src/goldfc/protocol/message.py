"""What crosses between a client and the server, and nothing else does.

rows -> client -> Summary (one message up) -> server -> Model (one message down) -> client -> labels

A `Message` is a kind, some numeric arrays and a few plain facts: the shape that every transport carries. `Task`,
`Summary` and `Model` are its typed faces.
"""

import json
import numbers
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadMessage, BadSettings
from goldfc.learning.competition import LARGEST_VALUE, Learning
from goldfc.learning.granularity import Levels
from goldfc.learning.mixture import form_of_shape
from goldfc.learning.proposal import Candidate, Proposal

# More rows than this in one micro-cluster are no data, but an attempt to outweigh everybody else.
LARGEST_MASS = 10**8
# How far a shape may be from symmetric, and from having no negative variance in any direction: rounding.
ROUNDING = 1e-9
# Numbers below this have fewer digits than others, and are as good as zero.
FEWER_DIGITS = 1e-290


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

    @property
    def nbytes(self) -> int:
        """Size on the way: the arrays, and the rest as compact JSON."""
        header = json.dumps({"kind": self.kind, **self.facts}, sort_keys=True, separators=(",", ":"))
        return len(header.encode()) + sum(array.nbytes for array in self.arrays.values())

    @contextmanager
    def read_as(self, kind: str) -> Iterator[None]:
        """Refuse to read a message as something that it is not, or that lacks what its kind must have."""
        if self.kind != kind:
            raise BadMessage(f"Expected a message of kind {kind!r}, got {self.kind!r}.")
        try:
            yield
        except (KeyError, TypeError) as error:
            raise BadMessage(f"A message of kind {kind!r} is not as it should be: {error}.") from error


@dataclass(frozen=True)
class Task:
    """What the server asks of every client: how to learn, how fine to stay, and what to tell of each micro-cluster.

    `most` is the largest number of micro-clusters (None: as many as learning leaves), and `rows_each` how many rows
    there must be for each of them, in the mean.
    """

    learning: Learning
    most: int | None = None
    rows_each: int = 1
    mass: bool = False
    shape: bool = False

    KIND = "summarize"

    def __post_init__(self) -> None:
        """Refuse what no client could do."""
        if self.most is not None and not (isinstance(self.most, numbers.Integral) and self.most >= 1):
            raise BadSettings(f"most must be a whole number from 1 on, or None for no limit, got {self.most!r}.")
        if not (isinstance(self.rows_each, numbers.Integral) and self.rows_each >= 1):
            raise BadSettings(f"rows_each must be a whole number from 1 on, got {self.rows_each!r}.")

    def limit(self, n_rows: int) -> int:
        """How many micro-clusters a client with so many rows may have."""
        return max(1, min(self.most or n_rows, n_rows // self.rows_each))

    def to_message(self) -> Message:
        """As it travels."""
        return Message(
            self.KIND,
            facts={
                "learning_rate": self.learning.learning_rate,
                "initial_fraction": self.learning.initial_fraction,
                "max_epochs": self.learning.max_epochs,
                "most": self.most,
                "rows_each": self.rows_each,
                "mass": self.mass,
                "shape": self.shape,
            },
        )

    @classmethod
    def from_message(cls, message: Message) -> "Task":
        """Read it back; settings out of range are refused as they are anywhere else."""
        with message.read_as(cls.KIND):
            own = {name: message.facts[name] for name in ("most", "rows_each", "mass", "shape")}
            learning = {name: value for name, value in message.facts.items() if name not in own}
            return cls(Learning(**learning), **own)


@dataclass(frozen=True)
class Summary:
    """All that leaves a client: its micro-clusters, by their centroids, and, unless withheld, their mass and shape."""

    client: str
    centroids: FloatArray  # (micro-clusters, features)
    mass: IntArray | None = None  # (micro-clusters,) rows in each
    shape: FloatArray | None = None  # (features, features), or with many features (features,); see `shape_of`

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
        if self.mass is not None:
            object.__setattr__(self, "mass", self._checked_mass(self._numbers("masses that are", self.mass)))
        if self.shape is not None:
            object.__setattr__(self, "shape", self._checked_shape(self._numbers("a shape that is", self.shape)))

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
        if not ((mass >= 1) & (mass <= LARGEST_MASS) & (mass == np.floor(mass))).all():
            raise BadMessage(
                f"The summary of client {self.client!r} holds masses that are not whole numbers from 1 to "
                f"{LARGEST_MASS}."
            )
        return mass.astype(np.int64)

    def _checked_shape(self, shape: FloatArray) -> FloatArray:
        wanted = form_of_shape(self.centroids.shape[1])
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

    def to_message(self) -> Message:
        """As it travels."""
        arrays = {"centroids": self.centroids, "mass": self.mass, "shape": self.shape}
        sent = {name: array for name, array in arrays.items() if array is not None}
        return Message(self.KIND, sent, {"client": self.client})

    @classmethod
    def from_message(cls, message: Message) -> "Summary":
        """Read it back."""
        with message.read_as(cls.KIND):
            arrays = message.arrays
            return cls(message.facts["client"], arrays["centroids"], arrays.get("mass"), arrays.get("shape"))


def is_covariance(shape: FloatArray) -> bool:
    """Whether there are rows that lie like this, up to rounding."""
    if shape.ndim == 1:
        return bool((shape >= 0.0).all())
    variance = np.abs(np.diagonal(shape))
    scale = np.where(variance > FEWER_DIGITS, np.sqrt(variance), 1.0)
    relative = shape / np.outer(scale, scale)
    if np.abs(relative - relative.T).max() > ROUNDING:
        return False
    return bool(np.linalg.eigvalsh(relative)[0] >= -ROUNDING * len(shape))


@dataclass(frozen=True)
class Model:
    """All that comes back: the global clusters, and which of them each micro-cluster belongs to.

    Micro-clusters are in the order of `clients`, then in the order in which the client sent them. It goes to every
    client, so that each learns the others' names, how many micro-clusters they sent and how these fell at every level;
    and a global cluster that is a single micro-cluster of somebody has that centroid as its own.
    """

    centroids: FloatArray  # (clusters, features)
    covariance: FloatArray  # of rows around their centroids: (features, features), or a diagonal (features,)
    reach: FloatArray  # (clusters,) how far from its centroid a cluster goes, in the distances of `covariance`
    clients: tuple[str, ...]
    micro_counts: tuple[int, ...]  # micro-clusters per client
    micro_labels: IntArray  # (micro-clusters,) the global cluster of each
    micro_certainty: FloatArray  # (micro-clusters,) how sure that is, in [0, 1]
    levels: Levels  # the micro-clusters at every granularity
    proposal: Proposal | None = None  # where nobody said how many clusters there are

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

    def labels_of(self, client: str) -> IntArray:
        """The global cluster of each micro-cluster of one client."""
        return self.micro_labels[self.own(client)]

    def to_message(self) -> Message:
        """As it travels."""
        return Message(
            self.KIND,
            {
                "centroids": self.centroids,
                "covariance": self.covariance,
                "reach": self.reach,
                "micro_labels": self.micro_labels,
                "micro_certainty": self.micro_certainty,
                "levels": self.levels.labels,
            },
            {
                "clients": list(self.clients),
                "micro_counts": list(self.micro_counts),
                "level_clusters": list(self.levels.n_clusters),
                "proposal": asdict(self.proposal) if self.proposal else None,
            },
        )

    @classmethod
    def from_message(cls, message: Message) -> "Model":
        """Read it back."""
        with message.read_as(cls.KIND):
            return cls(
                centroids=message.arrays["centroids"],
                covariance=message.arrays["covariance"],
                reach=message.arrays["reach"],
                clients=tuple(message.facts["clients"]),
                micro_counts=tuple(message.facts["micro_counts"]),
                micro_labels=message.arrays["micro_labels"],
                micro_certainty=message.arrays["micro_certainty"],
                levels=Levels(message.arrays["levels"], tuple(message.facts["level_clusters"])),
                proposal=proposal_from(message.facts["proposal"]),
            )


def proposal_from(facts: Mapping[str, Any] | None) -> Proposal | None:
    """Read it back."""
    if facts is None:
        return None
    candidates = tuple(Candidate(**candidate) for candidate in facts["candidates"])
    return Proposal(tuple(facts["n_clusters"]), tuple(facts["evidence"]), candidates)
