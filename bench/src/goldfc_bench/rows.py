"""Rows in a file, one line each, appended as they are made; and what becomes of a piece of work within its time."""

import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any, Generic, Literal, Protocol, TypeVar

from goldfc.errors import GoldError
from goldfc.files import write_durably
from goldfc_bench.errors import NotForThis

# done; failed: it said why; timeout: it took too long; not tried: a smaller one took too long; error: it broke;
# skipped: it is not for such data or settings.
Status = Literal["done", "failed", "timeout", "not tried", "error", "skipped"]
OUT_OF_TIME: tuple[Status, ...] = ("timeout", "not tried")


class Row(Protocol):
    """One line of a file."""

    def to_json(self) -> str:
        """The line."""
        ...


AnyRow = TypeVar("AnyRow", bound=Row)
Result = TypeVar("Result")


class RowFile(Generic[AnyRow]):
    """A file of rows; each is safely on disk before anything else happens."""

    def __init__(self, path: Path, from_json: Callable[[str], AnyRow]) -> None:
        self.path = path
        self._from_json = from_json

    def read(self) -> list[AnyRow]:
        """All complete rows; what a killed runner left of its last line is not one."""
        if not self.path.is_file():
            return []
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        return [self._from_json(line) for line in lines if line.endswith("\n")]

    def append(self, *rows: AnyRow) -> None:
        """Put rows on disk, now."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(as_lines(rows))
            file.flush()
            os.fsync(file.fileno())

    def rewrite(self, rows: Iterable[AnyRow]) -> None:
        """All rows anew, at once or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(self.path, as_lines(rows).encode())


def as_lines(rows: Iterable[Row]) -> str:
    """One line for every row."""
    return "".join(row.to_json() + "\n" for row in rows)


def attempt(work: Callable[[], Result], limit: float) -> tuple[Status, str, Result | None]:
    """How it ended, why, and the result if there is one; it may take so many seconds."""
    clock = Clock(limit)
    try:
        with clock:
            return "done", "", work()
    except NotForThis as reason:
        return "skipped", str(reason), None
    except Exception as error:  # whatever a method breaks with belongs into its row, not into the runner
        if clock.is_up:  # compiled code may turn the time-out into another error on its way
            return "timeout", f"not done within {limit:g} s", None
        if isinstance(error, GoldError):
            return "failed", str(error), None
        return "error", f"{type(error).__name__}: {error}", None


class Clock:
    """Raises TimeoutError when the time is up; compiled code is not interrupted, but as soon as it returns."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._before: Any = None
        self.is_up = False

    def __enter__(self) -> None:
        """Start it."""
        self._before = signal.signal(signal.SIGALRM, self._stop)
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *_error: object) -> None:
        """Stop it."""
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, self._before)

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        self.is_up = True
        raise TimeoutError
