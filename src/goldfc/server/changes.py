"""Who goes on: which clusters of a model are those of the one before it, and what has changed.

Two tables compare the clusters before with those now, both in shares of all rows. Today's micro-clusters are labelled
by the model before; and rows of before, which nobody has any more, are drawn as the model before tells its clusters,
and labelled by today's. Micro-clusters that were there before and still are stand for themselves.

A cluster before is *gone* where few rows are today; a cluster today is *new* where few were. Of all others, each has
the one that it has most in common with: a cluster goes on where two have chosen each other. Who has chosen one that
goes on in another is a part that has split off, or has merged into it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from goldfc._types import BoolArray, FloatArray, IntArray
from goldfc.errors import BadMessage
from goldfc.learning.micro_clusters import diagonal_of
from goldfc.message.density import is_far, shares_of_density
from goldfc.message.descent import (
    LARGEST_ID,
    MOST_ANCESTORS,
    MOST_CHANGES,
    MOST_MOVES,
    MOST_SITES_NAMED,
    Change,
    Descent,
    Move,
    What,
)
from goldfc.message.model import Model
from goldfc.message.summary import Summary

# Rows that are drawn of every cluster of the model before.
DRAWN_EACH = 200
# A cluster is new, or gone, where there was, or is, less than this of its rows.
FEW_ROWS = 0.25
# What two clusters have in common only counts if it is so much of either.
SOME = 0.15
# A cluster has grown if its share of all rows is so many times what it was, and by so much.
TIMES_AS_LARGE, AT_LEAST = 1.5, 0.02
# Clusters are found anew when there are so many times the rows that there were when they were last found.
OUTGROWN = 1.5
# It has moved if its mean has, by so many standard deviations of its rows, or by such a share of them.
MOVED, MOVED_SHARE = 0.5, 0.2


def going_on(model: Model, before: Model, summaries: Sequence[Summary], rng: np.random.Generator) -> Model:
    """The model, with the ids of clusters that were there before; what has changed is part of it."""
    tables = compare(before, model, summaries, rng)
    ids, next_id = ids_after(tables.heir, before)
    changes = tuple(Telling(before, model, ids, tables).all())[:MOST_CHANGES]
    past, rows = before.descent, float(model.mass.sum())
    return replace(
        in_order_of_ids(model, ids),
        descent=Descent(
            ids=np.sort(ids),
            next_id=next_id,
            generation=1 + (past.generation if past else 0),
            found=rows if has_outgrown(before, rows) else before.found,
            ancestors=(*(past.ancestors if past else ()), before.digest)[-MOST_ANCESTORS:],
            joined=tuple(site for site in model.sites if site not in before.sites),
            left=tuple(site for site in before.sites if site not in model.sites),
            changes=changes,
        ),
    )


def has_outgrown(before: Model, rows: float) -> bool:
    """Whether there are so many more rows by now that clusters are to be found anew."""
    return rows >= OUTGROWN * before.found


# --- the two tables ---


@dataclass(frozen=True)
class Tables:
    """Shares of all rows: of clusters before (down) and now (across); the last one is far from all."""

    today: FloatArray  # (before + 1, now) today's rows, labelled by the model before
    then: FloatArray  # (before, now + 1) yesterday's rows, labelled by the model now

    @cached_property
    def common(self) -> FloatArray:
        """How much two clusters have in common: the mean of what both tables say."""
        return (self.today[:-1] + self.then[:, :-1]) / 2.0

    @cached_property
    def size_before(self) -> FloatArray:
        """The share of every cluster then."""
        return np.asarray(self.then.sum(axis=1))

    @cached_property
    def size_now(self) -> FloatArray:
        """The share of every cluster today."""
        return np.asarray(self.today.sum(axis=0))

    @cached_property
    def mutual(self) -> BoolArray:
        """Which two have most of their rows in common, whoever labels them."""
        today, then = self.today[:-1], self.then[:, :-1]
        return np.asarray((2.0 * today > self.size_now) & (2.0 * then > self.size_before[:, None]))

    @cached_property
    def gone(self) -> BoolArray:
        """Clusters before that few rows of today belong to."""
        return np.asarray((self.today[:-1].sum(axis=1) < FEW_ROWS * self.size_before) & ~self.mutual.any(axis=1))

    @cached_property
    def new(self) -> BoolArray:
        """Clusters now that few rows of then belonged to."""
        return np.asarray((self.then[:, :-1].sum(axis=0) < FEW_ROWS * self.size_now) & ~self.mutual.any(axis=0))

    @cached_property
    def bond(self) -> FloatArray:
        """What those have in common that are neither gone nor new, where it is some of either."""
        some = SOME * np.minimum(self.size_before[:, None], self.size_now)
        counts = (self.common >= some) & ~self.gone[:, None] & ~self.new
        return np.where(counts, self.common, 0.0)

    @cached_property
    def parent(self) -> IntArray:
        """Of every cluster now the one before that it has most from, or -1."""
        return np.where(self.bond.any(axis=0), self.bond.argmax(axis=0), -1)

    @cached_property
    def child(self) -> IntArray:
        """Of every cluster before the one now that has most of it, or -1."""
        return np.where(self.bond.any(axis=1), self.bond.argmax(axis=1), -1)

    @cached_property
    def heir(self) -> IntArray:
        """Of every cluster now the one before that goes on in it, or -1."""
        mine = np.where(self.parent >= 0, self.child[self.parent], -1)
        return np.where(mine == np.arange(len(self.parent)), self.parent, -1)


def compare(before: Model, now: Model, summaries: Sequence[Summary], rng: np.random.Generator) -> Tables:
    """Both tables; `summaries` are those of the model now, in the order of its sites."""
    points = np.vstack([summary.centroids for summary in summaries])
    mass = np.concatenate([summary.masses for summary in summaries])
    counted = table_of(labels_by(before, points), now.micro_labels, mass, (len(before.mass) + 1, len(now.mass)))
    today = counted / counted.sum(axis=0) * (now.mass / now.mass.sum())
    drawn = np.vstack([drawn_then(before, now, cluster, rng) for cluster in range(len(before.mass))])
    same = still_there(before, now, summaries)
    rest = np.maximum(before.mass - same.sum(axis=1), 0.0)
    then = same + rest[:, None] * drawn
    return Tables(today, then / then.sum(axis=1, keepdims=True) * (before.mass / before.mass.sum())[:, None])


def labels_by(model: Model, points: FloatArray) -> IntArray:
    """The place of the likeliest cluster of every point; of what is far from all, the place after the last."""
    likeliest = shares_of_density(model, points).argmax(axis=1)
    return np.where(is_far(model, points), len(model.mass), likeliest)


def table_of(one: IntArray, other: IntArray, mass: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """How much mass has which two labels."""
    table: FloatArray = np.zeros(shape)
    np.add.at(table, (one, other), mass)
    return table


def still_there(before: Model, now: Model, summaries: Sequence[Summary]) -> FloatArray:
    """The mass of micro-clusters that both models were made from, by their clusters before and now."""
    table = np.zeros((len(before.mass), len(now.mass) + 1))
    for summary in summaries:
        if summary.site in before.sites and before.digest_of(summary.site) == now.digest_of(summary.site):
            labels = before.labels_of(summary.site), now.labels_of(summary.site)
            table += table_of(*labels, summary.masses, (len(before.mass), len(now.mass) + 1))
    return table


def drawn_then(before: Model, now: Model, cluster: int, rng: np.random.Generator) -> FloatArray:
    """Which share of the rows of a cluster before is in which cluster now, or far from all."""
    rows = draw_rows(before, cluster, rng)
    return np.asarray(np.bincount(labels_by(now, rows), minlength=len(now.mass) + 1) / len(rows))


def draw_rows(model: Model, cluster: int, rng: np.random.Generator) -> FloatArray:
    """Rows as the model tells a cluster."""
    layout, rows = model.layout, np.empty((DRAWN_EACH, model.centroids.shape[1]))
    origins = origins_of(model, cluster, rng)
    if len(layout.numbers):
        covariance = model.covariance[cluster] if model.covariance.ndim == 3 else model.covariance
        normal = rng.normal(size=(DRAWN_EACH, len(layout.numbers)))
        around = normal * np.sqrt(covariance) if covariance.ndim == 1 else normal @ np.linalg.cholesky(covariance).T
        rows[:, layout.numbers] = origins[:, layout.numbers] + around
    for features in layout.categories:
        rows[:, features] = draw_categories(np.clip(model.centroids[cluster, features], 0.0, 1.0), rng)
    return rows


def origins_of(model: Model, cluster: int, rng: np.random.Generator) -> FloatArray:
    """What rows lie around: the centroid, or prototypes, as often as their mass says."""
    if model.prototypes is None:
        return np.tile(model.centroids[cluster], (DRAWN_EACH, 1))
    own = model.prototypes.labels == cluster
    mass = model.prototypes.mass[own]
    chosen: FloatArray = model.prototypes.points[own][rng.choice(len(mass), DRAWN_EACH, p=mass / mass.sum())]
    return chosen


def draw_categories(shares: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Levels of a category as often as its shares say; a single share is that of yes."""
    if len(shares) == 1:
        return (rng.random((DRAWN_EACH, 1)) < shares).astype(np.float64)
    usual = shares / shares.sum() if shares.any() else np.full(len(shares), 1.0 / len(shares))
    return rng.multinomial(1, usual, size=DRAWN_EACH).astype(np.float64)


