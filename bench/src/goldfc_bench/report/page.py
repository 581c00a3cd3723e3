"""The same parts as one page that loads nothing from anywhere, and as Markdown, CSV and SVG for a repository."""

import base64
import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader
from markupsafe import Markup, escape

import goldfc
from goldfc_bench.report.parts import (
    Drawing,
    Entry,
    Heading,
    Lines,
    Panels,
    Part,
    Section,
    Table,
    Text,
    drawings_of,
    tables_of,
)

TITLE = "Federated clustering, compared"
LEAD = (
    "The experiments of the GOLD paper, made again: the paper's methods, two rivals that it leaves out, and OneShot, "
    "on the same data, under the same rules. OneShot is the default of this package: every site sends up to 100 "
    "micro-clusters with their masses and one shape, and the server tries three kinds of clusters and believes the "
    "one that these speak for. A run that fails is a row with its reason, and counts; the truth is known to the judge "
    "alone."
)


# --- HTML ---


def write_html(sections: Sequence[Section], path: Path) -> None:
    """One file."""
    environment = Environment(
        loader=PackageLoader("goldfc_bench"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"prose": prose, "address": svg_address, "without_repeats": without_repeats}
    html = environment.get_template("report.html").render(
        title=TITLE, lead=LEAD, sections=sections, version=goldfc.__version__
    )
    path.write_text(html, encoding="utf-8")


def prose(text: str) -> Markup:
    """`code` and **bold**."""
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", html))  # noqa: S704 (escaped above)


def svg_address(svg: str) -> str:
    """A drawing as an address that holds the drawing itself."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def without_repeats(rows: Sequence[Sequence[Entry]]) -> Iterator[Sequence[Entry]]:
    """Rows that say what they are about only once as long as it stays the same."""
    last = ""
    for row in rows:
        yield [Entry(""), *row[1:]] if row[0].text == last else row
        last = row[0].text


# --- Markdown ---


def write_markdown(sections: Sequence[Section], path: Path) -> None:
    """The same for a repository, with figures beside it."""
    path.write_text("\n".join(_markdown(sections)) + "\n", encoding="utf-8")


def _markdown(sections: Sequence[Section]) -> Iterator[str]:
    yield f"# {TITLE}\n\n{LEAD}\n"
    yield f"Made by `goldfc-bench report`, goldfc {goldfc.__version__}. As one page: [report.html](report.html).\n"
    for section in sections:
        yield f"- [{section.title}](#{_github_anchor(section.title)})"
    for section in sections:
        yield f"\n## {section.title}\n"
        for part in section.parts:
            yield "\n".join(_part(part)) + "\n"


def _github_anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _part(part: Part) -> Iterator[str]:
    match part:
        case Text(text):
            yield text
        case Heading(text, _, level):
            yield f"{'#' * level} {text}"
        case Lines(title, lines):
            yield f"<details><summary>{title}</summary>\n"
            yield from (f"- {line}" for line in lines)
            yield "\n</details>"
        case Panels(drawings, wide):
            yield from (_image(drawing, "100%" if wide else "420") for drawing in drawings)
        case Table():
            yield from _table(part)


def _image(drawing: Drawing, width: str) -> str:
    return f'<img src="figures/{drawing.name}.svg" alt="{escape(drawing.shows)}" width="{width}">'


def _table(table: Table) -> Iterator[str]:
    yield f"<details><summary>{table.title}</summary>\n" if table.folded else f"**{table.title}**\n"
    yield "| " + " | ".join(table.columns) + " |"
    yield "|---" + "|--:" * (len(table.columns) - 1) + "|"
    for row in (*without_repeats(table.rows), *table.foot):
        yield "| " + " | ".join(map(_entry, row)) + " |"
    if table.folded:
        yield "\n</details>"


def _entry(entry: Entry) -> str:
    signs = {"best": "**{}**", "differs": "**{}**", "second": "<u>{}</u>"}
    text = signs.get(entry.mark, "{}").format(_safe(entry.text))
    return f"{text}<br>{entry.below}" if entry.below else text


def _safe(text: str) -> str:
    """Text that ends no cell and opens no tag."""
    return text.replace("|", "\\|").replace("<", "&lt;")


# --- files ---


def write_tables(sections: Sequence[Section], folder: Path) -> None:
    """One CSV file per table."""
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables_of(sections):
        with (folder / f"{table.name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(table.columns)
            writer.writerows([f"{entry.text} {entry.below}".strip() for entry in row] for row in table.rows)
            writer.writerows([entry.text for entry in row] for row in table.foot)


def write_figures(sections: Sequence[Section], folder: Path) -> None:
    """One SVG file per drawing."""
    folder.mkdir(parents=True, exist_ok=True)
    for drawing in drawings_of(sections):
        (folder / f"{drawing.name}.svg").write_text(drawing.svg, encoding="utf-8")
