"""What crosses between a client and the server, and nothing else does.

rows -> client -> Summary (one message up) -> server -> Model (one message down) -> client -> labels

A `Message` is a kind, some numeric arrays and a few plain facts: the shape that every transport carries. `Task`,
`Summary` and `Model` are its typed faces.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadMessage
from goldfc.learning.competition import LARGEST_VALUE, Learning
from goldfc.learning.granularity import Levels


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
    """What the server asks of every client: to summarise its rows with these settings."""

    learning: Learning

    KIND = "summarize"

    def to_message(self) -> Message:
        """As it travels."""
        settings = self.learning
        return Message(
            self.KIND,
            facts={
                "learning_rate": settings.learning_rate,
                "initial_fraction": settings.initial_fraction,
                "max_epochs": settings.max_epochs,
            },
        )

    @classmethod
    def from_message(cls, message: Message) -> "Task":
        """Read it back; settings out of range are refused as they are anywhere else."""
        with message.read_as(cls.KIND):
            return cls(Learning(**message.facts))


@dataclass(frozen=True)
class Summary:
    """All that leaves a client: the centroids of its micro-clusters."""

    client: str
    centroids: FloatArray

    KIND = "summary"

    def __post_init__(self) -> None:
        """Refuse what no server could use."""
        try:
            object.__setattr__(self, "centroids", np.require(self.centroids, np.float64, ["C"]))
        except (TypeError, ValueError) as error:
            raise BadMessage(f"The summary of client {self.client!r} holds centroids that are not numbers.") from error
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

    def to_message(self) -> Message:
        """As it travels."""
        return Message(self.KIND, {"centroids": self.centroids}, {"client": self.client})

    @classmethod
    def from_message(cls, message: Message) -> "Summary":
        """Read it back."""
        with message.read_as(cls.KIND):
            return cls(message.facts["client"], message.arrays["centroids"])


@dataclass(frozen=True)
class Model:
    """All that comes back: the global clusters, and which of them each micro-cluster belongs to.

    Micro-clusters are in the order of `clients`, then in the order in which the client sent them. It goes to every
    client, so that each learns the others' names, how many micro-clusters they sent and how these fell at every level;
    and a global cluster that is a single micro-cluster of somebody has that centroid as its own.
    """

    centroids: FloatArray  # (clusters, features)
    clients: tuple[str, ...]
    micro_counts: tuple[int, ...]  # micro-clusters per client
    micro_labels: IntArray  # (micro-clusters,) the global cluster of each
    levels: Levels  # the micro-clusters at every granularity

    KIND = "model"

    @property
    def micro_clients(self) -> tuple[str, ...]:
        """The client of every micro-cluster."""
        return tuple(np.repeat(self.clients, self.micro_counts).tolist())

    def labels_of(self, client: str) -> IntArray:
        """The global cluster of each micro-cluster of one client."""
        if client not in self.clients:
            raise BadMessage(
                f"Client {client!r} took no part in this model; its clients are {', '.join(self.clients)}."
            )
        number = self.clients.index(client)
        start = sum(self.micro_counts[:number])
        return self.micro_labels[start : start + self.micro_counts[number]]

    def to_message(self) -> Message:
        """As it travels."""
        return Message(
            self.KIND,
            {"centroids": self.centroids, "micro_labels": self.micro_labels, "levels": self.levels.labels},
            {
                "clients": list(self.clients),
                "micro_counts": list(self.micro_counts),
                "level_clusters": list(self.levels.n_clusters),
            },
        )

    @classmethod
    def from_message(cls, message: Message) -> "Model":
        """Read it back."""
        with message.read_as(cls.KIND):
            return cls(
                centroids=message.arrays["centroids"],
                clients=tuple(message.facts["clients"]),
                micro_counts=tuple(message.facts["micro_counts"]),
                micro_labels=message.arrays["micro_labels"],
                levels=Levels(message.arrays["levels"], tuple(message.facts["level_clusters"])),
            )
