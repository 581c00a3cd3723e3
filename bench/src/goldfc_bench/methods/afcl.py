"""AFCL: more seeds than clusters, which the rows of whichever sites take part draw together until few are left.

Source: Zhang, Zhang, Lu, Li, Chen and Cheung, "Asynchronous Federated Clustering with Unknown Number of Clusters"
(2025).
Start: every site sends k-means++ seeds; of all these the server picks k0 by k-means++; k0 is drawn from [k, 2k].
Round: some sites take part, each with a probability of its own, drawn once. They get the seeds m and the learning
rates of the features, w, and send w (x - m) for every row x and the seed nearest to it. Sites that took part less
than others, and not now, are replayed from what they sent last. From every message the server restores the rows,
farther from their seeds the more often the site takes part, and goes through them one by one: seeds compete for the
row, and the winner moves towards it together with all seeds no farther from the winner than the row is. Then features
along which rows are near their seeds get larger rates. End: seeds that coincide become one. Labels: the nearest seed.
Settings: T = 100 rounds; learning rates of 0.001 on average; delta = 8, so that rates go with the power -1/7 of the
distances; seeds coincide when no coordinate differs by 0.001. How many clusters there are it finds itself: k sets k0.
Uploads what all rows of a site can be restored from, whenever it takes part, and at the start up to k0 rows as they
are.

T decides: after 30 rounds on the paper's splits, seeds are still apart on some (EC: Purity 0.7), while after 100, the
authors' number, all or nearly all have been drawn into one (EC: 0.35). That is how it stands in the paper's tables.

Note: the authors' code also stops when an index in the manner of Davies and Bouldin stands still. It is made from the
labels at all sites, even of those that take no part, which no server of an asynchronous method has: we leave it out.
Note: the code scales every feature to [0, 1] by the range of all rows; ours come as they are, standardised.
Note: by the paper's analysis of costs, seeds compete at the site, too, by how often they have won; in the code the
nearest wins there, and the server forgets all wins after every round. Here as in the code. As there, every message has
one more row per seed, at the seed itself.
Note: the code restores what it replays with the rates of now, and from the seeds as they were after the last round in
which the site was heard or replayed, not from those that it had been sent. So do we. What is restored can so lie
beyond all rows; nothing overflows, because here no restored value exceeds 1e100 and no rate 1.
Note: a feature along which no row differs from its seed has rate 0, and then for ever, as in the code.
Note: the code replays even when nobody takes part; such a round is skipped here.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.cluster import kmeans_plusplus

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadSettings
from goldfc.learning.moments import LARGEST_VALUE
from goldfc.message.message import Message
from goldfc.server.round import Port
from goldfc_bench.methods._afcl_kernels import interact
from goldfc_bench.methods.protocol import Answer, Site, UploadsRows
from goldfc_bench.methods.steps import ask_all, integer_seed, n_distinct, stacked


@dataclass(frozen=True)
class AFCL:
    """Up to 2k seeds, moved by the rows of the sites that take part, and merged where they meet."""

    name: ClassVar[str] = "AFCL"
    uploads_rows: ClassVar[UploadsRows] = "all"
    max_rounds: int = 100  # T
    learning_rate: float = 1e-3  # per feature, on average
    delta: float = 8.0
    merge_tolerance: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse what cannot be learned with."""
        if self.max_rounds < 0:
            raise BadSettings(f"max_rounds must be at least 0, got {self.max_rounds}; the authors use 100.")
        if not self.learning_rate > 0.0:
            raise BadSettings(f"learning_rate must be above 0, got {self.learning_rate}; the authors use 0.001.")
        if not self.delta > 1.0:
            raise BadSettings(f"delta must be above 1, got {self.delta}; the authors use 8.")

    def site(self, name: str, rows: FloatArray, rng: np.random.Generator) -> "AFCLSite":
        """The program of one site."""
        return AFCLSite(name, rows, rng)

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:
        """The program of the server; who takes part in a round is drawn here, and nobody else is asked."""
        names, seeds = first_seeds(port, int(rng.integers(n_clusters, 2 * n_clusters, endpoint=True)), rng)
        total_rate = self.learning_rate * seeds.shape[1]
        rates = total_rate * normalised(rng.random(seeds.shape[1:]))
        probability = rng.random(len(names))
        times = np.zeros(len(names), dtype=np.int64)
        heard: dict[int, Heard] = {}
        uplinks = len(names)
        for _ in range(self.max_rounds):
            present = rng.random(len(names)) < probability
            if not present.any():
                continue
            numbers = np.flatnonzero(present).tolist()
            task = Message("compete", {"seeds": seeds, "rates": rates})
            answers = port.ask(task, [names[number] for number in numbers])
            uplinks += len(answers)
            heard |= {number: Heard.of(answers[names[number]], seeds) for number in numbers}
            replayed, balance = attend(times, present)
            used = np.flatnonzero(present | replayed).tolist()
            seeds = moved(seeds, rates, [(heard[number], balance[number]) for number in used])
            rates = total_rate * shares([heard[number].changes for number in used], self.delta)
            for number in used:
                heard[number].origin = seeds
        centroids = merged(seeds, self.merge_tolerance)
        port.ask(Message("centroids", {"centroids": centroids}))
        return Answer(centroids, uplinks, {"rounds": self.max_rounds, "k": len(centroids)})


