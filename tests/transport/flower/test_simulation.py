"""A round on Flower's simulation engine (Ray): the same model and labels as by file."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="goldfc[flower] is not installed")

from goldfc.transport.flower.job import Status
from sites import agreement, write_policy
from transport.flower.by_file import by_file
from transport.flower.loopback import GOLDFC, RAY, write_site

# So many tables have a hundred sites.
TABLES = 20


def test_a_hundred_nodes_on_the_simulation_engine_give_the_same_model(tmp_path: Path) -> None:
    what, names = agreement(), tuple(f"site-{number:03}" for number in range(100))
    (tmp_path / "tables").mkdir()
    write_policy(tmp_path / "tables", 'accept = ["membership", "near"]')  # which the audit finds at six of them
    for number, name in enumerate(names):
        # Few tables, so that few need be attacked again for the federation by file.
        shutil.copy(write_site(tmp_path / name, number % TABLES, what), tmp_path / "tables" / f"{name}.csv")
    out = tmp_path / "out"
    words = ["federate", tmp_path / names[0] / "federation.toml", "--simulate", len(names)]
    options = ["--data", tmp_path / "tables", "-o", out, "-k", 3, "--join", 300, "--answer", 300]
    command, env = [*GOLDFC, *map(str, [*words, *options])], {**os.environ, **RAY}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900, check=False)  # noqa: S603 (our own)
    assert done.returncode == 0, done.stdout + done.stderr
    model, labels = by_file(tmp_path, out, what, names, 3)
    assert (out / "global.model").read_bytes() == model
    assert Status.read(out / "status.json").labelled == names
    assert all((out / "sites" / name / "labels.csv").read_text(encoding="utf-8") == labels[name] for name in names)
