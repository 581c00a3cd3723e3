"""The scikit-learn face of a whole federation in one process: the default, and the paper's method."""

import numbers
import secrets
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from goldfc._encoding import Encoding, encoding_of, is_missing_value, terms_for_people, terms_within
from goldfc._looks import Explored
from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadSettings
from goldfc.learning.rows import InMemory
from goldfc.message.columns import UNNAMED, Terms
from goldfc.message.density import distances, is_far
from goldfc.message.levels import Level, Private, with_fewest
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.message.task import Part, Scaling, Task, rows_each
from goldfc.randomness import generator, site_generator
from goldfc.server.fusions import check_n_clusters
from goldfc.server.one_shot import OneShot
from goldfc.server.round import Round, run_round
from goldfc.site.label import label, predict, predict_proba
from goldfc.site.participant import Site
from goldfc.site.private.noise import Source
from goldfc.site.reservoir import NewRows, Reservoir, limit_of, refuse_sample
from goldfc.transport.local import LocalPort

Value = TypeVar("Value", bound=np.generic)


class _Federated(Explored, ClusterMixin, BaseEstimator):
    """What both estimators have in common: who holds which row, and what is known once a round has ended."""

    _groups_given: bool | None = None
    _encoding: Encoding = Encoding({}, UNNAMED)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """As scikit-learn has it; and a word on `groups` if nobody said who holds which row."""
        text: str = super().__repr__(N_CHAR_MAX)
        return f"{text}  # one site held all rows: no groups were given" if self._groups_given is False else text

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """As scikit-learn has it, where people want that, and what came out."""
        of_sklearn: Callable[[], str] = super(Explored, self)._repr_html_
        return lambda: of_sklearn() + self._html_of_result()

    def _repr_mimebundle_(self, **asked: Any) -> dict[str, str]:
        """The same, for notebooks."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**asked)
        return {kind: text + self._html_of_result() * (kind == "text/html") for kind, text in bundle.items()}

    def _html_of_result(self) -> str:
        return Explored._repr_html_(self) if hasattr(self, "model_") else ""

    def _told(self) -> tuple[Model, tuple[Summary, ...]]:
        check_is_fitted(self)
        names = list(getattr(self, "feature_names_in_", ()))
        terms = terms_for_people(self._encoding, names, self.n_features_in_)
        return replace(self.model_, terms=terms) if terms.columns else self.model_, self.summaries_

    def _sites(self, groups: ArrayLike | None, y: object, n_rows: int) -> tuple[list[str], list[IntArray]]:
        """The names of all sites, and the rows of each."""
        warn_of_sites_as_y(y, groups, n_rows)
        self._groups_given = groups is not None
        names, site = np.unique(site_of_each_row(groups, n_rows), return_inverse=True)
        order = np.argsort(site, kind="stable")
        return names.tolist(), np.split(order, np.flatnonzero(np.diff(site[order])) + 1)

    def _set_result(self, result: Round, port: LocalPort) -> None:
        self.model_, self.summaries_ = result.model, result.summaries
        self.n_clusters_ = len(result.model.centroids)
        self.cluster_centers_: FloatArray = result.model.centroids
        self.levels_ = result.model.levels
        self.micro_centroids_: FloatArray = np.vstack([summary.centroids for summary in result.summaries])
        self.micro_mass_: FloatArray = np.concatenate([summary.masses for summary in result.summaries])
        self.micro_sites_ = result.model.micro_sites
        self.cluster_ids_ = result.model.ids
        self.micro_labels_: IntArray = result.model.ids[result.model.micro_labels]
        self.micro_certainty_: FloatArray = result.model.micro_certainty
        self.traffic_ = port.traffic


class OneShotClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _Federated):
    """One-shot federated clustering: every site sends one small message, once.

    Each site finds up to 100 micro-clusters in its own rows and sends their means, how many rows each has (mass) and
    how rows lie around them (shape). The server tries three kinds of clusters (alike in form, each of its own form, or
    of any form with gaps between them) and believes the one that the micro-clusters speak for. Every site labels its
    own rows by the model that comes back; so does `predict`, and gives the same labels.

    Parameters
    ----------
    n_clusters : int or None
        The number of global clusters; None has it proposed, see `proposal_`. There may be fewer in the end.
    categorical : "auto", or collection of int or str
        Which columns are categories, by number or name. "auto": in a data frame those that are of a category, object,
        string or boolean type; in an array none.
    scaling : {"pooled", "given"}
        "pooled": each site learns in the scale of its own columns, and the server pools them, so that units do not
        matter. "given": columns count as they are.
    withhold : tuple of {"mass", "shape"}
        What the sites keep to themselves. Without masses all micro-clusters count the same; without shapes only the
        micro-centroids tell how columns are stretched and correlated.
    smallest : int
        No micro-cluster has fewer rows; above 1, what leaves a site is rounded, too, as by files.
    privacy : Private, float or None
        What differential privacy does to the result: `Private(eps=1.0, delta=1e-5)`, or eps alone; it takes `ranges`.
        This is a simulation. With an int as `random_state` noise is drawn from it, so that anybody can take it away
        again: that protects nobody.
    ranges : array-like (columns, 2) or None
        The lowest and the highest value that every column may have, as sites would agree on them without looking at
        rows; what lies outside counts as the end. Of categories it is not looked at.
    random_state : int, RandomState, Generator or None
        For the server; the sites do nothing by chance. An int gives the same result every time, whatever `n_jobs` and
        the order of the sites.
    n_jobs : int or None
        How many sites work at the same time; None means one after the other, or what `joblib.parallel_config` says.
        The result is the same.

    Attributes
    ----------
    labels_ : array of int, one per row
        The global cluster of every row, by its id.
    cluster_ids_ : array of int
        The ids of the clusters, ascending: 0, 1, ..., or with `after` those that they had before.
    changes_ : tuple of Change
        With `after`: what became of the clusters before.
    certainty_ : array of float, one per row
        How certain that is, in [0, 1].
    n_clusters_ : int
        How many global clusters there are.
    kind_, why_ : str
        The kind of clusters that was believed ("shared", "own" or "linked"), and why, in a sentence.
    proposal_ : Proposal or None
        With `n_clusters=None`: the evidence for every number of clusters tried, and a short list with reasons.
    cluster_centers_ : array (clusters, encoded features)
        The mean of every global cluster; of categories, the share of every level.
    levels_ : Levels
        Partitions of the micro-clusters at several granularities (`labels`), and how many clusters each has.
    micro_centroids_, micro_mass_, micro_sites_, micro_labels_, micro_certainty_ : arrays
        Of all micro-clusters: what was sent, how many rows it has (1 where masses are withheld), who sent it, its
        global cluster, and how certain that is.
    summaries_ : tuple of Summary
        What the sites sent, by their names.
    model_ : Model
        All that came back to the sites.
    traffic_ : Ledger
        Every message that crossed, with its size.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Their names, if `X` was a data frame that has them.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from goldfc import OneShotClustering
    >>> X, _ = make_blobs(300, centers=3, cluster_std=0.5, random_state=1)
    >>> wards = ["north", "south", "west"] * 100
    >>> model = OneShotClustering(random_state=0).fit(X, groups=wards)
    >>> model.n_clusters_, model.traffic_.uplinks
    (3, 3)
    """

    def __init__(  # noqa: PLR0913 (the parameters of an estimator)
        self,
        n_clusters: int | None = None,
        *,
        categorical: str | Collection[int | str] = "auto",
        scaling: str = "pooled",
        withhold: Collection[Part] = (),
        smallest: int = 1,
        privacy: Private | float | None = None,
        ranges: ArrayLike | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.privacy = privacy
        self.ranges = ranges
        self.categorical = categorical
        self.scaling = scaling
        self.withhold = withhold
        self.smallest = smallest
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        groups: ArrayLike | None = None,
        after: "Model | OneShotClustering | None" = None,
    ) -> Self:
        """Cluster the rows of `X`; `groups` says which site holds each row (none: a single site holds all).

        With `after`, clusters that go on keep their ids, and `changes_` says what has changed. Tools that split rows
        (such as scikit-learn's GridSearchCV) keep `groups` for themselves unless metadata routing is on: see
        `set_fit_request`.

        Parameters
        ----------
        X
            A table, (rows, columns): an array or a data frame.
        y
            Ignored.
        groups
            The site of every row; sites are told apart by the text of their names.
        after
            The model before, or the estimator that it was fitted by.

        Returns
        -------
        self
            With the attributes above.
        """
        self._encoding = encoding_of(X, self.categorical)
        self._kept: dict[str, Reservoir] = {}
        rows = self._rows(X, reset=True)
        self._terms: Terms = terms_within(self._encoding.terms, self.n_features_in_, self.ranges)
        names, places = self._sites(groups, y, len(rows))
        seed = seed_from(self.random_state)
        sites = [self._site(name, rows[own], seed) for name, own in zip(names, places, strict=True)]
        self._run(sites, seed, after.model_ if isinstance(after, OneShotClustering) else after)
        return self._set_labels([(site.labels, site.certainty) for site in sites], places)

    def partial_fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        """Cluster the rows of `X` and of all parts before; `labels_` and `certainty_` are those of the rows of `X`.

        Clusters that go on keep their ids from part to part, and `changes_` says what has changed.
        Every site keeps its rows, from the first call on; of more than 50,000 a sample, which counts as all of them. A
        part that was given before counts once. The first part says which categories there are. `fit` begins anew.
        """
        seed, before = seed_from(self.random_state), None
        if getattr(self, "_kept", None):
            before = self.model_
        else:
            self._encoding, self._kept = encoding_of(X, self.categorical), {}
            self._secret = generator(seed, "parts").bytes(32)
        rows = self._rows(X, reset=not self._kept)
        self._terms = terms_within(self._encoding.terms, self.n_features_in_, self.ranges)
        names, places = self._sites(groups, y, len(rows))
        self._kept |= {name: self._with_part(name, rows[own]) for name, own in zip(names, places, strict=True)}
        kept = sorted(self._kept.items())
        self._run([self._site(name, one.rows, seed, one.stands_for) for name, one in kept], seed, before)
        return self._set_labels([label(rows[own], self.model_) for own in places], places)

    def _with_part(self, name: str, rows: FloatArray) -> Reservoir:
        part, level = NewRows(InMemory(rows)), self._level()
        before = self._kept.get(name) or Reservoir.empty(part)
        after = before.added(part, self._secret, limit_of(level, rows.shape[1]))
        refuse_sample(after, level)
        return after

    def _site(self, name: str, rows: FloatArray, seed: int, stands_for: int | None = None) -> Site:
        return Site(
            name,
            rows,
            withhold=self.withhold,
            terms=self._terms,
            randomness=self._randomness(seed, name),
            stands_for=stands_for,
        )

    def _run(self, sites: Sequence[Site], seed: int, before: Model | None) -> None:
        """One round of all sites, after a model if there is one."""
        check_n_clusters(self.n_clusters)
        check_smallest(self.smallest)
        check_withhold(self.withhold)
        fusion = OneShot(Task(scaling=self._scaling(), level=self._level(), rows_each=rows_each(self.smallest)))
        port = LocalPort(sites, n_jobs=self.n_jobs)
        result = run_round(port, self.n_clusters, fusion, generator(seed, "server"), before)
        self.proposal_ = result.model.proposal
        self.changes_ = () if result.model.descent is None else result.model.descent.changes
        self.kind_, self.why_ = result.model.kind, result.model.why
        self._set_result(result, port)

    def _set_labels(self, told: Sequence[tuple[IntArray, FloatArray]], places: Sequence[IntArray]) -> Self:
        labels, certainty = zip(*told, strict=True)
        self.labels_ = in_row_order(labels, places)
        self.certainty_ = in_row_order(certainty, places)
        return self

    def _scaling(self) -> Scaling:
        if self.scaling not in ("pooled", "given"):
            raise BadSettings(f"scaling must be 'pooled' or 'given', got {self.scaling!r}.", "scaling")
        return self.scaling  # type: ignore[return-value]

    def _level(self) -> Level:
        if self.privacy is None:
            return with_fewest(self.smallest)
        if self.ranges is None:
            raise BadSettings(
                "privacy needs ranges: the lowest and the highest value of every column.", "ranges-missing"
            )
        return self.privacy if isinstance(self.privacy, Private) else Private(eps=float(self.privacy))

    def _randomness(self, seed: int, name: str) -> Source:
        return secrets.token_bytes if self.random_state is None else site_generator(seed, name).bytes

    def _rows(self, X: ArrayLike, *, reset: bool) -> FloatArray:
        """The rows as numbers: categories become one feature for every level."""
        return self._encoding.encode(X, lambda table: validate_data(self, table, dtype=np.float64, reset=reset))

    def predict(self, X: ArrayLike) -> IntArray:
        """The likeliest global cluster of every row, whether it took part in `fit` or not."""
        return predict(*self._checked(X))

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """How likely every row (down) belongs to every global cluster (across, in the order of `cluster_ids_`)."""
        return predict_proba(*self._checked(X))

    def transform(self, X: ArrayLike) -> FloatArray:
        """How far every row (down) is from every global cluster (across), in units of how rows lie in it."""
        return distances(*self._checked(X))

    def is_far(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Whether a row is far from every cluster, so that its label means little: nobody sent anything like it."""
        return is_far(*self._checked(X))

    def _checked(self, X: ArrayLike) -> tuple[Model, FloatArray]:
        check_is_fitted(self)
        return self.model_, self._rows(X, reset=False)

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_

    def __sklearn_tags__(self) -> Any:
        """Categories may be given as text."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


class GOLD(_Federated):
    """The paper's method: competitive learning at the sites and at the server, from centroids alone.

    Every site finds many small clusters in its own rows by competition (FCPL) and sends their centroids, once. The
    server lets these compete again (MCPL), which gives partitions at several granularities, and fuses them (REMC). A
    row has the label of its micro-cluster. Features count as they are given: scale them beforehand. It needs the extra
    goldfc[paper].

    Parameters
    ----------
    n_clusters : int
        The number of global clusters. There may be fewer in the end.
    learning_rate : float
        How much the winner of a row is rewarded and its rival penalised; eta in the paper.
    initial_fraction : float
        Candidate clusters to begin with, as a share of the rows, in (0, 1]; k0 / n in the paper.
    max_epochs : int
        How often a competition goes through the rows at the most.
    most_at_once : int or None
        A site with more rows learns them in blocks, in linear time; None: all at once, however many they are, in time
        that grows with their square.
    random_state : int, RandomState, Generator or None
        An int gives the same result every time, whatever `n_jobs` and the order of the sites.
    n_jobs : int or None
        How many sites learn at the same time, or blocks of rows of a single site; None means one after the other,
        or what `joblib.parallel_config` says. The result is the same.

    Attributes
    ----------
    labels_, certainty_ : arrays, one per row
        The global cluster of every row, by way of its micro-cluster, and the share of levels that agree with it.
    n_clusters_ : int
        How many global clusters there are.
    cluster_centers_ : array (clusters, features)
        Means of the micro-centroids of every global cluster.
    levels_ : Levels
        The partitions of the micro-clusters at every granularity (`labels`) and how many clusters each has.
    micro_centroids_, micro_mass_, micro_sites_, micro_labels_, micro_certainty_ : arrays
        Of all micro-clusters: what was sent, how many rows it has (1 where masses are withheld), who sent it, its
        global cluster, and how certain that is.
    summaries_ : tuple of Summary
        What the sites sent, by their names.
    model_ : Model
        All that came back to the sites.
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
    >>> GOLD(3, random_state=0).fit(X, groups=wards).traffic_.uplinks
    3
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        learning_rate: float = 0.05,
        initial_fraction: float = 0.5,
        max_epochs: int = 30,
        most_at_once: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.learning_rate = learning_rate
        self.initial_fraction = initial_fraction
        self.max_epochs = max_epochs
        self.most_at_once = most_at_once
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        """Cluster the rows of `X`; `groups` says which site holds each row (none: a single site holds all).

        Parameters
        ----------
        X
            A table of numbers, (rows, features).
        y
            Ignored.
        groups
            The site of every row; sites are told apart by the text of their names.

        Returns
        -------
        self
            With the attributes above.
        """
        # Not every installation has a compiler, and nobody else should wait for it.
        from goldfc.learning.paper.competition import Learning  # noqa: PLC0415
        from goldfc.server.gold import Gold  # noqa: PLC0415
        from goldfc.site.gold import Blocks, GoldSite  # noqa: PLC0415

        if self.n_clusters is None:
            raise BadSettings(
                "n_clusters must be a whole number from 1 on; OneShotClustering proposes one.", "n-clusters"
            )
        check_n_clusters(self.n_clusters)
        learning = Learning(self.learning_rate, self.initial_fraction, self.max_epochs)
        rows = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        names, places = self._sites(groups, y, len(rows))
        seed = seed_from(self.random_state)
        blocks = None if self.most_at_once is None else Blocks(self.most_at_once, self.n_jobs if len(names) == 1 else 1)
        sites = [
            GoldSite(name, rows[own], site_generator(seed, name), blocks=blocks)
            for name, own in zip(names, places, strict=True)
        ]
        port = LocalPort(sites, n_jobs=self.n_jobs)
        result = run_round(port, self.n_clusters, Gold(learning, fewer=True), generator(seed, "server"))

        self.labels_ = in_row_order([site.labels for site in sites], places)
        self.certainty_ = in_row_order([site.certainty for site in sites], places)
        self._set_result(result, port)
        return self

    def predict(self, X: ArrayLike) -> IntArray:
        """The nearest global centroid of every row, whether it took part in `fit` or not."""
        check_is_fitted(self)
        return predict(self.model_, validate_data(self, X, dtype=np.float64, reset=False))


def check_smallest(smallest: int) -> None:
    """Refuse what is no number of rows."""
    if not (isinstance(smallest, numbers.Integral) and smallest >= 1):
        raise BadSettings(f"smallest must be a whole number from 1 on, got {smallest!r}.", "whole-number")


def check_withhold(withhold: object) -> None:
    """Refuse what no site could keep to itself."""
    parts = withhold if isinstance(withhold, Collection) else [None]
    if isinstance(parts, str) or any(part not in get_args(Part) for part in parts):
        raise BadSettings(f"withhold must be a tuple of 'mass' and 'shape', or empty, got {withhold!r}.", "withhold")


def warn_of_sites_as_y(y: object, groups: ArrayLike | None, n_rows: int) -> None:
    """Whoever passes the sites in the place of `y` clusters all rows at one site: say so."""
    if y is None or groups is not None:
        return
    values = np.asarray(y)
    if values.shape == (n_rows,) and values.dtype.kind in "UO":
        warnings.warn(
            "y is ignored. If it names the sites, pass it by its name: fit(X, groups=sites).", UserWarning, stacklevel=4
        )


def site_of_each_row(groups: ArrayLike | None, n_rows: int) -> np.ndarray[Any, Any]:
    """Site names, one per row."""
    if groups is None:
        return np.zeros(n_rows, dtype="<U1")
    names = np.asarray(groups)
    if names.ndim != 1:
        raise BadSettings(
            f"groups must be one site name per row, in one dimension; its shape is {names.shape}.", "groups-form"
        )
    check_consistent_length(names, np.empty(n_rows))
    missing = [row for row, name in enumerate(names.tolist()) if is_missing_value(name)]
    if missing:
        raise BadSettings(f"groups must name a site for every row; row {missing[0]} has none.", "groups-missing")
    as_text = np.asarray(names.astype(str))
    if len(np.unique(as_text)) < len(set(names.tolist())):
        raise BadSettings(
            "groups has names that differ in type only, such as 1 and '1'; give every site one name.", "groups-alike"
        )
    return as_text


def in_row_order(parts: Sequence[NDArray[Value]], places: Sequence[IntArray]) -> NDArray[Value]:
    """What the sites have for their own rows, put back into the order of all rows."""
    whole = np.empty(sum(map(len, places)), dtype=parts[0].dtype)
    for part, own in zip(parts, places, strict=True):
        whole[own] = part
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
        f"random_state must be a whole number from 0 on, a RandomState, a Generator or None, got {random_state!r}.",
        "random-state",
    )
