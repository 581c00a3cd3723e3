"""Columns, units, categories, clusters and rows that are called what would do something elsewhere: they are text."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from goldfc.cli import main
from goldfc.site.labels import FORMULA, SIGNED_NUMBER
from pages import tags_of, text_of

MARKUP = "[red]=1+1<img src=x onerror=alert(1)>[/red]\"'`${7*7}&amp;"
FORMULAS = ("=1+1", "+cmd|' /C calc'!A0", "@SUM(A1)", "-2+3")
STEERING = "\x1b[31m\u202e\x07"
SITES = ("east", "north", "west")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three tables with such names, and what was agreed on."""
    monkeypatch.chdir(tmp_path)
    columns = [
        {"name": f"age {MARKUP}", "kind": '"number"', "unit": json.dumps(f"years {MARKUP}")},
        {"name": f"={MARKUP}", "kind": '"number"', "unit": '"=1+1"'},
        {"name": "ward", "kind": '"category"', "categories": json.dumps([f"=A {MARKUP}", "[bold]B", "@C"])},
    ]
    parts = ['federation = "wards"', 'id_column = "=id"', 'missing = "drop"']
    for column in columns:
        lines = [f"{key} = {value}" for key, value in column.items() if key != "name"]
        parts += ["[[columns]]", f"name = {json.dumps(column['name'])}", *lines]
    (tmp_path / "federation.toml").write_text("\n".join(parts) + "\n", encoding="utf-8")
    for number, site in enumerate(SITES):
        write_table(tmp_path / f"{site}.csv", [column["name"] for column in columns], number)
    named = [f"[[clusters]]\nid = {n}\nname = {json.dumps(f'={n}<b>[red]')}" for n in range(3)]
    (tmp_path / "names.toml").write_text("\n".join(named) + "\n", encoding="utf-8")
    return tmp_path


def write_table(path: Path, names: list[str], seed: int) -> None:
    """Three kinds of rows; one is far, and one misses a value."""
    rng = np.random.default_rng(seed)
    kind = np.arange(150) % 3
    numbers = np.array([[30.0, 1.0], [60.0, 9.0], [80.0, 4.0]])[kind] + rng.normal(size=(150, 2)) * [3.0, 0.5]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["=id", *names])
        for row, (age, other) in enumerate(numbers):
            ward = (f"=A {MARKUP}", "[bold]B", "@C")[kind[row]]
            name = f"{FORMULAS[row % 4]} {row} {STEERING} {MARKUP}"
            writer.writerow([name, "" if row == 7 else 999.0 if row == 9 else age, other, ward])


def run(*words: str) -> str:
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert not {"\x1b", "\u202e", "\x07"} & set(result.output)
    return " ".join(result.output.split())


def test_they_do_no_harm_in_terminal_tables_and_pages(here: Path) -> None:
    for site in SITES:
        assert MARKUP in run("summarize", f"{site}.csv", "-o", f"{site}.summary", "--accept-risk")
    summaries = [f"{site}.summary" for site in SITES]
    assert "0 is '=0<b>[red]'" in run("fuse", *summaries, "-k", "3", "-o", "global.model")
    assert "[/red]" in run("inspect", "global.model")
    run("report", "global.model", *summaries, "-o", "report.html")
    said = run(
        "label", "north.csv", "--model", "global.model", "-o", "labels.csv", "--report", "page.html", "--unsigned"
    )
    assert f"1: no value in {f'age {MARKUP}'!r}." in said
    with (here / "labels.csv").open(encoding="utf-8", newline="") as file:
        cells = [cell for line in csv.reader(file) for cell in line]
    assert not [cell for cell in cells if FORMULA.match(cell) and not SIGNED_NUMBER.fullmatch(cell)]
    for name in ("report.html", "page.html"):
        page = (here / name).read_text(encoding="utf-8")
        assert "img" not in tags_of(page)
        assert not {"\x1b", "\u202e", "\x07"} & set(page)
        assert f"age {MARKUP}" in text_of(page)
    assert "999" in text_of(page)
