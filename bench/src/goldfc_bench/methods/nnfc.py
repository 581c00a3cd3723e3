"""NN-FC: k-means centres of perturbed rows, density peaks over shared nearest neighbours at the server.

Source: Wang, Pang and Pedrycz, "One-shot Federated Clustering based on Stable Nearest Neighbor Relationships" (2024);
the peaks are those of SNN-DPC.
Site: noise is added to the rows, then k-means with one cluster for every three rows, up to 50. Upload, once: the
centres. Server: of all centres, the k with the largest density times distance become the global centroids. Density
counts the neighbours that a centre shares with its neighbours; distance is that to the nearest denser centre, longer
where both have their neighbours far away. Labels: every row, without noise, goes to its nearest global centroid.
Settings: K = 2 neighbours, a centre itself being the first; `noise`, see below; 50 centres; k-means++ with 10 starts.
Uploads a row where a centre has no other: perturbed, but by noise that hides little, and as it is with `noise="none"`.

Note: the paper's noise is of Laplace's distribution and so weak that rows keep their order by distance ("laplace"). The
authors' code adds the uniform number that it makes that noise from as well, folded into (0, 0.5] ("as_shipped", the
default): all centres move by about 0.25 in every feature, whatever the scale of the data. Neither is a guarantee.
Note: the code has K = 2; the results that come with it are from several K, and are the best of 1000 runs each. With
K = 2 only two centres that are each other's nearest have a density above 0. Ties, which the code leaves to the sorting
routine, go to the site that is first by name, and then to the centre that it sent first.
Note: the code divides by zero where two centres coincide; here they count as close as the closest two that do not.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadSettings
from goldfc.message.message import Message
from goldfc.server.round import Port
from goldfc_bench.methods.protocol import Answer, Site, UploadsRows
from goldfc_bench.methods.steps import ask_all, check_enough, k_means, n_distinct, stacked

Noise = Literal["none", "laplace", "as_shipped"]
ROWS_PER_CENTRE = 3
# How much weaker the noise is than would be just enough to change who is nearest.
MARGIN = 1.01
# Distances between centres are computed so many at a time: 32 MB.
BLOCK = 2**22


@dataclass(frozen=True)
class NNFC:
    """Up to 50 k-means centres of perturbed rows per site, k density peaks among them at the server."""

    name: ClassVar[str] = "NN-FC"
    uploads_rows: ClassVar[UploadsRows] = "lone"
    neighbours: int = 2
    noise: Noise = "as_shipped"
    max_centres: int = 50
    starts: int = 10

    def __post_init__(self) -> None:
        """Refuse what gives no density, no centre or no noise."""
        if self.neighbours < 2:
            raise BadSettings(f"neighbours must be at least 2, got {self.neighbours}; a centre is its own first.")
        if self.max_centres < 1:
            raise BadSettings(f"max_centres must be at least 1, got {self.max_centres}; 50 is the default.")
        if self.noise not in get_args(Noise):
            raise BadSettings(f"noise must be one of {', '.join(get_args(Noise))}, got {self.noise!r}.")

    def site(self, name: str, rows: FloatArray, rng: np.random.Generator) -> "NNFCSite":
        """The program of one site."""
        return NNFCSite(name, rows, rng)

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:  # noqa: ARG002
        """The program of the server, in which nothing is random."""
        task = {"max_centres": self.max_centres, "noise": self.noise, "starts": self.starts}
        answers = ask_all(port, Message("summarize", facts=task))
        centres = stacked(answers, "centres")
        check_enough(centres, n_clusters)
        peaks = centres[density_peaks(centres, self.neighbours, n_clusters)]
        port.ask(Message("centroids", {"centroids": peaks}))
        return Answer(peaks, uplinks=len(answers))


class NNFCSite(Site):
    """Centres of perturbed rows go up."""

    def on_summarize(self, message: Message) -> Message:
        """Noise, and k-means on what it leaves."""
        rows = perturbed(self.rows, message.facts["noise"], self.rng)
        k = min(max(1, len(rows) // ROWS_PER_CENTRE), message.facts["max_centres"], n_distinct(rows))
        means = k_means(rows, k, message.facts["starts"], self.rng)
        return Message("summary", {"centres": means.cluster_centers_})


def perturbed(rows: FloatArray, noise: Noise, rng: np.random.Generator) -> FloatArray:
    """The rows with noise: b log(2v) with either sign, or v + b log(2v) as shipped; v is uniform in (0, 0.5].

    b is the smallest distance of two rows over 1.01 times the largest ratio of two v: 0 where rows are equal, or alone.
    """
    if noise == "none":
        return rows
    v = 0.5 * (1.0 - rng.random(rows.shape))
    scale = smallest_distance(rows) * v.min() / (MARGIN * v.max())
    if noise == "as_shipped":
        return np.asarray(rows + v + scale * np.log(2.0 * v))
    return np.asarray(rows + rng.choice([-1.0, 1.0], rows.shape) * scale * np.log(2.0 * v))


def smallest_distance(rows: FloatArray) -> float:
    """Between two rows; 0 where there is one only."""
    _, distances = nearest_neighbours(rows, 2)
    return float(distances[:, -1].min())


# --- SNN-DPC ---


def density_peaks(points: FloatArray, n_neighbours: int, count: int) -> IntArray:
    """The points with the largest gamma = rho delta, largest first."""
    neighbours, distances = nearest_neighbours(points, n_neighbours)
    density = shared_density(neighbours, distances)
    gamma = density * distance_to_denser(points, density, distances.sum(axis=1))
    return np.argsort(-gamma, kind="stable")[:count]


def nearest_neighbours(points: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    """N: the numbers and distances of so many nearest points, or of all if there are fewer; the first is oneself."""
    others = min(count, len(points)) - 1
    numbers, distances = np.arange(len(points))[:, None], np.zeros((len(points), 1))
    if others > 0:
        tree = NearestNeighbors(n_neighbors=others, algorithm="kd_tree").fit(points)
        found, far = tree.kneighbors()[::-1]
        numbers, distances = np.hstack([numbers, found]), np.hstack([distances, far])
    return numbers, distances


def shared_density(neighbours: IntArray, distances: FloatArray) -> FloatArray:
    """rho: over all mutual neighbours j of i, the sum of |S|^2 / sum_{p in S} (d_ip + d_jp), with S = N(i) n N(j).

    The method sums the K largest; there are no more than K - 1.
    """
    n_points, n_neighbours = neighbours.shape
    i, j = np.repeat(np.arange(n_points), n_neighbours), neighbours.ravel()
    mutual = (neighbours[j] == i[:, None]).any(axis=1) & (i != j)
    i, j = i[mutual], j[mutual]
    shared, total = np.zeros(len(i)), np.zeros(len(i))
    for p, distance in zip(neighbours[i].T, distances[i].T, strict=True):
        same = neighbours[j] == p[:, None]
        shared += same.any(axis=1)
        total += np.where(same, distances[j] + distance[:, None], 0.0).sum(axis=1)
    total[total == 0.0] = total[total > 0.0].min() if total.any() else 1.0
    return np.asarray(np.bincount(i, shared**2 / total, minlength=n_points), dtype=np.float64)


def distance_to_denser(points: FloatArray, density: FloatArray, reach: FloatArray) -> FloatArray:
    """delta: the smallest d_ij (e_i + e_j) over all denser j; for the densest of all, the largest of the others'.

    Of two points with the same density the first counts as denser. e is `reach`, the sum of distances to N.
    """
    order = np.argsort(-density, kind="stable")
    points, reach = points[order], reach[order]
    delta = np.zeros(len(points))
    start = 1
    while start < len(points):
        stop = min(len(points), start + max(1, BLOCK // len(points)))
        weighted = cdist(points[start:stop], points[:stop])
        weighted *= reach[start:stop, None] + reach[:stop]
        weighted[:, start:][np.triu_indices(stop - start)] = np.inf  # oneself and those less dense
        delta[start:stop] = weighted.min(axis=1)
        start = stop
    delta[0] = delta.max()
    unordered = np.empty_like(delta)
    unordered[order] = delta
    return unordered
