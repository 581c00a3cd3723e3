"""OSFSC-SSC and OSFSC-TSC: one-shot federated subspace clustering. Its authors call it Fed-SC.

Source: Xie et al., "Fed-SC: One-Shot Federated Subspace Clustering over High-Dimensional Data" (ICDE 2023), and the
authors' code, which is followed here.
Site, in both variants: sparse subspace clustering (SSC). Every row is expressed by few other rows (a lasso), the
coefficients are the affinity, and spectral clustering finds the local clusters. Of every local cluster, the subspace
of its rows (not centred) is found, and one direction in it is drawn. Upload, once: that unit vector per local cluster.
Server: clusters the pooled vectors, by SSC again, or by thresholding (TSC), where a vector's affinity is to its q
nearest by angle. Labels: of a row, that of its local cluster's vector. The method has no centroids; the means of the
rows of a label take their place, which costs one more message from every site.
Settings, those of the code's demos: gamma 500 (the lasso's penalty is mu / gamma, where mu is the smallest that leaves
nothing), at most 50 coefficients per row, one-dimensional subspaces, q = 8; local clusters: k, where the demos have 8.
Uploads, for a cluster of a single row, that row, up to its length and its sign; and the row itself in the message of
means, where a label has a single row.

Note: where the paper leaves a choice, the code decides here. The code can also find the numbers of local clusters and
of dimensions, from gaps between singular values; on small tables that gives one cluster for nearly every site, so it
is left out. It has three defaults for q (6, 8 and 10). A cluster of rows that are all zero has no direction, and sends
the zero vector.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from goldfc._types import FloatArray, IntArray
from goldfc.message.message import Message
from goldfc.server.round import Port
from goldfc_bench.methods._kernels import sparse_self_expression
from goldfc_bench.methods.protocol import Answer, Site, UploadsRows
from goldfc_bench.methods.spectral import refuse_too_few, spectral_clusters, unit_rows
from goldfc_bench.methods.steps import ask_all, ask_for_means, n_distinct, send_labels, stacked


@dataclass(frozen=True)
class OSFSCSparse:
    """A direction per local cluster, sparse subspace clustering at the server."""

    name: ClassVar[str] = "OSFSC-SSC"
    uploads_rows: ClassVar[UploadsRows] = "lone"
    gamma: float = 500.0
    local_clusters: int | None = None  # k, or this many
    subspace_dimension: int = 1
    coefficients: int = 50
    starts: int = 20

    def site(self, name: str, rows: FloatArray, rng: np.random.Generator) -> "SubspaceSite":
        """The program of one site."""
        return SubspaceSite(name, rows, rng)

    def serve(self, port: Port, n_clusters: int, rng: np.random.Generator) -> Answer:
        """The program of the server."""
        task = {
            "clusters": self.local_clusters or n_clusters,
            "gamma": self.gamma,
            "coefficients": self.coefficients,
            "dimension": self.subspace_dimension,
            "starts": self.starts,
        }
        answers = ask_all(port, Message("summarize", facts=task))
        directions = stacked(answers, "directions")
        labels = spectral_clusters(self.affinity(directions), n_clusters, self.starts, rng)
        refuse_too_few(labels, n_clusters)
        send_labels(port, answers, labels)
        centroids = ask_for_means(port, n_clusters)
        return Answer(centroids, uplinks=2 * len(answers), details={"directions": len(directions)})

    def affinity(self, directions: FloatArray) -> sparse.csr_array:
        """How the server compares what the sites sent."""
        return sparse_affinity(directions, self.gamma, self.coefficients)


@dataclass(frozen=True)
class OSFSCThreshold(OSFSCSparse):
    """A direction per local cluster, thresholding-based subspace clustering at the server."""

    name: ClassVar[str] = "OSFSC-TSC"
    neighbours: int = 8

    def affinity(self, directions: FloatArray) -> sparse.csr_array:
        """How the server compares what the sites sent."""
        return threshold_affinity(directions, self.neighbours)


class SubspaceSite(Site):
    """Directions go up; which row is in which local cluster stays."""

    def on_summarize(self, message: Message) -> Message:
        """Sparse subspace clustering of the own rows, and a direction of every cluster."""
        task = message.facts
        affinity = sparse_affinity(self.rows, task["gamma"], task["coefficients"])
        k = min(task["clusters"], n_distinct(self.rows))
        self.own = spectral_clusters(affinity, k, task["starts"], self.rng)
        clusters = [self.rows[self.own == cluster] for cluster in range(self.own.max() + 1)]
        directions = [draw_direction(rows, task["dimension"], self.rng) for rows in clusters]
        return Message("summary", {"directions": np.array(directions)})


def sparse_affinity(rows: FloatArray, gamma: float, coefficients: int) -> sparse.csr_array:
    """SSC: how much rows take part in expressing each other.

    Only products of rows with each other matter, so that rows with more features than there are rows are first turned
    into their own span: rows = (Q R)' has the same products as R'.
    """
    if rows.shape[1] > 2 * rows.shape[0]:
        rows = np.asarray(np.linalg.qr(rows.T, mode="r")).T
    partners, values = sparse_self_expression(np.array(rows, order="C"), gamma, coefficients)
    return symmetric(partners, np.abs(values))


def threshold_affinity(rows: FloatArray, neighbours: int) -> sparse.csr_array:
    """TSC: exp(-2 angle) for the nearest of every row by the angle between their lines, which is at most pi / 2."""
    units = unit_rows(rows)
    cosine = np.minimum(np.abs(units @ units.T), 1.0)
    np.fill_diagonal(cosine, -1.0)
    nearest = np.argsort(-cosine, axis=1, kind="stable")[:, : min(neighbours, len(rows) - 1)]
    return symmetric(nearest, np.exp(-2.0 * np.arccos(np.take_along_axis(cosine, nearest, axis=1))))


def symmetric(partners: IntArray, values: FloatArray) -> sparse.csr_array:
    """(C + C') / 2, where row i of C has its values at its partners and the length 1."""
    n, places = partners.shape
    entries = unit_rows(values).ravel(), (np.repeat(np.arange(n), places), partners.ravel())
    directed = sparse.csr_array(entries, shape=(n, n))
    directed.eliminate_zeros()
    return sparse.csr_array((directed + directed.T) / 2.0)


def draw_direction(rows: FloatArray, dimension: int, rng: np.random.Generator) -> FloatArray:
    """A random unit vector in the subspace that the rows lie in most; 0 if all rows are."""
    _, values, axes = np.linalg.svd(rows, full_matrices=False)
    rank = int(np.sum(values > values[0] * np.finfo(float).eps * max(rows.shape)))
    weights = rng.standard_normal((1, min(dimension, rank)))
    return np.asarray(unit_rows(weights)[0] @ axes[: weights.shape[1]])
