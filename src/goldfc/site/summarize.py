"""A site's summary: as many micro-clusters, told as exactly, as its people allow."""

import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.learning.finding import Found, find_micro_clusters, measured
from goldfc.learning.k_means import nearest
from goldfc.learning.rows import RowSource
from goldfc.message.columns import UNNAMED, Terms, ranges_of
from goldfc.message.levels import MULTIPLE, Level, Plain, Private, Suppressed
from goldfc.message.summary import LARGEST_MASS, Summary
from goldfc.message.task import Part, Task
from goldfc.site.audit import TELLS_MEMBERS, USUAL, Limits, membership_of
from goldfc.site.learn import Shape, unit_of
from goldfc.site.privacy import (
    Allowed,
    Precision,
    Rules,
    Spread,
    Told,
    expected_auc,
    groups_of,
    ladder,
    merge_small,
    one_mean,
    people_of_each,
    spread_around,
    spread_of,
    steps_of,
    suppressed,
)
from goldfc.site.private.noise import Source
from goldfc.site.private.tell import tell_privately
from goldfc.site.rows import Rows, checked

NO_RULES = Rules()
# A shadow site of a small part of the people has at least so many micro-clusters.
SEVERAL = 20


def summarize(  # noqa: PLR0913 (what it is of, what is asked, and what a site adds)
    rows: FloatArray | RowSource,
    site: str,
    task: Task,
    *,
    withhold: Collection[Part] = (),
    terms: Terms = UNNAMED,
    people: IntArray | None = None,
    steps: Mapping[str, float] | None = None,
    randomness: Source = secrets.token_bytes,
    stands_for: int | None = None,
) -> tuple[Summary, RowLabels]:
    """Find the micro-clusters of a site's rows; a few facts of each may leave, which row is in which stays.

    The same rows give the same message, whoever asks and however often: nothing is learned by asking again; but at the
    level `private` every message has noise of its own, and costs.

    Note: at the level `plain`, a micro-cluster with a single member has that row as its centroid.

    Parameters
    ----------
    rows
        A table of numbers, (rows, features), or a source of one that does not fit into memory.
    site
        The site's name.
    task
        What is asked of it, with the privacy level.
    withhold
        "mass", "shape" or both: what the site does not tell, whatever the task asks for.
    terms
        What the columns are, if they have names.
    people
        Whose every row is, as numbers; by default, somebody else's each.
    steps
        How coarse columns must be told at least, by their names, at the level `suppressed`.
    randomness
        Gives the bytes that noise is made of: the operating system's, unless in a simulation, which then protects
        nobody.
    stands_for
        Where the rows are a sample: how many they are one of.

    Returns
    -------
    summary, micro_clusters
        What leaves; and in which micro-cluster every row is, which stays.
    """
    told = tell(checked(rows, site, people), site, task, Rules(terms, withhold, steps or {}, randomness))
    return as_many(told, stands_for).summary, told.found.labels


def tell(rows: Rows, site: str, task: Task, rules: Rules = NO_RULES, limits: Limits = USUAL) -> Told:
    """What a site would send, by the privacy level of the task."""
    hidden = rules.withhold
    task = replace(task, mass=task.mass and "mass" not in hidden, shape=task.shape and "shape" not in hidden)
    return TELLERS[type(task.level)](rows, site, task, rules, limits)


def tell_plainly(rows: Rows, site: str, task: Task, rules: Rules, limits: Limits) -> Told:  # noqa: ARG001 (as all tellers)
    """All that is asked for."""
    return tell_as(rows, site, Allowed(task, task.scaling == "pooled"), rules)


def tell_suppressed(rows: Rows, site: str, task: Task, rules: Rules, limits: Limits) -> Told:
    """As much as a site's people allow, and as the best attack on it that is known allows."""
    # Most rungs of the ladder ask for as many micro-clusters as the one before.
    find = lru_cache(maxsize=1)(partial(find_at_most, rows, task, rules))
    spread = Spread(spread_of(rows.sample), spread_around(rows, find(task.limit(rows.n_people))))
    for allowed in ladder(spread, rows.n_people, task, site):
        told = tell_as(rows, site, allowed, rules, find(allowed.task.limit(rows.n_people)))
        if len(told.summary.centroids) == 1 and not allowed.is_one_mean:
            continue  # all were merged: one mean can be told more exactly
        told = with_membership(told)
        guess = told.membership
        if guess is None or (guess.auc <= min(TELLS_MEMBERS, limits.most_auc) and guess.found <= limits.most_tpr):
            break
    return told


