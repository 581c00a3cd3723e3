"""Files are whole or not there, private, and nobody else's; on this platform, and as it would be on Windows."""

import ast
import errno
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import windows
from goldfc import files
from goldfc.errors import BadMessage, BadSettings
from goldfc.message.wire import read_message
from goldfc.server.folder import Folder
from goldfc.site.ledger import Ledger
from goldfc.site.policy import Policy
from goldfc.site.table.scratch import MOST_AT_ONCE, OnDisk, Scratch
from sentences import refused
from sites import agreement, rows_of, write_agreement

NAME = "ward-a.goldfc"
IS_ROOT = os.geteuid() == 0
SOURCES = windows.SOURCE.parent


@pytest.fixture(params=["here", "on Windows"])
def platform(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every law holds on both."""
    monkeypatch.setenv("HOME", str(tmp_path))
    if request.param == "on Windows":
        windows.switch(monkeypatch)
    return str(request.param)


@pytest.fixture
def on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    windows.switch(monkeypatch)


everywhere = pytest.mark.usefixtures("platform")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fail(number: int) -> Callable[..., Any]:
    def failing(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return failing


def started(script: str, *arguments: Path) -> "subprocess.Popen[str]":
    """A process of ours, as soon as it says something."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 (our own script)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def killed(process: "subprocess.Popen[str]") -> None:
    with process:
        process.kill()


# --- whole or not at all ---


@everywhere
def test_what_was_written_is_there_and_nothing_else(tmp_path: Path) -> None:
    for content in (b"first", b"second\r\n\n", b""):
        files.write_durably(tmp_path / NAME, content)
        assert (tmp_path / NAME).read_bytes() == files.read_whole(tmp_path / NAME) == content
        assert names_in(tmp_path) == [NAME]


class FullDisk(io.FileIO):
    """A file on a disk that takes a few bytes more, and then no more."""

    def write(self, content: Any) -> int:
        """Fail, but not before something is there."""
        super().write(bytes(content)[:3])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@everywhere
@pytest.mark.parametrize("when", ["writing", "syncing", "renaming"])
def test_a_full_disk_leaves_the_old_file_as_it_was(when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write_durably(tmp_path / NAME, b"old")
    with monkeypatch.context() as disk:
        if when == "writing":
            disk.setattr(os, "fdopen", FullDisk)
        elif when == "syncing":
            disk.setattr(os, "fsync", fail(errno.ENOSPC))
        else:
            disk.setattr(Path, "replace", fail(errno.ENOSPC))
        with pytest.raises(OSError, match="No space left on device"):
            files.write_durably(tmp_path / NAME, b"new and longer")
    assert (tmp_path / NAME).read_bytes() == b"old"
    assert names_in(tmp_path) == [NAME]


@everywhere
def test_a_read_only_folder_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write_durably(tmp_path / NAME, b"old")
    tmp_path.chmod(0o500)
    with monkeypatch.context() as folder:
        if IS_ROOT:  # who may write anywhere
            folder.setattr(os, "open", fail(errno.EACCES))
        with pytest.raises(PermissionError):
            files.write_durably(tmp_path / NAME, b"new")
    tmp_path.chmod(0o700)
    assert (tmp_path / NAME).read_bytes() == b"old"
    assert names_in(tmp_path) == [NAME]


@everywhere
def test_private_files_are_never_readable_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    sync = os.fsync

    def noting(handle: int) -> None:
        modes.append(os.fstat(handle).st_mode & 0o777)
        sync(handle)

    monkeypatch.setattr(os, "fsync", noting)
    files.write_durably(tmp_path / "key", b"secret", private=True)
    files.append_durably(tmp_path / "log", b"line\n")
    assert {mode for mode in modes if mode != 0o700} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


WRITES = """
import sys, time
from pathlib import Path
from goldfc.files import write_pieces_durably
def pieces():
    yield b"new" * 100_000
    print("ready", flush=True)
    time.sleep(60)
write_pieces_durably(Path(sys.argv[1]), pieces())
"""


def test_a_process_that_is_killed_while_it_writes_leaves_the_old_file(tmp_path: Path) -> None:
    files.write_durably(tmp_path / NAME, b"old")
    killed(started(WRITES, tmp_path / NAME))
    assert (tmp_path / NAME).read_bytes() == b"old"
    assert [name for name in names_in(tmp_path) if not name.endswith(".part")] == [NAME]


@pytest.mark.usefixtures("on_windows")
def test_a_file_that_somebody_reads_is_replaced_when_she_is_done(tmp_path: Path) -> None:
    files.write_durably(tmp_path / NAME, b"old")
    reader = (tmp_path / NAME).open("rb")
    threading.Timer(0.2, reader.close).start()
    files.write_durably(tmp_path / NAME, b"new")
    assert (tmp_path / NAME).read_bytes() == b"new"


@pytest.mark.usefixtures("on_windows")
def test_a_file_that_somebody_reads_for_long_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PATIENCE", 0.1)
    files.write_durably(tmp_path / NAME, b"old")
    with (tmp_path / NAME).open("rb") as file:
        with pytest.raises(PermissionError):
            files.write_durably(tmp_path / NAME, b"new")
        assert file.read() == b"old"
    assert names_in(tmp_path) == [NAME]


@everywhere
def test_lines_of_many_at_once_are_all_there(tmp_path: Path) -> None:
    lines = [f"{number}\n".encode() * 5 for number in range(60)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda line: files.append_durably(tmp_path / "log", line), lines))
    assert sorted((tmp_path / "log").read_bytes().split()) == sorted(b"".join(lines).split())


def test_a_line_that_was_cut_off_does_not_swallow_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"one\ntw")
    files.append_durably(tmp_path / "log", b"three\n")
    files.append_durably(tmp_path / "log", b"four\n")
    assert (tmp_path / "log").read_bytes() == b"one\ntw\nthree\nfour\n"


