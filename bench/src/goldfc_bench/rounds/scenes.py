"""What is revealed round by round: mixtures that drift, in which something is planted; and data sets, bit by bit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from sklearn.neighbors import NearestNeighbors

from goldfc._types import BoolArray, FloatArray, IntArray
from goldfc.randomness import generator
from goldfc_bench.cases import split_of

ROUNDS = 12
# Of a mixture: sites, rows of each, how likely a site is there in a round, how far clusters drift, how far apart.
N_SITES, ROWS_EACH, PRESENT, DRIFT = 6, 400, 0.9, 0.1
APART, NEAR = 7.0, 5.0
# No cluster that something happens to has a smaller share of the rows.
LEAST_SHARE = 0.02
WEIGHTS = (0.2, 0.5, 1.0, 2.0)
# Those that merge end this far from their middle.
HALF_MERGED = 0.75
PLANTED = ("emerged", "disappeared", "split", "merged")
# Of a set: its sites join in the first rounds, and the last of them leaves in the last ones.
JOINING, LEAVING, FEWEST_ROWS = 4, 2, 12
NEIGHBOURS = 10


@dataclass(frozen=True)
class Revealed:
    """One round: what every site has, and, for the judge alone, the truth."""

    rows: Mapping[str, FloatArray]
    truth: IntArray  # of all rows, in the order of the sites
    calm: BoolArray  # rows in whose surroundings nothing has changed
    planted: str | None = None
    is_quiet: bool = False

    @property
    def all_rows(self) -> FloatArray:
        """Of all sites."""
        return np.vstack(list(self.rows.values()))


@dataclass
class Drifting:
    """Gaussian clusters with means and weights, of which some things happen to some."""

    rng: np.random.Generator
    width: int
    apart: float
    means: dict[int, FloatArray] = field(default_factory=dict)
    weights: dict[int, float] = field(default_factory=dict)
    merging: tuple[int, int] | None = None
    ever: int = 0

    def add(self, mean: FloatArray | None = None, weight: float | None = None) -> int:
        """One more, far from all others unless it is said where."""
        self.means[self.ever] = self.free_place() if mean is None else mean
        self.weights[self.ever] = float(self.rng.choice(WEIGHTS)) if weight is None else weight
        self.ever += 1
        return self.ever - 1

    def free_place(self) -> FloatArray:
        """Where nothing is near."""
        while True:
            place = self.rng.uniform(-1.0, 1.0, self.width) * self.apart * (2.0 if self.width < 4 else 1.2)
            if all(np.linalg.norm(place - mean) >= self.apart for mean in self.means.values()):
                return np.asarray(place)

    def drift(self) -> None:
        """All by a little; who was about to merge has done so."""
        if self.merging is not None:
            one, other = self.merging
            self.means[one] = (self.means[one] + self.means[other]) / 2.0
            self.weights[one] += self.weights.pop(other)
            del self.means[other]
            self.merging = None
        for cluster in self.means:
            self.means[cluster] = self.means[cluster] + self.rng.normal(0.0, DRIFT, self.width)

    def plant(self, what: str) -> set[int] | None:
        """Let it happen to some clusters; None where there are none that it could happen to."""
        if what == "emerged":
            return {self.add()}
        large = [one for one in self.means if self.weights[one] >= LEAST_SHARE * sum(self.weights.values())]
        if len(large) < 4:
            return None
        if what == "disappeared":
            gone = int(self.rng.choice(large))
            del self.means[gone], self.weights[gone]
            return {gone}
        return self.split(large) if what == "split" else self.merge(large)

    def split(self, large: list[int]) -> set[int] | None:
        """One becomes two, the one a little larger than the other."""
        for one in self.rng.permutation(large).tolist():
            way = self.rng.normal(size=self.width)
            step = self.apart / 2.0 * way / np.linalg.norm(way)
            ends = self.means[one] + step, self.means[one] - step
            others = [mean for other, mean in self.means.items() if other != one]
            if all(np.linalg.norm(end - mean) >= self.apart - 1.0 for end in ends for mean in others):
                weight = self.weights[one]
                self.means[one], self.weights[one] = ends[0], 0.55 * weight
                return {one, self.add(ends[1], 0.45 * weight)}
        return None

    def merge(self, large: list[int]) -> set[int]:
        """The nearest two come so near to each other that nobody can tell them apart."""
        pairs = [(one, other) for one in large for other in large if one < other]
        one, other = min(pairs, key=lambda pair: float(np.linalg.norm(self.means[pair[0]] - self.means[pair[1]])))
        middle, apart = (self.means[one] + self.means[other]) / 2.0, self.means[one] - self.means[other]
        step = HALF_MERGED * apart / np.linalg.norm(apart)
        self.means[one], self.means[other] = middle + step, middle - step
        self.merging = one, other
        return {one, other}

    def reveal(self, touched: set[int], planted: str | None, first: bool) -> Revealed:
        """New rows at the sites that are there."""
        names = list(self.means)
        share = np.array([self.weights[name] for name in names])
        sites = [site for site in range(N_SITES) if first or self.rng.random() < PRESENT] or [0]
        rows, truth = {}, []
        for site in sites:
            cluster = self.rng.choice(len(names), ROWS_EACH, p=share / share.sum())
            centres = np.array([self.means[names[one]] for one in cluster])
            rows[f"s{site}"] = centres + self.rng.normal(size=centres.shape)
            truth.append(np.array(names)[cluster])
        truths = np.concatenate(truth)
        # Two that have come together are one by now.
        merged = np.where(truths == max(touched), min(touched), truths) if planted == "merged" else truths
        quiet = planted is None and not first
        return Revealed(rows, merged, ~np.isin(truths, list(touched)), planted, quiet)


def drifting(draw: int, apart: float = APART) -> Iterator[Revealed]:
    """A mixture of clusters that are at least so far apart: every other round something happens."""
    rng = generator(draw, "rounds")
    mixture = Drifting(rng, int(rng.choice([2, 4, 8])), apart)
    for _ in range(int(rng.integers(4, 11))):
        mixture.add()
    for number in range(ROUNDS):
        mixture.drift()
        planted = str(rng.choice(PLANTED)) if number and number % 2 == 0 else None
        touched = mixture.plant(planted) if planted else None
        yield mixture.reveal(touched or set(), planted if touched else None, first=number == 0)


def bit_by_bit(name: str) -> Iterator[Revealed]:
    """A data set at the paper's sites, whose rows come in twelve parts; sites join, and the last one leaves.

    The surroundings of a row are its ten nearest rows, wherever they are.
    """
    split, rng = split_of(name, "paper"), generator(0, "rounds", name)
    places = [rng.permutation(np.flatnonzero(split.site == site)) for site in range(int(split.site.max()) + 1)]
    before: dict[int, frozenset[int]] = {}
    for number in range(1, ROUNDS + 1):
        there = {
            f"s{site}": np.sort(own[: len(own) * number // ROUNDS])
            for site, own in enumerate(places)
            if number > site % JOINING and not (site == len(places) - 1 and number > ROUNDS - LEAVING)
        }
        there = {site: own for site, own in there.items() if len(own) >= FEWEST_ROWS}
        if not there:
            continue
        everybody = np.concatenate(list(there.values()))
        around = neighbours(split.X, everybody)
        calm = np.array([before.get(row) == around[row] for row in everybody.tolist()])
        yield Revealed({site: split.X[own] for site, own in there.items()}, split.y[everybody], calm)
        before = around


def neighbours(X: FloatArray, rows: IntArray) -> dict[int, frozenset[int]]:
    """The nearest rows of each, among these rows."""
    index = NearestNeighbors(n_neighbors=min(NEIGHBOURS + 1, len(rows))).fit(X[rows])
    nearest = index.kneighbors(X[rows], return_distance=False)
    return {row: frozenset(rows[own].tolist()) for row, own in zip(rows.tolist(), nearest, strict=True)}
