"""What becomes of the clusters if there were more of them, or fewer: every position of the page's slider."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.learning.micro_clusters import means_of
from goldfc.learning.ward import grow_tree
from goldfc.message.model import Model
from goldfc.report.profiles import Profiles
from goldfc.report.terrain import Mapped, Terrain

# How many clusters fewer and more there are at the most, and how many more at the least.
FEWER, AT_MOST_MORE, MORE_AT_LEAST = 8, 8, 4
LETTERS = "abcdefghijklmnopqrstuvwxyz"

Origin = Literal["merged", "taken", "split", "level"]
Step = tuple[IntArray, str]  # the group of every point, and what changed


@dataclass(frozen=True)
class Stop:
    """One position of the slider: so many groups, what each is together, and how they come from those beside them."""

    n_groups: int
    origin: Origin
    groups: IntArray  # (points,) the group of each
    names: tuple[str, ...]  # of every group: 0+3, 2a
    of: tuple[int, ...]  # of every group: the place of the cluster that most of it is from
    sentence: str


def stops(
    model: Model, terrain: Terrain, profiles: Profiles, ids: Sequence[int], wanted: Sequence[int]
) -> tuple[Stop, ...]:
    """All numbers of clusters that the slider has, ascending, with what changes from one to the next.

    Fewer are the clusters of the model, merged where that costs least; more are cut further where that gains most;
    levels are as the fusion found them. `wanted` are numbers that something speaks for.
    """
    points, count = terrain.points, len(ids)
    fewer = merged(terrain, profiles, ids, max(2, count - FEWER, min([*wanted, count - FEWER])))
    more = cut_further(terrain, profiles, ids, min(count + AT_MOST_MORE, max([*wanted, count + MORE_AT_LEAST])))
    found = [
        *(stop_of(points, ids, "merged", *step) for step in fewer),
        *(stop_of(points, ids, "split", *step) for step in more),
        *(stop_of(points, ids, "level", *step) for step in finer_levels(model, points)),
        stop_of(points, ids, "taken", points.labels, "The clusters of this model."),
    ]
    by_number = {stop.n_groups: stop for stop in found}
    return tuple(by_number[number] for number in sorted(by_number))


def stop_of(points: Mapped, ids: Sequence[int], origin: Origin, groups: IntArray, sentence: str) -> Stop:
    """Call every group after the clusters that are merged in it, or after the one that most of it is from."""
    table = np.zeros((len(ids) if origin == "taken" else int(groups.max()) + 1, len(ids)))
    np.add.at(table, (groups, points.labels), points.mass)
    of = np.arange(len(ids)) if origin == "taken" else table.argmax(axis=1)
    if origin == "merged":
        names = [together(ids, row > 0.0) for row in table]
    else:
        names = [f"{ids[place]}{letter}" for place, letter in zip(of, letters(of, table.sum(axis=1)), strict=True)]
    return Stop(len(table), origin, groups, tuple(names), tuple(of.tolist()), sentence)


def together(ids: Sequence[int], those: NDArray[np.bool_]) -> str:
    """What a group is together that several clusters are in."""
    return "+".join(str(ids[place]) for place in np.flatnonzero(those).tolist())


def letters(of: IntArray, mass: FloatArray) -> list[str]:
    """For every group a letter, the largest is a, if there are several from one cluster."""
    found = [""] * len(of)
    for place in np.unique(of):
        own = np.flatnonzero(of == place)
        for rank, group in enumerate(own[np.argsort(-mass[own], kind="stable")] if len(own) > 1 else ()):
            found[group] = LETTERS[rank] if rank < len(LETTERS) else f"-{rank + 1}"
    return found


def finer_levels(model: Model, points: Mapped) -> Iterator[Step]:
    """The partitions that the fusion found on its way to the clusters."""
    if points.what != "micro-cluster" or len(points.labels) < len(model.micro_labels):
        return
    for level in model.levels.labels.T:
        groups = np.unique(level, return_inverse=True)[1]
        if groups.max() >= len(model.centroids):
            yield groups, f"{int(groups.max()) + 1} groups, as the fusion found them on its way to the clusters."


def merged(terrain: Terrain, profiles: Profiles, ids: Sequence[int], least: int) -> Iterator[Step]:
    """Fewer and fewer: the two are merged of which that costs least."""
    points, count = terrain.points, len(ids)
    mass = np.bincount(points.labels, weights=points.mass, minlength=count).astype(np.float64)
    if not mass.all():  # what nothing is in has no place
        return
    tree, before = grow_tree(means_of(terrain.flat, points.labels, points.mass), mass), np.arange(count)
    for number in range(count - 1, least - 1, -1):
        after = tree.cut(number)
        one, other = (before == group for group in the_two(before, after))
        means = [np.average(profiles.means[part], axis=0, weights=mass[part]) for part in (one, other)]
        told = profiles.apart(means[0], means[1], profiles.steps.mean(axis=0)) or "little"
        yield (
            after[points.labels],
            f"{together(ids, one)} and {together(ids, other)} become one; they differ in {told}.",
        )
        before = after


def the_two(before: IntArray, after: IntArray) -> list[int]:
    """Which two groups became one."""
    targets = [int(after[before == group][0]) for group in range(int(before.max()) + 1)]
    return [group for group, target in enumerate(targets) if targets.count(target) == 2]


def cut_further(terrain: Terrain, profiles: Profiles, ids: Sequence[int], most: int) -> Iterator[Step]:
    """More and more: the group is cut in two of which that gains most."""
    points, groups = terrain.points, terrain.points.labels
    cuts = {group: cut_of(terrain, groups == group) for group in range(len(ids))}
    for new in range(len(ids), most):
        chosen = max(cuts, key=lambda group: cuts[group].gain)
        cut = cuts[chosen]
        if not cut.gain:
            return
        groups = groups.copy()
        groups[cut.smaller] = new
        cuts |= {group: cut_of(terrain, groups == group) for group in (chosen, new)}
        cluster = int(points.labels[cut.smaller[0]])
        means = [mean_of(points, groups == group) for group in (new, chosen)]
        told = profiles.apart(means[0], means[1], profiles.steps[cluster]) or "little"
        yield groups, f"A part of {ids[cluster]} is cut off, {100.0 * cut.share:.0f} % of it; it differs in {told}."


def mean_of(points: Mapped, own: NDArray[np.bool_]) -> FloatArray:
    """The mean of some points."""
    return np.asarray(np.average(points.centres[own], axis=0, weights=points.mass[own]))


@dataclass(frozen=True)
class Cut:
    """What is gained if a group is cut in two, 0 if it cannot be; the points of the smaller half, and its share."""

    gain: float
    smaller: IntArray
    share: float


def cut_of(terrain: Terrain, group: NDArray[np.bool_]) -> Cut:
    """Where Ward's tree of a group has its root."""
    own = np.flatnonzero(group)
    if len(own) < 2:
        return Cut(0.0, own[:0], 0.0)
    flat, mass = terrain.flat[own], terrain.points.mass[own]
    halves = grow_tree(flat, mass).cut(2)
    sizes, means = np.bincount(halves, weights=mass), means_of(flat, halves, mass)
    gain = sizes.prod() / sizes.sum() * ((means[0] - means[1]) ** 2).sum()
    return Cut(float(gain), own[halves == sizes.argmin()], float(sizes.min() / sizes.sum()))
