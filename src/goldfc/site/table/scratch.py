"""Rows on the disk while a site works on them: in a file that is gone when the process is."""

import errno
import os
import secrets
import shutil
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray
from goldfc.errors import BadSettings
from goldfc.files import PRIVATE_FOLDER, open_scratch, private_folder, read_into, write_at

# Rows that are no more than so many rows apart are read together, and at most so many of them.
NEAR, MOST_AT_ONCE = 4, 1_000


class Scratch(AbstractContextManager["Scratch"]):
    """A file that grows, and that can be read anywhere, from several threads at once."""

    def __init__(self, data: Path) -> None:
        self.folder = data.parent
        self.size = 0
        self.was_there = (self.folder / PRIVATE_FOLDER).exists()
        self.handle = open_scratch(private_folder(data) / f".{secrets.token_hex(8)}.scratch")
        self.tidy_up()

    def __exit__(self, *_: object) -> None:
        os.close(self.handle)
        self.tidy_up()

    def tidy_up(self) -> None:
        """Remove the folder, if it was made for this file and holds nothing (any more)."""
        if not self.was_there:
            with suppress(OSError):
                (self.folder / PRIVATE_FOLDER).rmdir()

    def append(self, numbers: NDArray[np.generic]) -> None:
        """Some more bytes."""
        content = np.ascontiguousarray(numbers).reshape(-1).view(np.uint8).data
        try:
            while content:
                written = write_at(self.handle, content, self.size)
                self.size += written
                content = content[written:]
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            raise self.is_full(len(content)) from error

    def check_room(self, needed: int) -> None:
        """Refuse work that would not fit, before it is begun."""
        if needed > shutil.disk_usage(self.folder).free:
            raise self.is_full(needed)

    def is_full(self, needed: int) -> BadSettings:
        """What to say then."""
        free = shutil.disk_usage(self.folder).free
        return BadSettings(
            f"A table of this size is worked on from the disk: for a while it takes {needed / 1e6:,.0f} MB more beside "
            f"the data, and {free / 1e6:,.0f} MB are free; make room, or move the data to a larger disk.",
            "disk-too-small",
        )


@dataclass(frozen=True)
class Stored:
    """Short byte strings of one length, somewhere in an open file."""

    handle: int
    count: int
    length: int
    start: int = 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, places: slice) -> NDArray[np.uint8]:
        start, stop, _ = places.indices(self.count)
        found = np.empty((max(0, stop - start), self.length), dtype=np.uint8)
        read_array(self.handle, found, self.start + start * self.length)
        return found


@dataclass(frozen=True)
class OnDisk:
    """Rows in a scratch file."""

    scratch: Scratch
    n_features: int

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and features there are."""
        return self.scratch.size // (8 * self.n_features), self.n_features

    def read(self, start: int, stop: int) -> FloatArray:
        """Some rows, as an array of their own."""
        found = np.empty((stop - start, self.n_features))
        # Not mapped into memory: pages that were looked at would count as used.
        read_array(self.scratch.handle, found, start * 8 * self.n_features)
        return found

    def take(self, places: NDArray[np.integer]) -> FloatArray:
        """Rows at ascending places; those between two of them are read only where these are neighbours, or nearly."""
        found, breaks = (
            np.empty((len(places), self.n_features)),
            np.flatnonzero(np.diff(places) > NEAR) + 1,
        )
        for start, stop in pairwise([0, *breaks.tolist(), len(places)]):
            for first in range(start, stop, MOST_AT_ONCE):
                last = min(first + MOST_AT_ONCE, stop)
                self.take_near(places[first:last], found[first:last])
        return found

    def take_near(self, places: NDArray[np.integer], found: FloatArray) -> None:
        """The same of places that are neighbours, or nearly."""
        start, stop = int(places[0]), int(places[-1]) + 1
        if stop - start == len(places):
            read_array(self.scratch.handle, found, start * 8 * self.n_features)
        else:
            found[:] = self.read(start, stop)[places - start]


def read_array(handle: int, found: NDArray[np.generic], offset: int) -> None:
    """Read an array from a place in a file."""
    rest = found.reshape(-1).view(np.uint8).data
    while rest:
        count = read_into(handle, rest, offset)
        if not count:
            raise OSError(errno.EIO, "A file became shorter while it was read")
        rest, offset = rest[count:], offset + count