# --- a stranger's files ---


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """Of all that a stranger may put there."""
    folder = tmp_path / "strange"
    folder.mkdir()
    (folder / "plain").write_bytes(b"plain")
    (folder / "link").symlink_to(folder / "plain")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "nowhere").symlink_to(folder / "made")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "device").symlink_to("/dev/null")
    return folder


USES: dict[str, Callable[[Path], object]] = {
    "read": lambda path: files.open_plain(path).close(),
    "append": lambda path: files.append_durably(path, b"line"),
    "lock": lambda path: files.locked(path, wait=False).__enter__(),
}


@everywhere
@pytest.mark.parametrize("use", USES)
def test_links_pipes_devices_and_folders_are_refused_at_once(strange: Path, use: str) -> None:
    for name in ("link", "loop", "nowhere", "folder", "pipe", "device"):
        with pytest.raises(OSError, match="It is a"):
            USES[use](strange / name)
    with pytest.raises(OSError, match="It is a folder, a pipe or a device"):
        USES[use](Path("/dev/null"))
    assert (strange / "plain").read_bytes() == b"plain"
    assert not (strange / "made").exists()


@everywhere
def test_what_is_put_there_after_the_look_is_refused(strange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, secret = os.open, strange.parent / "secret"
    secret.write_bytes(b"secret")

    def swapping(path: Path, *more: Any) -> int:
        path.unlink()
        path.symlink_to(secret)
        return real(path, *more)

    monkeypatch.setattr(os, "open", swapping)
    for use in USES.values():
        (strange / "new").unlink(missing_ok=True)
        (strange / "new").write_bytes(b"")
        with pytest.raises(OSError, match=r"It was replaced meanwhile|symbolic links"):
            use(strange / "new")
    assert secret.read_bytes() == b"secret"


@everywhere
def test_messages_are_read_and_refused_alike(strange: Path) -> None:
    assert read_message(strange / "plain") == b"plain"
    for name in ("link", "folder", "pipe"):
        with pytest.raises(BadMessage, match="must be a plain file, not a link, a folder, a pipe or a device"):
            read_message(strange / name)
    with pytest.raises(BadMessage, match="there is no such file"):
        read_message(strange / "missing")


@everywhere
def test_nothing_that_was_refused_stays_open(strange: Path) -> None:
    before = len(names_in(Path("/dev/fd")))
    for name in names_in(strange):
        for use in (USES["read"], USES["append"]):
            with suppress(OSError):
                use(strange / name)
    assert len(names_in(Path("/dev/fd"))) == before


# --- locks ---


@everywhere
def test_a_second_one_is_refused_until_the_first_is_done(tmp_path: Path) -> None:
    lock = tmp_path / ".lock"
    with files.locked(lock, wait=False):
        with pytest.raises(BlockingIOError), files.locked(lock, wait=False):
            pass
        with pytest.raises(BlockingIOError), files.locked(lock, wait=False):
            pass
    with files.locked(lock, wait=False):
        pass


@everywhere
def test_a_second_one_waits_if_it_may(tmp_path: Path) -> None:
    done: list[int] = []

    def work(number: int) -> None:
        with files.locked(tmp_path / ".lock", wait=True):
            done.append(number)
            time.sleep(0.02)
            done.append(number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))
    assert done[::2] == done[1::2]
    assert sorted(done[::2]) == list(range(8))


