"""FedSC: federated spectral clustering, by a shared dictionary that gives back the kernel matrix of all rows.

Source: Qiao, Ding and Fan, "Federated Spectral Clustering via Secure Similarity Reconstruction" (NeurIPS 2023), and the
authors' code, which is followed here. Not to be confused with Fed-SC, which is OSFSC.
The kernel is Gaussian, exp(-|a - b|^2 / (2 s2)). All sites share a dictionary of D atoms Z; with codes C, phi(Z) C is
to come close to phi(X). Setup: s2 and D. Then, for 20 rounds, every site improves the atoms for its own rows by one
Newton-like step and uploads them, and the server averages. At last, every site uploads the codes of its rows. Server:
C' K_ZZ C stands for the kernel matrix of all rows; scaled to [0, 1], the ceil(ln n) largest of every row kept, it is
the affinity of spectral clustering. Labels: of a row, that of its node. The method has no centroids; the means of the
rows of a label take their place. Uplinks per site: 2 for the setup, one per round, 1 for the codes, 1 for the means.
Settings: 20 rounds, ridge 1e-3, s2 the square of 1 x the mean distance, D as large as 99 % of the kernel's singular
values by their sum, k-means with 50 starts.
Uploads all rows: not as they are, but a code tells a row's kernel values, (K_ZZ + ridge) c, so its distances to all
atoms, and so the row itself once there are more atoms than features. The authors can add Gaussian noise to what is
sent; as in their comparison, none is added here.

Note: the code takes s2 and D from all rows together, which no server has. Here s2 comes from the sites' own mean
distances, weighted by their rows, and D is the largest that any site needs; a site of more than 2,000 rows looks at
so many of them, drawn at random. Rows of one site are more alike: s2 comes out smaller, and D too small for it, so
that on EC the kernel matrix is off by 5 % instead of 3 %. The code's last codes are those of the atoms a round before;
here they are of the last atoms. Its momentum is set back in every call, and its early end comes after 200 rounds: both
do nothing, and are left out. It takes all singular vectors of a dense matrix; here no n x n matrix is ever whole, but
time still grows with n^2: more than `max_rows` rows are refused.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse
from scipy.linalg import solve
from scipy.spatial.distance import cdist, pdist

from goldfc._types import FloatArray
from goldfc.errors import BadRows, BadSettings
from goldfc.message.message import Message
from goldfc.server.round import Port
from goldfc_bench.methods.protocol import Answer, Site, UploadsRows
from goldfc_bench.methods.spectral import refuse_too_few, spectral_clusters
from goldfc_bench.methods.steps import ask_all, ask_for_means, send_labels, stacked

# For s2 and D, a site looks at so many of its rows at most.
SAMPLE = 2000
# The kernel matrix of all rows is looked at in blocks of about so many entries.
BLOCK = 2**22
# Directions in which the step's equations hold less than this, relative to the strongest, are left alone.
SINGULAR = 1e-10


@dataclass(frozen=True)
class FedSC:
    """A dictionary learned in rounds, spectral clustering of all rows at the server."""

    name: ClassVar[str] = "FedSC"
    uploads_rows: ClassVar[UploadsRows] = "all"
    rounds: int = 20
    ridge: float = 1e-3
    rbf_c: float = 1.0
    d_tol: float = 0.99
    starts: int = 50
    max_iterations: int = 1000
    max_rows: int = 50_000

    def site(self, name: str, rows: FloatArray, rng: np.random.Generator) -> "KernelSite":
        """The program of one site."""
        return KernelSite(name, rows, rng)

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:
        """The program of the server."""
        s2, n_features = self.find_bandwidth(port)
        atoms = self.learn_atoms(port, self.first_atoms(port, s2, n_features, rng), s2)
        answers = ask_all(port, self.task("encode", atoms, s2))
        codes = stacked(answers, "codes")
        affinity = nearest_similarities(codes, kernel(atoms, atoms, s2))
        labels = spectral_clusters(affinity, n_clusters, self.starts, rng, self.max_iterations)
        refuse_too_few(labels, n_clusters)
        send_labels(port, answers, labels)
        centroids = ask_for_means(port, n_clusters)
        return Answer(centroids, len(answers) * (self.rounds + 4), {"rounds": self.rounds, "atoms": len(atoms)})

    def find_bandwidth(self, port: Port) -> tuple[float, int]:
        """s2, from the mean distances within the sites; and how many features there are."""
        measures = [answer.facts for answer in ask_all(port, Message("measure")).values()]
        n_rows = sum(measure["rows"] for measure in measures)
        if n_rows > self.max_rows:
            raise BadSettings(
                f"FedSC compares every row with every other, and there are {n_rows} rows: more than max_rows, which is "
                f"{self.max_rows}; raise it if the time does not matter."
            )
        mean = sum(measure["rows"] * measure["mean_distance"] for measure in measures) / n_rows
        s2 = (self.rbf_c * mean) ** 2
        if s2 == 0.0:
            raise BadRows(
                "FedSC takes its bandwidth from the distances within sites, but no site has two different rows; "
                "merge sites, or use another method."
            )
        return s2, measures[0]["features"]

    def first_atoms(self, port: Port, s2: float, n_features: int, rng: np.random.Generator) -> FloatArray:
        """As many atoms as the site needs that needs the most, each the mean of a normal draw for every site.

        Nothing of any row is in them, so the server may as well draw them all.
        """
        answers = port.ask(Message("count", facts={"s2": s2, "share": self.d_tol}))
        n_atoms = max(answer.facts["atoms"] for answer in answers.values())
        return np.asarray(rng.standard_normal((len(answers), n_atoms, n_features)).mean(axis=0))

    def learn_atoms(self, port: Port, atoms: FloatArray, s2: float) -> FloatArray:
        """Rounds of steps at all sites and means of what they send."""
        for _ in range(self.rounds):
            answers = ask_all(port, self.task("improve", atoms, s2))
            atoms = np.mean([answer.arrays["atoms"] for answer in answers.values()], axis=0)
        return atoms

    def task(self, kind: str, atoms: FloatArray, s2: float) -> Message:
        """Something to do with the atoms."""
        return Message(kind, {"atoms": atoms}, {"s2": s2, "ridge": self.ridge})


class KernelSite(Site):
    """Atoms go up in every round, and in the end the codes of all rows."""

    def __init__(self, name: str, rows: FloatArray, rng: np.random.Generator) -> None:
        super().__init__(name, rows, rng)
        self.own = np.arange(len(rows))
        self.sample = rows if len(rows) <= SAMPLE else rows[rng.choice(len(rows), SAMPLE, replace=False)]

    def on_measure(self, _: Message) -> Message:
        """The mean distance of all pairs of rows, a row and itself included."""
        mean = 2.0 * float(pdist(self.sample).sum()) / len(self.sample) ** 2
        n_rows, n_features = self.rows.shape
        return Message("measures", facts={"rows": n_rows, "features": n_features, "mean_distance": mean})

    def on_count(self, message: Message) -> Message:
        """How many of the kernel's singular values, from the largest on, make up the share asked for."""
        similar = kernel(self.sample, self.sample, message.facts["s2"])
        values = np.maximum(np.linalg.eigvalsh(similar)[::-1], 0.0)
        reached = np.cumsum(values) >= message.facts["share"] * values.sum()
        return Message("count", facts={"atoms": int(np.argmax(reached)) + 1})

    def on_improve(self, message: Message) -> Message:
        """The atoms after one step for the own rows."""
        return Message("atoms", {"atoms": improved(message.arrays["atoms"], self.rows, **message.facts)})

    def on_encode(self, message: Message) -> Message:
        """The codes of the own rows."""
        return Message("codes", {"codes": encode(message.arrays["atoms"], self.rows, **message.facts).T})


