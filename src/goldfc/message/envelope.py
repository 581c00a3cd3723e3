"""An envelope for messages: signed by the sender, readable by the receiver alone, good for one purpose.

Ed25519 signature inside HPKE (X25519, HKDF-SHA256, ChaCha20-Poly1305). Both are bound to the context: federation,
round, site and the receiver's key. So a message cannot be used in another round, for another site or at another
server, and nobody but the holder of the sender's key can have written it.
"""

import base64
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from pydantic import Field, ValidationError

from goldfc.errors import BadMessage, BadSettings
from goldfc.message.columns import Name, Strict, complaint_code, first_complaint
from goldfc.message.keyfile import Ask, from_environment, read_key_text, write_key_text
from goldfc.message.message import canonical_json
from goldfc.message.wire import MOST_BYTES_OF_A_MESSAGE, MOST_ENVELOPE_BYTES, naming, parse_json

MAGIC = b"goldfc sealed 1\n"
SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
KEY_BYTES, SIGNATURE_BYTES = 32, 64
PUBLIC_PREFIX, PRIVATE_PREFIX = "goldfc-public-1:", "goldfc-private-1:"
MOST_CONTEXT_BYTES = 1000
MOST_SEALED_BYTES = MOST_BYTES_OF_A_MESSAGE + MOST_ENVELOPE_BYTES
# The field of Ed25519's curve, -x^2 + y^2 = 1 + D x^2 y^2, and the second coordinates of its points of small order.
# Under such a key one signature fits many messages.
FIELD = 2**255 - 19
D = -121665 * pow(121666, -1, FIELD) % FIELD
OF_ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
SMALL_ORDER = frozenset({0, 1, FIELD - 1, OF_ORDER_8, FIELD - OF_ORDER_8})


@dataclass(frozen=True)
class PublicKey:
    """What others know of somebody: how to check a signature, and how to write to her alone."""

    text: str

    def __post_init__(self) -> None:
        """Refuse what is no key, and keys that everybody could open an envelope for, or sign with."""
        signing, sealing = self.parts()
        nothing = BadSettings("This public key protects nothing: no private key belongs to it.", "key-protects-nothing")
        if not can_be_of_somebody(signing.public_bytes_raw()):
            raise nothing
        try:
            X25519PrivateKey.generate().exchange(sealing)
        except ValueError as error:
            raise nothing from error

    def parts(self) -> tuple[Ed25519PublicKey, X25519PublicKey]:
        """The two keys: to check signatures, and to seal."""
        signing, sealing = split_key(self.text, PUBLIC_PREFIX)
        return Ed25519PublicKey.from_public_bytes(signing), X25519PublicKey.from_public_bytes(sealing)


@dataclass(frozen=True, repr=False)
class PrivateKey:
    """What nobody else may know."""

    text: str

    def parts(self) -> tuple[Ed25519PrivateKey, X25519PrivateKey]:
        """The two keys: to sign, and to open."""
        signing, sealing = split_key(self.text, PRIVATE_PREFIX)
        return Ed25519PrivateKey.from_private_bytes(signing), X25519PrivateKey.from_private_bytes(sealing)

    @cached_property
    def public(self) -> PublicKey:
        """What others may know."""
        signing, sealing = self.parts()
        raw = signing.public_key().public_bytes_raw() + sealing.public_key().public_bytes_raw()
        return PublicKey(PUBLIC_PREFIX + base64.b64encode(raw).decode())

    @classmethod
    def new(cls) -> "PrivateKey":
        """A key that nobody has."""
        raw = Ed25519PrivateKey.generate().private_bytes_raw() + X25519PrivateKey.generate().private_bytes_raw()
        return cls(PRIVATE_PREFIX + base64.b64encode(raw).decode())

    @classmethod
    def read(cls, path: Path, ask: Ask = from_environment) -> "PrivateKey":
        """From its file; `ask` is asked for the passphrase, if it is locked with one."""
        key = cls(read_key_text(path, ask))
        key.parts()
        return key

    def write(self, path: Path, passphrase: str | None = None) -> None:
        """Into a file that only its owner can read, locked if there is a passphrase."""
        write_key_text(path, self.text, passphrase)


