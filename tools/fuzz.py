"""What can a stranger's bytes do? Mutate good messages, and have each read as a server or a site would read it.

    python tools/fuzz.py --count 100000 --seed 0 --out benchmarks/fuzz/README.md

A mutant must be refused with `BadMessage`, in a sentence that can be shown, or be taken; nothing else, in no more than
a second, and all together in little memory. Some summaries that are taken are fused with an honest one, and rows are
labelled with models that are taken; both may fail with errors of goldfc only. Warnings count as failures, but for the
one that there are fewer clusters than asked for. Mutant n of a seed is always the same but for the one-time key of its
envelope.
"""

import argparse
import base64
import json
import re
import resource
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from safetensors.numpy import save
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from goldfc import Model, Summary, fuse, label, summarize
from goldfc._types import FloatArray
from goldfc.agreement import Agreement
from goldfc.errors import BadMessage, GoldError
from goldfc.learning.judge import Kind
from goldfc.message import wire
from goldfc.message.density import is_far
from goldfc.message.envelope import MAGIC, PRIVATE_PREFIX, Context, PrivateKey, is_sealed, read_cover, seal, unseal
from goldfc.message.message import Message, canonical_json
from goldfc.server.one_shot import fusion_of

MOST_SECONDS = 1.0
MOST_MEGABYTES = 200.0
LONGEST_SENTENCE = 1000
# Fusing takes a hundred times as long as reading, so that not everything that is taken is fused.
FUSE_ONE_IN = 2
Rng = np.random.Generator
Way = Literal["plain", "sealed", "envelope"]


def choose(options: Sequence[Any], rng: Rng) -> Any:
    """One of them."""
    return options[int(rng.integers(len(options)))]


# --- where messages go


@dataclass(frozen=True)
class Stage:
    """A federation of two: the agreement, who holds which key, what rows are like, and a good message of each kind."""

    agreement: Agreement
    site: PrivateKey
    server: PrivateKey
    rows: FloatArray
    honest: Summary
    messages: dict[str, Message]
    bodies: dict[str, bytes]

    def context(self, kind: str, site: str = "ward-a") -> Context:
        """What a message of this kind is for."""
        to = "server" if kind == Summary.KIND else "site"
        return Context(federation=self.agreement.federation, round=self.agreement.round, site=site, to=to)

    def sealed(self, kind: str, body: bytes) -> bytes:
        """In an envelope that its receiver opens and believes."""
        sender, receiver = (self.site, self.server) if kind == Summary.KIND else (self.server, self.site)
        return seal(body, self.context(kind), sender, receiver.public)

    def opened(self, kind: str, content: bytes) -> bytes:
        """What is in the envelope, if there is one."""
        if not is_sealed(content):
            return content
        if kind == Model.KIND:
            return unseal(content, self.context(kind), self.server.public, self.site)
        context = self.context(kind, read_cover(content)[0].site)
        return unseal(content, context, self.agreement.key_of(context.site), self.server)

    def receive(self, kind: str, content: bytes) -> Summary | Model:
        """What the server does with what says to be a summary, and a site with what says to be a model."""
        message = wire.decode(self.opened(kind, content))
        return self.agreement.read_summary(message) if kind == Summary.KIND else Model.from_message(message)

    def fuse(self, summary: Summary, seed: int) -> Model:
        """Together with somebody honest, into two clusters or as many as the evidence speaks for."""
        n_clusters = None if seed % 4 == 0 else 2
        return fuse([self.honest, summary], n_clusters, fusion_of(self.agreement), np.random.default_rng(seed))


SMOKES: dict[str, Any] = {"name": "smokes", "kind": "boolean", "fill": False}
WARD: dict[str, Any] = {"name": "ward", "kind": "category", "categories": ["a", "b", "c"]}
COLUMNS: tuple[dict[str, Any], ...] = (
    {"name": "Größe", "unit": "cm", "range": [0.0, 250.0], "step": 0.5},
    SMOKES,
    WARD,
    {"name": "income"},
)
PLACES: tuple[dict[str, Any], ...] = ({"name": "east"}, {"name": "north"})


def fixed_key(number: int) -> PrivateKey:
    """A key that is the same in every run."""
    return PrivateKey(PRIVATE_PREFIX + base64.b64encode(bytes([number]) * 64).decode())


