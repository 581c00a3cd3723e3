"""Whether the compiled part is still to be compiled: that takes its time, and nobody should wonder. Needs no compiler.

What was compiled is kept on disk: beside the code, or where NUMBA_CACHE_DIR says, or, where neither can be written, in
the user's own cache.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock

# What is compiled: the module, the function that is called from outside, and how long it takes.
LEARNING = ("_epoch", "epoch", "half a minute")

_ANNOUNCED: set[tuple[str, str, str]] = set()
_LOCK = Lock()  # sites may learn side by side


def announce(part: tuple[str, str, str]) -> None:
    """Log, at level INFO and once per process, that a part is going to be compiled, if it is."""
    with _LOCK:
        if part in _ANNOUNCED:
            return
        _ANNOUNCED.add(part)
    if must_be_compiled(part):
        forget_outdated()
        logging.getLogger("goldfc").info("Compiling for this machine; this happens once and takes about %s.", part[2])


def must_be_compiled(part: tuple[str, str, str]) -> bool:
    """Whether there is nothing on disk for the code as it is now."""
    return all(index.stat().st_mtime < _last_edit() for index in _indices(part))


def forget_outdated() -> None:
    """Let go of all that was compiled before the last edit: the compiler would stumble over names that are gone."""
    for index in _indices(("_*", "*", "")):
        with suppress(OSError):  # others may be doing the same
            if index.stat().st_mtime < _last_edit():
                index.unlink()


def _last_edit() -> float:
    return max(source.stat().st_mtime for source in Path(__file__).parent.glob("_*.py"))


def _indices(part: tuple[str, str, str]) -> list[Path]:
    """The compiler's tables of contents for a function."""
    module, function, _ = part
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    pattern = f"{module}.{function}-*.{version}*.nbi"
    return [index for folder in _folders(Path(__file__)) for index in folder.glob(pattern)]


def _folders(source: Path) -> Iterator[Path]:
    """Where the compiler may keep what it made of a file; elsewhere than beside it, each folder of code has its own."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if not chosen:
        yield source.parent / "__pycache__"
        chosen = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        chosen = str(Path(chosen) / "numba")
    yield from Path(chosen).glob(f"{source.parent.name}_*")
