"""The site's side: summarise its own rows, and label them once the model is back."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Literal, NoReturn

import numpy as np

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.errors import BadMessage, BadRows
from goldfc.learning.moments import LARGEST_VALUE
from goldfc.protocol.finding import ends_of, find, measure, moments_of, renamed, shape_of, unit_of
from goldfc.protocol.label import label
from goldfc.protocol.message import Message, Model, Summary, Task
from goldfc.protocol.privacy import (
    SAMPLE,
    Allowed,
    Crowd,
    count_people,
    directions_of,
    free_features,
    groups_of,
    merge_small,
    needs_of,
    people_of_each,
    steps_of,
    stricter,
    suppressed,
)
from goldfc.protocol.rows import RowSource, as_source, blocks_of, sample_of
from goldfc.protocol.terms import UNNAMED, Terms

Part = Literal["mass", "shape"]


def summarize(
    rows: FloatArray | RowSource,
    client: str,
    task: Task,
    *,
    withhold: Collection[Part] = (),
    terms: Terms = UNNAMED,
    people: IntArray | None = None,
    steps: Mapping[str, float] | None = None,
) -> tuple[Summary, RowLabels]:
    """Find the micro-clusters of a site's rows; a few facts of each may leave, which row is in which stays.

    The same rows give the same message, whoever asks and however often: nothing is learned by asking again. A site may
    `withhold` mass or shape, whatever the task asks for. `people` says whose every row is (by default, somebody else's
    each), and `steps` how coarse columns must be told at least; both count if the task has a `smallest`.

    Note: if the task sets no `smallest`, a micro-cluster with a single member has that row as its centroid.
    """
    source = checked(rows, client)
    task = replace(task, shape=task.shape and "shape" not in withhold, mass=task.mass and "mass" not in withhold)
    allowed = Allowed(task, moments=task.scaling == "pooled")
    if task.smallest > 1:
        moments = moments_of(source)
        directions = directions_of(unit_of(moments, task.scaling, terms)(sample_of(source, SAMPLE)))
        needs = needs_of(free_features(moments, terms), directions, task.smallest)
        allowed = Allowed.by(needs, count_people(source, people), task, client)
    return tell(source, client, allowed, terms, people, steps)


def alike(
    rows: FloatArray | RowSource,
    summary: Summary,
    task: Task,
    people: IntArray | None = None,
    steps: Mapping[str, float] | None = None,
) -> Summary:
    """Some of the rows of a site, told as exactly as a summary tells all of them: no more and no less."""
    source = as_source(rows)
    n_people = count_people(source, people)
    task = replace(task, shape=summary.shape is not None, mass=summary.mass is not None)
    allowed = Allowed(task, summary.moments is not None)
    if task.smallest > 1 and len(summary.centroids) == 1:
        allowed = replace(Allowed.one_mean(task, n_people), moments=summary.moments is not None)
    elif task.smallest > 1:
        larger = stricter(task, summary.smallest)
        # At least two micro-clusters, as there were before.
        smallest, rows_each = min(larger.smallest, n_people // 4), min(larger.rows_each, n_people // 2)
        allowed = replace(allowed, task=replace(larger, smallest=smallest, rows_each=rows_each))
    return tell(source, summary.client, allowed, summary.terms, people, steps)[0]


def tell(
    source: RowSource,
    client: str,
    allowed: Allowed,
    terms: Terms,
    people: IntArray | None = None,
    steps: Mapping[str, float] | None = None,
) -> tuple[Summary, RowLabels]:
    """As much as is allowed."""
    task, moments, n_people = allowed.task, moments_of(source), count_people(source, people)
    to_unit = unit_of(moments, task.scaling, terms)
    labels = find(source, to_unit, task, n_people)
    micro = measure(source, labels)
    if task.smallest > 1:
        grid = steps_of(source, moments, terms, steps)
        ends = ends_of(source, labels, grid.finest(n_people))
        into = merge_small(groups_of(micro, ends, to_unit(micro.mean), labels, people), task.smallest)
        labels, micro = renamed(labels, into), micro.merged(into)
    numbers = terms.layout(source.shape[1]).numbers
    summary = Summary(
        client,
        micro.mean,
        mass=micro.size if task.mass else None,
        shape=shape_of(source, labels, micro.mean, numbers) if task.shape else None,
        moments=moments if allowed.moments else None,
        smallest=task.smallest,
        terms=terms,
    )
    if task.smallest > 1:
        crowd = Crowd(people_of_each(labels, people), n_people)
        summary = suppressed(summary, source, moments, crowd, grid)
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
