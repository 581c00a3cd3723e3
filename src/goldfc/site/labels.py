"""Labels as a file: one line for every row, for the owner of the table alone."""

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.files import write_pieces_durably
from goldfc.message.density import is_far
from goldfc.message.model import Model
from goldfc.names import NAMELESS, Names
from goldfc.site.label import label
from goldfc.site.table.table import Table

# What spreadsheets take for the beginning of a formula, also after blanks, and in its wide form.
FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
SIGNED_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?")
LABEL_COLUMNS = ("cluster", "certainty", "far", "reason", "model")
# One more, where people have given clusters names.
NAME_COLUMN = "name"


@dataclass(frozen=True)
class Labels:
    """For every row of the file: its cluster (-1: none), how sure that is, whether it is far, and why it has none."""

    ids: tuple[str, ...]
    cluster: IntArray
    certainty: FloatArray  # not a number where there is no cluster
    far: NDArray[np.bool_]
    reason: tuple[str, ...]  # empty where there is a cluster


# Called with labels, and the rows that have one.
Watcher = Callable[[Labels, FloatArray], None]


def labels_of(table: Table, model: Model, watch: Watcher = lambda _labels, _rows: None) -> Iterator[Labels]:
    """The labels of all rows of a file, in their order, some at a time; somebody may `watch`."""
    first = start = 0
    for ids in table.ids():
        why = np.asarray(table.left_out[first : first + len(ids)]).reshape(-1)
        kept = np.flatnonzero(why == 0)
        rows, reasons = table.rows.read(start, start + len(kept)), ("", *table.reasons)
        cluster, certainty, far = label_rows(rows, model)
        labels = Labels(
            ids,
            spread_out(cluster, kept, len(ids), -1),
            spread_out(certainty, kept, len(ids), math.nan),
            spread_out(far, kept, len(ids), False),
            tuple(reasons[number] for number in why.tolist()),
        )
        watch(labels, rows)
        yield labels
        first, start = first + len(ids), start + len(kept)


def label_rows(rows: FloatArray, model: Model) -> tuple[IntArray, FloatArray, NDArray[np.bool_]]:
    """Labels of rows that can be read; the same for every row, whether it was summarised or not."""
    return *label(rows, model), is_far(model, rows)


def spread_out(found: NDArray[Any], kept: IntArray, count: int, otherwise: float) -> NDArray[Any]:
    """What was found for the rows that are kept, at their places among all."""
    everywhere = np.full(count, otherwise, dtype=found.dtype)
    everywhere[kept] = found
    return everywhere


@dataclass
class LabelCounts:
    """What there is to say of all labels."""

    rows: int = 0
    far: int = 0
    without: Counter[str] = field(default_factory=Counter)  # rows that have no cluster, by the reason
    clusters: set[int] = field(default_factory=set)

    def add(self, labels: Labels) -> None:
        """Some more."""
        there = labels.cluster >= 0
        self.rows += len(labels.ids)
        self.far += int(labels.far.sum())
        self.without += Counter(filter(None, labels.reason))
        self.clusters |= set(labels.cluster[there].tolist())


def write_labels(parts: Iterable[Labels], out: Path, id_name: str, model: str, names: Names = NAMELESS) -> LabelCounts:
    """As CSV: all or nothing, and for its owner alone; every line says by which model, by its fingerprint."""
    tally, called = LabelCounts(), {one.id: one.name for one in names.clusters if one.name}

    def pieces() -> Iterator[bytes]:
        yield header_text(id_name, named=bool(called)).encode()
        for labels in parts:
            tally.add(labels)
            yield lines_text(labels, model, called).encode()

    write_pieces_durably(out, pieces(), private=True)
    return tally


def header_text(id_name: str, *, named: bool = False) -> str:
    """The first line."""
    text, more = StringIO(), (NAME_COLUMN,) if named else ()
    csv.writer(text, lineterminator="\n").writerow([as_text(id_name), *LABEL_COLUMNS, *more])
    return text.getvalue()


def holds_labels(head: bytes) -> bool:
    """Whether a file that begins so has labels in it."""
    header = ",".join(("", *LABEL_COLUMNS)).encode()
    return any(header + more in head for more in (b"\n", f",{NAME_COLUMN}\n".encode()))


def as_text(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: what could begin one gets a ' in front, as OWASP advises.

    Numbers with a sign are left as they are.
    """
    return f"'{cell}" if FORMULA.match(cell) and not SIGNED_NUMBER.fullmatch(cell) else cell


def lines_text(labels: Labels, model: str, called: Mapping[int, str] = {}) -> str:
    """A line for every row; where clusters are called something, that is its last cell."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = (labels.ids, labels.cluster, labels.certainty, labels.far, labels.reason)
    for row, cluster, certainty, far, reason in zip(*columns, strict=True):
        sure = "" if math.isnan(certainty) else f"{certainty:.3f}"
        is_far = "" if cluster < 0 else "yes" if far else "no"
        name = [as_text(called.get(int(cluster), ""))] if called else []
        writer.writerow([as_text(row), "" if cluster < 0 else cluster, sure, is_far, as_text(reason), model, *name])
    return text.getvalue()
