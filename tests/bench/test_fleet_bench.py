"""Fleets are what they should be, and what is measured ends in a page."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from goldfc_bench.cli import main
from goldfc_bench.fleet.made import HOSTILE, Fleet

SMALL = Fleet(gateways=3, devices=4, rows=30)


def test_a_device_has_the_same_rows_again_and_few_of_the_clusters() -> None:
    rows, truth = SMALL.table(1, 2)
    np.testing.assert_array_equal(rows, SMALL.table(1, 2)[0])
    assert len(np.unique(truth)) <= 3
    assert len(SMALL.sample(2)[0]) == 6 * 30


@pytest.mark.parametrize("attack", HOSTILE)
def test_what_a_hostile_device_sends_passes_the_checks(attack: str) -> None:
    hostile = HOSTILE[attack](SMALL.summary(0, 0))
    assert SMALL.agreement.read_summary(hostile.to_message()).rows == 10**6 * len(hostile.centroids)


def test_the_page_says_what_it_took(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["fleet", "--quick", "--out", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "fleet" / "README.md").read_text(encoding="utf-8")
    assert "## 40 devices behind 4 gateways" in page
    assert "labels by way of gateways and those of all summaries at once: **1.0000**" in page


def test_the_page_of_parts_says_what_it_took(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["parts", "--quick", "--out", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "parts" / "README.md").read_text(encoding="utf-8")
    assert "of all 30,000 rows at once: **1.0000**" in page
