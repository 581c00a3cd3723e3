"""What a run is made on, by name: a data set, and sites that hold its rows.

Data sets: whatever `datasets.load` knows; `SD-<rows>x<features>`, the synthetic mixture of any size;
`separate-<clusters>-<seed>`, a mixture whose clusters everybody can tell apart; `EC-raw` and so on, a set in the units
it was measured in; and `path/to/file.csv`, a table of numbers of your own whose last column says the true class.
Sites: `paper`, the paper's own; `non-icd-<sites>-<seed>`, drawn by the simulator; `exchanged-<sites>-<seed>-<per
cent>`, the same rows and sizes, but so many of the rows have changed places at random; `even-<sites>`, all rows dealt
out evenly and at random.
"""

import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from goldfc.demo.data import Dataset, Split, scaled_columns
from goldfc.demo.split import Drawing, as_split
from goldfc.errors import BadSettings
from goldfc.randomness import generator
from goldfc_bench.datasets import load, load_csv, load_split, synthetic, well_separated

RAW = "-raw"


@lru_cache(maxsize=4)
def dataset_of(name: str) -> Dataset:
    """A complete data set, standardised."""
    if match := re.fullmatch(r"SD-(\d+)x(\d+)", name):
        mixture = synthetic(int(match[1]), int(match[2]), generator(0, name))
        return replace(mixture, name=name, X=scaled_columns(mixture.X))
    if match := re.fullmatch(r"separate-(\d+)-(\d+)", name):
        mixture = well_separated(int(match[1]), generator(int(match[2]), name))
        return replace(mixture, name=name, X=scaled_columns(mixture.X))
    if name.endswith(".csv"):
        return load_csv(Path(name))
    if name.endswith(RAW):
        return load(name.removesuffix(RAW), standardize=False)
    return load(name)


@lru_cache(maxsize=4)
def split_of(dataset: str, split: str) -> Split:
    """The rows of a data set at their sites."""
    if split == "paper" and dataset.endswith(RAW):
        return in_own_units(load_split(dataset.removesuffix(RAW)), dataset_of(dataset))
    if split == "paper":
        return load_split(dataset)
    complete = dataset_of(dataset)
    if match := re.fullmatch(r"non-icd-(\d+)-(\d+)", split):
        return as_split(complete, drawing_of(dataset, int(match[2])).first(int(match[1])))
    if match := re.fullmatch(r"exchanged-(\d+)-(\d+)-(\d+)", split):
        drawn = split_of(dataset, f"non-icd-{match[1]}-{match[2]}")
        return exchanged(drawn, int(match[3]) / 100.0, generator(int(match[2]), "exchange", dataset))
    if match := re.fullmatch(r"even-(\d+)", split):
        order = generator(0, "deal", dataset).permutation(len(complete.X))
        return as_split(complete, [np.sort(part) for part in np.array_split(order, int(match[1]))])
    raise BadSettings(
        f"There are no sites called {split!r}; use paper, non-icd-<sites>-<seed>, "
        "exchanged-<sites>-<seed>-<per cent> or even-<sites>."
    )


def exchanged(split: Split, share: float, rng: np.random.Generator) -> Split:
    """The same rows at sites of the same sizes, but a share of the rows has changed places."""
    site = split.site.copy()
    chosen = np.flatnonzero(rng.random(len(site)) < share)
    site[chosen] = site[rng.permutation(chosen)]
    return replace(split, site=site)


def in_own_units(split: Split, complete: Dataset) -> Split:
    """Rows that were standardised with the complete set, as they were before."""
    return replace(split, X=split.X * complete.X.std(axis=0) + complete.X.mean(axis=0))


@lru_cache(maxsize=4)
def drawing_of(dataset: str, seed: int) -> Drawing:
    """The simulator at work on a data set."""
    complete = dataset_of(dataset)
    return Drawing(complete.X, complete.y, generator(seed, "simulator", dataset))
