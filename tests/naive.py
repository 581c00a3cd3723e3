"""The paper in slow loops: the specification that every kernel is held to.

Same function names as in the package, plain Python numbers, no arrays of clusters, no shortcuts. Where the order of
floating-point operations could decide a tie (a mean that follows its members, a distance summed over the features), it
is written in the order that the package promises.
"""

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.micro_clusters import MicroClusters
from goldfc.learning.paper.competition import Learning

Row = list[float]
NEGLIGIBLE = 1e-12
DECIMALS = 12


@dataclass
class Cluster:
    """A candidate cluster and the numbers of the rows in it."""

    centroid: Row
    importance: Row
    members: set[int] = field(default_factory=set)
    mass: float = 1.0
    wins: float = 1.0
    weight: float = 1.0


# --- CPL -------------------------------------------------------------------------------------------------------------


def compete(
    X: FloatArray, n_candidates: int, learning: Learning, rng: np.random.Generator, mass: FloatArray | None = None
) -> list[Cluster]:
    """CPL on the rows of X; the clusters that are left, in their original order."""
    rows = [[float(value) for value in row] for row in X]
    masses = [1.0] * len(rows) if mass is None else (mass / mass.mean()).tolist()
    seeds = rng.choice(len(rows), size=n_candidates, replace=False)
    clusters = [Cluster(list(rows[i]), [1.0 / len(rows[i])] * len(rows[i]), {int(i)}, masses[i]) for i in seeds]
    all_wins = float(n_candidates)
    for number in range(1, learning.max_epochs + 1):
        moved, clusters = epoch(rows, masses, clusters, all_wins, learning.learning_rate)
        all_wins += len(rows)
        if moved == 0 or number == learning.max_epochs:
            break
        clusters = drop_singletons(clusters)
        for cluster in clusters:
            cluster.centroid, cluster.importance = feature_importance(rows, cluster.members, masses)
    return clusters


def epoch(
    rows: list[Row], masses: Row, clusters: list[Cluster], all_wins: float, rate: float
) -> tuple[int, list[Cluster]]:
    """Every row once, in order; a row of mass two counts as two rows that come at once."""
    moved = 0
    for i, (x, mass) in enumerate(zip(rows, masses, strict=True)):
        alive = [cluster for cluster in clusters if cluster.members]
        winner, rival, ratio = winner_and_rival(x, alive, all_wins)
        winner.wins += mass
        winner.weight += mass * rate
        if rival is not None:
            rival.weight -= mass * rate * ratio
        all_wins += mass
        if i not in winner.members:
            moved += 1
            before = next((cluster for cluster in alive if i in cluster.members), None)
            join(x, i, mass, winner)
            if before is not None:
                leave(x, i, mass, before)
    return moved, [cluster for cluster in clusters if cluster.members]


def winner_and_rival(x: Row, clusters: list[Cluster], all_wins: float) -> tuple[Cluster, Cluster | None, float]:
    """Eqs. (9), (12): best and second best score, the earlier cluster of equal ones."""
    if len(clusters) == 1:
        return clusters[0], None, 0.0
    scores = [
        (log_weight(cluster.weight) + log_gamma(cluster.wins, all_wins)) - 0.5 * weighted_distance(x, cluster)
        for cluster in clusters
    ]
    order = sorted(range(len(clusters)), key=lambda j: (-scores[j], j))
    return clusters[order[0]], clusters[order[1]], math.exp(scores[order[1]] - scores[order[0]])


def log_weight(raw_weight: float) -> float:
    """Eq. (15)."""
    t = 5.0 - 10.0 * raw_weight
    return -(max(t, 0.0) + math.log1p(math.exp(-abs(t))))


def log_gamma(wins: float, all_wins: float) -> float:
    """Eq. (10)."""
    return math.log(1.0 - wins / all_wins)


def weighted_distance(x: Row, cluster: Cluster) -> float:
    """Eq. (8)."""
    total = 0.0
    for value, center, importance in zip(x, cluster.centroid, cluster.importance, strict=True):
        total += importance * (value - center) * (value - center)
    return total


