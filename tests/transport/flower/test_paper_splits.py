"""The network changes nothing: eight real nodes with the paper's sites end as in one process, bit for bit.

Certificates, node keys and the SuperLink's settings are those of the deployment kit.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="goldfc[flower] is not installed")

from goldfc.agreement import Agreement
from goldfc.message.columns import Column
from goldfc.message.wire import encode
from goldfc.server.round import fuse_admitted
from goldfc.site.audit import WARNINGS
from goldfc.site.labels import header_text, labels_of, lines_text
from goldfc.site.send import draft_summary
from goldfc.site.table.readers import read_all
from goldfc.site.table.table import as_table
from goldfc.transport.flower.kit import write_kit
from goldfc_bench.cases import split_of
from needs import needs_splits
from sites import write_agreement, write_policy
from transport.flower.loopback import CONNECTION, GOLDFC, Loopback, running

CLUSTERS = {"EC": 8, "US": 4}
NAMES = tuple(f"site-{number}" for number in range(8))


def agreement_of(dataset: str) -> Agreement:
    width = split_of(f"{dataset}-raw", "paper").X.shape[1]
    return Agreement(federation="paper", columns=tuple(Column(name=f"x{number}") for number in range(width)))


def write_tables(folder: Path, dataset: str, what: Agreement) -> dict[str, Path]:
    """The rows of the paper's sites, as tables at sites."""
    tables = {}
    for name, rows in zip(NAMES, split_of(f"{dataset}-raw", "paper").rows_per_site(), strict=True):
        data = folder / name / "data.csv"
        data.parent.mkdir(parents=True)
        write_agreement(data.parent, what)
        write_policy(data.parent, f"accept = {list(WARNINGS)}")
        lines = [",".join(column.name for column in what.columns)]
        lines += [",".join(map(repr, row)) for row in rows.tolist()]
        data.write_text("\n".join(lines) + "\n", encoding="utf-8")
        tables[name] = data
    return tables


def in_one_process(tables: dict[str, Path], what: Agreement, n_clusters: int) -> tuple[bytes, dict[str, str]]:
    """The model and everybody's labels, without a network."""
    drafts = {}
    for name, data in tables.items():
        drafts[name] = draft_summary(as_table(read_all(data), what.columns), name, what, data)
    model = fuse_admitted([draft.summary for draft in drafts.values()], what, n_clusters).model
    labels = {
        name: header_text("row")
        + lines_text(next(labels_of(as_table(read_all(data), what.columns), model)), model.fingerprint)
        for name, data in tables.items()
    }
    return encode(model.to_message()), labels


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    """A SuperLink and eight nodes; what their tables hold is up to the test."""
    folder, kit = tmp_path_factory.mktemp("paper"), tmp_path_factory.mktemp("kit") / "kit"
    write_kit(kit, "paper", ["localhost"], NAMES)
    files = {"--ssl-ca-certfile": "ca.crt", "--ssl-certfile": "server.crt", "--ssl-keyfile": "server.key"}
    link = [word for option, file in files.items() for word in (option, str(kit / "server" / file))]
    ca = str(kit / "operator" / "ca.crt")
    with running(
        folder, link_options=(*link, "--enable-supernode-auth"), node_options=("--root-certificates", ca)
    ) as here:
        here.start_link(f'root-certificates = "{ca}"')
        here.register(*(kit / "operator" / f"{name}.pub" for name in NAMES))
        for name in NAMES:
            settings = {"data": str(folder / "sites" / name / "data.csv"), "site": name}
            key = str(kit / "nodes" / name / "node.key")
            here.start_node(f"{name}-node", settings, "--auth-supernode-private-key", key)
        yield here


@needs_splits
@pytest.mark.parametrize("dataset", ["EC", "US"])
def test_eight_real_nodes_end_as_one_process_does(dataset: str, here: Loopback, tmp_path: Path) -> None:
    what, k, out = agreement_of(dataset), CLUSTERS[dataset], tmp_path / "out"
    model, labels = in_one_process(write_tables(tmp_path / "calm", dataset, what), what, k)
    shutil.rmtree(here.folder / "sites", ignore_errors=True)
    tables = write_tables(here.folder / "sites", dataset, what)
    write_agreement(tmp_path, what)
    words = ["federate", tmp_path / "federation.toml", "--connection", CONNECTION, "-o", out, "-k", k]
    done = here.run(*GOLDFC, *map(str, [*words, "--expect", len(NAMES), "--join", 300, "--answer", 600]))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (out / "global.model").read_bytes() == model
    for name, data in tables.items():
        assert data.with_name("data.labels.csv").read_text(encoding="utf-8") == labels[name]