def stages() -> list[Stage]:
    """All kinds of clusters and of columns, and both ways to scale."""
    in_ranges = [{**column, "range": [-1e6, 1e6]} for column in PLACES]
    return [
        stage_of(people, "shared", {"columns": COLUMNS}),
        stage_of(moons, "own", {"columns": in_ranges, "scaling": "ranges", "privacy": "plain"}),
        stage_of(moons, "linked", {"columns": PLACES}),
        stage_of(answers, "shared", {"columns": (WARD, SMOKES)}),
    ]


def stage_of(rows_of: Callable[[int], FloatArray], kind: Kind, settings: dict[str, Any]) -> Stage:
    """A stage with messages as honest people write them, and a model of a kind."""
    site, other, server = (fixed_key(number) for number in (1, 2, 3))
    sites = [{"name": "ward-a", "key": site.public.text}, {"name": "ward-b", "key": other.public.text}]
    agreement = Agreement.model_validate(
        {"federation": "heart", "round": 3, "server": {"key": server.public.text}, "sites": sites, **settings}
    )
    own, honest = (
        summarize(rows_of(seed), name, agreement.task, terms=agreement.terms)[0]
        for seed, name in enumerate(agreement.names)
    )
    model = fuse([own, honest], None, replace(fusion_of(agreement), kinds=(kind,)), np.random.default_rng(0))
    if model.kind != kind:
        raise ValueError(f"this stage is for the kind {kind!r}, and its model is of the kind {model.kind!r}")
    messages = {Summary.KIND: own.to_message(), Model.KIND: model.to_message()}
    bodies = {name: wire.encode(message) for name, message in messages.items()}
    return Stage(agreement, site, server, rows_of(0), honest, messages, bodies)


def people(seed: int) -> FloatArray:
    """Two groups of people, by numbers and categories."""
    rng = np.random.default_rng(seed)
    group, noise = np.arange(60) % 2, rng.normal(size=(60, 2))
    size, income = 165 + 15 * group + 4 * noise[:, 0], 3e4 + 5e3 * noise[:, 1]
    return np.column_stack([size, group ^ (rng.random(60) < 0.2), wards(group, rng), income])


def answers(seed: int) -> FloatArray:
    """The same by categories alone."""
    rng = np.random.default_rng(seed)
    group = np.arange(90) % 2
    return np.column_stack([wards(group, rng), group ^ (rng.random(90) < 0.2)])


def wards(group: Any, rng: Rng) -> Any:
    """Where they lie: mostly in the ward of their group."""
    return np.eye(3)[np.where(rng.random(len(group)) < 0.8, group, 2)]


def moons(seed: int) -> FloatArray:
    """Two groups of places, of which neither is convex."""
    return np.asarray(make_moons(160, noise=0.03, random_state=seed)[0])


# --- mutations of bytes


def place_in(content: bytes, rng: Rng) -> int:
    """Somewhere, and often near the beginning: that is where the structure is."""
    end = len(content) if rng.random() < 0.5 else min(len(content), 64)
    return int(rng.integers(end + 1))


