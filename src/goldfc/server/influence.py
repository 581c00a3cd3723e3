"""Leave-one-site-out: how much of the result depends on a single site."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadMessage
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.server.fusions import in_order
from goldfc.server.one_shot import OneShot, pool

# With fewer there is nobody, or only one, left to agree.
LEAST_SITES = 3


@dataclass(frozen=True)
class LeftOut:
    """The result without one site: how far the others' labels stay the same, and how many clusters there are."""

    site: str
    agreement: float  # adjusted Rand index by mass: 1 where nothing changes, about 0 where nothing is left
    clusters: int


def leave_one_out(
    summaries: Sequence[Summary],
    n_clusters: int | None,
    fusion: OneShot,
    rng_of: Callable[[], np.random.Generator],
    model: Model,
) -> Iterator[LeftOut]:
    """Fuse again without each site in turn, in the order of their names; nothing if they are fewer than three.

    With `n_clusters` None there are as many as in the model. `rng_of` gives randomness that begins afresh, so that no
    difference comes from the draw alone.
    """
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 (a page without influence need not wait for it)

    check_fused(model, summaries)
    if missing := set(model.sites) - {summary.site for summary in summaries}:
        raise BadMessage(
            f"The summary of site {min(missing)!r} is missing, but the model was made from it; all are needed to "
            "leave one out.",
            "summary-missing",
        )
    if len(summaries) < LEAST_SITES:
        return
    ordered = in_order(summaries, any_round=model.after is not None)
    for left_out in ordered:
        rest = [summary for summary in ordered if summary is not left_out]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # those who are left may tell fewer apart: it is shown
            without = fusion.fuse(rest, n_clusters or len(model.centroids), rng_of())
        before = np.concatenate([model.labels_of(summary.site) for summary in rest])
        mass = pool(rest, rest[0].layout, by_mass=fusion.task.mass).mass
        agreement = adjusted_rand_index(before, without.micro_labels, mass)
        yield LeftOut(left_out.site, agreement, len(without.centroids))


def check_fused(model: Model, summaries: Sequence[Summary]) -> None:
    """Refuse summaries that the model was not made from."""
    for summary in summaries:
        if summary.site not in model.sites:
            raise BadMessage(
                f"Site {summary.site!r} took no part in this model; its sites are {', '.join(model.sites)}.",
                "no-part-in-model",
            )
        if summary.to_message().digest != model.digest_of(summary.site):
            raise BadMessage(
                f"The model was made from another summary of site {summary.site!r} than this one; "
                "give the one that was fused.",
                "model-of-other-summary",
            )


def adjusted_rand_index(one: IntArray, other: IntArray, mass: FloatArray) -> float:
    """How far two partitions agree, beyond chance, if every label counted as often as its mass says."""
    table = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(table, (one, other), mass)
    both, in_one, in_other = (pairs(those) for those in (table, table.sum(axis=1), table.sum(axis=0)))
    most = (in_one + in_other) / 2.0
    if both == most:
        return 1.0
    by_chance = in_one * in_other / pairs(mass.sum())
    return (both - by_chance) / (most - by_chance)


def pairs(masses: FloatArray) -> float:
    """How many pairs of rows there are in groups of these sizes."""
    return float((masses * (masses - 1.0) / 2.0).sum())
