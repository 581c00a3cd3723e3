"""TODO."""

import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from goldfc.errors import BadSettings


def write_durably(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file so that it is there whole or not at all, whatever happens: aside, to the disk, then renamed."""
    write_pieces_durably(path, [content], private=private)


def write_pieces_durably(path: Path, pieces: Iterable[bytes | memoryview], *, private: bool = False) -> None:
    """As `write_durably`, without having all of it in memory."""
    # A name that nobody can have put a link at.
    aside = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}.part")
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o644)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


PRIVATE_FOLDER = ".goldfc"


def private_folder(data: Path) -> Path:
    """What stays at the site is in a folder beside the data, for its owner alone; made if need be."""
    return made_private(data.parent / PRIVATE_FOLDER)


def made_private(folder: Path) -> Path:
    """A folder for its owner alone."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    check_private(folder)
    return folder


def check_private(folder: Path) -> None:
    """Refuse a folder that somebody else put there: what stays at the site would go to her."""
    if not os.path.lexists(folder):
        return
    found, me = folder.lstat(), os.geteuid()
    if not stat.S_ISDIR(found.st_mode):
        raise BadSettings(f"{folder} must be a folder, and no link to one; remove it, and it is made anew.")
    if me and found.st_uid != me:
        raise BadSettings(f"{folder} belongs to somebody else; move it away, or work as whom it belongs to.")
