"""The demo: handwritten digits at eight sites that see parts of parts of the classes; one message from each.

Nobody tells OneShot how many digits there are. What it is compared with is told.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from goldfc import LocalPort, Model, OneShot, Site, Summary, fuse, run_round
from goldfc._types import FloatArray, IntArray
from goldfc.demo.data import Dataset, Split, bundled, gather, scaled_columns, sites_of
from goldfc.demo.degree import non_icd_degree
from goldfc.demo.split import simulate_split
from goldfc.learning.proposal import Proposal
from goldfc.randomness import generator
from goldfc.site.label import predict
from goldfc.transport.local import Traffic

N_SITES = 8
DATASET = "digits"
# Below this certainty a label is called unsure.
UNSURE = 0.6


@dataclass(frozen=True)
class Scores:
    """The ARI of the same rows, labelled in five ways.

    It is nan where there is a single class, nothing to tell apart, and for a method that is not installed.
    """

    alone: float  # k-means at every site by itself, told the number of classes
    together: float  # OneShot, with as many clusters as it proposes
    told: float  # OneShot, told the number of classes
    paper: float  # the paper's GOLD, told the number of classes
    pooled: float  # k-means on all rows in one place, told the number of classes


@dataclass(frozen=True)
class Hits:
    """Some rows, and how many of them are of the most frequent class of their global cluster."""

    rows: int
    hits: int

    @property
    def share(self) -> float:
        """Of the rows; nan where there are none."""
        return self.hits / self.rows if self.rows else math.nan


@dataclass(frozen=True)
class SiteResult:
    """One site: what it holds, what it sent, what became of it, and how well its rows are labelled."""

    name: str
    rows: int
    truth: IntArray  # rows per true class, known to the judge alone
    centroids: FloatArray  # sent
    sizes: IntArray  # rows per micro-cluster; sent, as their mass
    micro_labels: IntArray  # global cluster per micro-cluster
    micro_certainty: FloatArray  # how sure that is, in [0, 1]
    clusters: IntArray  # rows per global cluster
    bytes_up: int
    bytes_shape: int  # those of them that are the shape
    scores: Scores


@dataclass(frozen=True)
class Demo:
    """All that the report shows."""

    dataset: Dataset
    seed: int
    sites: tuple[SiteResult, ...]
    model: Model
    traffic: Traffic
    truth_by_cluster: IntArray  # rows per global cluster (down) and true class (across)
    certainty_by_cluster: FloatArray  # of the rows in each, in the mean; nan where there are none
    sure: Hits
    unsure: Hits
    degree: float
    scores: Scores

    @property
    def rows(self) -> int:
        """Rows that the sites hold, a row at two sites counted twice."""
        return sum(site.rows for site in self.sites)

    @property
    def single_rows(self) -> int:
        """Micro-clusters with one member: their centroid is that row."""
        return int(sum((site.sizes == 1).sum() for site in self.sites))

    @property
    def bytes_shape(self) -> int:
        """What all shapes took of the way up."""
        return sum(site.bytes_shape for site in self.sites)

    @property
    def proposal(self) -> Proposal:
        """How many clusters there may be; nobody said it, so there is one."""
        return cast(Proposal, self.model.proposal)

    @property
    def by_gaps(self) -> bool:
        """Whether the evidence is how clear the gaps are: a single cluster has none, so 1 is not tried."""
        return 1 not in self.proposal.n_clusters


def run_demo(seed: int, n_jobs: int | None = None, on_answer: Callable[[str], None] | None = None) -> Demo:
    """Cut digits into Non-ICD sites, run OneShot over them, and label the same rows in other ways to compare."""
    raw = bundled(DATASET)
    dataset = replace(raw, X=scaled_columns(raw.X))
    split = simulate_split(dataset, N_SITES, generator(seed, "simulator"))
    sites = [Site(str(number), rows) for number, rows in enumerate(split.rows_per_site())]
    port = LocalPort(sites, n_jobs=n_jobs, on_answer=on_answer)
    result = run_round(port, None, OneShot(), generator(seed, "server"))
    summaries = {summary.site: summary for summary in result.summaries}
    together, certainty = gather(sites, split), certainty_of_rows(sites, split)
    labellings: dict[str, IntArray | None] = {
        "alone": label_alone(split, dataset.n_clusters, seed),
        "together": together,
        "told": label_if_told(result.summaries, split, dataset.n_clusters, seed),
        "paper": label_as_the_paper(split, dataset.n_clusters, seed),
        "pooled": k_means_of(split.X, dataset.n_clusters, seed),
    }
    n_clusters = len(result.model.centroids)
    truth_by_cluster = count_truth(together, split.y, n_clusters, dataset.n_clusters)
    hit = truth_by_cluster.argmax(axis=1)[together] == split.y
    sure = certainty >= UNSURE
    return Demo(
        dataset=dataset,
        seed=seed,
        sites=tuple(
            result_of(site, summaries[site.name], result.model, split, port.traffic, labellings) for site in sites
        ),
        model=result.model,
        traffic=port.traffic,
        truth_by_cluster=truth_by_cluster,
        certainty_by_cluster=means_by_cluster(certainty, together, n_clusters),
        sure=Hits(int(sure.sum()), int(hit[sure].sum())),
        unsure=Hits(int((~sure).sum()), int(hit[~sure].sum())),
        degree=non_icd_degree(split.rows_per_site()),
        scores=scores_of(split.y, labellings),
    )


# --- the same rows, labelled in other ways ---


def k_means_of(rows: FloatArray, n_clusters: int, seed: int) -> IntArray:
    """The everyday alternative, where rows may be in one place."""
    estimator = KMeans(min(n_clusters, len(np.unique(rows, axis=0))), n_init=10, random_state=seed)
    return np.asarray(estimator.fit_predict(rows), dtype=np.int64)


def label_alone(split: Split, n_clusters: int, seed: int) -> IntArray:
    """Every site runs k-means for itself: no two sites' cluster numbers have anything to do with each other."""
    labels = np.empty_like(split.y)
    for number in np.unique(split.site):
        own = split.site == number
        labels[own] = number * n_clusters + k_means_of(split.X[own], n_clusters, seed)
    return labels


