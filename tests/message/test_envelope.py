"""An envelope opens for one receiver, from one sender, for one purpose, and for nobody and nothing else."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goldfc import Summary
from goldfc.agreement import Agreement, ListedSite, Server
from goldfc.errors import BadMessage, BadSettings, GoldError
from goldfc.message import wire
from goldfc.message.columns import Column, Terms
from goldfc.message.envelope import (
    MAGIC,
    MOST_SEALED_BYTES,
    PRIVATE_PREFIX,
    PUBLIC_PREFIX,
    SUITE,
    Context,
    PrivateKey,
    PublicKey,
    can_be_of_somebody,
    is_sealed,
    read_cover,
    seal,
    unseal,
)
from goldfc.message.keyfile import VARIABLE
from goldfc.message.message import canonical_json
from sentences import refused

SITE, SERVER, STRANGER = PrivateKey.new(), PrivateKey.new(), PrivateKey.new()
UP = Context(federation="heart", round=3, site="ward-a", to="server")
DOWN = Context(federation="heart", round=3, site="ward-a", to="site")
TERMS = Terms(federation="heart", round=3, columns=(Column(name="age"), Column(name="weight")))
BODY = wire.encode(Summary("ward-a", np.array([[50.0, 70.0], [60.0, 80.0]]), terms=TERMS).to_message())
SEALED = seal(BODY, UP, SITE, SERVER.public)
# Points that have the same product, zero, with every private key.
SMALL_ORDER = [
    bytes(32),
    bytes([1]) + bytes(31),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    (2**255 - 20).to_bytes(32, "little"),
    (2**255 - 19).to_bytes(32, "little"),
    (2**255 - 18).to_bytes(32, "little"),
]
# The same for signatures, and the ways to write these that are too large to be canonical; the sign is a bit of its own.
SMALL_ORDER_OF_SIGNATURES = [
    bytes(32),
    bytes([1]) + bytes(31),
    (2**255 - 20).to_bytes(32, "little"),
    (2**255 - 19).to_bytes(32, "little"),
    (2**255 - 18).to_bytes(32, "little"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
]


def changed(**values: Any) -> Context:
    return UP.model_copy(update=values)


def with_cover(text: bytes, sealed: bytes = SEALED) -> bytes:
    """The same content under another cover."""
    return MAGIC + len(text).to_bytes(4, "little") + text + read_cover(sealed)[1]


def cover_of(context: Context) -> bytes:
    return canonical_json(context.model_dump()).encode()


def open_up(message: bytes) -> bytes:
    return unseal(message, UP, SITE.public, SERVER)


def test_what_is_sealed_comes_out_as_it_went_in() -> None:
    assert is_sealed(SEALED)
    assert not is_sealed(BODY)
    assert open_up(SEALED) == BODY
    assert read_cover(SEALED)[0] == UP
    down = seal(BODY, DOWN, SERVER, SITE.public)
    assert unseal(down, DOWN, SERVER.public, SITE) == BODY
    for body in (b"", b"\0", bytes(10**6)):
        assert open_up(seal(body, UP, SITE, SERVER.public)) == body


def test_nothing_of_the_content_shows() -> None:
    assert BODY[:20] not in SEALED
    assert b"age" not in SEALED
    assert b"centroids" not in SEALED


def test_sealing_twice_gives_other_bytes_with_the_same_content() -> None:
    again = seal(BODY, UP, SITE, SERVER.public)
    assert again != SEALED
    assert len(again) == len(SEALED)
    assert open_up(again) == open_up(SEALED)


def test_another_receiver_cannot_open_it() -> None:
    with refused(BadMessage, "envelope-not-opened"):
        unseal(SEALED, UP, SITE.public, STRANGER)
    with refused(BadMessage, "envelope-not-opened"):
        unseal(seal(BODY, UP, SITE, STRANGER.public), UP, SITE.public, SERVER)


def test_another_sender_is_not_believed() -> None:
    with refused(BadMessage, "signature-wrong", "'ward-a'"):
        unseal(SEALED, UP, STRANGER.public, SERVER)
    with refused(BadMessage, "signature-wrong", "'ward-a'"):
        open_up(seal(BODY, UP, STRANGER, SERVER.public))
    with refused(BadMessage, "signature-wrong", "the server"):
        unseal(seal(BODY, DOWN, STRANGER, SITE.public), DOWN, SERVER.public, SITE)


def test_a_sender_whose_key_nobody_knows_is_refused_by_name() -> None:
    sites = (ListedSite(name="ward-a", key=SITE.public.text), ListedSite(name="ward-b", key=STRANGER.public.text))
    agreement = Agreement(federation="heart", server=Server(key=SERVER.public.text), sites=sites, columns=TERMS.columns)
    unknown = seal(BODY, changed(site="ward-c"), PrivateKey.new(), SERVER.public)
    with refused(BadMessage, "site-key-unknown", "'ward-c'"):
        agreement.key_of(read_cover(unknown)[0].site)
    assert unseal(SEALED, UP, agreement.key_of("ward-a"), SERVER) == BODY
    with refused(BadMessage, "signature-wrong", "'ward-a'"):
        unseal(SEALED, UP, agreement.key_of("ward-b"), SERVER)


OTHER_PURPOSES = {
    "federation": (changed(federation="lung"), "federation 'lung', not for 'heart'"),
    "round": (changed(round=2), "round 2, not for 3"),
    "site": (changed(site="ward-b"), "site 'ward-b', not for 'ward-a'"),
    "direction": (changed(to="site"), "to 'site', not for 'server'"),
}
other_purposes = pytest.mark.parametrize(("purpose", "shown"), OTHER_PURPOSES.values(), ids=OTHER_PURPOSES)


@other_purposes
def test_a_message_for_another_purpose_is_refused(purpose: Context, shown: str) -> None:
    with refused(BadMessage, "envelope-elsewhere", shown):
        open_up(seal(BODY, purpose, SITE, SERVER.public))


@other_purposes
def test_a_signed_message_under_a_changed_cover_is_refused(purpose: Context, shown: str) -> None:
    assert shown
    foreign = seal(BODY, purpose, SITE, SERVER.public)
    with refused(BadMessage, "envelope-not-opened"):
        open_up(with_cover(cover_of(UP), foreign))


@other_purposes
def test_a_signature_for_another_purpose_is_refused_even_if_sealed_anew(purpose: Context, shown: str) -> None:
    """Whoever opens a message cannot pass it on as meant for something else."""
    assert shown
    signature = SITE.parts()[0].sign(purpose.bound_to(SERVER.public) + b"\n" + BODY)
    inside = SUITE.encrypt(signature + BODY, SERVER.public.parts()[1], info=UP.bound_to(SERVER.public))
    cover = cover_of(UP)
    forged = MAGIC + len(cover).to_bytes(4, "little") + cover + inside
    with refused(BadMessage, "signature-wrong", "'ward-a'"):
        open_up(forged)


def test_a_message_cannot_be_sealed_anew_for_another_server() -> None:
    opened = SUITE.decrypt(read_cover(SEALED)[1], SERVER.parts()[1], info=UP.bound_to(SERVER.public))
    inside = SUITE.encrypt(opened, STRANGER.public.parts()[1], info=UP.bound_to(STRANGER.public))
    cover = cover_of(UP)
    forged = MAGIC + len(cover).to_bytes(4, "little") + cover + inside
    with refused(BadMessage, "signature-wrong", "'ward-a'"):
        unseal(forged, UP, SITE.public, STRANGER)


def test_an_envelope_without_a_signature_is_refused() -> None:
    cover = cover_of(UP)
    for inside in (b"", b"short", BODY):
        sealed = SUITE.encrypt(inside, SERVER.public.parts()[1], info=UP.bound_to(SERVER.public))
        with refused(BadMessage, "signature-wrong", "'ward-a'"):
            open_up(MAGIC + len(cover).to_bytes(4, "little") + cover + sealed)


COVERS = {
    "nothing": (b"", "json-invalid"),
    "no JSON": (b"{", "json-invalid"),
    "bad UTF-8": (b'{"site":"\xff"}', "json-invalid"),
    "brackets": (b"[" * 1000, "json-invalid"),
    "a list": (b"[]", "json-no-object"),
    "an empty cover": (b"{}", "cover-invalid federation: Field required"),
    "a key twice": (cover_of(UP).replace(b'"round":3', b'"round":3,"round":3'), "key-twice"),
    "an unknown key": (
        cover_of(UP).replace(b'"round":3', b'"room":1,"round":3'),
        "cover-invalid room",
    ),
    "a key that steers the terminal": (
        cover_of(UP).replace(b'"round":3', b'"\\u001b[2J":1,"round":3'),
        "cover-invalid \\x1b[2J",
    ),
    "a path": (cover_of(changed(site="../ward-a")), "name-not-plain"),
    "right to left": (cover_of(changed(site="\u202eward-a")), "name-not-plain"),
    "a negative round": (
        cover_of(changed(round=-1)),
        "cover-invalid round: Input should be greater than or equal to 0",
    ),
    "a text as round": (cover_of(UP).replace(b":3", b':"3"'), "cover-invalid round: Input should be a valid integer"),
    "yes as round": (cover_of(UP).replace(b":3", b":true"), "cover-invalid round: Input should be a valid integer"),
    "another direction": (
        cover_of(UP).replace(b'"server"', b'"sideways"'),
        "cover-invalid to: String should match pattern",
    ),
    "a direction and a line end": (
        cover_of(UP).replace(b'"server"', b'"server\\n"'),
        "cover-invalid to: String should match pattern",
    ),
    "blanks": (cover_of(UP).replace(b":3", b": 3"), "not-canonical"),
    "another order": (
        b'{"to":"server",' + cover_of(UP)[1:].replace(b',"to":"server"', b""),
        "not-canonical",
    ),
    "escaped letters": (
        cover_of(UP).replace(b"ward", b"\\u0077ard"),
        "not-canonical",
    ),
    "a long cover": (b" " * 1001, "envelope-damaged"),
}


@pytest.mark.parametrize(("cover", "code"), COVERS.values(), ids=COVERS)
def test_covers_that_are_not_as_they_should_be_are_refused(cover: bytes, code: str) -> None:
    for look in (read_cover, open_up):
        with refused(BadMessage, code) as caught:
            look(with_cover(cover))
        assert str(caught.value).isprintable()


def test_an_envelope_cut_at_any_byte_is_refused() -> None:
    for length in range(len(SEALED)):
        with pytest.raises(BadMessage) as caught:
            open_up(SEALED[:length])
        assert caught.value.code in {"envelope-none", "envelope-damaged", "envelope-not-opened"}


def test_what_is_no_envelope_is_refused() -> None:
    for message in (b"", BODY, b"x" + SEALED, SEALED.replace(b"sealed 1", b"sealed 2", 1)):
        with refused(BadMessage, "envelope-none"):
            open_up(message)


def test_an_envelope_that_is_too_large_is_refused_before_it_is_opened() -> None:
    with refused(BadMessage, "envelope-large", "16779217", "16779216"):
        open_up(MAGIC + bytes(MOST_SEALED_BYTES + 1 - len(MAGIC)))


def flip_bit(message: bytearray, rng: np.random.Generator) -> None:
    message[rng.integers(len(message))] ^= 1 << int(rng.integers(8))


def change_number(message: bytearray, rng: np.random.Generator) -> None:
    """Another 64-bit number in the place of one."""
    start = int(rng.integers(len(message) - 8))
    message[start : start + 8] = np.float64(rng.normal()).tobytes()


def open_as_the_server_does(message: bytes) -> bytes:
    """A body in an envelope, or one without where somebody has taken that off."""
    body = open_up(message) if is_sealed(message) else message
    wire.decode(body)
    return body


def test_none_of_ten_thousand_flips_under_the_envelope_is_accepted() -> None:
    rng, refused = np.random.default_rng(0), 0
    for number in range(10_000):
        message = bytearray(SEALED)
        (flip_bit if number % 2 else change_number)(message, rng)
        assert message != SEALED
        try:
            open_as_the_server_does(bytes(message))
        except BadMessage:
            refused += 1
    assert refused == 10_000


def test_an_envelope_is_opened_only_if_every_bit_is_as_it_was() -> None:
    for place in range(8 * len(SEALED)):
        message = bytearray(SEALED)
        message[place // 8] ^= 1 << place % 8
        with pytest.raises(BadMessage):
            open_up(bytes(message))


def test_bytes_behind_the_end_are_refused() -> None:
    with refused(BadMessage, "envelope-not-opened"):
        open_up(SEALED + b"\0")


# --- keys


def test_a_private_key_does_not_show_itself() -> None:
    secret = SITE.text.removeprefix(PRIVATE_PREFIX)
    for shown in (repr(SITE), str(SITE), f"{SITE}", repr([SITE]), repr(SITE.public), repr(SITE.parts())):
        assert secret not in shown
        assert PRIVATE_PREFIX not in shown


def test_a_key_is_kept_in_a_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "ward-a.key"
    path.write_text("an older one")
    path.chmod(0o644)
    SITE.write(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert PrivateKey.read(path) == SITE
    assert PrivateKey.read(path).public == SITE.public


def test_no_two_keys_are_the_same() -> None:
    keys = [PrivateKey.new() for _ in range(20)]
    assert len({key.text for key in keys} | {key.public.text for key in keys}) == 40


def key_of(raw: bytes, prefix: str = PUBLIC_PREFIX) -> str:
    return prefix + base64.b64encode(raw).decode()


def with_spare_bits(text: str) -> str:
    """Another text that decodes to the same bytes."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return text[:-3] + letters[letters.index(text[-3]) + 1] + "=="


