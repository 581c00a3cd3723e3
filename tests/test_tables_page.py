"""docs/tables.md: its site.toml is one, and its five sites come from files to labels as it says."""

import re
import runpy
import shlex
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from sklearn.metrics import adjusted_rand_score

from goldfc.cli import main
from goldfc.cli.form import OPTIONS
from goldfc.site.table.form import ColumnForm, Form

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
SITES = ("oslo", "berlin", "chicago", "delhi", "espoo")


def test_the_site_toml_of_the_page_is_one_and_has_every_field() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    form = Form.model_validate(tomllib.loads(example))
    assert form.model_fields_set == set(Form.model_fields)
    assert {name for own in form.columns.values() for name in own.model_fields_set} == set(ColumnForm.model_fields)
    for option in OPTIONS:
        name = option(lambda: None).__click_params__[-1].name  # type: ignore[attr-defined]
        assert f"`--{name}" in PAGE


def test_five_messy_sites_come_from_files_to_labels_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "examples" / "five-tables" / "make_data.py", tmp_path)
    steps = re.findall(r"```bash\n(.*?)```\n```text\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(steps) == 6
    for commands, said in steps:
        output = "".join(printed(command, monkeypatch) for command in commands.splitlines())
        for line in said.splitlines():
            pattern = ".*".join(re.escape(" ".join(part.split())) for part in line.split("..."))
            assert re.search(pattern, re.sub(" +", " ", output)), f"{line!r} is not in:\n{output}"
    assert labels_agree(tmp_path) > 0.9


def printed(line: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a person sees who types a line; here without starting a process for each."""
    command, _, otherwise = line.partition(" || ")
    program, *words = shlex.split(command)
    if program == "python":
        monkeypatch.setattr(sys, "argv", words)
        runpy.run_path(words[0], run_name="__main__")
        return ""
    if program == "head":
        return "".join(Path(words[1]).read_text(encoding="utf-8").splitlines(keepends=True)[: -int(words[0])])
    assert program == "goldfc"
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main, words, catch_exceptions=False)
    assert bool(result.exit_code) == bool(otherwise), result.output
    return f"{result.output}exit code {result.exit_code}\n" if otherwise else result.output


def labels_agree(folder: Path) -> float:
    """With the kinds of patients that nobody was told: ARI over all rows that have a label."""
    labels, kinds = [], []
    for name in SITES:
        rows = (folder / name / "labels.csv").read_text(encoding="utf-8").splitlines()[1:]
        truth = (folder / name / "kind.csv").read_text(encoding="utf-8").splitlines()[1:]
        for row, kind in zip(rows, truth, strict=True):
            assert row.split(",")[0] == kind.split(",")[0]
            if row.split(",")[1]:
                labels.append(row.split(",")[1])
                kinds.append(kind.split(",")[1])
    return float(adjusted_rand_score(kinds, labels))