def flip(content: bytes, rng: Rng) -> bytes:
    """Turn over some bits."""
    changed = bytearray(content)
    for _ in range(int(rng.geometric(0.5))):
        changed[min(place_in(content, rng), len(content) - 1)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def insert(content: bytes, rng: Rng) -> bytes:
    """Some bytes more."""
    place = place_in(content, rng)
    return content[:place] + rng.bytes(int(rng.integers(1, 17))) + content[place:]


def delete(content: bytes, rng: Rng) -> bytes:
    """Some bytes fewer."""
    place = place_in(content, rng)
    return content[:place] + content[place + int(rng.integers(1, 33)) :]


def splice(content: bytes, rng: Rng) -> bytes:
    """A piece from elsewhere over another piece."""
    start, to, length = place_in(content, rng), place_in(content, rng), int(rng.integers(1, 257))
    piece = content[start : start + length]
    return content[:to] + piece + content[to + len(piece) :]


def truncate(content: bytes, rng: Rng) -> bytes:
    """The beginning alone."""
    return content[: place_in(content, rng)]


def repeat(content: bytes, rng: Rng) -> bytes:
    """A piece many times."""
    start, length = place_in(content, rng), int(rng.integers(1, 65))
    times = int(rng.choice([2, 3, 100, 10_000]))
    return content[: start + length] + content[start : start + length] * times + content[start + length :]


BYTES: tuple[Callable[[bytes, Rng], bytes], ...] = (flip, insert, delete, splice, truncate, repeat)


# --- mutations of JSON


class Pairs(list[tuple[str, Any]]):
    """A JSON object that may have a key twice."""


class Raw(str):
    """A text that stands in JSON as it is."""

    __slots__ = ()


def dumped(value: Any, *, ascii_only: bool, in_order: bool) -> str:
    """JSON, also such as no honest writer makes."""
    if isinstance(value, Raw):
        return value
    if isinstance(value, Pairs):
        items = sorted(value, key=lambda pair: pair[0]) if in_order else value
        names = (json.dumps(name, ensure_ascii=ascii_only) for name, _ in items)
        values = (dumped(item, ascii_only=ascii_only, in_order=in_order) for _, item in items)
        return "{" + ",".join(map(":".join, zip(names, values, strict=True))) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dumped(item, ascii_only=ascii_only, in_order=in_order) for item in value) + "]"
    return json.dumps(value, ensure_ascii=ascii_only)


class Place(NamedTuple):
    """A value in a tree of JSON."""

    holder: list[Any]
    number: int

    @property
    def value(self) -> Any:
        """What is there."""
        item = self.holder[self.number]
        return item[1] if isinstance(self.holder, Pairs) else item

    def put(self, value: Any) -> None:
        """Have something else there."""
        self.holder[self.number] = (self.name, value) if isinstance(self.holder, Pairs) else value

    @property
    def name(self) -> str:
        """Its key, if it has one."""
        return str(self.holder[self.number][0]) if isinstance(self.holder, Pairs) else ""


def places(holder: list[Any]) -> Iterator[Place]:
    """All values, at any depth."""
    for number in range(len(holder)):
        place = Place(holder, number)
        yield place
        if isinstance(place.value, list):
            yield from places(place.value)


ODD_NUMBERS = (
    *(
        0,
        -1,
        1,
        2,
        5,
        100,
        2**31,
        2**32 - 1,
        2**53 + 1,
        2**63,
        2**64,
        -(2**63),
        10**9,
        10**400,
        0.5,
        -0.0,
        1e308,
        1e-320,
    ),
    *map(Raw, ("NaN", "Infinity", "-Infinity", "1e999", "-0", "1e0", "1E2", "1.0", "00", "+1", ".5", "1.", "0x1")),
    *map(Raw, ("9" * 4300, "9" * 4301, "9" * 500_000, "0." + "1" * 100_000, "1e" + "9" * 1000)),
)
ODD_TEXTS = (
    *("", " ", "a" * 65, "a" * 201, "x" * 500_000, "../../etc/passwd", "/", "..", ".", "ward-b", "model", "summary"),
    *("\u202egpj.exe", "\x1b[2J", "a\nb", "\0", "\ud800", "\udfff\ud800", "\ufeff", "\U0010ffff", "e\u0301", "ﷺ" * 100),
    *("shared", "own", "linked"),
    *("true", "1", "NaN", "goldfc", "__metadata__", "__class__", "{}", "%s%n", "'; DROP TABLE", "F64", "F16", "I64"),
)
NESTINGS = (10, 500, 990, 1000, 5_000, 100_000, 400_000)


def odd_number(rng: Rng) -> Any:
    """A number that something may stumble over."""
    return choose(ODD_NUMBERS, rng)


def odd_text(rng: Rng) -> str:
    """A text that something may stumble over."""
    return str(choose(ODD_TEXTS, rng))


def change_key(place: Place, rng: Rng) -> None:
    """Another key for the same value."""
    name = place.name
    new = odd_text(rng) if rng.random() < 0.5 else name[: int(rng.integers(len(name) + 1))] + "x"
    place.holder[place.number] = (new, place.value) if isinstance(place.holder, Pairs) else odd_text(rng)


def remove(place: Place, _: Rng) -> None:
    """Nothing there."""
    del place.holder[place.number]


