"""Nodes and servers that die in the middle of a round: the others go on, or it fails clearly; nothing is lost."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

pytest.importorskip("flwr", reason="goldfc[flower] is not installed")

from flower.loopback import CONNECTION, Loopback, commands, knows, running, write_site
from flower.test_processes import PROGRAM, assert_ends
from flower.tls import write_certificates
from goldfc.flower.job import Status
from goldfc.protocol.agreement import Agreement
from needs import takes_minutes
from sites import agreement, write_agreement

pytestmark = takes_minutes
NAMES = ("centre", "east", "north", "south", "west")


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Loopback]:
    """A SuperLink with TLS."""
    link = (*write_certificates(tmp_path), "--database", str(tmp_path / "state.db"))
    with running(tmp_path, link_options=link, node_options=("--root-certificates", str(tmp_path / "ca.crt"))) as here:
        here.start_link(f'root-certificates = "{tmp_path / "ca.crt"}"')
        yield here
    assert_ends(here, "", 30.0)


def start_sites(here: Loopback, what: Agreement) -> dict[str, "subprocess.Popen[bytes]"]:
    """A node for every name."""
    for number, name in enumerate(NAMES):
        data = write_site(here.folder / name, number, what)
        here.start_node(f"{name}-node", {"data": str(data), "client": name})
    return dict(zip(NAMES, here.processes[-len(NAMES) :], strict=True))


def start_round(here: Loopback, what: Agreement, *options: object, folder: str = "out") -> "subprocess.Popen[str]":
    """The command, at the server."""
    write_agreement(here.folder, what)
    file, out = here.folder / "federation.toml", here.folder / folder
    words = ["federate", file, "--connection", CONNECTION, "-o", out, "-k", 3]
    return subprocess.Popen(  # noqa: S603 (our own command)
        [*PROGRAM, *map(str, [*words, *options])],
        env={**here.env, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def kill_program(here: Loopback, name: str) -> None:
    """Kill the program that works on a node's message, as soon as there is one; the node itself lives on."""
    deadline = time.monotonic() + 40.0
    while time.monotonic() < deadline:
        for pid, command in commands():
            if "flwr-clientapp" in command and knows(pid, str(here.home / f"{name}-node")):
                os.kill(pid, signal.SIGKILL)
                return
        time.sleep(0.02)


def test_nodes_killed_before_and_after_their_answer_are_named_and_a_wrong_authority_keeps_out(
    here: Loopback, tmp_path: Path
) -> None:
    what = agreement()
    nodes = start_sites(here, what)
    (tmp_path / "other").mkdir()
    write_certificates(tmp_path / "other")
    data = write_site(tmp_path / "deceived", 5, what)
    here.node_options = ("--root-certificates", str(tmp_path / "other" / "ca.crt"))
    here.start_node("deceived-node", {"data": str(data), "client": "deceived"})
    killed, output = set[str](), ""
    with start_round(here, what, "--expect", 5, "--join", 90, "--answer", 40) as process:
        for line in process.stdout or ():
            output += line
            if "Joined: 5 of 5" in line and "west" not in killed:
                here.signal(signal.SIGKILL, nodes["west"])  # before it can answer
                killed.add("west")
                Thread(target=kill_program, args=(here, "centre"), daemon=True).start()
            if "Answered: north" in line and "north" not in killed:
                here.signal(signal.SIGKILL, nodes["north"])  # after it has
                killed.add("north")
    assert killed == {"west", "north"}, output
    assert process.returncode == 0, output
    status = Status.read(here.folder / "out" / "status.json")
    # If its program was not killed in time, it has answered all the same.
    survived = "centre" in status.took_part
    assert set(status.took_part) - {"centre"} == {"east", "north", "south"}
    assert status.joined == 5
    # One whose node is gone, and one whose program is; Flower may already say so of the second.
    assert len(status.silent) + len(status.refused) == 2 - survived
    assert set(status.labelled) - {"centre"} == {"east", "south"}
    assert list(status.unlabelled) == ["north"]
    for name in NAMES:
        assert (here.folder / name / "data.csv").stat().st_size > 1000
    assert not list((tmp_path / "deceived").glob("*.labels.csv"))


def test_a_server_that_is_killed_ends_the_round_with_an_exit_code_and_can_be_started_again(here: Loopback) -> None:
    what, begin = agreement(), time.monotonic()
    start_sites(here, what)
    link, output = here.processes[0], ""
    with start_round(here, what, "--expect", 5, "--join", 90, "--answer", 60) as process:
        for line in process.stdout or ():
            output += line
            if "Answered" in line and link.poll() is None:
                here.signal(signal.SIGKILL, link)
    assert process.returncode not in {0, None}, output
    assert time.monotonic() - begin < 180.0
    kept = {path.name: path.read_bytes() for path in (here.folder / "out" / "accepted").glob("*.summary")}
    assert kept  # what was acknowledged is on the disk
    # Started again, it has its nodes back, and the round can be run. In another folder: the SuperLink also takes up the
    # run that it died in.
    here.start("flower-superlink", *here.link_options, "--host", "127.0.0.1", "--port", str(here.port), log="again")
    here.await_link()
    with start_round(here, what, "--expect", 5, "--join", 90, "--answer", 90, folder="again") as process:
        output = process.communicate()[0]
    assert process.returncode == 0, output
    assert Status.read(here.folder / "again" / "status.json").labelled == NAMES
    for name, body in kept.items():
        assert (here.folder / "again" / "accepted" / name).read_bytes() == body
