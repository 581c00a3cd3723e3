"""Methods that need many messages run over Flower, too, and end as they do in one process."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="goldfc[flower] is not installed")

from flwr.app import Context, RecordDict

from goldfc._types import FloatArray
from goldfc.errors import BadMessage
from goldfc.message.message import Message
from goldfc.randomness import generator, site_generator
from goldfc.transport.flower.kit import QUIET
from goldfc.transport.local import LocalPort
from goldfc_bench.cases import split_of
from goldfc_bench.flower import rivals
from goldfc_bench.methods import method_named
from transport.flower.fake import FakeGrid, Node
from transport.flower.loopback import RAY

SEED, CLUSTERS = 3, 3
NAMES = ("k-Fed", "FFCM-avg1")


def node_of(folder: Path, name: str) -> Node:
    """A node whose program begins anew with every message; only its context stays."""
    context = Context(
        1, 7, {"site": name, "rows": str(folder / f"{name}.npy"), "labels": str(folder / f"{name}-labels.npy")},
        RecordDict(), {},
    )  # fmt: skip
    return lambda message: rivals.site_app(message, context)


def rows_by_site() -> dict[str, FloatArray]:
    return {str(number): part for number, part in enumerate(split_of("iris", "non-icd-4-0").rows_per_site())}


def assert_as_in_one_process(name: str, centroids: Path, labels: Callable[[str], Path]) -> None:
    method = method_named(name, {})
    sites = [method.site(site, part, site_generator(SEED, site)) for site, part in rows_by_site().items()]
    answer = method.serve(LocalPort(sites), CLUSTERS, generator(SEED, "server"))
    np.testing.assert_array_equal(np.load(centroids), answer.centroids)
    for one in sites:
        np.testing.assert_array_equal(np.load(labels(one.name)), one.labels)


@pytest.mark.parametrize("name", NAMES)
def test_a_method_ends_as_in_one_process(name: str, tmp_path: Path) -> None:
    rows = rows_by_site()
    for site, part in rows.items():
        np.save(tmp_path / f"{site}.npy", part)
    grid = FakeGrid({100 + int(site): node_of(tmp_path, site) for site in rows})
    rivals.serve(grid, name, CLUSTERS, SEED, len(rows), tmp_path / "centroids.npy")
    assert_as_in_one_process(name, tmp_path / "centroids.npy", lambda site: tmp_path / f"{site}-labels.npy")


# One run after the other, since it takes longest to load everything.
SIMULATE = """
import runpy, sys
_, folder, clusters, seed, *names = sys.argv
for name in names:
    sys.argv[1:] = [f"{folder}/{name}", name, clusters, seed]
    runpy.run_module("goldfc_bench.flower.rivals", run_name="__main__")
"""


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of results for each of the methods, which were run on Flower's own engine."""
    folder = tmp_path_factory.mktemp("engine")
    for name in NAMES:
        (folder / name).mkdir()
        for site, part in rows_by_site().items():
            np.save(folder / name / f"rows-{site}.npy", part)
    command = [sys.executable, "-c", SIMULATE, str(folder), str(CLUSTERS), str(SEED), *NAMES]
    env = {**os.environ, **QUIET, **RAY}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_and_on_flowers_own_engine(name: str, simulated: Path) -> None:
    assert_as_in_one_process(
        name, simulated / name / "centroids.npy", lambda site: simulated / name / f"labels-{site}.npy"
    )


def test_any_message_survives_the_way() -> None:
    message = Message("gossip", {"a": np.arange(6).reshape(2, 3), "b": np.ones(2)}, {"when": [1, 2.5], "who": "x"})
    back = rivals.from_bytes(rivals.to_bytes(message))
    assert (back.kind, back.facts) == (message.kind, message.facts)
    for name, array in message.arrays.items():
        np.testing.assert_array_equal(back.arrays[name], array)
        assert back.arrays[name].dtype == array.dtype
    with pytest.raises(BadMessage, match="cut off"):
        rivals.from_bytes(rivals.to_bytes(message)[:40])


def test_a_node_that_does_not_answer_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals, "ANSWER_SECONDS", 0.3)
    np.save(tmp_path / "0.npy", np.random.default_rng(0).normal(size=(30, 2)))
    grid = FakeGrid({1: node_of(tmp_path, "0"), 2: lambda _: None})
    with pytest.raises(BadMessage, match="node 2 did not answer in time"):
        rivals.serve(grid, "k-Fed", 2, 0, 2, tmp_path / "centroids.npy")