def can_be_of_somebody(point: bytes) -> bool:
    """Whether this is a point of Ed25519's curve, written in the one way that it is written in, and not of small order.

    x^2 = (y^2 - 1) / (D y^2 + 1), which must be a square: Euler's criterion.
    """
    y = int.from_bytes(point, "little") % 2**255
    if y >= FIELD or y in SMALL_ORDER:
        return False
    square = (y * y - 1) * pow(D * y * y + 1, -1, FIELD) % FIELD
    return pow(square, (FIELD - 1) // 2, FIELD) == 1


def split_key(text: str, prefix: str) -> tuple[bytes, bytes]:
    """The two halves of a key."""
    try:
        raw = base64.b64decode(text.removeprefix(prefix), validate=True) if text.startswith(prefix) else b""
    except ValueError:
        raw = b""
    # The last letter has bits to spare, but a key has one text only: it is part of what is signed.
    if len(raw) != 2 * KEY_BYTES or prefix + base64.b64encode(raw).decode() != text:
        what = "public" if prefix == PUBLIC_PREFIX else "private"
        raise BadSettings(f"This is not a {what} key of goldfc: it must be {prefix!r} and 88 letters.", "key-malformed")
    return raw[:KEY_BYTES], raw[KEY_BYTES:]


class Context(Strict):
    """What a message is for; `to` is who shall open it: the server, or the site itself."""

    federation: Name
    round: int = Field(ge=0, le=10**9)
    site: Name
    to: str = Field(pattern="^(server|site)$")

    def bound_to(self, receiver: PublicKey) -> bytes:
        """As it enters signature and encryption."""
        return canonical_json({**self.model_dump(), "receiver": receiver.text}).encode()


def seal(body: bytes, context: Context, sender: PrivateKey, receiver: PublicKey) -> bytes:
    """Sign, then encrypt."""
    bound = context.bound_to(receiver)
    signature = sender.parts()[0].sign(bound + b"\n" + body)
    cover = canonical_json(context.model_dump()).encode()
    sealed: bytes = SUITE.encrypt(signature + body, receiver.parts()[1], info=bound)
    return MAGIC + len(cover).to_bytes(4, "little") + cover + sealed


def is_sealed(message: bytes) -> bool:
    """Whether it is in an envelope."""
    return message.startswith(MAGIC)


def read_cover(message: bytes) -> tuple[Context, bytes]:
    """What the envelope says of itself, and what is inside, still sealed."""
    if len(message) > MOST_SEALED_BYTES:
        raise BadMessage(
            f"The envelope has {len(message)} bytes, and {MOST_SEALED_BYTES} is the limit.", "envelope-large"
        )
    if not is_sealed(message):
        raise BadMessage("This is not an envelope of goldfc: it does not begin like one.", "envelope-none")
    start = len(MAGIC) + 4
    length = int.from_bytes(message[len(MAGIC) : start], "little")
    if length > MOST_CONTEXT_BYTES or len(message) < start + length:
        raise BadMessage("The envelope is cut off or damaged.", "envelope-damaged")
    cover = message[start : start + length]
    with naming("What the envelope says of itself"):
        facts = parse_json(cover)
    try:
        context = Context.model_validate(facts)
    except ValidationError as error:
        raise BadMessage(
            f"What the envelope says of itself is not as it should be ({first_complaint(error)}).",
            complaint_code(error, "cover-invalid"),
        ) from error
    if canonical_json(context.model_dump()).encode() != cover:
        raise BadMessage(
            "What the envelope says of itself is not in canonical form: the same content must have the same bytes.",
            "not-canonical",
        )
    return context, message[start + length :]


def unseal(message: bytes, expected: Context, sender: PublicKey, receiver: PrivateKey) -> bytes:
    """The body, if it was sealed for this very purpose by this very sender."""
    context, sealed = read_cover(message)
    for field in ("federation", "round", "site", "to"):
        if getattr(context, field) != getattr(expected, field):
            raise BadMessage(
                f"The envelope is for {field} {getattr(context, field)!r}, not for {getattr(expected, field)!r}; "
                "it belongs elsewhere, or an old one was sent again. What was sealed in an earlier round opens with "
                "the federation.toml of that one.",
                "envelope-elsewhere",
            )
    bound = expected.bound_to(receiver.public)
    try:
        opened = SUITE.decrypt(sealed, receiver.parts()[1], info=bound)
    except (InvalidTag, ValueError) as error:
        raise BadMessage(
            "The envelope cannot be opened: it is sealed for another receiver, or damaged.", "envelope-not-opened"
        ) from error
    signature, body = opened[:SIGNATURE_BYTES], opened[SIGNATURE_BYTES:]
    try:
        sender.parts()[0].verify(signature, bound + b"\n" + body)
    except InvalidSignature as error:
        raise BadMessage(
            f"The envelope is not signed with the known key of {expected.site!r}."
            if expected.to == "server"
            else "The envelope is not signed with the known key of the server.",
            "signature-wrong",
        ) from error
    return bytes(body)
