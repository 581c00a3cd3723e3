"""Files, locks and groups of processes: the one place that knows on which platform it runs.

What Windows cannot do is said in docs/privacy.md: it tells neither who owns a file nor who else may read it.
"""

import errno
import os
import secrets
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, TypeVar

from goldfc.errors import BadSettings

Result = TypeVar("Result")

PRIVATE_FOLDER = ".goldfc"
OWNER_ONLY = 0o600
# A lock that somebody else holds, and a file that cannot be replaced just now, are tried again after so many seconds.
TRY_AGAIN = 0.02
# macOS reads less than 2 GiB at a time.
MOST_READ_AT_ONCE = 2**30
JUNCTION = 0xA0000003  # what Windows calls a link between folders that anybody may make

# --- what differs between platforms ---

if sys.platform == "win32":
    import msvcrt

    # No flag refuses links or pipes, so `open_handle` looks before and after. NTFS has a journal of names.
    BINARY, REFUSE_LINKS, DELETE_ON_CLOSE, CAN_SYNC_FOLDERS = os.O_BINARY, 0, os.O_TEMPORARY, False
    FOR_OTHERS = 0
    # A file that somebody reads, such as a virus scanner, cannot be replaced; for so many seconds it is tried again.
    PATIENCE = 2.0
    OWN_GROUP: dict[str, Any] = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    LOCKED_BYTE = 2**30  # a locked byte cannot be read, so it is one that no file here has
    ONE_AT_A_TIME = Lock()  # an open file has one place that is read or written, whichever thread does

    def me() -> int | None:
        """Whose files are mine: not told."""
        return None

    def try_lock(handle: int) -> bool:
        """Hold an open file, unless somebody else does."""
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def unlock(handle: int) -> None:
        """Let go of it."""
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

    def read_at(handle: int, size: int, offset: int) -> bytes:
        """Some bytes from a place in an open file, from any thread; fewer at its end."""
        with ONE_AT_A_TIME:
            os.lseek(handle, offset, os.SEEK_SET)
            return os.read(handle, size)

    def read_into(handle: int, into: memoryview, offset: int) -> int:
        """As many bytes as have room, or fewer; how many these are."""
        found = read_at(handle, len(into), offset)
        into[: len(found)] = found
        return len(found)

    def write_at(handle: int, content: bytes | memoryview, offset: int) -> int:
        """Some bytes to a place in an open file; how many were written."""
        with ONE_AT_A_TIME:
            os.lseek(handle, offset, os.SEEK_SET)
            return os.write(handle, content)

    def end_group(process: "subprocess.Popen[bytes]", *, force: bool) -> None:
        """End a process that was started with `OWN_GROUP`, and its children."""
        if force:
            command = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
            subprocess.run(command, capture_output=True, check=False)  # noqa: S603 (our own command)
        else:
            process.send_signal(signal.CTRL_BREAK_EVENT)

else:
    import fcntl

    BINARY, REFUSE_LINKS, DELETE_ON_CLOSE, CAN_SYNC_FOLDERS = 0, os.O_NOFOLLOW | os.O_NONBLOCK, 0, True
    FOR_OTHERS = stat.S_IRWXG | stat.S_IRWXO
    PATIENCE = 0.0
    OWN_GROUP: dict[str, Any] = {"start_new_session": True}
    me, read_at, write_at = os.geteuid, os.pread, os.pwrite

    def read_into(handle: int, into: memoryview, offset: int) -> int:
        """As many bytes as have room, or fewer; how many these are."""
        return os.preadv(handle, [into[:MOST_READ_AT_ONCE]], offset)

    def try_lock(handle: int) -> bool:
        """Hold an open file, unless somebody else does."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(handle: int) -> None:
        """Let go of it."""
        fcntl.flock(handle, fcntl.LOCK_UN)

    def end_group(process: "subprocess.Popen[bytes]", *, force: bool) -> None:
        """End a process that was started with `OWN_GROUP`, and its children."""
        with suppress(ProcessLookupError, PermissionError):  # on macOS, who has ended already may not be ended
            os.killpg(process.pid, signal.SIGKILL if force else signal.SIGTERM)


# --- whole or not at all ---


def write_durably(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file so that it is there whole or not at all, whatever happens: aside, to the disk, then renamed."""
    write_pieces_durably(path, [content], private=private)