def join(x: Row, i: int, mass: float, cluster: Cluster) -> None:
    """The mean follows at once."""
    cluster.members.add(i)
    cluster.mass += mass
    cluster.centroid = [
        center + mass * (value - center) / cluster.mass for value, center in zip(x, cluster.centroid, strict=True)
    ]


def leave(x: Row, i: int, mass: float, cluster: Cluster) -> None:
    """The mean follows at once."""
    cluster.members.remove(i)
    cluster.mass -= mass
    if cluster.members:
        cluster.centroid = [
            center - mass * (value - center) / cluster.mass for value, center in zip(x, cluster.centroid, strict=True)
        ]


def drop_singletons(clusters: list[Cluster]) -> list[Cluster]:
    """A cluster of one leaves, unless all are such."""
    larger = [cluster for cluster in clusters if len(cluster.members) > 1]
    return larger or clusters


def objective(rows: list[Row], clusters: list[Cluster], masses: Row | None = None) -> float:
    """Eqs. (6), (22)."""
    total = 0.0
    for cluster in clusters:
        for i in cluster.members:
            distances = [weighted_distance(rows[i], other) for other in clusters]
            nearest = min(distances)
            own = math.exp(-0.5 * (weighted_distance(rows[i], cluster) - nearest))
            total += (
                (1.0 if masses is None else masses[i])
                * own
                / sum(math.exp(-0.5 * (distance - nearest)) for distance in distances)
            )
    return total


# --- importance ------------------------------------------------------------------------------------------------------


def feature_importance(rows: list[Row], members: set[int], masses: Row) -> tuple[Row, Row]:
    """Eq. (21): centroid and h of one cluster."""
    n_features = len(rows[0])
    inside = sorted(members)
    outside = [i for i in range(len(rows)) if i not in members]
    centroid, products = [], []
    for m in range(n_features):
        everyone = [(row[m], mass) for row, mass in zip(rows, masses, strict=True)]
        own = [everyone[i] for i in inside]
        center = mean(own)
        alpha = distinctness(own, [everyone[i] for i in outside], everyone)
        beta = sum(mass * math.exp(-0.5 * (value - center) ** 2) for value, mass in own) / sum(mass for _, mass in own)
        centroid.append(center)
        products.append(alpha * beta)
    total = sum(products)
    if total > 0.0:
        return centroid, [round(product / total, DECIMALS) for product in products]
    return centroid, [round(1.0 / n_features, DECIMALS)] * n_features


# Values with their masses.
Weighted = list[tuple[float, float]]


def distinctness(inside: Weighted, outside: Weighted, column: Weighted) -> float:
    """Eqs. (16)-(19): Hellinger distance of two Gaussians."""
    if not outside:
        return 0.0
    scale = variance(column) or 1.0
    gap = without_noise((mean(inside) - mean(outside)) ** 2 / scale)
    one, other = without_noise(variance(inside) / scale), without_noise(variance(outside) / scale)
    if one + other == 0.0:
        return 1.0 if gap > 0.0 else 0.0
    overlap = math.sqrt(2.0 * math.sqrt(one * other) / (one + other)) * math.exp(-gap / (4.0 * (one + other)))
    return math.sqrt(without_noise(1.0 - overlap))


def mean(values: Weighted) -> float:
    """A mean that is exact when all values are equal."""
    result, total = 0.0, 0.0
    for value, mass in values:
        total += mass
        result += mass * (value - result) / total
    return result


def variance(values: Weighted) -> float:
    """Sample variance, n - 1 of n by mass; zero for one value."""
    center, n = mean(values), len(values)
    if n == 1:
        return 0.0
    total = sum(mass for _, mass in values)
    return sum(mass * (value - center) ** 2 for value, mass in values) / (total * (n - 1) / n)


def without_noise(relative: float) -> float:
    """Rounding noise counts as zero."""
    return relative if relative > NEGLIGIBLE else 0.0


