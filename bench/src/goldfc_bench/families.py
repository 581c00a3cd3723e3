"""Generated families of data: each is a kind of cluster that a default must not fail on, drawn anew from every seed.

Distances between clusters are in units of their own spread: a `gap` of 4 puts every centre, on average, four standard
deviations from the nearest other one. The gaps are set so that some algorithm on all rows in one place finds most of
the clusters, but not all of every family: where everything scores 1, nothing is compared.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.spatial.distance import cdist

from goldfc._types import FloatArray, IntArray
from goldfc.demo.split import simulate

BACKGROUND = -1  # the label of rows of noise


@dataclass(frozen=True)
class Table:
    """Rows with their truth; the columns named in `categorical` hold whole-number codes, as floats.

    Rows with the label -1 are background noise. Methods get them like all others, but they are not scored.
    """

    X: FloatArray
    y: IntArray
    categorical: tuple[int, ...] = ()

    @property
    def scored(self) -> IntArray:
        """The numbers of the rows that count: all but background noise."""
        return np.flatnonzero(self.y != BACKGROUND)

    @property
    def n_clusters(self) -> int:
        """k*, the number of clusters; background noise is none."""
        return len(np.unique(self.y[self.scored]))


@dataclass(frozen=True)
class Family:
    """One kind of data; `draw` gives a table that is the same for the same state of the generator."""

    name: str
    kind: str
    draw: Callable[[np.random.Generator], Table]


@dataclass(frozen=True)
class Columns:
    """The columns of a mixed table: numbers first, then categories; every kind first the informative, then noise.

    In a cluster, an informative category has its favourite level with the probability `sure`, and otherwise any level
    as it comes. A level is `skew` times as frequent as the one before it.
    """

    numbers: int
    levels: tuple[int, ...]
    noise_numbers: int = 0
    noise_levels: tuple[int, ...] = ()
    gap: float = 3.0
    sure: float = 0.6
    skew: float = 1.0


def sites_of(table: Table, n_sites: int, rng: np.random.Generator) -> list[IntArray]:
    """The numbers of the rows that each Non-ICD site holds; background noise is spread like one more class.

    The scaled copy of the table is for the k-means of the simulator only: a site holds rows of the table as it is.
    """
    return simulate(comparable(table), table.y, n_sites, rng)


def comparable(table: Table) -> FloatArray:
    """Numbers with mean zero and variance one, beside one column of zeros and ones for every level of a category."""
    numbers = np.delete(table.X, list(table.categorical), axis=1)
    spread = numbers.std(axis=0)
    scaled = (numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.column_stack([scaled, *(one_hot(table.X[:, column]) for column in table.categorical)])


def one_hot(codes: FloatArray) -> FloatArray:
    """A column of zeros and ones for every code that occurs."""
    return np.asarray(codes[:, None] == np.unique(codes), dtype=np.float64)


def shuffled(X: FloatArray, y: IntArray, rng: np.random.Generator, categorical: tuple[int, ...] = ()) -> Table:
    """A table whose order of rows says nothing."""
    order = rng.permutation(len(X))
    return Table(X[order], y[order], categorical)


def members(n_rows: int, masses: FloatArray) -> IntArray:
    """The cluster of every row, in order; as many rows as the masses say, and at least two in every cluster."""
    counts = np.maximum(np.rint(n_rows * masses / masses.sum()).astype(np.int64), 2)
    return np.repeat(np.arange(len(masses)), counts)


def equal(k: int) -> FloatArray:
    """Masses of clusters that are all alike."""
    return np.ones(k)


def geometric(k: int, ratio: float) -> FloatArray:
    """Numbers from 1 to `ratio`, each the same multiple of the one before: masses, or standard deviations."""
    return np.geomspace(1.0, ratio, k)


def spread_centres(k: int, d: int, gap: float, rng: np.random.Generator) -> FloatArray:
    """Centres that keep apart; the mean distance to the nearest other one is `gap`.

    Each centre is that of ten random points in a cube that is farthest from the centres before it.
    """
    centres = rng.uniform(size=(1, d))
    while len(centres) < k:
        candidates = rng.uniform(size=(10, d))
        best = cdist(candidates, centres).min(axis=1).argmax()
        centres = np.vstack([centres, candidates[best]])
    distances = cdist(centres, centres)
    np.fill_diagonal(distances, np.inf)
    return np.asarray(centres * (gap / distances.min(axis=1).mean()))


def rotation(d: int, rng: np.random.Generator) -> FloatArray:
    """A random orthogonal matrix."""
    return np.asarray(np.linalg.qr(rng.normal(size=(d, d)))[0])


def round_clusters(
    rng: np.random.Generator, *, n_rows: int, d: int, gap: float, masses: FloatArray, sizes: float = 1.0
) -> Table:
    """Round clusters; the widest is `sizes` times as wide as the narrowest, which has variance one."""
    k = len(masses)
    y = members(n_rows, masses)
    widths = rng.permutation(geometric(k, sizes))
    X = spread_centres(k, d, gap, rng)[y] + widths[y, None] * rng.normal(size=(len(y), d))
    return shuffled(X, y, rng)


def stretched_alike(rng: np.random.Generator, *, n_rows: int, k: int, d: int, gap: float, stretch: float) -> Table:
    """Clusters of one covariance, which is `stretch` times as long as it is narrow.

    Long directions hide the gaps: the centres differ in units of the narrowest.
    """
    y = members(n_rows, equal(k))
    shape = geometric(d, stretch)[:, None] * rotation(d, rng)
    X = spread_centres(k, d, gap, rng)[y] + rng.normal(size=(len(y), d)) @ shape
    return shuffled(X, y, rng)


def own_covariances(rng: np.random.Generator, *, n_rows: int, k: int, d: int, gap: float, stretch: float) -> Table:
    """Clusters that are `stretch` times as long as narrow, each in directions of its own."""
    y = members(n_rows, equal(k))
    X = spread_centres(k, d, gap, rng)[y]
    for cluster in range(k):
        mine = np.flatnonzero(y == cluster)
        shape = geometric(d, stretch)[:, None] * rotation(d, rng)
        X[mine] += rng.normal(size=(len(mine), d)) @ shape
    return shuffled(X, y, rng)


def heavy_tails(rng: np.random.Generator, *, n_rows: int, k: int, d: int, gap: float, freedom: float) -> Table:
    """Clusters of Student's t: the fewer degrees of freedom, the farther the farthest rows."""
    y = members(n_rows, equal(k))
    reach = np.sqrt(freedom / rng.chisquare(freedom, size=len(y)))
    X = spread_centres(k, d, gap, rng)[y] + reach[:, None] * rng.normal(size=(len(y), d))
    return shuffled(X, y, rng)


