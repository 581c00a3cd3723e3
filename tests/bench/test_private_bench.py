"""The price of differential privacy, in small."""

from pathlib import Path

from click.testing import CliRunner

from goldfc_bench.cli import main
from goldfc_bench.private.attacks import row_of
from goldfc_bench.private.federations import Federation, drawn
from goldfc_bench.private.page import Results
from goldfc_bench.private.rivals import RIVALS
from goldfc_bench.private.run import NONE, PRIVATE, Row, all_work, make_rows
from goldfc_bench.private.run import row_of as run_of
from goldfc_bench.rows import RowFile

SMALL = (Federation("small", 250, 3, 3, apart=4.0),)


def test_rows_and_page_of_a_small_federation(tmp_path: Path) -> None:
    work = [one for one in all_work(SMALL, 1) if one[3] in {0.0, 1.0, 8.0}]
    assert {method for _, _, method, _ in work} == {NONE, PRIVATE, *RIVALS}
    file = RowFile(tmp_path / "rows.jsonl", Row.from_json)
    rows = make_rows(work, SMALL, 1, file, lambda: None)
    assert [row.work for row in rows] == work
    assert make_rows(work, SMALL, 1, file, lambda: None) == rows
    results = Results(rows, SMALL)
    assert results.share("small", PRIVATE, 8.0) > 0.9
    assert all(row.cells >= 1 for row in rows)


def test_a_federation_is_the_same_for_the_same_seed_and_in_its_ranges() -> None:
    one = drawn(SMALL[0], 3)
    drawn.cache_clear()
    other = drawn(SMALL[0], 3)
    assert all((mine == others).all() for mine, others in zip(one.sites, other.sites, strict=True))
    low, high = zip(*(column.limits for column in one.terms.columns), strict=True)
    assert all((rows >= low).all() and (rows <= high).all() for rows in one.sites)
    assert run_of(("small", 3, PRIVATE, 1.0), SMALL).ari == run_of(("small", 3, PRIVATE, 1.0), SMALL).ari


def test_the_command_and_its_attacks() -> None:
    result = CliRunner().invoke(main, ["private", "--quick", "--seeds", "1"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "What was planned, and what came" in result.output
    attacked = row_of(("wine", 100))
    assert attacked is not None
    assert attacked.auc < 0.7
    assert attacked.restored == 0
