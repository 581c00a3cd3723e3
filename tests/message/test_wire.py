"""Messages as bytes: the same content has the same bytes and only those, and a stranger's bytes can do no harm."""

import gzip
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from goldfc import Model, Summary
from goldfc.errors import BadMessage
from goldfc.learning.levels import Levels
from goldfc.learning.moments import Moments
from goldfc.learning.proposal import Candidate, Proposal
from goldfc.message import wire
from goldfc.message.columns import UNNAMED, Column, Terms
from goldfc.message.levels import with_fewest
from goldfc.message.message import Message, canonical_json
from goldfc.message.model import Prototypes
from sentences import refused

NAME = "ward-a.goldfc"
TERMS = Terms(
    federation="heart",
    round=3,
    columns=(
        Column(name="Größe", unit="cm", range=(0.0, 250.0)),
        Column(name="smokes", kind="boolean"),
        Column(name="weight", unit="kg"),
    ),
)
SUMMARY = Summary(
    "ward-a",
    np.array([[150.0, 0.25, 50.0], [170.5, 0.5, 70.0], [185.0, 0.75, 90.0]]),
    mass=np.array([5, 10, 5]),
    shape=np.array([[4.0, 0.5], [0.5, 9.0]]),
    moments=Moments(20.0, np.array([169.0, 0.5, 70.0]), np.array([3200.0, 4.0, 4200.0])),
    level=with_fewest(5),
    terms=TERMS,
)
COVARIANCE = np.array([[4.0, 0.5], [0.5, 9.0]])
MODEL = Model(
    kind="shared",
    why="clusters that are all stretched alike fit best",
    centroids=np.array([[150.0, 0.25, 50.0], [178.0, 0.5, 80.0]]),
    mass=np.array([15.0, 25.0]),
    covariance=COVARIANCE,
    reach=np.array([3.0, 4.0]),
    sites=("ward-a", "ward-b"),
    micro_counts=(3, 1),
    micro_labels=np.array([0, 1, 1, 0]),
    micro_certainty=np.array([1.0, 0.5, 0.75, 1.0]),
    levels=Levels(np.array([[0, 0], [1, 1], [2, 1], [0, 0]]), (3, 2)),
    digests=("0" * 32, "f" * 32),
    agreement=0.875,
    proposal=Proposal((1, 2), (-3.5, -2.0), (Candidate(2, "the best balance of fit and simplicity"),)),
    moments=Moments(40.0, np.array([169.0, 0.5, 70.0]), np.array([6400.0, 8.0, 8400.0])),
    terms=TERMS,
)
OWN = replace(MODEL, kind="own", covariance=np.stack([COVARIANCE, 2.0 * np.eye(2)]))
PROTOTYPES = Prototypes(
    np.array([[148.0, 0.25, 49.0], [152.0, 0.25, 51.0], [178.0, 0.5, 80.0]]),
    np.array([0, 0, 1]),
    np.array([10.0, 5.0, 25.0]),
)
LINKED = replace(MODEL, kind="linked", prototypes=PROTOTYPES)
MESSAGES = {
    "summary": SUMMARY.to_message(),
    "model": MODEL.to_message(),
    "model of its own forms": OWN.to_message(),
    "linked model": LINKED.to_message(),
}
BODIES = {kind: wire.encode(message) for kind, message in MESSAGES.items()}

all_kinds = pytest.mark.parametrize("kind", list(MESSAGES))
Edit = Callable[[dict[str, Any]], object]


