"""The site's side: summarise its own rows, and label them once the model is back."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Literal, NoReturn

import numpy as np

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.errors import BadMessage, BadRows
from goldfc.learning.moments import LARGEST_VALUE, Moments
from goldfc.protocol.audit import TELLS_MEMBERS, USUAL, Limits, membership_of
from goldfc.protocol.finding import ends_of, find, measure, moments_of, renamed, shape_of, unit_of
from goldfc.protocol.label import label
from goldfc.protocol.message import Message, Model, Summary, Task
from goldfc.protocol.privacy import (
    SAMPLE,
    Allowed,
    Precision,
    Spread,
    Told,
    count_people,
    expected_auc,
    groups_of,
    ladder,
    merge_small,
    one_mean,
    people_of_each,
    spread_around,
    spread_of,
    steps_of,
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
    told = tell(rows, client, task, withhold=withhold, terms=terms, people=people, steps=steps)
    return told.summary, told.micro_clusters


def tell(  # noqa: PLR0913 (most have a default)
    rows: FloatArray | RowSource,
    client: str,
    task: Task,
    *,
    withhold: Collection[Part] = (),
    terms: Terms = UNNAMED,
    people: IntArray | None = None,
    steps: Mapping[str, float] | None = None,
    limits: Limits = USUAL,
) -> Told:
    """As much as a site's people allow, and as the best attack on it that is known allows."""
    source = checked(rows, client)
    task = replace(task, shape=task.shape and "shape" not in withhold, mass=task.mass and "mass" not in withhold)
    moments = moments_of(source)
    if task.smallest == 1:
        return tell_as(source, client, Allowed(task, task.scaling == "pooled"), moments, terms)
    spread = spread_at(source, moments, task, terms, people)
    for allowed in ladder(spread, count_people(source, people), task, client):
        told = tell_as(source, client, allowed, moments, terms, people, steps)
        if len(told.summary.centroids) == 1 and not allowed.is_one_mean:
            continue  # all were merged: one mean can be told more exactly
        told = measured(told, source, people, steps)
        guess = told.membership
        if guess is None or (guess.auc <= min(TELLS_MEMBERS, limits.most_auc) and guess.found <= limits.most_tpr):
            break
    return told


def spread_at(source: RowSource, moments: Moments, task: Task, terms: Terms, people: IntArray | None = None) -> Spread:
    """How the rows of a site spread, around their mean and around the micro-centroids that were asked for."""
    labels = find(source, unit_of(moments, task.scaling, terms), task, count_people(source, people))
    around = spread_around(source, labels, measure(source, labels).mean)
    return Spread(spread_of(sample_of(source, SAMPLE)), around)


def measured(
    told: Told, rows: FloatArray | RowSource, people: IntArray | None = None, steps: Mapping[str, float] | None = None
) -> Told:
    """The same, with how well members are told from others."""
    source, again = as_source(rows), partial(alike, told=told, steps=steps)
    return replace(told, membership=membership_of(source, again, people, expected_auc(told, source, people)))


def alike(
    rows: FloatArray | RowSource,
    people: IntArray | None = None,
    *,
    told: Told,
    steps: Mapping[str, float] | None = None,
) -> Summary:
    """Some of the rows of a site, told as exactly as all of them were: no more and no less."""
    source = as_source(rows)
    n_people, task, allowed = count_people(source, people), told.allowed.task, told.allowed
    if allowed.is_one_mean:
        allowed = one_mean(task, n_people, allowed.coarseness)
    elif task.smallest > 1:
        # At least two micro-clusters, as there were before.
        smallest, rows_each = max(2, min(task.smallest, n_people // 4)), min(task.rows_each, n_people // 2)
        allowed = replace(allowed, task=replace(task, smallest=smallest, rows_each=rows_each))
    summary = told.summary
    return tell_as(source, summary.client, allowed, moments_of(source), summary.terms, people, steps).summary


def tell_as(
    source: RowSource,
    client: str,
    allowed: Allowed,
    moments: Moments,
    terms: Terms,
    people: IntArray | None = None,
    steps: Mapping[str, float] | None = None,
) -> Told:
    """As much as is allowed."""
    task, n_people = allowed.task, count_people(source, people)
    to_unit = unit_of(moments, task.scaling, terms)
    labels = find(source, to_unit, task, n_people)
    micro = measure(source, labels)
    of_all = steps_of(source, moments, terms, allowed.coarseness, steps)
    if task.smallest > 1:
        ends = ends_of(source, labels, of_all.around(micro, moments).finest(n_people))
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
    precision = Precision(people_of_each(labels, people), n_people, of_all, of_all.around(micro, moments))
    if task.smallest > 1:
        summary = suppressed(summary, source, moments, precision)
    return Told(summary, labels, allowed, micro.mean, precision.grid)


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
