"""What a site keeps of its rows between two messages: a short number for each, to recognise it by.

As many numbers as there are rows may be more than fit into memory, so they are gone through in parts.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from goldfc._types import FloatArray, IntArray
from goldfc.byfile.ondisk import PRIVATE_FOLDER, Stored
from goldfc.errors import BadSettings
from goldfc.protocol.message import canonical_json
from goldfc.protocol.wire import write_pieces_durably

ROW_DIGEST_BYTES = 16
# So many are read, and so many are compared, at a time.
MOST_READ, MOST_COMPARED = 2**16, 2**21


class Digests(Protocol):
    """A digest of every row, in memory or on the disk."""

    def __len__(self) -> int: ...

    def __getitem__(self, places: slice, /) -> NDArray[np.uint8]: ...


def row_digests(rows: FloatArray) -> NDArray[np.uint8]:
    """A short number for every row, to recognise it by."""
    content, step = np.ascontiguousarray(rows).tobytes(), rows.shape[1] * rows.itemsize
    digests = b"".join(
        [
            hashlib.blake2b(content[start : start + step], digest_size=ROW_DIGEST_BYTES).digest()
            for start in range(0, len(content), step)
        ]
    )
    return np.frombuffer(digests, np.uint8).reshape(-1, ROW_DIGEST_BYTES)


def pieces_of(digests: Digests) -> Iterator[NDArray[np.uint8]]:
    """All of them, some at a time."""
    for start in range(0, len(digests), MOST_READ):
        yield digests[start : start + MOST_READ]


def same_digests(one: Digests, other: Digests) -> bool:
    """Whether both are the same, in the same order."""
    return len(one) == len(other) and all(map(np.array_equal, pieces_of(one), pieces_of(other)))


def row_difference(before: Digests, after: Digests) -> tuple[int, int]:
    """How many rows came and went."""
    came = went = 0
    for old, new in parts_of(before, after):
        order, starts = sorted_runs(np.concatenate([old, new]))
        balance = np.add.reduceat(np.where(order < len(old), -1, 1), starts)
        came, went = came + int(balance[balance > 0].sum()), went - int(balance[balance < 0].sum())
    return came, went


def count_twins(digests: Digests) -> int:
    """How many rows are the same as an earlier one."""
    return sum(len(own) - len(sorted_runs(own)[1]) for (own,) in parts_of(digests))


def parts_of(*several: Digests) -> Iterator[tuple[NDArray[np.uint64], ...]]:
    """The digests of every set, as pairs of numbers: in parts, each with all that are the same."""
    n_parts = -(-sum(map(len, several)) // MOST_COMPARED)
    for number in range(n_parts):
        yield tuple(part_of(digests, number, n_parts) for digests in several)


def part_of(digests: Digests, number: int, n_parts: int) -> NDArray[np.uint64]:
    """Those whose first bits say that they belong into a part."""
    pairs = [np.empty((0, 2), dtype=np.uint64)]
    for piece in pieces_of(digests):
        own = np.ascontiguousarray(piece).view(np.uint64)
        # The first 32 bits as a share of all parts.
        pairs.append(own[(own[:, 0] >> np.uint64(32)) * np.uint64(n_parts) >> np.uint64(32) == number])
    return np.concatenate(pairs)


def sorted_runs(pairs: NDArray[np.uint64]) -> tuple[IntArray, IntArray]:
    """An order in which those that are the same stand together, as they came; and where each run begins."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    own = pairs[order]
    new = np.ones(len(own), dtype=bool)
    new[1:] = (own[1:] != own[:-1]).any(axis=1)
    return order, np.flatnonzero(new)


# --- the file ---


@dataclass(frozen=True)
class Kept:
    """What a site keeps of a message."""

    client: str
    sent: str
    rows: Digests


def write_kept(path: Path, rows: Digests, facts: dict[str, str]) -> None:
    """As a file of safetensors, piece by piece."""
    size = len(rows) * ROW_DIGEST_BYTES
    header: dict[str, Any] = {
        "__metadata__": {"goldfc": canonical_json(facts)},
        "rows": {"dtype": "U8", "shape": [len(rows), ROW_DIGEST_BYTES], "data_offsets": [0, size]},
    }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    head = (len(text).to_bytes(8, "little"), text)
    write_pieces_durably(path, chain(head, (piece.data for piece in pieces_of(rows))), private=True)


@contextmanager
def open_kept(path: Path) -> Iterator[Kept]:
    """What a file says; its digests can be read as long as it is open."""
    with telling_damage(path), safe_open(path, "numpy") as file:
        facts = json.loads(file.metadata()["goldfc"])
        client, sent = str(facts["client"]), str(facts["sent"])
        n_rows, width = file.get_slice("rows").get_shape()
        if width != ROW_DIGEST_BYTES:
            raise ValueError("there must be one digest for every row")
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield Kept(client, sent, Stored(handle, n_rows, ROW_DIGEST_BYTES, start_of_rows(handle)))
    finally:
        os.close(handle)


@contextmanager
def telling_damage(path: Path) -> Iterator[None]:
    """Say which file cannot be read."""
    try:
        yield
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise BadSettings(f"{PRIVATE_FOLDER}/{path.name} is damaged; remove it and summarise again.") from error


def start_of_rows(handle: int) -> int:
    """Where in the file the digests begin."""
    length = int.from_bytes(os.pread(handle, 8, 0), "little")
    header = json.loads(os.pread(handle, length, 8))
    return 8 + length + int(header["rows"]["data_offsets"][0])