def with_noise_features(rng: np.random.Generator, *, n_rows: int, k: int, d: int, gap: float, noise: int) -> Table:
    """Round clusters in `d` features, beside features that know nothing, as wide as the others are."""
    table = round_clusters(rng, n_rows=n_rows, d=d, gap=gap, masses=equal(k))
    return Table(np.column_stack([table.X, rng.normal(size=(len(table.X), noise)) * table.X.std()]), table.y)


def embeddings(rng: np.random.Generator, *, n_rows: int, k: int, d: int, gap: float, signal: int) -> Table:
    """Vectors like those of a language model: clusters in a subspace of few dimensions, and noise in all `d`."""
    table = round_clusters(rng, n_rows=n_rows, d=signal, gap=gap, masses=equal(k))
    subspace = np.linalg.qr(rng.normal(size=(d, signal)))[0].T
    return Table(table.X @ subspace + 0.5 * rng.normal(size=(len(table.X), d)), table.y)


def mixed_units(rng: np.random.Generator, *, n_rows: int, k: int, d: int, gap: float) -> Table:
    """Round clusters, every feature in a unit and from a zero of its own: powers of ten from 1e-4 to 1e5."""
    table = round_clusters(rng, n_rows=n_rows, d=d, gap=gap, masses=equal(k))
    unit = 10.0 ** rng.permutation(np.rint(np.linspace(-4, 5, d)))
    return Table((table.X + rng.uniform(-20, 20, size=d)) * unit, table.y)


