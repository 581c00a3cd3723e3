"""Private micro-clusters: how rows spread, votes, a few steps of k-means, and how rows lie around their centroids.

Rows are touched by `Curator.release` alone: of every row one vector, of a length that is bounded whatever the row is,
which depends on that row, on public facts and on what was released before. All else works on what was released.

Three scales: rows are brought to u in [-1, 1] by the public ranges, then to z, in which all numbers have about mean 0
and variance 1; residuals in z are clipped to a radius R and divided by it, so that they are no longer than 1.

What becomes of a row must not depend on others, not even in its last bit; that of a matrix product does, because its
sums are made in an order that depends on its size. So u and z are whole numbers, of which all sums over columns are
exact; and of other numbers there is nothing but +, -, *, / and roots, one for one, which are rounded alike everywhere.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy

from goldfc._types import FloatArray, IntArray
from goldfc.learning.k_means import k_means
from goldfc.learning.micro_clusters import MOST_FEATURES_FOR_CORRELATIONS
from goldfc.site.private.curator import Curator

# u is told in steps of 1 / FINE_U, and z in steps of 1 / GRID up to FURTHEST_Z: the squares of 4 096 such numbers add
# up to less than 2^53, and are exact.
FINE_U, GRID, FURTHEST_Z = 2**20, 2**10, 8.0
# Of the budget, so much is for every touch; and so many cells there are, times rows times the root of rho / features.
FOR_RINGS, FOR_MOMENTS, FOR_SCATTER = Fraction(1, 100), Fraction(5, 100), Fraction(13, 100)
FOR_VOTES, FOR_STEPS = (Fraction(9, 100),) * 3, (Fraction(9, 100), Fraction(17, 100), Fraction(28, 100))
# Of few features it is as of so many: there the noise in masses decides, which does not grow with features.
CELLS, FEATURES_AT_LEAST = 0.24, 5
# How far rows are from the middle of the ranges is counted in so many half octaves. The rows of the nearer share
# decide, and the vectors of their moments may be so much longer.
RINGS, NEARER, FURTHER = 16, 0.8, 1.25
# In the vectors of the moments: the weight of the count, and of u; that of the products is 1.
COUNT, MEAN = 0.3, 0.5
# No variance is below this share of the usual one, and of correlations no eigenvalue; and of how rows lie around
# centroids, which is measured better.
LEAST, LITTLE_SCATTER = 0.05, 1e-3
# Residuals are clipped to so much of their usual length (rms): in the first step, where centres are poor; later; and
# for the scatter, whose noise grows with the square of it.
FIRST_CLIP, CLIP, SCATTER_CLIP = 0.8, 0.92, 0.7
# Candidates for every cell; how much nearer to what was voted for new ones are after every vote.
CANDIDATES, NEARER_NEXT = 7, 0.5
# A cell stays if its mass is so many times the noise of a mass, in standard deviations.
CERTAIN = 1.5
# Fewer cells than this tell nothing.
FEWEST_CELLS = 4
# To find a number between a thousandth and a thousand exactly enough.
HALVINGS = 40
# Residuals that are all clipped do not tell how long they are: their share of the square is taken to be between these.
SHARES = 0.02, 0.98


@dataclass(frozen=True)
class Released:
    """Micro-clusters, in the features' own units."""

    centroids: FloatArray  # (cells, features)
    mass: FloatArray  # (cells,)
    noise: FloatArray  # (features,) its variance in the centroids, in the mean over rows
    scatter: FloatArray  # (features, features) the covariance of a row around its centroid


@dataclass(frozen=True)
class NoisySpread:
    """How rows spread in u: their number, means, deviations and correlations."""

    n: float
    mean: FloatArray
    scale: FloatArray
    correlations: FloatArray


