"""The paper's site: FCPL, and the label of its micro-cluster for every row."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.learning.k_means import nearest
from goldfc.learning.paper.blocks import BLOCK, learn_in_blocks
from goldfc.learning.paper.competition import Learning, compete
from goldfc.learning.rows import RowSource, blocks_of
from goldfc.message.compete import Compete
from goldfc.message.message import Message
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.site.participant import AnsweringSite
from goldfc.site.rows import checked


@dataclass(frozen=True)
class Blocks:
    """Learn in blocks if there are more rows than `most_at_once`; blocks side by side if `n_jobs` says so."""

    most_at_once: int
    n_jobs: int | None = None


class GoldSite(AnsweringSite):
    """One of the paper's sites: FCPL on its rows, and the label of its micro-cluster for every row.

    The certainty of a label is how many levels agree.
    """

    TASK = Compete.KIND

    def __init__(
        self, name: str, rows: FloatArray | RowSource, rng: np.random.Generator, *, blocks: Blocks | None = None
    ) -> None:
        super().__init__(name)
        self._rows = rows
        self._rng = rng
        self._blocks = blocks

    def _summarize(self, task: Message) -> tuple[Summary, RowLabels]:
        learning = Compete.from_message(task).learning
        labels, centroids = learn(self._rows, self.name, learning, self._rng, self._blocks)
        return Summary(self.name, centroids), labels

    def _label(self, model: Model) -> tuple[IntArray, FloatArray]:
        own = model.own(self.name)
        return model.ids[model.micro_labels[own]][self.micro_clusters], model.micro_certainty[own][self.micro_clusters]


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