MALFORMED = [
    "",
    "goldfc-public-1:",
    SITE.text,
    SITE.public.text[:-1],
    SITE.public.text + "A",
    SITE.public.text + "\n",
    " " + SITE.public.text,
    SITE.public.text.replace("public-1", "public-2"),
    SITE.public.text.removeprefix(PUBLIC_PREFIX),
    with_spare_bits(SITE.public.text),
    key_of(bytes(63)),
    key_of(bytes(65)),
    PUBLIC_PREFIX + "!" * 88,
    PUBLIC_PREFIX + "ä" * 88,
    PUBLIC_PREFIX + "\ud800" * 88,
]


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_public_keys_are_refused(text: str) -> None:
    with refused(BadSettings, "key-malformed", "'goldfc-public-1:'", "88"):
        PublicKey(text)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", SITE.public.text.encode(), SITE.text.encode()[:-1], b"\0" * 10**5]
)
def test_malformed_private_keys_are_refused_without_showing_them(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "ward-a.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(BadSettings, match=r"not a private key of goldfc|ward-a\.key cannot be read as a key") as caught:
        PrivateKey.read(path)
    assert content[20:60] not in str(caught.value).encode() or not content[20:60]


def test_a_key_that_is_not_there_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "ward-a.key", tmp_path):
        with refused(BadSettings, "key-unreadable", path.name):
            PrivateKey.read(path)


