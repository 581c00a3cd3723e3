"""Partitions of the same micro-clusters at several granularities."""

from dataclasses import dataclass

from goldfc._types import IntArray


@dataclass(frozen=True)
class Levels:
    """Partitions of the same rows, from fine to coarse: column delta of `labels` is one level, Q_delta."""

    labels: IntArray  # (rows, levels)
    n_clusters: tuple[int, ...]

    def __len__(self) -> int:
        """How many granularities there are."""
        return len(self.n_clusters)
