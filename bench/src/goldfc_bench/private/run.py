"""A row for every federation, seed, method and eps."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from goldfc.learning.rows import InMemory
from goldfc.message.levels import Private
from goldfc.message.summary import Summary
from goldfc.message.task import Task
from goldfc.randomness import generator, site_generator
from goldfc.server.fusions import fuse
from goldfc.server.one_shot import OneShot
from goldfc.site.label import label
from goldfc.site.private.curator import Curator
from goldfc.site.summarize import summarize
from goldfc_bench.digest import digest_of
from goldfc_bench.private.federations import Drawn, Federation, drawn
from goldfc_bench.private.rivals import RIVALS, RIVALS_AT
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
    seconds: float  # of a processor, for all sites
    rows: int  # of a site, in the mean
    features: int
    clusters: int
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
    """Every federation and draw: no protection, every eps, and the rivals."""
    ways = [(NONE, 0.0), *((PRIVATE, eps) for eps in EPS), *((name, float(RIVALS_AT)) for name in RIVALS)]
    draws = [(one.name, seed) for seed in range(seeds) for one in federations if seed < one.draws]
    return [(*draw, *way) for draw in draws for way in ways]


def row_of(work: Work, federations: Sequence[Federation]) -> Row:
    """One run, on one thread."""
    name, seed, method, eps = work
    federation = next(one for one in federations if one.name == name)
    with threadpool_limits(limits=1):
        given = drawn(federation, seed)
        begin = time.process_time()
        messages = list(sent(given, seed, method, eps))
        seconds = time.process_time() - begin
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
        rows=int(np.mean([len(own) for own in given.sites])),
        features=len(given.terms.features),
        clusters=given.n_clusters,
        code=code_of_rows(),
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


def code_of_rows() -> str:
    """The digest of what makes them."""
    return digest_of("goldfc_bench.private.run")
