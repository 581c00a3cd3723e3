"""Where micro-clusters are on a map, and what becomes of them if there were more clusters, or fewer."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.micro_clusters import means_of
from goldfc.learning.mixture import whiten
from goldfc.learning.ward import grow_tree
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.report.profiles import Profiles, correlation_inside

# The map.
WIDTH, HEIGHT, EDGE, LARGEST_DISC, LEAST_DISC = 720.0, 430.0, 26.0, 17.0, 2.5
# Of very many discs the largest is smaller, so that they do not cover each other.
ROOM_OF_DISCS = 230.0
# Less than this share of the largest mass is as good as this.
LEAST_MASS = 1e-9
# How many clusters fewer and more the slider goes.
FEWER, MORE = 8, 4
# More points than this are no picture, and the page would be large.
MOST_POINTS = 3_000
# Columns that are correlated more than all but this are one direction.
RIDGE = 1e-3
LETTERS = "abcdefghijklmnopqrstuvwxyz"

What = Literal["micro-cluster", "prototype", "mean"]
Origin = Literal["merged", "taken", "split", "level"]


@dataclass(frozen=True)
class Terrain:
    """Points of the map: micro-clusters where their summaries are given, otherwise what the model has instead."""

    what: What
    points: FloatArray  # (points, features)
    mass: FloatArray  # the largest is 1
    labels: IntArray  # the cluster of each, by its place in the model
    titles: tuple[str, ...]
    flat: FloatArray  # (points, directions): where distances are those that the clusters' covariance means

    @classmethod
    def of(cls, model: Model, summaries: Sequence[Summary], profiles: Profiles) -> "Terrain":
        """What is known of where rows are."""
        what, points, mass, labels, titles = seen_in(model, summaries)
        chosen = np.sort(np.argsort(-mass, kind="stable")[:MOST_POINTS])
        flat = flattened(model, points[chosen], profiles)
        relative = np.maximum(mass[chosen] / mass.max(), LEAST_MASS)
        return cls(what, points[chosen], relative, labels[chosen], tuple(titles[n] for n in chosen), flat)

    def places(self) -> FloatArray:
        """On the map."""
        return on_the_map(self.flat @ directions(self.flat, self.mass, self.labels).T)

    def radii(self) -> FloatArray:
        """Areas are as masses are."""
        largest = min(LARGEST_DISC, ROOM_OF_DISCS / math.sqrt(len(self.mass)))
        return np.asarray(np.maximum(largest * np.sqrt(self.mass / self.mass.max()), LEAST_DISC))


@dataclass(frozen=True)
class Stop:
    """One position of the slider: so many groups, what each is called, and how they come from those beside them."""

    n_groups: int
    origin: Origin
    groups: IntArray  # (points,) the group of each
    names: tuple[str, ...]  # of every group: 0+3, 2a
    of: tuple[int, ...]  # of every group: the place of the cluster that most of it is from
    sentence: str


def seen_in(
    model: Model, summaries: Sequence[Summary]
) -> tuple[What, FloatArray, FloatArray, IntArray, tuple[str, ...]]:
    """What is known of where rows are: micro-clusters, prototypes, or no more than the clusters' means."""
    told = {summary.site: summary for summary in summaries}
    if set(told) == set(model.sites):
        ordered = [told[site] for site in model.sites]
        mass = np.concatenate([mass_of(one) for one in ordered])
        rows = [f", {m:,} rows" if one.mass is not None else "" for one in ordered for m in mass_of(one).tolist()]
        titles = tuple(
            f"{site}{own}, {100.0 * sure:.0f} % certain"
            for site, own, sure in zip(model.micro_sites, rows, model.micro_certainty, strict=True)
        )
        points = np.vstack([one.centroids for one in ordered])
        return "micro-cluster", points, mass.astype(np.float64), model.micro_labels, titles
    if model.prototypes is not None:
        known = model.prototypes
        return "prototype", known.points, known.mass, known.labels, tuple(f"{m:,.0f} rows" for m in known.mass)
    labels = np.arange(len(model.centroids))
    return "mean", model.centroids, model.mass, labels, tuple(f"{mass:,.0f} rows" for mass in model.mass)