def twin(place: Place, rng: Rng) -> None:
    """The same again, once or very often."""
    wanted = int(rng.choice([1, 1, 1, 2, 1000, 20_000]))
    times = max(1, min(wanted, 500_000 // (1 + len(str(place.value)))))
    place.holder[place.number : place.number] = [place.holder[place.number]] * times


def another_type(place: Place, rng: Rng) -> None:
    """A value of another type."""
    whole = place.value if isinstance(place.value, int) else 1
    others: tuple[Any, ...] = (
        None,
        True,
        False,
        [],
        Pairs(),
        str(place.value)[:100],
        float(min(whole, 2**60)),
        [place.value],
        [[]],
        "a",
    )
    place.put(choose(others, rng))


def another_number(place: Place, rng: Rng) -> None:
    """An odd number."""
    place.put(odd_number(rng))


def another_text(place: Place, rng: Rng) -> None:
    """An odd text."""
    place.put(odd_text(rng))


def nest(place: Place, rng: Rng) -> None:
    """Deep brackets or braces."""
    depth = int(rng.choice(NESTINGS))
    opened, closed = choose((("[", "]"), ('{"a":', "}")), rng)
    place.put(Raw(opened * depth + "1" + closed * (depth if rng.random() < 0.5 else 0)))


def swap(place: Place, rng: Rng) -> None:
    """Two neighbours in the other order."""
    other = int(rng.integers(len(place.holder)))
    place.holder[place.number], place.holder[other] = place.holder[other], place.holder[place.number]


def nudge(place: Place, rng: Rng) -> None:
    """A number a little aside, a text with another letter."""
    if isinstance(place.value, bool | None):
        place.put(not place.value)
    elif isinstance(place.value, int | float):
        place.put(place.value + int(rng.choice([-8, -1, 1, 8])))
    elif isinstance(place.value, str) and place.value:
        number = int(rng.integers(len(place.value)))
        place.put(place.value[:number] + "aB0-é"[int(rng.integers(5))] + place.value[number + 1 :])


JSON: tuple[Callable[[Place, Rng], None], ...] = (
    change_key,
    remove,
    twin,
    another_type,
    another_number,
    another_text,
    nest,
    swap,
    nudge,
)


def mutated_json(text: str, edit: Callable[[Place, Rng], None], rng: Rng) -> str:
    """The text with one or two edits at any depth."""
    tree = [json.loads(text, object_pairs_hook=Pairs)]
    again = rng.random() < 0.2 and edit is not twin  # twins of twins would fill the memory
    for _ in range(1 + int(again)):
        whole, *inner = places(tree)
        edit(choose(inner, rng) if inner and rng.random() < 0.98 else whole, rng)
        if not tree:
            break
    ascii_only, in_order = rng.random() < 0.2, rng.random() < 0.7
    return ",".join(dumped(value, ascii_only=ascii_only, in_order=in_order) for value in tree)


def parts(body: bytes) -> tuple[str, bytes]:
    """The header of a good message, and the bytes behind it."""
    length = int.from_bytes(body[:8], "little")
    return body[8 : 8 + length].decode(), body[8 + length :]


def joined(header: str, data: bytes) -> bytes:
    """A message with this header."""
    encoded = header.encode(errors="surrogatepass")
    encoded += b" " * (-len(encoded) % 8)
    return len(encoded).to_bytes(8, "little") + encoded + data


def mutated_header(body: bytes, edit: Callable[[Place, Rng], None], rng: Rng) -> bytes:
    """The outer layer edited."""
    header, data = parts(body)
    return joined(mutated_json(header, edit, rng), data)


def mutated_facts(body: bytes, edit: Callable[[Place, Rng], None], rng: Rng) -> bytes:
    """The inner layer edited, and the outer one written around it as it should be."""
    header, data = parts(body)
    outer = json.loads(header)
    outer["__metadata__"] = {wire.KEY: mutated_json(outer["__metadata__"][wire.KEY], edit, rng)}
    return joined(json.dumps(outer, separators=(",", ":"), ensure_ascii=False), data)


# --- mutations of arrays

ODD_VALUES = np.array(
    [
        *(np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200, 1e100, -1e100, 1e99, 1e9, 1e-100, 1e-160, 1e-308, 5e-324),
        *(0.0, -0.0, -1.0, 0.5, 1.5, 2.0, 5.0, 1e8, 1e8 + 1, 2.0**31, 2.0**53, 2.0**63, 255.0, 2e4, 1e-12, 1 - 1e-16),
    ]
)
Arrays = dict[str, Any]
# How numbers change with their units.
POWERS = {"centroids": 1, "prototypes": 1, "mean": 1, "shape": 2, "covariance": 2, "squares": 2}


def odd_values(arrays: Arrays, name: str, rng: Rng) -> None:
    """Odd numbers in one place, in some or in all."""
    array = arrays[name]
    chosen = rng.random(array.shape) < rng.choice([1.0 / array.size, 0.3, 1.0])
    chosen.flat[int(rng.integers(array.size))] = True
    one_for_all = rng.random() < 0.5
    array[chosen] = rng.choice(ODD_VALUES) if one_for_all else rng.choice(ODD_VALUES, size=int(chosen.sum()))


def rescale(arrays: Arrays, name: str, rng: Rng) -> None:
    """All numbers larger or smaller."""
    arrays[name] = np.clip(arrays[name] * 10.0 ** rng.uniform(-120, 120) * rng.choice([1.0, 1.0, -1.0]), -1e307, 1e307)


def rescale_all(arrays: Arrays, _: str, rng: Rng) -> None:
    """Everything in other units, so that it still fits together."""
    factor = 10.0 ** rng.uniform(-98, 98)
    for own, power in POWERS.items():
        if own in arrays:
            arrays[own] = np.clip(arrays[own] * factor**power, -1e307, 1e307)


def rescale_last(arrays: Arrays, _: str, rng: Rng) -> None:
    """The last column, which has no agreed range, in other units; the more daring, the less it fits together."""
    shared, apart = 10.0 ** rng.uniform(-98, 98), rng.choice([0.0, 0.1, 3.0, 30.0])
    for own, power in POWERS.items():
        if own in arrays:
            factor = shared * 10.0 ** rng.uniform(-apart, apart)
            square = power == 2 and arrays[own].ndim > 1
            arrays[own][..., -1] *= factor if square else factor**power
            if square:
                arrays[own][..., -1, :] *= factor


def reshape(arrays: Arrays, name: str, rng: Rng) -> None:
    """Another number of rows or columns, or of dimensions."""
    array = arrays[name]
    shape = [int(rng.choice([0, 1, size - 1, size, size + 1, 2 * size, 5000])) for size in array.shape]
    if rng.random() < 0.2:
        shape = [array.size, 1] if array.ndim == 1 else [array.size]
    arrays[name] = np.resize(array, shape if np.prod(shape, dtype=float) < 10**6 else array.shape[::-1])


def same_rows(arrays: Arrays, name: str, _: Rng) -> None:
    """All rows the same."""
    arrays[name] = np.repeat(arrays[name][:1], len(arrays[name]), axis=0)


def mix_names(arrays: Arrays, name: str, rng: Rng) -> None:
    """Take an array away, or put it in the place of another."""
    array = arrays.pop(name)
    other = rng.choice(
        ["", *wire.KNOWN_PARTS[Summary.KIND].arrays, *wire.KNOWN_PARTS[Model.KIND].arrays, "rows", "__metadata__x"]
    )
    if other:
        arrays[str(other)] = array


def another_dtype(arrays: Arrays, name: str, rng: Rng) -> None:
    """Numbers of another type, for real."""
    arrays[name] = arrays[name].astype(str(rng.choice(["f2", "f4", "i8", "u1", "i2", "?"])))


ARRAYS: tuple[Callable[[Arrays, str, Rng], None], ...] = (
    odd_values,
    rescale,
    rescale_all,
    rescale_last,
    reshape,
    same_rows,
    mix_names,
    another_dtype,
)


def mutated_arrays(message: Message, edit: Callable[[Arrays, str, Rng], None], rng: Rng) -> bytes:
    """Other arrays, written as they should be."""
    arrays: Arrays = {name: array.astype("<f8") for name, array in message.arrays.items()}
    for _ in range(1 + int(rng.random() < 0.3)):
        name = choose(sorted(arrays), rng) if arrays else ""
        if name and arrays[name].size:
            with np.errstate(all="ignore"):
                edit(arrays, name, rng)
    facts = {"format": wire.FORMAT, "kind": message.kind, "software": wire.this_software(), **message.facts}
    return bytes(save(arrays, metadata={wire.KEY: canonical_json(facts)}))


def moved_tensors(body: bytes, rng: Rng) -> bytes:
    """Shapes, types and places of arrays edited; sometimes the bytes go along."""
    header, data = parts(body)
    outer = json.loads(header)
    name = str(rng.choice(sorted(outer.keys() - {"__metadata__"})))
    start, end = outer[name]["data_offsets"]
    match int(rng.integers(6)):
        case 0:
            outer[name]["shape"] = [int(size) for size in rng.choice([0, 1, 2, 3, 2**16, 2**32, 2**62], size=2)]
        case 1:
            outer[name]["dtype"] = str(rng.choice(["F16", "BF16", "F32", "I64", "U64", "C64", "F8_E4M3", ">f8", "F64"]))
        case 2:
            outer[name]["data_offsets"] = [start + int(rng.choice([-8, 8, 2**40])), end]
        case 3:
            outer[name]["data_offsets"] = [end, start]
        case 4:
            hole = 8 * int(rng.integers(1, 100))
            for other in outer.keys() - {"__metadata__"}:
                outer[other]["data_offsets"] = [
                    place + hole * (place >= end and other != name) for place in outer[other]["data_offsets"]
                ]
            data = data[:end] + bytes(hole) + data[end:]
        case 5:
            data = data[:start] + data[end:]
            del outer[name]
    return joined(json.dumps(outer, separators=(",", ":"), ensure_ascii=False), data)


# --- mutations of envelopes


def mutated_cover(sealed: bytes, edit: Callable[[Place, Rng], None], rng: Rng) -> bytes:
    """Another cover around the same content."""
    inside = read_cover(sealed)[1]
    start = len(MAGIC) + 4
    text = mutated_json(sealed[start : len(sealed) - len(inside)].decode(), edit, rng)
    cover = text.encode(errors="surrogatepass")
    return MAGIC + len(cover).to_bytes(4, "little") + cover + inside


# --- mutants


class Mutant(NamedTuple):
    """Some bytes, what they were, and what was done to them."""

    stage: Stage
    kind: str
    way: Way
    mutation: str
    content: bytes


def mutate_body(stage: Stage, kind: str, rng: Rng) -> tuple[str, bytes]:
    """A mutant of a message, and the name of the mutation."""
    body = stage.bodies[kind]
    layer = choose(("bytes", "header", "facts", "facts", "arrays", "arrays", "tensors"), rng)
    if layer == "bytes":
        change = choose(BYTES, rng)
        return f"bytes: {change.__name__}", change(body, rng)
    if layer == "arrays":
        work = choose(ARRAYS, rng)
        return f"arrays: {work.__name__}", mutated_arrays(stage.messages[kind], work, rng)
    if layer == "tensors":
        return "arrays: moved_tensors", moved_tensors(body, rng)
    edit = choose(JSON, rng)
    return f"{layer}: {edit.__name__}", (mutated_header if layer == "header" else mutated_facts)(body, edit, rng)


def mutate_cover(sealed: bytes, rng: Rng) -> tuple[str, bytes]:
    """A mutant of an envelope, and the name of the mutation."""
    if rng.random() < 0.5:
        change = choose(BYTES, rng)
        return f"bytes: {change.__name__}", change(sealed, rng)
    edit = choose(JSON, rng)
    return f"cover: {edit.__name__}", mutated_cover(sealed, edit, rng)


def until_changed(original: bytes, mutate: Callable[[], tuple[str, bytes]]) -> tuple[str, bytes]:
    """Some mutations find nothing to change."""
    mutation, content = mutate()
    while content == original:
        mutation, content = mutate()
    return mutation, content


def mutant_of(scene: Sequence[Stage], seed: int, number: int) -> Mutant:
    """Mutant `number` of a seed."""
    rng = np.random.default_rng([seed, number])
    stage, kind = choose(scene, rng), choose((Summary.KIND, Model.KIND), rng)
    way: Way = choose(("plain", "plain", "sealed", "envelope"), rng)
    if way == "envelope":
        sealed = stage.sealed(kind, stage.bodies[kind])
        return Mutant(stage, kind, way, *until_changed(sealed, lambda: mutate_cover(sealed, rng)))
    mutation, body = until_changed(stage.bodies[kind], lambda: mutate_body(stage, kind, rng))
    return Mutant(stage, kind, way, mutation, stage.sealed(kind, body) if way == "sealed" else body)


# --- the law


@dataclass
class Tally:
    """What has happened so far."""

    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)  # by way and mutation
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)
    violations: list[tuple[int, Mutant, str]] = field(default_factory=list)
    slowest: float = 0.0
    slowest_mutant: str = "none"
    slowest_use: float = 0.0
    megabytes: float = 0.0

    @property
    def count(self) -> int:
        """How many mutants there were."""
        return self.kinds.total()


