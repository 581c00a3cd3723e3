"""What the rows say: means over draws, the judge beside the best choice, the price of federation, and targets."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from goldfc._types import FloatArray
from goldfc_bench.families import Family
from goldfc_bench.shapes.ours import ALONE, DEFAULT, ONE_SITE, PROPOSED
from goldfc_bench.shapes.rivals import K_MEANS, MIXED_MIXTURE, POOLED
from goldfc_bench.shapes.run import BINS, Row

# How much worse than the best kind alone the judge's choice may be.
NEAR = 0.03


@dataclass(frozen=True)
class Target:
    """What was asked for, what is, and whether that is enough; None if it cannot be said."""

    what: str
    wanted: str
    figure: str
    met: bool | None

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """A line of a table."""
        return self.what, self.wanted, self.figure, {True: "met", False: "missed", None: "not measured"}[self.met]


@dataclass(frozen=True)
class Results:
    """All rows of some families; every figure of a family is a mean over its draws."""

    families: Sequence[Family]
    rows: Sequence[Row]

    @cached_property
    def _means(self) -> dict[tuple[str, str], float]:
        found: dict[tuple[str, str], list[float]] = {}
        for row in self.rows:
            if row.ari is not None:
                found.setdefault((row.family, row.method), []).append(row.ari)
        return {key: float(np.mean(values)) for key, values in found.items()}

    def ari(self, family: str, method: str) -> float:
        """Of one method on one family; nan if it has no figure."""
        return self._means.get((family, method), math.nan)

    def of(self, method: str, families: Iterable[str] | None = None) -> FloatArray:
        """The same for all families, or some."""
        names = self.names if families is None else families
        return np.array([self.ari(name, method) for name in names])

    @property
    def names(self) -> list[str]:
        """Of all families."""
        return [family.name for family in self.families]

    @property
    def mixed(self) -> list[str]:
        """The families that are mixed tables."""
        return [family.name for family in self.families if family.kind == "mixed"]

    def rows_of(self, family: str, method: str) -> list[Row]:
        """One for every draw."""
        return [row for row in self.rows if (row.family, row.method) == (family, method)]

    # --- one family ---

    def best(self, family: str, methods: Iterable[str]) -> tuple[str, float]:
        """The best of some methods on a family, and its ARI."""
        figures = {name: self.ari(family, name) for name in methods if not math.isnan(self.ari(family, name))}
        if not figures:
            return "", math.nan
        name = max(figures, key=lambda method: figures[method])
        return name, figures[name]

    def best_kind(self, family: str) -> tuple[str, float]:
        """What an oracle would have the judge choose, if it had to be the same in all draws."""
        return self.best(family, ALONE)

    def best_pooled(self, family: str) -> tuple[str, float]:
        """The best of all that had the rows in one place."""
        return self.best(family, (*POOLED, MIXED_MIXTURE))

    def judged(self, family: str) -> str:
        """The kinds that were believed, and in how many draws if not in all."""
        kinds = Counter(str(row.details.get("kind", row.status)) for row in self.rows_of(family, DEFAULT))
        if len(kinds) == 1:
            return next(iter(kinds))
        return ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())

    def loss(self, family: str) -> float:
        """How far the judge's choice is below the best kind alone."""
        return self.best_kind(family)[1] - self.ari(family, DEFAULT)

    def price(self, family: str) -> float:
        """What is lost because the rows are at eight sites and not at one."""
        return self.ari(family, ONE_SITE) - self.ari(family, DEFAULT)

    # --- all families ---

    def leads(self) -> dict[str, float]:
        """Of the default over each pooled algorithm, in the mean over the families that it has a figure for."""
        return {name: mean(self.of(DEFAULT) - self.of(name)) for name in POOLED}

    def bins(self, families: Iterable[str] | None = None) -> FloatArray:
        """For every tenth of certainty of the default: rows, their certainties added up, and how many are right."""
        total, names = np.zeros((BINS, 3)), set(self.names if families is None else families)
        for row in self.rows:
            if row.method == DEFAULT and row.family in names and row.certainty:
                total += np.array(row.certainty)
        return total

    def calibration_error(self, families: Iterable[str] | None = None) -> float:
        """How far certainty is from the share of rows that are right, in the mean over rows, tenth by tenth."""
        rows, certainty, right = self.bins(families).T
        return float(np.abs(certainty - right).sum() / rows.sum()) if rows.sum() else math.nan

    def targets(self) -> list[Target]:
        """What was wanted of families."""
        below = self.of(DEFAULT) - self.of(K_MEANS)
        worst = int(np.nanargmin(below))
        near = np.array([self.loss(name) <= NEAR for name in self.names])
        rival, lead = min(self.leads().items(), key=lambda pair: math.inf if math.isnan(pair[1]) else pair[1])
        price = mean(np.array([self.price(name) for name in self.names]))
        proposed = mean(self.of(PROPOSED)) / mean(self.of(DEFAULT))
        error = self.calibration_error()
        return [
            at_least("mean ARI of the default", mean(self.of(DEFAULT)), 0.88),
            Target("its lead over the best single pooled algorithm", "above 0", f"{lead:+.3f} ({rival})", lead > 0.0),
            Target(
                "no family far below pooled k-means",
                "at most .02",
                f"{(below < -0.02).sum()} families; worst {below[worst]:+.3f} ({self.names[worst]})",
                bool(below[worst] >= -0.02),
            ),
            Target(
                f"families within {short(NEAR)} of the best of its own kinds",
                "at least 80 %",
                f"{near.sum()} of {len(near)} ({near.mean():.0%})",
                bool(near.mean() >= 0.8),
            ),
            Target("price of federation, mean", "at most .03", f"{price:+.3f}", price <= 0.03),
            Target(
                "ARI with the number proposed, of that with it given",
                "at least 90 %",
                f"{proposed:.1%}",
                proposed >= 0.9,
            ),
            self._mixed_target("mixed tables, number given, of the pooled mixed mixture", DEFAULT, 0.92),
            self._mixed_target("mixed tables, number proposed, of the pooled mixed mixture", PROPOSED, 0.8),
            Target("calibration error of certainty", "at most .1", f"{error:.3f}", error <= 0.1),
        ]

    def _mixed_target(self, what: str, method: str, wanted: float) -> Target:
        if not self.mixed:
            return Target(what, f"at least {wanted:.0%}", "-", None)
        share = mean(self.of(method, self.mixed)) / mean(self.of(MIXED_MIXTURE, self.mixed))
        return Target(what, f"at least {wanted:.0%}", f"{share:.1%}", share >= wanted)


def at_least(what: str, figure: float, wanted: float) -> Target:
    """A target for a plain figure."""
    return Target(what, f"at least {short(wanted)}", f"{figure:.3f}", figure >= wanted)


def mean(values: FloatArray) -> float:
    """Of those that are there; nan if none is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def short(value: float, decimals: int = 2) -> str:
    """.93 instead of 0.93; a dash where there is nothing."""
    if math.isnan(value):
        return "-"
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.{decimals}f}")