@dataclass(frozen=True)
class ToGrid:
    """From rows to whole numbers: z times GRID."""

    low: FloatArray
    high: FloatArray
    spread: NoisySpread

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Every number of the result is whole, and at most 2^13 in size."""
        u = by_ranges(rows, self.low, self.high) / FINE_U
        return on_grid((u - self.spread.mean) / self.spread.scale)


@dataclass(frozen=True)
class NoisyCells:
    """Centroids in z, their masses, and the sums of squared lengths of residuals."""

    centroids: FloatArray
    mass: FloatArray
    squares: FloatArray
    error: FloatArray

    @property
    def noise(self) -> float:
        """The variance of noise in a coordinate of the centroids, in the mean over rows."""
        return float(self.error @ self.mass / self.mass.sum())

    @property
    def rms(self) -> float:
        """The usual length of a residual."""
        return float(np.sqrt(max(self.squares.sum() / self.mass.sum(), 1e-4)))


def cells_for(n_rows: float, n_features: int, rho: Fraction) -> float:
    """So many cells can be told through the noise."""
    return float(CELLS * n_rows * float(rho / max(n_features, FEATURES_AT_LEAST)) ** 0.5)


def find_private(
    curator: Curator, low: FloatArray, high: FloatArray, rho: Fraction, most: int, rng: np.random.Generator
) -> Released:
    """The micro-clusters of the curator's rows, at most so many; `rng` is public, it only draws candidates."""
    radius = release_radius(curator, low, high, rho * FOR_RINGS)
    spread = release_spread(curator, low, high, radius, rho * FOR_MOMENTS)
    unit = ToGrid(low, high, spread)
    count = int(min(most, max(FEWEST_CELLS, cells_for(spread.n / curator.most_rows, len(low), rho))))
    centres = release_votes(curator, unit, count, [rho * share for share in FOR_VOTES], rng)
    cells = release_step(curator, unit, centres, FIRST_CLIP * len(low) ** 0.5, rho * FOR_STEPS[0])
    for share in FOR_STEPS[1:]:
        cells = release_step(curator, unit, split(cells, count, rng), CLIP * cells.rms, rho * share)
    scatter = release_scatter(curator, unit, cells, rho * FOR_SCATTER)
    width = (high - low) / 2.0
    centre, scale = low + (spread.mean + 1.0) * width, spread.scale * width
    return Released(
        cells.centroids * scale + centre, cells.mass, cells.noise * scale**2, scatter * np.outer(scale, scale)
    )


# --- what is released, and how long the vectors are at most ---


def release_radius(curator: Curator, low: FloatArray, high: FloatArray, rho: Fraction) -> float:
    """How far rows are from the middle of the ranges, in u; so that wide ranges cost nothing.

    Every row adds 1 to one ring: length 1.
    """
    # The squared distances, in steps of u, at which a ring ends and the next begins.
    ends = len(low) * FINE_U**2 * 2.0 ** np.arange(1 - RINGS, 0)

    def touch(rows: FloatArray) -> tuple[IntArray, FloatArray]:
        return np.searchsorted(ends, squared_lengths(by_ranges(rows, low, high)), side="right"), np.ones((len(rows), 1))

    counts = np.maximum(curator.release("rings", touch, (RINGS, 1), 1.0, rho)[:, 0], 0.0)
    if not counts.any():
        return float(np.sqrt(len(low)))
    shares = np.concatenate([[0.0], np.cumsum(counts) / counts.sum()])
    place = float(np.interp(NEARER, shares, np.arange(RINGS + 1.0)))
    return float(np.sqrt(len(low)) * min(1.0, FURTHER * 2.0 ** ((place - RINGS) / 2.0)))


