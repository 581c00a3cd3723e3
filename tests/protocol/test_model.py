"""What a model says of rows that took no part: the nearest cluster, and whether that is far."""

import numpy as np
import pytest

from goldfc import GOLD, Client, Consensus, LocalPort, Model, Remc, Summary, fuse, run_round
from goldfc._types import FloatArray, IntArray
from goldfc.bench.score import ari
from goldfc.errors import BadRows
from goldfc.protocol.label import is_far, nearest, predict
from goldfc.protocol.federation import generator
from goldfc.protocol.fusion import Fusion
from strategies import blobs, same_partition

both_fusions = pytest.mark.parametrize("fusion", [Consensus(), Remc()], ids=["consensus", "remc"])


def stretched(seed: int) -> tuple[FloatArray, IntArray]:
    """Two long clusters side by side, slanted."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=1000)
    X = np.column_stack([rng.normal(scale=3.0, size=1000), 4.0 * truth + rng.normal(scale=0.3, size=1000)])
    return X @ np.array([[1.0, 0.6], [0.0, 1.0]]), truth


def model_of(X: FloatArray, n_clusters: int | None, fusion: Fusion, n_clients: int = 4) -> tuple[Model, IntArray]:
    """The model of a round, and the labels of all rows."""
    sites = [Client(f"{start}", X[start::n_clients], generator(0, f"{start}")) for start in range(n_clients)]
    model = run_round(LocalPort(sites), n_clusters, fusion, generator(0, "server")).model
    labels = np.empty(len(X), dtype=np.int64)
    for start, site in enumerate(sites):
        labels[start::n_clients] = site.labels
    return model, labels


# --- predict ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_stretched_clusters_are_predicted_better_than_by_plain_distances(seed: int) -> None:
    X, truth = stretched(seed)
    model, _ = model_of(X[:600], 2, Consensus())
    assert ari(truth[600:], predict(model, X[600:])) > 0.95
    assert ari(truth[600:], nearest(X[600:], model.centroids)) < 0.6


def test_the_nearest_cluster_is_that_of_the_covariance_inside_clusters() -> None:
    X, _ = stretched(0)
    model, _ = model_of(X, 2, Consensus())
    apart = X[:, None, :] - model.centroids
    distances = np.einsum("nki,ij,nkj->nk", apart, np.linalg.inv(model.covariance), apart)
    np.testing.assert_array_equal(predict(model, X), distances.argmin(axis=1))


def test_the_papers_way_predicts_by_plain_distances() -> None:
    X, _ = stretched(0)
    model, _ = model_of(X, 2, Remc())
    rows = np.random.default_rng(0).uniform(-9.0, 9.0, size=(300, 2))
    np.testing.assert_array_equal(predict(model, rows), nearest(rows, model.centroids))


def test_rows_that_took_part_are_predicted_as_they_are_labelled_where_clusters_lie_apart() -> None:
    X, truth = blobs(3, 300, 3, seed=2)
    model, labels = model_of(X, 3, Consensus())
    np.testing.assert_array_equal(predict(model, X), labels)
    assert same_partition(labels, truth)


def test_the_covariance_is_that_of_rows_around_their_centroids_and_a_little_more() -> None:
    X, truth = blobs(3, 600, 3, seed=2)
    model, labels = model_of(X, 3, Consensus())
    inside = X - model.centroids[labels]
    expected = inside.T @ inside / len(X) + 0.01 * np.diag(X.var(axis=0))
    np.testing.assert_allclose(model.covariance, expected, rtol=1e-6)
    assert same_partition(labels, truth)


@pytest.mark.parametrize(("scale", "shift"), [(1e6, 0.0), (1e-6, 0.0), (1.0, 1e6)])
def test_units_and_origins_change_no_prediction(scale: float, shift: float) -> None:
    X, _ = stretched(1)
    units, origin = np.array([scale, 1.0]), np.array([shift, 0.0])
    centroids, mass = X[:80], np.arange(1, 81)
    shape = np.array([[0.2, 0.1], [0.1, 0.3]])
    summary = Summary("a", centroids, mass, shape)
    moved = Summary("a", centroids * units + origin, mass, shape * np.outer(units, units))
    one = fuse([summary], 2, Consensus(), generator(0))
    other = fuse([moved], 2, Consensus(), generator(0))
    np.testing.assert_array_equal(predict(other, X * units + origin), predict(one, X))
    np.testing.assert_array_equal(is_far(other, X * units + origin), is_far(one, X))


def test_a_model_from_its_message_predicts_the_same() -> None:
    X, _ = stretched(0)
    model, _ = model_of(X, None, Consensus())
    back = Model.from_message(model.to_message())
    np.testing.assert_array_equal(predict(back, X), predict(model, X))
    np.testing.assert_array_equal(is_far(back, X), is_far(model, X))


# --- is_far ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("withhold", [(), ("mass",), ("shape",), ("mass", "shape")])
def test_rows_like_those_that_took_part_are_near_and_others_are_far(withhold: tuple[str, ...]) -> None:
    X, _ = blobs(4, 800, 3, seed=1)
    fitted = GOLD(4, random_state=0, withhold=withhold).fit(X[:400], groups=np.arange(400) % 4)  # type: ignore[arg-type]
    assert fitted.is_far(X[:400]).mean() <= 0.01
    assert fitted.is_far(X[400:]).mean() <= 0.02
    outside = np.array([[-40.0, 0.0, 0.0], [0.0, 60.0, 0.0], [5.0, 5.0, 90.0], [1e9, 0.0, 0.0], [5.0, 5.0, 5.0]])
    assert fitted.is_far(outside).all()


def test_the_papers_way_knows_what_is_far_too() -> None:
    X, _ = blobs(4, 800, 3, seed=1)
    fitted = GOLD(4, fusion="remc", random_state=0).fit(X[:400], groups=np.arange(400) % 4)
    assert fitted.is_far(X).mean() <= 0.02
    assert fitted.is_far(X + 100.0).all()


def test_a_kind_that_nobody_has_is_far() -> None:
    X, truth = blobs(5, 500, 3, seed=3)
    known = truth < 4
    model, _ = model_of(X[known], 4, Consensus())
    assert is_far(model, X[~known]).all()
    assert is_far(model, X[known]).mean() <= 0.01


@both_fusions
def test_where_nobody_tells_how_rows_lie_a_cluster_of_one_micro_cluster_is_not_all_far(fusion: Fusion) -> None:
    centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    summaries = [Summary(name, centers.copy()) for name in ("a", "b", "c", "d")]
    model = fuse(summaries, 1 if isinstance(fusion, Remc) else 3, fusion, generator(0))
    assert not is_far(model, model.centroids + 0.01).any()


@pytest.mark.parametrize("value", [0.1, 1e6, 1.7e18, 1e30])
def test_a_column_constant_up_to_rounding_changes_no_prediction(value: float) -> None:
    X, _ = blobs(3, 300, 3, seed=2)
    wide = np.column_stack([X, value * (1.0 + np.arange(300) % 7 * 1e-16)])
    for n_clusters in (3, None):
        without = fuse([Summary("a", X[:60])], n_clusters, Consensus(), generator(0))
        model = fuse([Summary("a", wide[:60])], n_clusters, Consensus(), generator(0))
        np.testing.assert_array_equal(predict(model, wide), predict(without, X))
        np.testing.assert_array_equal(is_far(model, wide), is_far(without, X))


def test_rows_of_other_columns_are_refused() -> None:
    model, _ = model_of(blobs(3, 90, 3, seed=2)[0], 3, Consensus())
    for ask in (predict, is_far):
        with pytest.raises(BadRows, match="made from 3 features, but the rows have 2; pass the same columns"):
            ask(model, np.zeros((1, 2)))
