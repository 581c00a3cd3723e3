"""For all tests: one thread for BLAS and OpenMP, as the runner has it; they run side by side, but for the live ones."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sklearn.cluster  # noqa: F401 (its thread pools must be loaded before they can be limited)
from threadpoolctl import threadpool_limits
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# They start many processes each, so they run one after the other, on one of the workers.
LIVE = (
    *(f"transport/flower/test_{name}.py" for name in ("faults", "offline", "paper_splits", "processes")),
    "bench/test_rivals.py",
    "tests/test_ray.py",
)


# The data of the experiments may lie beside the checkout; before any test asks where they are.
if (DATA := Path(__file__).parents[2] / "shared" / "data").is_dir():
    os.environ.setdefault("GOLDFC_DATA", str(DATA))


class OneLiveAtATime(LoadScopeScheduling):  # type: ignore[misc] # it has no types
    """Every test goes to the next worker that is free, but the live ones all go to the same.

    The mark `xdist_group` is meant for this, and does nothing with pytest 9.2 (pytest-xdist, issue 1386).
    """

    def _split_scope(self, nodeid: str) -> str:
        return "live" if any(file in nodeid for file in LIVE) else nodeid


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneLiveAtATime:
    """Who runs what."""
    return OneLiveAtATime(config, log)


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    with threadpool_limits(limits=1):
        yield


@pytest.fixture(autouse=True)
def in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a run of Flower's: messages must know which one they belong to. Not imported here, where it would warn."""
    if flower := sys.modules.get("flwr.supercore.task_identity"):
        for name in ("_run_id", "_task_id", "_node_id"):
            monkeypatch.setattr(flower.TaskIdentity, name, 1)
