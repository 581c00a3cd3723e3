"""What a measurement hands over: a table, the targets it was made for, and its figures for machines."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Tick = Callable[[], None]


@dataclass(frozen=True)
class Target:
    """What a figure should be at most."""

    what: str
    figure: float  # nan: it was not measured
    limit: float
    unit: str = ""

    @property
    def verdict(self) -> str:
        """Whether it is met, by the figure."""
        if math.isnan(self.figure):
            return "not measured"
        return "met" if self.figure <= self.limit else "not met"

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """A line of a table."""
        figure = "-" if math.isnan(self.figure) else f"{self.figure:.3g}{self.unit}"
        return self.what, figure, f"{self.limit:g}{self.unit}", self.verdict


@dataclass(frozen=True)
class Table:
    """Words and numbers, ready to be shown."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def as_markdown(self) -> list[str]:
        """Lines for a repository."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return [f"| {' | '.join(cells)} |" for cells in lines]


@dataclass(frozen=True)
class Section:
    """One part of the page."""

    key: str
    title: str
    text: str
    table: Table
    targets: Sequence[Target] = ()
    figures: Sequence[Mapping[str, Any]] = field(default_factory=list)


def short(number: float) -> str:
    """1M instead of 1000000, 12.5k instead of 12500."""
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= unit:
            return f"{number / unit:g}{letter}"
    return f"{number:g}"


def spaced(number: int) -> str:
    """10 000 instead of 10000."""
    return f"{number:,}".replace(",", " ")


def in_seconds(seconds: float) -> str:
    """Two digits that count, or three."""
    return f"{seconds:.3f} s" if seconds < 1.0 else f"{seconds:.2f} s" if seconds < 10.0 else f"{seconds:.1f} s"


def times(ratio: float) -> str:
    """A ratio, with as many decimals as it deserves."""
    return f"{ratio:.2f}" if ratio < 10.0 else f"{ratio:.0f}"
