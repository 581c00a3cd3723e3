"""The client's side: summarise its own rows, and label them once the model is back."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, NoReturn

import numpy as np

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.errors import BadMessage, BadRows
from goldfc.learning.competition import LARGEST_VALUE
from goldfc.protocol.finding import (
    WHEN_MANY,
    Blocks,
    ends_of,
    find_micro_clusters,
    measure,
    moments_of,
    renamed,
    shape_of,
    unit_scale,
)
from goldfc.protocol.message import Message, Model, Summary, Task
from goldfc.protocol.privacy import grid_of, merge_small, refuse_too_few, suppressed
from goldfc.protocol.rows import RowSource, as_source, blocks_of
from goldfc.protocol.terms import UNNAMED, Terms

Part = Literal["mass", "shape"]


@dataclass(frozen=True)
class Membership:
    """Which row is in which micro-cluster. It is private: no message has a place for it."""

    client: str
    micro_clusters: RowLabels
    digest: str  # of the summary that left


def summarize(
    rows: FloatArray | RowSource,
    client: str,
    task: Task,
    rng: np.random.Generator,
    *,
    withhold: Collection[Part] = (),
    terms: Terms = UNNAMED,
    blocks: Blocks = WHEN_MANY,
) -> tuple[Summary, Membership]:
    """FCPL: find the micro-clusters of a client's rows; a few facts of each may leave, the membership stays.

    A client may `withhold` mass or shape, whatever the task asks for. Many rows are learned in `blocks`.

    Note: if the task sets no `smallest`, a micro-cluster with a single member has that row as its centroid. Learning
    takes such clusters out, but the last epoch can leave some.
    """
    source = checked(rows, client)
    n_rows = source.shape[0]
    moments = moments_of(source)
    to_unit = unit_scale(moments, task.scaling, terms)
    found = find_micro_clusters(source, to_unit, task, rng, blocks)
    labels, micro = found.labels, measure(source, found.labels)
    if task.smallest > 1:
        refuse_too_few(n_rows, task.smallest, client)
        ends = ends_of(source, labels, grid_of(moments, terms))
        into = merge_small(micro, ends, to_unit(micro.mean), task.smallest)
        labels, micro = renamed(labels, into), micro.merged(into)
    centroids = micro.mean if found.centroids is None or task.smallest > 1 else found.centroids
    summary = Summary(
        client,
        centroids,
        mass=micro.size if task.mass and "mass" not in withhold else None,
        shape=shape_of(source, labels, centroids) if task.shape and "shape" not in withhold else None,
        moments=moments if task.scaling == "own" else None,
        smallest=task.smallest,
        blocks=found.blocks,
        terms=terms,
    )
    if task.smallest > 1:
        summary = suppressed(summary, source, moments)
    return summary, Membership(client, labels, summary.to_message().digest)


def label(membership: Membership, model: Model) -> tuple[IntArray, FloatArray]:
    """The global cluster of every row, and how certain it is: both are those of its own micro-cluster."""
    labels, certainty = label_micro_clusters(membership, model)
    return labels[membership.micro_clusters], certainty[membership.micro_clusters]


def label_micro_clusters(membership: Membership, model: Model) -> tuple[IntArray, FloatArray]:
    """The global cluster of every micro-cluster of one client, and how certain it is."""
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
    return model.micro_labels[own], model.micro_certainty[own]


def checked(rows: FloatArray | RowSource, client: str) -> RowSource:
    """Rows as the learner needs them, or a sentence that says what is wrong with them."""
    if isinstance(rows, np.ndarray):
        # Writeable, although nothing is written: for read-only arrays everything would be compiled once more.
        rows = np.require(rows, np.float64, ["C", "W"])
        if rows.ndim != 2:
            refuse_shape(rows.shape, client)
    source = as_source(rows)
    if 0 in source.shape:
        refuse_shape(source.shape, client)
    for where, block in blocks_of(source):
        if not (block.max() <= LARGEST_VALUE and block.min() >= -LARGEST_VALUE):  # not so if anything is not a number
            row, column = np.argwhere(~(np.abs(block) <= LARGEST_VALUE))[0]
            raise BadRows(
                f"Client {client!r}: row {where.start + row}, column {column} holds {block[row, column]}; "
                f"fill or drop missing values, and rescale values beyond {LARGEST_VALUE:g}."
            )
    return source


def refuse_shape(shape: tuple[int, ...], client: str) -> NoReturn:
    """There must be something to learn from."""
    raise BadRows(
        f"The rows of client {client!r} must form a table with at least one row and one column; their shape is {shape}."
    )


class Client:
    """One site: its rows, and what it keeps to itself between the two messages."""

    def __init__(
        self,
        name: str,
        rows: FloatArray | RowSource,
        rng: np.random.Generator,
        *,
        withhold: Collection[Part] = (),
        terms: Terms = UNNAMED,
        blocks: Blocks = WHEN_MANY,
    ) -> None:
        self.name = name
        self._rows = rows
        self._rng = rng
        self._withhold = withhold
        self._terms = terms
        self._blocks = blocks
        self._membership: Membership | None = None
        self._by_micro_cluster: tuple[IntArray, FloatArray] | None = None

    @property
    def membership(self) -> Membership:
        """Which row is in which micro-cluster; private, and known once the client has summarised."""
        if self._membership is None:
            raise BadMessage(f"Client {self.name!r} has not summarised its rows yet.")
        return self._membership

    @property
    def labels(self) -> IntArray:
        """The global cluster of every row, once the model has come."""
        return self._labelled()[0][self.membership.micro_clusters]

    @property
    def certainty(self) -> FloatArray:
        """How certain the label of every row is, in [0, 1]."""
        return self._labelled()[1][self.membership.micro_clusters]

    def _labelled(self) -> tuple[IntArray, FloatArray]:
        if self._by_micro_cluster is None:
            raise BadMessage(f"Client {self.name!r} has not received a model yet.")
        return self._by_micro_cluster

    def answer(self, message: Message) -> Message | None:
        """Summarise when asked to; label when the model comes. Labels stay here, so a model gets no answer."""
        if message.kind == Task.KIND:
            task = Task.from_message(message)
            summary, self._membership = summarize(
                self._rows,
                self.name,
                task,
                self._rng,
                withhold=self._withhold,
                terms=self._terms,
                blocks=self._blocks,
            )
            return summary.to_message()
        if message.kind == Model.KIND:
            self._by_micro_cluster = label_micro_clusters(self.membership, Model.from_message(message))
            return None
        raise BadMessage(f"Client {self.name!r} has no answer to a message of kind {message.kind!r}.")
