"""Data with a truth to compare with, and clients that hold parts of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.protocol.federation import generator


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
    """Who holds which rows: the rows of all clients, stacked.

    Row i is held by `client[i]` and is row `row[i]` of the complete set. Clients may hold the same row.
    """

    dataset: str
    X: FloatArray
    y: IntArray
    client: IntArray
    row: IntArray

    @property
    def n_clients(self) -> int:
        """L, the number of clients."""
        return len(np.unique(self.client))

    def rows_per_client(self) -> list[FloatArray]:
        """Every client's own rows, in the order of the clients' numbers."""
        return [self.X[self.client == client] for client in np.unique(self.client)]


class Labelled(Protocol):
    """A client that knows the labels of its own rows when everything is over."""

    @property
    def labels(self) -> IntArray:
        """The global cluster of every row."""
        ...


Made = TypeVar("Made", bound=Labelled)


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


def standardized(X: FloatArray) -> FloatArray:
    """Mean 0 and population standard deviation 1; a constant column becomes exactly 0."""
    constant = np.ptp(X, axis=0) == 0.0
    centre = np.where(constant, X[0], X.mean(axis=0))
    return np.asarray((X - centre) / np.where(constant, 1.0, X.std(axis=0)))


def clients_of(make: Callable[[str, FloatArray, np.random.Generator], Made], split: Split, seed: int) -> list[Made]:
    """The clients of a split, each with its own rows and its own randomness."""
    return [
        make(str(number), rows, generator(seed, "client", str(number)))
        for number, rows in enumerate(split.rows_per_client())
    ]


def gather(clients: Sequence[Labelled], split: Split) -> IntArray:
    """The clients' own labels, in the order of the split's rows."""
    labels = np.empty_like(split.y)
    for number, client in zip(np.unique(split.client), clients, strict=True):
        labels[split.client == number] = client.labels
    return labels
