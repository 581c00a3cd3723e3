"""Run a notebook without Jupyter, and tell it with all that came out as Markdown, for the documentation."""

import ast
import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import BytesIO, StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import matplotlib
import matplotlib.pyplot as plt

NOTEBOOKS = Path(__file__).parent.parent / "examples" / "notebooks"
DOTS_PER_INCH = 110


class Cell(NamedTuple):
    """Of a notebook: words, or lines of Python."""

    is_code: bool
    source: str


class Ran(NamedTuple):
    """A cell, and what Jupyter would show below it."""

    cell: Cell
    printed: str
    shown: str  # HTML


def cells_of(text: str) -> list[Cell]:
    """All cells, in order."""
    return [Cell(cell["cell_type"] == "code", "".join(cell["source"])) for cell in json.loads(text)["cells"]]


def run(text: str) -> Iterator[Ran]:
    """Each cell with what came of it, in a folder that is removed afterwards."""
    matplotlib.use("agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    with TemporaryDirectory() as folder, chdir(folder), plt.rc_context():
        for cell in cells_of(text):
            yield run_cell(cell, names) if cell.is_code else Ran(cell, "", "")


def run_cell(cell: Cell, names: dict[str, Any]) -> Ran:
    """What is printed, the value of the last line unless that ends with a semicolon, and what was drawn."""
    statements, printed, value = ast.parse(cell.source).body, StringIO(), None
    with redirect_stdout(printed):
        last = statements.pop() if isinstance(statements[-1], ast.Expr) else None
        exec(compile(ast.Module(statements, []), "cell", "exec"), names)  # noqa: S102 (our own notebooks)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
    hidden = value is None or cell.source.rstrip().endswith(";")
    told, shown = ("", "") if hidden else shown_as(value)
    return Ran(cell, printed.getvalue() + told, shown + "".join(drawn()))


def shown_as(value: Any) -> tuple[str, str]:
    """A value as text or as HTML, whichever Jupyter prefers."""
    html = value._repr_html_() if hasattr(value, "_repr_html_") else ""
    return ("", html) if html else (f"{value!r}\n", "")


def drawn() -> Iterator[str]:
    """All figures, which are closed."""
    for number in plt.get_fignums():
        picture = BytesIO()
        plt.figure(number).savefig(picture, format="png", dpi=DOTS_PER_INCH)
        plt.close(number)
        yield f'<img alt="" src="data:image/png;base64,{b64encode(picture.getvalue()).decode()}">'


def markdown_of(text: str) -> str:
    """A notebook that has just been run, as MyST has it."""
    return "\n\n".join(part for ran in run(text) for part in parts_of(ran))


def parts_of(ran: Ran) -> Iterator[str]:
    """One cell, and what came of it."""
    if not ran.cell.is_code:
        yield ran.cell.source
        return
    yield f"```python\n{ran.cell.source}\n```"
    if ran.printed:
        yield f"```text\n{ran.printed}```"
    if ran.shown:
        yield f"```{{raw}} html\n{ran.shown}\n```"
