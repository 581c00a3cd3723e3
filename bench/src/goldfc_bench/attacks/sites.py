"""Real tables, and a site cut out of one: its rows, rows like them that are not in it, and an attacker's own."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine

from goldfc._types import FloatArray, IntArray
from goldfc.message.columns import UNNAMED, Column, Terms
from goldfc.message.summary import Summary
from goldfc.randomness import generator
from goldfc_bench.cases import dataset_of
from goldfc_bench.datasets import DATASETS
from goldfc_bench.errors import DataNotFound

# Nobody is attacked with more rows of the attacker's own than this.
MOST_OTHERS = 3_000
LEVELS = ("none", "some", "much")


@dataclass(frozen=True)
class Table:
    """Rows as they were measured; the last column of `sensitive` tables is yes or no."""

    name: str
    rows: FloatArray
    terms: Terms = UNNAMED


@dataclass(frozen=True)
class Target:
    """A site, and who attacks it."""

    table: Table
    inside: FloatArray
    outside: FloatArray
    others: FloatArray


Told = Callable[[FloatArray], Summary]  # a site's message


def target_of(table: Table, n_rows: int, seed: int) -> Target | None:
    """A site with so many rows of a table; None if too few would be left for others."""
    order = generator(seed, "target", table.name, str(n_rows)).permutation(len(table.rows))
    rest = order[n_rows:]
    n_outside = min(n_rows, len(rest) // 3)
    if n_outside < 10:
        return None
    parts: list[IntArray] = [order[:n_rows], rest[:n_outside], rest[n_outside:][:MOST_OTHERS]]
    return Target(table, *(np.ascontiguousarray(table.rows[part]) for part in parts))


@cache
def tables() -> tuple[Table, ...]:
    """Those that come with scikit-learn, and the paper's sets in their own units, as far as they are here."""
    digits = load_digits().data
    varied = digits[:, digits.std(axis=0) > 0.0]
    found = [
        Table("breast cancer", load_breast_cancer().data),
        Table("digits", varied),
        Table("digits, 20 categories", *in_levels(varied)),
        Table("wine", load_wine().data),
        Table("diabetes", load_diabetes().data),
    ]
    for name in DATASETS:
        try:
            found.append(Table(name, dataset_of(f"{name}-raw").X))
        except DataNotFound:
            continue
    return tuple(found)


def in_levels(digits: FloatArray) -> tuple[FloatArray, Terms]:
    """The twenty pixels that vary most, each as one of three categories."""
    chosen = np.argsort(-digits.std(axis=0), kind="stable")[:20]
    level = (digits[:, chosen] > 2).astype(np.int64) + (digits[:, chosen] > 10)
    columns = tuple(Column(name=f"pixel {number}", kind="category", categories=LEVELS) for number in chosen)
    return np.eye(3)[level].reshape(len(level), -1), Terms(columns=columns)


def with_sensitive() -> Table:
    """Breast cancer, with whether it is malignant as a column that nobody should learn of anybody."""
    data = load_breast_cancer()
    columns = (*(Column(name=name) for name in data.feature_names[:10]), SENSITIVE)
    rows = np.column_stack([data.data[:, :10], data.target == 0]).astype(np.float64)
    return Table("breast cancer", rows, Terms(columns=columns))


SENSITIVE = Column(name="malignant", kind="boolean", sensitive=True)
