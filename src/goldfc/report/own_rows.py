"""A site's own rows, cluster by cluster: looked at once, while they are labelled, in the same memory however many.

Of every cluster counts, sums and histograms are kept, and a few rows: the most typical, the furthest, the least sure.
"""

import heapq
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.k_means import sums_by_label
from goldfc.learning.moments import ROUNDING, SMALLEST_VALUE
from goldfc.message.density import distances, in_parts, log_density
from goldfc.message.model import Model
from goldfc.report.profiles import Profiles
from goldfc.site.label import believed
from goldfc.site.labels import Labels

# How many rows are shown: typical ones of every cluster, far ones, unsure ones; and numbers of those without a label.
MOST_TYPICAL, MOST_FAR, MOST_UNSURE, MOST_PLACES = 3, 50, 30, 10
# A row is unsure if the model gives its cluster no more than this; then another may have half as much.
SURE = 2.0 / 3.0
# A cluster that reaches less far is taken to reach so far.
LEAST_REACH = 1e-150
# Histograms go so many spreads beyond the means of clusters; what lies further out is in the outermost bin.
BEYOND = 3.5
BINS, BINS_OF_A_BAR = 320, 8
# No more pictures than this are on a page: one for every cluster of every column that is shown.
MOST_PICTURES, FEWEST_COLUMNS = 400, 6


@dataclass(frozen=True)
class OwnRow:
    """A row that is shown: where it is in the file, counted from 1, and what it is called there."""

    number: int
    id: str
    place: int  # of its cluster
    certainty: float
    values: FloatArray
    score: float


@dataclass
class Foremost:
    """The rows with the highest scores, at most so many; of equals those that come first."""

    most: int
    heap: list[tuple[float, int, OwnRow]] = field(default_factory=list)

    def offer(self, block: "LabelledRows", some: IntArray, scores: FloatArray) -> None:
        """Some rows of a block."""
        least = self.heap[0][0] if len(self.heap) >= self.most else -np.inf
        # Of a block no more than so many can be among them.
        for one in np.argsort(-scores, kind="stable")[: self.most].tolist():
            if scores[one] > least:
                row = block.row(int(some[one]), float(scores[one]))
                heapq.heappush(self.heap, (row.score, -row.number, row))
        while len(self.heap) > self.most:
            heapq.heappop(self.heap)

    @property
    def rows(self) -> list[OwnRow]:
        """The highest first."""
        return [row for _, _, row in sorted(self.heap, reverse=True)]


@dataclass(frozen=True)
class LabelledRows:
    """Rows of a block that have a label: their numbers in the file, and where their clusters are in the model."""

    labels: Labels
    there: IntArray  # which rows of the block they are
    first: int
    rows: FloatArray
    places: IntArray

    def row(self, number: int, score: float) -> OwnRow:
        """One of them, with a copy of its values: a view would keep the whole block."""
        at = int(self.there[number])
        certainty = float(self.labels.certainty[at])
        where = self.first + at + 1
        return OwnRow(where, self.labels.ids[at], int(self.places[number]), certainty, self.rows[number].copy(), score)


class Histograms:
    """How the values of some columns lie in every cluster, in even bins; and their ends."""

    def __init__(self, model: Model, profiles: Profiles, features: IntArray) -> None:
        self.features = features
        self.low, self.high = axes_of(model, profiles, features)
        shape = len(profiles.means), len(features)
        self.counts = np.zeros((*shape, BINS), dtype=np.int64)
        self.least, self.largest = np.full(shape, np.inf), np.full(shape, -np.inf)

    def see(self, rows: FloatArray, places: IntArray) -> None:
        """Some more."""
        clusters = len(self.counts)
        with np.errstate(over="ignore"):
            unit = (rows[:, self.features] - self.low) / (self.high - self.low) * BINS
        bins = np.clip(unit, 0, BINS - 1).astype(np.int64)
        for column, feature in enumerate(self.features.tolist()):
            cells = places * BINS + bins[:, column]
            self.counts[:, column] += np.bincount(cells, minlength=clusters * BINS).reshape(clusters, BINS)
            np.minimum.at(self.least[:, column], places, rows[:, feature])
            np.maximum.at(self.largest[:, column], places, rows[:, feature])

    def bars(self, place: int, column: int) -> IntArray:
        """Of one column in one cluster, in the bars of a picture."""
        return np.asarray(self.counts[place, column].reshape(-1, BINS_OF_A_BAR).sum(axis=1))

    def quartiles(self, place: int, column: int) -> FloatArray:
        """Smallest, quarter, half, three quarters, largest; between the ends as exactly as bins tell."""
        counts, low, high = self.counts[place, column], self.low[column], self.high[column]
        least, largest = self.least[place, column], self.largest[place, column]
        edges = np.clip(np.linspace(low, high, BINS + 1), least, largest)
        edges[0], edges[-1] = least, largest
        filled = np.flatnonzero(counts)
        below = np.concatenate([[0], np.cumsum(counts)])
        wanted = np.array([0.25, 0.5, 0.75]) * below[-1]
        bins = filled[np.searchsorted(below[filled + 1], wanted)]
        inside = (wanted - below[bins]) / counts[bins]
        return np.array([least, *(edges[bins] + inside * (edges[bins + 1] - edges[bins])), largest])