@everywhere
def test_an_error_lets_go_of_the_lock(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), files.locked(tmp_path / ".lock", wait=False):
        raise ZeroDivisionError
    with files.locked(tmp_path / ".lock", wait=False):
        pass


HOLDS = """
import sys, time
from pathlib import Path
from goldfc.files import locked
with locked(Path(sys.argv[1]), wait=True):
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_lock_ends_with_the_process(tmp_path: Path) -> None:
    process = started(HOLDS, tmp_path / ".lock")
    with pytest.raises(BlockingIOError), files.locked(tmp_path / ".lock", wait=False):
        pass
    killed(process)
    with files.locked(tmp_path / ".lock", wait=False):
        pass


@everywhere
def test_a_folder_of_a_federation_has_one_process_at_a_time(tmp_path: Path) -> None:
    write_agreement(tmp_path, agreement())
    folder, again = Folder(tmp_path), Folder(tmp_path)
    with folder.locked(), refused(BadSettings, "folder-locked"), again.locked():
        pass
    with pytest.raises(FileNotFoundError, match="of the work itself"), folder.locked():
        raise FileNotFoundError("of the work itself")


@everywhere
def test_a_ledger_is_written_by_one_at_a_time(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / ".goldfc")
    with ledger.locked():
        made = ledger.made_secret()
        ledger.note("tried")
        with pytest.raises(BlockingIOError), files.locked(ledger.folder / ".lock", wait=False):
            pass
    assert ledger.secret() == ledger.made_secret() == made
    assert names_in(ledger.folder) == [".lock", "ledger.jsonl", "secret"]


# --- scratch ---


@everywhere
def test_rows_on_the_disk_are_read_back_from_several_threads(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(40_000, 7))
    assert rows.nbytes > 2 * MOST_AT_ONCE
    with Scratch(tmp_path / "data.csv") as scratch, ThreadPoolExecutor(8) as pool:
        for part in np.array_split(rows, 13):
            scratch.append(part)
        stored = OnDisk(scratch, 7)
        assert stored.shape == rows.shape
        places = [(start, min(start + 3_777, len(rows))) for start in range(0, len(rows), 311)] + [(0, len(rows))]
        for (start, stop), found in zip(places, pool.map(lambda place: stored.read(*place), places), strict=True):
            np.testing.assert_array_equal(found, rows[start:stop])
        with pytest.raises(OSError, match="became shorter"):
            stored.read(len(rows) - 1, len(rows) + 1)


@everywhere
def test_a_scratch_file_leaves_nothing_behind(tmp_path: Path) -> None:
    with Scratch(tmp_path / "data.csv") as one, Scratch(tmp_path / "data.csv") as other:
        one.append(np.arange(4.0))
        other.append(np.arange(3.0))
        assert os.fstat(one.handle).st_mode & 0o777 == 0o600
    assert names_in(tmp_path) == []


@everywhere
def test_a_folder_that_was_there_stays_when_scratch_files_go(tmp_path: Path) -> None:
    files.private_folder(tmp_path / "data.csv")
    with Scratch(tmp_path / "data.csv"):
        pass
    assert names_in(tmp_path) == [".goldfc"]
    assert names_in(tmp_path / ".goldfc") == []


# --- who owns what ---


@everywhere
def test_a_private_folder_is_no_link_and_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with refused(BadSettings, "private-folder-link"):
            files.made_private(tmp_path / name)
        assert not files.is_private(tmp_path / name)
    made = files.made_private(tmp_path / "new")
    assert files.made_private(made) == made
    assert files.is_private(made)
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    files.check_private(tmp_path / "missing")


def test_junctions_are_links() -> None:
    found: Any = SimpleNamespace(st_mode=stat.S_IFDIR, st_reparse_tag=files.JUNCTION)
    assert files.is_link(found)
    found.st_reparse_tag = 0x9000001A  # a folder that is kept in step with a cloud
    assert not files.is_link(found)


@pytest.mark.usefixtures("on_windows")
def test_where_owners_are_not_told_a_ledger_above_must_be_in_the_users_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, below = Ledger(tmp_path / ".goldfc"), tmp_path / "below" / "data.csv"
    ledger.made_secret()
    assert Ledger.of(below, Policy()) == ledger
    monkeypatch.setenv("HOME", str(tmp_path / "below"))
    assert Ledger.of(below, Policy()).folder == below.parent / ".goldfc"


@everywhere
def test_modes_count_where_there_are_any(tmp_path: Path, platform: str) -> None:
    (tmp_path / "key").touch()
    (tmp_path / "key").chmod(0o644)
    assert bool(files.shared_with((tmp_path / "key").stat())) == (platform == "here")


# --- processes ---

WITH_A_CHILD = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


def test_a_group_of_processes_is_ended_with_its_children() -> None:
    command = [sys.executable, "-c", WITH_A_CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, **files.OWN_GROUP) as process:  # noqa: S603
        assert process.stdout is not None
        child = int(process.stdout.readline())
        files.end_group(process, force=False)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        files.end_group(process, force=True)
        assert process.wait(10) == -signal.SIGKILL
    deadline = time.monotonic() + 10
    while is_running(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    files.end_group(process, force=True)  # also if there is nobody any more


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.usefixtures("on_windows")
def test_on_windows_a_group_is_asked_and_then_ended_as_a_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taskkill").write_text('#!/bin/sh\necho "$@" > "$0.said"\nkill -9 "$4"\n', encoding="utf-8")
    (tmp_path / "taskkill").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    command = [sys.executable, "-c", WITH_A_CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, **files.OWN_GROUP) as process:  # noqa: S603
        assert process.stdout is not None
        child = int(process.stdout.readline())
        files.end_group(process, force=False)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        files.end_group(process, force=True)
        assert process.wait(10) == -signal.SIGKILL
        os.kill(child, signal.SIGKILL)
    assert (tmp_path / "taskkill.said").read_text(encoding="utf-8").split() == ["/F", "/T", "/PID", str(process.pid)]


# --- one place ---

MODULES = {"fcntl", "msvcrt", "resource", "pwd", "grp", "termios"}
OF_ONE_PLATFORM = re.compile(
    r"O_[A-Z]+|get(e?[ug]id|pgid)|killpg|p(read|write)v?|link|f?chown|fchmod|fork|open|fsync|set(sid|pgid)|uname|name"
)
OF_SIGNALS = re.compile(r"SIG(KILL|HUP|ALRM|USR[12])|setitimer|alarm")


def uses_of_a_platform(source: Path) -> Iterator[str]:
    """What of a module may not be there elsewhere."""
    for part in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(part, ast.Import | ast.ImportFrom):
            names = {name.name for name in part.names} | {getattr(part, "module", None)}
            yield from (name for name in MODULES & names if name)
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            known = {"os": OF_ONE_PLATFORM, "signal": OF_SIGNALS, "sys": re.compile("platform")}.get(part.value.id)
            if known and known.fullmatch(part.attr):
                yield f"{part.value.id}.{part.attr}"
        elif isinstance(part, ast.keyword) and part.arg in {"start_new_session", "preexec_fn", "creationflags"}:
            yield part.arg


def test_one_module_knows_the_platform() -> None:
    found = {path.relative_to(SOURCES).as_posix(): set(uses_of_a_platform(path)) for path in SOURCES.rglob("*.py")}
    assert {"fcntl", "msvcrt", "os.killpg", "os.pread", "os.O_NOFOLLOW", "sys.platform"} <= found.pop("files.py")
    assert {path: uses for path, uses in found.items() if uses} == {}


# --- the whole walk ---

WALK = """
import json, os, sys
import click, cryptography.fernet, joblib, numba, numpy, pydantic, pytest, rich.progress, safetensors.numpy
import scipy.sparse.csgraph, sklearn.cluster, sklearn.metrics, sklearn.mixture, threadpoolctl
import windows
if sys.argv[1] == "on Windows":
    windows.move_to_windows(pytest.MonkeyPatch())
    with windows.named_windows():
        import goldfc.files
    assert goldfc.files.me() is None
