"""What a site keeps of its rows between two messages, to recognise them by: keyed digests, useless without its secret.

Of every value there is a digest of 32 bits: SipHash-2-4 under a key from the site's secret, of where the value lies
between the lowest and the highest of its column, in millionths. If the table says whose a row is, there is also one of
64 bits of that name. So two tables are compared column by column, whatever the order of columns and rows:

- A column of a new table is measured by the ends of the kept one, which are kept with it; and by its own, if that finds
  more of its values: the lowest and the highest of a column stay what they are in any unit. The second and third lowest
  and highest are tried as well, since the new table may have rows further out.
- A column that has another name, or none of that name before, is compared with all that are left over.
- Rows are the same if the digests of all columns that were found again are. People are the same if their names are.

What cannot be recognised: rows without names whose values were all changed, such as by another rounding.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadSettings
from goldfc.files import open_plain, read_at, write_pieces_durably
from goldfc.learning.rows import RowSource, blocks_of, meanwhile, sample_of
from goldfc.message.message import canonical_json
from goldfc.site.rows import Rows
from goldfc.site.table.cells import People
from goldfc.site.table.scratch import Stored

# Values are told apart to so many parts of their column's range.
PARTS = 1e6
# Where a part ends: at no number that values with few digits have, for in other units these are rounded otherwise.
GOLDEN = 0.6180339887498949
# Beyond this, whole numbers are no longer exact.
FURTHEST = 2.0**53
# So many of the lowest and highest values of a column are tried as its ends.
ENDS = 3
# So many rows are looked for, to see whether a column is the same; this share of them must be found.
ROWS_LOOKED_FOR, FOUND = 4096, 0.5
# So many kept rows are read at a time.
MOST_READ = 2**14
# So many numbers are mixed at a time: they stay near the processor.
AT_ONCE = 2**14

Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Key:
    """128 bits of a site's own."""

    first: int
    second: int

    @classmethod
    def of(cls, secret: bytes, purpose: bytes) -> "Key":
        """One for each purpose, from one secret."""
        both = hashlib.blake2b(purpose, key=secret, digest_size=16).digest()
        return cls(int.from_bytes(both[:8], "little"), int.from_bytes(both[8:], "little"))


def siphash(numbers: Hashes, key: Key) -> Hashes:
    """SipHash-2-4 (Aumasson and Bernstein, 2012) of every number, as a message of eight bytes."""
    found, flat = np.empty(numbers.shape, dtype=np.uint64), numbers.reshape(-1)
    for first in range(0, flat.size, AT_ONCE):
        found.reshape(-1)[first : first + AT_ONCE] = siphash_of_few(flat[first : first + AT_ONCE], key)
    return found


def siphash_of_few(numbers: Hashes, key: Key) -> Hashes:
    """The same of so few that they stay near the processor."""
    start = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    keys = (key.first, key.second, key.first, key.second)
    state = [np.full(numbers.shape, one ^ other, dtype=np.uint64) for one, other in zip(start, keys, strict=True)]
    for block in (numbers, np.uint64(8 << 56)):
        state[3] ^= block
        sip_rounds(state, 2)
        state[0] ^= block
    state[2] ^= np.uint64(0xFF)
    sip_rounds(state, 4)
    return np.asarray(state[0] ^ state[1] ^ state[2] ^ state[3])


def sip_rounds(state: list[Hashes], count: int) -> None:
    """Mix four numbers each, in place; the additions overflow, as they should."""
    for _ in range(count):
        for one, other, turn, half in ((0, 1, 13, True), (2, 3, 16, False), (0, 3, 21, False), (2, 1, 17, True)):
            state[one] += state[other]
            state[other] = rotated(state[other], turn) ^ state[one]
            if half:
                state[one] = rotated(state[one], 32)


def rotated(numbers: Hashes, bits: int) -> Hashes:
    """Every number, its bits turned to the left."""
    return np.asarray((numbers << np.uint64(bits)) | (numbers >> np.uint64(64 - bits)))


# --- rows ---


