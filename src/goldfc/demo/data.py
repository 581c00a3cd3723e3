"""Data with a truth to compare with, and sites that hold parts of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.randomness import site_generator


@dataclass(frozen=True)
class Dataset:
    """A complete set with its truth: row i is of the class `class_names[y[i]]`."""

    name: str
    X: FloatArray
    y: IntArray
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]

    @property
    def n_clusters(self) -> int:
        """k*, the number of classes."""
        return len(self.class_names)


@dataclass(frozen=True)
class Split:
    """Who holds which rows: the rows of all sites, stacked.

    Row i is held by `site[i]` and is row `row[i]` of the complete set. Sites may hold the same row.
    """

    dataset: str
    X: FloatArray
    y: IntArray
    site: IntArray
    row: IntArray

    @property
    def n_sites(self) -> int:
        """L, the number of sites."""
        return len(np.unique(self.site))

    def rows_per_site(self) -> list[FloatArray]:
        """Every site's own rows, in the order of the sites' numbers."""
        return [self.X[self.site == site] for site in np.unique(self.site)]


class Labelled(Protocol):
    """A site that knows the labels of its own rows when everything is over."""

    @property
    def labels(self) -> IntArray:
        """The global cluster of every row."""
        ...


SiteType = TypeVar("SiteType", bound=Labelled)


def bundled(name: str) -> Dataset:
    """A set that scikit-learn carries, in the units it was measured in."""
    import sklearn.datasets  # noqa: PLC0415  (slow to import, and needed only here)

    bunch = getattr(sklearn.datasets, f"load_{name}")()
    return Dataset(
        name=name,
        X=np.asarray(bunch.data, dtype=np.float64),
        y=np.asarray(bunch.target, dtype=np.int64),
        feature_names=tuple(map(str, bunch.feature_names)),
        class_names=tuple(map(str, bunch.target_names)),
    )


def scaled_columns(X: FloatArray) -> FloatArray:
    """Mean 0 and population standard deviation 1; a constant column becomes exactly 0."""
    constant = np.ptp(X, axis=0) == 0.0
    centre = np.where(constant, X[0], X.mean(axis=0))
    return np.asarray((X - centre) / np.where(constant, 1.0, X.std(axis=0)))


def sites_of(
    make: Callable[[str, FloatArray, np.random.Generator], SiteType], split: Split, seed: int
) -> list[SiteType]:
    """The sites of a split, each with its own rows and its own randomness."""
    return [
        make(str(number), rows, site_generator(seed, str(number))) for number, rows in enumerate(split.rows_per_site())
    ]


def gather(sites: Sequence[Labelled], split: Split) -> IntArray:
    """The sites' own labels, in the order of the split's rows."""
    labels = np.empty_like(split.y)
    for number, site in zip(np.unique(split.site), sites, strict=True):
        labels[split.site == number] = site.labels
    return labels