def release_spread(curator: Curator, low: FloatArray, high: FloatArray, radius: float, rho: Fraction) -> NoisySpread:
    """Count, means and second moments, of u clipped to the radius.

    Of every row (COUNT, MEAN q, q q') with |q| <= 1, as its upper triangle with sqrt(2) off the diagonal, so that its
    length is that of q q', |q|^2. Squared: COUNT^2 + MEAN^2 |q|^2 + |q|^4 <= COUNT^2 + MEAN^2 + 1, reached at |q| = 1.
    """
    d = len(low)
    bound = float(np.sqrt(COUNT**2 + MEAN**2 + 1.0))

    def touch(rows: FloatArray) -> tuple[IntArray, FloatArray]:
        q = clipped(by_ranges(rows, low, high), radius * FINE_U)
        vectors = np.hstack([np.full((len(q), 1), COUNT), MEAN * q, products_of_pairs(q)])
        return np.zeros(len(q), dtype=np.int64), vectors

    sums = curator.release("moments", touch, (1, 1 + d + len(pairs_of_columns(d)[0])), bound, rho)[0]
    n = max(float(sums[0]) / COUNT, 10.0)
    mean = np.clip(sums[1 : d + 1] * (radius / MEAN / n), -1.0, 1.0)
    moments = matrix(sums[d + 1 :], d) * (radius**2 / n) - np.outer(mean, mean)
    # The noise in a variance; in a covariance it has half its variance.
    noise = (curator.noise(bound, rho) * radius**2 / n) ** 2
    return shrunk_spread(n, mean, moments, noise, 1e-3 * radius**2 / d)


def shrunk_spread(n: float, mean: FloatArray, moments: FloatArray, noise: float, least: float) -> NoisySpread:
    """Variances drawn to their mean, and correlations to 0, as far as they differ from these by no more than noise."""
    d = len(mean)
    variance = np.diagonal(moments)
    usual = max(float(variance.mean()), least)
    differ = max(float(variance.var()) - noise * (1.0 - 1.0 / d), 0.0)
    scale = np.sqrt(np.maximum(usual + (variance - usual) * (differ / (differ + noise)), LEAST * usual))
    correlations = moments / np.outer(scale, scale)
    np.fill_diagonal(correlations, 1.0)
    return NoisySpread(n, mean, scale, covariance_near(shrunk(correlations, noise / 2.0 / usual**2), LEAST))


