"""What a model says of rows, known and new: one rule for all of them, however the clusters are told."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score as ari

from goldfc import LocalPort, Model, OneShot, OneShotClustering, Site, Summary, fuse, label, run_round
from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadMessage, BadRows
from goldfc.learning.judge import Kind
from goldfc.learning.paper.competition import Learning
from goldfc.message import density as density_module
from goldfc.message.columns import Column, Terms
from goldfc.message.density import distances, is_far
from goldfc.randomness import generator
from goldfc.server.gold import Gold
from goldfc.site.gold import GoldSite
from goldfc.site.label import nearest_centroid, predict, predict_proba
from sentences import refused
from strategies import blobs, same_partition

MIXED = Terms(
    columns=(
        Column(name="ward", kind="category", categories=("a", "b", "c")),
        Column(name="x"),
        Column(name="ill", kind="boolean"),
        Column(name="y"),
    )
)


def stretched(seed: int) -> tuple[FloatArray, IntArray]:
    """Two long clusters side by side, slanted."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=1000)
    X = np.column_stack([rng.normal(scale=1.5, size=1000), 3.0 * truth + rng.normal(scale=0.6, size=1000)])
    return X @ np.array([[1.0, 0.6], [0.0, 1.0]]), truth


def crossed(seed: int) -> tuple[FloatArray, IntArray]:
    """Two long clusters that cross each other: no common covariance tells them."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=1000)
    long, thin = rng.normal(scale=3.0, size=1000), rng.normal(scale=0.2, size=1000)
    return np.where(truth[:, None] == 0, np.column_stack([long, thin]), np.column_stack([thin, long])), truth


def moons(seed: int) -> tuple[FloatArray, IntArray]:
    """Two clusters that are not convex."""
    X, truth = make_moons(1000, noise=0.04, random_state=seed)
    return X, truth


def mixed(seed: int) -> tuple[FloatArray, IntArray]:
    """Three clusters that numbers alone or categories alone do not tell apart."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=900)
    numbers = np.array([[0.0, 0.0], [0.0, 5.0], [0.0, 5.0]])[truth] + rng.normal(size=(900, 2))
    ward = np.where(rng.random(900) < 0.9, np.array([0, 0, 1])[truth], 2)
    ill = rng.random(900) < np.array([0.1, 0.1, 0.9])[truth]
    return np.column_stack([np.eye(3)[ward], numbers[:, 0], ill, numbers[:, 1]]), truth


TABLES: dict[Kind, Any] = {"shared": stretched, "own": crossed, "linked": moons}
all_kinds = pytest.mark.parametrize("kind", list(TABLES))


def model_of(
    X: FloatArray, n_clusters: int | None, way: OneShot | None = None, terms: Terms | None = None
) -> tuple[Model, IntArray]:
    """The model of a round with four sites, and the labels of all rows."""
    sites = [Site(f"{n}", X[n::4], terms=terms or Terms()) for n in range(4)]
    model = run_round(LocalPort(sites), n_clusters, way or OneShot(), generator(0, "server")).model
    labels = np.empty(len(X), dtype=np.int64)
    for start, site in enumerate(sites):
        labels[start::4] = site.labels
    return model, labels


@cache
def model_of_kind(kind: Kind) -> tuple[Model, FloatArray]:
    """A model of that kind, and the rows that it is of."""
    X, _ = TABLES[kind](0)
    model, _ = model_of(X, 2, OneShot(kinds=(kind,)))
    assert model.kind == kind
    X.flags.writeable = False
    return model, X


# --- labels ----------------------------------------------------------------------------------------------------------


@all_kinds
def test_every_kind_of_cluster_is_found_and_new_rows_get_their_own(kind: Kind) -> None:
    X, truth = TABLES[kind](1)
    model, labels = model_of(X[:600], 2, OneShot(kinds=(kind,)))
    assert model.kind == kind
    assert ari(truth[:600], labels) > 0.7
    assert ari(truth[600:], predict(model, X[600:])) > 0.7
    assert (
        ari(truth[600:], nearest_centroid(X[600:], model.centroids)) < ari(truth[600:], predict(model, X[600:])) - 0.2
    )


