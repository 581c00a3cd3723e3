"""The paper's site: FCPL, and the label of its micro-cluster for every row."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.errors import BadMessage
from goldfc.learning.k_means import nearest
from goldfc.learning.paper.blocks import BLOCK, learn_in_blocks
from goldfc.learning.paper.competition import Learning, compete
from goldfc.learning.rows import RowSource, blocks_of
from goldfc.message.compete import Compete
from goldfc.message.message import Message
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.site.rows import checked


@dataclass(frozen=True)
class Blocks:
    """Learn in blocks if there are more rows than `most_at_once`; blocks side by side if `n_jobs` says so."""

    most_at_once: int
    n_jobs: int | None = None


class GoldSite:
    """One of the paper's sites: FCPL on its rows, and the label of its micro-cluster for every row."""

    def __init__(
        self, name: str, rows: FloatArray | RowSource, rng: np.random.Generator, *, blocks: Blocks | None = None
    ) -> None:
        self.name = name
        self._rows = rows
        self._rng = rng
        self._blocks = blocks
        self._micro_clusters: RowLabels | None = None
        self._by_micro_cluster: tuple[IntArray, FloatArray] | None = None

    @property
    def micro_clusters(self) -> RowLabels:
        """Which row is in which micro-cluster; private, and known once the site has learned."""
        if self._micro_clusters is None:
            raise BadMessage(f"Site {self.name!r} has not summarised its rows yet.", "not-summarised")
        return self._micro_clusters

    @property
    def labels(self) -> IntArray:
        """The global cluster of every row, once the model has come."""
        return self._labelled()[0][self.micro_clusters]

    @property
    def certainty(self) -> FloatArray:
        """How certain the label of every row is, in [0, 1]: how many levels agree."""
        return self._labelled()[1][self.micro_clusters]

    def _labelled(self) -> tuple[IntArray, FloatArray]:
        if self._by_micro_cluster is None:
            raise BadMessage(f"Site {self.name!r} has not received a model yet.", "no-model-yet")
        return self._by_micro_cluster

    def answer(self, message: Message) -> Message | None:
        """Learn when asked to; look labels up when the model comes. Labels stay here, so a model gets no answer."""
        if message.kind == Compete.KIND:
            learning = Compete.from_message(message).learning
            labels, centroids = learn(self._rows, self.name, learning, self._rng, self._blocks)
            self._micro_clusters = labels
            return Summary(self.name, centroids).to_message()
        if message.kind == Model.KIND:
            model = message.once(Model.from_message)
            own = model.own(self.name)
            self._by_micro_cluster = model.micro_labels[own], model.micro_certainty[own]
            return None
        raise BadMessage(f"Site {self.name!r} has no answer to a message of kind {message.kind!r}.", "kind-unanswered")


def learn(
    rows: FloatArray | RowSource,
    site: str,
    learning: Learning,
    rng: np.random.Generator,
    blocks: Blocks | None = None,
) -> tuple[RowLabels, FloatArray]:
    """FCPL: the micro-cluster of every row, and their centroids.

    Note: a micro-cluster with a single member has that row as its centroid. Learning takes such clusters out, but the
    last epoch can leave some.
    """
    source = checked(rows, site).source
    if blocks is not None and source.shape[0] > blocks.most_at_once:
        return learn_many(source, learning, rng, blocks.n_jobs)
    n_rows = source.shape[0]
    # Writeable, although nothing is written: for read-only arrays everything would be compiled once more.
    whole = np.require(source.read(0, n_rows), np.float64, ["C", "W"])
    outcome = compete(whole, learning.candidates(n_rows), learning, rng)
    return outcome.labels.astype(np.int32), outcome.centroids


def learn_many(
    source: RowSource, learning: Learning, rng: np.random.Generator, n_jobs: int | None
) -> tuple[RowLabels, FloatArray]:
    """Half of the rows, in blocks, and their micro-clusters merged; then all rows go to the nearest of these."""
    micro = learn_in_blocks(half_of(source, *rng.spawn(1)), learning, rng, n_jobs)
    labels = np.concatenate([nearest(rows, micro.centroids) for _, rows in blocks_of(source)])
    used, labels = np.unique(labels, return_inverse=True)
    return labels.astype(np.int32), micro.centroids[used]


def half_of(source: RowSource, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Half of the rows, in blocks: of every two, one by lot, because what alternates in a table may mean something."""
    for _, rows in blocks_of(source, 2 * BLOCK):
        first = np.arange(0, len(rows), 2)
        yield rows[np.minimum(first + rng.integers(2, size=len(first)), len(rows) - 1)]
