"""The network changes nothing: the paper's sites, asked over a grid, end as in one process, bit for bit.

With eight real nodes: test_processes.py.
"""

from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="goldfc[flower] is not installed")

from goldfc.transport.flower.job import Job
from goldfc.transport.flower.server_app import run_job
from needs import needs_splits
from sites import write_agreement
from transport.flower.by_file import in_one_process
from transport.flower.fake import FakeGrid, real
from transport.flower.paper import CLUSTERS, EIGHT, agreement_of, write_tables


@needs_splits
@pytest.mark.parametrize("dataset", ["EC", "US"])
def test_eight_nodes_end_as_one_process_does(dataset: str, tmp_path: Path) -> None:
    what, k, out = agreement_of(dataset), CLUSTERS[dataset], tmp_path / "out"
    _, model, labels = in_one_process(write_tables(tmp_path / "calm", dataset, what), what, k)
    tables = write_tables(tmp_path / "sites", dataset, what)
    write_agreement(tmp_path, what)
    out.mkdir()
    job = Job(federation=str(tmp_path / "federation.toml"), out=str(out), clusters=k, expect=len(EIGHT))
    job.write(job.file)
    run_job(FakeGrid({100 + number: real(data=tables[name], site=name) for number, name in enumerate(EIGHT)}), job)
    assert (out / "global.model").read_bytes() == model
    for name, data in tables.items():
        assert data.with_name("data.labels.csv").read_text(encoding="utf-8") == labels[name]