@dataclass(frozen=True)
class Looked:
    """A table that is to be recognised."""

    rows: Rows
    names: tuple[str, ...]  # of its features
    persons: People | None = None

    @cached_property
    def ends_tried(self) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest values of every feature."""
        return ends_tried(self.rows.source)

    def __len__(self) -> int:
        return self.rows.shape[0]


@dataclass(frozen=True)
class Ends:
    """What the values of every feature are measured by."""

    low: FloatArray
    high: FloatArray


def ends_tried(rows: RowSource) -> tuple[FloatArray, FloatArray]:
    """The lowest and the highest values of every feature, the utmost first; endless where there are fewer."""
    n_features = rows.shape[1]
    low, high = np.full((ENDS, n_features), np.inf), np.full((ENDS, n_features), -np.inf)
    for _, block in blocks_of(rows):
        for feature in range(n_features):
            own = block[:, feature]
            further = own[(own < low[-1, feature]) | (own > high[-1, feature])]
            known = np.concatenate([low[:, feature], high[:, feature], further])
            values = np.unique(known[np.isfinite(known)])
            first, last = values[:ENDS], values[::-1][:ENDS]
            low[: len(first), feature], high[: len(last), feature] = first, last
    return low, high


def digest_of_cells(
    values: FloatArray, low: FloatArray | float, high: FloatArray | float, digest: "Key | PartDigests"
) -> NDArray[np.uint32]:
    """A digest of where each value lies between the ends of its column."""
    span = np.where(np.greater(high, low), np.subtract(high, low), 1.0)
    with np.errstate(over="ignore"):
        parts = np.subtract(values, low)
        parts /= span
        parts *= PARTS
        parts += GOLDEN
        np.clip(np.floor(parts, out=parts), -FURTHEST, FURTHEST, out=parts)
    whole = parts.astype(np.int64)
    return digest(whole) if isinstance(digest, PartDigests) else digest_of_parts(whole, digest)


def digest_of_parts(parts: IntArray, key: Key) -> NDArray[np.uint32]:
    """The upper half of what SipHash makes of them."""
    return (siphash(parts.view(np.uint64), key) >> np.uint64(32)).astype(np.uint32)


class PartDigests:
    """The same for many values: between the ends there are a million and one places, each worked out once."""

    def __init__(self, key: Key) -> None:
        self._key = key
        self._known = digest_of_parts(np.arange(int(PARTS) + 1), key)

    def __call__(self, parts: IntArray) -> NDArray[np.uint32]:
        """Looked up, or worked out where values lie beyond the ends."""
        found = self._known.take(parts, mode="clip")
        beyond = (parts < 0) | (parts > PARTS)
        if beyond.any():
            found[beyond] = digest_of_parts(parts[beyond], self._key)
        return found

    @classmethod
    def for_many(cls, key: Key, count: int) -> "Key | PartDigests":
        """What digests so many values soonest."""
        return cls(key) if count > PARTS else key


def key_of_rows(cells: NDArray[np.uint32] | Hashes) -> Hashes:
    """One number for every row, by its digests."""
    odd = np.random.default_rng(0).integers(2**63, size=cells.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return np.asarray((cells.astype(np.uint64) * odd).sum(axis=1, dtype=np.uint64))


def count_twins(keys: Hashes) -> int:
    """How many rows are the same as an earlier one, by one number for each; these are lost."""
    keys.sort()
    return int((keys[1:] == keys[:-1]).sum())


def key_of_numbers(rows: FloatArray) -> Hashes:
    """One number for every row, by its values."""
    step = max(1, AT_ONCE // rows.shape[1])
    few = (rows[first : first + step] for first in range(0, max(1, len(rows)), step))
    return np.concatenate([key_of_rows(mixed((some + 0.0).view(np.uint64))) for some in few])


def mixed(numbers: Hashes) -> Hashes:
    """Every number with its bits spread, in place; nothing is secret here, so SipHash would only take longer."""
    for turn in (33, 29):
        numbers ^= numbers >> np.uint64(turn)
        numbers *= np.uint64(0xFF51AFD7ED558CCD)
    numbers ^= numbers >> np.uint64(32)
    return numbers


# --- the same people? ---


@dataclass(frozen=True)
class Difference:
    """Between what was kept and what is there now: people who came, went, and stayed."""

    came: int
    went: int
    stayed: int

    @property
    def largely_the_same(self) -> bool:
        """Whether at least half of the smaller group are in the other."""
        return 2 * self.stayed >= min(self.came, self.went) + self.stayed and self.stayed > 0


@dataclass(frozen=True)
class Match:
    """A kept feature that was found again: in which one, and what that is measured by."""

    kept: int
    now: int
    low: float
    high: float


@dataclass(frozen=True)
class Kept:
    """What a site keeps of a message; its digests can be read as long as its file is open."""

    facts: dict[str, Any]
    names: tuple[str, ...]
    ends: Ends
    cells: Stored
    persons: Stored | None

    def __len__(self) -> int:
        return len(self.cells)

    def blocks(self) -> Iterator[NDArray[np.uint32]]:
        """The digests of all values, some rows at a time."""
        for start in range(0, len(self), MOST_READ):
            yield self.cells[start : start + MOST_READ].view(np.uint32)

    def all_persons(self) -> Hashes:
        """The digests of the people's names, each once."""
        return np.unique(self.persons[:].view(np.uint64)) if self.persons is not None else np.empty(0, np.uint64)


