"""Columns of a site that do not look like the others': in other units, moved, or the same in all rows.

Messages are hostile until they are checked, so no site may have another one blamed. Every other site has one vote,
whatever its rows: it compares the column's mean and spread with its own. It takes two thirds of the votes to call a
column odd; and to refuse it, twice as much of a difference, five sites, and most of them not odd. So two hostile ones
of eight need three of the five honest others. By how much sites that see different clusters differ anyway is measured
in benchmarks/plausible.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray
from goldfc.errors import BadMessage
from goldfc.learning.micro_clusters import diagonal_of
from goldfc.message.summary import Summary
from goldfc.message.units import FITS, SPREADS_DIFFER, Conversion, Look, likely, short

# A mean lies far out from so many spreads of the others on, and a spread is wide. Student's t with two degrees of
# freedom makes honest spreads ten times as wide.
FAR_FROM_OTHERS, WIDE = 5.0, 20.0
# Mean and spread are both so many times the others', or one part of so many. What comes near to zero honestly becomes
# small there: where the spread is more than so much of the mean it takes more, and where it is far more nothing counts.
TIMES, TIMES_NEAR_ZERO = 6.0, 60.0
CLEAR_OF_ZERO, NEAR_ZERO = 0.6, 2.0
# Not so where so much of the site's rows lies within so many spreads of the others': then only some are unlike them.
# That its micro-centroids tell, if its spread is at most so many times theirs.
MIXED, REACH, WITHIN = 0.3, 3.0, 3.0
# A refusal takes so many times as much as a warning, and so many sites. So do two sites, of whom nobody is the odd one.
SURE, LEAST_TO_REFUSE, LEAST_TO_NAME = 2.0, 5, 3
# What spreads by less, relative to its mean, is constant up to rounding.
UP_TO_ROUNDING = 1e-9
# A constant is natural where so much of the others' rows have its value, up to so much of their spread; or up to half a
# step of what they tell, which shows in so many different values, but not more than so much.
NATURAL, SAME, STEPS, MOST_BESIDE = 0.2, 0.1, 5, 0.25
# So many sentences are said: a page or a status file has no room for thousands. Swaps are sought in so many columns.
MOST_SAID, MOST_SWAPPED = 10, 50

KindOfOddness = Literal["other", "constant", "apart"]


@dataclass(frozen=True)
class Looks:
    """What every site (down) tells of every column of numbers (across); nan where it does not tell."""

    sites: tuple[str, ...]
    columns: tuple[str, ...]
    units: tuple[str, ...]
    means: FloatArray
    spreads: FloatArray  # standard deviations
    centroids: tuple[FloatArray, ...]  # of every site
    masses: tuple[FloatArray, ...]

    @classmethod
    def of(cls, summaries: Sequence[Summary]) -> Self:
        """Out of their messages."""
        numbers = summaries[0].layout.numbers
        named = summaries[0].terms.features
        looks = [look_of(summary) for summary in summaries]
        return cls(
            sites=tuple(summary.site for summary in summaries),
            columns=tuple(named[n].name if named else f"column {n + 1}" for n in numbers),
            units=tuple(named[n].unit if named else "" for n in numbers),
            means=np.array([mean for mean, _ in looks]),
            spreads=np.array([spread for _, spread in looks]),
            centroids=tuple(summary.centroids[:, numbers] for summary in summaries),
            masses=tuple(summary.masses for summary in summaries),
        )

    @property
    def tells_spreads(self) -> NDArray[np.bool_]:
        """Who tells more than one mean."""
        return np.asarray(np.isfinite(self.spreads).all(axis=1))

    def about(self, column: int) -> str:
        """What a column is called, and its unit."""
        return f"{self.columns[column]} {self.units[column]}"


def look_of(summary: Summary) -> tuple[FloatArray, FloatArray]:
    """Mean and spread of every column of numbers: as told, or as the micro-clusters have them."""
    numbers = summary.layout.numbers
    if summary.moments is not None:
        mean, spread = summary.moments.mean[numbers], np.sqrt(summary.moments.variance[numbers])
        return mean, np.where(spread > UP_TO_ROUNDING * np.abs(mean), spread, 0.0)
    centroids, weights = summary.centroids[:, numbers], summary.masses
    mean = np.average(centroids, axis=0, weights=weights)
    within = 0.0 if summary.shape is None else diagonal_of(summary.shape)
    spread = np.sqrt(np.average((centroids - mean) ** 2, axis=0, weights=weights) + within)
    return mean, spread if len(centroids) > 1 else np.full(len(numbers), np.nan)


@dataclass(frozen=True)
class Odd:
    """A column that is odd at one site; or at nobody knows which, where the site is None."""

    kind: KindOfOddness
    site: str | None
    column: str
    number: int  # of the column, among the columns of numbers
    times: float  # how many times as much as it takes for a warning
    sure: bool  # whether it may be refused
    sentence: str


def odd_columns(told: Looks) -> list[Odd]:
    """All that are odd, the oddest first."""
    if len(told.sites) < 2 or not told.columns:
        return []
    counts = [count_votes(told, site) for site in range(len(told.sites))]
    votes = Votes(*(np.array(part) for part in zip(*counts, strict=True)))
    doubtful = (votes.most >= 1.0).any(axis=0) | (votes.times >= 1.0).any(axis=0)
    found = [odd for column in np.flatnonzero(doubtful).tolist() for odd in odd_in(told, column, votes)]
    known = {(odd.site, odd.number) for odd in found}
    found += [odd for odd in constants_in(told) if not {(odd.site, odd.number), (None, odd.number)} & known]
    found.sort(key=lambda odd: (-odd.times, odd.number))
    return [*with_swaps(told, found[:MOST_SWAPPED]), *found[MOST_SWAPPED:]]


@dataclass(frozen=True)
class Votes:
    """What the others make of every site (down) in every column (across)."""

    times: FloatArray  # how odd two thirds of those who tell spreads find it, at least
    most: FloatArray  # and most of them
    sure: FloatArray  # and two thirds of all


def count_votes(told: Looks, site: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The votes on one site; 0 where nobody has a vote."""
    others, voters = len(told.sites) - 1, int(told.tells_spreads.sum() - told.tells_spreads[site])
    if not voters:
        return (np.zeros(len(told.columns)),) * 3
    places = [others - place for place in (math.ceil(2 * voters / 3), voters // 2 + 1, math.ceil(2 * others / 3))]
    times, most, sure = np.partition(votes_against(told, site), places, axis=0)[places]
    return times, most, sure


def votes_against(told: Looks, site: int) -> FloatArray:
    """How odd every other site (down) finds every column of one (across): from 1 on, too odd.

    It is too odd for site k if its mean is further from the median of the others' means than FAR_FROM_OTHERS times the
    root mean square of k's rows around that median; if its spread is WIDE times as large; or if mean and spread are
    both TIMES as large, or as small, as those of k. A site many of whose rows are like the others' has clusters that
    they do not see.
    """
    rest = np.arange(len(told.sites)) != site
    own_mean, own_spread = told.means[site], told.spreads[site]
    means, spreads = told.means[rest], told.spreads[rest]
    centre = np.median(means, axis=0)
    around = np.where(spreads > 0.0, np.hypot(spreads, means - centre), np.inf)  # who has a constant has no vote
    size = np.abs(means)
    enough = np.where(spreads <= CLEAR_OF_ZERO * size, TIMES, TIMES_NEAR_ZERO)
    times = both_times(own_mean / nonzero(means), own_spread / nonzero(spreads))
    times = np.where((spreads > 0.0) & (spreads <= NEAR_ZERO * size), times, 1.0)
    larger, smaller = times / TIMES, 1.0 / (enough * times)
    far, wide = np.abs(own_mean - centre) / (FAR_FROM_OTHERS * around), own_spread / (WIDE * around)
    beyond = np.max([np.nan_to_num(vote) for vote in (far, wide, larger)], axis=0)
    beyond *= share_among(told, site, centre, np.nanmedian(np.hypot(spreads, means - centre), axis=0)) < MIXED
    return np.asarray(np.maximum(beyond, np.nan_to_num(smaller)))


def share_among(told: Looks, site: int, centre: FloatArray, around: FloatArray) -> FloatArray:
    """How much of a site's mass lies where the others' rows are, in every column: a fault leaves none there.

    What a site tells of its micro-clusters counts only if these have its mean, and about its spread.
    """
    centroids, mass = told.centroids[site], told.masses[site] / told.masses[site].sum()
    mean = mass @ centroids
    between = np.sqrt(mass @ (centroids - mean) ** 2)
    honest = (np.abs(mean - told.means[site]) <= between) & (told.spreads[site] <= WITHIN * between)
    return np.asarray(mass @ (np.abs(centroids - centre) <= REACH * around) * honest)


def nonzero(values: FloatArray) -> FloatArray:
    """To divide by."""
    return np.where(values == 0.0, np.nan, values)


def both_times(means: FloatArray, spreads: FloatArray) -> FloatArray:
    """By what factor both have grown, or shrunk; the one of the means where a spread is not told, and 1 if neither."""
    spreads = np.where(np.isnan(spreads), means, spreads)
    grown, shrunk = np.fmin(means, spreads), np.fmax(means, spreads)
    same_sign = means > 0.0
    return np.where(
        same_sign & (grown > 1.0), grown, np.where(same_sign & (shrunk < 1.0) & (shrunk > 0.0), shrunk, 1.0)
    )


def odd_in(told: Looks, column: int, votes: Votes) -> Iterator[Odd]:
    """One column: who is odd in it, or that nobody knows."""
    n_sites, times = len(told.sites), votes.times[:, column]
    enough = 1.0 if n_sites >= LEAST_TO_NAME else SURE
    if 2 * (votes.most[:, column] >= enough).sum() >= n_sites:
        yield apart_in(told, column, float(times.max()))
    elif n_sites >= LEAST_TO_NAME:
        for site in np.flatnonzero(times >= 1.0).tolist():
            sure = n_sites >= LEAST_TO_REFUSE and votes.sure[site, column] >= SURE
            yield other_at(told, site, column, float(times[site]), sure=bool(sure))


def apart_in(told: Looks, column: int, times: float) -> Odd:
    """Nobody knows who is right."""
    means = told.means[:, column]
    low, high = int(means.argmin()), int(means.argmax())
    spreads = told.spreads[:, column]
    higher, lower = (Look(float(means[site]), float(spreads[site])) for site in (high, low))
    guess = likely(higher, lower, lower.spread if lower.spread > 0.0 else abs(lower.mean) or 1.0, told.about(column))
    sentence = (
        f"Column {told.columns[column]!r}: the mean is {short(means[low])} at {told.sites[low]} and "
        f"{short(means[high])} at {told.sites[high]}, and nobody can say who is right; other units?{hint(guess)}"
    )
    return Odd("apart", None, told.columns[column], column, times, False, sentence)


def other_at(told: Looks, site: int, column: int, times: float, *, sure: bool) -> Odd:
    """One site is the odd one."""
    own, others, apart = compared(told, site, column)
    guess = likely(own, others, apart, told.about(column))
    moved = guess is not None and guess.factor == 1.0
    asks = "are all values moved?" if moved else "other units?" if guess else "other units, or stray values?"
    sentence = f"{both_looks(told, site, column)}; {asks}{hint(guess)}"
    return Odd("other", told.sites[site], told.columns[column], column, times, sure, sentence)


def compared(told: Looks, site: int, column: int) -> tuple[Look, Look, float]:
    """A column at a site, at the others, and how far the others lie around it: medians."""
    rest = np.arange(len(told.sites)) != site
    means, spreads = told.means[rest, column], told.spreads[rest, column]
    centre = float(np.median(means))
    others = Look(centre, float(np.nanmedian(spreads)))
    apart = float(np.nanmedian(np.hypot(spreads, means - centre)))
    return Look(float(told.means[site, column]), float(told.spreads[site, column])), others, apart


def both_looks(told: Looks, site: int, column: int) -> str:
    """The beginning of a sentence: the means, or where these are alike the spreads."""
    rest = np.arange(len(told.sites)) != site
    means, spreads = told.means[rest, column], told.spreads[rest, column]
    own, spread = told.means[site, column], told.spreads[site, column]
    who = f"Column {told.columns[column]!r}: {told.sites[site]}'s"
    if means.min() <= own <= means.max():
        return f"{who} values spread by {short(spread)}, the others' by {span(spreads)}"
    return f"{who} mean is {short(own)}, the others' {span(means)}"


def constants_in(told: Looks) -> Iterator[Odd]:
    """Who has one value in all rows, while all others' rows differ and hardly any have that value."""
    constant, voters = told.spreads == 0.0, np.flatnonzero(told.tells_spreads).tolist()
    if len(voters) < LEAST_TO_NAME:
        return
    for column in np.flatnonzero(constant.sum(axis=0) == 1).tolist():
        site = int(constant[:, column].argmax())
        rest, value = [k for k in voters if k != site], told.means[site, column]
        if np.median([share_at(told, k, column, value) for k in rest]) < NATURAL:
            name, others = told.sites[site], span(told.spreads[rest, column])
            sentence = (
                f"Column {told.columns[column]!r}: all rows of {name} have {short(value)}, and the others' spread by "
                f"{others}; was it not measured there?"
            )
            yield Odd("constant", name, told.columns[column], column, 1.0, False, sentence)


def share_at(told: Looks, site: int, column: int, value: float) -> float:
    """How much of a site's mass lies at a value, which its message may tell in steps beside it."""
    centroids, spread = told.centroids[site][:, column], told.spreads[site, column]
    each = np.unique(centroids)
    half_a_step = np.diff(each).min() / 2.0 if len(each) >= STEPS else 0.0
    near = np.abs(centroids - value) <= np.clip(half_a_step, SAME * spread, MOST_BESIDE * spread)
    return float(told.masses[site][near].sum() / told.masses[site].sum())


# --- in words ---


def span(values: FloatArray) -> str:
    """From the least to the most of those that are told."""
    low, high = short(float(np.nanmin(values))), short(float(np.nanmax(values)))
    return low if low == high else f"{low} to {high}"


def hint(guess: Conversion | None) -> str:
    """What would fit, if anything would."""
    return "" if guess is None else f" ({guess.text})"


def with_swaps(told: Looks, found: Sequence[Odd]) -> list[Odd]:
    """The same, but where a column of a site is like another one of the others, and that like this, it is asked."""
    return [odd if odd.site is None or odd.kind != "other" else with_swap(told, odd, odd.site) for odd in found]


def with_swap(told: Looks, odd: Odd, name: str) -> Odd:
    """One odd column, of a site of that name."""
    site, own = told.sites.index(name), odd.number
    rest = np.arange(len(told.sites)) != site
    centres, spreads = np.median(told.means[rest], axis=0), np.nanmedian(told.spreads[rest], axis=0)
    apart = np.nanmedian(np.hypot(told.spreads[rest], told.means[rest] - centres), axis=0)
    mean, spread = told.means[site], told.spreads[site]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        there = ((mean[own] - centres) / apart) ** 2 + (np.log(spread[own] / spreads) / SPREADS_DIFFER) ** 2
        back = ((mean - centres[own]) / apart[own]) ** 2 + (np.log(spread / spreads[own]) / SPREADS_DIFFER) ** 2
    misfits = np.nan_to_num(np.maximum(there, back), nan=np.inf)
    misfits[own] = np.inf
    other = int(misfits.argmin())
    if misfits[other] > FITS:
        return odd
    start = odd.sentence.partition(";")[0]
    return replace(odd, sentence=f"{start}; is it swapped with {told.columns[other]!r}?")


def said(odd: Sequence[Odd]) -> tuple[str, ...]:
    """The sentences of the oddest, and how many there are besides."""
    more = len(odd) - MOST_SAID
    rest = (f"And {more} more columns that look odd.",) if more > 0 else ()
    return (*(one.sentence for one in odd[:MOST_SAID]), *rest)


# --- refused ---


def implausible(odd: Sequence[Odd]) -> dict[str, BadMessage]:
    """Why each site is refused whose columns are surely odd."""
    sites = dict.fromkeys(one.site for one in odd if one.sure and one.site is not None)
    return {site: refusal(site, [one for one in odd if one.site == site and one.sure]) for site in sites}


def refusal(site: str, odd: Sequence[Odd]) -> BadMessage:
    """Of one site, by its oddest columns."""
    return BadMessage(
        f"The summary of site {site!r} is implausible. {' '.join(said(odd))} Make it again from a corrected table.",
        "column-implausible",
    )
