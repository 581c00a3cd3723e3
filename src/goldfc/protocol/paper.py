"""The paper's GOLD over the same port: FCPL at the sites, centroids up, MCPL and REMC at the server, labels down.

Nothing else of the package is called GOLD, and nothing here serves anything else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.errors import BadMessage
from goldfc.learning.judge import Verdict
from goldfc.learning.k_means import nearest
from goldfc.learning.levels import Levels
from goldfc.learning.micro_clusters import MicroClusters, means_of
from goldfc.learning.paper.blocks import BLOCK, learn_in_blocks
from goldfc.learning.paper.competition import Learning, compete
from goldfc.learning.paper.fusion import fuse_levels, level_matches
from goldfc.learning.paper.granularity import find_levels
from goldfc.protocol.client import checked
from goldfc.protocol.federation import Port
from goldfc.protocol.message import Message, Model, Summary
from goldfc.protocol.rows import RowSource, blocks_of
from goldfc.protocol.server import Round, check_n_clusters, in_order, reach_of, warn_of_fewer

TASK = "compete"


@dataclass(frozen=True)
class Blocks:
    """Learn in blocks if there are more rows than `most_at_once`; blocks side by side if `n_jobs` says so."""

    most_at_once: int
    n_jobs: int | None = None


def run_gold(
    port: Port, n_clusters: int, learning: Learning, rng: np.random.Generator, *, fewer: bool = False
) -> Round:
    """GOLD, whole: ask every client once, fuse what they send (see `fuse_gold`), and send them the model."""
    check_n_clusters(n_clusters)
    answers = port.ask(Message(TASK, facts=asdict(learning)))
    summaries = in_order(Summary.from_message(answer) for answer in answers.values())
    model = fuse_gold(summaries, n_clusters, learning, rng, fewer=fewer)
    port.ask(model.to_message())
    return Round(summaries, model)


def fuse_gold(
    summaries: Sequence[Summary],
    n_clusters: int,
    learning: Learning,
    rng: np.random.Generator,
    *,
    fewer: bool = False,
) -> Model:
    """MCPL and REMC; the order in which summaries arrived does not matter.

    Where the levels cannot tell so many clusters apart that is an error, or with `fewer` a warning and fewer clusters.
    """
    summaries = in_order(summaries)
    centroids = np.vstack([summary.centroids for summary in summaries])
    # One thread: sums that are made by several depend in their last digits on how many there are.
    with threadpool_limits(limits=1):
        levels = find_levels(centroids, learning, rng)
        labels = fuse_fewer(levels, n_clusters, rng) if fewer else fuse_levels(levels, n_clusters, rng)
        return model_of(summaries, centroids, labels, levels)


def fuse_fewer(levels: Levels, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """REMC into as many clusters as the levels can tell apart; some may lose all their micro-clusters."""
    told_apart = len(np.unique(levels.labels, axis=0))
    labels = fuse_levels(levels, min(n_clusters, told_apart), rng)
    warn_of_fewer(n_clusters, int(labels.max()) + 1)
    return labels


def model_of(summaries: Sequence[Summary], centroids: FloatArray, labels: IntArray, levels: Levels) -> Model:
    """What goes back; new rows go to the nearest centroid as the crow flies, so all features have one variance."""
    mass = np.ones(len(centroids))
    means, certainty = means_of(centroids, labels, mass), level_matches(levels, labels)
    variance = float(((centroids - means[labels]) ** 2).mean()) or 1.0
    covariance = np.full(centroids.shape[1], variance)
    verdict = Verdict("shared", "GOLD's clusters are told by their centroids", labels, certainty, levels)
    micro = MicroClusters(centroids, mass, np.zeros(centroids.shape[1]))
    return Model(
        kind=verdict.kind,
        why=verdict.why,
        centroids=means,
        # Equal ones: the nearest centroid decides.
        mass=np.ones(len(means)),
        covariance=covariance,
        reach=reach_of(micro, verdict, covariance),
        clients=tuple(summary.client for summary in summaries),
        micro_counts=tuple(len(summary.centroids) for summary in summaries),
        micro_labels=labels,
        micro_certainty=certainty,
        levels=levels,
        digests=tuple(summary.to_message().digest for summary in summaries),
    )


class GoldClient:
    """One of the paper's clients: FCPL on its rows, and the label of its micro-cluster for every row."""

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
        """Which row is in which micro-cluster; private, and known once the client has learned."""
        if self._micro_clusters is None:
            raise BadMessage(f"Client {self.name!r} has not summarised its rows yet.")
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
            raise BadMessage(f"Client {self.name!r} has not received a model yet.")
        return self._by_micro_cluster

    def answer(self, message: Message) -> Message | None:
        """Learn when asked to; look labels up when the model comes. Labels stay here, so a model gets no answer."""
        if message.kind == TASK:
            with message.read_as(TASK):
                learning = Learning(**message.facts)
            labels, centroids = learn(self._rows, self.name, learning, self._rng, self._blocks)
            self._micro_clusters = labels
            return Summary(self.name, centroids).to_message()
        if message.kind == Model.KIND:
            model = message.once(Model.from_message)
            own = model.own(self.name)
            self._by_micro_cluster = model.micro_labels[own], model.micro_certainty[own]
            return None
        raise BadMessage(f"Client {self.name!r} has no answer to a message of kind {message.kind!r}.")


def learn(
    rows: FloatArray | RowSource,
    client: str,
    learning: Learning,
    rng: np.random.Generator,
    blocks: Blocks | None = None,
) -> tuple[RowLabels, FloatArray]:
    """FCPL: the micro-cluster of every row, and their centroids.

    Note: a micro-cluster with a single member has that row as its centroid. Learning takes such clusters out, but the
    last epoch can leave some.
    """
    source = checked(rows, client)
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