def write_pieces_durably(path: Path, pieces: Iterable[bytes | memoryview], *, private: bool = False) -> None:
    """As `write_durably`, without having all of it in memory; on Windows, who may read it is up to its folder."""
    # A name that nobody can have put a link at.
    aside = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}.part")
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, OWNER_ONLY if private else 0o644)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        patiently(lambda: aside.replace(path))
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, too, where that can be asked for."""
    if CAN_SYNC_FOLDERS:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def append_durably(path: Path, line: bytes) -> None:
    """One more line of a private file, on the disk; not through a link. It is whole, even if the last one is not."""
    with os.fdopen(open_handle(path, os.O_RDWR | os.O_APPEND | os.O_CREAT), "ab") as file, held(file.fileno()):
        size = os.fstat(file.fileno()).st_size
        cut_off = size > 0 and read_at(file.fileno(), 1, size - 1) != b"\n"
        file.write(b"\n" * cut_off + line)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def read_whole(path: Path) -> bytes:
    """A file that was written whole, also while it is replaced."""
    return patiently(path.read_bytes)


def patiently(work: Callable[[], Result]) -> Result:
    """Do what is forbidden for a moment while somebody else has the file open."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return work()
        except PermissionError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(TRY_AGAIN)


# --- a stranger's files ---


def open_plain(path: Path) -> BinaryIO:
    """A file that a stranger may have put there, to read: not through a link, and no folder, pipe or device."""
    return os.fdopen(open_handle(path, os.O_RDONLY), "rb")


def open_handle(path: Path, flags: int) -> int:
    """A handle on a plain file; where links are not refused while it is opened, it is looked at before and after."""
    with suppress(FileNotFoundError):
        refuse_other_than_plain(path.lstat())
    handle = os.open(path, flags | BINARY | REFUSE_LINKS, OWNER_ONLY)
    try:
        found = os.fstat(handle)
        refuse_other_than_plain(found)
        if not REFUSE_LINKS and not os.path.samestat(found, path.lstat()):
            raise OSError(errno.EINVAL, "It was replaced meanwhile")
    except BaseException:
        os.close(handle)
        raise
    return handle


def refuse_other_than_plain(found: os.stat_result) -> None:
    """A link leads elsewhere, and a pipe or a device may never end."""
    if is_link(found):
        raise OSError(errno.EINVAL, "It is a link")
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "It is a folder, a pipe or a device")


def is_link(found: os.stat_result) -> bool:
    """Whether it leads elsewhere."""
    return stat.S_ISLNK(found.st_mode) or getattr(found, "st_reparse_tag", 0) == JUNCTION


# --- scratch files: `read_at`, `read_into` and `write_at` go to a place in them ---


def open_scratch(path: Path) -> int:
    """A file that is gone when it is closed or the process ends; where that can be, it loses its name at once."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | BINARY | DELETE_ON_CLOSE, OWNER_ONLY)
    if not DELETE_ON_CLOSE:
        path.unlink()
    return handle


# --- locks ---


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold a lock file, which is made if need be; if somebody else does, wait, or raise `BlockingIOError`."""
    with os.fdopen(open_handle(path, os.O_RDWR | os.O_CREAT), "r+b") as file, held(file.fileno(), wait=wait):
        yield


@contextmanager
def held(handle: int, *, wait: bool = True) -> Iterator[None]:
    """Hold an open file; that ends with the process at the latest."""
    while not try_lock(handle):
        if not wait:
            raise BlockingIOError(errno.EAGAIN, "Somebody else holds it")
        time.sleep(TRY_AGAIN)
    try:
        yield
    finally:
        unlock(handle)


# --- who owns what ---


def private_folder(data: Path) -> Path:
    """What stays at the site is in a folder beside the data, for its owner alone; made if need be."""
    return made_private(data.parent / PRIVATE_FOLDER)


def made_private(folder: Path) -> Path:
    """A folder for its owner alone; on Windows, by a Python of June 2024 or later, and for administrators."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    check_private(folder)
    return folder


def check_private(folder: Path) -> None:
    """Refuse a folder that somebody else put there: what stays at the site would go to her. Windows does not tell."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return
    if is_link(found) or not stat.S_ISDIR(found.st_mode):
        raise BadSettings(
            f"{folder} must be a folder, and no link to one; remove it, and it is made anew.", "private-folder-link"
        )
    if me() not in {None, 0, found.st_uid}:
        raise BadSettings(
            f"{folder} belongs to somebody else; move it away, or work as whom it belongs to.", "private-folder-foreign"
        )


def is_private(folder: Path) -> bool:
    """Whether there is a folder that nobody else can write to; on Windows, one in the user's home."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    if is_link(found) or not stat.S_ISDIR(found.st_mode):
        return False
    if me() is None:
        return folder.resolve().is_relative_to(Path.home().resolve())
    return found.st_uid == me() and not shared_with(found)


def shared_with(found: os.stat_result) -> int:
    """The rights that others than the owner have; Windows does not tell."""
    return found.st_mode & FOR_OTHERS
