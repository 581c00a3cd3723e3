"""Federations of eight Non-ICD sites: generated ones of any size, and the paper's splits."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.demo.split import simulate
from goldfc.message.columns import Column, Terms
from goldfc.randomness import generator
from goldfc_bench.cases import split_of
from goldfc_bench.datasets import DATASETS

N_SITES = 8
# So many rows are generated for every row of a site: a site holds no row that others in its place would hold twice.
POOL = 3
# Ranges reach so far beyond the rows of all sites, as a share of how far these reach.
MARGIN = 0.1


@dataclass(frozen=True)
class Federation:
    """How a federation is drawn; a split of the paper has no rows to choose."""

    name: str
    rows: int = 0  # of a site, at most
    n_features: int = 10
    n_clusters: int = 10
    apart: float = 1.2  # how far means spread in every feature, in standard deviations of a cluster
    stretched: float = 0.0  # how far columns depend on each other inside clusters
    wide: float = 1.0  # how many times as wide as need be the ranges are
    draws: int = 3  # so many, at most

    @property
    def split(self) -> str | None:
        """The name of the paper's split, if it is one."""
        return self.name if not self.rows else None


@dataclass(frozen=True)
class Drawn:
    """Rows by site, the truth of each, and the ranges that were agreed on."""

    sites: tuple[FloatArray, ...]
    truth: tuple[IntArray, ...]
    terms: Terms
    n_clusters: int


@lru_cache(maxsize=2)
def drawn(federation: Federation, seed: int) -> Drawn:
    """The same for the same seed; of a split always the same."""
    sites, truth = zip(
        *(split_sites(federation.split) if federation.split else made_sites(federation, seed)), strict=True
    )
    return Drawn(sites, truth, terms_around(sites, federation.wide), len(np.unique(np.concatenate(truth))))


def split_sites(name: str) -> Iterator[tuple[FloatArray, IntArray]]:
    """The paper's sites."""
    split = split_of(name, "paper")
    for site in np.unique(split.site):
        yield np.ascontiguousarray(split.X[split.site == site]), split.y[split.site == site]


def made_sites(federation: Federation, seed: int) -> Iterator[tuple[FloatArray, IntArray]]:
    """Gaussian clusters, cut into pieces by the paper's simulator; sites have pieces of some clusters."""
    rng = generator(seed, "private", federation.name)
    X, y = clusters(federation, POOL * N_SITES * federation.rows, rng)
    for held in simulate(X, y, N_SITES, rng):
        own = np.sort(rng.permutation(held)[: federation.rows])
        yield np.ascontiguousarray(X[own]), y[own]


def clusters(federation: Federation, n_rows: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Rows, and which cluster each is of; some clusters have three times as many as others."""
    shares = rng.uniform(0.5, 1.5, federation.n_clusters)
    y = rng.choice(federation.n_clusters, n_rows, p=shares / shares.sum()).astype(np.int64)
    means = federation.apart * rng.standard_normal((federation.n_clusters, federation.n_features))
    mix = np.eye(federation.n_features) + federation.stretched * rng.standard_normal((federation.n_features,) * 2)
    mix /= np.sqrt((mix**2).sum(axis=1).mean())
    return means[y] + rng.standard_normal((n_rows, federation.n_features)) @ mix.T, y


def terms_around(sites: tuple[FloatArray, ...], wide: float) -> Terms:
    """Columns with ranges, as people who know what they measure would agree on them."""
    low = np.min([rows.min(axis=0) for rows in sites], axis=0)
    high = np.max([rows.max(axis=0) for rows in sites], axis=0)
    middle, reach = (low + high) / 2.0, (high - low) / 2.0 * (1.0 + MARGIN) * wide + 1e-9
    ends = zip(middle - reach, middle + reach, strict=True)
    columns = (Column(name=f"x{number}", range=(float(a), float(b))) for number, (a, b) in enumerate(ends))
    return Terms(federation="private", columns=tuple(columns))


OFTEN = 10
SIZES = tuple(Federation(f"8 x {rows:,} rows", rows, draws=OFTEN) for rows in (300, 1_000, 5_000, 50_000))
WIDTHS = tuple(
    Federation(f"{d} columns", 5_000, d, apart=apart) for d, apart in ((2, 4.0), (5, 1.8), (20, 0.9), (100, 0.45))
)
KINDS = (
    Federation("close clusters", 5_000, apart=0.95),
    Federation("stretched clusters", 5_000, apart=0.9, stretched=0.35),
    Federation("stretched, 1,000 rows", 1_000, apart=0.9, stretched=0.35),
    Federation("ranges three times as wide", 5_000, wide=3.0, draws=OFTEN),
)
GENERATED = (*SIZES, *WIDTHS, *KINDS)
# What `goldfc plan` says was read off the federations above; of these it knows nothing.
HELD_OUT = (
    Federation("held out: 4 clusters", 400, 6, 4, apart=2.0),
    Federation("held out: 7 clusters", 1_500, 14, 7, apart=1.1),
    Federation("held out: 15 clusters", 3_000, 8, 15, apart=1.6),
    Federation("held out: 25 clusters", 8_000, 12, 25, apart=1.3),
    Federation("held out: 5 stretched", 2_000, 30, 5, apart=0.8, stretched=0.2),
)
# Of the paper's splits, those that are drawn more often: the noise is, not the rows.
SPLITS = tuple(Federation(name, draws=OFTEN if name in {"LA", "PE", "LE"} else Federation.draws) for name in DATASETS)
