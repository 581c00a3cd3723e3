"""Others: GOLD and coreset k-means at the same sites, and what scikit-learn has, on the rows of all sites in one place.

All get features of variance one and categories as zeros and ones, and the number of clusters. HDBSCAN takes none, so of
several settings that counts whose number comes nearest, and rows of noise go to the cluster of the nearest other row.
"""

from functools import cache, partial
from typing import Literal

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors

from goldfc._encoding import encoding_of
from goldfc._types import FloatArray, IntArray
from goldfc.estimators import GOLD
from goldfc.learning.micro_clusters import Layout, MicroClusters, no_scatter, standardized
from goldfc.learning.mixture import fit_mixture, random_start, start_points
from goldfc.randomness import generator, site_generator
from goldfc.transport.local import LocalPort
from goldfc_bench.methods.coreset import CoresetKMeans
from goldfc_bench.shapes.ours import as_numbers
from goldfc_bench.shapes.sites import Method, Outcome, Sites

K_MEANS, MIXED_MIXTURE = "pooled k-means", "pooled mixed mixture"
# From a single start where features are many, which takes long enough.
MIXTURE_STARTS, MANY_FEATURES = 3, 300
# Added to every variance, of 1 over all rows.
RIDGE = 1e-4
SMALLEST_OF_HDBSCAN, SAMPLES_OF_HDBSCAN = (5, 10, 20, 40, 80, 160), 5
# Trees are of no help with more features.
FEATURES_FOR_TREES = 50
MIXED_STARTS = 8


# --- at the sites ---


@cache
def warm_up() -> None:
    """Compile GOLD, or load what was compiled, outside the clock; once in every process."""
    rows = np.random.default_rng(0).normal(size=(30, 3))
    GOLD(1, random_state=0).fit(rows, groups=[0, 1] * 15)


def gold(sites: Sites, seed: int) -> Outcome:
    """The paper's method."""
    return Outcome(GOLD(sites.n_clusters, random_state=seed).fit(sites.scaled, groups=sites.site).labels_)


def coreset(sites: Sites, seed: int) -> Outcome:
    """The simplest one-shot method."""
    method = CoresetKMeans()
    members = [
        method.site(str(number), sites.scaled[sites.site == number], site_generator(seed, str(number)))
        for number in np.unique(sites.site)
    ]
    method.serve(LocalPort(members), sites.n_clusters, generator(seed, "server"))
    return Outcome(np.concatenate([site.labels for site in members]))


# --- on pooled rows ---


def k_means(sites: Sites, seed: int) -> Outcome:
    """The best of ten starts."""
    return Outcome(sites.label_once(KMeans(sites.n_clusters, n_init=10, random_state=seed).fit_predict))


def ward(sites: Sites, seed: int) -> Outcome:  # noqa: ARG001 (nothing random in it)
    """Hierarchical, by variance."""
    return Outcome(sites.label_once(AgglomerativeClustering(sites.n_clusters, linkage="ward").fit_predict))


def mixture(sites: Sites, seed: int, *, covariance: Literal["tied", "full"]) -> Outcome:
    """Gaussians with one covariance, or with one each."""
    starts = 1 if sites.scaled.shape[1] > MANY_FEATURES else MIXTURE_STARTS
    model = GaussianMixture(
        sites.n_clusters, covariance_type=covariance, n_init=starts, reg_covar=RIDGE, random_state=seed
    )
    return Outcome(sites.label_once(model.fit_predict))


def spectral(sites: Sites, seed: int) -> Outcome:
    """On the graph of ten neighbours."""
    model = SpectralClustering(sites.n_clusters, affinity="nearest_neighbors", n_neighbors=10, random_state=seed)
    return Outcome(sites.label_once(model.fit_predict))


def hdbscan(sites: Sites, seed: int) -> Outcome:  # noqa: ARG001 (nothing random in it)
    """By density."""
    return Outcome(sites.label_once(partial(hdbscan_of_about, sites.n_clusters)))


def hdbscan_of_about(n_clusters: int, rows: FloatArray) -> IntArray:
    """The setting that finds nearly so many clusters."""
    tried = [hdbscan_of(smallest, rows) for smallest in SMALLEST_OF_HDBSCAN if smallest < len(rows)]
    return filled(min(tried, key=lambda labels: abs(labels.max() + 1 - n_clusters)), rows)


def hdbscan_of(smallest: int, rows: FloatArray) -> IntArray:
    """Clusters of at least so many rows; -1 is noise."""
    algorithm = "brute" if rows.shape[1] > FEATURES_FOR_TREES else "auto"
    model = HDBSCAN(min_cluster_size=smallest, min_samples=SAMPLES_OF_HDBSCAN, algorithm=algorithm, copy=True)
    return np.asarray(model.fit_predict(rows), dtype=np.int64)


def filled(labels: IntArray, rows: FloatArray) -> IntArray:
    """Rows of noise with the label of the nearest row that has one."""
    known = np.flatnonzero(labels >= 0)
    if not len(known):
        return np.zeros_like(labels)
    nearest = NearestNeighbors(n_neighbors=1).fit(rows[known]).kneighbors(rows, return_distance=False)[:, 0]
    return np.where(labels >= 0, labels, labels[known[nearest]])


def mixed_mixture(sites: Sites, seed: int) -> Outcome:
    """Gaussian numbers with one covariance beside multinomial categories, by EM on rows; the best of eight starts."""
    encoding = encoding_of(sites.X, sites.categorical)
    encoded = encoding.encode(sites.X, as_numbers)
    layout, rng = encoding.terms.layout(encoded.shape[1]), generator(seed, "pooled")
    return Outcome(sites.label_once(lambda rows: fit_rows(rows, layout, sites.n_clusters, rng), encoded))


def fit_rows(rows: FloatArray, layout: Layout, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """The likeliest mixture: every row is a micro-cluster of its own, and nothing lies around it."""
    numbers, levels = layout.numbers_of(rows), layout.shares_of(rows)
    single = MicroClusters(numbers, np.ones(len(rows)), no_scatter(numbers.shape[1]), levels, layout.levels)
    unit, _ = standardized(single)
    starts = [random_start(start_points(unit), unit.mass, n_clusters, rng) for _ in range(MIXED_STARTS)]
    return max((fit_mixture(unit, start) for start in starts), key=lambda fitted: fitted.log_likelihood).labels


AT_SITES: dict[str, Method] = {"GOLD": gold, "coreset k-means": coreset}
POOLED: dict[str, Method] = {
    K_MEANS: k_means,
    "pooled Ward": ward,
    "pooled mixture, tied": partial(mixture, covariance="tied"),
    "pooled mixture, full": partial(mixture, covariance="full"),
    "pooled spectral": spectral,
    "pooled HDBSCAN": hdbscan,
}
# For mixed tables only.
MIXED: dict[str, Method] = {MIXED_MIXTURE: mixed_mixture}
