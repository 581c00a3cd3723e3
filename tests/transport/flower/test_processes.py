"""The live federation as it is: a SuperLink, SuperNodes and `goldfc federate`, each a process of its own.

With everything that protects it: TLS, keys of the nodes, and envelopes around what crosses. Certificates, node keys and
the SuperLink's settings are those of the deployment kit; the honest sites are half of the paper's.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="goldfc[flower] is not installed")

from goldfc.agreement import Agreement
from goldfc.site.audit import WARNINGS
from goldfc.transport.flower.job import Status
from goldfc.transport.flower.kit import write_kit
from goldfc.transport.flower.records import SENTENCES
from needs import has_splits
from sites import Keys, write_agreement, write_policy
from transport.flower.by_file import by_file
from transport.flower.loopback import CONNECTION, GOLDFC, Loopback, has_namespaces, running, until, write_site
from transport.flower.paper import EIGHT, agreement_of, write_tables
from transport.flower.tls import write_node_key

HONEST = EIGHT[:4]
SITES = (*HONEST, "clones", "broken")
# Another node of the first site.
TWIN = "twin"
CLUSTERS = 4 if has_splits else 3
# What the command said, and the folder of the result.
Finished = tuple["subprocess.CompletedProcess[str]", Path]


@dataclass
class Federation:
    """Real processes, what the kit has for them, and everybody's keys."""

    here: Loopback
    kit: Path
    keys: Keys = field(default_factory=lambda: Keys.new(SITES))

    @property
    def what(self) -> Agreement:
        """What everybody agreed on."""
        return self.keys.agreement(columns=agreement_of("EC").columns) if has_splits else self.keys.agreement()

    def write_sites(self) -> None:
        """Tables and keys: of some of the paper's sites, if they are here, and of two whose rows cannot be used."""
        folder, what = self.here.folder, self.what
        if has_splits:
            write_tables(folder, "EC", what)
        for number, site in enumerate(SITES):
            data = folder / site / "data.csv"
            if not data.exists():
                write_site(folder / site, number, what)
            if site in HONEST:
                write_policy(folder / site, f"accept = {list(WARNINGS)}")
            self.keys.sites[site].write(data.with_name("site.key"))
        names, width = ",".join(column.name for column in what.columns), len(what.columns)
        (folder / "clones" / "data.csv").write_text(f"{names}\n" + 60 * f"30.5{',110.25' * (width - 1)}\n")
        (folder / "broken" / "data.csv").write_text(f"{names}\n30{',SECRET' * (width - 1)}\n")

    def start_node(self, node: str, site: str) -> None:
        """A node of a site; a site may have two, which answer both."""
        data, own = self.here.folder / site / "data.csv", self.kit / "nodes" / node / "node.key"
        settings = {"data": str(data), "site": site, "key": str(data.with_name("site.key"))}
        self.here.start_node(node, settings, "--auth-supernode-private-key", str(own))

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
    folder, kit = tmp_path_factory.mktemp("live"), tmp_path_factory.mktemp("kit") / "kit"
    write_kit(kit, "live", ["localhost"], (*SITES, TWIN))
    files = {"--ssl-ca-certfile": "ca.crt", "--ssl-certfile": "server.crt", "--ssl-keyfile": "server.key"}
    link = [word for option, file in files.items() for word in (option, str(kit / "server" / file))]
    link += ["--enable-supernode-auth", "--database", str(folder / "state.db")]
    ca = str(kit / "operator" / "ca.crt")
    node = ("--root-certificates", ca)
    with running(folder, link_options=tuple(link), node_options=node, offline=has_namespaces()) as here:
        here.start_link(f'root-certificates = "{ca}"')
        yield Federation(here, kit)


def test_with_nobody_there_it_fails_and_says_so(federation: Federation, tmp_path: Path) -> None:
    done = federation.federate(tmp_path / "out", "--expect", 3, "--join", 1, "--answer", 120)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "at least 3 are agreed on" in done.stderr
    until(lambda: not federation.here.left_behind("flwr-serverapp"))


@pytest.fixture(scope="module")
def finished(federation: Federation, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A round with honest and other nodes."""
    federation.write_sites()
    federation.here.register(*(federation.kit / "operator").glob("*.pub"))
    for name in SITES:
        federation.start_node(name, name)
    federation.start_node(TWIN, HONEST[0])
    out = tmp_path_factory.mktemp("round") / "out"
    stranger = write_node_key(out.with_name("stranger"))
    federation.here.start_node("stranger", {}, "--auth-supernode-private-key", str(stranger))
    count = len(SITES) + 1
    return federation.federate(out, "--expect", count, "--join", 300, "--answer", 300, "-k", CLUSTERS), out


def test_a_round_with_honest_and_other_nodes_is_that_of_the_honest_by_file(
    federation: Federation, finished: Finished
) -> None:
    (done, out), here = finished, federation.here
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Joined: 7 of 7." in done.stdout
    assert f"Took part: {', '.join(HONEST)}." in done.stdout
    assert (out / "report.html").is_file()
    status = Status.read(out / "status.json")
    assert status.labelled == HONEST
    assert status.silent == ()
    refused = {who.split(" ")[0]: why for who, why in status.refused.items()}
    assert "an identical summary of 'site-0' came from another node before, and counts once" in refused.pop("site-0")
    assert refused == {"clones": SENTENCES["withheld"], "broken": SENTENCES["withheld"]}
    model, labels = by_file(here.folder, out, federation.what, HONEST, CLUSTERS)
    assert (out / "global.model").read_bytes() == model
    for name in HONEST:
        assert (here.folder / name / "data.labels.csv").read_text(encoding="utf-8") == labels[name]
    until(lambda: not here.left_behind("flwr-serverapp"))
    seen = (out / "status.json").read_text(encoding="utf-8") + here.said("superlink")
    assert "SECRET" not in seen + done.stdout + done.stderr


def test_a_whole_round_needs_no_network_but_loopback(federation: Federation, finished: Finished) -> None:
    if not federation.here.offline:
        pytest.skip("network namespaces are not to be had here")
    assert finished[0].returncode == 0
    assert federation.here.interfaces("superlink", *HONEST) == {"lo"}
