"""How good a clustering is: against the truth (external), and by the rows alone (internal)."""

import math

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn import metrics
from sklearn.metrics.cluster import contingency_matrix

from goldfc._types import FloatArray, IntArray


def external_scores(truth: IntArray, labels: IntArray) -> dict[str, float]:
    """The four indices that know the truth, by the names the paper gives them."""
    return {
        "Purity": purity(truth, labels),
        "ARI": ari(truth, labels),
        "NMI": nmi(truth, labels),
        "ACC": acc(truth, labels),
    }


def internal_scores(X: FloatArray, labels: IntArray) -> dict[str, float]:
    """The two indices that know only the rows; CH is the natural logarithm, as the paper prints it.

    Both are nan for fewer than two clusters, or as many clusters as rows: they compare a row's own cluster to others.
    """
    return {"SC": silhouette(X, labels), "CH": log_calinski_harabasz(X, labels)}


def purity(truth: IntArray, labels: IntArray) -> float:
    """The share of rows that are of the most frequent class of their cluster; in (0, 1]."""
    return float(contingency_matrix(truth, labels).max(axis=0).sum() / len(truth))


def ari(truth: IntArray, labels: IntArray) -> float:
    """Adjusted Rand index: how many pairs of rows are together or apart in both; 1 is perfect, 0 is chance."""
    return float(metrics.adjusted_rand_score(truth, labels))


def nmi(truth: IntArray, labels: IntArray) -> float:
    """Mutual information of clusters and classes, divided by the mean of their entropies; in [0, 1]."""
    return float(metrics.normalized_mutual_info_score(truth, labels))


def acc(truth: IntArray, labels: IntArray) -> float:
    """The share of rows that are right when clusters are matched to classes one to one, as well as can be."""
    matches = contingency_matrix(truth, labels)
    return float(matches[linear_sum_assignment(matches, maximize=True)].sum() / len(truth))


def silhouette(X: FloatArray, labels: IntArray) -> float:
    """How much nearer rows are to their own cluster than to the next one, in [-1, 1]; nan where undefined."""
    return float(metrics.silhouette_score(X, labels)) if _comparable(labels) else math.nan


def calinski_harabasz(X: FloatArray, labels: IntArray) -> float:
    """The variance between clusters over the variance within them, per degree of freedom; nan where undefined."""
    return float(metrics.calinski_harabasz_score(X, labels)) if _comparable(labels) else math.nan


def log_calinski_harabasz(X: FloatArray, labels: IntArray) -> float:
    """The natural logarithm of the Calinski-Harabasz index; minus infinity where all centroids coincide."""
    index = calinski_harabasz(X, labels)
    return -math.inf if index == 0.0 else math.log(index)


def _comparable(labels: IntArray) -> bool:
    return 2 <= len(np.unique(labels)) < len(labels)
