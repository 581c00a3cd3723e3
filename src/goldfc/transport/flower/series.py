"""Rounds that follow one another: a folder with a folder for each, by its number.

A round is over when its sites have been asked to label. One that was cut off is run again, with the same number: its
sites give the same answers. The next one needs the folder of the last one alone, in which the latest summary of every
site is kept, whatever round that is of; so no round costs more than the one before.
"""

from dataclasses import dataclass
from pathlib import Path

from goldfc.server.deliver import MODEL
from goldfc.transport.flower.job import ACCEPTED, STATUS, Status


@dataclass(frozen=True)
class Place:
    """Where a round of a series belongs, and what it begins with."""

    number: int
    folder: Path
    before: Path | None  # the folder of the last round

    @property
    def after(self) -> Path | None:
        """The last model."""
        return None if self.before is None else self.before / MODEL

    @property
    def kept(self) -> Path | None:
        """The summaries that are remembered."""
        return None if self.before is None else self.before / ACCEPTED


def next_place(series: Path, first: int) -> Place:
    """Where the next round belongs: after the last that is over, and not before the `first`."""
    over = [number for number in rounds_in(series) if is_over(series / str(number))]
    last = max(over, default=None)
    number = first if last is None else max(first, last + 1)
    return Place(number, series / str(number), None if last is None else series / str(last))


def rounds_in(series: Path) -> list[int]:
    """The rounds that there are folders of."""
    return [int(path.name) for path in series.glob("*") if path.name.isdecimal() and path.is_dir()]


def is_over(folder: Path) -> bool:
    """Whether a round has come to its end, and has a model."""
    status = folder / STATUS
    return status.is_file() and Status.read(status).state == "done" and (folder / MODEL).is_file()
