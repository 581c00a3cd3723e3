"""The table of columns by site: what every site tells of every column of numbers, and what looks odd."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from goldfc._types import IntArray
from goldfc.message.summary import Summary
from goldfc.message.units import short
from goldfc.server.plausible import Looks, Odd, odd_columns, said

# More would be no table that anybody reads.
MOST_COLUMNS, MOST_SITES_SHOWN = 40, 20


@dataclass(frozen=True)
class ColumnAtSite:
    """One column at one site."""

    mean: str
    spread: str  # "" where it is not told
    is_odd: bool


@dataclass(frozen=True)
class ColumnsBySite:
    """The columns that differ most (down) at the sites (across), odd ones first, and what is said of these."""

    sites: tuple[str, ...]
    lines: tuple[tuple[str, str, tuple[ColumnAtSite, ...]], ...]  # name, unit, cells
    sentences: tuple[str, ...]
    all_sites: int
    all_columns: int

    @classmethod
    def of(cls, summaries: Sequence[Summary]) -> Self | None:
        """Out of the messages; None where there is no column of numbers."""
        if not summaries or not len(summaries[0].layout.numbers):
            return None
        told = Looks.of(summaries)
        odd = odd_columns(told)
        places = {(one.site, one.number) for one in odd}
        sites, columns = chosen(told, odd)
        return cls(
            sites=tuple(told.sites[site] for site in sites),
            lines=tuple(
                (
                    told.columns[column],
                    told.units[column],
                    tuple(seen_at(told, site, column, (told.sites[site], column) in places) for site in sites),
                )
                for column in columns
            ),
            sentences=said(odd),
            all_sites=len(told.sites),
            all_columns=len(told.columns),
        )


def chosen(told: Looks, odd: Sequence[Odd]) -> tuple[IntArray, IntArray]:
    """Which sites and columns are shown: odd ones, and those in which the means differ most; sites by their names."""
    usual = np.median(np.nan_to_num(told.spreads), axis=0)
    apart = np.ptp(told.means, axis=0) / np.where(usual > 0.0, usual, np.inf)
    columns = list(dict.fromkeys([one.number for one in odd] + np.argsort(-apart, kind="stable").tolist()))
    named = [told.sites.index(one.site) for one in odd if one.site is not None]
    sites = list(dict.fromkeys(named + list(range(len(told.sites)))))
    return np.sort(sites[:MOST_SITES_SHOWN]), np.array(columns[:MOST_COLUMNS])


def seen_at(told: Looks, site: int, column: int, is_odd: bool) -> ColumnAtSite:
    """Mean and spread in few digits."""
    spread = float(told.spreads[site, column])
    return ColumnAtSite(short(float(told.means[site, column])), "" if np.isnan(spread) else short(spread), is_odd)
