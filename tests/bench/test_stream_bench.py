"""Generated files are what they should be, and their measurements end in a page."""

import io
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from goldfc_bench.cli import main
from goldfc_bench.stream import as_text, mixture


def test_numbers_are_written_as_decimals() -> None:
    rows = next(mixture())[:50]
    found = np.loadtxt(io.BytesIO(as_text(rows)), delimiter=",")
    np.testing.assert_allclose(found, rows, rtol=0, atol=0.51e-5)


def test_the_page_says_how_much_memory_it_took(tmp_path: Path) -> None:
    options = ["--gigabytes", "0.003", "--scratch", str(tmp_path), "--out", str(tmp_path)]
    result = CliRunner().invoke(main, ["stream", *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "stream" / "README.md").read_text(encoding="utf-8")
    assert "| 0.00 GB | 20,000 |" in page
    assert [path.name for path in tmp_path.iterdir()] == ["stream"]
