"""The client's side: summarise its own rows, and label them once the model is back."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadMessage, BadRows
from goldfc.learning.competition import LARGEST_VALUE, compete
from goldfc.learning.mixture import means_of, shape_of
from goldfc.learning.moments import Moments
from goldfc.learning.thinning import thin
from goldfc.protocol.message import Message, Model, Scaling, Summary, Task
from goldfc.protocol.privacy import grid_of, merge_small, refuse_too_few, suppressed, to_grid
from goldfc.protocol.terms import UNNAMED, Terms, ranges_of, with_fixed_scales

Part = Literal["mass", "shape"]


@dataclass(frozen=True)
class Membership:
    """Which row is in which micro-cluster. It is private: no message has a place for it."""

    client: str
    micro_clusters: IntArray
    digest: str  # of the summary that left


def summarize(
    rows: FloatArray,
    client: str,
    task: Task,
    rng: np.random.Generator,
    *,
    withhold: Collection[Part] = (),
    terms: Terms = UNNAMED,
) -> tuple[Summary, Membership]:
    """FCPL: find the micro-clusters of a client's rows; a few facts of each may leave, the membership stays.

    A client may `withhold` mass or shape, whatever the task asks for.

    Note: if the task sets no `smallest`, a micro-cluster with a single member has that row as its centroid. Learning
    takes such clusters out, but the last epoch can leave some.
    """
    rows = checked(rows, client)
    moments = Moments.of(rows)
    unit = scaled(rows, moments, task.scaling, terms)
    labels, centroids = find_micro_clusters(unit, task, rng)
    if task.smallest > 1:
        refuse_too_few(len(rows), task.smallest, client)
        labels = merge_small(unit, labels, task.smallest, to_grid(rows, grid_of(moments, terms)))
    if task.smallest > 1 or unit is not rows:
        centroids = means_of(rows, labels, np.ones(len(rows)))
    summary = Summary(
        client,
        centroids,
        mass=np.bincount(labels) if task.mass and "mass" not in withhold else None,
        shape=shape_of(rows, centroids, labels) if task.shape and "shape" not in withhold else None,
        moments=moments if task.scaling == "own" else None,
        smallest=task.smallest,
        terms=terms,
    )
    if task.smallest > 1:
        summary = suppressed(summary, rows, moments)
    return summary, Membership(client, labels, summary.to_message().digest)


def scaled(rows: FloatArray, moments: Moments, scaling: Scaling, terms: Terms) -> FloatArray:
    """The rows as they are learned from: all features of about the same spread."""
    if scaling == "given":
        return rows
    if scaling == "ranges":
        low, high = ranges_of(terms)
        return np.asarray((rows - low) / (high - low))
    return np.asarray((rows - moments.mean) / with_fixed_scales(moments.scale, terms))


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
    if model.digest_of(membership.client) != membership.digest:
        raise BadMessage(
            f"The model was made from another summary of client {membership.client!r} than the one that its rows were "
            "last summarised in; hand in that one, or ask for the model that was made from it."
        )
    if own.stop - own.start <= membership.micro_clusters.max():
        raise BadMessage(
            f"The model has {own.stop - own.start} micro-clusters of client {membership.client!r}, and more were sent; "
            "whoever made it did not make it from that summary."
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
        self,
        name: str,
        rows: FloatArray,
        rng: np.random.Generator,
        *,
        withhold: Collection[Part] = (),
        terms: Terms = UNNAMED,
    ) -> None:
        self.name = name
        self._rows = rows
        self._rng = rng
        self._withhold = withhold
        self._terms = terms
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
            summary, self._membership = summarize(
                self._rows, self.name, task, self._rng, withhold=self._withhold, terms=self._terms
            )
            return summary.to_message()
        if message.kind == Model.KIND:
            self._labels = label(self.membership, Model.from_message(message))
            return None
        raise BadMessage(f"Client {self.name!r} has no answer to a message of kind {message.kind!r}.")