def run(
    count: int, seed: int, *, fuse_one_in: int = FUSE_ONE_IN, on_mutant: Callable[[int], None] = lambda _: None
) -> Tally:
    """Try so many mutants."""
    scene, tally = stages(), Tally()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Only .* asked for", ConvergenceWarning)
        for stage in scene:  # so that what is loaded and compiled once does not count
            for kind in (Summary.KIND, Model.KIND):
                stage.receive(kind, stage.sealed(kind, stage.bodies[kind]))
        before = peak_megabytes()
        for number in range(count):
            on_mutant(number)
            mutant = mutant_of(scene, seed, number)
            taken = try_one(mutant, number, tally)
            if isinstance(taken, Model) or (taken is not None and tally.taken.total() % fuse_one_in == 0):
                try_to_use(mutant, taken, number, tally)
    tally.megabytes = peak_megabytes() - before
    return tally


def peak_megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def try_one(mutant: Mutant, number: int, tally: Tally) -> Summary | Model | None:
    """Read it, and note what came of it."""
    began = time.process_time()  # others may keep the machine busy
    outcome, refusal = read(mutant)
    took = time.process_time() - began
    key = (mutant.way, mutant.mutation)
    tally.kinds[key] += 1
    if took > tally.slowest:
        tally.slowest, tally.slowest_mutant = took, f"{mutant.way}, {mutant.mutation}"
    if took > MOST_SECONDS:
        tally.violations.append((number, mutant, f"took {took:.1f} s"))
    if isinstance(refusal, BadMessage):
        tally.rules[rule_of(refusal)] += 1
        if not is_sentence(str(refusal)):
            tally.violations.append(
                (number, mutant, f"is refused in a text that cannot be shown: {str(refusal)[:500]!r}")
            )
    elif refusal is not None:
        tally.violations.append((number, mutant, f"raises {type(refusal).__name__}: {str(refusal)[:500]!r}"))
    elif outcome is not None:
        tally.taken[key] += 1
        if not is_the_one_way(mutant, outcome):
            tally.violations.append((number, mutant, "is taken, but what it says is written in other bytes"))
    return outcome


