"""What to expect of private messages before anything is spent: from public facts alone."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from goldfc.agreement import Agreement
from goldfc.message.levels import Private
from goldfc.site.private.budget import rho_of
from goldfc.site.private.mechanism import cells_for


class Band(NamedTuple):
    """From so many micro-clusters for every cluster on, such a share of the result without privacy is left."""

    least: float
    low: float
    high: float = math.inf

    @property
    def words(self) -> str:
        """For people."""
        if not self.low:
            return "hopeless: less than half, often nothing"
        return f"{self.low:.0%} and more" if self.high == math.inf else f"{self.low:.0%} to {self.high:.0%}"


# As it was measured (benchmarks/private): in the first one most is left; in the last one nobody should send anything.
BANDS = (Band(10.0, 0.92), Band(6.0, 0.8, 0.95), Band(3.0, 0.4, 0.85), Band(0.0, 0.0, 0.5))
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
        """What was measured of such federations."""
        return next(band for band in BANDS if self.for_each_cluster >= band.least)

    @property
    def clusters_enough(self) -> int:
        """For how many clusters most of the result is left."""
        return int(self.cells * self.sites / BANDS[0].least)

    @property
    def is_hopeless(self) -> bool:
        """Whether the budget would be spent for nothing."""
        return self.band == BANDS[-1]

    @property
    def enough(self) -> float | None:
        """The least eps with which most is left; None if no sensible one is enough."""
        return next((eps for eps in TRIED if self.with_eps(eps).for_each_cluster >= BANDS[0].least), None)

    @property
    def sites_enough(self) -> int:
        """With how many such sites most is left at this eps."""
        return math.ceil(BANDS[0].least * self.n_clusters / self.cells)
