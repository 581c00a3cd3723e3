"""A site's summary at the level `private`."""

import hashlib
from typing import cast

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.micro_clusters import form_of_shape
from goldfc.learning.rows import RowSource
from goldfc.message.columns import Terms, ranges_of
from goldfc.message.levels import Private
from goldfc.message.message import canonical_json
from goldfc.message.summary import Summary
from goldfc.message.task import Task
from goldfc.site.privacy import Rules
from goldfc.site.private.budget import rho_of
from goldfc.site.private.curator import Curator, first_rows
from goldfc.site.private.mechanism import find_private


def tell_privately(source: RowSource, site: str, task: Task, rules: Rules, people: IntArray | None = None) -> Summary:
    """What leaves a site: made of noisy sums alone."""
    level, terms, withhold = cast(Private, task.level), rules.terms, rules.withhold
    low, high = ranges_of(terms)
    layout = terms.layout(len(low))
    curator = Curator(source, first_rows(people, level.most_rows), level.most_rows, rules.randomness)
    found = find_private(curator, low, high, rho_of(*level.budget), task.most, public_generator(terms, site))
    return Summary(
        site,
        in_steps(np.clip(found.centroids, low, high), rules),
        mass=np.maximum(np.rint(found.mass), 1.0).astype(np.int64) if task.mass and "mass" not in withhold else None,
        shape=shape_of(found.scatter, layout.numbers) if task.shape and "shape" not in withhold else None,
        error=found.noise[layout.numbers],
        level=level,
        terms=terms,
    )


def in_steps(centroids: FloatArray, rules: Rules) -> FloatArray:
    """As coarse as was agreed, or as the site itself wants it."""
    least = [max(column.step or 0.0, rules.steps.get(column.name, 0.0)) for column in rules.terms.features]
    return np.column_stack(
        [np.rint(own / step) * step if step else own for own, step in zip(centroids.T, least, strict=True)]
    )


def shape_of(scatter: FloatArray, numbers: IntArray) -> FloatArray | None:
    """How numbers lie around their centroids, as it travels."""
    if not len(numbers):
        return None
    own = scatter[np.ix_(numbers, numbers)]
    return own if len(form_of_shape(len(numbers))) == 2 else np.diagonal(own).copy()


def public_generator(terms: Terms, site: str) -> np.random.Generator:
    """Where a mechanism draws what has nothing to do with rows; anybody may know it."""
    public = canonical_json([terms.federation, terms.round, site]).encode()
    return np.random.default_rng(list(hashlib.sha256(public).digest()))
