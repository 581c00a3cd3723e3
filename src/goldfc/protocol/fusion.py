"""The two ways to fuse: what each asks of the clients, and how it makes global clusters of their micro-clusters."""

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from goldfc.errors import BadSettings
from goldfc.learning.competition import Learning
from goldfc.learning.consensus import GRANULARITIES, STARTS, Fused, find_consensus
from goldfc.learning.fusion import fuse_levels, level_matches
from goldfc.learning.granularity import find_levels
from goldfc.learning.mixture import MicroClusters
from goldfc.protocol.message import Scaling, Task


class Fusion(Protocol):
    """A way to fuse."""

    @property
    def task(self) -> Task:
        """What is asked of every client."""
        ...

    @property
    def plain_distances(self) -> bool:
        """Whether new rows go to the centroid that is nearest as the crow flies, or undo the covariance in clusters."""
        ...

    @property
    def at_most(self) -> int | None:
        """How many micro-clusters the server fuses at the most; more are merged first."""
        ...

    @property
    def mass_cap(self) -> float | None:
        """How many times the rows of the median client those of any may count; None: all."""
        ...

    def fuse(self, micro: MicroClusters, n_clusters: int, rng: np.random.Generator) -> Fused:
        """Global clusters."""
        ...


@dataclass(frozen=True)
class Consensus:
    """Micro-clusters with mass and shape, and the agreement of many mixtures at several granularities.

    Learning ends early, when micro-clusters are still many, and those that cost least are merged: to at most `most`,
    and to one for `rows_each` rows in the mean.
    """

    learning: Learning = Learning(max_epochs=8)  # noqa: RUF009 (frozen)
    most: int | None = 100
    rows_each: int = 5
    mass: bool = True
    shape: bool = True
    granularities: tuple[float, ...] = GRANULARITIES
    starts: int = STARTS
    at_most: int | None = 20_000
    scaling: Scaling = "given"
    smallest: int = 1
    mass_cap: float | None = None
    plain_distances: ClassVar[bool] = False

    @property
    def task(self) -> Task:
        """What is asked of every client."""
        return Task(
            self.learning,
            self.most,
            self.rows_each,
            self.mass,
            self.shape,
            scaling=self.scaling,
            smallest=self.smallest,
        )

    def fuse(self, micro: MicroClusters, n_clusters: int, rng: np.random.Generator) -> Fused:
        """Global clusters."""
        return find_consensus(micro, n_clusters, rng, granularities=self.granularities, starts=self.starts)


@dataclass(frozen=True)
class Remc:
    """The paper's: centroids alone, MCPL's levels and REMC. `tolerance` is the second stopping rule of MCPL."""

    learning: Learning = Learning()  # noqa: RUF009 (frozen)
    tolerance: float | None = None
    most: int | None = None
    at_most: int | None = None
    scaling: Scaling = "given"
    smallest: int = 1
    mass_cap: float | None = None
    plain_distances: ClassVar[bool] = True

    @property
    def task(self) -> Task:
        """What is asked of every client."""
        return Task(self.learning, self.most, scaling=self.scaling, smallest=self.smallest)

    def fuse(self, micro: MicroClusters, n_clusters: int, rng: np.random.Generator) -> Fused:
        """Global clusters; certain is what has the same value as most of its cluster at all levels."""
        levels = find_levels(micro.centroids, self.learning, rng, tolerance=self.tolerance)
        labels = fuse_levels(levels, n_clusters, rng)
        return Fused(labels, level_matches(levels, labels), levels)


FUSIONS: dict[str, Consensus | Remc] = {"consensus": Consensus(), "remc": Remc()}


def fusion_with(
    name: str, *, learning_rate: float, initial_fraction: float, max_epochs: int | None
) -> Consensus | Remc:
    """A way to fuse by its name, with its learning set; `max_epochs` None is its own."""
    if name not in FUSIONS:
        raise BadSettings(f"fusion must be one of {', '.join(FUSIONS)}, got {name!r}.")
    fusion = FUSIONS[name]
    epochs = fusion.learning.max_epochs if max_epochs is None else max_epochs
    return replace(fusion, learning=Learning(learning_rate, initial_fraction, epochs))
