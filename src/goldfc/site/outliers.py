"""Values of a site's own columns that hardly belong there: a part in other units, stray values, a constant.

One pass over the rows, and another one where something is found; a sample and the ends of every column are in memory.
What is far out is told by the gaps between values, not by quartiles: columns that are skewed or have heavy tails have
far values, but these do not keep so far from one another. Missing values (nan) do not count.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from goldfc._types import FloatArray
from goldfc.learning.rows import RowSource, Sample, as_source, sweep
from goldfc.message.units import short

# Rows in the sample, and values at either end of every column.
ROWS_LOOKED_AT, VALUES_AT_ENDS = 10_000, 40
# With fewer values nothing stands out, and fewer are no group.
FEWEST, GROUP = 20, 5
# What a mark of thousands makes of a number when it is taken for a decimal mark. Between such values and the others is
# nothing over so many times their upper end, and multiplied they meet the others, up to so much; or they alone have
# three decimals, and the others are whole, larger than so many, and more than so rare as they are by chance.
THOUSAND, EMPTY, MEETS, WHOLE, BY_CHANCE = 1_000.0, 10.0, 1.5, 50.0, 0.02
# Groups with zeros of their own: what is between them is so many times as wide as either.
ANOTHER_ZERO = 30.0
# A stray value is so many times as far from the median as the next, and as rare as that in a tail like that of so many
# next ones. At most so many are stray.
STRAY, SURPRISE, TAIL, MOST_STRAY = 6.0, math.log(1e6), 10, 2
# Numbers that stand for a missing value, with either sign, where they lie so many times as far out as the next.
CODES, CODE = (1.0, 9.0, 99.0, 999.0, 9_999.0, 99_999.0, 999_999.0), 3.0
# With a minus sign, these stand out among numbers that have none, however few they are.
CODE_ASKED = "does it stand for a missing value?"
NEGATIVE, FEW = (-9.0, -99.0, -999.0, -9_999.0, -99_999.0, -999_999.0), 2

KindOfOutlier = Literal["constant", "thousands", "zero", "code", "stray"]


@dataclass(frozen=True)
class Outlier:
    """What is odd in a column: how many values, the first of them and its row, from 0 on, and what it may come from."""

    column: str
    kind: KindOfOutlier
    count: int
    row: int
    value: float
    suspicion: str


@dataclass(frozen=True)
class Suspect:
    """Values of a column from `low` to `high`, and what is to be said of them."""

    kind: KindOfOutlier
    low: float
    high: float
    suspicion: str
    fewest: int = 1  # rarer it is left alone


def outliers(rows: FloatArray | RowSource, columns: Sequence[str]) -> list[Outlier]:
    """What hardly belongs there, column by column: rows of numbers, with their columns' names."""
    source = as_source(rows)
    sample, ends = Sample(source, ROWS_LOOKED_AT), Farthest()
    sweep(source, sample, ends)
    suspects = [
        (number, one)
        for number in range(len(columns))
        for one in suspects_in(sample.rows[:, number], ends.values[:, number])
    ]
    counted = Counted(suspects)
    if suspects:
        sweep(source, counted)
    found = zip(suspects, counted.count, counted.row, counted.value, strict=True)
    return [
        Outlier(columns[number], one.kind, int(count), int(row), float(value), one.suspicion)
        for (number, one), count, row, value in found
        if count >= one.fewest
    ]


class Farthest:
    """Collects the lowest and the highest values of every column, so that none is missed beside the sample."""

    def __init__(self) -> None:
        self.values: FloatArray = np.empty((0, 0))

    def see(self, where: slice, rows: FloatArray) -> None:  # noqa: ARG002
        """One more block."""
        if len(self.values):
            # Of most rows no value is further out than those that there are.
            low = np.nan_to_num(self.values[-VALUES_AT_ENDS - 1], nan=np.inf)
            rows = rows[((rows < low) | (rows > self.values[-1])).any(axis=1)]
        if not len(rows):
            return
        ordered = np.sort(np.concatenate([self.values, rows]) if len(self.values) else rows, axis=0)
        there = np.isfinite(ordered).sum(axis=0)  # nan comes last
        highest = np.maximum(there - 1 - np.arange(VALUES_AT_ENDS)[:, None], 0)
        self.values = np.concatenate([ordered[:VALUES_AT_ENDS], np.take_along_axis(ordered, highest, axis=0)])


class Counted:
    """Collects how many values lie between the limits of every suspect, and the first of them."""

    def __init__(self, suspects: Sequence[tuple[int, Suspect]]) -> None:
        self._suspects = suspects
        self.count, self.row = np.zeros((2, len(suspects)), dtype=np.int64)
        self.value = np.zeros(len(suspects))

    def see(self, where: slice, rows: FloatArray) -> None:
        """One more block."""
        for place, (number, one) in enumerate(self._suspects):
            found = np.flatnonzero((rows[:, number] >= one.low) & (rows[:, number] <= one.high))
            if len(found) and not self.count[place]:
                self.row[place], self.value[place] = where.start + found[0], rows[found[0], number]
            self.count[place] += len(found)


