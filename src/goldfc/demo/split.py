"""The Non-ICD simulator: sites that see parts of parts of the classes (the paper's five steps).

Every site, independently of the others: draws how many classes it sees (1), and which (2); cuts each of them into
subclusters (3) and takes some (4); and holds a sample of the rows of those (5). Sites may overlap.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from goldfc._types import FloatArray, IntArray
from goldfc.demo.data import Dataset, Split
from goldfc.errors import BadSettings


@dataclass(frozen=True)
class ClassRows:
    """The rows of one class; `rows[i]` has the values `distinct[value[i]]`, which are had by `weight[value[i]]` rows.

    Rows that are the same cannot be told apart by any cut, and would leave k-means with empty subclusters.
    """

    rows: IntArray
    distinct: FloatArray
    value: IntArray
    weight: IntArray


def simulate(
    X: FloatArray, y: IntArray, n_sites: int, rng: np.random.Generator, *, max_subclusters: int = 10
) -> list[IntArray]:
    """The numbers of the rows that each site holds, ascending.

    Every site has a generator of its own: site 3 of 8 holds the same rows as site 3 of 100.
    Note: the paper does not say how many subclusters there are at most; ten is our choice.
    """
    return Drawing(X, y, rng, max_subclusters=max_subclusters).first(n_sites)


class Drawing:
    """Sites drawn one after the other, when they are asked for: eight are the first of a thousand."""

    def __init__(self, X: FloatArray, y: IntArray, rng: np.random.Generator, *, max_subclusters: int = 10) -> None:
        if max_subclusters < 1:
            raise BadSettings(f"max_subclusters must be at least 1, got {max_subclusters}.", "max-subclusters")
        self._classes = [class_rows(X, np.flatnonzero(y == label)) for label in np.unique(y)]
        self._rng = rng
        self._max_subclusters = max_subclusters
        self._sites: list[IntArray] = []

    def first(self, n_sites: int) -> list[IntArray]:
        """The rows of the first so many sites; those that were drawn before are not drawn again."""
        if n_sites < 1:
            raise BadSettings(f"n_sites must be at least 1, got {n_sites}; the paper has 8 sites.", "n-sites")
        # One thread: k-means adds up in the order in which threads finish, and the last digit may move a row.
        with threadpool_limits(limits=1):
            for rng in self._rng.spawn(max(n_sites - len(self._sites), 0)):
                self._sites.append(draw_site(self._classes, self._max_subclusters, rng))
        return self._sites[:n_sites]


def simulate_split(dataset: Dataset, n_sites: int, rng: np.random.Generator) -> Split:
    """Simulated sites in the form of the paper's own, so that nothing else can tell them apart."""
    return as_split(dataset, simulate(dataset.X, dataset.y, n_sites, rng))


def as_split(dataset: Dataset, sites: Sequence[IntArray]) -> Split:
    """Stack the rows that the sites hold."""
    row = np.concatenate(sites)
    site = np.repeat(np.arange(len(sites), dtype=np.int64), [len(rows) for rows in sites])
    return Split(dataset.name, dataset.X[row], dataset.y[row], site, row)


def class_rows(X: FloatArray, rows: IntArray) -> ClassRows:
    """One class, and which of its rows are the same."""
    distinct, value, weight = np.unique(X[rows], axis=0, return_inverse=True, return_counts=True)
    return ClassRows(rows, distinct, value, weight)


def draw_site(classes: Sequence[ClassRows], max_subclusters: int, rng: np.random.Generator) -> IntArray:
    """Steps 1 to 5 for one site."""
    chosen = choose_classes(len(classes), draw_class_count(len(classes), rng), rng)
    pool = np.concatenate([draw_part(classes[number], max_subclusters, rng) for number in chosen])
    return sample_pool(pool, rng)


def draw_class_count(n_classes: int, rng: np.random.Generator) -> int:
    """Step 1: how many classes a site sees, from 1 to all."""
    return int(rng.integers(1, n_classes, endpoint=True))


def choose_classes(n_classes: int, count: int, rng: np.random.Generator) -> IntArray:
    """Step 2: which classes a site sees."""
    return rng.choice(n_classes, size=count, replace=False)


def draw_part(members: ClassRows, max_subclusters: int, rng: np.random.Generator) -> IntArray:
    """Steps 3 and 4 for one class: the rows of the subclusters that were taken."""
    subcluster = cut_class(members, max_subclusters, rng)
    return members.rows[np.isin(subcluster, choose_subclusters(subcluster, rng))]


def cut_class(members: ClassRows, max_subclusters: int, rng: np.random.Generator) -> IntArray:
    """Step 3: the subcluster of every row of a class; k-means from random starts, and k random, too."""
    k = int(rng.integers(1, min(max_subclusters, len(members.distinct)), endpoint=True))
    seed = int(rng.integers(2**32))
    k_means = KMeans(k, init="random", n_init=1, random_state=seed)
    labels = k_means.fit_predict(members.distinct, sample_weight=members.weight)
    return np.asarray(labels, dtype=np.int64)[members.value]


def choose_subclusters(subcluster: IntArray, rng: np.random.Generator) -> IntArray:
    """Step 4: which subclusters a site takes, from one to all."""
    found = np.unique(subcluster)
    return rng.choice(found, size=rng.integers(1, len(found), endpoint=True), replace=False)


def sample_pool(pool: IntArray, rng: np.random.Generator) -> IntArray:
    """Step 5: a quarter to three quarters of the pool, without replacement; at least one row."""
    fewest = max(1, math.ceil(len(pool) / 4))
    most = max(1, math.floor(3 * len(pool) / 4))
    return np.sort(rng.choice(pool, size=rng.integers(fewest, most, endpoint=True), replace=False))
