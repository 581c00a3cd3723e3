"""Which function claims which equation of the paper; writes docs/equations.md, or checks it with --check.

A docstring claims equations by opening with `Eq. (9).`, `Eqs. (9), (12).` or `Eqs. (16)-(19).`
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.derived import ROOT, keep

PAGE = ROOT / "docs" / "equations.md"
LAST_EQUATION = 29
CLAIM = re.compile(r"Eqs?\. ((?:\(\d+\)(?:, |-)?)+)\. *(.*)")
TITLES = {
    range(1, 5): "How Non-ICD the sites are",
    range(5, 8): "The problem",
    range(8, 16): "Competition (site and server)",
    range(16, 22): "Feature importance (site and server)",
    range(22, 23): "Competition, normalised",
    range(23, 30): "Fusion of the levels (server)",
}


class Claim(NamedTuple):
    """One function and one equation that it claims."""

    equation: int
    function: str
    path: str
    sentence: str


def claims() -> list[Claim]:
    """All claims in the package, by equation."""
    return sorted(claim for path in sorted((ROOT / "src").rglob("*.py")) for claim in claims_in(path))


def claims_in(path: Path) -> Iterator[Claim]:
    """The claims of the functions of one module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            first_line = (ast.get_docstring(node) or "").split("\n", maxsplit=1)[0]
            if match := CLAIM.match(first_line):
                for equation in numbers(match[1]):
                    yield Claim(equation, node.name, path.relative_to(ROOT).as_posix(), match[2])


def numbers(text: str) -> Iterator[int]:
    """(9), (12) gives 9, 12; (16)-(19) gives 16 to 19."""
    for part in text.split(", "):
        ends = [int(number) for number in re.findall(r"\d+", part)]
        yield from range(ends[0], ends[-1] + 1)


def page() -> str:
    """The page, as it should be."""
    lines = [
        "# Where each equation of the paper lives",
        "",
        "Made from the docstrings by `make format`; `make check` fails when it is out of date, and a test fails when "
        "an equation is claimed by no function or by two. Where a function departs from the printed equation, its "
        "docstring has a `Note:` that says how and why.",
    ]
    by_equation = {claim.equation: claim for claim in claims()}
    for group, title in TITLES.items():
        lines += ["", f"## {title}", "", "| equation | function | what it does |", "|---|---|---|"]
        for equation in group:
            claim = by_equation[equation]
            lines.append(f"| ({equation}) | [`{claim.function}`](../{claim.path}) | {claim.sentence} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(keep(PAGE, page()))
