"""Killed at any moment and started again, nothing that was acknowledged is lost, and the model is the same.

There was a round before: every site has sent something older, and the new model is made after the last one.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from goldfc.server.folder import Folder
from sites import agreement, bodies, rows_of, write_agreement

NAMES = tuple(f"site-{number:02}" for number in range(12))
KILLS_OF_COLLECT, KILLS_OF_FUSE, KILLS_OF_ADD = 20, 10, 6
# Has loaded everything, which takes longest, and becomes a process for every command.
STARTER = """
import json, os, sys
import sklearn.cluster, sklearn.utils.extmath
import goldfc.cli.server, goldfc.report.model_page, goldfc.server.folder, goldfc.server.influence
import goldfc.site.oddities, goldfc.site.parts, goldfc.site.private.send, goldfc.site.send, goldfc.report.describe
from goldfc.cli import main
for line in sys.stdin:
    come, go = os.pipe()
    if not (pid := os.fork()):
        os.read(come, 1)
        main(json.loads(line))
    print(pid, flush=True)
    os.write(go, b"!")
    print(f"\\nended: {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}", flush=True)
"""


@dataclass
class Running:
    """A command as a process of its own, which can be killed."""

    pid: int
    starter: "subprocess.Popen[str]"
    returncode: int | None = None

    def lines(self) -> Iterator[str]:
        """What it says, to its end."""
        assert self.starter.stdout is not None
        for line in self.starter.stdout:
            if line.startswith("ended: "):
                self.returncode = int(line.removeprefix("ended: "))
                return
            yield line

    def kill(self) -> None:
        """At once."""
        with suppress(ProcessLookupError):  # it has ended
            os.kill(self.pid, signal.SIGKILL)

    def lines_until_killed(self, after_lines: int, then: float) -> Iterator[str]:
        """What it said before it was killed, so many lines and seconds after it began to speak."""
        for number, line in enumerate(self.lines(), start=1):
            yield line
            if number == after_lines:
                time.sleep(then)
                self.kill()

    def await_end(self) -> int:
        """How it ended."""
        for _ in self.lines():
            pass
        assert self.returncode is not None
        return self.returncode


Start = Callable[..., Running]


@pytest.fixture(scope="module")
def start() -> Iterator[Start]:
    """Start a command."""
    with subprocess.Popen(  # noqa: S603 (our own script)
        [sys.executable, "-c", STARTER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as starter:  # fmt: skip

        def command(*arguments: str) -> Running:
            assert starter.stdin is not None
            assert starter.stdout is not None
            starter.stdin.write(json.dumps(arguments) + "\n")
            starter.stdin.flush()
            return Running(int(starter.stdout.readline()), starter)

        yield command


@pytest.fixture(scope="module")
def sent() -> dict[str, bytes]:
    return bodies(agreement(), NAMES)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after the round before."""
    path, before = tmp_path_factory.mktemp("history"), agreement(round=2)
    (path / "inbox").mkdir()
    write_agreement(path, before)
    for name, body in bodies(before, NAMES).items():
        (path / "inbox" / f"{name}.summary").write_bytes(body)
    folder = Folder(path)
    assert len(list(folder.take_in())) == len(NAMES)
    folder.close()
    folder.fuse(3)
    return path


def filled(path: Path, sent: dict[str, bytes], history: Path) -> Path:
    shutil.copytree(history, path)
    write_agreement(path, agreement())
    for name, body in sent.items():
        (path / "inbox" / f"{name}.summary").write_bytes(body)
    return path


def model_without_kills(path: Path, sent: dict[str, bytes], history: Path) -> bytes:
    folder = Folder(filled(path, sent, history))
    assert [event.outcome for event in folder.take_in()] == ["accepted"] * len(sent)
    folder.close()
    folder.fuse(3)
    return (path / "global.model").read_bytes()


