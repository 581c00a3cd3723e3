"""What a method is: a program for the server, a program for every site, and the port between them.

The server program asks its sites through the port, once if it is a one-shot method, in a loop if it is an iterative
one. Nothing else connects the two sides: the number of clusters travels in the messages, and every site keeps the
labels of its own rows to itself until the judge looks at them. Nobody has the truth.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadMessage
from goldfc.message.message import Message
from goldfc.server.round import Port
from goldfc.site.label import nearest_centroid
from goldfc.transport.local import Participant

# Whether messages to the server hold rows: never; where a cluster has a single row, which is then its centroid; or all
# of them, or what all of them can be restored from.
UploadsRows = Literal["never", "lone", "all"]


@dataclass(frozen=True)
class Answer:
    """What a method gives: its global centroids, and how often its sites had to send something.

    For rows that took no part the nearest centroid decides, unless the method has a way of its own (`predict`).
    """

    centroids: FloatArray  # at most k (AFCL: as many as it finds)
    uplinks: int
    details: Mapping[str, Any] | None = None  # for the row of the run, such as how many rounds it took
    predict: Callable[[FloatArray], IntArray] | None = None

    def label(self, rows: FloatArray) -> IntArray:
        """The global cluster of rows that took no part."""
        return nearest_centroid(rows, self.centroids) if self.predict is None else self.predict(rows)


class MethodSite(Participant, Protocol):
    """A site as the judge sees it: when the method has ended, it knows the labels of its own rows."""

    @property
    def labels(self) -> IntArray:
        """The global cluster of every row."""
        ...


class Method(Protocol):
    """One method; a frozen dataclass whose fields are its settings."""

    name: ClassVar[str]
    uploads_rows: ClassVar[UploadsRows]

    def __hash__(self) -> int:
        """Equal settings, equal methods."""
        ...

    def site(self, name: str, rows: FloatArray, rng: np.random.Generator) -> MethodSite:
        """The program of one site."""
        ...

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:
        """The program of the server."""
        ...


class Site:
    """What all counterparts' sites have in common: rows, randomness, labels, and actions by the kind of message.

    A message of kind `summarize` is answered by the method `on_summarize`, and so on. Three kinds are known to all:
    `centroids` labels every row with its nearest centroid; `labels` gives every row the label of the local cluster that
    it is in (`own`); and `means` is answered with sum and count of the rows of every label, from which the server makes
    centroids for a method that has none.
    """

    own: IntArray  # the local cluster of every row, where a method has such

    def __init__(self, name: str, rows: FloatArray, rng: np.random.Generator) -> None:
        self.name = name
        self.rows = rows
        self.rng = rng
        self._labels: IntArray | None = None

    @property
    def labels(self) -> IntArray:
        """The global cluster of every row."""
        if self._labels is None:
            raise BadMessage(f"Site {self.name!r} has no labels yet.")
        return self._labels

    @labels.setter
    def labels(self, labels: IntArray) -> None:
        self._labels = labels

    def answer(self, message: Message) -> Message | None:
        """Do what the message's kind says."""
        action = getattr(self, f"on_{message.kind}", None)
        if action is None:
            raise BadMessage(f"Site {self.name!r} has no answer to a message of kind {message.kind!r}.")
        reply: Message | None = action(message)
        return reply

    def on_centroids(self, message: Message) -> None:
        """Every row goes to its nearest global centroid."""
        self.labels = nearest_centroid(self.rows, message.arrays["centroids"])

    def on_labels(self, message: Message) -> None:
        """Every row has the label of its own local cluster."""
        self.labels = message.arrays["labels"][self.own]

    def on_means(self, message: Message) -> Message:
        """Sum and count of the rows of every label."""
        n_labels = message.facts["n_clusters"]
        sums = np.zeros((n_labels, self.rows.shape[1]))
        np.add.at(sums, self.labels, self.rows)
        return Message("means", {"sums": sums, "counts": np.bincount(self.labels, minlength=n_labels)})
