"""Labels as a file: one line for every row, for the owner of the table alone."""

import csv
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.files import write_pieces_durably
from goldfc.message.model import Model
from goldfc.site.label import is_far, label
from goldfc.site.table.table import Table

# What spreadsheets take for the beginning of a formula, also after blanks, and in its wide form.
FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
SIGNED_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?")
LABEL_COLUMNS = ("cluster", "certainty", "far")


@dataclass(frozen=True)
class Labels:
    """For every row of the file: its cluster (-1: it has missing values), how sure that is, and whether it is far."""

    ids: tuple[str, ...]
    cluster: IntArray
    certainty: FloatArray  # not a number where there is no cluster
    far: NDArray[np.bool_]


def labels_of(table: Table, model: Model) -> Iterator[Labels]:
    """The labels of all rows of a file, in their order, some at a time."""
    first = start = 0
    for ids in table.ids():
        kept = np.flatnonzero(table.missing[first : first + len(ids)] == 0)
        rows = table.rows.read(start, start + len(kept))
        yield spread_out(label_rows(rows, model), ids, kept)
        first, start = first + len(ids), start + len(kept)


def label_rows(rows: FloatArray, model: Model) -> Labels:
    """Labels of rows without missing values; the same for every row, whether it was summarised or not."""
    cluster, certainty = label(rows, model)
    return Labels((), cluster, certainty, is_far(model, rows))


@dataclass
class LabelCounts:
    """What there is to say of all labels."""

    rows: int = 0
    far: int = 0
    without: int = 0
    clusters: set[int] = field(default_factory=set)

    def add(self, labels: Labels) -> None:
        """Some more."""
        there = labels.cluster >= 0
        self.rows += len(labels.ids)
        self.far += int(labels.far.sum())
        self.without += int((~there).sum())
        self.clusters |= set(labels.cluster[there].tolist())


def write_labels(parts: Iterable[Labels], out: Path, id_name: str) -> LabelCounts:
    """As CSV: all or nothing, and for its owner alone."""
    tally = LabelCounts()

    def pieces() -> Iterator[bytes]:
        yield header_text(id_name).encode()
        for labels in parts:
            tally.add(labels)
            yield lines_text(labels).encode()

    write_pieces_durably(out, pieces(), private=True)
    return tally


def header_text(id_name: str) -> str:
    """The first line."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerow([as_text(id_name), *LABEL_COLUMNS])
    return text.getvalue()


def as_text(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: what could begin one gets a ' in front, as OWASP advises.

    Numbers with a sign are left as they are.
    """
    return f"'{cell}" if FORMULA.match(cell) and not SIGNED_NUMBER.fullmatch(cell) else cell


def lines_text(labels: Labels) -> str:
    """A line for every row."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row, cluster, certainty, far in zip(labels.ids, labels.cluster, labels.certainty, labels.far, strict=True):
        sure = "" if math.isnan(certainty) else f"{certainty:.3f}"
        is_far = "" if cluster < 0 else "yes" if far else "no"
        writer.writerow([as_text(row), "" if cluster < 0 else cluster, sure, is_far])
    return text.getvalue()


def spread_out(labels: Labels, ids: tuple[str, ...], kept: IntArray) -> Labels:
    """Labels of the rows without missing values, at their places among all rows."""
    cluster, certainty = np.full(len(ids), -1, dtype=np.int64), np.full(len(ids), np.nan)
    far = np.zeros(len(ids), dtype=bool)
    cluster[kept], certainty[kept], far[kept] = labels.cluster, labels.certainty, labels.far
    return Labels(ids, cluster, certainty, far)
