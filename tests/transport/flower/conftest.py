"""For the tests of the live federation: what Flower said where one fails."""

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from transport.flower.loopback import Loopback

MOST_LINES = 40


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
