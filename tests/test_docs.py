"""What the documentation shows runs, and its links lead somewhere."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from sklearn.metrics import adjusted_rand_score

from goldfc_bench.cli import main
from goldfc_bench.run import Rows

ROOT = Path(__file__).parent.parent
PAGES = sorted(page for folder in ("*", "docs/*", "bench/*", "benchmarks/**/*") for page in ROOT.glob(f"{folder}.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_python_example_runs(page: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    exec("\n".join(examples), {"__name__": page.stem})  # noqa: S102 (our own examples)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target, _, anchor in (link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", text)):
        if "://" not in target:
            file = page.parent / target if target else page
            assert file.exists(), target
            assert not anchor or anchor in anchors(file), f"{target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """What headings of a page are called in links, as GitHub and the site have it."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


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
    result = CliRunner().invoke(main, ["run", "--method", method, *options.split()])
    assert result.exit_code == 0, result.output
    runs = Rows(rows).read()
    assert [(run.status, run.uplinks, run.declared_uplinks) for run in runs] == [("done", 4, 4)] * 2


def test_the_walk_through_of_three_hospitals_prints_what_it_says(tmp_path: Path) -> None:
    for file in (ROOT / "examples" / "three-hospitals").iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    page = (ROOT / "docs" / "three-hospitals.md").read_text(encoding="utf-8")
    steps = re.findall(r"```bash\n(.*?)```(?:\n```text\n(.*?)```)?", page, flags=re.DOTALL)
    assert len(steps) > 5
    for commands, said in steps:
        output = run_in(tmp_path, commands)
        for line in said.splitlines():
            pattern = ".*".join(re.escape(" ".join(part.split())) for part in line.split("..."))
            assert re.search(pattern, re.sub(" +", " ", output)), f"{line!r} is not in:\n{output}"
    assert labels_agree(tmp_path) > 0.9


def run_in(folder: Path, commands: str) -> str:
    """What a person sees who types them."""
    for entry in folder.glob("server/inbox/*"):
        os.utime(entry, (1, 1))  # nobody writes there any more
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(  # noqa: S603 (our own commands)
        ["bash", "-euc", commands],  # noqa: S607
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}"
    return done.stdout


def labels_agree(folder: Path) -> float:
    """With the kinds of patients that nobody was told: ARI over both honest hospitals."""
    labels, kinds = [], []
    for name in ("north", "south"):
        rows = (folder / name / "labels.csv").read_text(encoding="utf-8").splitlines()[1:]
        truth = (folder / name / f"{name}.truth.csv").read_text(encoding="utf-8").splitlines()[1:]
        labels += [row.split(",")[1] for row in rows]
        kinds += [row.split(",")[1] for row in truth]
    return float(adjusted_rand_score(kinds, labels))