def with_background(rng: np.random.Generator, *, n_rows: int, k: int, d: int, gap: float, share: float) -> Table:
    """Round clusters in a uniform background over the same ranges, which is `share` of all rows and is not scored."""
    n_noise = round(n_rows * share)
    table = round_clusters(rng, n_rows=n_rows - n_noise, d=d, gap=gap, masses=equal(k))
    noise = rng.uniform(table.X.min(axis=0), table.X.max(axis=0), size=(n_noise, d))
    y = np.concatenate([table.y, np.full(n_noise, BACKGROUND)])
    return shuffled(np.vstack([table.X, noise]), y, rng)


def curves(points: Sequence[FloatArray], blur: float, rng: np.random.Generator) -> Table:
    """Points on curves, one cluster a curve, each blurred by a Gaussian."""
    X = np.vstack(points)
    y = np.repeat(np.arange(len(points)), [len(curve) for curve in points])
    return shuffled(X + blur * rng.normal(size=X.shape), y, rng)


def on_circle(angle: FloatArray, radius: FloatArray | float = 1.0) -> FloatArray:
    """Points at these angles, so far from the origin."""
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def two_moons(rng: np.random.Generator, *, n_rows: int, blur: float) -> Table:
    """Two half circles that reach into one another."""
    upper, lower = rng.uniform(0, np.pi, size=(2, n_rows // 2))
    return curves([on_circle(upper), np.array([1.0, 0.5]) - on_circle(lower)], blur, rng)


def two_rings(rng: np.random.Generator, *, n_rows: int, blur: float) -> Table:
    """A ring in a ring of twice its radius."""
    inner, outer = rng.uniform(0, 2 * np.pi, size=(2, n_rows // 2))
    return curves([on_circle(inner, 0.5), on_circle(outer)], blur, rng)


def spirals(rng: np.random.Generator, *, n_rows: int, arms: int, turns: float, blur: float) -> Table:
    """Arms that wind around one another; with rows evenly along their length, outer turns are not thinner."""
    way = np.sqrt(rng.uniform(0.02, 1.0, size=(arms, n_rows // arms)))
    starts = 2 * np.pi * np.arange(arms) / arms
    arm_points = [on_circle(start + 2 * np.pi * turns * w, w) for start, w in zip(starts, way, strict=True)]
    return curves(arm_points, blur, rng)


def mixed(rng: np.random.Generator, *, n_rows: int, masses: FloatArray, columns: Columns) -> Table:
    """Numbers beside categories, independent of one another within a cluster."""
    y = members(n_rows, masses)
    categories = [category(y, levels, columns.sure, columns.skew, rng) for levels in columns.levels]
    categories += [category(y, levels, 0.0, columns.skew, rng) for levels in columns.noise_levels]
    numbers = mixed_numbers(y, columns, rng)
    n_numbers = numbers.shape[1]
    X = np.column_stack([numbers, *categories])
    return shuffled(X, y, rng, tuple(range(n_numbers, n_numbers + len(categories))))


def mixed_numbers(y: IntArray, columns: Columns, rng: np.random.Generator) -> FloatArray:
    """Numbers of variance one within a cluster; noise has the same distribution in all."""
    numbers = rng.normal(size=(len(y), columns.numbers + columns.noise_numbers))
    if columns.numbers:
        numbers[:, : columns.numbers] += spread_centres(int(y.max()) + 1, columns.numbers, columns.gap, rng)[y]
    return numbers


def category(y: IntArray, levels: int, sure: float, skew: float, rng: np.random.Generator) -> FloatArray:
    """The level of every row; see `Columns`."""
    k = int(y.max()) + 1
    as_it_comes = rng.permutation(skew ** np.arange(levels))
    favourite = rng.permutation(np.arange(k) % levels)
    drawn = rng.choice(levels, size=len(y), p=as_it_comes / as_it_comes.sum())
    return np.where(rng.uniform(size=len(y)) < sure, favourite[y], drawn).astype(np.float64)


def mixed_family(name: str, masses: FloatArray, columns: Columns) -> Family:
    """A family of mixed tables of 1 500 rows."""
    return Family(name, "mixed", partial(mixed, n_rows=1500, masses=masses, columns=columns))


FAMILIES: tuple[Family, ...] = (
    Family("round", "convex", partial(round_clusters, n_rows=2000, d=10, gap=4.5, masses=equal(8))),
    Family("stretched alike", "convex", partial(stretched_alike, n_rows=2000, k=8, d=10, gap=9.8, stretch=5.0)),
    Family("own covariances", "convex", partial(own_covariances, n_rows=2400, k=8, d=6, gap=17.5, stretch=10.0)),
    Family("own sizes", "convex", partial(round_clusters, n_rows=2500, d=8, gap=9.0, masses=equal(10), sizes=4.0)),
    Family("masses 1 to 90", "convex", partial(round_clusters, n_rows=3000, d=8, gap=4.5, masses=geometric(10, 90.0))),
    Family("heavy tails", "convex", partial(heavy_tails, n_rows=1800, k=6, d=8, gap=5.0, freedom=2.0)),
    Family("noise features", "convex", partial(with_noise_features, n_rows=2000, k=8, d=10, gap=5.3, noise=20)),
    Family("60 clusters", "many", partial(round_clusters, n_rows=6000, d=12, gap=5.1, masses=equal(60))),
    Family("few rows, 300 features", "wide", partial(round_clusters, n_rows=250, d=300, gap=10.0, masses=equal(5))),
    Family("two moons", "curved", partial(two_moons, n_rows=1500, blur=0.06)),
    Family("two rings", "curved", partial(two_rings, n_rows=1500, blur=0.05)),
    Family("three spirals", "curved", partial(spirals, n_rows=1500, arms=3, turns=1.3, blur=0.033)),
    Family("36 blobs in 2 features", "many", partial(round_clusters, n_rows=3600, d=2, gap=5.5, masses=equal(36))),
    Family("100 blobs in 2 features", "many", partial(round_clusters, n_rows=8000, d=2, gap=5.5, masses=equal(100))),
    Family("384 features", "wide", partial(embeddings, n_rows=3000, k=5, d=384, gap=4.5, signal=8)),
    Family("1024 features", "wide", partial(embeddings, n_rows=2000, k=5, d=1024, gap=5.0, signal=8)),
    Family("mixed units", "convex", partial(mixed_units, n_rows=2000, k=6, d=10, gap=4.5)),
    Family("10 % background", "rough", partial(with_background, n_rows=2200, k=8, d=4, gap=5.0, share=0.1)),
    Family("own densities", "rough", partial(round_clusters, n_rows=2400, d=2, gap=40.0, masses=equal(6), sizes=15.0)),
    Family("150 rows", "rough", partial(round_clusters, n_rows=150, d=4, gap=4.4, masses=equal(5))),
    mixed_family("all informative", equal(4), Columns(4, (3, 4, 4, 5), gap=3.2, sure=0.55)),
    mixed_family("categories of noise", equal(4), Columns(4, (), noise_levels=(3, 4, 4, 5), gap=3.8, skew=0.5)),
    mixed_family("weak numbers", equal(4), Columns(2, (3, 3, 4, 4, 4, 4, 5, 5), gap=1.0, sure=0.6)),
    mixed_family("a number of noise", equal(4), Columns(0, (4,) * 10, noise_numbers=1, sure=0.52)),
    mixed_family("half the categories noise", equal(4), Columns(3, (4, 4, 5), noise_levels=(3, 4, 5), gap=3.0)),
    mixed_family("yes or no", equal(3), Columns(2, (2,) * 8, gap=2.5)),
    mixed_family("six clusters", equal(6), Columns(4, (6, 6, 5, 4), gap=3.0)),
    mixed_family("skewed levels", equal(4), Columns(3, (3, 4, 5, 6, 6), gap=2.5, sure=0.5, skew=0.4)),
    mixed_family("small clusters", geometric(5, 12.0), Columns(3, (5, 5, 4, 3), gap=3.0)),
    mixed_family(
        "noise of both kinds",
        geometric(3, 3.0),
        Columns(3, (2, 2, 3, 6), noise_numbers=2, noise_levels=(2, 6), gap=3.0, skew=0.7),
    ),
)