@all_kinds
def test_a_site_labels_its_rows_as_everybody_else_would(kind: Kind) -> None:
    X, _ = TABLES[kind](2)
    model, labels = model_of(X, 2, OneShot(kinds=(kind,)))
    np.testing.assert_array_equal(labels, label(X, model)[0])
    np.testing.assert_array_equal(labels, predict(model, X))
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(label(X[order], model)[0], labels[order])
    again = label(np.vstack([X, X]), model)
    for one, other in zip(again, label(X, model), strict=True):
        np.testing.assert_allclose(one, np.concatenate([other, other]), rtol=1e-12)


@all_kinds
def test_rows_are_labelled_alike_in_parts_of_any_size(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = model_of_kind(kind)
    whole, far, probability = label(X, model), is_far(model, X), predict_proba(model, X)
    for at_once in (1, 700, 5000):
        monkeypatch.setattr(density_module, "NUMBERS_AT_ONCE", at_once)
        monkeypatch.setattr(density_module, "ROWS_AT_LEAST", 1)
        np.testing.assert_array_equal(label(X, model)[0], whole[0])
        np.testing.assert_allclose(label(X, model)[1], whole[1], rtol=1e-9)
        np.testing.assert_array_equal(is_far(model, X), far)
        np.testing.assert_allclose(predict_proba(model, X), probability, atol=1e-9)
    assert len(label(X[:0], model)[0]) == len(is_far(model, X[:0])) == 0


@all_kinds
def test_no_part_of_the_rows_is_larger_than_it_may_be(kind: Kind) -> None:
    model, _ = model_of_kind(kind)
    parts = list(density_module.rows_in_parts(model, np.zeros((3_000_000, 2))))
    assert sum(map(len, parts)) == 3_000_000
    compared = model.centroids if model.prototypes is None else model.prototypes.points
    assert max(map(len, parts)) * len(compared) <= density_module.NUMBERS_AT_ONCE
    assert len(parts[0]) >= 1000


def likely(model: Model, row: FloatArray) -> FloatArray:
    """How likely a row is in every cluster, by the book."""
    layout = model.layout
    share, inside = model.mass / model.mass.sum(), np.ones(len(model.mass))
    for cluster, mean in enumerate(model.centroids):
        if model.prototypes is not None:
            those = model.prototypes.labels == cluster
            points = zip(model.prototypes.points[those], model.prototypes.mass[those], strict=True)
            share[cluster] = 1.0
            inside[cluster] = sum(mass * multivariate_normal.pdf(row, at, model.covariance) for at, mass in points)
            continue
        covariance = model.covariance[cluster] if model.kind == "own" else model.covariance
        inside[cluster] = multivariate_normal.pdf(row[layout.numbers], mean[layout.numbers], covariance)
        for features in layout.categories:
            usual = np.average(model.centroids[:, features], axis=0, weights=model.mass)
            shares = (model.mass[cluster] * mean[features] + usual) / (model.mass[cluster] + 1.0)
            if len(features) == 1:
                inside[cluster] *= shares[0] if row[features[0]] == 1.0 else 1.0 - shares[0]
            else:
                inside[cluster] *= shares[int(row[features].argmax())]
    return np.asarray(share * inside / (share * inside).sum())


@pytest.mark.parametrize("kind", [*TABLES, "mixed"])
def test_certainty_is_the_posterior_as_far_as_partitions_agree(kind: str) -> None:
    if kind == "mixed":
        X, truth = mixed(0)
        model, labels = model_of(X, 3, terms=MIXED)
        assert ari(truth, labels) > 0.8
    else:
        model, X = model_of_kind(kind)
    model = replace(model, agreement=0.8)
    some = X[:60]
    by_the_book = np.array([likely(model, row) for row in some])
    expected = 0.8 * by_the_book + 0.2 / len(model.centroids)
    np.testing.assert_allclose(predict_proba(model, some), expected, atol=1e-9)
    labels, certainty = label(some, model)
    np.testing.assert_array_equal(labels, by_the_book.argmax(axis=1))
    np.testing.assert_allclose(certainty, expected.max(axis=1), atol=1e-9)
    assert labels.dtype == np.int64
    assert certainty.max() <= 0.8 + 0.2 / len(model.centroids) + 1e-12


def test_where_nothing_agrees_there_are_labels_still() -> None:
    X, truth = blobs(3, 300, 3, seed=2)
    model = replace(model_of(X, 3)[0], agreement=0.0)
    labels, certainty = label(X, model)
    assert same_partition(labels, truth)
    np.testing.assert_allclose(certainty, 1.0 / 3.0)


def test_the_papers_model_predicts_by_plain_distances() -> None:
    X, _ = stretched(0)
    sites = [GoldSite(f"{n}", X[n::4], generator(0, f"{n}")) for n in range(4)]
    model = run_round(LocalPort(sites), 2, Gold(Learning()), generator(0, "server")).model
    rows = np.random.default_rng(0).uniform(-9.0, 9.0, size=(300, 2))
    np.testing.assert_array_equal(predict(model, rows), nearest_centroid(rows, model.centroids))
    assert is_far(model, X).mean() <= 0.02
    assert is_far(model, X + 100.0).all()


def test_the_covariance_is_that_of_rows_around_their_centroids_and_a_little_more() -> None:
    X, truth = blobs(3, 600, 3, seed=2)
    model, labels = model_of(X, 3, OneShot(kinds=("shared",)))
    inside = X - model.centroids[labels]
    expected = inside.T @ inside / len(X) + 0.01 * np.diag(X.var(axis=0))
    np.testing.assert_allclose(model.covariance, expected, rtol=1e-6)
    assert same_partition(labels, truth)


@pytest.mark.parametrize(("scale", "shift"), [(1e6, 0.0), (1e-6, 0.0), (1e9, 0.0), (1.0, 1e6)])
@all_kinds
def test_units_and_origins_change_no_label(kind: Kind, scale: float, shift: float) -> None:
    X, _ = TABLES[kind](1)
    units, origin = np.array([scale, 1.0]), np.array([shift, 0.0])
    centroids, mass = X[:200], np.arange(1, 201)
    shape = 0.01 * np.array([[0.2, 0.1], [0.1, 0.3]])
    summary = Summary("a", centroids, mass, shape)
    moved = Summary("a", centroids * units + origin, mass, shape * np.outer(units, units))
    one = fuse([summary], 2, OneShot(kinds=(kind,)), generator(0))
    other = fuse([moved], 2, OneShot(kinds=(kind,)), generator(0))
    assert one.kind == other.kind
    np.testing.assert_array_equal(predict(other, X * units + origin), predict(one, X))
    np.testing.assert_array_equal(is_far(other, X * units + origin), is_far(one, X))
    np.testing.assert_allclose(label(X * units + origin, other)[1], label(X, one)[1], atol=1e-6)


@pytest.mark.parametrize("kind", [*TABLES, "mixed"])
def test_a_model_from_its_message_says_the_same_of_rows(kind: str) -> None:
    if kind == "mixed":
        X, _ = mixed(1)
        model, _ = model_of(X, None, terms=MIXED)
    else:
        model, X = model_of_kind(kind)
    back = Model.from_message(model.to_message())
    assert (back.kind, back.why, back.agreement) == (model.kind, model.why, model.agreement)
    for one, other in zip(label(X, back), label(X, model), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(is_far(back, X), is_far(model, X))


@all_kinds
def test_nothing_is_written_into_rows_or_model(kind: Kind) -> None:
    model, X = model_of_kind(kind)
    back = Model.from_message(model.to_message())
    assert not X.flags.writeable
    assert not back.centroids.flags.writeable
    assert not back.covariance.flags.writeable
    before = back.to_message().digest
    label(X, back)
    is_far(back, X)
    assert back.to_message().digest == before


# --- distances -------------------------------------------------------------------------------------------------------


@all_kinds
def test_distances_undo_how_rows_lie(kind: Kind) -> None:
    model, X = model_of_kind(kind)
    found = distances(model, X[:50])
    for cluster in range(2):
        covariance = model.covariance[cluster] if kind == "own" else model.covariance
        points = model.centroids[[cluster]]
        if model.prototypes is not None:
            points = model.prototypes.points[model.prototypes.labels == cluster]
        apart = X[:50, None, :] - points
        squared = np.einsum("npi,ij,npj->np", apart, np.linalg.inv(covariance), apart)
        np.testing.assert_allclose(found[:, cluster], np.sqrt(squared.min(axis=1)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("withhold", [(), ("mass",), ("shape",), ("mass", "shape")])
def test_rows_like_those_that_took_part_are_near_and_others_are_far(withhold: tuple[Any, ...]) -> None:
    X, _ = blobs(4, 800, 3, seed=1)
    fitted = OneShotClustering(4, random_state=0, withhold=withhold).fit(X[:400], groups=np.arange(400) % 4)
    assert fitted.is_far(X[:400]).mean() <= 0.01
    assert fitted.is_far(X[400:]).mean() <= 0.02
    outside = np.array([[-40.0, 0.0, 0.0], [0.0, 60.0, 0.0], [5.0, 5.0, 90.0], [1e9, 0.0, 0.0], [5.0, 5.0, 5.0]])
    assert fitted.is_far(outside).all()


@pytest.mark.parametrize("at_most", [100, 5000])
@pytest.mark.parametrize("n_rows", [2000, 20_000])
def test_rows_of_clusters_that_are_not_convex_are_near_and_those_between_are_far(n_rows: int, at_most: int) -> None:
    X, truth = make_moons(n_rows, noise=0.02, random_state=0)
    sites = [Site(f"{n:02}", X[n::20]) for n in range(20)]
    model = run_round(LocalPort(sites), 2, OneShot(kinds=("linked",), at_most=at_most), generator(0, "server")).model
    assert model.kind == "linked"
    assert ari(truth, predict(model, X)) > 0.99
    assert is_far(model, X).mean() <= 0.01
    assert is_far(model, np.array([[0.0, -0.5], [1.0, 1.0], [0.5, 3.0], [-3.0, 0.0], [1e9, 0.0]])).all()


def test_a_kind_that_nobody_has_is_far() -> None:
    X, truth = blobs(5, 500, 3, seed=3)
    known = truth < 4
    model, _ = model_of(X[known], 4)
    assert is_far(model, X[~known]).all()
    assert is_far(model, X[known]).mean() <= 0.01


def test_where_nobody_tells_how_rows_lie_a_cluster_of_one_micro_cluster_is_not_all_far() -> None:
    centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    summaries = [Summary(name, centers.copy()) for name in ("a", "b", "c", "d")]
    for way in (OneShot(), OneShot(kinds=("shared",)), OneShot(kinds=("linked",))):
        model = fuse(summaries, 3, way, generator(0))
        assert not is_far(model, model.centroids + 0.01).any()


@pytest.mark.parametrize("value", [1e60, 1e160, -1e300, 1.7e308])
@all_kinds
def test_rows_further_away_than_can_be_told_are_far_and_have_a_label(kind: Kind, value: float) -> None:
    model, _ = model_of_kind(kind)
    rows = np.array([[value, 0.0], [0.0, value], [value, value], [value, -value]])
    labels, certainty = label(rows, model)
    assert set(labels) <= {0, 1}
    assert ((certainty > 0.0) & (certainty <= 1.0)).all()
    assert np.isfinite(distances(model, rows)).all()
    assert is_far(model, rows).all()


@pytest.mark.parametrize("variance", [5e-324, 1e-200, 1e200])
@all_kinds
def test_any_model_that_can_be_read_can_be_used(kind: Kind, variance: float) -> None:
    model, X = model_of_kind(kind)
    odd = replace(
        model,
        centroids=model.centroids * 1e90,
        mass=np.array([5e-324, 1e15]),
        covariance=np.broadcast_to(variance * np.eye(2), model.covariance.shape),
    )
    read = Model.from_message(odd.to_message())
    labels, certainty = label(X, read)
    assert set(labels) <= {0, 1}
    assert np.isfinite(certainty).all()
    assert is_far(read, X).dtype == bool


def test_shares_that_no_rows_have_count_as_the_nearest_that_some_have() -> None:
    X, _ = mixed(0)
    model, labels = model_of(X, 3, terms=MIXED)
    odd = model.centroids.copy()
    features = np.concatenate(model.layout.categories)
    odd[:, features] = np.where(odd[:, features] > 0.5, 1e90, -1e90)
    found, certainty = label(X, Model.from_message(replace(model, centroids=odd).to_message()))
    assert np.isfinite(certainty).all()
    assert ari(labels, found) > 0.5


@pytest.mark.parametrize("value", [0.1, 1e6, 1.7e18, 1e30])
def test_a_column_constant_up_to_rounding_changes_no_label(value: float) -> None:
    X, _ = blobs(3, 300, 3, seed=2)
    wide = np.column_stack([X, value * (1.0 + np.arange(300) % 7 * 1e-16)])
    for n_clusters in (3, None):
        without = fuse([Summary("a", X[:60])], n_clusters, OneShot(), generator(0))
        model = fuse([Summary("a", wide[:60])], n_clusters, OneShot(), generator(0))
        np.testing.assert_array_equal(predict(model, wide), predict(without, X))
        np.testing.assert_array_equal(is_far(model, wide), is_far(without, X))


def test_where_there_are_no_numbers_nothing_is_far() -> None:
    terms = Terms(columns=tuple(column for column in MIXED.columns if column.kind != "number"))
    X, truth = mixed(0)
    only = X[:, [0, 1, 2, 4]]
    model, labels = model_of(only, 2, terms=terms)
    assert model.covariance.shape == (1, 1)
    assert not is_far(model, only).any()
    assert ari(truth == 2, labels) > 0.4
    assert Model.from_message(model.to_message()).layout.numbers.size == 0


# --- refusals --------------------------------------------------------------------------------------------------------


def test_rows_of_other_columns_are_refused() -> None:
    model, _ = model_of(blobs(3, 90, 3, seed=2)[0], 3)
    for ask in (predict, is_far, predict_proba, distances):
        for rows in (np.zeros((1, 2)), np.zeros(3)):
            with refused(BadRows, "rows-of-other-columns", "from 3 features"):
                ask(model, rows)


def test_with_many_numbers_clusters_have_no_covariance_of_their_own_and_a_common_one_has_no_correlations() -> None:
    model, _ = model_of(blobs(3, 90, 3, seed=2)[0], 3, OneShot(kinds=("own",)))
    assert Model.from_message(model.to_message()).kind == "own"
    for count, kind, shape in (
        (61, "own", (3, 61, 61)),
        (201, "shared", (201, 201)),
        (201, "linked", (201, 201)),
        (60, "shared", (3, 60, 60)),
    ):
        covariance = np.broadcast_to(np.eye(count), shape)
        wide = replace(model, kind=kind, centroids=np.zeros((3, count)), covariance=covariance)  # type: ignore[arg-type]
        with refused(BadMessage, "model-covariance-form"):
            Model.from_message(wide.to_message())
