"""What pages show alike: the colours of clusters, the evidence for their number, and the levels as a tree.

Levels are found independently of each other, so a fine cluster need not lie inside one coarse cluster. Its branch goes
to the one that has most of its micro-clusters, and stray micro-clusters are drawn as thin threads.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.levels import Levels
from goldfc.learning.proposal import Proposal

# Ten colours that most colour-blind people can tell apart (Paul Tol's "muted", and grey), and ten more as far from
# them. Colours alone would not do for so many clusters: wherever one is, the cluster's number is as well.
COLOURS = (
    "#332288", "#88ccee", "#44aa99", "#117733", "#999933", "#ddcc77", "#cc6677", "#882255", "#aa4499", "#8a8f98",
    "#e03c1f", "#1f6fe0", "#5fc21f", "#e57ae0", "#f0941f", "#663d14", "#8c9eff", "#e0147a", "#7a3df0", "#22303c",
)  # fmt: skip
DARK_INK, LIGHT_INK = "#1d2433", "#ffffff"

# Where the curve is in its drawing, which is 480 wide and ends at 300.
CURVE_LEFT, CURVE_RIGHT, CURVE_TOP, CURVE_BOTTOM = 46.0, 468.0, 20.0, 244.0
# Room for one number.
LABEL_WIDTH, LABEL_HEIGHT = 26.0, 19.0
# Between round values on an axis; and how far one of them may be off by rounding.
MOST_STEPS_DRAWN = 6
ROUNDING_OF_PIXELS = 1e-9
# The tree: how wide it is, how far its lines are apart, and its largest circle.
TREE_WIDTH = 720.0
ROW_HEIGHT = 86.0
BORDER = 30.0
# More circles than this in a line would be one line.
MOST_CLUSTERS_TO_DRAW = 300
LARGEST_RADIUS = 18.0


@dataclass(frozen=True)
class Mark:
    """A candidate on the curve, and how high its number stands."""

    n_clusters: int
    x: float
    y: float
    label_y: float


@dataclass(frozen=True)
class CurveDrawing:
    """The evidence for every number of clusters, up to where there is less of it than at the beginning."""

    points: tuple[tuple[float, float], ...]
    marks: tuple[Mark, ...]  # the candidates, best first
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    last: int  # the largest number of clusters shown
    true_x: float | None  # where the true number is, if somebody knows it

    @property
    def best(self) -> int:
        """The number to take."""
        return self.marks[0].n_clusters

    @property
    def top(self) -> float:
        """Where the drawing begins: above the highest number, and the highest point."""
        return min(*(mark.label_y for mark in self.marks), *(y for _, y in self.points)) - LABEL_HEIGHT


@dataclass(frozen=True)
class Node:
    """One cluster of one level; `cluster` is the global cluster that most of its micro-clusters belong to."""

    x: float
    y: float
    radius: float
    size: int
    cluster: int
    share: float


@dataclass(frozen=True)
class Branch:
    """Micro-clusters on their way from a fine cluster to a coarse one."""

    path: str
    width: float
    main: bool
    cluster: int


@dataclass(frozen=True)
class TreeDrawing:
    """Everything with its place on a drawing of `width` x `height`."""

    width: float
    height: float
    rows: tuple[tuple[float, int], ...]  # (y, clusters) of every level
    nodes: tuple[Node, ...]
    branches: tuple[Branch, ...]

    @property
    def room(self) -> float:
        """How wide every cluster of the last line may be."""
        return (self.width - 2.0 * BORDER) / self.rows[-1][1]


def paint(number: int) -> int:
    """Which of the colours a cluster has, by the number that it is known by."""
    return number % len(COLOURS)


def colour(cluster: int) -> str:
    """The colour of a global cluster."""
    return COLOURS[paint(cluster)]


def ink(cluster: int) -> str:
    """A colour for its number that can be read on it."""
    red, green, blue = bytes.fromhex(colour(cluster)[1:])
    return DARK_INK if 0.299 * red + 0.587 * green + 0.114 * blue > 140.0 else LIGHT_INK


def draw_curve(proposal: Proposal, true_number: int | None = None) -> CurveDrawing:
    """Place the curve, the candidates and the ticks."""
    tried = np.array(proposal.n_clusters)
    evidence = np.array(proposal.evidence)
    # What other evidence speaks for need not be on this curve.
    candidates = [one.n_clusters for one in proposal.candidates if one.n_clusters in proposal.n_clusters]
    # Far to the right it falls so deep that the peaks would be flat; but gaps are from 0 to 1.
    lowest = 0.0 if proposal.of_gaps else evidence[tried <= max(proposal.best, true_number or 1)].min()
    last = max([*tried[evidence >= lowest].tolist(), *candidates])
    shown = tried <= last
    axis = (1.0, float(max(last, true_number or 1)))
    heights = (0.0, 1.0) if proposal.of_gaps else (float(evidence[shown].min()), float(evidence[shown].max()))
    x = np.interp(tried[shown], axis, (CURVE_LEFT, CURVE_RIGHT))
    y = np.interp(evidence[shown], heights, (CURVE_BOTTOM, CURVE_TOP))
    places = {int(k): (float(a), float(b)) for k, a, b in zip(tried, x, y, strict=False)}
    numbers = ((CURVE_LEFT, "1"), *ticks(axis, (CURVE_LEFT, CURVE_RIGHT), whole=True))
    return CurveDrawing(
        points=tuple(places.values()),
        marks=place_marks({n_clusters: places[n_clusters] for n_clusters in candidates}),
        x_ticks=tuple(dict.fromkeys(numbers)),
        y_ticks=ticks(heights, (CURVE_BOTTOM, CURVE_TOP)),
        last=last,
        true_x=None if true_number is None else float(np.interp(true_number, axis, (CURVE_LEFT, CURVE_RIGHT))),
    )


def place_marks(places: dict[int, tuple[float, float]]) -> tuple[Mark, ...]:
    """A number above every candidate, lifted until it covers no other."""
    marks: list[Mark] = []
    for n_clusters, (x, y) in places.items():
        label_y = y - 12.0
        near = [mark.label_y for mark in marks if abs(mark.x - x) < LABEL_WIDTH]
        while covered := [other for other in near if abs(other - label_y) < LABEL_HEIGHT]:
            label_y = min(covered) - LABEL_HEIGHT
        marks.append(Mark(n_clusters, x, y, label_y))
    return tuple(marks)


def ticks(
    values: tuple[float, float], places: tuple[float, float], *, whole: bool = False
) -> tuple[tuple[float, str], ...]:
    """A few round values on an axis, as places and texts."""
    return tuple(
        (float(np.interp(value, values, places)), f"{value:g}") for value in round_values(*values, whole=whole)
    )


def round_values(low: float, high: float, *, whole: bool) -> list[float]:
    """At most seven values at equal steps of 1, 2 or 5 times a power of ten; only `whole` ones, if asked for."""
    if high - low <= ROUNDING_OF_PIXELS * max(abs(low), abs(high), 1.0):
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / MOST_STEPS_DRAWN))
    steps = [factor * power for factor in (1.0, 2.0, 5.0, 10.0)]
    fitting = (step for step in steps if high - low <= MOST_STEPS_DRAWN * step * (1.0 + ROUNDING_OF_PIXELS))
    step = max(next(fitting), 1.0 if whole else 0.0)
    first, last = math.ceil(low / step - ROUNDING_OF_PIXELS), math.floor(high / step + ROUNDING_OF_PIXELS)
    return [number * step for number in range(first, last + 1)]


def draw_levels(levels: Levels, micro_labels: IntArray, ids: Sequence[int]) -> TreeDrawing:
    """Every granularity, and last the global clusters, by their numbers; levels too fine to see are left out."""
    seen = [number for number, count in enumerate(levels.n_clusters) if count <= MOST_CLUSTERS_TO_DRAW]
    labels = np.column_stack([levels.labels[:, seen], micro_labels])
    counts = (*(levels.n_clusters[number] for number in seen), len(ids))
    tree = draw_tree(Levels(labels, counts), micro_labels)
    nodes = tuple(replace(node, cluster=ids[node.cluster]) for node in tree.nodes)
    return replace(tree, nodes=nodes, branches=tuple(replace(one, cluster=ids[one.cluster]) for one in tree.branches))


def draw_tree(levels: Levels, micro_labels: IntArray) -> TreeDrawing:
    """Place every cluster of every level, and the branches between neighbouring levels."""
    # Numbered without gaps: a cluster that nothing is in has no place.
    columns = [np.unique(column, return_inverse=True)[1].astype(np.int64) for column in levels.labels.T]
    places = place_clusters(columns)
    largest = max(np.bincount(column).max() for column in columns)
    heights = [BORDER + number * ROW_HEIGHT for number in range(len(columns))]
    nodes = [
        node
        for column, place, y in zip(columns, places, heights, strict=True)
        for node in _nodes(column, micro_labels, place, y, largest)
    ]
    branches = [
        branch
        for number in range(len(columns) - 1)
        for branch in _branches(
            columns[number : number + 2], places[number : number + 2], heights[number], micro_labels
        )
    ]
    # Main branches last, so that threads do not cover them.
    branches.sort(key=lambda branch: branch.main)
    rows = tuple(zip(heights, levels.n_clusters, strict=True))
    return TreeDrawing(TREE_WIDTH, heights[-1] + BORDER, rows, tuple(nodes), tuple(branches))


def place_clusters(columns: list[IntArray]) -> list[FloatArray]:
    """Horizontal places, from the coarsest level up: a cluster stands above the coarse clusters its members go to."""
    coarsest = columns[-1]
    positions = [without_overlap(np.arange(coarsest.max() + 1, dtype=np.float64))]
    for column in columns[-2::-1]:
        below = positions[0][columns[len(columns) - len(positions)]]
        positions.insert(0, without_overlap(np.bincount(column, weights=below) / np.bincount(column)))
    return positions


def without_overlap(wanted: FloatArray) -> FloatArray:
    """Even places in the wanted order."""
    rank = np.argsort(np.argsort(wanted, kind="stable"), kind="stable")
    return np.asarray(BORDER + (rank + 0.5) * (TREE_WIDTH - 2.0 * BORDER) / len(wanted))


def _nodes(column: IntArray, micro_labels: IntArray, place: FloatArray, y: float, largest: int) -> list[Node]:
    nodes = []
    for cluster in range(column.max() + 1):
        members = micro_labels[column == cluster]
        counts = np.bincount(members)
        radius = max(3.0, LARGEST_RADIUS * np.sqrt(len(members) / largest))
        share = counts.max() / len(members)
        nodes.append(Node(place[cluster], y, radius, len(members), int(counts.argmax()), share))
    return nodes


def _branches(columns: list[IntArray], places: list[FloatArray], top: float, micro_labels: IntArray) -> list[Branch]:
    fine, coarse = columns
    branches = []
    for source in range(fine.max() + 1):
        targets = np.bincount(coarse[fine == source], minlength=coarse.max() + 1)
        for target in np.flatnonzero(targets):
            travellers = micro_labels[(fine == source) & (coarse == target)]
            main = bool(targets[target] == targets.max())
            width = 1.0 + 0.9 * np.sqrt(targets[target]) if main else 0.8
            path = bend(places[0][source], places[1][target], top)
            branches.append(Branch(path, float(width), main, int(np.bincount(travellers).argmax())))
    return branches


def bend(start: float, end: float, top: float) -> str:
    """From (start, top) one row down to `end`, leaving and arriving vertically."""
    middle, bottom = top + ROW_HEIGHT / 2.0, top + ROW_HEIGHT
    return f"M{start:.1f},{top:.1f} C{start:.1f},{middle:.1f} {end:.1f},{middle:.1f} {end:.1f},{bottom:.1f}"
