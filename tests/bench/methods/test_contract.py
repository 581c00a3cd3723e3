"""The laws that every method obeys, method by method; the suite fails when a method yields no checks."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from goldfc import OneShotClustering
from goldfc._types import FloatArray, IntArray
from goldfc.errors import GoldError
from goldfc.message.message import Message
from goldfc.randomness import generator, site_generator
from goldfc.transport.local import LocalPort
from goldfc_bench.methods import METHODS, VARIANTS, method_named
from goldfc_bench.methods.protocol import Answer, Method
from goldfc_bench.score import ari

ALL = METHODS | VARIANTS
PAPERS_NAMES = (
    "k-Fed", "FFCM-avg1", "FFCM-avg2", "OSFSC-SSC", "OSFSC-TSC", "FedSC", "NN-FC", "AFCL", "GOLD",
    "pooled k-means", "coreset k-means",
)  # fmt: skip
OUR_NAMES = ("OneShot",)
# These find, or choose, their own number of clusters.
OWN_K = {"AFCL", "k chosen on pooled rows"}
LAWS: list[Callable[[Method], None]] = []


def law(check: Callable[[Method], None]) -> Callable[[Method], None]:
    LAWS.append(check)
    return check


def blobs(n_rows: int = 240, n_clusters: int = 4, seed: int = 0) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(n_clusters, size=n_rows)
    centres = np.array([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0], [-3.0, -3.0, -3.0]])
    return centres[y] + rng.normal(scale=0.7, size=(n_rows, 3)), y


def federation() -> dict[str, FloatArray]:
    X, _ = blobs()
    return {name: X[number::4].copy() for number, name in enumerate(("north", "east", "south", "west"))}


class ListeningPort(LocalPort):
    """A port that keeps what the sites sent."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self.heard: list[Message] = []

    def ask(self, message: Message, sites: object = None) -> dict[str, Message]:
        """Pass it on, and listen."""
        answers = super().ask(message, sites)  # type: ignore[arg-type]
        self.heard += answers.values()
        return answers


def run(
    method: Method, rows: dict[str, FloatArray], n_clusters: int = 4, seed: int = 0
) -> tuple[dict[str, IntArray], Answer, ListeningPort]:
    sites = [method.site(name, own, site_generator(seed, name)) for name, own in rows.items()]
    port = ListeningPort(sites)
    answer = method.serve(port, n_clusters, generator(seed, "server"))
    return {site.name: site.labels for site in sites}, answer, port


@law
def one_label_per_row_and_at_most_k_of_them(method: Method) -> None:
    rows = federation()
    labels, answer, _ = run(method, rows)
    for name, own in rows.items():
        assert labels[name].shape == (len(own),)
        assert np.issubdtype(labels[name].dtype, np.integer)
    found = np.unique(np.concatenate(list(labels.values())))
    assert found.min() >= 0
    assert len(found) <= (8 if method.name in OWN_K else 4)
    assert answer.centroids.shape[1] == 3
    assert np.isfinite(answer.centroids).all()


@law
def same_seed_same_labels(method: Method) -> None:
    first, _, _ = run(method, federation(), seed=5)
    second, _, _ = run(method, federation(), seed=5)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


@law
def inputs_and_global_random_state_are_untouched(method: Method) -> None:
    rows = federation()
    copies = {name: own.copy() for name, own in rows.items()}
    before = repr(np.random.get_state())  # noqa: NPY002 (the legacy state is what must not change)
    run(method, rows)
    assert repr(np.random.get_state()) == before  # noqa: NPY002 (as above)
    for name, own in rows.items():
        np.testing.assert_array_equal(own, copies[name])


def degenerate() -> dict[str, dict[str, FloatArray]]:
    X, y = blobs()
    constant = X.copy()
    constant[:, 1] = 0.1
    return {
        "a site with one row": federation() | {"tiny": X[:1]},
        "a site that misses most clusters": {"all": X, "one": X[y == 0]},
        "a single site": {"alone": X},
        "constant columns": {"a": constant[::2], "b": constant[1::2]},
        "duplicated rows": {"a": np.repeat(X[:8], 10, axis=0), "b": np.repeat(X[4:12], 10, axis=0)},
        "all rows equal": {"a": np.full((12, 3), 0.3), "b": np.full((9, 3), 0.3)},
    }


