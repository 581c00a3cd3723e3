"""The command line as a person meets it."""

import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from goldfc.cli import main


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    return result.exit_code, result.output


def test_refusals_are_one_sentence_and_a_failing_exit_code(tmp_path: Path) -> None:
    code, output = run("inspect", str(tmp_path / "nothing.summary"))
    assert code != 0
    assert "Traceback" not in output
    (tmp_path / "a.summary").write_bytes(b"no message")
    code, output = run("inspect", str(tmp_path / "a.summary"))
    assert code == 3
    assert output.startswith("goldfc: ")
    assert "Traceback" not in output


def test_help_does_not_wait_for_numerics() -> None:
    script = "import sys, goldfc.cli; sys.exit(bool({'numpy', 'sklearn', 'numba'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0  # noqa: S603 (our own script)


def test_what_takes_long_to_load_waits_until_it_is_needed() -> None:
    long = {"scipy.linalg", "scipy.sparse", "scipy.special", "sklearn"}
    script = f"import sys, goldfc.server.influence, goldfc.site.send; sys.exit(bool({long} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0  # noqa: S603 (our own script)


def test_the_demo_ends_in_a_table_and_a_report_and_needs_neither_the_benchmark_nor_matplotlib(tmp_path: Path) -> None:
    script = f"""
import sys
sys.modules["goldfc_bench"] = sys.modules["matplotlib"] = None
from goldfc.cli import main
main(["demo", "--out", {str(tmp_path / "report.html")!r}])
"""
    env = {**os.environ, "LOKY_MAX_CPU_COUNT": "1"}  # no processes beside it, which would load everything once more
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert "OneShot proposes" in done.stdout
    assert "k-means" in done.stdout
    assert (tmp_path / "report.html").stat().st_size > 50_000