@pytest.mark.parametrize("point", SMALL_ORDER, ids=lambda point: point.hex()[:8])
def test_public_keys_that_protect_nothing_are_refused(point: bytes) -> None:
    signing = SITE.public.parts()[0].public_bytes_raw()
    with refused(BadSettings, "key-protects-nothing"):
        PublicKey(key_of(signing + point))


@pytest.mark.parametrize("sign", [0, 128])
@pytest.mark.parametrize("point", SMALL_ORDER_OF_SIGNATURES, ids=lambda point: point.hex()[:8])
def test_keys_for_signatures_of_small_order_are_refused(point: bytes, sign: int) -> None:
    sealing = SITE.public.parts()[1].public_bytes_raw()
    with refused(BadSettings, "key-protects-nothing"):
        PublicKey(key_of(point[:31] + bytes([point[31] | sign]) + sealing))


def test_every_key_that_is_made_can_be_somebodys() -> None:
    assert all(can_be_of_somebody(PrivateKey.new().public.parts()[0].public_bytes_raw()) for _ in range(100))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_private_key_that_others_can_read_is_refused(mode: int, tmp_path: Path) -> None:
    SITE.write(path := tmp_path / "ward-a.key")
    path.chmod(mode)
    with refused(BadSettings, "key-shared", "ward-a.key", f"mode {mode:o}"):
        PrivateKey.read(path)
    path.chmod(0o400)
    assert PrivateKey.read(path) == SITE