def difference(kept: Kept, now: Looked, secret: bytes) -> Difference:
    """Who came and went: by name where both tables have names, and else, and among the same people, by rows."""
    by_name = difference_by_name(kept, now, secret)
    if by_name is not None and (by_name.came or by_name.went):
        return by_name
    by_rows = difference_by_rows(kept, now, Key.of(secret, b"cells"))
    if by_name is None:
        return by_rows
    # The same people: if some of their rows are others, these can be told from the difference as well.
    return Difference(by_rows.came, by_rows.went, by_name.stayed) if by_rows.stayed else by_name


def difference_by_name(kept: Kept, now: Looked, secret: bytes) -> Difference | None:
    """None if one of the tables does not say whose its rows are."""
    if kept.persons is None or now.persons is None:
        return None
    old, new = kept.all_persons(), siphash(now.persons.digest, Key.of(secret, b"people"))
    stayed = len(np.intersect1d(old, new, assume_unique=True))
    return Difference(len(new) - stayed, len(old) - stayed, stayed)


def difference_by_rows(kept: Kept, now: Looked, key: Key) -> Difference:
    """By the columns that were found again, measured in the way in which most rows are."""
    nobody = Difference(len(now), len(kept), 0)
    found = [difference_by(matches, kept, now, key) for matches in found_again(kept, now, key)]
    return max(found, key=lambda one: one.stayed, default=nobody)


def difference_by(matches: Sequence[Match], kept: Kept, now: Looked, key: Key) -> Difference:
    """By some columns; nobody is the same if they are too few to tell rows apart."""
    old, own = keys_kept(kept, matches), keys_now(now, matches, key)
    values, counts = np.unique(old, return_counts=True)
    if len(matches) < min(len(kept.names), len(now.names)) and 2 * len(values) < len(old):
        return Difference(len(own), len(old), 0)
    places = np.minimum(np.searchsorted(values, own), len(values) - 1)
    hits = np.bincount(places[values[places] == own], minlength=len(values))
    stayed = int(np.minimum(hits, counts).sum())
    return Difference(len(own) - stayed, len(old) - stayed, stayed)


def keys_kept(kept: Kept, matches: Sequence[Match]) -> Hashes:
    """One number for every kept row, by the features that were found again."""
    chosen = [match.kept for match in matches]
    return np.concatenate([key_of_rows(block[:, chosen]) for block in kept.blocks()])


def keys_now(now: Looked, matches: Sequence[Match], key: Key) -> Hashes:
    """One number for every row, measured as the kept ones were."""
    chosen, digest = [match.now for match in matches], PartDigests.for_many(key, len(now) * len(matches))
    low, high = np.array([[match.low, match.high] for match in matches]).T
    found = [
        key_of_rows(digest_of_cells(np.ascontiguousarray(block[:, chosen]), low, high, digest))
        for _, block in blocks_of(now.rows.source)
    ]
    return np.concatenate(found)


def found_again(kept: Kept, now: Looked, key: Key) -> list[tuple[Match, ...]]:
    """Which features are those of a kept table: all in the same units, in the first ones that fit, in the best ones.

    Of few values, some may fit by chance in units that are not theirs; so there is more than one way to see it.
    """
    sample, (low, high) = sample_of(now.rows.source, ROWS_LOOKED_FOR), now.ends_tried
    tried = {feature: candidates(kept, now, feature, low, high) for feature in range(len(kept.names))}
    wanted = {
        feature: np.array([digest_of_cells(sample[:, m.now], m.low, m.high, key) for m in ways])
        for feature, ways in tried.items()
        if ways
    }
    shares = shares_found(kept, wanted)
    fitting = [
        [(float(share), match) for share, match in zip(shares[feature], tried[feature], strict=True) if share >= FOUND]
        for feature in shares
    ]
    same = [[one for one in ways if is_as_kept(one[1], kept)][:1] for ways in fitting]
    first, best = [ways[:1] for ways in fitting], [sorted(ways, key=lambda one: -one[0])[:1] for ways in fitting]
    return list(filter(None, {one_each(ways): None for ways in (same, first, best)}))


def is_as_kept(match: Match, kept: Kept) -> bool:
    """Whether a feature is measured by the ends of the kept one."""
    return (match.low, match.high) == (kept.ends.low[match.kept], kept.ends.high[match.kept])


def one_each(ways: Sequence[Sequence[tuple[float, Match]]]) -> tuple[Match, ...]:
    """Of several kept features that would be the same one now, the one that fits best."""
    taken, found = set[int](), list[Match]()
    for _, match in sorted((way for one in ways for way in one), key=lambda one: -one[0]):
        if match.now not in taken:
            taken.add(match.now)
            found.append(match)
    return tuple(found)


