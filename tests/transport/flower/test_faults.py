"""Nodes and servers that die in the middle of a round: the others go on, or it fails clearly; nothing is lost."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="goldfc[flower] is not installed")

from goldfc.errors import BadSettings
from goldfc.transport.flower.job import Job, Status
from sites import agreement, write_agreement
from transport.flower.loopback import CONNECTION, GOLDFC, Loopback, commands_of, running, until, write_site
from transport.flower.tls import write_certificates

THREE = ("east", "north", "south")
NAMES = ("centre", *THREE, "west")
EVERYBODY = (*NAMES, "silent", "deceived")
WHAT = agreement()
FAULTS = "federate-with-faults"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    """A SuperLink with TLS, and three sites; to start these takes as long as a round."""
    folder = tmp_path_factory.mktemp("faults")
    link = (*write_certificates(folder), "--database", str(folder / "state.db"))
    with running(folder, link_options=link, node_options=("--root-certificates", str(folder / "ca.crt"))) as here:
        here.start_link(f'root-certificates = "{folder / "ca.crt"}"')
        for name in THREE:
            start_site(here, name)
        yield here


def start_site(here: Loopback, name: str, *options: str) -> None:
    """A site's table and its node."""
    data = write_site(here.folder / name, EVERYBODY.index(name), WHAT)
    here.start_node(f"{name}-node", {"data": str(data), "site": name}, *options)


def start_round(here: Loopback, out: Path, log: str, *options: object) -> "subprocess.Popen[bytes]":
    """The command, at the server."""
    write_agreement(here.folder, WHAT)
    words = ["federate", here.folder / "federation.toml", "--connection", CONNECTION, "-o", out]
    return here.start(log, *GOLDFC, *map(str, [*words, *options]))


def kill_some(here: Loopback, process: "subprocess.Popen[bytes]") -> bool:
    """West's node before its answer, north's after it, of centre's the program at work. Whether the round is over."""
    for pid, _ in programs_of(here, "centre"):  # Flower may start it once more
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if "west-node" in here.processes and programs_of(here, "west"):
        here.kill("west-node")
    if "north-node" in here.processes and "Answered: north" in here.said(FAULTS):
        here.kill("north-node")
    return process.poll() is not None


def programs_of(here: Loopback, name: str) -> list[tuple[int, str]]:
    """What works on a node's message."""
    return list(commands_of(f"{here.home / name}-node\0", "flwr-clientapp"))


def state_in(out: Path) -> str:
    """How far a round is."""
    with suppress(BadSettings):
        return Status.read(out / "status.json").state
    return ""


def test_a_server_that_dies_before_it_fuses_ends_the_round_which_can_be_run_again_in_its_folder(
    here: Loopback, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    # Nobody says how many clusters there are: to find out takes a while, in which the server can be killed.
    options = ("--expect", len(THREE), "--join", 300, "--answer", 300)
    first = start_round(here, out, "federate", *options)
    until(lambda: here.left_behind("flwr-serverapp") or first.poll() is not None, 600.0)
    at_work = here.left_behind("flwr-serverapp")
    until(lambda: state_in(out) == "fusing" or first.poll() is not None, 600.0, look=0.002)
    for pid, _ in at_work:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    here.kill_server("superlink")
    assert first.wait(300) == 1
    assert not (out / "global.model").exists()
    kept = {path.stem: path.read_bytes() for path in (out / "accepted").glob("*.summary")}
    assert tuple(sorted(kept)) == THREE  # what was acknowledged is on the disk
    dead = Job.read(out / "job.json").round
    # Started again, it has its nodes back; it may take up the run that it died in, which must leave the folder alone.
    assert here.launch_link("superlink-again")
    second = start_round(here, out, "federate-again", *options)
    assert second.wait(900) == 0
    status = Status.read(out / "status.json")
    assert status.round == Job.read(out / "job.json").round != dead
    assert status.took_part == status.labelled == THREE
    assert (status.silent, status.refused) == ((), {})
    assert {path.stem: path.read_bytes() for path in (out / "accepted").glob("*.summary")} == kept
    assert (out / "global.model").is_file()
    until(lambda: not here.left_behind("flwr-serverapp"))
    assert Status.read(out / "status.json") == status


def test_who_dies_or_is_silent_is_named_and_a_wrong_authority_keeps_out(here: Loopback, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for name in ("centre", "west"):
        start_site(here, name)
    # It takes every message, and has nobody to work on it.
    start_site(here, "silent", "--isolation", "process")
    write_certificates(tmp_path)
    here.node_options = ("--root-certificates", str(tmp_path / "ca.crt"))
    start_site(here, "deceived")
    # So long everybody waits for those who are silent: what is enough for the others is up to the machine.
    answer = max(45.0, 12.0 * here.slowness)
    process = start_round(here, out, FAULTS, "-k", 3, "--expect", 6, "--join", 300, "--answer", answer)
    until(lambda: kill_some(here, process), 600.0 + 2.0 * answer)
    assert process.returncode == 0
    assert not {"north-node", "west-node"} & set(here.processes)
    status = Status.read(out / "status.json")
    assert status.joined == 6
    assert status.took_part == ("east", "north", "south")
    # Of those that are dead Flower may have said so before the deadline.
    assert len(status.silent) >= 1
    assert len(status.silent) + len(status.refused) == 3
    assert status.labelled == ("east", "south")
    assert list(status.unlabelled) == ["north"]
    for name in NAMES:
        assert (here.folder / name / "data.csv").stat().st_size > 1000
    assert not list((here.folder / "deceived").glob("*.labels.csv"))