def test_a_locked_key_opens_with_its_passphrase_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SITE.write(path := tmp_path / "ward-a.key", "a passphrase")
    assert SITE.text.removeprefix(PRIVATE_PREFIX) not in path.read_text(encoding="ascii")
    assert path.stat().st_mode & 0o777 == 0o600
    assert PrivateKey.read(path, lambda: "a passphrase") == SITE
    monkeypatch.delenv(VARIABLE, raising=False)
    with refused(BadSettings, "key-locked", "ward-a.key", VARIABLE):
        PrivateKey.read(path)
    monkeypatch.setenv(VARIABLE, "a passphrase")
    assert PrivateKey.read(path) == SITE
    for text in (path.read_text(encoding="ascii")[:-9], path.read_text(encoding="ascii")[:20]):
        path.write_text(text, encoding="ascii")
        with refused(BadSettings, "passphrase-wrong"):
            PrivateKey.read(path)
    SITE.write(path, "a passphrase")
    with refused(BadSettings, "passphrase-wrong"):
        PrivateKey.read(path, lambda: "another")
    with refused(BadSettings, "passphrase-empty"):
        SITE.write(tmp_path / "ward-b.key", "")


@pytest.mark.parametrize("point", SMALL_ORDER, ids=lambda point: point.hex()[:8])
def test_an_envelope_made_with_a_key_that_protects_nothing_is_refused(point: bytes) -> None:
    """The sender's one-time key is the beginning of what is sealed."""
    start = len(SEALED) - len(read_cover(SEALED)[1])
    with refused(BadMessage, "envelope-not-opened"):
        open_up(SEALED[:start] + point + SEALED[start + 32 :])


@pytest.mark.parametrize("point", [bytes(32), b"\xff" * 32, bytes([2]) + bytes(31), bytes([1]) + bytes(31)])
def test_keys_for_signatures_that_are_none_are_refused(point: bytes) -> None:
    with pytest.raises(GoldError):
        unseal(SEALED, UP, PublicKey(key_of(point + SERVER.parts()[1].public_key().public_bytes_raw())), SERVER)