from goldfc.cli import main
from goldfc.site.table import table
for folder, largest in json.loads(sys.argv[2]).items():
    os.chdir(folder)
    table.LARGEST_IN_MEMORY = largest
    for command in json.loads(sys.argv[3]):
        code = main(command, standalone_mode=False)
        assert not code, command
"""
SITES = ("east", "north", "west")
# Rows that are kept in memory.
MOST = {"in memory": 10**9, "on the disk": 10}
Made = dict[str, bytes | list[str]]


def walk(folder: Path, where: str) -> dict[str, Made]:
    """All that is there after three sites and a server did their work; both ways in one process, which loads slowly."""
    for way in MOST:
        (folder / way).mkdir(parents=True)
        write_agreement(folder / way, agreement())
        for number, site in enumerate(SITES):
            (folder / way / site).mkdir()
            lines = [f"{age!r},{pressure!r}" for age, pressure in rows_of(number).clip(0.0).tolist()]
            table = "\n".join(["age,pressure", *lines]) + "\n"
            (folder / way / site / "data.csv").write_text(table, encoding="utf-8")
    commands = []
    for site in SITES:
        data, sent = f"{site}/data.csv", f"{site}.summary"
        twice = ["summarize", data, "--federation", "federation.toml", "--site", site, "-o", sent]
        commands += [twice, twice]
    commands += [["fuse", *(f"{site}.summary" for site in SITES), "--federation", "federation.toml", "-o", "the.model"]]
    for site in SITES:
        label = ["label", f"{site}/data.csv", "--model", "the.model", "--federation", "federation.toml", "--site", site]
        commands += [[*label, "-o", f"{site}.labels.csv"]] * 2
    commands += [["forget", "east/data.csv", "--yes"]]
    most = {str(folder / way): most for way, most in MOST.items()}
    command = [sys.executable, "-c", WALK, where, json.dumps(most), json.dumps(commands)]
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "HOME": str(folder)}
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=300, stdout=subprocess.DEVNULL)  # noqa: S603
    return {way: made_in(folder / way) for way in MOST}


def made_in(folder: Path) -> Made:
    """All that the commands have left behind."""
    made = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    kept = {f"{site} keeps": names_in(folder / site / ".goldfc") for site in SITES}
    return {**made, **kept, "east": names_in(folder / "east")}


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Made], dict[str, Made]]:
    """Here, and on Windows."""
    folder = tmp_path_factory.mktemp("walk")
    return walk(folder / "here", "here"), walk(folder / "there", "on Windows")


@pytest.mark.parametrize("way", MOST)
def test_messages_models_and_labels_are_the_same_on_windows(
    walked: tuple[dict[str, Made], dict[str, Made]], way: str
) -> None:
    here, there = (made[way] for made in walked)
    assert here == there
    assert {"east.summary", "the.model", "east.labels.csv"} <= here.keys()
    assert here["east keeps"] == [".lock", "federations.json", "ledger.jsonl", "models.json", "secret"]