class OwnRows:
    """What there is of a site's rows."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.profiles = Profiles.of(model, np.maximum(model.mass, 1.0).astype(np.int64))
        clusters, features = self.profiles.means.shape
        self.histograms = Histograms(model, self.profiles, numbers_to_show(self.profiles))
        self.seen, self.unsure_rows = 0, 0
        self.rows, self.far_rows = np.zeros(clusters, dtype=np.int64), np.zeros(clusters, dtype=np.int64)
        self.sums, self.certainty = np.zeros((clusters, features)), np.zeros(clusters)
        self.typical = [Foremost(MOST_TYPICAL) for _ in range(clusters)]
        self.far, self.unsure = Foremost(MOST_FAR), Foremost(MOST_UNSURE)
        self.without: dict[str, list[int]] = {}  # numbers of the first rows without a label, by the reason
        self.sure = float(believed(model, np.array(SURE)))

    def see(self, labels: Labels, rows: FloatArray) -> None:
        """The next block: its labels, and those of its rows that have one."""
        there = np.flatnonzero(labels.cluster >= 0)
        places = np.searchsorted(self.model.ids, labels.cluster[there]).astype(np.int64)
        if len(rows):
            self.add(LabelledRows(labels, there, self.seen, rows, places))
        for at, reason in enumerate(labels.reason):
            if reason and len(found := self.without.setdefault(reason, [])) < MOST_PLACES:
                found.append(self.seen + at + 1)
        self.seen += len(labels.ids)

    def add(self, block: LabelledRows) -> None:
        """Rows that have a label."""
        certainty, far, places = block.labels.certainty[block.there], block.labels.far[block.there], block.places
        clusters = len(self.rows)
        self.rows += np.bincount(places, minlength=clusters)
        self.far_rows += np.bincount(places[far], minlength=clusters)
        self.certainty += np.bincount(places, weights=certainty, minlength=clusters)
        self.sums += sums_by_label(block.rows, places, clusters)
        self.histograms.see(block.rows, places)
        self.find_typical(block)
        self.find_far(block, np.flatnonzero(far))
        unsure = np.flatnonzero(~far & (certainty < self.sure))
        self.unsure_rows += len(unsure)
        self.unsure.offer(block, unsure, -certainty[unsure])

    def find_typical(self, block: LabelledRows) -> None:
        """The likeliest rows of every cluster."""
        likely = in_parts(self.model, block.rows, partial(log_density, self.model))
        own = likely[np.arange(len(block.rows)), block.places]
        for place in np.unique(block.places).tolist():
            some = np.flatnonzero(block.places == place)
            self.typical[place].offer(block, some, own[some])

    def find_far(self, block: LabelledRows, far: IntArray) -> None:
        """The rows that are furthest: by how many times as far as the clusters reach, of the one that comes nearest."""
        apart = distances(self.model, block.rows[far]) / np.maximum(self.model.reach, LEAST_REACH)
        self.far.offer(block, far, apart.min(axis=1))

    @property
    def means(self) -> FloatArray:
        """Of every cluster that has rows; what has none has none."""
        counts = self.rows.astype(np.float64)[:, None]
        return np.divide(self.sums, counts, out=np.full_like(self.sums, np.nan), where=counts > 0.0)


def axes_of(model: Model, profiles: Profiles, features: IntArray) -> tuple[FloatArray, FloatArray]:
    """From where to where columns reach, as the model tells, within the ranges that were agreed on."""
    means, spread = profiles.means[:, features], profiles.spread[:, features]
    low, high = (means - BEYOND * spread).min(axis=0), (means + BEYOND * spread).max(axis=0)
    if model.terms.columns:
        least, most = np.array([column.limits for column in model.terms.features])[features].T
        low, high = np.maximum(low, least), np.minimum(high, most)
    narrowest = ROUNDING * np.maximum(np.abs(means).max(axis=0), np.abs(low))
    return low, low + np.maximum(high - low, np.where(narrowest > SMALLEST_VALUE, narrowest, 1.0))


def numbers_to_show(profiles: Profiles) -> IntArray:
    """The numbers of which there are pictures: all, or of too many those in which clusters differ most, in order."""
    clusters = len(profiles.means)
    numbers = np.array([at for at, one in enumerate(profiles.features) if not one.is_share], dtype=np.int64)
    most = max(FEWEST_COLUMNS, MOST_PICTURES // clusters)
    return np.sort(profiles.most_different_first(numbers)[:most])
