"""For the tests of the live federation: each as if it were the only one, and what Flower said where one fails."""

import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from flower.loopback import Loopback

MOST_LINES = 40


@pytest.fixture(autouse=True)
def in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a run of Flower's: messages must know which one they belong to. Not imported here, where it would warn."""
    if flower := sys.modules.get("flwr.supercore.task_identity"):
        for name in ("_run_id", "_task_id", "_node_id"):
            monkeypatch.setattr(flower.TaskIdentity, name, 1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A report of a failure ends with the logs."""
    report = yield
    if report.failed:
        for path in sorted(set(logs_of(getattr(item, "funcargs", {})))):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            report.sections.append((path.name, "\n".join(lines[-MOST_LINES:])))
    return report


def logs_of(fixtures: dict[str, object]) -> Iterator[Path]:
    """The logs in the folders that a test had."""
    for fixture in fixtures.values():
        here = getattr(fixture, "here", fixture)
        if isinstance(here, Loopback):
            yield from here.folder.glob("*.log")
        elif isinstance(here, Path):
            yield from here.rglob("*.log")
