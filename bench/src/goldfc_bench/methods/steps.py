"""Steps that many methods take, at the server or at the sites."""

from collections.abc import Mapping

import numpy as np
from sklearn.cluster import KMeans

from goldfc._types import FloatArray, IntArray
from goldfc.errors import TooFewMicroClusters
from goldfc.message.message import Message
from goldfc.server.round import Port


def ask_for_means(port: Port, n_clusters: int) -> FloatArray:
    """Centroids for a method that outputs labels only: means of all rows of a label; empty labels are dropped.

    It costs one more small message from every site, which is no part of such a method.
    """
    answers = port.ask(Message("means", facts={"n_clusters": n_clusters})).values()
    sums = np.sum([answer.arrays["sums"] for answer in answers], axis=0)
    counts = np.sum([answer.arrays["counts"] for answer in answers], axis=0)
    return np.asarray(sums[counts > 0] / counts[counts > 0, None])


def ask_all(port: Port, message: Message) -> dict[str, Message]:
    """All sites' answers by the sites' names, in the order of these, so that the order of arrival changes nothing."""
    return dict(sorted(port.ask(message).items()))


def stacked(answers: Mapping[str, Message], array: str) -> FloatArray:
    """One array of every answer, site after site."""
    return np.concatenate([answer.arrays[array] for answer in answers.values()])


def send_labels(port: Port, answers: Mapping[str, Message], labels: IntArray) -> None:
    """To every site, the labels of the local clusters that its answer told of; `labels` has them all, site after site.

    Whatever arrays an answer has, they have an entry for every local cluster.
    """
    start = 0
    for name, answer in answers.items():
        count = len(next(iter(answer.arrays.values())))
        port.ask(Message("labels", {"labels": labels[start : start + count]}), [name])
        start += count


def k_means(
    rows: FloatArray, k: int, starts: int, rng: np.random.Generator, mass: FloatArray | IntArray | None = None
) -> KMeans:
    """scikit-learn's k-means, fitted."""
    return KMeans(k, n_init=starts, random_state=integer_seed(rng)).fit(rows, sample_weight=mass)


def integer_seed(rng: np.random.Generator) -> int:
    """A seed for scikit-learn."""
    return int(rng.integers(2**31))


def check_enough(sent: FloatArray, n_clusters: int, remedy: str = "ask for fewer, or bring more rows or sites") -> None:
    """Refuse to make more clusters than there are different centres."""
    found = n_distinct(sent)
    if found < n_clusters:
        raise TooFewMicroClusters(
            f"{n_clusters} clusters were asked for, but only {found} different centres were sent; {remedy}."
        )


def n_distinct(rows: FloatArray) -> int:
    """How many different rows there are: no site can have more clusters."""
    return len(np.unique(rows, axis=0))
