"""Every notebook runs from nothing, as it is kept: without results."""

import json
from pathlib import Path

import pytest
from tools.notebooks import NOTEBOOKS, run

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert [path.stem for path in PATHS] == ["embeddings", "hospitals", "sensors", "text"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_nothing_and_finds_what_was_put_in(path: Path) -> None:
    cells = list(run(path.read_text(encoding="utf-8")))
    told = "\n".join(cell.printed for cell in cells)
    assert sum("<img" in cell.shown for cell in cells) >= 1
    if path.stem != "hospitals":
        assert float(told.split("ARI with the ")[1].split(": ")[1].split()[0]) > 0.95
    else:
        assert "precision" in told


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_results_and_can_be_opened(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