@dataclass
class Heard:
    """What the server keeps of a site: its last message, and the seeds that rows are restored from."""

    changes: FloatArray  # (rows, features) w (x - m), seed after seed
    seed: IntArray  # (rows,) the number of the m
    origin: FloatArray  # (seeds, features)

    @classmethod
    def of(cls, message: Message, seeds: FloatArray) -> "Heard":
        """Read the message of a site that had been sent these seeds."""
        return cls(message.arrays["changes"], np.repeat(np.arange(len(seeds)), message.arrays["counts"]), seeds)

    def restored(self, rates: FloatArray) -> FloatArray:
        """The rows, or what has become of them: o = r / v + m."""
        return np.clip(self.changes / rates + self.origin[self.seed], -LARGEST_VALUE, LARGEST_VALUE)


class AFCLSite(Site):
    """Rows as seeds go up, and then the differences of all rows from their nearest seeds."""

    def on_seed(self, message: Message) -> Message:
        """Some of the own rows, far from each other."""
        return Message("seeds", {"seeds": spread(self.rows, message.facts["seeds"], self.rng)})

    def on_compete(self, message: Message) -> Message:
        """For all rows and, as if it were a row, for every seed m: r = w (x - m), in the order of the m."""
        seeds, rates = message.arrays["seeds"], message.arrays["rates"]
        nearest = np.concatenate([np.arange(len(seeds)), cdist(self.rows, seeds, "sqeuclidean").argmin(axis=1)])
        changes = rates * (np.vstack([seeds, self.rows]) - seeds[nearest])
        order = np.argsort(nearest, kind="stable")
        return Message("changes", {"changes": changes[order], "counts": np.bincount(nearest)})


def first_seeds(port: Port, n_seeds: int, rng: np.random.Generator) -> tuple[list[str], FloatArray]:
    """Everybody's name, and seeds chosen from everybody's."""
    answers = ask_all(port, Message("seed", facts={"seeds": n_seeds}))
    return list(answers), spread(stacked(answers, "seeds"), n_seeds, rng)


def spread(rows: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """So many rows by k-means++, or as many as are different."""
    count = min(count, n_distinct(rows))
    seeds, _ = kmeans_plusplus(rows, count, random_state=integer_seed(rng), n_local_trials=1)
    return np.asarray(seeds)


def attend(times: IntArray, present: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], FloatArray]:
    """Count who takes part, in `times`; the answer is who is replayed, and everybody's b.

    b = 1 / (1 + the share in all attendances). Whoever has more than the mean of it, and was heard before, is replayed,
    which counts as an attendance.
    """
    times += present
    balance = 1.0 / (1.0 + times / times.sum())
    replayed = (balance > balance.mean()) & ~present & (times > 0)
    times += replayed
    return replayed, np.where(replayed, 1.0 / (1.0 + times / times.sum()), balance)


def moved(seeds: FloatArray, rates: FloatArray, messages: list[tuple[Heard, float]]) -> FloatArray:
    """The seeds after all messages, each with its site's b, in order."""
    seeds, wins = seeds.copy(), np.ones(len(seeds))
    for message, balance in messages:
        own_rates = np.where(rates > 0.0, rates, 1.0) * balance
        interact(message.restored(own_rates), np.minimum(own_rates, 1.0), seeds, wins)
    return seeds


def shares(changes: list[FloatArray], delta: float) -> FloatArray:
    """w_j = 1 / sum_h (D_j / D_h)^a with a = 1 / (delta - 1), D_j being the sum of |r_j|; 0 where D_j is.

    The same is D_j^-a / sum_h D_h^-a.
    """
    total = np.sum([np.abs(change).sum(axis=0) for change in changes], axis=0)
    powers = np.zeros_like(total)
    powers[total > 0.0] = total[total > 0.0] ** (-1.0 / (delta - 1.0))
    return normalised(powers)


def normalised(weights: FloatArray) -> FloatArray:
    """As shares of their sum; all 0 stay so."""
    return np.asarray(weights / weights.sum()) if weights.any() else weights


def merged(seeds: FloatArray, tolerance: float) -> FloatArray:
    """The first of every group of seeds that coincide, each with some other of the group."""
    close = (np.abs(seeds[:, None] - seeds) < tolerance).all(axis=2)
    _, group = connected_components(close, directed=False)
    return seeds[np.unique(group, return_index=True)[1]]
