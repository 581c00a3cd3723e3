"""What the documentation shows runs, and its links lead somewhere."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from goldfc.bench.run import Rows
from goldfc.cli import main

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_python_example_runs(page: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    exec("\n".join(examples), {"__name__": page.stem})  # noqa: S102 (our own examples)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_walk_through_of_a_method_of_ones_own_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "nearest_draw.py").write_text(example, encoding="utf-8")
    (tmp_path / "meters.csv").write_text(
        "kWh,peak,kind\n" + "".join(f"{row % 7},{row % 3},{'ab'[row % 2]}\n" for row in range(60)), encoding="utf-8"
    )
    rows = tmp_path / "rows.jsonl"
    method = f"{tmp_path}/nearest_draw.py:NearestDraw"
    options = f"--dataset {tmp_path}/meters.csv --split non-icd-4-0 --seeds 2 --jobs 1 --set handful=7 --out {rows}"
    result = CliRunner().invoke(main, ["bench", "run", "--method", method, *options.split()])
    assert result.exit_code == 0, result.output
    runs = Rows(rows).read()
    assert [(run.status, run.uplinks, run.declared_uplinks) for run in runs] == [("done", 4, 4)] * 2
