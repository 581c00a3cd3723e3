"""The site's side: summarise its own rows, and label them once the model is back."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Literal, NoReturn

import numpy as np

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.errors import BadMessage, BadRows
from goldfc.learning.moments import LARGEST_VALUE
from goldfc.protocol.finding import ends_of, find, measure, moments_of, renamed, shape_of, unit_of
from goldfc.protocol.label import label
from goldfc.protocol.message import Message, Model, Summary, Task
from goldfc.protocol.privacy import grid_of, merge_small, refuse_too_few, suppressed
from goldfc.protocol.rows import RowSource, as_source, blocks_of
from goldfc.protocol.terms import UNNAMED, Terms

Part = Literal["mass", "shape"]


def summarize(
    rows: FloatArray | RowSource,
    client: str,
    task: Task,
    *,
    withhold: Collection[Part] = (),
    terms: Terms = UNNAMED,
    steps: Mapping[str, float] = MappingProxyType({}),
    people: IntArray | None = None,  # noqa: ARG001 (whose each row is; rows are counted so far)
) -> tuple[Summary, RowLabels]:
    """Find the micro-clusters of a site's rows; a few facts of each may leave, which row is in which stays.

    The same rows give the same message, whoever asks and however often: nothing is learned by asking again. A site may
    `withhold` mass or shape, whatever the task asks for, and round columns to coarser `steps` than was agreed on.

    Note: if the task sets no `smallest`, a micro-cluster with a single member has that row as its centroid.
    """
    source = checked(rows, client)
    n_rows = source.shape[0]
    moments = moments_of(source)
    to_unit = unit_of(moments, task.scaling, terms)
    labels = find(source, to_unit, task)
    micro = measure(source, labels)
    if task.smallest > 1:
        refuse_too_few(n_rows, task.smallest, client)
        ends = ends_of(source, labels, grid_of(moments, terms, steps))
        into = merge_small(micro, ends, to_unit(micro.mean), task.smallest)
        labels, micro = renamed(labels, into), micro.merged(into)
    numbers = terms.layout(source.shape[1]).numbers
    summary = Summary(
        client,
        micro.mean,
        mass=micro.size if task.mass and "mass" not in withhold else None,
        shape=shape_of(source, labels, micro.mean, numbers) if task.shape and "shape" not in withhold else None,
        moments=moments if task.scaling == "pooled" else None,
        smallest=task.smallest,
        terms=terms,
    )
    if task.smallest > 1:
        summary = suppressed(summary, source, moments, steps)
    return summary, labels


def checked(rows: FloatArray | RowSource, client: str) -> RowSource:
    """Rows as they can be learned from, or a sentence that says what is wrong with them."""
    if isinstance(rows, np.ndarray):
        rows = np.require(rows, np.float64, ["C"])
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
        rows: FloatArray,
        *,
        withhold: Collection[Part] = (),
        terms: Terms = UNNAMED,
    ) -> None:
        self.name = name
        self._rows = rows
        self._withhold = withhold
        self._terms = terms
        self._micro_clusters: RowLabels | None = None
        self._labelled: tuple[IntArray, FloatArray] | None = None

    @property
    def micro_clusters(self) -> RowLabels:
        """Which row is in which micro-cluster; private, and known once the site has summarised."""
        if self._micro_clusters is None:
            raise BadMessage(f"Client {self.name!r} has not summarised its rows yet.")
        return self._micro_clusters

    @property
    def labels(self) -> IntArray:
        """The global cluster of every row, once the model has come."""
        return self._known()[0]

    @property
    def certainty(self) -> FloatArray:
        """How certain the label of every row is, in [0, 1]."""
        return self._known()[1]

    def _known(self) -> tuple[IntArray, FloatArray]:
        if self._labelled is None:
            raise BadMessage(f"Client {self.name!r} has not received a model yet.")
        return self._labelled

    def answer(self, message: Message) -> Message | None:
        """Summarise when asked to; label when the model comes. Labels stay here, so a model gets no answer."""
        if message.kind == Task.KIND:
            summary, self._micro_clusters = summarize(
                self._rows, self.name, Task.from_message(message), withhold=self._withhold, terms=self._terms
            )
            return summary.to_message()
        if message.kind == Model.KIND:
            self._labelled = label(self._rows, message.once(Model.from_message))
            return None
        raise BadMessage(f"Client {self.name!r} has no answer to a message of kind {message.kind!r}.")
