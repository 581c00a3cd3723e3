"""The client's side: summarise its own rows, and label them once the model is back."""

from dataclasses import dataclass

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadMessage, BadRows
from goldfc.learning.competition import LARGEST_VALUE, Learning, compete
from goldfc.protocol.message import Message, Model, Summary, Task


@dataclass(frozen=True)
class Membership:
    """Which row is in which micro-cluster. It is private: no message has a place for it."""

    client: str
    micro_clusters: IntArray


def summarize(
    rows: FloatArray, client: str, learning: Learning, rng: np.random.Generator
) -> tuple[Summary, Membership]:
    """FCPL: find the micro-clusters of a client's rows; their centroids may leave, the membership stays.

    Note: a micro-cluster with a single member has that row as its centroid. Learning takes such clusters out, but the
    last epoch can leave some.
    """
    rows = checked(rows, client)
    outcome = compete(rows, learning.candidates(len(rows)), learning, rng)
    return Summary(client, outcome.centroids), Membership(client, outcome.labels)


def label(membership: Membership, model: Model) -> IntArray:
    """The global cluster of every row: that of its own micro-cluster."""
    labels = model.labels_of(membership.client)
    if len(labels) != membership.micro_clusters.max() + 1:
        raise BadMessage(
            f"The model knows {len(labels)} micro-clusters of client {membership.client!r}, but its rows are in "
            f"{membership.micro_clusters.max() + 1}; the model was made from another summary."
        )
    return labels[membership.micro_clusters]


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

    def __init__(self, name: str, rows: FloatArray, rng: np.random.Generator) -> None:
        self.name = name
        self._rows = rows
        self._rng = rng
        self._membership: Membership | None = None
        self._labels: IntArray | None = None

    @property
    def membership(self) -> Membership:
        """Which row is in which micro-cluster; private, and known once the client has summarised."""
        if self._membership is None:
            raise BadMessage(f"Client {self.name!r} has not summarised its rows yet.")
        return self._membership

    @property
    def labels(self) -> IntArray:
        """The global cluster of every row, once the model has come."""
        if self._labels is None:
            raise BadMessage(f"Client {self.name!r} has not received a model yet.")
        return self._labels

    def answer(self, message: Message) -> Message | None:
        """Summarise when asked to; label when the model comes. Labels stay here, so a model gets no answer."""
        if message.kind == Task.KIND:
            task = Task.from_message(message)
            summary, self._membership = summarize(self._rows, self.name, task.learning, self._rng)
            return summary.to_message()
        if message.kind == Model.KIND:
            self._labels = label(self.membership, Model.from_message(message))
            return None
        raise BadMessage(f"Client {self.name!r} has no answer to a message of kind {message.kind!r}.")
