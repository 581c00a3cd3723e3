"""The price of differential privacy, in small."""

from functools import partial
from pathlib import Path

from click.testing import CliRunner

from goldfc_bench.cli import main
from goldfc_bench.private.federations import Federation, drawn
from goldfc_bench.private.making import make_rows
from goldfc_bench.private.page import Results
from goldfc_bench.private.rivals import RIVALS
from goldfc_bench.private.run import NONE, PRIVATE, Row, Work, all_work, code_of_rows
from goldfc_bench.private.run import row_of as run_of
from goldfc_bench.rows import RowFile

SMALL = (Federation("small", 250, 3, 3, apart=4.0),)


def test_rows_and_page_of_a_small_federation(tmp_path: Path) -> None:
    work = [one for one in all_work(SMALL, 1) if one[3] in {0.0, 1.0, 8.0}]
    assert {method for _, _, method, _ in work} == {NONE, PRIVATE, *RIVALS}
    file = RowFile(tmp_path / "rows.jsonl", Row.from_json)
    rows = make_rows(work, partial(run_of, federations=SMALL), code_of_rows(), 1, file, lambda: None)
    assert [row.work for row in rows] == work
    assert make_rows(work, never, code_of_rows(), 1, file, lambda: None) == rows
    results = Results(rows, SMALL)
    assert results.share("small", PRIVATE, 8.0) > 0.9
    assert all(row.cells >= 1 for row in rows)


def never(work: Work) -> Row:
    raise AssertionError(f"{work} is made again")


def test_a_federation_is_the_same_for_the_same_seed_and_in_its_ranges() -> None:
    one = drawn(SMALL[0], 3)
    drawn.cache_clear()
    other = drawn(SMALL[0], 3)
    assert all((mine == others).all() for mine, others in zip(one.sites, other.sites, strict=True))
    low, high = zip(*(column.limits for column in one.terms.columns), strict=True)
    assert all((rows >= low).all() and (rows <= high).all() for rows in one.sites)
    assert run_of(("small", 3, PRIVATE, 1.0), SMALL).ari == run_of(("small", 3, PRIVATE, 1.0), SMALL).ari


def test_the_command_tells_of_the_plan_and_of_attacks() -> None:
    result = CliRunner().invoke(main, ["private", "--quick", "--seeds", "1"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "What was planned, and what came" in result.output
    (attacked,) = [line.split("|") for line in result.output.splitlines() if line.startswith("| all")]
    auc, restored = float(attacked[3].split()[0]), int(attacked[5])
    assert auc < 0.7
    assert restored == 0
