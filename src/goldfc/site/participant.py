"""A site as the server sees it: it answers messages, and keeps its rows and labels to itself."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import ClassVar

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.errors import BadMessage
from goldfc.message.columns import UNNAMED, Terms
from goldfc.message.message import Message
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.message.task import Part, Task
from goldfc.site.label import label
from goldfc.site.private.noise import Source
from goldfc.site.summarize import summarize


class AnsweringSite(ABC):
    """What a site keeps to itself between the two messages: micro-clusters, and then labels."""

    TASK: ClassVar[str]  # the kind of task that it can do

    def __init__(self, name: str) -> None:
        self.name = name
        self._micro_clusters: RowLabels | None = None
        self._labelled: tuple[IntArray, FloatArray] | None = None

    @property
    def micro_clusters(self) -> RowLabels:
        """Which row is in which micro-cluster; private, and known once the site has summarised."""
        if self._micro_clusters is None:
            raise BadMessage(f"Site {self.name!r} has not summarised its rows yet.", "not-summarised")
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
            raise BadMessage(f"Site {self.name!r} has not received a model yet.", "no-model-yet")
        return self._labelled

    def answer(self, message: Message) -> Message | None:
        """Summarise when asked to; label when the model comes. Labels stay here, so a model gets no answer."""
        if message.kind == self.TASK:
            summary, self._micro_clusters = self._summarize(message)
            return summary.to_message()
        if message.kind == Model.KIND:
            self._labelled = self._label(message.once(Model.from_message))
            return None
        raise BadMessage(f"Site {self.name!r} has no answer to a message of kind {message.kind!r}.", "kind-unanswered")

    @abstractmethod
    def _summarize(self, task: Message) -> tuple[Summary, RowLabels]:
        """What leaves, and which row is in which micro-cluster, which stays."""

    @abstractmethod
    def _label(self, model: Model) -> tuple[IntArray, FloatArray]:
        """The cluster of every row, and how certain that is."""


class Site(AnsweringSite):
    """One site of the default, with its rows: it answers a `Task` with a `Summary`, and labels its rows by a `Model`.

    Parameters
    ----------
    name
        Unique in the federation.
    rows
        A table of numbers, (rows, features).
    withhold
        What it keeps to itself, whatever it is asked for: "mass", "shape" or both.
    terms
        What its columns are, if they have names.
    randomness
        Where the noise of the level `private` comes from: the operating system, unless in a simulation.
    stands_for
        Where the rows are a sample: how many they are one of.
    """

    TASK = Task.KIND

    def __init__(
        self,
        name: str,
        rows: FloatArray,
        *,
        withhold: Collection[Part] = (),
        terms: Terms = UNNAMED,
        randomness: Source = secrets.token_bytes,
        stands_for: int | None = None,
    ) -> None:
        super().__init__(name)
        self._stands_for = stands_for
        self._randomness = randomness
        self._rows = rows
        self._withhold = withhold
        self._terms = terms

    def _summarize(self, task: Message) -> tuple[Summary, RowLabels]:
        wanted = Task.from_message(task)
        return summarize(
            self._rows,
            self.name,
            wanted,
            withhold=self._withhold,
            terms=self._terms,
            randomness=self._randomness,
            stands_for=self._stands_for,
        )

    def _label(self, model: Model) -> tuple[IntArray, FloatArray]:
        return label(self._rows, model)
