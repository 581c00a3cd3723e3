"""Block learning: the micro-clusters of many rows, in time that grows as their number does.

The competition starts from a share of the rows, so that its time grows with the square of their number. Here blocks of
rows are learned one by one, in any order or side by side. The micro-clusters of all blocks, each with the mass of its
rows, then compete again; where they are many, they do so a few blocks at a time, in rounds.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from goldfc._parallel import side_by_side
from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.learning.competition import Learning, compete

# Rows that are learned together, the share of them that are candidates at the most, and for how many epochs at the
# most: what is left has few rows each, and is merged anyway.
BLOCK = 2000
BLOCK_CANDIDATES = 0.4
BLOCK_EPOCHS = 2


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
        mass = np.bincount(into, weights=self.mass).astype(np.float64)
        sums = [np.bincount(into, weights=self.mass * column) for column in self.centroids.T]
        return Weighted(np.ascontiguousarray((np.array(sums) / mass).T), mass)


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


def learn_block(work: Work) -> tuple[RowLabels, Weighted]:
    """The micro-cluster of every row of a block, and the micro-clusters."""
    outcome = compete(work.rows, work.learning.candidates(len(work.rows)), work.learning, work.rng)
    return outcome.labels.astype(np.int32), Weighted(outcome.centroids, np.bincount(outcome.labels).astype(np.float64))


@dataclass
class Part:
    """What became of micro-clusters that came in together: each went `into` one of those of the `whole`."""

    micro: Weighted
    into: IntArray | None = None
    whole: "Part | None" = None

    def join(self, whole: "Part", into: IntArray) -> None:
        """Become part of something larger; from here on that stands for these."""
        self.whole, self.into = whole, into
        self.micro = Weighted(np.empty((0, 0)), np.empty(0))

    def final(self) -> IntArray:
        """Of each, which of those it is part of that are left in the end."""
        if self.whole is None or self.into is None:
            return np.arange(len(self.micro))
        return self.whole.final()[self.into]


@dataclass
class Merger:
    """Micro-clusters of blocks as they come in, and what they are merged into.

    Those of one round wait until they fill a block. Then they compete, and the clusters that are left wait in the next
    round. So masses that compete are of about the same size, and the time is that of learning a few blocks more.
    """

    learning: Learning
    rng: np.random.Generator
    waiting: list[list[Part]] = field(default_factory=list)  # by round

    def add(self, micro: Weighted) -> Part:
        """The micro-clusters of one more block."""
        part = Part(micro)
        self._wait(part, 0)
        return part

    def finish(self) -> Weighted:
        """All that are left; now every part knows where it went."""
        left = [part for waiting in self.waiting for part in waiting]
        return (left[0] if len(left) == 1 else self._compete(left)).micro

    def _wait(self, part: Part, number: int) -> None:
        if number == len(self.waiting):
            self.waiting.append([])
        self.waiting[number].append(part)
        if sum(len(one.micro) for one in self.waiting[number]) > BLOCK:
            together = self._compete(self.waiting[number])
            self.waiting[number] = []
            self._wait(together, number + 1)

    def _compete(self, parts: list[Part]) -> Part:
        everybody = put_together(part.micro for part in parts)
        candidates = self.learning.candidates(len(everybody))
        outcome = compete(everybody.centroids, candidates, self.learning, self.rng, mass=everybody.mass)
        whole = Part(everybody.merged(outcome.labels))
        ends = np.cumsum([len(part.micro) for part in parts])
        for part, into in zip(parts, np.split(outcome.labels, ends[:-1]), strict=True):
            part.join(whole, into)
        return whole


def learn_in_blocks(
    blocks: Iterable[FloatArray], n_rows: int, learning: Learning, rng: np.random.Generator, n_jobs: int | None = None
) -> tuple[RowLabels, Weighted]:
    """The micro-cluster of every row, and the micro-clusters; all `blocks` together have `n_rows`."""
    learning = replace(
        learning,
        initial_fraction=min(learning.initial_fraction, BLOCK_CANDIDATES),
        max_epochs=min(learning.max_epochs, BLOCK_EPOCHS),
    )
    merger = Merger(learning, rng.spawn(1)[0])
    labels, parts, start = np.empty(n_rows, dtype=np.int32), list[tuple[slice, Part]](), 0
    for own, micro in side_by_side(learn_block, works_of(blocks, learning, rng), n_jobs):
        where = slice(start, start + len(own))
        labels[where], start = own, where.stop
        parts.append((where, merger.add(micro)))
    micro = merger.finish()
    for where, part in parts:
        labels[where] = part.final()[labels[where]]
    return labels, micro


def works_of(blocks: Iterable[FloatArray], learning: Learning, rng: np.random.Generator) -> Iterator[Work]:
    """Every block with randomness that hangs on its place alone."""
    for rows in blocks:
        yield Work(rows, learning, rng.spawn(1)[0])