def mass_of(summary: Summary) -> IntArray:
    """Rows in every micro-cluster; where they are withheld, all count alike."""
    return np.ones(len(summary.centroids), dtype=np.int64) if summary.mass is None else summary.mass


def flattened(model: Model, points: FloatArray, profiles: Profiles) -> FloatArray:
    """Points where rows of a cluster lie round; of clusters that are not convex, in standard deviations of all."""
    unit = profiles.unit(points)
    if model.prototypes is not None:
        return unit
    steps = profiles.steps.mean(axis=0)
    correlation = correlation_inside(model)
    return whiten(unit / steps, (1.0 - RIDGE) * correlation + RIDGE * np.eye(len(steps)))


def directions(flat: FloatArray, mass: FloatArray, labels: IntArray) -> FloatArray:
    """The two in which clusters are furthest apart; where fewer tell them apart, those in which points are."""
    centred = flat - np.average(flat, axis=0, weights=mass)
    means = means_of(centred, np.unique(labels, return_inverse=True)[1], mass)
    weight = np.bincount(np.unique(labels, return_inverse=True)[1], weights=mass)
    found = leading(means * np.sqrt(weight)[:, None], 2)
    rest = centred - centred @ found.T @ found
    return np.vstack([found, leading(rest * np.sqrt(mass)[:, None], 2 - len(found))])


def leading(points: FloatArray, most: int) -> FloatArray:
    """At most so many directions in which points are furthest from 0; the largest part of each is positive."""
    _, sizes, axes = np.linalg.svd(points, full_matrices=False)
    axes = axes[: int((sizes[:most] > 1e-6 * max(float(sizes[0]), 1e-300)).sum())]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    return np.asarray(axes * np.sign(largest))


def on_the_map(places: FloatArray) -> FloatArray:
    """Both directions at one scale, in the middle of the drawing."""
    both = np.hstack([places, np.zeros((len(places), 2 - places.shape[1]))])
    low, high = both.min(axis=0), both.max(axis=0)
    room = np.array([WIDTH, HEIGHT]) - 2.0 * EDGE
    scale = (room / np.maximum(high - low, 1e-9)).min()
    return np.asarray((both - (low + high) / 2.0) * min(scale, 1e12) * [1.0, -1.0] + np.array([WIDTH, HEIGHT]) / 2.0)


def stops(
    model: Model, terrain: Terrain, profiles: Profiles, ids: Sequence[int], wanted: Sequence[int]
) -> tuple[Stop, ...]:
    """All numbers of clusters that the slider has, ascending, with what changes from one to the next.

    Fewer are the clusters of the model, merged where that costs least; more are cut further where that gains most;
    levels are as the fusion found them. `wanted` are numbers that something speaks for.
    """
    taken = stop_of(terrain, ids, "taken", terrain.labels, "The clusters of this model.")
    found = [
        *(stop_of(terrain, ids, "merged", *step) for step in merged(terrain, profiles, ids, min([*wanted, len(ids)]))),
        *(stop_of(terrain, ids, "split", *step) for step in split(terrain, profiles, ids, max([*wanted, len(ids)]))),
        *(stop_of(terrain, ids, "level", *level) for level in finer_levels(model, terrain)),
        taken,
    ]
    by_number = {stop.n_groups: stop for stop in found}
    return tuple(by_number[number] for number in sorted(by_number))


def stop_of(terrain: Terrain, ids: Sequence[int], origin: Origin, groups: IntArray, sentence: str) -> Stop:
    """Call every group after the cluster that most of it is from; of several from one, the largest is a."""
    n_groups = len(ids) if origin == "taken" else int(groups.max()) + 1
    table = np.zeros((n_groups, len(ids)))
    np.add.at(table, (groups, terrain.labels), terrain.mass)
    of = np.arange(len(ids)) if origin == "taken" else table.argmax(axis=1)
    if origin == "merged":
        names = ["+".join(str(ids[place]) for place in np.flatnonzero(row).tolist()) for row in table]
    else:
        names = [f"{ids[place]}{letter}" for place, letter in zip(of, letters(of, table.sum(axis=1)), strict=True)]
    return Stop(n_groups, origin, groups, tuple(names), tuple(of.tolist()), sentence)


