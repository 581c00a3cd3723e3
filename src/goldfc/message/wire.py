"""Messages as bytes: one safetensors body of 64-bit numbers, with one piece of canonical JSON beside them.

The same content has the same bytes, and only those: whatever reads well but would be written otherwise is refused.
Sizes are checked before anything is parsed, and whatever a decoder may complain about is the one error `BadMessage`,
which names the file and the rule.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, ValidationError, create_model
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save

from goldfc.errors import BadMessage, BadSettings, code_of
from goldfc.files import open_plain
from goldfc.message.columns import MOST_FEATURES, Strict, Terms, Text, as_facts, complaint_code, first_complaint, shown
from goldfc.message.message import Message, canonical_json
from goldfc.message.model import Model
from goldfc.message.schema import Array, Content, Fact, leaves_of
from goldfc.message.summary import Summary

FORMAT = 3
MOST_BYTES_OF_A_MESSAGE = 16 * 2**20
MOST_HEADER_BYTES = 2**20
MOST_KEYS = 100
MOST_CENTROIDS = 20_000
# What an envelope adds to a message at most.
MOST_ENVELOPE_BYTES = 2_000
KEY = "goldfc"


def named(terms: Terms) -> Terms:
    """Terms of a message that leaves the process: of which federation it is must be said."""
    if not terms.federation:
        raise BadSettings("must name the federation", "federation-missing")
    return terms


class Header(Strict):
    """What every message says of itself."""

    format: Literal[3]
    software: Text
    terms: Annotated[Terms, AfterValidator(named)]


@dataclass(frozen=True)
class Known:
    """What is known of a kind of message before it is read."""

    header: type[Header]  # what its facts must be like
    arrays: Mapping[str, tuple[int, ...]]  # of every array, how many dimensions it may have


def known_of(content: type[Content]) -> Known:
    """It follows from the schema."""
    leaves = list(leaves_of(content))
    told: dict[str, Any] = {
        name: (part.kind, ... if default is MISSING else default)
        for name, part, default in leaves
        if isinstance(part, Fact) and name not in Header.model_fields
    }
    return Known(
        create_model(f"{content.__name__}Header", __base__=Header, kind=(str, ...), **told),
        {name: part.dimensions for name, part, _ in leaves if isinstance(part, Array)},
    )


# What may come as bytes.
KNOWN_PARTS = {content.KIND: known_of(content) for content in (Summary, Model)}


def encode(message: Message, software: str | None = None) -> bytes:
    """The message as bytes, always the same for the same content."""
    facts = {"format": FORMAT, "kind": message.kind, "software": software or this_software(), **message.facts}
    arrays = {name: np.ascontiguousarray(array, dtype="<f8") for name, array in message.arrays.items()}
    body: bytes = save(arrays, metadata={KEY: canonical_json(facts)})
    if len(body) > MOST_BYTES_OF_A_MESSAGE or int.from_bytes(body[:8], "little") > MOST_HEADER_BYTES:
        raise BadMessage(
            f"The message would have {len(body)} bytes and a header of {int.from_bytes(body[:8], 'little')}; "
            f"{MOST_BYTES_OF_A_MESSAGE} and {MOST_HEADER_BYTES} are the limits: fewer micro-clusters or sites, or "
            "shorter names.",
            "message-would-be-large",
        )
    return body


def this_software() -> str:
    """What writes messages here."""
    return f"goldfc {version('goldfc')}"


def decode(body: bytes, source: str = "the message") -> Message:
    """Bytes from anywhere as a message, or `BadMessage`. What it says is still to be checked: `from_message`."""
    with naming(source):
        if len(body) > MOST_BYTES_OF_A_MESSAGE:
            raise BadMessage(f"it has {len(body)} bytes, and {MOST_BYTES_OF_A_MESSAGE} is the limit", "message-large")
        facts, tensors = read_facts(body)
        facts = checked_facts(facts)
        check_tensors(facts["kind"], tensors)
        arrays = read_arrays(body)
        kind, software = facts.pop("kind"), facts.pop("software")
        del facts["format"]
        message = Message(kind, arrays, facts)
        if encode(message, software) != body:
            raise BadMessage("it is not in canonical form: the same content must have the same bytes", "not-canonical")
        return message


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Put the name of the file in front of what is wrong with it."""
    try:
        yield
    except BadMessage as error:
        raise BadMessage(f"{shown(source)}: {error}".rstrip(".") + ".", error.code) from error.__cause__


