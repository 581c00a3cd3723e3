"""The demo: handwritten digits at eight sites that see parts of parts of the classes; one message from each."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans

from goldfc import Client, Consensus, LocalPort, Model, Summary, run_round
from goldfc._types import FloatArray, IntArray
from goldfc.bench.datasets import Dataset, Split, load
from goldfc.bench.degree import non_icd_degree
from goldfc.bench.run import clients_of, gather
from goldfc.bench.score import ari
from goldfc.bench.split import simulate_split
from goldfc.protocol.federation import Ledger, generator

N_CLIENTS = 8
DATASET = "digits"


@dataclass(frozen=True)
class Site:
    """One client: what it holds, what it sent, and how well its rows are labelled in three ways.

    The score is the ARI; nan for a site that sees a single class, where there is nothing to tell apart.
    """

    name: str
    rows: int
    truth: IntArray  # rows per true class, known to the judge alone
    centroids: FloatArray  # what it sent
    sizes: IntArray  # rows per micro-cluster, known to the client alone
    micro_labels: IntArray  # global cluster per micro-cluster
    bytes_up: int
    alone: float
    together: float
    pooled: float


@dataclass(frozen=True)
class Demo:
    """All that the report shows."""

    dataset: Dataset
    seed: int
    sites: tuple[Site, ...]
    model: Model
    ledger: Ledger
    truth_by_cluster: IntArray  # rows per global cluster (down) and true class (across)
    degree: float
    alone: float
    together: float
    pooled: float

    @property
    def rows(self) -> int:
        """Rows that the sites hold, a row at two sites counted twice."""
        return sum(site.rows for site in self.sites)

    @property
    def single_rows(self) -> int:
        """Micro-clusters with one member: their centroid is that row."""
        return int(sum((site.sizes == 1).sum() for site in self.sites))


def run_demo(seed: int, n_jobs: int | None = None, on_answer: Callable[[str], None] | None = None) -> Demo:
    """Cut digits into Non-ICD clients, run GOLD over them, and compare with each alone and with all rows pooled."""
    dataset = load(DATASET)
    split = simulate_split(dataset, N_CLIENTS, generator(seed, "simulator"))
    clients = clients_of(Client, split, seed)
    port = LocalPort(clients, n_jobs=n_jobs, on_answer=on_answer)
    result = run_round(port, None, Consensus(), generator(seed, "server"))
    summaries = {summary.client: summary for summary in result.summaries}
    together = gather(clients, split)
    alone = label_alone(split, dataset.n_clusters, seed)
    pooled = k_means(split.X, dataset.n_clusters, seed)
    return Demo(
        dataset=dataset,
        seed=seed,
        sites=tuple(
            site_of(client, summaries[client.name], result.model, split, port.ledger, (alone, together, pooled))
            for client in clients
        ),
        model=result.model,
        ledger=port.ledger,
        truth_by_cluster=count_truth(together, split.y, len(result.model.centroids), dataset.n_clusters),
        degree=non_icd_degree(split.rows_per_client()),
        alone=ari(split.y, alone),
        together=ari(split.y, together),
        pooled=ari(split.y, pooled),
    )


def k_means(rows: FloatArray, n_clusters: int, seed: int) -> IntArray:
    """The everyday alternative, where rows may be in one place."""
    estimator = KMeans(min(n_clusters, len(np.unique(rows, axis=0))), n_init=10, random_state=seed)
    return np.asarray(estimator.fit_predict(rows), dtype=np.int64)


def label_alone(split: Split, n_clusters: int, seed: int) -> IntArray:
    """Every client runs k-means for itself: no two clients' cluster numbers have anything to do with each other."""
    labels = np.empty_like(split.y)
    for number in np.unique(split.client):
        own = split.client == number
        labels[own] = number * n_clusters + k_means(split.X[own], n_clusters, seed)
    return labels


def count_truth(labels: IntArray, truth: IntArray, n_clusters: int, n_classes: int) -> IntArray:
    """Rows per cluster and true class."""
    counts = np.zeros((n_clusters, n_classes), dtype=np.int64)
    np.add.at(counts, (labels, truth), 1)
    return counts


def site_of(
    client: Client,
    summary: Summary,
    model: Model,
    split: Split,
    ledger: Ledger,
    labellings: tuple[IntArray, IntArray, IntArray],
) -> Site:
    """One client, as the report shows it."""
    own = split.client == int(client.name)
    truth = split.y[own]
    alone, together, pooled = (
        ari(truth, labels[own]) if len(np.unique(truth)) > 1 else math.nan for labels in labellings
    )
    return Site(
        name=client.name,
        rows=int(own.sum()),
        truth=np.bincount(truth, minlength=split.y.max() + 1),
        centroids=summary.centroids,
        sizes=np.bincount(client.membership.micro_clusters),
        micro_labels=model.labels_of(client.name),
        bytes_up=sum(c.nbytes for c in ledger.crossings if c.upward and c.client == client.name),
        alone=alone,
        together=together,
        pooled=pooled,
    )