def candidates(kept: Kept, now: Looked, feature: int, low: FloatArray, high: FloatArray) -> list[Match]:
    """What a kept feature may be now, and in which measure; the likely ones first."""
    name, known = kept.names[feature], set(kept.names)
    same = [number for number, own in enumerate(now.names) if own == name]
    others = same or [number for number, own in enumerate(now.names) if own not in known]
    found = [Match(feature, number, float(kept.ends.low[feature]), float(kept.ends.high[feature])) for number in others]
    tried = [(one, two) for one in range(ENDS) for two in range(ENDS)]
    return found + [
        Match(feature, number, float(low[one, number]), float(high[two, number]))
        for one, two in sorted(tried, key=sum)
        for number in others
        if np.isfinite(high[two, number] - low[one, number]) and low[one, number] < high[two, number]
    ]


def shares_found(kept: Kept, wanted: dict[int, NDArray[np.uint32]]) -> dict[int, FloatArray]:
    """Of every feature and way to measure it, how many of the digests that are looked for were kept."""
    ordered = {feature: np.unique(digests) for feature, digests in wanted.items()}
    seen = {feature: np.zeros(len(digests), dtype=bool) for feature, digests in ordered.items()}
    for block in kept.blocks():
        for feature, digests in ordered.items():
            own = block[:, feature]
            places = np.minimum(np.searchsorted(digests, own), len(digests) - 1)
            seen[feature][places[digests[places] == own]] = True
    return {
        feature: np.asarray(seen[feature][np.searchsorted(ordered[feature], digests)].mean(axis=1))
        for feature, digests in wanted.items()
    }


# --- the file ---


def write_kept(path: Path, table: Looked, secret: bytes, facts: dict[str, Any]) -> None:
    """As a file of safetensors, piece by piece."""
    n_rows, n_features = table.rows.shape
    low, high = table.rows.low, table.rows.high
    digest = PartDigests.for_many(Key.of(secret, b"cells"), n_rows * n_features)
    told = {**facts, "names": list(table.names), "low": low.tolist(), "high": high.tolist()}
    size = 4 * n_rows * n_features
    header: dict[str, Any] = {
        "__metadata__": {"goldfc": canonical_json(told)},
        "cells": {"dtype": "U32", "shape": [n_rows, n_features], "data_offsets": [0, size]},
    }
    people = np.empty(0, dtype=np.uint64)
    if table.persons is not None:
        people = siphash(table.persons.digest, Key.of(secret, b"people"))[table.persons.number]
        header["people"] = {"dtype": "U64", "shape": [n_rows], "data_offsets": [size, size + 8 * n_rows]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    source = table.rows.source
    cells = meanwhile(source, (digest_of_cells(block, low, high, digest).data for _, block in blocks_of(source)))
    head = (len(text).to_bytes(8, "little"), text)
    write_pieces_durably(path, chain(head, cells, (people.data,)), private=True)


@contextmanager
def open_kept(path: Path) -> Iterator[Kept]:
    """What a file says; its digests can be read as long as it is open."""
    with open_plain(path) as file:
        with telling_damage(path):
            kept = read_kept(path, file.fileno())
        yield kept


def read_kept(path: Path, handle: int) -> Kept:
    """What a file says, if it is whole."""
    with safe_open(path, "numpy") as file:
        facts = json.loads(file.metadata()["goldfc"])
        n_rows, n_features = file.get_slice("cells").get_shape()
        named = "people" in file.keys()  # noqa: SIM118 (it is no mapping)
    names, low, high = tuple(facts.pop("names")), facts.pop("low"), facts.pop("high")
    if not len(names) == len(low) == len(high) == n_features:
        raise ValueError("every feature needs a name and two ends")
    if datetime.fromisoformat(facts["sent"]).tzinfo is None or not {"site", "sha256", "to"} <= set(facts):
        raise ValueError("it must say who sent what to whom, and when")
    length = int.from_bytes(read_at(handle, 8, 0), "little")
    offsets = {name: 8 + length + where for name, where in offsets_in(read_at(handle, length, 8)).items()}
    cells = Stored(handle, n_rows, 4 * n_features, offsets["cells"])
    people = Stored(handle, n_rows, 8, offsets["people"]) if named else None
    return Kept(facts, names, Ends(np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)), cells, people)


def offsets_in(header: bytes) -> dict[str, int]:
    """Where each array begins, behind the header."""
    entries = json.loads(header)
    return {name: int(entry["data_offsets"][0]) for name, entry in entries.items() if name != "__metadata__"}


@contextmanager
def telling_damage(path: Path) -> Iterator[None]:
    """Say which file cannot be read."""
    try:
        yield
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise BadSettings(
            f"{path.parent.name}/{path.name} is damaged; forget the message {path.stem[:12]}.", "digests-damaged"
        ) from error


def people_in(table: Looked) -> int:
    """How many there are: those that are named, or else as many as rows."""
    return len(table) if table.persons is None else len(table.persons.digest)