def release_votes(
    curator: Curator, unit: ToGrid, count: int, shares: list[Fraction], rng: np.random.Generator
) -> FloatArray:
    """Centres in z that rows have voted for: every row for the nearest of many candidates, each time nearer ones.

    Every row adds 1 to one candidate: length 1.
    """
    d = len(unit.low)
    root = np.linalg.cholesky(unit.spread.correlations).T
    candidates = rng.standard_normal((CANDIDATES * count, d)) @ root
    centres = candidates[:count]
    for number, rho in enumerate(shares):
        whole = on_grid(candidates)

        def touch(rows: FloatArray, whole: FloatArray = whole) -> tuple[IntArray, FloatArray]:
            return nearest_cell(unit(rows), whole), np.ones((len(rows), 1))

        votes = curator.release("votes", touch, (len(whole), 1), 1.0, rho)[:, 0]
        chosen = enough(votes, unit.spread.n)
        points, weight = whole[chosen] / GRID, np.maximum(votes[chosen], 1.0)
        centres = k_means(points, count, rng, weight)[1] if len(points) > count else points
        around = np.repeat(points, max(1, CANDIDATES * count // 2 // len(points)), axis=0)
        step = NEARER_NEXT ** (number + 1) * rng.standard_normal(around.shape) @ root
        candidates = np.vstack([centres, around + step])
    return centres


def release_step(curator: Curator, unit: ToGrid, centres: FloatArray, radius: float, rho: Fraction) -> NoisyCells:
    """One step of k-means; cells that may as well be empty are left out.

    Of every row, in the cell of the nearest centre, (1/2, q, (|q|^2 - 1/2) / 2) with |q| <= 1. Squared:
    1/4 + |q|^2 + (|q|^2 - 1/2)^2 / 4, which grows with |q|^2: at most 1/4 + 1 + 1/16 = 1.3125.
    """
    d, whole, bound = centres.shape[1], on_grid(centres), float(np.sqrt(1.3125))

    def touch(rows: FloatArray) -> tuple[IntArray, FloatArray]:
        own, q, square = residuals(unit(rows), whole, radius)
        return own, np.hstack([np.full((len(q), 1), 0.5), q, (square[:, None] - 0.5) / 2.0])

    sums = curator.release("step", touch, (len(whole), d + 2), bound, rho)
    noise = curator.noise(bound, rho)
    mass = 2.0 * sums[:, 0]
    stays = mass > CERTAIN * 2.0 * noise
    stays[np.argmax(mass)] = True
    sums, mass = sums[stays], np.maximum(mass[stays], 1.0)
    centroids = whole[stays] / GRID + sums[:, 1 : d + 1] * (radius / mass)[:, None]
    squares = np.maximum(2.0 * sums[:, -1] + 0.5 * mass, 0.0) * radius**2
    return NoisyCells(centroids, mass, squares, (noise * radius / mass) ** 2)


def release_scatter(curator: Curator, unit: ToGrid, cells: NoisyCells, rho: Fraction) -> FloatArray:
    """How rows lie around their centroids, in the mean over all rows.

    Of every row q q' with |q| <= 1, of length |q|^2 <= 1.
    """
    d, whole, radius = cells.centroids.shape[1], on_grid(cells.centroids), SCATTER_CLIP * cells.rms

    def touch(rows: FloatArray) -> tuple[IntArray, FloatArray]:
        _, q, _ = residuals(unit(rows), whole, radius)
        return np.zeros(len(q), dtype=np.int64), products_of_pairs(q)

    scatter = matrix(curator.release("scatter", touch, (1, len(pairs_of_columns(d)[0])), 1.0, rho)[0], d)
    trace, form = float(np.trace(scatter)), np.eye(d)
    if trace > 0.0:
        # In what is off the diagonal, noise has half its variance.
        form = shrunk(scatter * (d / trace), 0.5 * (curator.noise(1.0, rho) * d / trace) ** 2)
    share = float(np.clip(trace / cells.mass.sum(), *SHARES))
    return covariance_near(form, LITTLE_SCATTER) * variance_of(share, radius, d)


# --- rows, one for one ---


def by_ranges(rows: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Rows in u, clipped, as whole numbers: u times FINE_U. What is no number lies in the middle."""
    with np.errstate(over="ignore", invalid="ignore"):
        u = (rows - low) / (high - low)
        u *= 2.0
        u -= 1.0
    np.clip(u, -1.0, 1.0, out=u)
    u[np.isnan(u)] = 0.0
    u *= FINE_U
    return np.asarray(np.rint(u, out=u))


def on_grid(z: FloatArray) -> FloatArray:
    """As whole numbers."""
    near = np.clip(z, -FURTHEST_Z, FURTHEST_Z)
    near *= GRID
    return np.asarray(np.rint(near, out=near))


def nearest_cell(rows: FloatArray, centres: FloatArray) -> IntArray:
    """The nearest centre, where 2 x c - c^2 is largest; all are whole numbers, and so are all sums, which are exact."""
    score = np.column_stack([rows, np.ones(len(rows))]) @ np.vstack([2.0 * centres.T, -squared_lengths(centres)])
    return np.asarray(score.argmax(axis=1))


def residuals(rows: FloatArray, centres: FloatArray, radius: float) -> tuple[IntArray, FloatArray, FloatArray]:
    """The nearest centre, where a row is from there as a share of the radius, and the square of that, up to 1."""
    own = nearest_cell(rows, centres)
    apart, whole = rows - centres[own], radius * GRID
    return own, clipped(apart, whole), np.minimum(squared_lengths(apart) / (whole * whole), 1.0)


def clipped(vectors: FloatArray, radius: float) -> FloatArray:
    """Whole vectors as shares of the radius, none longer than 1."""
    return np.asarray(vectors / np.maximum(np.sqrt(squared_lengths(vectors)), radius)[:, None])


def squared_lengths(vectors: FloatArray) -> FloatArray:
    """The squared lengths of whole vectors, exact."""
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors))


def pairs_of_columns(n_features: int) -> tuple[IntArray, IntArray]:
    """Which features are multiplied with which; of many, each with itself."""
    if n_features > MOST_FEATURES_FOR_CORRELATIONS:
        return np.arange(n_features), np.arange(n_features)
    down, across = np.triu_indices(n_features)
    return down, across


def products_of_pairs(vectors: FloatArray) -> FloatArray:
    """The upper triangle of v v', with sqrt(2) off the diagonal: of the length |v|^2, or shorter if it is a part."""
    n_rows, d = vectors.shape
    down, across = pairs_of_columns(d)
    if len(down) == d:
        return vectors * vectors
    products = np.empty((n_rows, len(down)))
    for column, first in enumerate(np.searchsorted(down, np.arange(d))):
        np.multiply(vectors[:, [column]], vectors[:, column:], out=products[:, first : first + d - column])
    products *= np.where(down == across, 1.0, np.sqrt(2.0))
    return products


# --- what is made of what was released ---


def matrix(triangle: FloatArray, d: int) -> FloatArray:
    """A symmetric matrix from its upper triangle, as `products` has it."""
    down, across = pairs_of_columns(d)
    full = np.zeros((d, d))
    full[down, across] = triangle / np.where(down == across, 1.0, np.sqrt(2.0))
    return full + np.triu(full, 1).T


def variance_of(share: float, radius: float, d: int) -> float:
    """Of a number of residuals, if those clipped to a radius have so much of its square: as normal numbers have it.

    With c = radius^2 / variance, the mean of min(chi^2, c), chi^2 of d numbers, is d F_{d + 2}(c) + c (1 - F_d(c)); it
    is a share of c that falls with c.
    """
    low, high = 1e-3, 1e3  # c / d
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        c = middle * d
        own, next_one = scipy.special.gammainc([d / 2.0, d / 2.0 + 1.0], c / 2.0)
        inside = next_one / middle + 1.0 - own
        low, high = (middle, high) if inside > share else (low, middle)
    return float(radius**2 / (high * d))


def shrunk(form: FloatArray, noise: float) -> FloatArray:
    """What is off the diagonal drawn to 0, as far as it differs from that by no more than noise of such a variance."""
    d, diagonal = len(form), np.diag(np.diagonal(form))
    others = form - diagonal
    square = float((others**2).sum()) / max(1, d * (d - 1))
    return np.asarray(diagonal + others * (max(0.0, square - noise) / max(square, 1e-12)))


def covariance_near(form: FloatArray, least: float) -> FloatArray:
    """In no direction less than that share of the usual variance, and of all together as much as before."""
    d = len(form)
    if d > MOST_FEATURES_FOR_CORRELATIONS:
        values = np.maximum(np.diagonal(form), least)
        return np.diag(values * (d / values.sum()))
    values, vectors = np.linalg.eigh(form)
    values = np.maximum(values, least)
    near = (vectors * (values * (d / values.sum()))) @ vectors.T
    return np.asarray(0.5 * (near + near.T))


def enough(votes: FloatArray, n: float) -> IntArray:
    """Those with most votes, until these are as many as there are rows; of those with any, at least one."""
    order = np.argsort(-votes)
    least = int(np.searchsorted(np.cumsum(np.maximum(votes[order], 0.0)), n)) + 1
    return order[: max(1, min(least, int((votes > 0.0).sum())))]


def split(cells: NoisyCells, count: int, rng: np.random.Generator) -> FloatArray:
    """The cell with most squares becomes two, until there are so many."""
    centroids, mass, squares = list(cells.centroids), list(cells.mass), list(cells.squares)
    d = cells.centroids.shape[1]
    while len(centroids) < count:
        one = int(np.argmax(squares))
        apart = rng.choice([-0.5, 0.5], d) * np.sqrt(squares[one] / mass[one] / d)
        centroids.append(centroids[one] + apart)
        centroids[one] = centroids[one] - apart
        # Halves have half the rows, and less spread.
        mass[one], squares[one] = mass[one] / 2.0, squares[one] / 2.5
        mass.append(mass[one])
        squares.append(squares[one])
    return np.array(centroids)