def read(mutant: Mutant) -> tuple[Summary | Model | None, BaseException | None]:
    """What it was taken as, or why not; a panic of a library is no `Exception`."""
    try:
        return mutant.stage.receive(mutant.kind, mutant.content), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return None, error


def try_to_use(mutant: Mutant, taken: Summary | Model, number: int, tally: Tally) -> None:
    """Fuse it with an honest summary, or label rows with it; goldfc's own errors are answers, too."""
    began = time.process_time()
    what = "labelled with" if isinstance(taken, Model) else "fused"
    try:
        if isinstance(taken, Model):
            labels, certainty = label(mutant.stage.rows, taken)
            is_far(taken, mutant.stage.rows)
            if not (labels < len(taken.centroids)).all() or not ((certainty >= 0.0) & (certainty <= 1.0)).all():
                raise ValueError("labels or certainties are none")
        else:
            model = mutant.stage.fuse(taken, number)
            Model.from_message(wire.decode(wire.encode(model.to_message())))
        tally.used[what] += 1
    except GoldError as error:
        tally.used[f"not {what}, {type(error).__name__}: {rule_of(error)}"] += 1
    except Exception as error:
        tally.violations.append((number, mutant, f"cannot be {what}: {type(error).__name__}: {str(error)[:500]!r}"))
    tally.slowest_use = max(tally.slowest_use, time.process_time() - began)


