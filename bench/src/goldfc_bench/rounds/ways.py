"""Ways to carry clusters from round to round: ours, two that match centroids, and two that learn rows as a stream."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.optimize import linear_sum_assignment

from goldfc import Model, OneShot, Summary, fuse, label
from goldfc._types import FloatArray, IntArray
from goldfc.learning.judge import GO_ON
from goldfc.message.density import shares_of_density
from goldfc.message.descent import Descent
from goldfc.randomness import generator
from goldfc_bench.rounds.scenes import PLANTED

FUSION = OneShot()
# An old centroid is near if it is nearer than this share of what the two nearest old ones are apart.
NEAR = 0.5
NOBODY = "0" * 32
BEST = "best matching of rows"


@dataclass(frozen=True)
class Step:
    """The labels of a round's rows by what was known before it, and after it; and what is said to have happened."""

    before: IntArray
    now: IntArray
    said: tuple[str, ...] = ()
    anew: bool = True  # whether clusters were found anew


# Which cluster now is which before; by the model before, the one now, and all rows.
Match = Callable[[Model, Model, FloatArray], Mapping[int, int]]


class Way(Protocol):
    """One way; it remembers what it needs."""

    def step(self, summaries: Sequence[Summary], rows: FloatArray, fresh: Model, n_clusters: int) -> Step:
        """One round more: `fresh` is the fusion from scratch, and `n_clusters` the truth, for those who must know."""
        ...


@dataclass
class Ours:
    """`fuse(..., after=model)`."""

    model: Model | None = None

    def step(self, summaries: Sequence[Summary], rows: FloatArray, fresh: Model, n_clusters: int) -> Step:  # noqa: ARG002
        """One round more."""
        last = self.model
        self.model = fresh if last is None else fuse(summaries, None, FUSION, generator(0, "server"), after=last)
        said = () if self.model.descent is None else tuple(one.what for one in self.model.descent.changes)
        step = step_of(rows, last, self.model, tuple(what for what in said if what in PLANTED))
        return replace(step, anew=self.model.why != GO_ON)


@dataclass
class Matched:
    """Fused from scratch; a cluster has the id of an old one that it is matched with."""

    match: Match
    model: Model | None = None

    def step(self, summaries: Sequence[Summary], rows: FloatArray, fresh: Model, n_clusters: int) -> Step:  # noqa: ARG002
        """One round more."""
        last, self.model = self.model, fresh
        if last is not None:
            self.model = with_ids(fresh, last, self.match(last, fresh, rows))
        return step_of(rows, last, self.model, ())


def step_of(rows: FloatArray, last: Model | None, model: Model, said: tuple[str, ...]) -> Step:
    """Of the labels by two models."""
    now = label(rows, model)[0]
    return Step(now if last is None else label(rows, last)[0], now, said)


def with_ids(fresh: Model, last: Model, matched: Mapping[int, int]) -> Model:
    """The ids of old clusters for those that they are matched with, and new ones for others."""
    ids, next_id = np.empty(len(fresh.centroids), dtype=np.int64), last.next_id
    for place in range(len(ids)):
        ids[place] = last.ids[matched[place]] if place in matched else next_id
        next_id += place not in matched
    return replace(fresh, descent=Descent(ids, next_id, 1, fresh.found, (NOBODY,), (), (), ()))


def by_centroids(match: Callable[[FloatArray, FloatArray], Mapping[int, int]]) -> Match:
    """A match that needs no more than old and new centroids."""
    return lambda last, fresh, _: match(last.centroids, fresh.centroids)


def nearest_within(old: FloatArray, new: FloatArray) -> dict[int, int]:
    """Every new centroid with the nearest old one, if that is near; of two that want the same one the nearer has it."""
    apart = distances(new, old)
    between = distances(old, old) + np.where(np.eye(len(old)) > 0.0, np.inf, 0.0)
    limit, found, taken = NEAR * between.min(), dict[int, int](), set[int]()
    for place in np.argsort(apart.min(axis=1)).tolist():
        other = int(apart[place].argmin())
        if apart[place, other] <= limit and other not in taken:
            found[place] = other
            taken.add(other)
    return found


def hungarian(old: FloatArray, new: FloatArray) -> dict[int, int]:
    """The matching that is shortest in all."""
    return assigned(distances(new, old))


def by_rows(last: Model, fresh: Model, rows: FloatArray) -> dict[int, int]:
    """The matching by which most rows keep their id; no server has the rows."""
    places = (shares_of_density(model, rows).argmax(axis=1) for model in (fresh, last))
    shared = np.zeros((len(fresh.centroids), len(last.centroids)))
    np.add.at(shared, tuple(places), 1.0)
    return assigned(-shared)


def assigned(cost: FloatArray) -> dict[int, int]:
    """Who is matched with whom at the least cost."""
    return dict(zip(*(side.tolist() for side in linear_sum_assignment(cost)), strict=True))


def distances(one: FloatArray, other: FloatArray) -> FloatArray:
    """As the crow flies."""
    return np.asarray(np.linalg.norm(one[:, None] - other, axis=2))


@dataclass
class Stream:
    """A learner of river's, on pooled rows in the order of the sites."""

    make: Callable[[int, int], object]  # of the number of features, and of clusters
    learner: object = None

    def step(self, summaries: Sequence[Summary], rows: FloatArray, fresh: Model, n_clusters: int) -> Step:  # noqa: ARG002
        """One round more."""
        return self.learn(rows, n_clusters)

    def learn(self, rows: FloatArray, n_clusters: int) -> Step:
        """Row by row."""
        first = self.learner is None
        self.learner = self.make(rows.shape[1], n_clusters) if first else self.learner
        before = None if first else self.labels(rows)
        for row in rows:
            self.learner.learn_one(dict(enumerate(row.tolist())))  # type: ignore[attr-defined]
        now = self.labels(rows)
        return Step(now if before is None else before, now)

    def labels(self, rows: FloatArray) -> IntArray:
        """As it has them by now."""
        predict = self.learner.predict_one  # type: ignore[attr-defined]
        return np.array([predict(dict(enumerate(row.tolist()))) for row in rows], dtype=np.int64)


def dbstream(width: int, n_clusters: int) -> object:  # noqa: ARG001
    """With a radius that follows the number of features, of columns with about unit deviation inside clusters."""
    from river.cluster import DBSTREAM  # noqa: PLC0415 (an extra)

    return DBSTREAM(clustering_threshold=float(np.sqrt(width)), fading_factor=1e-4, intersection_factor=0.3)


def clustream(width: int, n_clusters: int) -> object:  # noqa: ARG001
    """It is told the true number of clusters."""
    from river.cluster import CluStream  # noqa: PLC0415 (an extra)

    return CluStream(n_macro_clusters=n_clusters, max_micro_clusters=100, time_window=5_000, seed=0)


WAYS: dict[str, Callable[[], Way]] = {
    "ours": Ours,
    "nearest old centroid": lambda: Matched(by_centroids(nearest_within)),
    "Hungarian matching": lambda: Matched(by_centroids(hungarian)),
    BEST: lambda: Matched(by_rows),
    "DBSTREAM": lambda: Stream(dbstream),
    "CluStream": lambda: Stream(clustream),
}
