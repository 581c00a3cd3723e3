"""The network changes nothing: eight real nodes with the paper's clients end as in one process, bit for bit.

Certificates, node keys and the SuperLink's settings are those of the deployment kit.
"""

import subprocess
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="goldfc[flower] is not installed")

from flower.loopback import BIN, CONNECTION, Loopback, running
from flower.test_processes import PROGRAM, assert_ends
from goldfc.bench.cases import split_of
from goldfc.byfile.folder import fuse_files
from goldfc.byfile.site import draft_summary, keep_membership, label_table, labels_text
from goldfc.byfile.tables import as_table, read_raw
from goldfc.flower.kit import write_kit
from goldfc.protocol.agreement import Agreement
from goldfc.protocol.message import Model
from goldfc.protocol.terms import Column
from goldfc.protocol.wire import encode
from needs import needs_splits, takes_minutes
from sites import write_agreement

CLUSTERS = {"EC": 8, "US": 4}


def agreement_of(dataset: str) -> Agreement:
    width = split_of(f"{dataset}-raw", "paper").X.shape[1]
    return Agreement(federation="paper", columns=tuple(Column(name=f"x{number}") for number in range(width)))


def write_tables(folder: Path, dataset: str, what: Agreement) -> dict[str, Path]:
    """The rows of the paper's clients, as tables at sites."""
    tables = {}
    for number, rows in enumerate(split_of(f"{dataset}-raw", "paper").rows_per_client()):
        data = folder / f"site-{number}" / "data.csv"
        data.parent.mkdir(parents=True)
        write_agreement(data.parent, what)
        lines = [",".join(column.name for column in what.columns)]
        lines += [",".join(map(repr, row)) for row in rows.tolist()]
        data.write_text("\n".join(lines) + "\n", encoding="utf-8")
        tables[f"site-{number}"] = data
    return tables


def in_one_process(tables: dict[str, Path], what: Agreement, n_clusters: int) -> tuple[bytes, dict[str, str]]:
    """The model and everybody's labels, without a network."""
    drafts, models = {}, list[Model]()
    for name, data in tables.items():
        drafts[name] = draft_summary(as_table(read_raw(data), what.columns), name, what, data)
        keep_membership(drafts[name], data)
    fuse_files([draft.summary for draft in drafts.values()], what, n_clusters, models.append)
    labels = {
        name: labels_text(label_table(as_table(read_raw(data), what.columns), models[0], data), "row")
        for name, data in tables.items()
    }
    return encode(models[0].to_message()), labels


def call(here: Loopback, *command: str) -> None:
    done = subprocess.run(command, env=here.env, capture_output=True, text=True, timeout=400, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr


@needs_splits
@pytest.mark.parametrize("dataset", ["EC", pytest.param("US", marks=takes_minutes)])
def test_eight_real_nodes_end_as_one_process_does(dataset: str, tmp_path: Path) -> None:
    what = agreement_of(dataset)
    model, labels = in_one_process(write_tables(tmp_path / "calm", dataset, what), what, CLUSTERS[dataset])
    tables = write_tables(tmp_path / "live", dataset, what)
    kit = tmp_path / "kit"
    write_kit(kit, "paper", ["localhost"], list(tables))
    files = {"--ssl-ca-certfile": "ca.crt", "--ssl-certfile": "server.crt", "--ssl-keyfile": "server.key"}
    link = [word for option, file in files.items() for word in (option, str(kit / "server" / file))]
    ca = str(kit / "operator" / "ca.crt")
    with running(
        tmp_path, link_options=(*link, "--enable-supernode-auth"), node_options=("--root-certificates", ca)
    ) as here:
        here.start_link(f'root-certificates = "{ca}"')
        for name, data in tables.items():
            call(here, str(BIN / "flwr"), "supernode", "register", str(kit / "operator" / f"{name}.pub"), CONNECTION)
            key = str(kit / "nodes" / name / "node.key")
            here.start_node(f"{name}-node", {"data": str(data), "client": name}, ("--auth-supernode-private-key", key))
        write_agreement(tmp_path, what)
        words = ["federate", tmp_path / "federation.toml", "--connection", CONNECTION, "-o", tmp_path / "out"]
        call(
            here, *PROGRAM, *map(str, [*words, "--expect", 8, "-k", CLUSTERS[dataset], "--join", 150, "--answer", 300])
        )
        assert (tmp_path / "out" / "global.model").read_bytes() == model
        for name, data in tables.items():
            assert data.with_name("data.labels.csv").read_text(encoding="utf-8") == labels[name]
    assert_ends(here, "")