def read_facts(body: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The facts, and what is said of the arrays, both as they stand there."""
    if not body:
        raise BadMessage("the file is empty", "file-empty")
    length = int.from_bytes(body[:8], "little")
    if body[8:9] != b"{":
        raise BadMessage("this is not a goldfc message: it does not begin like one", "no-message")
    if length > MOST_HEADER_BYTES:
        raise BadMessage(f"its header has {length} bytes, and {MOST_HEADER_BYTES} is the limit", "header-large")
    if len(body) < 8 + length:
        raise BadMessage("it is cut off, or still being written", "cut-off")
    header = parse_json(body[8 : 8 + length])
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or set(metadata) != {KEY} or not isinstance(metadata[KEY], str):
        raise BadMessage("this is a safetensors file, but not a goldfc message", "other-safetensors")
    return parse_json(metadata[KEY].encode(errors="surrogatepass")), header


def parse_json(text: bytes) -> dict[str, Any]:
    """JSON from a stranger: one object, no key twice, no endless numbers, no endless nesting."""
    try:
        value = json.loads(text.decode(), object_pairs_hook=without_twins, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise BadMessage(
            f"its header is not valid JSON ({str(error)[:100]})", code_of(error, "json-invalid")
        ) from error
    if not isinstance(value, dict):
        raise BadMessage("its header is not a JSON object", "json-no-object")
    return value


def without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, if no key appears twice, and not so many that complaining of each would take long."""
    if len(pairs) > MOST_KEYS:
        raise BadMessage(f"an object has {len(pairs)} keys, and {MOST_KEYS} is the limit", "too-many-keys")
    value = dict(pairs)
    if len(value) < len(pairs):
        raise BadMessage("a key appears twice", "key-twice")
    return value


def no_constant(name: str) -> None:
    """JSON knows no such numbers."""
    raise BadMessage(f"{name} is not a number", "json-constant")


def checked_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts, if they are as the kind of message has them; numbers that JSON can write in two ways in one way."""
    if isinstance(facts.get("format"), int) and facts["format"] != FORMAT:
        age = "a newer" if facts["format"] > FORMAT else "an older"
        raise BadMessage(
            f"it is written in format {str(facts['format'])[:20]} by {age} goldfc, and this one reads format {FORMAT}; "
            "use the same version at all sites",
            "format-other",
        )
    kind = facts.get("kind")
    if not isinstance(kind, str) or kind not in KNOWN_PARTS:
        raise BadMessage(f"its kind must be one of {', '.join(KNOWN_PARTS)}", "kind-unknown")
    try:
        header = KNOWN_PARTS[kind].header.model_validate(facts)
    except ValidationError as error:
        raise BadMessage(
            f"its header is not as it should be ({first_complaint(error)})", complaint_code(error, "header-invalid")
        ) from error
    return as_facts(header)


def check_tensors(kind: str, tensors: dict[str, Any]) -> None:
    """Refuse arrays of the wrong name, type or size before their bytes are looked at."""
    known = KNOWN_PARTS[kind].arrays
    for name, facts in tensors.items():
        if name not in known:
            raise BadMessage(f"a {kind} has no array {name[:40]!r}", "array-unknown")
        if not isinstance(facts, dict) or facts.get("dtype") != "F64":
            raise BadMessage(f"its {name} must be 64-bit numbers (F64)", "array-type")
        shape = facts.get("shape")
        if not isinstance(shape, list) or any(type(size) is not int or size < 1 for size in shape):
            raise BadMessage(f"its {name} must have a size of at least 1 in every dimension", "array-empty")
        if len(shape) not in known[name]:
            raise BadMessage(f"its {name} cannot have {len(shape)} dimensions", "array-dimensions")
    if "centroids" not in tensors:
        raise BadMessage("it has no centroids", "centroids-missing")
    for name in ("centroids", "prototypes"):
        count, features = tensors.get(name, {"shape": (0, 0)})["shape"]
        if count > MOST_CENTROIDS or features > MOST_FEATURES:
            raise BadMessage(
                f"it has {str(count)[:20]} {name} of {str(features)[:20]} features; {MOST_CENTROIDS} of "
                f"{MOST_FEATURES} are the limit",
                "too-many-centroids",
            )


def read_arrays(body: bytes) -> dict[str, NDArray[np.float64]]:
    """The arrays, if bytes and shapes agree and all numbers are finite."""
    try:
        tensors = deserialize(body)  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise BadMessage(f"its arrays and its header disagree ({str(error)[:100]})", "arrays-disagree") from error
    arrays = {name: np.frombuffer(facts["data"], "<f8").reshape(facts["shape"]) for name, facts in tensors}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise BadMessage(f"its {name} holds values that are not finite numbers", "array-not-finite")
    return arrays


def read_message(path: Path) -> bytes:
    """The bytes of a file that a stranger may have put there; refused by kind and size before they are read."""
    with naming(path.name):
        try:
            file = open_plain(path)
        except FileNotFoundError as error:
            raise BadMessage("there is no such file", "file-missing") from error
        except OSError as error:
            raise BadMessage(
                f"it cannot be read ({error.strerror}); it must be a plain file, not a link, a folder, a pipe or a "
                "device",
                "file-unreadable",
            ) from error
        with file:
            size, most = os.fstat(file.fileno()).st_size, MOST_BYTES_OF_A_MESSAGE + MOST_ENVELOPE_BYTES
            if size > most:
                raise BadMessage(f"it has {size} bytes, and {MOST_BYTES_OF_A_MESSAGE} is the limit", "message-large")
            return file.read(most + 1)