# --- what is odd ---


def suspects_in(sample: FloatArray, ends: FloatArray) -> list[Suspect]:
    """Of one column; a group of values explains what is far."""
    present = sample[np.isfinite(sample)]
    if len(present) < FEWEST:
        return []
    values = np.unique(np.concatenate([present, ends[np.isfinite(ends)]]))
    if len(values) == 1:
        return [Suspect("constant", values[0], values[0], f"every row has {short(values[0])}")]
    if group := by_decimals(values) or by_factor(values) or by_zero(values):
        return [group]
    if values[0] in NEGATIVE and values[1] >= 0.0:
        return [Suspect("code", values[0], values[0], CODE_ASKED, FEW)]
    middle = float(np.median(present))
    mirrored = [Suspect(one.kind, -one.high, -one.low, one.suspicion) for one in far_above(-values[::-1], -middle)]
    return [*far_above(values, middle), *mirrored]


def halves(values: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Ascending values below and above the widest gap, and how wide that is."""
    gaps = np.diff(values)
    widest = int(gaps.argmax())
    return values[: widest + 1], values[widest + 1 :], float(gaps[widest])


def by_factor(values: FloatArray) -> Suspect | None:
    """A group of positive values that lies a factor of a thousand away from the others, with nothing in between."""
    positive = values[values > 0.0]
    if values[0] < 0.0 or len(positive) < 2 * GROUP:
        return None
    low, high, gap = halves(np.log(positive))
    raised = low + math.log(THOUSAND)
    meets = raised[-1] >= high[0] - math.log(MEETS) and raised[0] <= high[-1] + math.log(MEETS)
    if not meets or gap < math.log(EMPTY) or min(len(low), len(high)) < GROUP:
        return None
    few, times = (low, "1/1000 of") if len(low) <= len(high) else (high, "1000 times")
    return suspect_thousands(np.exp(few), f"about {times} what the others are: ")


def by_decimals(values: FloatArray) -> Suspect | None:
    """Values from 1 to 1000 with three decimals among whole numbers that are as large as they without their mark."""
    whole = values == np.floor(values)
    odd, even = values[~whole], values[whole]
    if (
        min(len(odd), len(even)) < max(GROUP, BY_CHANCE * len(values))
        or odd[0] < 1.0
        or odd[-1] >= THOUSAND
        or np.median(even) < WHOLE
    ):
        return None
    in_thousands, in_hundreds = (np.abs(np.rint(odd * times) / times - odd) < 1e-9 * odd for times in (1_000.0, 100.0))
    if not in_thousands.all() or in_hundreds.mean() > 0.5:
        return None
    return suspect_thousands(odd, "with three decimals among whole numbers: ")


def suspect_thousands(values: FloatArray, what: str) -> Suspect:
    """Values between their ends, with room for rounding."""
    low, high = float(values[0]) * (1.0 - 1e-9), float(values[-1]) * (1.0 + 1e-9)
    return Suspect("thousands", low, high, f"{what}was a mark of thousands taken for a decimal mark?")


def by_zero(values: FloatArray) -> Suspect | None:
    """A group that lies so far from the others, for how wide they are, that it may count from another zero."""
    low, high, gap = halves(values)
    wider = max(np.ptp(low), np.ptp(high))
    if min(len(low), len(high)) < GROUP or gap < ANOTHER_ZERO * wider:
        return None
    few, side = (low, "below") if len(low) <= len(high) else (high, "above")
    apart = short(float(np.median(high) - np.median(low)))
    return Suspect("zero", few[0], few[-1], f"about {apart} {side} the others: do they count from another zero?")


def far_above(values: FloatArray, middle: float) -> Iterator[Suspect]:
    """Values at the upper end that stand for missing ones, or are stray."""
    far = (values - middle)[::-1]
    if len(far) < TAIL + MOST_STRAY + 1 or far[TAIL + MOST_STRAY] <= 0.0:
        return
    if abs(values[-1]) in CODES and far[0] >= CODE * far[1]:
        yield Suspect("code", values[-1], values[-1], CODE_ASKED, GROUP)
        return
    for count in range(MOST_STRAY, 0, -1):
        # Hill: in a tail that falls with the power alpha, the logarithms of distances exceed the last by 1 / alpha.
        tail = far[count : count + TAIL + 1]
        exceeds = float(np.log(tail[:-1] / tail[-1]).mean())
        times = float(far[count - 1] / far[count])
        if times >= STRAY and math.log(times) >= SURPRISE * exceeds:
            yield Suspect("stray", values[-count], values[-1], f"{times:.3g} times as far out as the next.")
            return
