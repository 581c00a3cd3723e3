"""The digest of the code that a row was made with: what counts, and what does not."""

import json
from pathlib import Path

import pytest
from tools.stamp import stamp

from goldfc_bench.digest import digest_of, home_of, with_imports
from goldfc_bench.methods import module_of

CODE = '''
"""What it is."""
import numpy as np

def double(x: int) -> int:
    """Twice."""
    return 2 * x  # that is all
'''


def digest_of_text(folder: Path, name: str, text: str) -> str:
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return digest_of(str(path))


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('"""Twice."""', '"""Two times."""', True),
        ("  # that is all", "", True),
        ("2 * x", "(2\n        * x)", True),
        ("2 * x", "x * 2", False),
        ("import numpy as np", "import scipy as np", False),
    ],
)
def test_what_is_computed_counts_and_what_is_said_of_it_does_not(
    tmp_path: Path, old: str, new: str, same: bool
) -> None:
    assert old in CODE
    before, after = digest_of_text(tmp_path, "a", CODE), digest_of_text(tmp_path, "b", CODE.replace(old, new))
    assert (before == after) is same


def test_what_is_imported_counts_as_far_as_it_is_ours_and_used(tmp_path: Path) -> None:
    text = "import numpy\nfrom {} import {}\n\ndef f(x{}):\n    return {}\n"
    path = tmp_path / "own.py"
    path.write_text(text.format("goldfc_bench.methods.steps", "stacked", "", "stacked(x)"), encoding="utf-8")
    assert "goldfc_bench.methods.steps" in with_imports((str(path),))
    assert "numpy" not in with_imports((str(path),))
    annotated = tmp_path / "annotated.py"
    annotated.write_text(text.format("goldfc.server.round", "Port", ": Port", "x"), encoding="utf-8")
    assert with_imports((str(annotated),)) == {str(annotated)}


def test_a_method_needs_its_own_code_and_no_others() -> None:
    coreset, ours = (with_imports((module_of(name),)) for name in ("coreset k-means", "OneShot"))
    assert {"goldfc_bench.methods.protocol", "goldfc.learning.k_means"} <= coreset & ours
    assert "goldfc.learning.judge" in ours - coreset
    assert not [name for name in coreset | ours if "kfed" in name or "paper" in name]


def test_names_of_a_package_are_looked_for_where_they_are_from() -> None:
    assert home_of("goldfc", "Site") == "goldfc.site.participant"
    assert home_of("goldfc", "errors") == "goldfc.errors"
    assert home_of("goldfc.site.label", "nearest") == "goldfc.site.label"


def test_only_rows_that_were_current_are_stamped(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [{"method": "GOLD", "code": code} for code in ("current", "older", "")] + [{"method": "GOLD"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert stamp(path, {"runs": {"GOLD": "current"}}, {"runs": {"GOLD": "new"}}) == 1
    after = [json.loads(line).get("code") for line in path.read_text(encoding="utf-8").splitlines()]
    assert after == ["new", "older", "", None]
