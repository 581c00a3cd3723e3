"""What to expect of private messages before anything is spent: from public facts alone."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from goldfc.agreement import Agreement
from goldfc.message.levels import Private
from goldfc.site.private.budget import rho_of
from goldfc.site.private.mechanism import cells_for


class Band(NamedTuple):
    """What is left where there are so many micro-clusters, of a site and for every cluster of all sites together."""

    least: float
    low: float  # of the result without privacy, hardly ever less
    usual: float

    @property
    def words(self) -> str:
        """For people."""
        if not self.low:
            return "hopeless: less than half, often nothing"
        return f"about {self.usual:.0%}, at least {self.low:.0%}"


# As it was measured (benchmarks/private). From ENOUGH_CELLS on it is most of the result; in the last one nobody should
# send.
BANDS = (Band(25.0, 0.8, 0.98), Band(10.0, 0.75, 0.93), Band(3.0, 0.4, 0.7), Band(0.0, 0.0, 0.0))
ENOUGH_CELLS = BANDS[1].least
# If nobody says how many clusters there are, hope is for so many.
FEWEST_CLUSTERS = 2
# Those that are tried when an eps is looked for that is enough.
TRIED = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True)
class Plan:
    """A federation of so many sites with so many rows each, and so many clusters."""

    n_features: int
    rows: int
    sites: int
    n_clusters: int
    level: Private
    most: int = 100

    @classmethod
    def of(cls, agreement: Agreement, rows: int, sites: int | None, n_clusters: int, level: Private) -> "Plan":
        """As it was agreed on."""
        sites = sites or max(len(agreement.names), agreement.limits.least_sites)
        return cls(agreement.terms.n_features, rows, sites, n_clusters, level, agreement.task.most)

    def with_eps(self, eps: float) -> "Plan":
        """The same with another eps."""
        level = self.level.model_copy(update={"eps": eps})
        return Plan(self.n_features, self.rows, self.sites, self.n_clusters, level, self.most)

    @property
    def cells(self) -> float:
        """How many micro-clusters a site can tell through the noise."""
        cells = cells_for(self.rows / self.level.most_rows, self.n_features, rho_of(*self.level.budget))
        return min(float(self.most), cells)

    @property
    def for_each_cluster(self) -> float:
        """How many there are for every cluster, of all sites together."""
        return self.cells * self.sites / self.n_clusters

    @property
    def expected(self) -> str:
        """In words."""
        return self.band.words

    @property
    def band(self) -> Band:
        """What was measured of such federations: many sites do not help where each can tell next to nothing."""
        return next(band for band in BANDS if min(self.for_each_cluster, self.cells) >= band.least)

    @property
    def is_enough(self) -> bool:
        """Whether most of the result is left."""
        return self.band.least >= ENOUGH_CELLS

    @property
    def is_hopeless(self) -> bool:
        """Whether the budget would be spent for nothing."""
        return self.band == BANDS[-1]

    @property
    def clusters_enough(self) -> int:
        """For how many clusters most of the result is left."""
        return int(self.cells * self.sites / ENOUGH_CELLS)

    @property
    def enough(self) -> float | None:
        """The least eps with which most is left; None if no sensible one is enough."""
        return next((eps for eps in TRIED if self.with_eps(eps).is_enough), None)

    @property
    def sites_enough(self) -> int | None:
        """With how many such sites most is left at this eps; None if a site can tell too little."""
        return math.ceil(ENOUGH_CELLS * self.n_clusters / self.cells) if self.cells >= ENOUGH_CELLS else None
