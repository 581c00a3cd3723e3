"""A private key as a file: for its owner alone, and, if she likes, locked with a passphrase.

Locked, it is ChaCha20-Poly1305 under a key that scrypt makes of the passphrase: 32 MB and a tenth of a second for every
guess.
"""

import base64
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from goldfc.errors import BadSettings
from goldfc.files import shared_with, write_durably

LOCKED_PREFIX = "goldfc-locked-1:"
# Where a program that nobody sits at finds the passphrase.
VARIABLE = "GOLDFC_PASSPHRASE"
SALT_BYTES, NONCE_BYTES = 16, 12
MOST_BYTES_OF_A_KEY = 1000

Ask = Callable[[], str | None]


def from_environment() -> str | None:
    """The passphrase that the environment has."""
    return os.environ.get(VARIABLE)


def read_key_text(path: Path, ask: Ask = from_environment) -> str:
    """The text of a key; `ask` is asked for the passphrase if it is locked."""
    try:
        with path.open("rb") as file:
            found, text = os.fstat(file.fileno()), file.read(MOST_BYTES_OF_A_KEY).decode("ascii").strip()
    except (OSError, ValueError) as error:
        raise BadSettings(f"{path.name} cannot be read as a key.", "key-unreadable") from error
    mode = stat.S_IMODE(found.st_mode)
    if shared_with(found) and text.startswith("goldfc-"):
        raise BadSettings(
            f"{path.name} can be used by others than its owner (mode {mode:o}); a private key must not: "
            f"chmod 600 {path.name}, and make a new one if others have been there.",
            "key-shared",
        )
    return unlocked(text, path.name, ask) if text.startswith(LOCKED_PREFIX) else text


def write_key_text(path: Path, text: str, passphrase: str | None = None) -> None:
    """Into a file that only its owner can read; on Windows, whoever may read its folder can."""
    kept = text if passphrase is None else locked_text(text, passphrase)
    write_durably(path, f"{kept}\n".encode(), private=True)


def locked_text(text: str, passphrase: str) -> str:
    """The text of a key, for those who know the passphrase."""
    if not passphrase:
        raise BadSettings(
            "A passphrase must have at least one letter; a key without one is written without asking.",
            "passphrase-empty",
        )
    salt, nonce = secrets.token_bytes(SALT_BYTES), secrets.token_bytes(NONCE_BYTES)
    hidden = lock_of(passphrase, salt).encrypt(nonce, text.encode(), LOCKED_PREFIX.encode())
    return LOCKED_PREFIX + base64.b64encode(salt + nonce + hidden).decode()


def unlocked(text: str, source: str, ask: Ask) -> str:
    """The text of a key that is locked."""
    passphrase = ask()
    if passphrase is None:
        raise BadSettings(
            f"{source} is locked: say its passphrase when asked, or in the variable {VARIABLE}.", "key-locked"
        )
    try:
        raw = base64.b64decode(text.removeprefix(LOCKED_PREFIX), validate=True)
        salt, nonce, hidden = raw[:SALT_BYTES], raw[SALT_BYTES:][:NONCE_BYTES], raw[SALT_BYTES + NONCE_BYTES :]
        return lock_of(passphrase, salt).decrypt(nonce, hidden, LOCKED_PREFIX.encode()).decode("ascii")
    except (InvalidTag, ValueError) as error:
        raise BadSettings(
            f"{source} does not open with this passphrase, or is damaged; try again.", "passphrase-wrong"
        ) from error


def lock_of(passphrase: str, salt: bytes) -> ChaCha20Poly1305:
    """What a passphrase opens."""
    return ChaCha20Poly1305(Scrypt(salt=salt, length=32, n=2**15, r=8, p=1).derive(passphrase.encode()))