# --- ids ---


def ids_after(heir: IntArray, before: Model) -> tuple[IntArray, int]:
    """The id of every cluster now, and the next one; who does not go on gets one that no cluster ever had."""
    born = np.flatnonzero(heir < 0)
    next_id = before.next_id + len(born)
    if next_id > LARGEST_ID:
        raise BadMessage("The model before leaves no ids for new clusters; begin without it.", "ids-used-up")
    ids = before.ids[np.maximum(heir, 0)].astype(np.int64)
    ids[born] = np.arange(before.next_id, next_id)
    return ids, next_id


def in_order_of_ids(model: Model, ids: IntArray) -> Model:
    """The same clusters, numbered as their ids ascend."""
    order = np.argsort(ids)
    place = np.argsort(order)
    prototypes = model.prototypes
    if prototypes is not None:
        labels = place[prototypes.labels]
        by_label = np.argsort(labels, kind="stable")
        prototypes = replace(
            prototypes,
            points=prototypes.points[by_label],
            labels=labels[by_label],
            mass=prototypes.mass[by_label],
        )
    return replace(
        model,
        centroids=model.centroids[order],
        mass=model.mass[order],
        covariance=model.covariance[order] if model.covariance.ndim == 3 else model.covariance,
        reach=model.reach[order],
        micro_labels=place[model.micro_labels],
        prototypes=prototypes,
    )


