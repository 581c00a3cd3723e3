"""The site's side: summarise its own rows, and label them once the model is back."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import NoReturn

import numpy as np

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.errors import BadRows
from goldfc.learning.moments import LARGEST_VALUE, Moments
from goldfc.learning.rows import RowSource, as_source, blocks_of, sample_of
from goldfc.message.columns import UNNAMED, Terms
from goldfc.message.summary import Summary
from goldfc.message.task import Part, Task
from goldfc.site.audit import TELLS_MEMBERS, USUAL, Limits, membership_of
from goldfc.site.learn import ends_of, find, measure, moments_of, renamed, shape_of, unit_of
from goldfc.site.privacy import (
    SAMPLE,
    Allowed,
    Precision,
    Spread,
    Told,
    count_people,
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


def summarize(
    rows: FloatArray | RowSource,
    site: str,
    task: Task,
    *,
    withhold: Collection[Part] = (),
    terms: Terms = UNNAMED,
    people: IntArray | None = None,
    steps: Mapping[str, float] | None = None,
) -> tuple[Summary, RowLabels]:
    """Find the micro-clusters of a site's rows; a few facts of each may leave, which row is in which stays.

    The same rows give the same message, whoever asks and however often: nothing is learned by asking again. A site may
    `withhold` mass or shape, whatever the task asks for. `people` says whose every row is (by default, somebody else's
    each), and `steps` how coarse columns must be told at least; both count if the task has a `smallest`.

    Note: if the task sets no `smallest`, a micro-cluster with a single member has that row as its centroid.
    """
    told = tell(rows, site, task, withhold=withhold, terms=terms, people=people, steps=steps)
    return told.summary, told.micro_clusters


def tell(  # noqa: PLR0913 (most have a default)
    rows: FloatArray | RowSource,
    site: str,
    task: Task,
    *,
    withhold: Collection[Part] = (),
    terms: Terms = UNNAMED,
    people: IntArray | None = None,
    steps: Mapping[str, float] | None = None,
    limits: Limits = USUAL,
) -> Told:
    """As much as a site's people allow, and as the best attack on it that is known allows."""
    source = checked(rows, site)
    task = replace(task, shape=task.shape and "shape" not in withhold, mass=task.mass and "mass" not in withhold)
    moments = moments_of(source)
    if task.smallest == 1:
        return tell_as(source, site, Allowed(task, task.scaling == "pooled"), moments, terms)
    spread = spread_at(source, moments, task, terms, people)
    for allowed in ladder(spread, count_people(source, people), task, site):
        told = tell_as(source, site, allowed, moments, terms, people, steps)
        if len(told.summary.centroids) == 1 and not allowed.is_one_mean:
            continue  # all were merged: one mean can be told more exactly
        told = measured(told, source, people, steps)
        guess = told.membership
        if guess is None or (guess.auc <= min(TELLS_MEMBERS, limits.most_auc) and guess.found <= limits.most_tpr):
            break
    return told


def spread_at(source: RowSource, moments: Moments, task: Task, terms: Terms, people: IntArray | None = None) -> Spread:
    """How the rows of a site spread, around their mean and around the micro-centroids that were asked for."""
    labels = find(source, unit_of(moments, task.scaling, terms), task, count_people(source, people))
    around = spread_around(source, labels, measure(source, labels).mean)
    return Spread(spread_of(sample_of(source, SAMPLE)), around)


def measured(
    told: Told, rows: FloatArray | RowSource, people: IntArray | None = None, steps: Mapping[str, float] | None = None
) -> Told:
    """The same, with how well members are told from others."""
    source, again = as_source(rows), partial(alike, told=told, steps=steps)
    return replace(told, membership=membership_of(source, again, people, expected_auc(told, source, people)))


def alike(
    rows: FloatArray | RowSource,
    people: IntArray | None = None,
    *,
    told: Told,
    steps: Mapping[str, float] | None = None,
) -> Summary:
    """Some of the rows of a site, told as exactly as all of them were: no more and no less."""
    source = as_source(rows)
    n_people, task, allowed = count_people(source, people), told.allowed.task, told.allowed
    if allowed.is_one_mean:
        allowed = one_mean(task, n_people, allowed.coarseness)
    elif task.smallest > 1:
        # At least two micro-clusters, as there were before.
        smallest, rows_each = max(2, min(task.smallest, n_people // 4)), min(task.rows_each, n_people // 2)
        allowed = replace(allowed, task=task.with_smallest(smallest, rows_each))
    summary = told.summary
    return tell_as(source, summary.site, allowed, moments_of(source), summary.terms, people, steps).summary


def tell_as(
    source: RowSource,
    site: str,
    allowed: Allowed,
    moments: Moments,
    terms: Terms,
    people: IntArray | None = None,
    steps: Mapping[str, float] | None = None,
) -> Told:
    """As much as is allowed."""
    task, n_people = allowed.task, count_people(source, people)
    to_unit = unit_of(moments, task.scaling, terms)
    labels = find(source, to_unit, task, n_people)
    micro = measure(source, labels)
    of_all = steps_of(source, moments, terms, allowed.coarseness, steps)
    if task.smallest > 1:
        ends = ends_of(source, labels, of_all.around(micro, moments).finest(n_people))
        into = merge_small(groups_of(micro, ends, to_unit(micro.mean), labels, people), task.smallest)
        labels, micro = renamed(labels, into), micro.merged(into)
    numbers = terms.layout(source.shape[1]).numbers
    summary = Summary(
        site,
        micro.mean,
        mass=micro.size if task.mass else None,
        shape=shape_of(source, labels, micro.mean, numbers) if task.shape else None,
        moments=moments if allowed.moments else None,
        level=task.level,
        terms=terms,
    )
    precision = Precision(people_of_each(labels, people), n_people, of_all, of_all.around(micro, moments))
    if task.smallest > 1:
        summary = suppressed(summary, source, moments, precision)
    return Told(summary, labels, allowed, micro.mean, precision.grid)


def checked(rows: FloatArray | RowSource, site: str) -> RowSource:
    """Rows as they can be learned from, or a sentence that says what is wrong with them."""
    if isinstance(rows, np.ndarray):
        rows = np.require(rows, np.float64, ["C"])
        if rows.ndim != 2:
            refuse_shape(rows.shape, site)
    source = as_source(rows)
    if 0 in source.shape:
        refuse_shape(source.shape, site)
    for where, block in blocks_of(source):
        if not (block.max() <= LARGEST_VALUE and block.min() >= -LARGEST_VALUE):  # not so if anything is not a number
            row, column = np.argwhere(~(np.abs(block) <= LARGEST_VALUE))[0]
            raise BadRows(
                f"Site {site!r}: row {where.start + row}, column {column} holds {block[row, column]}; "
                f"fill or drop missing values, and rescale values beyond {LARGEST_VALUE:g}."
            )
    return source


def refuse_shape(shape: tuple[int, ...], site: str) -> NoReturn:
    """There must be something to learn from."""
    raise BadRows(
        f"The rows of site {site!r} must form a table with at least one row and one column; their shape is {shape}."
    )