def is_the_one_way(mutant: Mutant, outcome: Summary | Model) -> bool:
    """Whether what was understood has these very bytes."""
    body = mutant.stage.opened(mutant.kind, mutant.content)
    software = json.loads(json.loads(parts(body)[0])["__metadata__"][wire.KEY])["software"]
    return wire.encode(outcome.to_message(), software) == body


def is_sentence(text: str) -> bool:
    """Whether it can be shown to somebody."""
    return text.isprintable() and text.endswith(".") and len(text) <= LONGEST_SENTENCE


def rule_of(error: Exception) -> str:
    """The first words of a refusal, without what differs from mutant to mutant."""
    text = str(error).removeprefix("the message: ")
    text = re.sub(r"\(.*|'[^']*'|\d+(\.\d+)?(e[+-]?\d+)?", "…", text)
    return " ".join(text.split()[:9]).rstrip(".")


# --- the page


def page(tally: Tally, count: int, seed: int) -> str:
    """What came out, as Markdown."""
    taken = tally.taken.total()
    lines = [
        "# What a stranger's bytes can do",
        "",
        f"`python tools/fuzz.py --count {count} --seed {seed} --out benchmarks/fuzz/README.md`",
        "",
        "Good summaries and models are mutated, as they are, inside an envelope that is sealed and signed validly, and "
        "as envelopes; each is read as the server or a site reads it. It must be refused with `BadMessage`, in a "
        "sentence that can be shown, or be taken: no other exception, no warning, at most 1 s, less than 200 MB.",
        "",
        f"- mutants: {tally.count}, refused {tally.rules.total()}, taken {taken} (changed, but well formed)",
        f"- summaries fused with an honest one: {tally.used['fused']}, models that rows were labelled with: "
        f"{tally.used['labelled with']}",
        f"- violations: {len(tally.violations)}",
        f"- slowest mutant: {1000 * tally.slowest:.0f} ms of processor time ({tally.slowest_mutant}); "
        f"slowest fusion: {1000 * tally.slowest_use:.0f} ms",
        f"- memory: {tally.megabytes:.0f} MB more than before the first mutant",
    ]
    if tally.violations:
        lines += ["", "## Violations", ""]
        lines += [f"- {n}: {m.kind}, {m.way}, {m.mutation} {what}" for n, m, what in tally.violations[:50]]
    lines += ["", "## By kind of mutation", "", "| where | mutation | mutants | taken |", "|---|---|--:|--:|"]
    lines += [f"| {way} | {name} | {n} | {tally.taken[way, name]} |" for (way, name), n in sorted(tally.kinds.items())]
    lines += table_of("Refused by which rule", "rule", tally.rules)
    lines += table_of("What came of using it", "outcome", tally.used)
    return "\n".join(lines) + "\n"