# --- MCPL and REMC ---------------------------------------------------------------------------------------------------


def labels_of(clusters: list[Cluster], n_rows: int) -> list[int]:
    """The number of every row's cluster."""
    return [next(j for j, cluster in enumerate(clusters) if i in cluster.members) for i in range(n_rows)]


def find_levels(X: FloatArray, learning: Learning, rng: np.random.Generator) -> list[list[int]]:
    """MCPL: one list of labels per level."""
    levels: list[list[int]] = []
    n_candidates = max(1, round(learning.initial_fraction * len(X)))
    while True:
        clusters = compete(X, n_candidates, learning, rng)
        if levels and len(clusters) in (1, n_candidates):
            return levels
        levels.append(labels_of(clusters, len(X)))
        if len(clusters) == 1:
            return levels
        n_candidates = len(clusters)


def fuse_levels(codes: list[list[int]], modes: list[list[int]], max_rounds: int) -> list[int]:
    """REMC from given first modes; one label per encoded row."""
    n_levels = len(codes[0])
    weights = [[1.0 / n_levels] * n_levels for _ in modes]
    labels = [-1] * len(codes)
    for _ in range(max_rounds):
        before, labels = labels, best_matches(codes, modes, weights)
        if labels == before:
            break
        for j in range(len(modes)):
            inside = [code for code, label in zip(codes, labels, strict=True) if label == j]
            outside = [code for code, label in zip(codes, labels, strict=True) if label != j]
            if inside:
                modes[j] = [most_common([code[level] for code in inside]) for level in range(n_levels)]
                weights[j] = level_weights(inside, outside)
    return labels


def best_matches(codes: list[list[int]], modes: list[list[int]], weights: list[Row]) -> list[int]:
    """Eqs. (24), (25)."""
    labels = []
    for code in codes:
        matches = [
            sum(weight for value, mode, weight in zip(code, modes[j], weights[j], strict=True) if value == mode)
            for j in range(len(modes))
        ]
        labels.append(matches.index(max(matches)))
    return labels