def label_if_told(summaries: Sequence[Summary], split: Split, n_clusters: int, seed: int) -> IntArray:
    """OneShot from the same summaries, had somebody said how many clusters there are."""
    return predict(fuse(summaries, n_clusters, OneShot(), generator(seed, "server")), split.X)


def label_as_the_paper(split: Split, n_clusters: int, seed: int) -> IntArray | None:
    """GOLD, the paper's method: competition at both ends, and centroids alone; None if goldfc[paper] is not there."""
    try:
        from goldfc.learning.paper.competition import Learning  # noqa: PLC0415
        from goldfc.server.gold import Gold  # noqa: PLC0415
        from goldfc.site.gold import GoldSite  # noqa: PLC0415
    except ImportError:
        return None
    sites = sites_of(GoldSite, split, seed)
    run_round(LocalPort(sites), n_clusters, Gold(Learning()), generator(seed, "server"))
    return gather(sites, split)


# --- the judge ---


def scores_of(truth: IntArray, labellings: Mapping[str, IntArray | None]) -> Scores:
    """All ways to label, scored."""
    several = len(np.unique(truth)) > 1
    return Scores(
        **{
            name: math.nan if labels is None or not several else adjusted_rand_score(truth, labels)
            for name, labels in labellings.items()
        }
    )


def count_truth(labels: IntArray, truth: IntArray, n_clusters: int, n_classes: int) -> IntArray:
    """Rows per cluster and true class."""
    counts = np.zeros((n_clusters, n_classes), dtype=np.int64)
    np.add.at(counts, (labels, truth), 1)
    return counts


def means_by_cluster(values: FloatArray, labels: IntArray, n_clusters: int) -> FloatArray:
    """The mean of the rows of every cluster; nan where there are none."""
    count = np.bincount(labels, minlength=n_clusters)
    total = np.bincount(labels, weights=values, minlength=n_clusters)
    return np.where(count > 0, total / np.maximum(count, 1), math.nan)


def certainty_of_rows(sites: Sequence[Site], split: Split) -> FloatArray:
    """How sure every row's label is, in the order of the split's rows."""
    certainty = np.empty(len(split.y))
    for site in sites:
        certainty[rows_of(site, split)] = site.certainty
    return certainty


def rows_of(site: Site, split: Split) -> IntArray:
    """Where a site's rows are in the split."""
    return np.flatnonzero(split.site == int(site.name))


def result_of(
    site: Site,
    summary: Summary,
    model: Model,
    split: Split,
    traffic: Traffic,
    labellings: Mapping[str, IntArray | None],
) -> SiteResult:
    """One site, as the report shows it."""
    own = rows_of(site, split)
    truth = split.y[own]
    return SiteResult(
        name=site.name,
        rows=len(own),
        truth=np.bincount(truth, minlength=split.y.max() + 1),
        centroids=summary.centroids,
        sizes=np.bincount(site.micro_clusters),
        micro_labels=model.labels_of(site.name),
        micro_certainty=model.micro_certainty[model.own(site.name)],
        clusters=np.bincount(site.labels, minlength=len(model.centroids)),
        bytes_up=sum(c.nbytes for c in traffic.crossings if c.upward and c.site == site.name),
        bytes_shape=0 if summary.shape is None else summary.shape.nbytes,
        scores=scores_of(truth, {name: None if labels is None else labels[own] for name, labels in labellings.items()}),
    )
