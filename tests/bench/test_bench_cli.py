"""The command line of the benchmark as a person meets it."""

from pathlib import Path

from click.testing import CliRunner

from goldfc_bench.cli import main
from needs import needs_splits


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    return result.exit_code, result.output


@needs_splits
def test_paper_writes_its_page_and_rows(tmp_path: Path) -> None:
    code, output = run("paper", "--seeds", "2", "--dataset", "EC", "--jobs", "1", "--out", str(tmp_path))
    assert code == 0
    assert "of 4 cells (Purity, ARI, NMI, ACC) agree with the paper" in output
    assert (tmp_path / "paper" / "README.md").read_text(encoding="utf-8").startswith("# GOLD on the paper's ten splits")
    assert len((tmp_path / "paper" / "rows.jsonl").read_text(encoding="utf-8").splitlines()) == 2


def test_data_list_shows_all_ten_sets() -> None:
    code, output = run("data", "list")
    assert code == 0
    assert all(f" {name} " in output for name in ["EC", "US", "VE", "EP", "YE", "CA", "LA", "WI", "PE", "LE"])


def test_refusals_are_one_sentence_and_a_failing_exit_code() -> None:
    code, output = run("paper", "--dataset", "XX", "--jobs", "1")
    assert code == 1
    assert output.startswith("goldfc-bench: ")
    assert "Traceback" not in output
    code, output = run("data", "fetch", "XX")
    assert code == 1
    assert "XX" in output