def most_common(values: list[int]) -> int:
    """The mode; the smallest of equally common ones."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))


def level_weights(inside: list[list[int]], outside: list[list[int]]) -> Row:
    """Eqs. (26)-(29) for one cluster."""
    products = []
    for level in range(len(inside[0])):
        own, others = [code[level] for code in inside], [code[level] for code in outside]
        values = set(own) | set(others)
        alpha = math.sqrt(0.5 * sum((share(value, own) - share(value, others)) ** 2 for value in values))
        beta = sum(share(value, own) for value in own) / len(own)
        products.append(alpha * beta)
    total = sum(products)
    if total > 0.0:
        return [round(product / total, DECIMALS) for product in products]
    return [round(1.0 / len(products), DECIMALS)] * len(products)


def share(value: int, values: list[int]) -> float:
    """Eq. (28), as a share."""
    return values.count(value) / len(values) if values else 0.0


# --- Ward's tree -----------------------------------------------------------------------------------------------------


def ward_partitions(points: list[Row], masses: Row) -> list[set[frozenset[int]]]:
    """Merge the cheapest pair again and again: the partitions from all apart to all together."""
    clusters = [frozenset([i]) for i in range(len(points))]
    partitions = [set(clusters)]
    while len(clusters) > 1:
        one, other = min(pairs_of(clusters), key=lambda pair: cost_of_merging(pair[0], pair[1], points, masses))
        clusters = [cluster for cluster in clusters if cluster not in (one, other)] + [one | other]
        partitions.append(set(clusters))
    return partitions


def pairs_of(clusters: list[frozenset[int]]) -> list[tuple[frozenset[int], frozenset[int]]]:
    """Each pair once."""
    return [(one, other) for number, one in enumerate(clusters) for other in clusters[number + 1 :]]


def cost_of_merging(one: frozenset[int], other: frozenset[int], points: list[Row], masses: Row) -> float:
    """By how much the scatter around means grows."""
    return scatter_around_mean(one | other, points, masses) - (
        scatter_around_mean(one, points, masses) + scatter_around_mean(other, points, masses)
    )


def scatter_around_mean(members: frozenset[int], points: list[Row], masses: Row) -> float:
    """The sum of squared distances from the mean, by mass."""
    total = sum(masses[i] for i in members)
    scatter = 0.0
    for m in range(len(points[0])):
        center = sum(masses[i] * points[i][m] for i in members) / total
        scatter += sum(masses[i] * (points[i][m] - center) ** 2 for i in members)
    return scatter


# --- linkage ---------------------------------------------------------------------------------------------------------


def genie_partitions(points: list[Row], masses: Row, limit: float) -> list[set[frozenset[int]]]:
    """Join the nearest pair again and again, one of the smallest if masses are too unequal; all partitions."""
    clusters = [frozenset([i]) for i in range(len(points))]
    partitions = [set(clusters)]
    while len(clusters) > 1:
        mass = {cluster: sum(masses[i] for i in cluster) for cluster in clusters}
        pairs = pairs_of(clusters)
        if gini(list(mass.values())) > limit:
            pairs = [pair for pair in pairs if min(mass[pair[0]], mass[pair[1]]) == min(mass.values())]
        one, other = min(pairs, key=lambda pair: shortest_way(pair[0], pair[1], points))
        clusters = [cluster for cluster in clusters if cluster not in (one, other)] + [one | other]
        partitions.append(set(clusters))
    return partitions


def gini(masses: Row) -> float:
    """All differences, as a share of the largest sum of them that such masses can have."""
    n = len(masses)
    return sum(abs(one - other) for one in masses for other in masses) / (2.0 * (n - 1) * sum(masses)) if n > 1 else 0.0


def shortest_way(one: frozenset[int], other: frozenset[int], points: list[Row]) -> float:
    """From any point of one to any of the other."""
    return min(math.dist(points[i], points[j]) for i in one for j in other)


def gap(points: list[Row], masses: Row, labels: list[int]) -> float:
    """The mean by mass, over clusters: the way out in weakest steps, at most two; a single point counts half a step."""
    total = 0.0
    for cluster in set(labels):
        own = [i for i, label in enumerate(labels) if label == cluster]
        others = [i for i in range(len(labels)) if i not in own]
        mass = sum(masses[i] for i in own)
        if len(own) == 1:
            total += 0.5 * mass
        else:
            out = shortest_way(frozenset(own), frozenset(others), points)
            total += mass * min(2.0, out / weakest_step(own, points, masses))
    return total / (2.0 * sum(masses))


def weakest_step(own: list[int], points: list[Row], masses: Row) -> float:
    """The longest edge of the tree with a fifth of the mass on either side; if there is none, the median of all."""
    edges = spanning_edges(own, points)
    length = {edge: math.dist(points[edge[0]], points[edge[1]]) for edge in edges}
    whole = sum(masses[i] for i in own)
    holding = []
    for edge in edges:
        side = sum(masses[i] for i in reached(edge[0], [other for other in edges if other != edge]))
        if min(side, whole - side) >= 0.2 * whole:
            holding.append(length[edge])
    return max(holding) if holding else float(np.median(list(length.values())))


def spanning_edges(own: list[int], points: list[Row]) -> list[tuple[int, int]]:
    """Kruskal: the shortest edges that close no circle."""
    edges: list[tuple[int, int]] = []
    pairs = [(i, j) for number, i in enumerate(own) for j in own[number + 1 :]]
    for i, j in sorted(pairs, key=lambda pair: math.dist(points[pair[0]], points[pair[1]])):
        if j not in reached(i, edges):
            edges.append((i, j))
    return edges


def reached(start: int, edges: list[tuple[int, int]]) -> set[int]:
    """All points that edges lead to."""
    found = {start}
    while more := {end for edge in edges if set(edge) & found for end in edge} - found:
        found |= more
    return found


# --- mixtures --------------------------------------------------------------------------------------------------------

RIDGE = 0.01


def fit_mixture(micro: MicroClusters, start: IntArray, *, own: bool, trust: float) -> tuple[list[Row], float]:
    """EM until a row's mean log-likelihood hardly grows."""
    memberships, before = [[float(j == label) for j in range(start.max() + 1)] for label in start], -math.inf
    for _ in range(50):
        memberships, log_likelihood = em_step(micro, memberships, own=own, trust=trust)
        if log_likelihood - before < 1e-4:
            break
        before = log_likelihood
    return memberships, log_likelihood


