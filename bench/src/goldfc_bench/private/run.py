"""A row for every federation, seed, method and eps."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from goldfc._parallel import side_by_side
from goldfc.learning.rows import InMemory
from goldfc.message.levels import Private
from goldfc.message.summary import Summary
from goldfc.message.task import Task
from goldfc.randomness import generator, site_generator
from goldfc.server.fusions import fuse
from goldfc.server.one_shot import OneShot
from goldfc.site.label import label
from goldfc.site.private.curator import Curator
from goldfc.site.private.plan import Plan
from goldfc.site.summarize import summarize
from goldfc_bench.digest import digest_of
from goldfc_bench.private.federations import Drawn, Federation, drawn
from goldfc_bench.private.rivals import RIVALS, RIVALS_AT
from goldfc_bench.rows import RowFile
from goldfc_bench.score import ari

EPS = (0.5, 1.0, 2.0, 4.0, 8.0)
NONE, PRIVATE = "no protection", "private"


@dataclass(frozen=True)
class Row:
    """One run."""

    federation: str
    seed: int
    method: str
    eps: float  # 0: none
    ari: float
    cells: float  # micro-clusters of a site, in the mean
    seconds: float  # of all sites
    hoped: float  # micro-clusters for each cluster, by the plan
    code: str = ""

    @property
    def work(self) -> "Work":
        """What it is of."""
        return self.federation, self.seed, self.method, self.eps

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> "Row":
        """Read it back."""
        return cls(**json.loads(line))


Work = tuple[str, int, str, float]


def all_work(federations: Sequence[Federation], seeds: int) -> list[Work]:
    """Every federation and seed: no protection, every eps, and the rivals."""
    ways = [(NONE, 0.0), *((PRIVATE, eps) for eps in EPS), *((name, float(RIVALS_AT)) for name in RIVALS)]
    return [(one.name, seed, *way) for one in federations for seed in range(seeds) for way in ways]


def row_of(work: Work, federations: Sequence[Federation]) -> Row:
    """One run, on one thread."""
    name, seed, method, eps = work
    federation = next(one for one in federations if one.name == name)
    with threadpool_limits(limits=1):
        given = drawn(federation, seed)
        begin = time.perf_counter()
        messages = list(sent(given, seed, method, eps))
        seconds = time.perf_counter() - begin
        model = fuse(messages, given.n_clusters, OneShot(), generator(seed, "server"))
        found = np.concatenate([label(rows, model)[0] for rows in given.sites])
    return Row(
        federation=name,
        seed=seed,
        method=method,
        eps=eps,
        ari=round(ari(np.concatenate(given.truth), found), 5),
        cells=float(np.mean([len(message.centroids) for message in messages])),
        seconds=round(seconds, 3),
        hoped=round(hoped(given, eps), 3) if eps else 0.0,
    )


def sent(given: Drawn, seed: int, method: str, eps: float) -> Iterator[Summary]:
    """What every site sends; noise is seeded, so that the figures can be made again."""
    for number, rows in enumerate(given.sites):
        name, level = f"s{number}", Private(eps=eps) if eps else None
        lot = site_generator(seed, f"{name} {method} {eps}")
        if level is None:
            yield summarize(rows, name, Task(), terms=given.terms)[0]
        elif method == PRIVATE:
            yield summarize(rows, name, Task(level=level), terms=given.terms, randomness=lot.bytes)[0]
        else:
            yield RIVALS[method](Curator(InMemory(rows), randomness=lot.bytes), name, given.terms, level, lot)


def hoped(given: Drawn, eps: float) -> float:
    """How many micro-clusters for each cluster the plan hopes for, of sites of the mean size."""
    rows = int(np.mean([len(own) for own in given.sites]))
    plan = Plan(len(given.terms.features), rows, len(given.sites), given.n_clusters, Private(eps=eps))
    return plan.for_each_cluster


def make_rows(
    work: Sequence[Work], federations: Sequence[Federation], jobs: int, file: RowFile[Row], on_row: Callable[[], None]
) -> list[Row]:
    """Make the rows that are not yet in the file, or whose code has changed, and give all, in the order of the work."""
    code = digest_of("goldfc_bench.private.run")
    made = {row.work: row for row in file.read() if row.code == code}
    file.rewrite(made.values())
    missing = [one for one in work if one not in made]
    for row in side_by_side(partial(row_of, federations=federations), missing, jobs, prefer="processes"):
        made[row.work] = replace(row, code=code)
        file.append(made[row.work])
        on_row()
    return [made[one] for one in work]
