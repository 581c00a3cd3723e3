"""What the sites of a drawn federation hold, as every method gets it; the truth is not part of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.randomness import generator
from goldfc_bench.families import Family, Table, comparable, sites_of

N_SITES = 8


@dataclass(frozen=True)
class Sites:
    """The rows of all sites, one site after the other; some rows are at several sites, and some at none."""

    X: FloatArray  # as the table has them
    scaled: FloatArray  # numbers of mean zero and variance one over all sites, categories as zeros and ones
    site: IntArray  # who holds it
    row: IntArray  # its number in the table
    categorical: tuple[int, ...]
    n_clusters: int  # how many are there at these sites

    def label_once(self, cluster: Callable[[FloatArray], IntArray], rows: FloatArray | None = None) -> IntArray:
        """The labels of all rows by an algorithm that has them in one place, each once; scaled ones if not given.

        Copies would form clusters of their own wherever neighbours count, which nobody would want on pooled rows.
        """
        _, first, copy = np.unique(self.row, return_index=True, return_inverse=True)
        return cluster((self.scaled if rows is None else rows)[first])[copy]


@dataclass(frozen=True)
class Outcome:
    """The cluster of every row, how certain that is if a method says so, and what else is to be known."""

    labels: IntArray
    certainty: FloatArray | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


Method = Callable[[Sites, int], Outcome]  # with a seed


def draw_sites(family: Family, draw: int) -> tuple[Sites, IntArray]:
    """A federation, and the truth for the scorer; the same for the same draw."""
    table = family.draw(generator(draw, "family", family.name))
    held = sites_of(table, N_SITES, generator(draw, "sites", family.name))
    row = np.concatenate(held)
    there = Table(table.X[row], table.y[row], table.categorical)
    site = np.repeat(np.arange(N_SITES), [len(rows) for rows in held])
    return Sites(there.X, comparable(there), site, row, there.categorical, there.n_clusters), there.y
