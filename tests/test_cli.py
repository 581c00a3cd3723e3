"""The command line as a person meets it."""

import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from goldfc.cli import main
from needs import needs_splits


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    return result.exit_code, result.output


def test_the_demo_ends_in_a_table_and_a_report(tmp_path: Path) -> None:
    code, output = run("demo", "--out", str(tmp_path / "report.html"))
    assert code == 0
    assert "OneShot proposes" in output
    assert "k-means" in output
    assert (tmp_path / "report.html").stat().st_size > 50_000


@needs_splits
def test_bench_paper_writes_its_page_and_rows(tmp_path: Path) -> None:
    code, output = run("bench", "paper", "--seeds", "2", "--dataset", "EC", "--jobs", "1", "--out", str(tmp_path))
    assert code == 0
    assert "of 4 cells (Purity, ARI, NMI, ACC) agree with the paper" in output
    assert (tmp_path / "paper" / "README.md").read_text(encoding="utf-8").startswith("# GOLD on the paper's ten splits")
    assert len((tmp_path / "paper" / "rows.jsonl").read_text(encoding="utf-8").splitlines()) == 2


def test_data_list_shows_all_ten_sets() -> None:
    code, output = run("data", "list")
    assert code == 0
    assert all(f" {name} " in output for name in ["EC", "US", "VE", "EP", "YE", "CA", "LA", "WI", "PE", "LE"])


def test_refusals_are_one_sentence_and_a_failing_exit_code() -> None:
    code, output = run("bench", "paper", "--dataset", "XX")
    assert code == 1
    assert output.startswith("goldfc: ")
    assert "Traceback" not in output
    code, output = run("data", "fetch", "XX")
    assert code == 1
    assert "XX" in output


def test_help_does_not_wait_for_numerics() -> None:
    script = "import sys, goldfc.cli; sys.exit(bool({'numpy', 'sklearn', 'numba'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0  # noqa: S603 (our own script)
