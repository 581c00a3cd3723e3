"""For all tests: one thread for BLAS and OpenMP, as the runner has it; most run side by side."""

import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

# Also for the processes that tests start: threads that wait for each other would take what other tests need.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import hypothesis
import pytest
import sklearn.cluster  # noqa: F401 (its thread pools must be loaded before they can be limited)
from threadpoolctl import threadpool_limits
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from attacks import ANEW, remembering
from goldfc.site.membership import Guess

# What is compiled is kept, or every worker and every process would compile all modules once more.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# They start many processes each: those of one line run one after the other, on one of the workers. The first ones
# mostly wait, for a deadline that somebody silent does not keep; the others mostly compute.
LIVE = (
    ("transport/flower/test_faults.py",),
    ("transport/flower/test_processes.py", "flower/test_simulation.py", "bench/test_rivals.py", "tests/test_ray.py"),
)
# Tests of each of these share what takes longest.
TOGETHER = (
    "cli/test_kill.py",
    "demo/test_demo.py",
    "report/test_model_page.py",
    "report/test_page_in_browser.py",
    "tests/test_parallel.py",
    "tests/test_release.py",
    "tests/test_site.py",
    "test_files.py::test_messages_models_and_labels_are_the_same_on_windows",
)
# What takes longest begins first, so that no worker is left with it in the end.
LONG = (
    *LIVE[0],
    *LIVE[1],
    # Compile what others need as well.
    "bench/test_paper.py::test_gold_agrees_with_the_paper_on_its_own_splits",
    "bench/methods/test_contract.py::test_law[OSFSC-SSC-one_label_per_row",
    "cli/test_kill.py",
    "tests/test_docs.py",
    "cli/test_cli.py",
    *TOGETHER[1:],
    "bench/test_trust.py",
)


# The data of the experiments may lie beside the checkout; before any test asks where they are.
if (DATA := Path(__file__).parents[2] / "shared" / "data").is_dir():
    os.environ.setdefault("GOLDFC_DATA", str(DATA))

# No law depends on how fast or busy a machine is.
hypothesis.settings.register_profile("any", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("any")


def place_among(files: Sequence[str], nodeid: str) -> int:
    """The number of the file that a test is in, or the next one."""
    return next((number for number, file in enumerate(files) if file in nodeid), len(files))


class LiveOnesInTurn(LoadScopeScheduling):  # type: ignore[misc] # it has no types
    """Every test goes to the next worker that is free, but the live ones of one line, and some others, to the same.

    The mark `xdist_group` is meant for this, and does nothing with pytest 9.2 (pytest-xdist, issue 1386).
    """

    def _split_scope(self, nodeid: str) -> str:
        return next((line[0] for line in (*LIVE, *zip(TOGETHER)) if place_among(line, nodeid) < len(line)), nodeid)


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LiveOnesInTurn:
    """Who runs what; in the order below, not by how many tests belong together."""
    config.option.loadscopereorder = False
    return LiveOnesInTurn(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In which order."""
    items.sort(key=lambda item: place_among(LONG, item.nodeid))


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    with threadpool_limits(limits=1):
        yield


@pytest.fixture(scope="session")
def attacks(tmp_path_factory: pytest.TempPathFactory) -> "partial[Guess | None]":
    """The attack that looks into a folder first, which is that of all workers."""
    folder = tmp_path_factory.getbasetemp()
    return remembering((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "attacks")


@pytest.fixture(autouse=True)
def each_attack_once(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, attacks: "partial[Guess | None]"
) -> None:
    """What an attack finds is not found again, but in those tests that ask for it."""
    if place_among(ANEW, request.node.nodeid) == len(ANEW):
        monkeypatch.setattr("goldfc.site.summarize.membership_of", attacks)


@pytest.fixture(autouse=True)
def in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a run of Flower's: messages must know which one they belong to. Not imported here, where it would warn."""
    if flower := sys.modules.get("flwr.supercore.task_identity"):
        for name in ("_run_id", "_task_id", "_node_id"):
            monkeypatch.setattr(flower.TaskIdentity, name, 1)