def kernel(a: FloatArray, b: FloatArray, s2: float) -> FloatArray:
    """K_ab = exp(-|a - b|^2 / (2 s2))."""
    return np.asarray(np.exp(cdist(a, b, "sqeuclidean") / (-2.0 * s2)))


def encode(atoms: FloatArray, rows: FloatArray, s2: float, ridge: float) -> FloatArray:
    """C = (K_ZZ + ridge)^(-1) K_ZX, a column per row: the best codes for these atoms."""
    regular = kernel(atoms, atoms, s2) + ridge * np.eye(len(atoms))
    return np.asarray(solve(regular, kernel(atoms, rows, s2), assume_a="pos"))


def objective(atoms: FloatArray, rows: FloatArray, s2: float, ridge: float) -> float:
    """|phi(X) - phi(Z) C|^2 / 2 + ridge |C|^2 / 2, with the best codes.

    With them, (K_ZZ + ridge) C = K_ZX, so that it is (n - sum of C o K_ZX) / 2.
    """
    codes = encode(atoms, rows, s2, ridge)
    return 0.5 * (len(rows) - float(np.sum(codes * kernel(atoms, rows, s2))))


def improved(atoms: FloatArray, rows: FloatArray, s2: float, ridge: float) -> FloatArray:
    """One Newton-like step: Z - H^(-1) G, with G the gradient, and H its derivative for a kernel that stays.

    With A = -C o K_ZX, B = C C' o K_ZZ, and on the diagonal t, the sums of the rows of both: G = (A X + B Z - t Z) / s2
    and H = (B - t) / s2. The s2 cancel.
    """
    codes = encode(atoms, rows, s2, ridge)
    to_rows = -codes * kernel(atoms, rows, s2)
    to_atoms = codes @ codes.T * kernel(atoms, atoms, s2)
    sums = np.sum(to_rows, axis=1) + np.sum(to_atoms, axis=1)
    gradient = to_rows @ rows + to_atoms @ atoms - sums[:, None] * atoms
    return np.asarray(atoms - np.linalg.lstsq(to_atoms - np.diag(sums), gradient, rcond=SINGULAR)[0])


def nearest_similarities(codes: FloatArray, inner: FloatArray) -> sparse.csr_array:
    """C' K_ZZ C, scaled to [0, 1]; of every row its ceil(ln n) largest entries, then max(W, W').

    Codes are rows here. Scaling keeps the order, so that the largest can be picked before the range is known.
    """
    n = len(codes)
    kept = max(math.ceil(math.log(n)), 1)
    coded = inner @ codes.T
    neighbours, values = np.empty((n, kept), dtype=np.int64), np.empty((n, kept))
    low, high = np.inf, -np.inf
    height = max(BLOCK // n, 1)
    for start in range(0, n, height):
        block = slice(start, start + height)
        similar = codes[block] @ coded
        low, high = min(low, float(similar.min())), max(high, float(similar.max()))
        neighbours[block] = np.argpartition(similar, n - kept, axis=1)[:, n - kept :]
        values[block] = np.take_along_axis(similar, neighbours[block], axis=1)
    scaled = (values - low) / (high - low if high > low else 1.0)
    directed = sparse.csr_array((scaled.ravel(), neighbours.ravel(), np.arange(n + 1) * kept), shape=(n, n))
    return sparse.csr_array(directed.maximum(directed.T))
