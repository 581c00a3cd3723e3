"""The levels as a tree to look at: from fine at the top to coarse at the bottom.

Levels are found independently of each other, so a fine cluster need not lie inside one coarse cluster. Its branch goes
to the one that has most of its micro-clusters, and stray micro-clusters are drawn as thin threads.
"""

from dataclasses import dataclass

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.granularity import Levels

WIDTH = 720.0
ROW_HEIGHT = 86.0
MARGIN = 30.0
LARGEST_RADIUS = 18.0


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
class Tree:
    """Everything with its place on a drawing of `width` x `height`."""

    width: float
    height: float
    rows: tuple[tuple[float, int], ...]  # (y, clusters) of every level
    nodes: tuple[Node, ...]
    branches: tuple[Branch, ...]


def draw_tree(levels: Levels, micro_labels: IntArray) -> Tree:
    """Place every cluster of every level, and the branches between neighbouring levels."""
    columns = list(levels.labels.T)
    places = place_clusters(columns)
    largest = max(np.bincount(column).max() for column in columns)
    heights = [MARGIN + number * ROW_HEIGHT for number in range(len(columns))]
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
    return Tree(WIDTH, heights[-1] + MARGIN, rows, tuple(nodes), tuple(branches))


def place_clusters(columns: list[IntArray]) -> list[FloatArray]:
    """Horizontal places, from the coarsest level up: a cluster stands above the coarse clusters its members go to."""
    coarsest = columns[-1]
    positions = [spread_out(np.arange(coarsest.max() + 1, dtype=np.float64))]
    for column in columns[-2::-1]:
        below = positions[0][columns[len(columns) - len(positions)]]
        positions.insert(0, spread_out(np.bincount(column, weights=below) / np.bincount(column)))
    return positions


def spread_out(wanted: FloatArray) -> FloatArray:
    """Even places in the wanted order."""
    rank = np.argsort(np.argsort(wanted, kind="stable"), kind="stable")
    return np.asarray(MARGIN + (rank + 0.5) * (WIDTH - 2.0 * MARGIN) / len(wanted))


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
            path = curve(places[0][source], places[1][target], top)
            branches.append(Branch(path, float(width), main, int(np.bincount(travellers).argmax())))
    return branches


def curve(start: float, end: float, top: float) -> str:
    """From (start, top) one row down to `end`, leaving and arriving vertically."""
    middle, bottom = top + ROW_HEIGHT / 2.0, top + ROW_HEIGHT
    return f"M{start:.1f},{top:.1f} C{start:.1f},{middle:.1f} {end:.1f},{middle:.1f} {end:.1f},{bottom:.1f}"
