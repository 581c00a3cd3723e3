"""All attacks of the attack bench on private messages."""

from dataclasses import replace
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from goldfc._types import FloatArray
from goldfc.message.columns import Column, Terms
from goldfc.message.levels import Private
from goldfc.message.summary import Summary
from goldfc.message.task import Task
from goldfc.randomness import generator
from goldfc.site.membership import Guess
from goldfc.site.summarize import summarize
from goldfc_bench.attacks.run import Row, Sent, Work, attacked, blank_row, put_together
from goldfc_bench.attacks.sites import Table, tables, target_of
from goldfc_bench.digest import digest_of

SIZES, TARGETS, EPS = (300, 1_000), 1, 1.0
# The audit has no say at this level.
CHANCE = Guess(0.5, 0.01)


def all_work(names: tuple[str, ...] = (), sizes: tuple[int, ...] = SIZES) -> list[Work]:
    """Every table at every number of rows."""
    return [(table.name, size, "private") for table in tables() if not names or table.name in names for size in sizes]


def code_of_rows() -> str:
    """The digest of what makes them."""
    return digest_of("goldfc_bench.private.attacks")


def row_of(work: Work) -> Row | None:
    """All attacks on a few targets; None where a table has too few rows."""
    name, size, level = work
    table = with_ranges(next(table for table in tables() if table.name == name))
    with threadpool_limits(limits=1):
        targets = [target for seed in range(TARGETS) if (target := target_of(table, size, seed)) is not None]
        found = [attacked(target, sent(target.inside, table.terms, seed), seed) for seed, target in enumerate(targets)]
    blank = replace(blank_row(table, size, level, len(found), 0), code=code_of_rows())
    return put_together(blank, found) if found else None


def sent(rows: FloatArray, terms: Terms, seed: int) -> Sent:
    """A message, and how other rows would be told: with noise of their own."""
    lot = generator(seed, "private noise")
    again = partial(told, terms=terms, lot=lot)
    return Sent(again(rows), CHANCE, again)


def told(rows: FloatArray, terms: Terms, lot: np.random.Generator) -> Summary:
    """One message."""
    return summarize(rows, "a", Task(level=Private(eps=EPS)), terms=terms, randomness=lot.bytes)[0]


def with_ranges(table: Table) -> Table:
    """With ranges that everybody knows: those of the whole table, of which a site is a part."""
    columns, first = [], 0
    for column in table.terms.columns or [Column(name=f"x{n}") for n in range(table.rows.shape[1])]:
        own = table.rows[:, first]
        ends = (float(own.min()), float(own.max()))
        columns.append(column.model_copy(update={"range": ends}) if column.kind == "number" else column)
        first += column.features
    return replace(table, terms=Terms(federation="attacked", columns=tuple(columns)))
