"""Every experiment runs in its quick form, and the report takes up what it made."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from goldfc_bench.cli import main
from goldfc_bench.cli.experiments import EXPERIMENT_HELP
from goldfc_bench.experiments import EXPERIMENTS
from goldfc_bench.methods import METHODS
from goldfc_bench.run import Rows
from needs import needs_splits


def test_every_experiment_has_a_command() -> None:
    assert sorted(EXPERIMENT_HELP) == sorted(EXPERIMENTS)


@needs_splits
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_quick_form_makes_a_row_for_every_run(name: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, [name, "--quick", "--jobs", "1", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    runs = Rows(tmp_path / f"{name}.jsonl").read()
    assert [run.key for run in runs] == [job.key for job in EXPERIMENTS[name].jobs(True)]
    assert not [run.reason for run in runs if run.status == "error"]
    if name in ("performance", "degree", "sites", "time"):
        assert {run.method for run in runs} == set(METHODS)
    assert CliRunner().invoke(main, ["report", "--rows", str(tmp_path), "--out", str(tmp_path)]).exit_code == 0
    assert name in (tmp_path / "README.md").read_text(encoding="utf-8")


@needs_splits
def test_the_picture_is_made_and_drawn(tmp_path: Path) -> None:
    assert CliRunner().invoke(main, ["picture", "--quick", "--out", str(tmp_path)]).exit_code == 0
    assert (tmp_path / "picture.json").stat().st_size > 1000