def test_collect_killed_at_twenty_moments_loses_nothing(
    tmp_path: Path, start: Start, sent: dict[str, bytes], history: Path
) -> None:
    chance = random.Random(0)  # noqa: S311 (a moment, no secret)
    path, acknowledged, kills, rounds = filled(tmp_path / "killed", sent, history), set[str](), 0, 0
    while kills < KILLS_OF_COLLECT:
        rounds += 1
        assert rounds < 4 * KILLS_OF_COLLECT
        # Mostly while messages are taken in, sometimes while they are fused.
        process = start("collect", str(path), "--close", "-k", "3")
        for line in process.lines_until_killed(chance.choice([1, 1, 2, 3, 4]), chance.choice([0.0, 0.002, 0.01, 0.3])):
            acknowledged |= set(re.findall(r"the summary of '(site-\d\d)' is in\.", line))
        kills += process.returncode == -9
        for name in acknowledged:
            assert (path / "accepted" / f"{name}.summary").read_bytes() == sent[name]
        places = [place for part in ("inbox", "accepted") for place in (path / part).glob("*.summary")]
        there = {place.stem for place in places if place.read_bytes() == sent[place.stem]}
        assert there == set(NAMES)
        if process.returncode == 0:
            # Done before it could be killed: begin anew, but keep what was counted.
            path, acknowledged = filled(tmp_path / f"killed-{rounds}", sent, history), set()
    assert start("collect", str(path), "--close", "-k", "3").await_end() == 0
    assert (path / "global.model").read_bytes() == model_without_kills(tmp_path / "calm", sent, history)


def test_fuse_killed_at_ten_moments_leaves_the_whole_model_or_none(
    tmp_path: Path, start: Start, sent: dict[str, bytes], history: Path
) -> None:
    last = history / "global.model"
    calm = model_without_kills(tmp_path / "calm", sent, history)
    inbox = filled(tmp_path / "f", sent, history) / "inbox"
    files, model = sorted(map(str, inbox.iterdir())), tmp_path / "f" / "global.model"
    chance, kills, tries = random.Random(1), 0, 0  # noqa: S311 (a moment, no secret)
    begin = time.monotonic()
    assert start("fuse", *files, "--after", str(last), "-k", "3", "-o", str(model)).await_end() == 0
    seconds = time.monotonic() - begin
    model.unlink()
    while kills < KILLS_OF_FUSE:
        tries += 1
        assert tries < 6 * KILLS_OF_FUSE
        process = start("fuse", *files, "--after", str(last), "-k", "3", "-o", str(model))
        time.sleep(chance.uniform(0.0, seconds))
        process.kill()
        kills += process.await_end() == -9
        assert not model.exists() or model.read_bytes() == calm
        model.unlink(missing_ok=True)
    assert start("fuse", *files, "--after", str(last), "-k", "3", "-o", str(model)).await_end() == 0
    assert model.read_bytes() == calm


def test_a_part_that_is_added_is_in_or_not_when_it_is_killed_at_six_moments(tmp_path: Path, start: Start) -> None:
    write_agreement(tmp_path, agreement(privacy="plain"))
    for number in range(2):
        lines = [f"{age!r},{pressure!r}" for age, pressure in rows_of(number, 1_000).tolist()]
        (tmp_path / f"{number}.csv").write_text("\n".join(["age,pressure", *lines]) + "\n", encoding="utf-8")
    first, second = (("summarize", "--add", str(tmp_path / f"{number}.csv"), "--site", "north") for number in range(2))
    assert start(*first).await_end() == 0
    (kept,) = (tmp_path / ".goldfc").glob("*.reservoir")
    before, begin = kept.read_bytes(), time.monotonic()
    assert start(*second).await_end() == 0
    seconds, after = time.monotonic() - begin, kept.read_bytes()
    chance, kills, tries = random.Random(2), 0, 0  # noqa: S311 (a moment, no secret)
    while kills < KILLS_OF_ADD:
        tries += 1
        assert tries < 6 * KILLS_OF_ADD
        kept.write_bytes(before)
        process = start(*second)
        time.sleep(chance.uniform(0.0, seconds))
        process.kill()
        kills += process.await_end() == -9
        assert kept.read_bytes() in {before, after}
    assert start(*second).await_end() == 0
    assert kept.read_bytes() == after
