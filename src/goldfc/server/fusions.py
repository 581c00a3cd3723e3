"""Fusions: what is asked of every site, and how global clusters are made of the answers.

A fusion is one class with a line in `FUSIONS`; nothing else need know of it.
"""

import numbers
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pkgutil import resolve_name
from typing import Any, Protocol, runtime_checkable

import numpy as np
from threadpoolctl import threadpool_limits

from goldfc.errors import BadMessage, BadSettings
from goldfc.message.columns import Terms
from goldfc.message.message import Message
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.server.changes import going_on


class Asked(Protocol):
    """What is asked of every site."""

    def to_message(self) -> Message:
        """As it travels; sites know what to do by its kind."""
        ...


class Fusion(Protocol):
    """One way to run a federation; a frozen dataclass whose fields are its settings."""

    @property
    def task(self) -> Asked:
        """What is asked of every site."""
        ...

    def fuse(self, summaries: Sequence[Summary], n_clusters: int | None, rng: np.random.Generator) -> Model:
        """Global clusters of the answers, which fit together and are in the order of the sites' names."""
        ...


@runtime_checkable
class Steady(Protocol):
    """A fusion that can stay with clusters that there were."""

    def staying(self, before: Model) -> Fusion:
        """The same fusion, after a model."""
        ...


# Where each is, by its name; imported when it is asked for, because the paper's takes a compiler.
FUSIONS: dict[str, str] = {"one-shot": "goldfc.server.one_shot:OneShot", "gold": "goldfc.server.gold:Gold"}


def fusion_named(name: str, **settings: Any) -> Fusion:
    """One of those in `FUSIONS`."""
    if name not in FUSIONS:
        raise BadSettings(f"There is no fusion {name!r}; there are {', '.join(sorted(FUSIONS))}.", "fusion-unknown")
    found: Fusion = resolve_name(FUSIONS[name])(**settings)
    return found


def fuse(
    summaries: Iterable[Summary],
    n_clusters: int | None,
    fusion: Fusion | str,
    rng: np.random.Generator,
    after: Model | None = None,
) -> Model:
    """Global clusters from all sites' summaries; the order in which they arrived does not matter.

    Parameters
    ----------
    summaries
        What every site sent.
    n_clusters
        How many clusters; None: the number is proposed from the evidence, which is then part of the model.
    fusion
        `OneShot` with its settings, or the name of a fusion ("one-shot", "gold").
    rng
        All that is left to chance; the same generator gives the same model.
    after
        The model before: clusters that go on keep their ids, and summaries may be of several rounds.

    Returns
    -------
    Model
        What every site gets back.
    """
    check_n_clusters(n_clusters)
    chosen = fusion_named(fusion) if isinstance(fusion, str) else fusion
    ordered = in_order(summaries, any_round=after is not None)
    if after is None:
        return chosen.fuse(ordered, n_clusters, rng)
    check_before(after, newest(ordered), ordered[0].centroids.shape[1])
    return fuse_after(after, ordered, n_clusters, chosen, rng)


def fuse_after(
    after: Model, ordered: Sequence[Summary], n_clusters: int | None, chosen: Fusion, rng: np.random.Generator
) -> Model:
    """The same, of what is checked and in order, after a model."""
    if isinstance(chosen, Steady):
        chosen = chosen.staying(after)
    return going_on(chosen.fuse(ordered, n_clusters, rng), after, ordered, rng)


def check_n_clusters(n_clusters: int | None) -> None:
    """Refuse what is no number of clusters."""
    if n_clusters is not None and not (isinstance(n_clusters, numbers.Integral) and n_clusters >= 1):
        raise BadSettings(
            f"n_clusters must be a whole number from 1 on, or None to have it proposed, got {n_clusters!r}.",
            "n-clusters",
        )


def check_before(after: Model, terms: Terms, n_features: int) -> None:
    """Refuse a model that summaries of these terms cannot follow on."""
    difference = terms.difference(after.terms, any_round=True)
    if after.centroids.shape[1] != n_features:
        difference = f"it has {after.centroids.shape[1]} features, not {n_features}"
    if difference:
        raise BadMessage(f"The model before does not fit the summaries: {difference}.", "model-before-other")
    if after.terms.round > terms.round:
        raise BadMessage(
            f"The model before is of round {after.terms.round}, and this is round {terms.round}; begin a later one.",
            "model-before-later",
        )


def newest(summaries: Sequence[Summary]) -> Terms:
    """The terms of the latest round."""
    return max((summary.terms for summary in summaries), key=lambda terms: terms.round)


def in_order(summaries: Iterable[Summary], *, any_round: bool = False) -> tuple[Summary, ...]:
    """The summaries by site name; refuse them if they do not fit together."""
    ordered = tuple(sorted(summaries, key=lambda summary: summary.site))
    if not ordered:
        raise BadMessage("There is no summary to fuse; at least one site must answer.", "no-summaries")
    for before, after in pairwise(ordered):
        if before.site == after.site:
            raise BadMessage(f"Site {after.site!r} sent two summaries; fuse one of them.", "two-summaries")
        if before.centroids.shape[1] != after.centroids.shape[1]:
            raise BadMessage(
                f"Site {after.site!r} sent {after.centroids.shape[1]} features, "
                f"site {before.site!r} sent {before.centroids.shape[1]}; all must have the same columns.",
                "features-differ",
            )
        if difference := before.terms.difference(after.terms, any_round=any_round):
            raise BadMessage(
                f"The summary of site {after.site!r} does not fit that of site {before.site!r}: {difference}.",
                "summaries-differ",
            )
    return ordered


@contextmanager
def one_thread() -> Iterator[None]:
    """Work in one thread: sums that several make depend in their last digits on how many there are."""
    # Only what is loaded can be limited.
    import sklearn.cluster  # noqa: F401, PLC0415 (who only merges need not wait for it)

    with threadpool_limits(limits=1):
        yield


def warn_of_fewer(wanted: int | None, found: int) -> None:
    """Say that there are fewer clusters than asked for, as scikit-learn does."""
    if wanted is not None and found < wanted:
        from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 (as above)

        clusters = "1 cluster was" if found == 1 else f"{found} clusters were"
        warnings.warn(
            f"Only {clusters} found, and {wanted} were asked for: the sites' micro-clusters tell no more apart.",
            ConvergenceWarning,
            stacklevel=4,
        )
