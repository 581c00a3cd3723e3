"""The scikit-learn face of a whole federation in one process."""

import numbers
from collections.abc import Collection, Sequence
from typing import Any, Self, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadSettings
from goldfc.model import is_far, predict
from goldfc.protocol.client import Client, Part
from goldfc.protocol.federation import LocalPort, generator
from goldfc.protocol.finding import WHEN_MANY, Blocks
from goldfc.protocol.fusion import Fusion, fusion_with
from goldfc.protocol.message import Model
from goldfc.protocol.server import Round, run_round

Value = TypeVar("Value", bound=np.generic)


class GOLD(ClusterMixin, BaseEstimator):
    """One-shot federated clustering by competitive learning.

    Every client finds many small clusters in its own rows and sends their centroids, how many rows each has (mass) and
    how rows lie around them (shape), once. The server fuses these micro-clusters into the global clusters, and every
    client labels its own rows. Features count as they are given when clients learn: scale them beforehand.

    Parameters
    ----------
    n_clusters : int or None
        The number of global clusters; None has it proposed, see `proposal_`. There may be fewer in the end.
    fusion : {"consensus", "remc"}
        How the server fuses. "consensus": what many mixtures at several granularities agree on. "remc": the paper's
        way, from centroids alone; clients then learn as in the paper, too, and send no mass and no shape.
    learning_rate : float
        How much the winner of a row is rewarded and its rival penalised; eta in the paper.
    initial_fraction : float
        Candidate clusters to begin with, as a share of the rows, in (0, 1]; k0 / n in the paper.
    max_epochs : int or None
        How often a competition goes through the rows at the most; None means 8 for "consensus", which wants many
        small clusters, and 30 for "remc".
    withhold : tuple of {"mass", "shape"}
        What the clients keep to themselves. Without masses all micro-clusters count the same; without shapes only the
        micro-centroids tell how features are stretched and correlated.
    random_state : int, RandomState, Generator or None
        An int gives the same result every time, whatever `n_jobs` and the order of the clients.
    n_jobs : int or None
        How many clients learn at the same time, or blocks of rows of a single client; None means one after the other,
        or what `joblib.parallel_config` says. The result is the same.

    Attributes
    ----------
    labels_ : array of int, one per row
        The global cluster of every row, by way of its micro-cluster.
    certainty_ : array of float, one per row
        How certain that is, in [0, 1]: the agreement of the partitions that were fused.
    n_clusters_ : int
        How many global clusters there are.
    proposal_ : Proposal or None
        With `n_clusters=None`: the evidence for every number of clusters tried, and a short list with reasons.
    cluster_centers_ : array (clusters, features)
        Means of the micro-centroids of every global cluster, by mass.
    levels_ : Levels
        The partitions of the micro-clusters at every granularity (`labels`) and how many clusters each has.
    micro_centroids_ : array (micro-clusters, features)
        All centroids that the clients sent.
    micro_clients_ : tuple of str
        Which client sent each of them.
    micro_labels_ : array of int
        The global cluster of each of them.
    micro_certainty_ : array of float
        How certain that is.
    model_ : Model
        All that came back to the clients.
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
    >>> model = GOLD(random_state=0).fit(X, groups=wards)
    >>> model.n_clusters_, model.traffic_.uplinks
    (3, 3)
    """

    def __init__(  # noqa: PLR0913 (scikit-learn's way: every setting is an argument)
        self,
        n_clusters: int | None = None,
        *,
        fusion: str = "consensus",
        learning_rate: float = 0.05,
        initial_fraction: float = 0.5,
        max_epochs: int | None = None,
        withhold: Collection[Part] = (),
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.fusion = fusion
        self.learning_rate = learning_rate
        self.initial_fraction = initial_fraction
        self.max_epochs = max_epochs
        self.withhold = withhold
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:  # noqa: ARG002 (scikit-learn's signature)
        """Cluster the rows of `X`; `groups` says which client holds each row (none: a single client holds all).

        Clients are told apart by the text of their names. `y` is ignored. Tools that split rows (such as scikit-learn's
        GridSearchCV) keep `groups` for themselves unless metadata routing is on: see `set_fit_request`.
        """
        rows = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        fusion = self._fusion()
        held_by = client_of_each_row(groups, len(rows))
        seed = seed_from(self.random_state)
        names = np.unique(held_by).tolist()
        # Work is shared out among clients, or among the blocks of rows of a single one.
        blocks = Blocks(n_jobs=self.n_jobs) if len(names) == 1 else WHEN_MANY
        clients = [
            Client(name, rows[held_by == name], generator(seed, "client", name), withhold=self.withhold, blocks=blocks)
            for name in names
        ]
        port = LocalPort(clients, n_jobs=self.n_jobs)
        result = run_round(port, self.n_clusters, fusion, generator(seed, "server"))

        self.labels_ = gather([client.labels for client in clients], clients, held_by)
        self.certainty_ = gather([client.certainty for client in clients], clients, held_by)
        self._set_result(result)
        self.traffic_ = port.ledger
        return self

    def _fusion(self) -> Fusion:
        parts = self.withhold if isinstance(self.withhold, Collection) else [None]
        if isinstance(parts, str) or any(part not in get_args(Part) for part in parts):
            raise BadSettings(f"withhold must be a tuple of 'mass' and 'shape', or empty, got {self.withhold!r}.")
        return fusion_with(
            self.fusion,
            learning_rate=self.learning_rate,
            initial_fraction=self.initial_fraction,
            max_epochs=self.max_epochs,
        )

    def _set_result(self, result: Round) -> None:
        self.model_ = result.model
        self.n_clusters_ = len(result.model.centroids)
        self.proposal_ = result.model.proposal
        self.cluster_centers_: FloatArray = result.model.centroids
        self.levels_ = result.model.levels
        self.micro_centroids_: FloatArray = np.vstack([summary.centroids for summary in result.summaries])
        self.micro_clients_ = result.model.micro_clients
        self.micro_labels_: IntArray = result.model.micro_labels
        self.micro_certainty_: FloatArray = result.model.micro_certainty

    def predict(self, X: ArrayLike) -> IntArray:
        """The nearest global cluster of every row, whether it took part in `fit` or not.

        Nearest in distances that undo how rows lie around their centroids; with "remc", in plain ones.
        """
        return predict(*self._checked(X))

    def is_far(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Whether a row is far from every cluster, so that its label means little: nobody sent anything like it."""
        return is_far(*self._checked(X))

    def _checked(self, X: ArrayLike) -> tuple[Model, FloatArray]:
        check_is_fitted(self)
        return self.model_, validate_data(self, X, dtype=np.float64, reset=False)


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


def gather(parts: Sequence[NDArray[Value]], clients: Sequence[Client], held_by: np.ndarray[Any, Any]) -> NDArray[Value]:
    """What the clients have for their own rows, put back into the order of all rows."""
    whole = np.empty(len(held_by), dtype=parts[0].dtype)
    for part, client in zip(parts, clients, strict=True):
        whole[held_by == client.name] = part
    return whole


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
