"""A first `federation.toml`, to be read, mended and agreed on by people."""

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from goldfc.message.columns import Column
from goldfc.site.table.cells import NO, YES, distinct, fault_of, is_missing, shown_value, to_number, to_numbers
from goldfc.site.table.notes import Numbering

# Text with more different values than this is no category, but names or remarks.
MOST_GUESSED_CATEGORIES = 20


def looks_like_an_id(name: str, values: pa.Array) -> bool:
    """Whether it numbers the rows."""
    numbering = Numbering(name)
    numbering.add(to_numbers(values))
    return numbering.looks_like_an_id


def guess_columns(rows: pa.RecordBatch, left_out: Sequence[str] = ()) -> tuple[list[Column], dict[str, str]]:
    """The columns of a table by the look of them; and those that cannot be learned from, with the reason."""
    columns, odd = list[Column](), dict[str, str]()
    for name, values in zip(rows.schema.names, rows.columns, strict=True):
        texts = [str(value).strip() for value in distinct(values) if not is_missing(value)]
        if name in left_out:
            continue
        if not texts:
            odd[name] = "it has no values"
        elif {text.lower() for text in texts} <= (YES | NO) - {"1", "0"}:
            columns.append(Column(name=name, kind="boolean"))
        elif not any(np.isnan(to_number(text)) for text in texts):
            columns.append(Column(name=name))
        elif 2 <= len(set(texts)) <= MOST_GUESSED_CATEGORIES and not any(text[0].isdigit() for text in texts):
            columns.append(Column(name=name, kind="category", categories=tuple(sorted(set(texts)))))
        else:
            bad = next(text for text in texts if np.isnan(to_number(text)))
            odd[name] = f"it holds {shown_value(bad)}, {fault_of(bad)}"
    return columns, odd


# With more columns than this, lines that say what is the default are left out: the file has a largest size.
MANY_COLUMNS = 500
HEAD = """\
# What all sites agree on before anybody sends anything. Everybody uses the same file.
federation = {name}
round = 1                  # count up for every new round: messages of one cannot be used in another
privacy = "suppressed"     # or "plain", for research only: micro-clusters may then be single rows
smallest = 5               # no micro-cluster of fewer rows leaves a site
scaling = "pooled"         # from the moments that every site tells; or "ranges", if all columns have one
missing = "refuse"         # or "drop": rows with missing values are left out
{id_column}
# person_column = "..."    # says whose a row is, where people have several; it is never in a message
# deadline = 2027-01-31T18:00:00Z

[limits]
least_sites = 3          # with fewer nothing is fused: of two, each could subtract its own part
most_micro_clusters = 100  # of one site
mass_cap = 1.0             # a site counts at most so many times the rows of the median site

# To have messages signed and sealed, make keys with `goldfc keygen`, and list them:
# [server]
# key = "goldfc-public-1:..."
# [[sites]]
# name = "north"
# key = "goldfc-public-1:..."

# The columns; sites may have them in any order. Numbers may have a unit, a range = [low, high] that all values must
# lie in, and a step that centroids are rounded to; any column may have a fill that stands for missing values.
"""


def agreement_text(name: str, columns: Sequence[Column], id_column: str | None) -> str:
    """The file as text."""
    stays = f"id_column = {quoted(id_column)}  # of the sites' tables; it is never in a message" if id_column else ""
    head = HEAD.format(name=quoted(name), id_column=stays or '# id_column = "..."')
    brief = len(columns) > MANY_COLUMNS
    return "\n".join([head, *(column_text(column, brief=brief) for column in columns)])


def column_text(column: Column, *, brief: bool = False) -> str:
    """One column."""
    if brief and column.kind == "number":
        return f"[[columns]]\nname = {quoted(column.name)}\n"
    lines = ["[[columns]]", f"name = {quoted(column.name)}", f"kind = {quoted(column.kind)}"]
    if column.kind == "category":
        lines.append(f"categories = [{', '.join(map(quoted, column.categories))}]  # all that any site may have")
    if column.kind == "number":
        lines.append('unit = ""')
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """A text as TOML has it; printable ones are written as in JSON."""
    return json.dumps(text, ensure_ascii=False)
