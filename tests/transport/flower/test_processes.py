"""The live federation as it is: a SuperLink, SuperNodes and `goldfc federate`, each a process of its own.

With everything that protects it: TLS, keys of the nodes, and envelopes around what crosses.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="goldfc[flower] is not installed")

from goldfc.agreement import Agreement
from goldfc.message.summary import Summary
from goldfc.message.wire import encode
from goldfc.server.round import fuse_admitted
from goldfc.site.send import draft_summary
from goldfc.site.table.readers import read_all
from goldfc.site.table.table import as_table
from goldfc.transport.flower.job import Status
from goldfc.transport.flower.records import SENTENCES
from sites import Keys, agreement, write_agreement, write_policy
from transport.flower.loopback import CONNECTION, GOLDFC, RAY, Loopback, has_namespaces, running, until, write_site
from transport.flower.tls import write_certificates, write_node_key

HONEST = ("east", "north", "south")
# What the command said, and the folder of the result.
Finished = tuple["subprocess.CompletedProcess[str]", Path]


@dataclass
class Federation:
    """Real processes, and everybody's keys."""

    here: Loopback
    keys: Keys = field(default_factory=lambda: Keys.new((*HONEST, "clones", "broken")))

    @property
    def what(self) -> Agreement:
        """What everybody agreed on."""
        return self.keys.agreement()

    def write_site(self, site: str, number: int, table: str | None = None) -> None:
        """A site's table and its key."""
        data = write_site(self.here.folder / site, number, self.what)
        if table is not None:
            data.write_text(table, encoding="utf-8")
        self.keys.sites[site].write(data.with_name("site.key"))

    def start_nodes(self, *nodes: tuple[str, str]) -> None:
        """Nodes that the SuperLink knows, each of a site; a site may have two, which answer both."""
        keys = {node: write_node_key(self.here.folder / f"{node}.key") for node, _ in nodes}
        self.here.register(*(key.with_name(f"{key.name}.pub") for key in keys.values()))
        for node, site in nodes:
            data = self.here.folder / site / "data.csv"
            settings = {"data": str(data), "site": site, "key": str(data.with_name("site.key"))}
            self.here.start_node(node, settings, "--auth-supernode-private-key", str(keys[node]))

    def federate(self, out: Path, *options: object) -> "subprocess.CompletedProcess[str]":
        """The command, at the server."""
        write_agreement(self.here.folder, self.what)
        if not (key := self.here.folder / "sealing.key").exists():
            self.keys.server.write(key)
        words = ["federate", self.here.folder / "federation.toml", "--connection", CONNECTION, "-o", out, "--key", key]
        return self.here.run(*GOLDFC, *map(str, [*words, *options]))


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """A SuperLink without nodes, where that is possible in a network of its own."""
    folder = tmp_path_factory.mktemp("live")
    link = (*write_certificates(folder), "--enable-supernode-auth", "--database", str(folder / "state.db"))
    node = ("--root-certificates", str(folder / "ca.crt"))
    with running(folder, link_options=link, node_options=node, offline=has_namespaces()) as here:
        here.start_link(f'root-certificates = "{folder / "ca.crt"}"')
        yield Federation(here)


def test_with_nobody_there_it_fails_and_says_so(federation: Federation, tmp_path: Path) -> None:
    done = federation.federate(tmp_path / "out", "--expect", 3, "--join", 1, "--answer", 120)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "at least 3 are agreed on" in done.stderr
    until(lambda: not federation.here.left_behind("flwr-serverapp"))


@pytest.fixture(scope="module")
def finished(federation: Federation, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A round with honest and other nodes."""
    for number, name in enumerate(HONEST):
        federation.write_site(name, number)
    federation.write_site("clones", 0, "age,pressure\n" + "30.5,110.25\n" * 60)
    federation.write_site("broken", 0, "age,pressure\n30,SECRET\n")
    federation.start_nodes(*((f"{name}-node", name) for name in (*HONEST, "clones", "broken")), ("east-twin", "east"))
    out = tmp_path_factory.mktemp("round") / "out"
    stranger = write_node_key(out.with_name("stranger"))
    federation.here.start_node("stranger", {}, "--auth-supernode-private-key", str(stranger))
    return federation.federate(out, "--expect", 6, "--join", 300, "--answer", 300, "-k", 3), out


def test_a_round_with_honest_and_other_nodes_is_that_of_the_honest_by_file(
    federation: Federation, finished: Finished
) -> None:
    (done, out), here = finished, federation.here
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Joined: 6 of 6." in done.stdout
    assert "made with 3 sites: east, north, south." in done.stdout
    status = Status.read(out / "status.json")
    assert status.labelled == HONEST
    assert status.silent == ()
    refused = {who.split(" ")[0]: why for who, why in status.refused.items()}
    assert "an identical summary of 'east' came from another node before, and counts once" in refused.pop("east")
    assert refused == {"clones": SENTENCES["withheld"], "broken": SENTENCES["withheld"]}
    assert (out / "global.model").read_bytes() == by_file(here.folder, out, federation.what)
    assert all((here.folder / name / "data.labels.csv").is_file() for name in HONEST)
    until(lambda: not here.left_behind("flwr-serverapp"))
    seen = (out / "status.json").read_text(encoding="utf-8") + here.said("superlink")
    assert "SECRET" not in seen + done.stdout + done.stderr


def test_a_whole_round_needs_no_network_but_loopback(federation: Federation, finished: Finished) -> None:
    if not federation.here.offline:
        pytest.skip("network namespaces are not to be had here")
    assert finished[0].returncode == 0
    assert federation.here.interfaces("superlink", *(f"{name}-node" for name in HONEST)) == {"lo"}


def by_file(folder: Path, out: Path, what: Agreement, names: tuple[str, ...] = HONEST) -> bytes:
    """The model of the same tables without Flower; the summaries must be those that came over it."""
    summaries: list[Summary] = []
    for name in names:
        data = out / "again" / name / "data.csv"
        data.parent.mkdir(parents=True)
        shutil.copy(folder / name / "data.csv", data)
        summaries.append(draft_summary(as_table(read_all(data), what.columns), name, what, data).summary)
        assert encode(summaries[-1].to_message()) == (out / "accepted" / f"{name}.summary").read_bytes()
    return encode(fuse_admitted(summaries, what, 3).model.to_message())


def test_a_hundred_nodes_on_the_simulation_engine_give_the_same_model(tmp_path: Path) -> None:
    what, names = agreement(), tuple(f"site-{number:03}" for number in range(100))
    (tmp_path / "tables").mkdir()
    write_policy(tmp_path / "tables", 'accept = ["membership", "near"]')  # which the audit finds at six of them
    for number, name in enumerate(names):
        shutil.copy(write_site(tmp_path / name, number, what), tmp_path / "tables" / f"{name}.csv")
    out = tmp_path / "out"
    words = ["federate", tmp_path / names[0] / "federation.toml", "--simulate", len(names)]
    options = ["--data", tmp_path / "tables", "-o", out, "-k", 3, "--join", 300, "--answer", 300]
    command, env = [*GOLDFC, *map(str, [*words, *options])], {**os.environ, **RAY}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900, check=False)  # noqa: S603 (our own)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (out / "global.model").read_bytes() == by_file(tmp_path, out, what, names)
    assert Status.read(out / "status.json").labelled == names
    assert all((out / "sites" / name / "labels.csv").is_file() for name in names)
