"""What the level costs: the ARI of the same federations without it, and with it."""

import json
import math
from dataclasses import asdict, dataclass, replace
from functools import partial
from warnings import catch_warnings, simplefilter

import numpy as np

from goldfc._encoding import encoding_of
from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadRows
from goldfc.message.columns import UNNAMED, Terms
from goldfc.message.levels import with_fewest
from goldfc.message.task import Task, rows_each
from goldfc.randomness import generator
from goldfc.server.fusions import fuse
from goldfc.server.one_shot import OneShot
from goldfc.site.label import predict
from goldfc.site.summarize import summarize
from goldfc_bench.cases import split_of
from goldfc_bench.digest import digest_of
from goldfc_bench.families import FAMILIES, Family
from goldfc_bench.score import ari
from goldfc_bench.shapes.ours import as_numbers
from goldfc_bench.shapes.sites import N_SITES, draw_sites

ROWS_OF_A_SITE = 500
# Of a split, and of a family, whose draws differ.
SEEDS, DRAWS = 3, 6
WITHOUT, WITH = OneShot(mass_cap=1.0), OneShot(Task(level=with_fewest(5), rows_each=rows_each(5)), mass_cap=1.0)


@dataclass(frozen=True)
class Price:
    """The ARI of all rows, without and with the level (nan: it refuses all sites).

    Sites that it refuses are labelled, but do not take part.
    """

    name: str
    without: float
    with_level: float
    refused: int
    code: str = ""  # the digest of the code it was made with

    @property
    def work(self) -> str:
        """What it is of."""
        return self.name

    @property
    def cost(self) -> float:
        """What is lost."""
        return self.without - self.with_level

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> "Price":
        """Read it back."""
        return cls(**json.loads(line))


@dataclass(frozen=True)
class Federation:
    """Rows, who holds them, and the truth."""

    rows: FloatArray
    site: IntArray
    truth: IntArray
    terms: Terms = UNNAMED


def price_of(name: str, seeds: int | None = None) -> Price:
    """Of one of the paper's splits, or of a family with larger sites."""
    family = next((family for family in FAMILIES if family.name == name), None)
    seeds = seeds or (SEEDS if family is None else DRAWS)
    found = [
        (score(federation, WITHOUT, seed), score(federation, WITH, seed))
        for seed in range(seeds)
        for federation in [split(name) if family is None else drawn(family, seed)]
    ]
    without, with_level = (float(np.mean([pair[which][0] for pair in found])) for which in (0, 1))
    return Price(name, without, with_level, found[0][1][1], code_of_prices())


def code_of_prices() -> str:
    """The digest of what makes them."""
    return digest_of("goldfc_bench.attacks.price")


def split(name: str) -> Federation:
    """The paper's sites."""
    case = split_of(name, "paper")
    return Federation(case.X, case.site, case.y)


def drawn(family: Family, draw: int) -> Federation:
    """A family with so many rows a site."""
    make = partial(family.draw, n_rows=N_SITES * ROWS_OF_A_SITE)  # type: ignore[call-arg]
    sites, truth = draw_sites(replace(family, draw=make), draw)
    encoding = encoding_of(sites.X, sites.categorical)
    return Federation(encoding.encode(sites.X, as_numbers), sites.site, truth, encoding.terms)


def score(federation: Federation, way: OneShot, seed: int) -> tuple[float, int]:
    """The ARI of all rows, and how many sites were refused."""
    sent, refused = [], 0
    for site in np.unique(federation.site):
        rows = np.ascontiguousarray(federation.rows[federation.site == site])
        try:
            sent.append(summarize(rows, str(site), way.task, terms=federation.terms)[0])
        except BadRows:
            refused += 1
    if not sent:
        return math.nan, refused
    with catch_warnings():
        simplefilter("ignore")  # fewer clusters than asked for are part of the price
        there = federation.truth >= 0
        model = fuse(sent, len(np.unique(federation.truth[there])), way, generator(seed, "server"))
    return ari(federation.truth[there], predict(model, federation.rows[there])), refused
