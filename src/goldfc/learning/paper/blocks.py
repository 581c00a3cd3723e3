"""Block learning: the micro-clusters of many rows, in time that grows as their number does.

The competition starts from a share of the rows, so that its time grows with the square of their number. Here blocks of
rows are learned one by one, in any order or side by side. The micro-clusters of all blocks, each with the mass of its
rows, then compete again; where they are many, they do so a few blocks at a time, in rounds. In the end every row goes
to the nearest of those that are left.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from goldfc._parallel import side_by_side
from goldfc._types import FloatArray, IntArray
from goldfc.learning.micro_clusters import means_of
from goldfc.learning.paper.competition import Learning, compete

# Rows that are learned together, the share of them that are candidates at the most, and for how many epochs at the
# most: what is left has few rows each, and is merged anyway. On LA, WI, PE, LE and SD more of either gained nothing;
# blocks of 1000, a fifth as candidates, or a quarter of the rows lost about .01 ARI.
BLOCK = 2000
BLOCK_CANDIDATES = 0.3
BLOCK_EPOCHS = 1


@dataclass(frozen=True)
class Weighted:
    """Micro-clusters: where they are, and the mass of each."""

    centroids: FloatArray
    mass: FloatArray

    def __len__(self) -> int:
        """How many there are."""
        return len(self.mass)

    def merged(self, into: IntArray) -> "Weighted":
        """Those that go into the same one, put together."""
        return Weighted(
            means_of(self.centroids, into, self.mass), np.bincount(into, weights=self.mass).astype(np.float64)
        )


def put_together(parts: Iterable[Weighted]) -> Weighted:
    """All of them, in their order."""
    several = list(parts)
    return Weighted(
        np.concatenate([part.centroids for part in several]), np.concatenate([part.mass for part in several])
    )


@dataclass(frozen=True)
class Work:
    """One block to learn, with randomness of its own."""

    rows: FloatArray
    learning: Learning
    rng: np.random.Generator


def learn_block(work: Work) -> Weighted:
    """The micro-clusters of a block."""
    outcome = compete(work.rows, work.learning.candidates(len(work.rows)), work.learning, work.rng)
    return Weighted(outcome.centroids, np.bincount(outcome.labels).astype(np.float64))


@dataclass
class Merger:
    """Micro-clusters of blocks as they come in, and what they are merged into.

    Those of one round wait until they fill a block. Then they compete, and the clusters that are left wait in the next
    round. So masses that compete are of about the same size, and the time is that of learning a few blocks more.
    """

    learning: Learning
    rng: np.random.Generator
    waiting: list[list[Weighted]] = field(default_factory=list)  # by round

    def add(self, micro: Weighted, number: int = 0) -> None:
        """The micro-clusters of one more block, or those that are left of a round."""
        if number == len(self.waiting):
            self.waiting.append([])
        self.waiting[number].append(micro)
        if sum(map(len, self.waiting[number])) > BLOCK:
            together = put_together(self.waiting[number])
            self.waiting[number] = []
            self.add(self._compete(together), number + 1)

    def finish(self) -> Weighted:
        """All that are left."""
        left = [micro for waiting in self.waiting for micro in waiting]
        return left[0] if len(left) == 1 else self._compete(put_together(left))

    def _compete(self, micro: Weighted) -> Weighted:
        candidates = self.learning.candidates(len(micro))
        outcome = compete(micro.centroids, candidates, self.learning, self.rng, mass=micro.mass)
        return micro.merged(outcome.labels)


def learn_in_blocks(
    blocks: Iterable[FloatArray], learning: Learning, rng: np.random.Generator, n_jobs: int | None = None
) -> Weighted:
    """The micro-clusters of all blocks together."""
    learning = replace(
        learning,
        initial_fraction=min(learning.initial_fraction, BLOCK_CANDIDATES),
        max_epochs=min(learning.max_epochs, BLOCK_EPOCHS),
    )
    merger = Merger(learning, rng.spawn(1)[0])
    for micro in side_by_side(learn_block, works_of(blocks, learning, rng), n_jobs):
        merger.add(micro)
    return merger.finish()


def works_of(blocks: Iterable[FloatArray], learning: Learning, rng: np.random.Generator) -> Iterator[Work]:
    """Every block with randomness that depends on its place alone."""
    for rows in blocks:
        yield Work(rows, learning, rng.spawn(1)[0])