# --- what has changed ---


@dataclass(frozen=True)
class Telling:
    """Says what became of clusters: `before` and `now` are their places in the two models."""

    before: Model
    now: Model
    ids: IntArray
    tables: Tables

    def all(self) -> Iterator[Change]:
        """All changes: first those of who is there, then those of size and place."""
        tables = self.tables
        for place in places(tables.new | (tables.parent < 0)):
            yield self.change("emerged", [], [place])
        for place in places(tables.gone | (tables.child < 0)):
            yield self.change("disappeared", [place], [])
        for place in range(len(self.before.mass)):
            if len(parts := places(tables.parent == place)) > 1:
                yield self.change("split", [place], parts)
        for place in range(len(self.now.mass)):
            if len(parts := places(tables.child == place)) > 1:
                yield self.change("merged", parts, [place])
        for place in places(tables.heir >= 0):
            yield from self.of_one(int(tables.heir[place]), place)

    def of_one(self, was: int, place: int) -> Iterator[Change]:
        """Of a cluster that goes on, unless it has split or others have merged into it: its size, and its place."""
        tables = self.tables
        if (tables.parent == was).sum() > 1 or (tables.child == place).sum() > 1:
            return
        then, today = tables.size_before[was], tables.size_now[place]
        if abs(today - then) >= AT_LEAST and max(today, then) >= TIMES_AS_LARGE * min(today, then):
            yield self.change("grew" if today > then else "shrank", [was], [place])
        if moves := moves_of(self.before, self.now, was, place):
            yield self.change("moved", [was], [place], moves)

    def change(self, what: What, before: Sequence[int], now: Sequence[int], moves: Sequence[Move] = ()) -> Change:
        """As it is told."""
        there = (self.now, now) if len(now) else (self.before, before)
        return Change(
            what=what,
            before=tuple(sorted(self.before.ids[list(before)].tolist())),
            now=tuple(sorted(self.ids[list(now)].tolist())),
            share_before=share_of(self.tables.size_before[list(before)]),
            share_now=share_of(self.tables.size_now[list(now)]),
            moves=tuple(moves),
            sites=sites_in(*there),
        )


def places(where: BoolArray) -> list[int]:
    """Where it is so."""
    return [int(place) for place in np.flatnonzero(where)]


def share_of(sizes: FloatArray) -> float:
    """Together, to four decimals: more would say nothing."""
    return round(min(1.0, float(sizes.sum())), 4)


def moves_of(before: Model, now: Model, was: int, place: int) -> list[Move]:
    """The features that have moved, those first that have moved furthest."""
    far = (now.centroids[place] - before.centroids[was]) / least_moves_of(before, was)
    furthest = np.argsort(-np.abs(far), kind="stable")[:MOST_MOVES]
    return [
        Move(feature=int(f), before=float(before.centroids[was, f]), now=float(now.centroids[place, f]))
        for f in furthest
        if abs(far[f]) >= 1.0
    ]


def least_moves_of(model: Model, cluster: int) -> FloatArray:
    """How far a mean must have moved, of every feature."""
    steps = np.full(model.centroids.shape[1], MOVED_SHARE)
    covariance = model.covariance[cluster] if model.covariance.ndim == 3 else model.covariance
    variance = diagonal_of(covariance)[: len(model.layout.numbers)]
    if model.prototypes is not None:
        own = model.prototypes.labels == cluster
        variance = variance + model.prototypes.points[own][:, model.layout.numbers].var(axis=0)
    steps[model.layout.numbers] = MOVED * np.sqrt(variance)
    return steps


def sites_in(model: Model, clusters: Sequence[int]) -> tuple[str, ...]:
    """Who has micro-clusters in them; of many, those with the most."""
    there = np.isin(model.micro_labels, list(clusters))
    counts = [(-int(there[model.own(site)].sum()), site) for site in model.sites]
    return tuple(sorted(site for count, site in sorted(counts)[:MOST_SITES_NAMED] if count))