def letters(of: IntArray, mass: FloatArray) -> list[str]:
    """For every group a letter, by its size, if there are several from one cluster."""
    found = [""] * len(of)
    for place in np.unique(of):
        own = np.flatnonzero(of == place)
        for rank, group in enumerate(own[np.argsort(-mass[own], kind="stable")] if len(own) > 1 else ()):
            found[group] = LETTERS[rank] if rank < len(LETTERS) else f"-{rank + 1}"
    return found


def finer_levels(model: Model, terrain: Terrain) -> Iterator[tuple[IntArray, str]]:
    """The partitions that the fusion found on its way to the clusters."""
    if terrain.what != "micro-cluster" or len(terrain.labels) < len(model.micro_labels):
        return
    for level in model.levels.labels.T:
        groups = np.unique(level, return_inverse=True)[1]
        if groups.max() >= len(model.centroids):
            yield groups, f"{int(groups.max()) + 1} groups, as the fusion found them on its way to the clusters."


def merged(terrain: Terrain, profiles: Profiles, ids: Sequence[int], least: int) -> Iterator[tuple[IntArray, str]]:
    """Fewer and fewer: the two are merged of which that costs least."""
    present, own = np.unique(terrain.labels, return_inverse=True)
    if len(present) < len(ids) or len(ids) < 3:
        return
    mass = np.bincount(own, weights=terrain.mass).astype(np.float64)
    tree = grow_tree(means_of(terrain.flat, own, terrain.mass), mass)
    before = np.arange(len(ids))
    for number in range(len(ids) - 1, max(2, min(least, len(ids) - FEWER)) - 1, -1):
        groups = tree.cut(number)
        parts = [before == part for part in joined(before, groups)]
        names = ["+".join(str(ids[place]) for place in np.flatnonzero(part).tolist()) for part in parts]
        means = [np.average(profiles.means[part], axis=0, weights=mass[part]) for part in parts]
        told = profiles.apart(means[0], means[1], profiles.steps.mean(axis=0))
        yield groups[terrain.labels], f"{names[0]} and {names[1]} become one; they differ in {told or 'little'}."
        before = groups


def joined(before: IntArray, after: IntArray) -> list[int]:
    """Which two groups became one."""
    targets = [int(after[before == group][0]) for group in range(int(before.max()) + 1)]
    return [group for group, target in enumerate(targets) if targets.count(target) == 2]


def split(terrain: Terrain, profiles: Profiles, ids: Sequence[int], most: int) -> Iterator[tuple[IntArray, str]]:
    """More and more: the group is cut in two of which that gains most."""
    groups = terrain.labels.copy()
    cuts = {group: halves(terrain, np.flatnonzero(groups == group)) for group in range(len(ids))}
    for new in range(len(ids), min(max(most, len(ids) + MORE), len(ids) + FEWER)):
        chosen = max(cuts, key=lambda group: cuts[group].gain)
        second = cuts[chosen].second
        if not len(second):
            return
        cluster, whole = int(terrain.labels[second[0]]), terrain.mass[groups == chosen].sum()
        groups = groups.copy()
        groups[second] = new
        cuts |= {group: halves(terrain, np.flatnonzero(groups == group)) for group in (chosen, new)}
        means = [
            np.average(terrain.points[own], axis=0, weights=terrain.mass[own])
            for own in (groups == new, groups == chosen)
        ]
        told = profiles.apart(means[0], means[1], profiles.steps[cluster])
        share = f"{100.0 * terrain.mass[second].sum() / whole:.0f} %"
        yield groups, f"A part of {ids[cluster]} is cut off, {share} of it; it differs in {told or 'little'}."


@dataclass(frozen=True)
class Cut:
    """How much is gained if a group is cut in two, and which points are in the smaller half; none of a single one."""

    gain: float
    second: IntArray


def halves(terrain: Terrain, own: IntArray) -> Cut:
    """Where Ward's tree of a group has its root."""
    if len(own) < 2:
        return Cut(0.0, own[:0])
    flat, mass = terrain.flat[own], terrain.mass[own]
    labels = grow_tree(flat, mass).cut(2)
    sizes, means = np.bincount(labels, weights=mass), means_of(flat, labels, mass)
    gain = sizes.prod() / sizes.sum() * ((means[0] - means[1]) ** 2).sum()
    return Cut(float(gain), own[labels == sizes.argmin()] if gain > 0.0 else own[:0])
