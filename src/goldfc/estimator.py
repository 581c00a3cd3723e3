"""The scikit-learn face of a whole federation in one process."""

import numbers
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadSettings
from goldfc.learning.competition import Learning
from goldfc.model import nearest
from goldfc.protocol.client import Client
from goldfc.protocol.federation import LocalPort, generator
from goldfc.protocol.server import Round, run_round


class GOLD(ClusterMixin, BaseEstimator):
    """One-shot federated clustering by competitive learning, as in the paper.

    Every client finds many small clusters in its own rows and sends their centroids; the server lets these compete
    again and again, and fuses the partitions it gets into the global clusters. Features count as they are given:
    scale them beforehand.

    Parameters
    ----------
    n_clusters : int
        The number of global clusters. There may be fewer in the end, if some of them lose all their micro-clusters.
    learning_rate : float
        How much the winner of a row is rewarded and its rival penalised; eta in the paper.
    initial_fraction : float
        Candidate clusters to begin with, as a share of the rows, in (0, 1]; k0 / n in the paper.
    max_epochs : int
        How often a competition goes through the rows at the most.
    random_state : int, RandomState, Generator or None
        An int gives the same result every time, whatever `n_jobs` and the order of the clients.
    n_jobs : int or None
        How many clients learn at the same time; None means one after the other.

    Attributes
    ----------
    labels_ : array of int, one per row
        The global cluster of every row, by way of its micro-cluster.
    cluster_centers_ : array (clusters, features)
        Means of the micro-centroids of every global cluster.
    levels_ : Levels
        The partitions of the micro-clusters at every granularity (`labels`) and how many clusters each has.
    micro_centroids_ : array (micro-clusters, features)
        All that the clients sent.
    micro_clients_ : tuple of str
        Which client sent each of them.
    micro_labels_ : array of int
        The global cluster of each of them.
    traffic_ : Ledger
        Every message that crossed, with its size.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Their names, if `X` was a data frame that has them.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from goldfc import GOLD
    >>> X, _ = make_blobs(300, centers=3, cluster_std=0.5, random_state=1)
    >>> wards = ["north", "south", "west"] * 100
    >>> model = GOLD(n_clusters=3, random_state=0).fit(X, groups=wards)
    >>> len(set(model.labels_)), model.traffic_.uplinks
    (3, 3)
    """

    def __init__(
        self,
        n_clusters: int,
        *,
        learning_rate: float = 0.05,
        initial_fraction: float = 0.5,
        max_epochs: int = 30,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.learning_rate = learning_rate
        self.initial_fraction = initial_fraction
        self.max_epochs = max_epochs
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Cluster the rows of `X`; `groups` says which client holds each row (none: a single client holds all).

        Clients are told apart by the text of their names. `y` is ignored. Tools that split rows (such as scikit-learn's
        GridSearchCV) keep `groups` for themselves unless metadata routing is on: see `set_fit_request`.
        """
        rows = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        learning = Learning(self.learning_rate, self.initial_fraction, self.max_epochs)
        held_by = client_of_each_row(groups, len(rows))
        seed = seed_from(self.random_state)
        clients = [
            Client(name, rows[held_by == name], generator(seed, "client", name)) for name in np.unique(held_by).tolist()
        ]
        port = LocalPort(clients, n_jobs=self.n_jobs)
        result = run_round(port, self.n_clusters, learning, generator(seed, "server"))

        self.labels_ = gather_labels(clients, held_by)
        self._set_result(result)
        self.traffic_ = port.ledger
        return self

    def _set_result(self, result: Round) -> None:
        self.cluster_centers_: FloatArray = result.model.centroids
        self.levels_ = result.model.levels
        self.micro_centroids_: FloatArray = np.vstack([summary.centroids for summary in result.summaries])
        self.micro_clients_ = result.model.micro_clients
        self.micro_labels_: IntArray = result.model.micro_labels

    def predict(self, X: ArrayLike) -> IntArray:
        """The nearest global cluster of every row, whether it took part in `fit` or not."""
        check_is_fitted(self)
        return nearest(validate_data(self, X, dtype=np.float64, reset=False), self.cluster_centers_)


def client_of_each_row(groups: ArrayLike | None, n_rows: int) -> np.ndarray[Any, Any]:
    """Client names, one per row."""
    if groups is None:
        return np.zeros(n_rows, dtype="<U1")
    names = np.asarray(groups)
    if names.ndim != 1:
        raise BadSettings(f"groups must be one client name per row, in one dimension; its shape is {names.shape}.")
    check_consistent_length(names, np.empty(n_rows))
    missing = [row for row, name in enumerate(names.tolist()) if is_missing(name)]
    if missing:
        raise BadSettings(f"groups must name a client for every row; row {missing[0]} has none.")
    as_text = np.asarray(names.astype(str))
    if len(np.unique(as_text)) < len(set(names.tolist())):
        raise BadSettings("groups has names that differ in kind only, such as 1 and '1'; give every client one name.")
    return as_text


def is_missing(name: object) -> bool:
    """None, not a number, or pandas' NA, which says neither yes nor no."""
    try:
        return name is None or bool(name != name)  # noqa: PLR0124 (only a missing value differs from itself)
    except TypeError:
        return True


def gather_labels(clients: list[Client], held_by: np.ndarray[Any, Any]) -> IntArray:
    """The clients' own labels, put back into the order of the rows."""
    labels = np.empty(len(held_by), dtype=np.int64)
    for client in clients:
        labels[held_by == client.name] = client.labels
    return labels


def seed_from(random_state: Any) -> int:
    """One whole number from whatever scikit-learn users pass; global random state is never read or changed."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**63))
    if isinstance(random_state, numbers.Integral) and int(random_state) >= 0:
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    raise BadSettings(
        f"random_state must be a whole number from 0 on, a RandomState, a Generator or None, got {random_state!r}."
    )
