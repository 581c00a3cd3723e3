"""A site as the server sees it: it answers messages, and keeps its rows and labels to itself."""

from collections.abc import Collection

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.errors import BadMessage
from goldfc.message.columns import UNNAMED, Terms
from goldfc.message.message import Message
from goldfc.message.model import Model
from goldfc.message.task import Part, Task
from goldfc.site.label import label
from goldfc.site.summarize import summarize


class Site:
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
        if message.kind == Task.KIND:
            summary, self._micro_clusters = summarize(
                self._rows, self.name, Task.from_message(message), withhold=self._withhold, terms=self._terms
            )
            return summary.to_message()
        if message.kind == Model.KIND:
            self._labelled = label(self._rows, message.once(Model.from_message))
            return None
        raise BadMessage(f"Site {self.name!r} has no answer to a message of kind {message.kind!r}.", "kind-unanswered")