def tell_noise(rows: Rows, site: str, task: Task, rules: Rules, limits: Limits) -> Told:  # noqa: ARG001 (as all tellers)
    """Noisy sums; which row is nearest to which micro-centroid stays here."""
    summary = tell_privately(rows.source, site, task, rules, rows.people)
    low, high = ranges_of(rules.terms)
    centres, labels = (summary.centroids - low) / (high - low), np.zeros(rows.shape[0], dtype=np.int32)
    found = measured(rows.source, labels, len(centres), lambda own: nearest((own - low) / (high - low), centres))
    return Told(rows, rules, Allowed(task, moments=False), summary, found, np.zeros_like(low))


# What a site does for each privacy level.
TELLERS: dict[type[Level], Callable[[Rows, str, Task, Rules, Limits], Told]] = {
    Plain: tell_plainly,
    Suppressed: tell_suppressed,
    Private: tell_noise,
}


def as_many(told: Told, rows: int | None) -> Told:
    """The same of so many rows, of which these are a sample; None: of these. Counts stay as coarse as they are."""
    if rows is None:
        return told
    summary, smallest = told.summary, told.allowed.task.smallest
    times = min(rows, LARGEST_MASS) / told.rows.shape[0]
    step = 1 if smallest == 1 else MULTIPLE
    mass = None if summary.mass is None else (np.rint(times * summary.mass / step) * step).astype(np.int64)
    moments = summary.moments
    if moments is not None:
        count = float(np.rint(times * moments.count / step) * step if mass is None else mass.sum())
        moments = replace(moments.weighing(count / moments.count), count=count)
    return replace(told, summary=replace(summary, mass=mass, moments=moments))


def find_at_most(rows: Rows, task: Task, rules: Rules, count: int) -> Found:
    """So many micro-clusters, in the scale that the task wants."""
    to_unit = unit_of(rows.moments, task.scaling, rules.terms)
    return find_micro_clusters(rows.source, to_unit, count, np.random.default_rng(0))


def with_membership(told: Told) -> Told:
    """The same, with how well members are told from others."""
    return replace(told, membership=membership_of(told.rows, partial(told_alike, told=told), expected_auc(told)))


def told_alike(rows: Rows, told: Told) -> Summary:
    """Some of the rows of a site, told as exactly as all of them were: no more and no less."""
    task, allowed = told.allowed.task, told.allowed
    if allowed.is_one_mean:
        allowed = one_mean(task, rows.n_people, allowed.coarseness)
    elif task.smallest > 1:
        # At least two micro-clusters, as there were before.
        smallest, rows_each = max(2, min(task.smallest, rows.n_people // 4)), max(task.rows_each, as_large(rows, told))
        allowed = replace(allowed, task=task.with_smallest(smallest, min(rows_each, rows.n_people // 2)))
    return tell_as(rows, told.summary.site, allowed, told.rules).summary


def as_large(rows: Rows, told: Told) -> int:
    """Of a small part of the people, so many for a micro-cluster that it tells no less of each than half of them would.

    Half as many as in the micro-clusters of that half, to be sure, and no more than leave several micro-clusters.
    """
    if 4 * rows.n_people > told.rows.n_people:
        return 1
    return min(told.rows.n_people // (4 * len(told.summary.centroids)), rows.n_people // SEVERAL)


def tell_as(rows: Rows, site: str, allowed: Allowed, rules: Rules, found: Found | None = None) -> Told:
    """As much as is allowed, of micro-clusters that may have been found already."""
    task, moments = allowed.task, rows.moments
    found = found or find_at_most(rows, task, rules, task.limit(rows.n_people))
    steps = steps_of(rows, rules, allowed.coarseness)
    if task.smallest > 1:
        to_unit = unit_of(moments, task.scaling, rules.terms)
        finest = steps.around(found.micro, moments).finest(rows.n_people)
        groups = groups_of(found, to_unit(found.micro.centroids), finest, rows.people)
        found = found.merged(merge_small(groups, task.smallest))
    each = people_of_each(found.labels, rows.people)
    precision = Precision(each, rows.n_people, steps, steps.around(found.micro, moments))
    summary = Summary(
        site,
        found.micro.centroids,
        mass=found.micro.mass.astype(np.int64) if task.mass else None,
        moments=moments if allowed.moments else None,
        level=task.level,
        terms=rules.terms,
    )
    numbers = summary.layout.numbers
    shape = Shape(found, numbers) if task.shape and len(numbers) else None
    if task.smallest > 1:
        summary = suppressed(summary, rows, precision, shape)
    elif shape:
        rows.sweep(shape)
        summary = replace(summary, shape=shape.mean)
    return Told(rows, rules, allowed, summary, found, precision.grid)
