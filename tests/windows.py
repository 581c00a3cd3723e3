"""As near to Windows as another system gets: what is not there is taken away, and open files stay where they are."""

import ast
import errno
import fcntl
import importlib.util
import os
import signal
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

GONE = (
    *("getuid", "geteuid", "killpg", "link", "fchmod", "fchown", "pread", "preadv", "pwrite", "pwritev"),
    *("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY"),
)
O_TEMPORARY = 1 << 30
SOURCE = Path(__file__).parents[1] / "src" / "goldfc" / "files.py"
# Kept, since they are replaced below.
F_OFD_SETLK, F_WRLCK, F_UNLCK = fcntl.F_OFD_SETLK, fcntl.F_WRLCK, fcntl.F_UNLCK
real_fcntl, real_open, real_close, real_unlink = fcntl.fcntl, os.open, os.close, os.unlink


class Msvcrt(ModuleType):
    """The part of it that locks: one byte range of an open file."""

    LK_UNLCK, LK_NBLCK = 0, 2

    def locking(self, handle: int, mode: int, count: int) -> None:
        """From where the file is read, as there."""
        kind = F_UNLCK if mode == self.LK_UNLCK else F_WRLCK
        place = struct.pack("hhqqi", kind, os.SEEK_SET, os.lseek(handle, 0, os.SEEK_CUR), count, 0)
        try:
            real_fcntl(handle, F_OFD_SETLK, place)
        except BlockingIOError as error:
            raise PermissionError(errno.EACCES, "Permission denied") from error


class Handles:
    """Opens and closes: no folders, and files that go when they are closed."""

    def __init__(self) -> None:
        self.temporary: dict[int, Path] = {}

    def open(self, path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        """A handle."""
        if os.path.isdir(path):  # noqa: PTH112 (a path of any kind)
            raise PermissionError(errno.EACCES, "Permission denied", path)
        handle = real_open(path, flags & ~O_TEMPORARY, mode, **more)
        if flags & O_TEMPORARY:
            self.temporary[handle] = Path(path)
        return handle

    def close(self, handle: int) -> None:
        """And remove what was to be removed."""
        real_close(handle)
        if handle in self.temporary:
            real_unlink(self.temporary.pop(handle))


def is_in_use(path: Any) -> bool:
    """Whether this process has a file open, or in its memory."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    if not stat.S_ISREG(found.st_mode):
        return False
    for handle in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            if os.path.samestat(os.fstat(int(handle)), found):
                return True
        except OSError:
            continue
    return f" {os.path.realpath(path)}\n" in Path("/proc/self/maps").read_text(encoding="utf-8")


def unless_in_use(work: Any) -> Any:
    """Of what removes or renames: nothing that is open, and nothing over what is open."""

    def guarded(*paths: Any, **more: Any) -> Any:
        for path in paths:
            if is_in_use(path):
                raise PermissionError(errno.EACCES, "The process cannot access the file", path)
        return work(*paths, **more)

    return guarded


def rename(source: Any, target: Any) -> None:
    """Never over something."""
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "Cannot create a file when that file already exists", target)
    os.replace(source, target)  # noqa: PTH105 (this is it)


def move_to_windows(patch: pytest.MonkeyPatch) -> None:
    """Have `os` as it is there."""
    for name in GONE:
        patch.delattr(os, name, raising=False)
    handles = Handles()
    patch.setattr(os, "open", handles.open)
    patch.setattr(os, "close", handles.close)
    for name in ("unlink", "remove", "replace"):
        patch.setattr(os, name, unless_in_use(getattr(os, name)))
    patch.setattr(os, "rename", rename)
    patch.setattr(os, "O_BINARY", 0, raising=False)
    patch.setattr(os, "O_TEMPORARY", O_TEMPORARY, raising=False)
    patch.setattr(signal, "CTRL_BREAK_EVENT", signal.SIGTERM, raising=False)
    patch.setattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0, raising=False)
    for name in ("fcntl", "resource"):
        patch.setitem(sys.modules, name, None)


@contextmanager
def named_windows() -> Iterator[None]:
    """While goldfc asks where it is; nobody else should believe it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        patch.setitem(sys.modules, "msvcrt", Msvcrt("msvcrt"))
        yield


def switch(patch: pytest.MonkeyPatch) -> None:
    """Have the goldfc that is imported already work as on Windows."""
    from goldfc import files  # noqa: PLC0415 (the walk imports this module before goldfc)

    move_to_windows(patch)
    spec = importlib.util.spec_from_file_location("files_on_windows", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    there = importlib.util.module_from_spec(spec)
    with named_windows():
        spec.loader.exec_module(there)
    before = {name: getattr(files, name) for name in what_differs() if hasattr(files, name)}
    modules = [module for name, module in sys.modules.items() if name.startswith("goldfc") and module is not None]
    for module in modules:
        for name, value in before.items():
            if vars(module).get(name, before) is value:
                patch.setattr(module, name, getattr(there, name))


def what_differs() -> set[str]:
    """The names that one platform defines in another way than the others."""
    block = next(part for part in ast.parse(SOURCE.read_text(encoding="utf-8")).body if isinstance(part, ast.If))
    inside = [part for one in block.body for part in ([one] if isinstance(one, ast.FunctionDef) else ast.walk(one))]
    functions = {part.name for part in inside if isinstance(part, ast.FunctionDef)}
    return functions | {part.id for part in inside if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
