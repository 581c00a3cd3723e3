"""The benchmark of plausible columns, in a quick form."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from goldfc_bench.cli import main
from goldfc_bench.plausible.faults import EACH, FAULTS, FEWEST_ROWS, MOST_ROWS, federation_of, struck_in
from goldfc_bench.plausible.run import Row, all_work, narrow_families
from goldfc_bench.rows import RowFile


@pytest.mark.parametrize("number", range(2 * len(FAULTS)))
def test_a_fault_changes_one_column_of_one_site(number: int) -> None:
    drawn, struck = federation_of(number // EACH), struck_in(number)
    assert struck.fault is FAULTS[number % len(FAULTS)]
    assert struck.column in struck.fault.columns
    before = drawn.sites[struck.site]
    changed = (before != struck.rows).any(axis=0)
    assert [name for name, other in zip(drawn.names, changed, strict=True) if other] == [struck.column]
    assert all(FEWEST_ROWS <= len(rows) <= MOST_ROWS and (rows >= 0.0).all() for rows in drawn.sites.values())
    np.testing.assert_array_equal(struck_in(number).rows, struck.rows)


def test_all_work_has_every_group_once() -> None:
    work = all_work(4, ("EC",), narrow_families())
    assert len(set(work)) == len(work) == 5 + len(narrow_families())


def test_the_command_ends_in_a_page_and_in_rows(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["plausible", "--quick", "--jobs", "1", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "plausible" / "README.md").read_text(encoding="utf-8")
    assert "| faults found, site and column named | 95 % | 100 % | met |" in page
    assert "| false alarms, families | at most 5 % | 0 % | met |" in page
    rows = RowFile(tmp_path / "plausible" / "rows.jsonl", Row.from_json).read()
    assert [row.work for row in rows] == all_work(3, (), ("150 rows",))
    assert all(row.factor_named is not None for row in rows if row.group == "fault")
    again = CliRunner().invoke(main, ["plausible", "--quick", "--jobs", "1", "--out", str(tmp_path)])
    assert again.exit_code == 0
    assert (tmp_path / "plausible" / "README.md").read_text(encoding="utf-8") == page
