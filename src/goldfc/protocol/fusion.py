"""How a federation is run: what is asked of every site, and how the server makes global clusters of the answers."""

from dataclasses import dataclass

from goldfc.learning.consensus import STARTS
from goldfc.learning.judge import KINDS, Kind
from goldfc.protocol.message import Scaling, Task


@dataclass(frozen=True)
class OneShot:
    """The default: up to `most` micro-clusters a site, one for `rows_each` rows in the mean; clusters of any kind.

    The server fuses at most `at_most` micro-clusters, more are merged first. The rows of a site count no more than
    `mass_cap` times those of the median site (None: all).
    """

    most: int = 100
    rows_each: int = 5
    mass: bool = True
    shape: bool = True
    scaling: Scaling = "pooled"
    smallest: int = 1
    kinds: tuple[Kind, ...] = KINDS
    starts: int = STARTS
    at_most: int = 5_000
    mass_cap: float | None = None

    @property
    def task(self) -> Task:
        """What is asked of every site."""
        return Task(self.most, self.rows_each, self.mass, self.shape, self.scaling, self.smallest)