@law
def degenerate_sites_get_an_answer_or_a_named_error(method: Method) -> None:
    for case, rows in degenerate().items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                labels, answer, _ = run(method, rows)
            except GoldError:
                continue
        assert np.isfinite(answer.centroids).all(), case
        assert all(len(labels[name]) == len(own) for name, own in rows.items()), case


@law
def uplinks_counted_are_uplinks_declared(method: Method) -> None:
    _, answer, port = run(method, federation())
    assert port.traffic.uplinks == answer.uplinks
    assert answer.uplinks >= 4


@law
def no_uploaded_vector_is_a_row_unless_the_method_says_so(method: Method) -> None:
    rows = federation()
    _, _, port = run(method, rows)
    everything = {tuple(row) for own in rows.values() for row in own}
    vectors = [
        tuple(vector)
        for message in port.heard
        for array in message.arrays.values()
        if array.ndim == 2 and array.shape[1] == 3
        for vector in array.tolist()
    ]
    given_away = sum(vector in everything for vector in vectors)
    if method.uploads_rows == "never":
        assert given_away == 0
    elif method.uploads_rows == "lone":
        assert given_away < len(everything)


@law
def order_of_sites_changes_the_score_within_tolerance_only(method: Method) -> None:
    _, y = blobs()
    rows = federation()
    truth = {name: y[number::4] for number, name in enumerate(rows)}
    straight, _, _ = run(method, rows)
    backwards, _, _ = run(method, dict(reversed(rows.items())))
    scores = [
        ari(np.concatenate([truth[name] for name in rows]), np.concatenate([labels[name] for name in rows]))
        for labels in (straight, backwards)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-9)


@pytest.mark.parametrize("check", LAWS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", ALL)
def test_law(name: str, check: Callable[[Method], None]) -> None:
    check(ALL[name])


def test_every_method_is_there_and_checked() -> None:
    assert sorted(METHODS) == sorted(PAPERS_NAMES + OUR_NAMES)
    assert len(LAWS) >= 7
    for name, method in ALL.items():
        assert method.name == name
        assert type(method).__doc__
        assert method.uploads_rows in ("never", "lone", "all")


@pytest.mark.parametrize(
    "settings",
    [
        {"withhold": ["mass", "shape"]},
        {"scaling": "given"},
        {"kinds": ["shared"]},
        {"kinds": ["own"]},
        {"kinds": ["linked"]},
        {"by_file": True},
    ],
)
def test_one_shot_runs_with_every_setting(settings: dict[str, Any]) -> None:
    labels, answer, _ = run(method_named("OneShot", settings), federation())
    assert all(len(own) == 60 for own in labels.values())
    assert len(answer.centroids) == 4
    assert answer.details is not None
    if "kinds" in settings and settings["kinds"] != ["linked"]:  # linked clusters may be as well told by covariances
        assert answer.details["kind"] in settings["kinds"]


def test_one_shot_is_what_the_estimator_does() -> None:
    rows = federation()
    labels, _, _ = run(ALL["OneShot"], rows, seed=3)
    groups = np.repeat(list(rows), [len(own) for own in rows.values()])
    estimator = OneShotClustering(4, random_state=3).fit(np.vstack(list(rows.values())), groups=groups)
    np.testing.assert_array_equal(estimator.labels_, np.concatenate(list(labels.values())))


def test_labels_of_rows_that_took_part_are_those_of_new_rows() -> None:
    rows = federation()
    labels, answer, _ = run(ALL["OneShot"], rows)
    for name, own in rows.items():
        np.testing.assert_array_equal(answer.label(own), labels[name])


def test_by_file_a_centroid_is_the_mean_of_at_least_five_rows() -> None:
    _, _, port = run(method_named("OneShot", {"by_file": True}), federation())
    assert min(message.arrays["mass"].min() for message in port.heard) >= 5


def test_one_shot_that_is_not_told_the_number_of_clusters_proposes_it() -> None:
    labels, answer, _ = run(method_named("OneShot", {"given_k": False}), federation(), n_clusters=99)
    assert answer.details is not None
    assert answer.details["proposed"][0] == len(answer.centroids) == len(set(np.concatenate(list(labels.values()))))
    assert answer.details["proposed"][0] == 4