def em_step(micro: MicroClusters, memberships: list[Row], *, own: bool, trust: float) -> tuple[list[Row], float]:
    """One step: every density by itself. The constant of the Gaussian, which is the same everywhere, is left out."""
    n, total = len(memberships), float(micro.mass.sum())
    scatter = micro.scatter if micro.scatter.ndim == 2 else np.diag(micro.scatter)
    within = scatter / total
    weights = [[memberships[i][j] * micro.mass[i] for i in range(n)] for j in range(len(memberships[0]))]
    clusters = [(max(sum(weight), 1e-300), mean_of(micro.centroids, weight)) for weight in weights]
    around = [scatter_of(micro.centroids, weight, mean) for weight, (_, mean) in zip(weights, clusters, strict=True)]
    new, log_likelihood = [], 0.0
    for i in range(n):
        logs = []
        for j, (mass, mean) in enumerate(clusters):
            common = np.sum(around, axis=0) / total
            # As if two micro-clusters more, and half a one for every number, lay as all do.
            held = (2.0 + 0.5 * len(mean)) * total / n
            between = (around[j] + held * common) / (mass + held) if own else common
            covariance = trusted(between + within, 1.0 if own else trust) + RIDGE * np.eye(len(mean))
            shares = (np.dot(weights[j], micro.shares) + micro.mass @ micro.shares / total) / (mass + 1.0)
            inverse, apart = np.linalg.inv(covariance), micro.centroids[i] - mean
            squared = apart @ inverse @ apart + np.trace(inverse @ within)
            levels = sum(share * math.log(q) for share, q in zip(micro.shares[i], shares, strict=True) if share > 0.0)
            logs.append(math.log(mass / total) - 0.5 * (squared + np.linalg.slogdet(covariance)[1]) + levels)
        top = max(logs)
        density = sum(math.exp(log - top) for log in logs)
        new.append([math.exp(log - top) / density for log in logs])
        log_likelihood += float(micro.mass[i]) * (top + math.log(density))
    return new, log_likelihood / total


def mean_of(points: FloatArray, weight: Row) -> FloatArray:
    """By weight."""
    return np.asarray(np.dot(weight, points) / max(sum(weight), 1e-300))


def scatter_of(points: FloatArray, weight: Row, mean: FloatArray) -> FloatArray:
    """Of points around a mean, by weight."""
    scatter = np.zeros((len(mean), len(mean)))
    for point, mass in zip(points, weight, strict=True):
        scatter += mass * np.outer(point - mean, point - mean)
    return scatter


def trusted(covariance: FloatArray, trust: float) -> FloatArray:
    """Correlations as far as they are trusted."""
    return np.asarray(trust * covariance + (1.0 - trust) * np.diag(np.diag(covariance)))


# --- consensus -------------------------------------------------------------------------------------------------------


def agreement(memberships: list[FloatArray], mass: FloatArray, labels: IntArray) -> Row:
    """The whole co-association, pair by pair; of every row, the share of it that is with its own label."""
    n = len(mass)
    certainty = []
    for i in range(n):
        together = [sum(float(those[i] @ those[j]) for those in memberships) * float(mass[j]) for j in range(n)]
        own = sum(value for value, label in zip(together, labels, strict=True) if label == labels[i])
        certainty.append(own / sum(together))
    return certainty
