"""What the server asks of every site."""

import numbers
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

from goldfc.errors import BadSettings
from goldfc.message.levels import PLAIN, Level, level_of, with_fewest
from goldfc.message.message import Message

Scaling = Literal["pooled", "ranges", "given"]


@dataclass(frozen=True)
class Task:
    """What the server asks of every site: how fine to stay, and what to tell of each micro-cluster.

    Parameters
    ----------
    most
        The largest number of micro-clusters.
    rows_each
        How many rows there must be for each of them, in the mean.
    mass
        Whether to tell how many rows each has.
    shape
        Whether to tell how rows lie around them.
    scaling
        "pooled": each site brings its rows to the scale of its own spread, and the server pools the scales; "ranges":
        to the agreed ranges; "given": rows stay as they are.
    level
        The privacy level, which decides what is hidden.
    """

    most: int = 100
    rows_each: int = 5
    mass: bool = True
    shape: bool = True
    scaling: Scaling = "pooled"
    level: Level = PLAIN

    KIND = "summarize"

    def __post_init__(self) -> None:
        """Refuse what no site could do."""
        for name in ("most", "rows_each"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Integral) or int(value) < 1:
                raise BadSettings(f"{name} must be a whole number from 1 on, got {value!r}.", "whole-number")
            object.__setattr__(self, name, int(value))  # numpy's numbers cannot travel
        if self.scaling not in get_args(Scaling):
            raise BadSettings(
                f"scaling must be one of {', '.join(get_args(Scaling))}, got {self.scaling!r}.", "scaling"
            )

    def limit(self, n_rows: int) -> int:
        """How many micro-clusters a site with so many rows may have."""
        return max(1, min(self.most, n_rows // self.rows_each))

    @property
    def smallest(self) -> int:
        """No micro-cluster has fewer rows."""
        return self.level.fewest

    def with_smallest(self, smallest: int, rows_each: int) -> "Task":
        """The same with larger micro-clusters, or smaller ones."""
        return replace(self, level=with_fewest(smallest), rows_each=rows_each)

    def to_message(self) -> Message:
        """As it travels."""
        facts = {one.name: getattr(self, one.name) for one in fields(self)}
        return Message(self.KIND, facts={**facts, "level": self.level.to_fact()})

    @classmethod
    def from_message(cls, message: Message) -> "Task":
        """Read it back; settings out of range are refused as they are anywhere else."""
        with message.read_as(cls.KIND):
            return cls(**{**message.facts, "level": level_of(message.facts["level"])})


Part = Literal["mass", "shape"]


# How many rows there are for a micro-cluster in the mean.
ROWS_EACH = 5
# And how many times the fewest, where there is a limit: otherwise many would have to be merged into a neighbour.
TIMES_THE_SMALLEST = 1.6


def rows_each(smallest: int) -> int:
    """How many rows there are for a micro-cluster in the mean, if none may have fewer than `smallest`."""
    return max(ROWS_EACH, round(TIMES_THE_SMALLEST * smallest))