def parts(body: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a message, and the bytes behind it."""
    length = int.from_bytes(body[:8], "little")
    return json.loads(body[8 : 8 + length]), body[8 + length :]


def joined(header: bytes, data: bytes) -> bytes:
    """A message with this header, filled up with blanks as safetensors does."""
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data


def with_header(edit: Edit, kind: str = "summary") -> bytes:
    """A message with another header around the same facts and bytes."""
    header, data = parts(BODIES[kind])
    edit(header)
    return joined(json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode(), data)


def with_text(edit: Callable[[bytes], bytes], kind: str = "summary") -> bytes:
    """A message with another text of its header."""
    header, data = parts(BODIES[kind])
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    assert edit(text) != text
    return joined(edit(text), data)


def with_inner(edit: Callable[[str], str], kind: str = "summary") -> bytes:
    """A message with another text of its facts, else as it should be."""
    inner = parts(BODIES[kind])[0]["__metadata__"]["goldfc"]
    assert edit(inner) != inner
    arrays = {name: array.astype("<f8") for name, array in MESSAGES[kind].arrays.items()}
    return bytes(save(arrays, metadata={"goldfc": edit(inner)}))


def with_facts(edit: Edit, kind: str = "summary") -> bytes:
    """A message with other facts, written as they should be."""

    def edited(inner: str) -> str:
        facts = json.loads(inner)
        edit(facts)
        return canonical_json(facts)

    return with_inner(edited, kind)


def with_arrays(kind: str = "summary", /, **arrays: Any) -> bytes:
    """A message with other arrays, written as they should be."""
    new = {**MESSAGES[kind].arrays, **{name: np.asarray(array, dtype=float) for name, array in arrays.items()}}
    return wire.encode(Message(MESSAGES[kind].kind, new, MESSAGES[kind].facts))


def without_arrays(kind: str, *names: str) -> bytes:
    """A message that lacks some arrays, else written as it should be."""
    left = {name: array for name, array in MESSAGES[kind].arrays.items() if name not in names}
    return wire.encode(Message(MESSAGES[kind].kind, left, MESSAGES[kind].facts))


def in_column(**values: Any) -> Edit:
    """Put something into the first column."""
    return lambda facts: facts["terms"]["columns"][0].update(values)


def read(path: Path) -> Summary | Model:
    """What a server does with the file of a stranger."""
    message = wire.decode(wire.read_message(path), path.name)
    with wire.naming(path.name):
        return (Model if message.kind == "model" else Summary).from_message(message)


def assert_refused(folder: Path, body: bytes, what: str, *values: str) -> None:
    path = folder / NAME
    path.write_bytes(body)
    with refused(BadMessage, what, *values) as caught:
        read(path)
    said = str(caught.value)
    assert said.startswith(f"{NAME}: ")
    assert said.endswith(".")
    assert said.isprintable()
    assert len(said) < 500


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


# --- the one way in which content is written


@all_kinds
def test_bytes_come_back_as_the_same_bytes(kind: str, tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(BODIES[kind])
    assert wire.read_message(path) == BODIES[kind]
    assert wire.encode(wire.decode(BODIES[kind])) == BODIES[kind]
    assert wire.encode(read(path).to_message()) == BODIES[kind]


@all_kinds
def test_a_message_comes_back_with_all_that_it_said(kind: str) -> None:
    sent, back = MESSAGES[kind], wire.decode(BODIES[kind])
    assert back.kind == sent.kind
    assert back.facts == sent.facts
    assert set(back.arrays) == set(sent.arrays)
    for name, array in sent.arrays.items():
        np.testing.assert_array_equal(back.arrays[name], array)
    assert back.digest == sent.digest


@all_kinds
def test_the_order_in_which_content_was_put_together_does_not_change_the_bytes(kind: str) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: shuffled(value[name]) for name in rng.permutation(sorted(value))}
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    message = MESSAGES[kind]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        arrays = {name: message.arrays[name] for name in rng.permutation(sorted(message.arrays))}
        assert wire.encode(Message(message.kind, arrays, shuffled(dict(message.facts)))) == BODIES[kind]


@pytest.mark.parametrize("dtype", [">f8", "<f8", "longdouble"])
def test_the_kind_of_number_that_content_was_held_in_does_not_change_the_bytes(dtype: str) -> None:
    arrays = {name: np.asfortranarray(array.astype(dtype)) for name, array in MESSAGES["summary"].arrays.items()}
    assert wire.encode(Message("summary", arrays, MESSAGES["summary"].facts)) == BODIES["summary"]


def test_parts_that_a_site_withholds_are_not_there() -> None:
    bare = replace(SUMMARY, mass=None, shape=None, moments=None, level=with_fewest(1))
    message = wire.decode(wire.encode(bare.to_message()))
    assert set(message.arrays) == {"centroids"}
    assert set(message.facts) == {"site", "terms"}
    assert Summary.from_message(message).moments is None


def test_a_message_that_says_of_no_federation_where_it_belongs_does_not_cross() -> None:
    with refused(BadMessage, "header-invalid terms: Field required"):
        wire.decode(wire.encode(replace(SUMMARY, shape=None, terms=UNNAMED).to_message()))


def test_nothing_is_written_that_would_be_too_large_to_be_read() -> None:
    huge = Message("summary", {"centroids": np.zeros((600, 4000))}, {"site": "a"})
    with refused(BadMessage, "message-would-be-large", "19200", "16777216", "1048576"):
        wire.encode(huge)


WRITTEN_OTHERWISE = {
    "blanks in the facts": lambda: with_inner(lambda text: text.replace(":", ": ", 1)),
    "facts in another order": lambda: with_inner(lambda text: json.dumps(dict(reversed(json.loads(text).items())))),
    "an exponent": lambda: with_inner(lambda text: text.replace("250.0", "2.5e2")),
    "more digits than needed": lambda: with_inner(lambda text: text.replace("250.0", "250.00")),
    "a whole number for a real one": lambda: with_inner(lambda text: text.replace("250.0", "250")),
    "a text for a number": lambda: with_facts(in_column(range=["0.0", "250.0"])),
    "yes for a number": lambda: with_facts(in_column(range=[True, 250.0])),
    "a real number for the format": lambda: with_facts(lambda facts: facts.update(format=3.0)),
    "escaped letters": lambda: with_inner(lambda text: text.replace("ö", "\\u00f6")),
    "escaped letters outside": lambda: with_text(lambda text: text.replace("ö".encode(), b"\\u00f6")),
    "what is so anyway": lambda: with_facts(in_column(kind="number")),
    "nothing, said aloud": lambda: with_facts(in_column(step=None)),
    "blanks in the header": lambda: with_text(lambda text: text.replace(b'":{', b'": {', 1)),
    "blanks behind the header": lambda: with_text(lambda text: text + b" " * 8),
    "arrays in another order": lambda: with_header(lambda header: header.update(mean=header.pop("mean"))),
    "the facts behind the arrays": lambda: with_header(
        lambda header: header.update(__metadata__=header.pop("__metadata__"))
    ),
    "a whole number for the agreement": lambda: with_facts(lambda facts: facts.update(agreement=1), "model"),
    "yes for the agreement": lambda: with_facts(lambda facts: facts.update(agreement=True), "model"),
    "a text for the agreement": lambda: with_facts(lambda facts: facts.update(agreement="0.875"), "model"),
    "a text for the count of a model": lambda: with_facts(lambda facts: facts.update(count="40.0"), "model"),
    "a text for evidence": lambda: with_facts(lambda facts: facts.update(evidence=["-3.5", "-2.0"]), "model"),
}


@pytest.mark.parametrize("make", WRITTEN_OTHERWISE.values(), ids=WRITTEN_OTHERWISE)
def test_what_is_written_in_another_way_is_refused(make: Callable[[], bytes], tmp_path: Path) -> None:
    assert_refused(tmp_path, make(), "not-canonical")


# --- the file


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path, b"", "file-empty")


@all_kinds
def test_a_message_cut_at_any_byte_is_refused(kind: str) -> None:
    for length in range(1, len(BODIES[kind])):
        with pytest.raises(BadMessage, match=f"^{NAME}: ") as caught:
            wire.decode(BODIES[kind][:length], NAME)
        assert caught.value.code in {"no-message", "cut-off", "arrays-disagree"}


def accepted(body: bytes) -> bool:
    """Whether it is taken; anything but a sentence is a failure, and so are bytes that come back otherwise."""
    try:
        message = wire.decode(body, NAME)
        back = (Model if message.kind == "model" else Summary).from_message(message)
    except BadMessage as error:
        assert str(error).isprintable()  # noqa: PT017 (of all refusals, whatever they say)
        return False
    software = json.loads(parts(body)[0]["__metadata__"]["goldfc"])["software"]
    assert wire.encode(back.to_message(), software) == body
    return True


@all_kinds
def test_a_flipped_bit_is_refused_or_makes_another_good_message(kind: str) -> None:
    body = BODIES[kind]
    start = 8 * (len(body) - len(parts(body)[1]))
    beyond = np.random.default_rng(0).integers(start, 8 * len(body), size=300)
    taken = {place for place in (*range(start), *beyond.tolist()) if accepted(flipped(body, place))}
    assert not any(place < 8 * 8 for place in taken), "the length of the header"
    # Letters of names and digits of numbers may change; little else can.
    assert 0 < sum(place < start for place in taken) < 0.3 * start


def flipped(body: bytes, place: int) -> bytes:
    """The bytes with one bit turned over."""
    byte, bit = divmod(place, 8)
    return body[:byte] + bytes([body[byte] ^ 1 << bit]) + body[byte + 1 :]


class Bomb:
    """What would run if somebody loaded it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("a pickle was loaded",)


def zipped() -> bytes:
    """A megabyte of zeros in a few bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(2**20))
    return file.getvalue()


OTHER_FILES = {
    "zip": zipped(),
    "gzip": gzip.compress(BODIES["summary"]),
    **{f"pickle {protocol}": pickle.dumps(Bomb(), protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)},
    "numpy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8'}",
    "json": b'{"format":1,"kind":"summary"}',
    "zeros": bytes(100),
    "text": "Größe;Gewicht\n180;75\n".encode(),
    "envelope": b"goldfc sealed 1\n" + bytes(100),
    "another first sign": BODIES["summary"].replace(b"{", b"[", 1),
}


@pytest.mark.parametrize("body", OTHER_FILES.values(), ids=OTHER_FILES)
def test_files_of_another_kind_are_refused_and_never_unpacked(body: bytes, tmp_path: Path) -> None:
    assert_refused(tmp_path, body, "no-message")


@pytest.mark.parametrize(
    ("format_", "code"),
    [
        (1, "format-other in format 1 by an older goldfc, and this one reads format 3"),
        (-1, "format-other in format -1 by an older goldfc"),
        (4, "format-other in format 4 by a newer goldfc, and this one reads format 3"),
        (10**4000, "format-other in format 10000000000000000000 by a newer goldfc"),
        (True, "format-other in format True by an older goldfc"),
        ("3", "header-invalid format: Input should be 3"),
        (None, "header-invalid format: Input should be 3"),
        (1e300, "header-invalid format: Input should be 3"),
    ],
)
@all_kinds
def test_older_and_newer_formats_are_refused_by_their_number(
    kind: str, format_: Any, code: str, tmp_path: Path
) -> None:
    assert_refused(tmp_path, with_facts(lambda facts: facts.update(format=format_), kind), code)


def test_a_newer_format_may_have_anything_else_in_it(tmp_path: Path) -> None:
    body = with_facts(lambda facts: facts.update(format=4, kind="whisper", new=[1]))
    assert_refused(tmp_path, body, "format-other by a newer goldfc")


class Unread(io.FileIO):
    """A file that nobody may read."""

    def read(self, _: int | None = -1) -> bytes:
        """Nobody."""
        pytest.fail("it was read")


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / NAME
    path.touch()
    os.truncate(path, 2**40)
    monkeypatch.setattr(os, "fdopen", Unread)
    with refused(BadMessage, "message-large", NAME, "1099511627776", "16777216"):
        wire.read_message(path)


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / NAME
    path.touch()
    small = path.stat()
    os.truncate(path, wire.MOST_BYTES_OF_A_MESSAGE + wire.MOST_ENVELOPE_BYTES + 100)
    monkeypatch.setattr(os, "fstat", lambda _: small)
    body = wire.read_message(path)
    assert len(body) == wire.MOST_BYTES_OF_A_MESSAGE + wire.MOST_ENVELOPE_BYTES + 1
    with refused(BadMessage, "message-large", NAME, "16779217", "16777216"):
        wire.decode(body, path.name)


def test_what_is_no_plain_file_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(BODIES["summary"])
    (tmp_path / "link").symlink_to(tmp_path / "plain")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, code in {
        "link": "file-unreadable",
        "loop": "file-unreadable",
        "folder": "file-unreadable",
        "pipe": "file-unreadable",
        "nowhere": "file-missing",
        "plain/below": "file-unreadable",
    }.items():
        with refused(BadMessage, code, Path(name).name):
            wire.read_message(tmp_path / name)
    assert wire.read_message(tmp_path / "plain") == BODIES["summary"]


def test_a_refused_file_is_closed(tmp_path: Path) -> None:
    def handles() -> int:
        return len(names_in(Path("/dev/fd")))

    before = handles()
    for _ in range(10):
        with pytest.raises(BadMessage):
            wire.read_message(tmp_path)
    assert handles() == before


@pytest.mark.parametrize("name", ["\u202egpj.exe", "two\nlines", "\x1b[2J", os.fsdecode(b"\xff")])
def test_names_of_files_are_shown_so_that_they_fool_nobody(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"")
    with refused(BadMessage, "file-empty") as caught:
        read(tmp_path / name)
    assert str(caught.value).isprintable()


# --- structure


def shape_of_centroids(*shape: Any) -> bytes:
    return with_header(lambda header: header["centroids"].update(shape=list(shape)))


STRUCTURE: dict[str, tuple[Callable[[], bytes], str]] = {
    "header of 2^63 bytes": (
        lambda: (2**63).to_bytes(8, "little") + BODIES["summary"][8:],
        "header-large 9223372036854775808",
    ),
    "header of 2^64 - 1 bytes": (
        lambda: (2**64 - 1).to_bytes(8, "little") + BODIES["summary"][8:],
        "header-large 18446744073709551615",
    ),
    "header beyond the end": (
        lambda: (2**20).to_bytes(8, "little") + BODIES["summary"][8:],
        "cut-off",
    ),
    "header shorter than it is": (lambda: (100).to_bytes(8, "little") + BODIES["summary"][8:], "json-invalid"),
    "more rows than bytes": (lambda: shape_of_centroids(4, 3), "arrays-disagree"),
    "fewer rows than bytes": (lambda: shape_of_centroids(2, 3), "arrays-disagree"),
    "other rows and columns of as many bytes": (
        lambda: shape_of_centroids(1, 9),
        "features-not-columns",
    ),
    "no centroids in the table": (
        lambda: shape_of_centroids(0, 3),
        "array-empty",
    ),
    "no features": (lambda: shape_of_centroids(3, 0), "array-empty"),
    "k = -1": (lambda: shape_of_centroids(-1, 3), "array-empty"),
    "d = -1": (lambda: shape_of_centroids(3, -1), "array-empty"),
    "k = 2^32 - 1": (
        lambda: shape_of_centroids(2**32 - 1, 3),
        "too-many-centroids 4294967295",
    ),
    "d = 2^32 - 1": (
        lambda: shape_of_centroids(3, 2**32 - 1),
        "too-many-centroids 4294967295",
    ),
    "d of 4000 digits": (
        lambda: shape_of_centroids(3, 10**4000),
        "too-many-centroids 10000000000000000000",
    ),
    "k d beyond 2^64": (lambda: shape_of_centroids(2**63, 2**63), "too-many-centroids 20000"),
    "other arrays of 2^32 - 1": (
        lambda: with_header(lambda header: header["mass"].update(shape=[2**32 - 1])),
        "arrays-disagree",
    ),
    "other arrays beyond 2^64": (
        lambda: with_header(lambda header: header["shape"].update(shape=[2**63, 2**63])),
        "arrays-disagree",
    ),
    "k that is no number": (lambda: shape_of_centroids("3", 3), "array-empty"),
    "k that is not whole": (lambda: shape_of_centroids(3.0, 3), "array-empty"),
    "k that is yes": (lambda: shape_of_centroids(True, 3), "array-empty"),
    "one dimension": (lambda: shape_of_centroids(9), "array-dimensions"),
    "many dimensions": (lambda: shape_of_centroids(*[1] * 1000), "array-dimensions 1000"),
    "a million centroids": (
        lambda: wire.encode(Message("summary", {"centroids": np.zeros((10**6, 1))}, MESSAGES["summary"].facts)),
        "too-many-centroids 1000000",
    ),
    "no centroids at all": (lambda: with_header(lambda header: header.pop("centroids")), "centroids-missing"),
    "an array that is none": (
        lambda: with_header(lambda header: header.update(centroids=7)),
        "array-type",
    ),
    "an array without a place": (
        lambda: with_header(lambda header: header["mass"].pop("data_offsets")),
        "arrays-disagree",
    ),
    "an array that nobody knows": (
        lambda: with_header(lambda header: header.update(rows=header.pop("mass"))),
        "array-unknown 'rows'",
    ),
    "an array of the other kind": (
        lambda: with_header(lambda header: header.update(reach=header.pop("mass"))),
        "array-unknown 'reach'",
    ),
    "an array of an odd name": (
        lambda: with_header(lambda header: header.update({"\u202e\x1b": header.pop("mass")})),
        "array-unknown",
    ),
    **{
        f"numbers as {dtype}": (
            lambda dtype=dtype: with_header(lambda header: header["centroids"].update(dtype=dtype)),  # type: ignore[misc]
            "array-type",
        )
        for dtype in ("F16", "BF16", "F32", "I64", "U8", "BOOL", ">f8", "f64", "F64 ", 64, None)
    },
    "real float16": (
        lambda: bytes(save({"centroids": np.ones((3, 3), np.float16)}, parts(BODIES["summary"])[0]["__metadata__"])),
        "array-type",
    ),
    "real int64": (
        lambda: bytes(save({"centroids": np.ones((3, 3), np.int64)}, parts(BODIES["summary"])[0]["__metadata__"])),
        "array-type",
    ),
    "bytes behind the end": (lambda: BODIES["summary"] + b"\0", "arrays-disagree"),
    "another message behind the end": (lambda: BODIES["summary"] * 2, "arrays-disagree"),
    "a hole between arrays": (
        lambda: (
            with_header(
                lambda header: [
                    header[name].update(data_offsets=[place + 8 for place in header[name]["data_offsets"]])
                    for name in ("mass", "mean", "shape", "squares")
                ]
            )
            + bytes(8)
        ),
        "arrays-disagree",
    ),
    "arrays that share bytes": (
        lambda: with_header(lambda header: header["mean"].update(data_offsets=header["squares"]["data_offsets"])),
        "arrays-disagree",
    ),
    "an array that ends before it begins": (
        lambda: with_header(lambda header: header["mass"]["data_offsets"].reverse()),
        "arrays-disagree",
    ),
    "places below zero": (
        lambda: with_header(lambda header: header["mass"].update(data_offsets=[-24, 0])),
        "arrays-disagree",
    ),
    "places of 2^64": (
        lambda: with_header(lambda header: header["mass"].update(data_offsets=[2**64, 2**64 + 24])),
        "arrays-disagree",
    ),
    "more said of an array": (
        lambda: with_header(lambda header: header["mass"].update(colour="red")),
        "not-canonical",
    ),
    "a header that is no object": (lambda: joined(b"{}", b""), "other-safetensors"),
    "facts that are no object": (lambda: with_inner(lambda _: "[1]"), "json-no-object"),
    "no metadata": (
        lambda: with_header(lambda header: header.pop("__metadata__")),
        "other-safetensors",
    ),
    "more metadata": (
        lambda: with_header(lambda header: header["__metadata__"].update(other="x")),
        "other-safetensors",
    ),
    "other metadata": (
        lambda: with_header(lambda header: header.update(__metadata__={"format": "pt"})),
        "other-safetensors",
    ),
    "metadata that are no text": (
        lambda: with_header(lambda header: header["__metadata__"].update(goldfc={"format": 1})),
        "other-safetensors",
    ),
    "metadata that are no object": (
        lambda: with_header(lambda header: header.update(__metadata__=[])),
        "other-safetensors",
    ),
    "another kind": (
        lambda: with_facts(lambda facts: facts.update(kind="summarize")),
        "kind-unknown",
    ),
    "a kind that is a list": (lambda: with_facts(lambda facts: facts.update(kind=[])), "kind-unknown"),
    "no kind": (lambda: with_facts(lambda facts: facts.pop("kind")), "kind-unknown"),
    "a summary that says it is a model": (
        lambda: with_facts(lambda facts: facts.update(kind="model")),
        "header-invalid cluster_kind: Field required",
    ),
    "no federation": (
        lambda: with_facts(lambda facts: facts["terms"].pop("federation")),
        "federation-missing",
    ),
    "no terms": (lambda: with_facts(lambda facts: facts.update(terms={})), "federation-missing"),
    "moments without a count": (
        lambda: with_facts(lambda facts: facts.pop("count")),
        "group-incomplete",
    ),
}


@pytest.mark.parametrize(("make", "code"), STRUCTURE.values(), ids=STRUCTURE)
def test_bytes_that_are_put_together_wrongly_are_refused(make: Callable[[], bytes], code: str, tmp_path: Path) -> None:
    assert_refused(tmp_path, make(), code)


# --- values


@all_kinds
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_in_every_array(kind: str, value: float, tmp_path: Path) -> None:
    for name, array in MESSAGES[kind].arrays.items():
        bad = array.astype(float)
        bad.flat[-1] = value
        assert_refused(tmp_path, with_arrays(kind, **{name: bad}), "array-not-finite", f"its {name} holds")


TOO_LARGE = {
    "centroids-not-finite",
    "labels-not-whole",
    "mass-not-whole",
    "model-certainty",
    "model-mass",
    "model-moments",
    "model-not-finite",
    "model-prototypes",
    "moments-not-finite",
    "shape-not-finite",
}


@all_kinds
def test_numbers_that_cannot_be_calculated_with_are_refused_in_every_array(kind: str, tmp_path: Path) -> None:
    for name, array in MESSAGES[kind].arrays.items():
        for value in (1e308, -1e308):
            bad = array.astype(float)
            bad.flat[0] = value
            (tmp_path / NAME).write_bytes(with_arrays(kind, **{name: bad}))
            with pytest.raises(BadMessage, match=f"^{NAME}: ") as caught:
                read(tmp_path / NAME)
            assert caught.value.code in TOO_LARGE


VALUES = {
    "centroids of 1e308": (
        {"centroids": np.full((3, 3), 1e308)},
        "centroids-not-finite",
    ),
    "negative masses": ({"mass": [-5, 10, 5]}, "mass-not-whole 5 to 100000000"),
    "no mass": ({"mass": [0, 10, 5]}, "mass-not-whole 5 to 100000000"),
    "half a row": ({"mass": [5.5, 10, 5]}, "mass-not-whole 5 to 100000000"),
    "a billion rows": ({"mass": [1e9, 10, 5]}, "mass-not-whole 5 to 100000000"),
    "less than the privacy level": ({"mass": [4, 10, 5]}, "mass-not-whole 5 to 100000000"),
    "too many masses": ({"mass": [5, 10, 5, 5]}, "mass-form"),
    "masses unlike the count": ({"mass": [500, 10, 5]}, "count-not-mass 20"),
    "a negative variance": ({"shape": [[-4.0, 0.0], [0.0, 9.0]]}, "shape-impossible"),
    "a correlation above 1": ({"shape": [[4.0, 7.0], [7.0, 9.0]]}, "shape-impossible"),
    "a shape that is not symmetric": ({"shape": [[4.0, 0.1], [0.2, 9.0]]}, "shape-impossible"),
    "a shape out of all proportion": ({"shape": [[1e-280, 1e200], [1e200, 1e-280]]}, "shape-impossible"),
    "a shape of all features": ({"shape": np.eye(3)}, "shape-form 2 x 2 numbers; it has 3 x 3"),
    "a shape of variances alone": ({"shape": [4.0, 9.0]}, "shape-form 2 x 2 numbers; it has 2"),
    "a mean too few": ({"mean": [1.0]}, "moments-form"),
    "a negative M2": ({"squares": [-1.0, 1.0, 1.0]}, "moments-not-finite"),
    "centroids of other features": (
        {"centroids": np.ones((3, 2))},
        "features-not-columns",
    ),
}


@pytest.mark.parametrize(("arrays", "code"), VALUES.values(), ids=VALUES)
def test_values_that_no_rows_have_are_refused(arrays: dict[str, Any], code: str, tmp_path: Path) -> None:
    assert_refused(tmp_path, with_arrays(**arrays), code, "'ward-a'")


@pytest.mark.parametrize("count", [0, -20, 10**9, 2.5, "20", 10**300, True])
def test_counts_that_no_rows_have_are_refused(count: Any, tmp_path: Path) -> None:
    body = with_facts(lambda facts: facts.update(count=count))
    assert_refused(tmp_path, body, "header-invalid (count: ")


MODELS: dict[str, tuple[Callable[[], bytes], str]] = {
    "a label beyond the clusters": (lambda: with_arrays("model", micro_labels=[0, 1, 2, 0]), "model-labels"),
    "a negative label": (lambda: with_arrays("model", micro_labels=[0, 1, -1, 0]), "labels-not-whole"),
    "half a label": (lambda: with_arrays("model", micro_labels=[0, 1, 0.5, 0]), "labels-not-whole"),
    "a label too few": (
        lambda: with_arrays("model", micro_labels=[0, 1, 1]),
        "model-micro-clusters",
    ),
    "counts that do not add up": (
        lambda: with_facts(lambda facts: facts.update(micro_counts=[3, 2]), "model"),
        "model-micro-clusters",
    ),
    "a count too many": (
        lambda: with_facts(lambda facts: facts.update(micro_counts=[2, 1, 1]), "model"),
        "model-counts",
    ),
    "a count of nothing": (
        lambda: with_facts(lambda facts: facts.update(micro_counts=[4, 0]), "model"),
        "header-invalid micro_counts.1: Input should be greater than or equal to 1",
    ),
    "the same site twice": (
        lambda: with_facts(lambda facts: facts.update(sites=["ward-a", "ward-a"]), "model"),
        "model-sites",
    ),
    "nobody": (lambda: with_facts(lambda facts: facts.update(sites=[]), "model"), "model-sites"),
    "a site with a path": (
        lambda: with_facts(lambda facts: facts.update(sites=["ward-a", "../b"]), "model"),
        "name-not-plain",
    ),
    "a digest too few": (
        lambda: with_facts(lambda facts: facts.update(digests=["0" * 32]), "model"),
        "model-digests",
    ),
    "a digest that is none": (
        lambda: with_facts(lambda facts: facts.update(digests=["0" * 32, "0" * 31 + "\n"]), "model"),
        "header-invalid digests.1: String should match pattern",
    ),
    "more than certain": (
        lambda: with_arrays("model", micro_certainty=[1.0, 1.5, 1.0, 1.0]),
        "model-certainty",
    ),
    "less than uncertain": (
        lambda: with_arrays("model", micro_certainty=[1.0, -0.5, 1.0, 1.0]),
        "model-certainty",
    ),
    "a certainty too few": (lambda: with_arrays("model", micro_certainty=[1.0]), "model-certainty"),
    "a covariance that no rows have": (
        lambda: with_arrays("model", covariance=[[1.0, 2.0], [2.0, 1.0]]),
        "model-covariance",
    ),
    "a covariance out of all proportion": (
        lambda: with_arrays("model", covariance=[[1e-280, 1e200], [1e200, 1e-280]]),
        "model-covariance",
    ),
    "the covariances of clusters, one of them none": (
        lambda: with_arrays("model of its own forms", covariance=[COVARIANCE, [[1.0, 2.0], [2.0, 1.0]]]),
        "model-covariance",
    ),
    "the covariances of clusters, one of them not symmetric": (
        lambda: with_arrays("model of its own forms", covariance=[[[4.0, 0.5], [0.4, 9.0]], COVARIANCE]),
        "model-covariance",
    ),
    "the covariances of clusters, one of them flat": (
        lambda: with_arrays("model of its own forms", covariance=[COVARIANCE, np.ones((2, 2))]),
        "model-distances",
    ),
    "the covariances of clusters, one without variance": (
        lambda: with_arrays("model of its own forms", covariance=[COVARIANCE, [[1.0, 0.0], [0.0, 0.0]]]),
        "model-negative",
    ),
    "the covariances of too many clusters": (
        lambda: with_arrays("model of its own forms", covariance=[COVARIANCE] * 3),
        "model-covariance-form",
    ),
    "one covariance, where each cluster has its own": (
        lambda: with_arrays("model of its own forms", covariance=COVARIANCE),
        "model-covariance-form",
    ),
    "variances alone, where each cluster has its own covariance": (
        lambda: with_arrays("model of its own forms", covariance=[4.0, 9.0]),
        "model-covariance-form",
    ),
    "a covariance of each cluster, where all share one": (
        lambda: with_arrays("model", covariance=[COVARIANCE] * 2),
        "model-covariance-form",
    ),
    "a covariance of each cluster, where rows lie around prototypes": (
        lambda: with_arrays("linked model", covariance=[COVARIANCE] * 2),
        "model-covariance-form",
    ),
    "a covariance in four dimensions": (
        lambda: with_arrays("model of its own forms", covariance=np.ones((1, 2, 2, 2))),
        "array-dimensions",
    ),
    "no variance": (
        lambda: with_arrays("model", covariance=[0.0, 1.0]),
        "model-negative",
    ),
    "a covariance without any extent in one direction": (
        lambda: with_arrays("model", covariance=[[1.0, 1.0], [1.0, 1.0]]),
        "model-distances",
    ),
    "a negative reach": (lambda: with_arrays("model", reach=[-1.0, 1.0]), "model-negative"),
    "a reach too few": (lambda: with_arrays("model", reach=[1.0]), "model-reach-form"),
    "a mass too many": (
        lambda: with_arrays("model", cluster_mass=[1.0, 2.0, 3.0]),
        "model-reach-form",
    ),
    "a cluster without mass": (lambda: with_arrays("model", cluster_mass=[0.0, 1.0]), "model-mass"),
    "a negative mass": (lambda: with_arrays("model", cluster_mass=[-1.0, 1.0]), "model-mass"),
    "more mass than all rows have": (
        lambda: with_arrays("model", cluster_mass=[1e16, 1.0]),
        "model-mass",
    ),
    "no masses": (lambda: without_arrays("model", "cluster_mass"), "field-missing 'cluster_mass'"),
    "a covariance of all features": (
        lambda: with_arrays("model", covariance=np.eye(3)),
        "model-covariance-form",
    ),
    "centroids of other features": (
        lambda: with_arrays("model", centroids=np.ones((2, 2))),
        "model-features",
    ),
    "a kind that nobody knows": (
        lambda: with_facts(lambda facts: facts.update(cluster_kind="round"), "model"),
        "header-invalid cluster_kind: Input should be 'shared', 'own' or 'linked'",
    ),
    "no kind of cluster": (
        lambda: with_facts(lambda facts: facts.pop("cluster_kind"), "model"),
        "header-invalid cluster_kind: Field required",
    ),
    "another kind than its covariance is for": (
        lambda: with_facts(lambda facts: facts.update(cluster_kind="own"), "model"),
        "model-covariance-form",
    ),
    "no reason": (lambda: with_facts(lambda facts: facts.pop("why"), "model"), "header-invalid why: Field required"),
    "a reason that steers the terminal": (
        lambda: with_facts(lambda facts: facts.update(why="\x1b[2J\u202e"), "model"),
        "text-not-printable",
    ),
    "a reason without end": (
        lambda: with_facts(lambda facts: facts.update(why="so " * 100 + "on"), "model"),
        "header-invalid why: String should have at most 200 characters",
    ),
    "more than all agree": (
        lambda: with_facts(lambda facts: facts.update(agreement=1.5), "model"),
        "header-invalid agreement: Input should be less than or equal to 1",
    ),
    "less than nobody agrees": (
        lambda: with_facts(lambda facts: facts.update(agreement=-0.5), "model"),
        "header-invalid agreement: Input should be greater than or equal to 0",
    ),
    "prototypes of clusters that need none": (
        lambda: with_arrays(
            "model", prototypes=PROTOTYPES.points, prototype_labels=PROTOTYPES.labels, prototype_mass=PROTOTYPES.mass
        ),
        "model-linked",
    ),
    "nothing of prototypes": (
        lambda: without_arrays("linked model", "prototypes", "prototype_labels", "prototype_mass"),
        "model-linked",
    ),
    **{
        f"no {name}": (
            lambda name=name: without_arrays("linked model", name),  # type: ignore[misc]
            "group-incomplete prototypes, prototype_labels and prototype_mass",
        )
        for name in ("prototypes", "prototype_labels", "prototype_mass")
    },
    "half a label of a prototype": (
        lambda: with_arrays("linked model", prototype_labels=[0, 0.5, 1]),
        "labels-not-whole",
    ),
    "a prototype of no cluster": (
        lambda: with_arrays("linked model", prototype_labels=[0, 1, 2]),
        "model-prototypes",
    ),
    "a cluster without prototypes": (
        lambda: with_arrays("linked model", prototype_labels=[0, 0, 0]),
        "model-prototypes",
    ),
    "prototypes in disorder": (
        lambda: with_arrays("linked model", prototype_labels=[0, 1, 0]),
        "model-prototypes",
    ),
    "a label of a prototype too few": (
        lambda: with_arrays("linked model", prototype_labels=[0, 1]),
        "model-prototypes",
    ),
    "prototypes of other features": (
        lambda: with_arrays("linked model", prototypes=PROTOTYPES.points[:, :2]),
        "model-prototypes",
    ),
    "prototypes far beyond the stars": (
        lambda: with_arrays("linked model", prototypes=1e99 * PROTOTYPES.points),
        "model-prototypes",
    ),
    "a prototype without mass": (
        lambda: with_arrays("linked model", prototype_mass=[10.0, 0.0, 25.0]),
        "model-prototypes",
    ),
    "a prototype with negative mass": (
        lambda: with_arrays("linked model", prototype_mass=[10.0, -5.0, 25.0]),
        "model-prototypes",
    ),
    "a mass of a prototype too many": (
        lambda: with_arrays("linked model", prototype_mass=[1.0, 1.0, 1.0, 1.0]),
        "model-prototypes",
    ),
    "prototypes without end": (
        lambda: with_arrays("linked model", prototypes=np.zeros((20_001, 3))),
        "too-many-centroids 20001",
    ),
    "a level too few": (
        lambda: with_arrays("model", levels=np.zeros((4, 1))),
        "model-levels",
    ),
    "a level with fewer micro-clusters": (
        lambda: with_arrays("model", levels=np.zeros((3, 2))),
        "model-levels",
    ),
    "a level count too few": (
        lambda: with_facts(lambda facts: facts.update(level_clusters=[3]), "model"),
        "model-levels",
    ),
    "a level with more clusters than it says": (
        lambda: with_facts(lambda facts: facts.update(level_clusters=[2, 2]), "model"),
        "model-level-counts",
    ),
    "evidence too few": (
        lambda: with_facts(lambda facts: facts.update(evidence=[1.0]), "model"),
        "model-proposal",
    ),
    "nothing proposed": (
        lambda: with_facts(lambda facts: facts.update(candidates=[]), "model"),
        "model-proposal",
    ),
    "moments of other features": (
        lambda: with_arrays("model", mean=[1.0, 2.0]),
        "model-moments-form",
    ),
    "a negative M2": (lambda: with_arrays("model", squares=[-1.0, 1.0, 1.0]), "model-moments"),
    "moments without a count": (
        lambda: with_facts(lambda facts: facts.pop("count"), "model"),
        "group-incomplete",
    ),
    "a count of nobody": (
        lambda: with_facts(lambda facts: facts.update(count=-1.0), "model"),
        "header-invalid count: Input should be greater than 0",
    ),
}


@pytest.mark.parametrize(("make", "code"), MODELS.values(), ids=MODELS)
def test_models_that_do_not_fit_together_are_refused(make: Callable[[], bytes], code: str, tmp_path: Path) -> None:
    assert_refused(tmp_path, make(), code)


# --- the parser

NESTED = "[" * 10**6
LONG = "9" * 10**6
PARSER: dict[str, tuple[Callable[[], bytes], str]] = {
    "an array twice": (
        lambda: with_text(lambda text: text.replace(b'"mass":', b'"mean":', 1)),
        "key-twice",
    ),
    "metadata twice": (
        lambda: with_text(lambda text: b'{"__metadata__":{"goldfc":"{}"},' + text[1:]),
        "key-twice",
    ),
    "facts twice": (
        lambda: with_text(lambda text: text.replace(b'{"goldfc":', b'{"goldfc":"{}","goldfc":')),
        "key-twice",
    ),
    "dtype twice": (
        lambda: with_text(lambda text: text.replace(b'{"dtype":', b'{"dtype":"F64","dtype":', 1)),
        "key-twice",
    ),
    "a fact twice": (
        lambda: with_inner(lambda text: text.replace('"site":', '"site":"ward-b","site":')),
        "key-twice",
    ),
    "a column's name twice": (
        lambda: with_inner(lambda text: text.replace('"name":"smokes"', '"name":"age","name":"smokes"')),
        "key-twice",
    ),
    "a fact twice, once escaped": (
        lambda: with_inner(lambda text: text.replace('"site":', '"\\u0073ite":"ward-b","site":')),
        "key-twice",
    ),
    "an unknown fact": (
        lambda: with_facts(lambda facts: facts.update(rows=[[1.0]])),
        "header-invalid rows",
    ),
    "an unknown term": (
        lambda: with_facts(lambda facts: facts["terms"].update(path="/home")),
        "header-invalid terms.path",
    ),
    "an unknown property of a column": (
        lambda: with_facts(in_column(weight=1.0)),
        "header-invalid terms.columns.0.weight",
    ),
    "an unknown fact that steers the terminal": (
        lambda: with_facts(lambda facts: facts.update({"\x1b[2J\u202e": 1})),
        "header-invalid \\x1b[2J\\u202e",
    ),
    "many unknown facts": (
        lambda: with_facts(lambda facts: facts.update({f"k{number}": 0 for number in range(50_000)})),
        "too-many-keys",
    ),
    "a million brackets outside": (lambda: joined(f'{{"a":{NESTED}'.encode(), b""), "json-invalid"),
    "a million brackets that close": (
        lambda: joined(f'{{"a":{NESTED[:500_000]}{"]" * 500_000}}}'.encode(), b""),
        "json-invalid",
    ),
    "a million braces": (lambda: joined(('{"a":' * 200_000).encode(), b""), "json-invalid"),
    "a million brackets inside": (lambda: with_inner(lambda _: f'{{"a":{NESTED}'), "json-invalid"),
    "a megabyte integer outside": (
        lambda: with_text(lambda text: text.replace(b'"shape":[3,3]', f'"shape":[{LONG},3]'.encode())),
        "json-invalid",
    ),
    "a megabyte integer inside": (lambda: with_inner(lambda text: text.replace("20,", f"{LONG},", 1)), "json-invalid"),
    "a megabyte fraction": (lambda: with_inner(lambda text: text.replace("250.0", f"0.{LONG}")), "not-canonical"),
    "an endless number": (
        lambda: with_inner(lambda text: text.replace("250.0", "1e999")),
        "header-invalid terms.columns.0.range.1: Input should be a finite number",
    ),
    "4000 digits": (
        lambda: with_inner(lambda text: text.replace("250.0", "9" * 4000)),
        "header-invalid terms.columns.0.range.1: Input should be a valid number",
    ),
    "NaN": (lambda: with_inner(lambda text: text.replace("250.0", "NaN")), "json-constant"),
    "Infinity": (
        lambda: with_inner(lambda text: text.replace("250.0", "Infinity")),
        "json-constant",
    ),
    "bad UTF-8": (
        lambda: with_text(lambda text: text.replace("ö".encode(), b"\xff\xfe")),
        "json-invalid",
    ),
    "overlong UTF-8": (lambda: with_text(lambda text: text.replace("ö".encode(), b"\xc0\xaf")), "json-invalid"),
    "UTF-16": (lambda: joined(b"{" + "{}".encode("utf-16"), b""), "json-invalid"),
    "half a character in the header": (
        lambda: with_text(lambda text: text.replace("ö".encode(), b"\\ud800")),
        "json-invalid",
    ),
    "half a character in the facts": (
        lambda: with_inner(lambda text: text.replace("ö", "\\ud800")),
        "header-invalid terms.columns.0.name: Input should be a valid string",
    ),
    "half a character as a key": (
        lambda: with_inner(lambda text: text.replace('"site"', '"\\ud800":1,"site"', 1)),
        "header-invalid it: Input should be a valid string",
    ),
    "half a character as a filling": (
        lambda: with_inner(lambda text: text.replace('"kind":"boolean"', '"fill":"\\ud800","kind":"boolean"')),
        "header-invalid terms.columns.1.fill.constrained-float: Input should be a valid string",
    ),
    "something behind the facts": (lambda: with_inner(lambda text: text + "{}"), "json-invalid"),
    "something behind the header": (lambda: with_text(lambda text: text + b"{}"), "json-invalid"),
    "a byte order mark": (lambda: with_inner(lambda text: "\ufeff" + text), "json-invalid"),
    "many columns": (
        lambda: with_facts(lambda facts: facts["terms"].update(columns=[{"name": f"c{n}"} for n in range(20_000)])),
        "header-invalid terms.columns",
    ),
    "many things that are no columns": (
        lambda: with_facts(lambda facts: facts["terms"].update(columns=[0] * 400_000)),
        "header-invalid terms.columns.0: Input should be a valid dictionary or instance of Column",
    ),
    "the same column twice": (
        lambda: with_facts(lambda facts: facts["terms"].update(columns=[{"name": "a"}, {"name": "a"}])),
        "twice 'a'",
    ),
}


@pytest.mark.parametrize(("make", "code"), PARSER.values(), ids=PARSER)
def test_headers_made_to_break_the_parser_are_refused(make: Callable[[], bytes], code: str, tmp_path: Path) -> None:
    assert_refused(tmp_path, make(), code)


@pytest.mark.parametrize(
    "name",
    [
        "../b",
        "..",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "\u202eb",
        "a\u202eb",
        "a\n",
        ".b",
        "-b",
        "a b",
        "ä",
        "a" * 65,
        "a\0",
        "nul",
        "COM1.x",
    ],
)
@pytest.mark.parametrize("place", ["site", "federation"])
def test_names_that_could_point_elsewhere_are_refused(place: str, name: str, tmp_path: Path) -> None:
    body = with_facts(lambda facts: (facts if place == "site" else facts["terms"]).update({place: name}))
    assert_refused(tmp_path, body, "name-not-plain", place)


@pytest.mark.parametrize("text", ["a\u202eb", "a\x1b[2J", "a\nb", " a", "a" * 201, ""])
def test_columns_that_nobody_could_read_are_refused(text: str, tmp_path: Path) -> None:
    code = "text-not-printable" if 0 < len(text) <= 200 else "header-invalid"
    assert_refused(tmp_path, with_facts(in_column(name=text)), code, "terms.columns.0.name: ")


def test_every_refusal_of_the_format_is_a_sentence_that_begins_with_the_source() -> None:
    with refused(BadMessage, "file-empty"):
        wire.decode(b"")
