"""The client's side: summarise its own rows, and label them once the model is back."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadMessage, BadRows
from goldfc.learning.competition import LARGEST_VALUE, compete
from goldfc.learning.mixture import means_of, shape_of
from goldfc.learning.thinning import thin
from goldfc.protocol.message import Message, Model, Summary, Task

Part = Literal["mass", "shape"]


@dataclass(frozen=True)
class Membership:
    """Which row is in which micro-cluster. It is private: no message has a place for it."""

    client: str
    micro_clusters: IntArray


def summarize(
    rows: FloatArray, client: str, task: Task, rng: np.random.Generator, *, withhold: Collection[Part] = ()
) -> tuple[Summary, Membership]:
    """FCPL: find the micro-clusters of a client's rows; a few facts of each may leave, the membership stays.

    A client may `withhold` mass or shape, whatever the task asks for.

    Note: a micro-cluster with a single member has that row as its centroid. Learning takes such clusters out, but the
    last epoch can leave some.
    """
    rows = checked(rows, client)
    labels, centroids = find_micro_clusters(rows, task, rng)
    summary = Summary(
        client,
        centroids,
        np.bincount(labels) if task.mass and "mass" not in withhold else None,
        shape_of(rows, centroids, labels) if task.shape and "shape" not in withhold else None,
    )
    return summary, Membership(client, labels)


def find_micro_clusters(rows: FloatArray, task: Task, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """The micro-cluster of every row, and the centroids: what learning leaves, merged if it is more than wanted."""
    outcome = compete(rows, task.learning.candidates(len(rows)), task.learning, rng)
    limit = task.limit(len(rows))
    if outcome.n_clusters <= limit:
        return outcome.labels, outcome.centroids
    labels = thin(outcome.centroids, np.bincount(outcome.labels).astype(np.float64), limit)[outcome.labels]
    return labels, means_of(rows, labels, np.ones(len(rows)))


def label(membership: Membership, model: Model) -> tuple[IntArray, FloatArray]:
    """The global cluster of every row, and how certain it is: both are those of its own micro-cluster."""
    own = model.own(membership.client)
    if own.stop - own.start != membership.micro_clusters.max() + 1:
        raise BadMessage(
            f"The model knows {own.stop - own.start} micro-clusters of client {membership.client!r}, but its rows are "
            f"in {membership.micro_clusters.max() + 1}; the model was made from another summary."
        )
    return (
        model.micro_labels[own][membership.micro_clusters],
        model.micro_certainty[own][membership.micro_clusters],
    )


def checked(rows: FloatArray, client: str) -> FloatArray:
    """Rows as the learner needs them, or a sentence that says what is wrong with them."""
    # Writeable, although nothing is written: for read-only arrays everything would be compiled once more.
    rows = np.require(rows, np.float64, ["C", "W"])
    if rows.ndim != 2 or 0 in rows.shape:
        raise BadRows(
            f"The rows of client {client!r} must form a table with at least one row and one column; "
            f"their shape is {rows.shape}."
        )
    bad = np.argwhere(~(np.abs(rows) <= LARGEST_VALUE))
    if len(bad):
        row, column = bad[0]
        raise BadRows(
            f"Client {client!r}: row {row}, column {column} holds {rows[row, column]}; "
            f"fill or drop missing values, and rescale values beyond {LARGEST_VALUE:g}."
        )
    return rows


class Client:
    """One site: its rows, and what it keeps to itself between the two messages."""

    def __init__(
        self, name: str, rows: FloatArray, rng: np.random.Generator, *, withhold: Collection[Part] = ()
    ) -> None:
        self.name = name
        self._rows = rows
        self._rng = rng
        self._withhold = withhold
        self._membership: Membership | None = None
        self._labels: tuple[IntArray, FloatArray] | None = None

    @property
    def membership(self) -> Membership:
        """Which row is in which micro-cluster; private, and known once the client has summarised."""
        if self._membership is None:
            raise BadMessage(f"Client {self.name!r} has not summarised its rows yet.")
        return self._membership

    @property
    def labels(self) -> IntArray:
        """The global cluster of every row, once the model has come."""
        return self._labelled()[0]

    @property
    def certainty(self) -> FloatArray:
        """How certain the label of every row is, in [0, 1]."""
        return self._labelled()[1]

    def _labelled(self) -> tuple[IntArray, FloatArray]:
        if self._labels is None:
            raise BadMessage(f"Client {self.name!r} has not received a model yet.")
        return self._labels

    def answer(self, message: Message) -> Message | None:
        """Summarise when asked to; label when the model comes. Labels stay here, so a model gets no answer."""
        if message.kind == Task.KIND:
            task = Task.from_message(message)
            summary, self._membership = summarize(self._rows, self.name, task, self._rng, withhold=self._withhold)
            return summary.to_message()
        if message.kind == Model.KIND:
            self._labels = label(self.membership, Model.from_message(message))
            return None
        raise BadMessage(f"Client {self.name!r} has no answer to a message of kind {message.kind!r}.")
