"""How a federation is run: what is asked of every site, and how the server makes global clusters of the answers."""

from dataclasses import dataclass

from goldfc.learning.consensus import STARTS
from goldfc.learning.judge import KINDS, Kind
from goldfc.protocol.message import Scaling, Task

# How many rows there are for a micro-cluster in the mean.
ROWS_EACH = 5
# And how many times the fewest, where there is a limit: otherwise many would have to be merged into a neighbour.
TIMES_THE_SMALLEST = 1.6


def rows_each(smallest: int) -> int:
    """How many rows there are for a micro-cluster in the mean, if none may have fewer than `smallest`."""
    return max(ROWS_EACH, round(TIMES_THE_SMALLEST * smallest))


@dataclass(frozen=True)
class OneShot:
    """The default: up to `most` micro-clusters a site, one for `rows_each` rows in the mean; clusters of any kind.

    The server fuses at most `at_most` micro-clusters, more are merged first. The rows of a site count no more than
    `mass_cap` times those of the median site (None: all).
    """

    most: int = 100
    rows_each: int = ROWS_EACH
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