def table_of(title: str, what: str, counts: Counter[str]) -> list[str]:
    """A table, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows_ = [f"| {name.replace('|', chr(92) + '|')} | {count} |" for name, count in ordered]
    return ["", f"## {title}", "", f"| {what} | mutants |", "|---|--:|", *rows_]


def show_progress(count: int) -> Callable[[int], None]:
    """One line, on a terminal only."""

    def show(number: int) -> None:
        if sys.stderr.isatty() and number % 100 == 0:
            print(f"\r{number} of {count} mutants", end="", file=sys.stderr, flush=True)

    return show


def main() -> int:
    """Run it, write the page, and keep what broke the law."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/fuzz/README.md"))
    options = parser.parse_args()
    tally = run(options.count, options.seed, on_mutant=show_progress(options.count))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(page(tally, options.count, options.seed), encoding="utf-8")
    for number, mutant, what in tally.violations[:50]:
        (options.out.parent / f"violation-{options.seed}-{number}.bin").write_bytes(mutant.content)
        print(f"mutant {number} ({mutant.kind}, {mutant.way}, {mutant.mutation}) {what}", file=sys.stderr)
    if tally.megabytes > MOST_MEGABYTES:
        print(f"{tally.megabytes:.0f} MB more memory than before", file=sys.stderr)
    return int(bool(tally.violations) or tally.megabytes > MOST_MEGABYTES)


if __name__ == "__main__":
    sys.exit(main())
