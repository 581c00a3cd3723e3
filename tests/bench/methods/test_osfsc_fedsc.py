"""OSFSC and FedSC: their steps by law, and their scores by an independent prototype's."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LassoLars
from threadpoolctl import threadpool_limits

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadRows, BadSettings, GoldError, TooFewMicroClusters
from goldfc.randomness import generator, site_generator
from goldfc.transport.local import LocalPort
from goldfc_bench.datasets import load, load_split
from goldfc_bench.methods._kernels import sparse_self_expression
from goldfc_bench.methods.fedsc import FedSC, encode, improved, kernel, nearest_similarities, objective
from goldfc_bench.methods.osfsc import (
    OSFSCSparse,
    OSFSCThreshold,
    draw_direction,
    sparse_affinity,
    symmetric,
    threshold_affinity,
)
from goldfc_bench.methods.protocol import Answer, Method
from goldfc_bench.methods.spectral import DENSE, normalised, spectral_clusters, top_eigenvectors
from goldfc_bench.score import ari, purity
from needs import needs_splits
from strategies import KINDS

METHODS: list[Method] = [OSFSCSparse(), OSFSCThreshold(), FedSC()]
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small tables: threads would only wait for each other."""
    with threadpool_limits(limits=1):
        yield


def run(method: Method, sites: list[FloatArray], n_clusters: int, seed: int = 0) -> tuple[IntArray, Answer, LocalPort]:
    """The labels of all rows, site after site."""
    members = [method.site(str(i), rows, site_generator(seed, str(i))) for i, rows in enumerate(sites)]
    port = LocalPort(members)
    answer = method.serve(port, n_clusters, generator(seed, "server"))
    return np.concatenate([site.labels for site in members]), answer, port


def test_many_features_are_turned_into_the_span_of_the_rows() -> None:
    rows = np.random.default_rng(3).normal(size=(20, 400))
    partners, values = sparse_self_expression(rows, 500.0, 50)
    expected = symmetric(partners, np.abs(values)).toarray()
    np.testing.assert_allclose(sparse_affinity(rows, 500.0, 50).toarray(), expected, atol=1e-8)


# --- The spectral steps ---


def blocks(sizes: list[int]) -> sparse.csr_array:
    """Groups whose members are all alike, hardly connected to each other."""
    groups = sparse.block_diag([np.ones((size, size)) for size in sizes], format="csr")
    chain = sparse.eye_array(sum(sizes), k=1, format="csr")
    return sparse.csr_array(groups + 1e-3 * (chain + chain.T))


@pytest.mark.parametrize("sizes", [[20, 30], [DENSE, 50]], ids=["dense", "ARPACK"])
def test_two_obvious_blocks_are_found(sizes: list[int]) -> None:
    labels = spectral_clusters(blocks(sizes), 2, 5, np.random.default_rng(0))
    assert ari(np.repeat([0, 1], sizes), labels) == 1.0


def test_arpack_and_the_dense_method_agree() -> None:
    rows = np.random.default_rng(0).normal(size=(DENSE + 50, 4))
    matrix = normalised(threshold_affinity(rows, 8))
    found = top_eigenvectors(matrix, 5, np.random.default_rng(1))
    dense = np.linalg.eigh(matrix.toarray())[1][:, -5:]
    np.testing.assert_allclose(np.abs(found.T @ dense), np.eye(5), atol=1e-6)


@pytest.mark.parametrize("n", [1, 10, DENSE + 10])
def test_nodes_without_neighbours_get_a_label(n: int) -> None:
    labels = spectral_clusters(sparse.csr_array((n, n)), 3, 2, np.random.default_rng(0))
    assert len(labels) == n
    assert 1 <= len(np.unique(labels)) <= min(n, 3)


# --- The lasso ---


def coefficients(rows: FloatArray, gamma: float) -> FloatArray:
    partners, values = sparse_self_expression(rows, gamma, 50)
    table = np.zeros((len(rows), len(rows)))
    for i in range(len(rows)):
        np.add.at(table[i], partners[i], values[i])
    return table


# Not more rows in fewer dimensions: at small penalties LassoLars then misses the optimum, as the next test would tell.
@pytest.mark.parametrize(("n", "d"), [(50, 10), (30, 20), (10, 30), (8, 1)])
@pytest.mark.parametrize("gamma", [2.0, 500.0])
def test_the_lasso_agrees_with_lassolars(n: int, d: int, gamma: float) -> None:
    rows = np.random.default_rng(0).normal(size=(n, d))
    found = coefficients(rows, gamma)
    for i in range(n):
        others = rows.T.copy()
        others[:, i] = 0.0
        penalty = np.abs(rows[i] @ others).max() / gamma
        reference = LassoLars(alpha=penalty / d, fit_intercept=False).fit(others, rows[i])
        np.testing.assert_allclose(found[i], reference.coef_, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(60, 4), (12, 9), (1, 3)])
def test_the_lasso_is_optimal(kind: str, shape: tuple[int, int]) -> None:
    rows = KINDS[kind](np.random.default_rng(0), shape)
    found = coefficients(rows, 500.0)
    products = np.abs(rows @ rows.T)
    np.fill_diagonal(products, 0.0)
    mu = products.max(axis=1)
    correlation = (rows - found @ rows) @ rows.T
    np.fill_diagonal(correlation, 0.0)
    assert (np.diag(found) == 0.0).all()
    assert (np.abs(correlation).max(axis=1) <= mu / 500.0 + 1e-7 * mu).all()
    # Where a coefficient is not 0, the bound is reached with its sign.
    slack = (mu[:, None] / 500.0 - correlation * np.sign(found)) * (found != 0.0)
    assert (np.abs(slack) <= 1e-7 * mu[:, None]).all()


def test_no_row_keeps_more_coefficients_than_allowed() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 12))
    _, values = sparse_self_expression(rows, 500.0, 3)
    assert values.shape == (40, 3)
    kept = np.sort(np.abs(coefficients(rows, 500.0)), axis=1)[:, :-4:-1]
    np.testing.assert_allclose(np.abs(values), kept)


# --- OSFSC ---


def subspaces(dimension: int, n: int = 400) -> tuple[FloatArray, IntArray]:
    """Rows on three lines or planes through the origin, in six dimensions."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0].reshape(3, 2, 6)[:, :dimension]
    rows = np.einsum("ia,iab->ib", rng.normal(size=(n, dimension)), axes[y])
    return rows + rng.normal(scale=0.01, size=rows.shape), y


def test_rows_are_expressed_by_rows_of_their_own_subspace() -> None:
    rows, y = subspaces(2, n=90)
    affinity = sparse_affinity(rows, 50.0, 50).tocoo()
    across = y[affinity.row] != y[affinity.col]
    assert affinity.data[across].sum() < 0.05 * affinity.data.sum()


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("method", [OSFSCSparse, OSFSCThreshold])
def test_osfsc_finds_subspaces_across_sites(method: type[OSFSCSparse], dimension: int) -> None:
    rows, y = subspaces(dimension)
    sites = [np.arange(number, len(rows), 10) for number in range(10)]
    settings = method(subspace_dimension=dimension, gamma=50.0)
    labels, answer, port = run(settings, [rows[own] for own in sites], 3)
    assert purity(y[np.concatenate(sites)], labels) > 0.9
    assert answer.uplinks == port.traffic.uplinks == 20


def test_a_direction_has_length_1_and_lies_in_the_subspace() -> None:
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(2, 5))
    direction = draw_direction(rng.normal(size=(20, 2)) @ plane, 4, rng)
    assert np.linalg.norm(direction) == pytest.approx(1.0)
    assert np.linalg.matrix_rank(np.vstack([plane, direction]), tol=1e-9) == 2
    np.testing.assert_array_equal(draw_direction(np.zeros((3, 5)), 1, rng), np.zeros(5))


def test_the_direction_of_a_lone_row_is_that_row_up_to_length_and_sign() -> None:
    row = np.array([[3.0, -4.0]])
    np.testing.assert_allclose(np.abs(draw_direction(row, 1, np.random.default_rng(0))), [0.6, 0.8])


# --- FedSC ---


def blobs(n: int = 120) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    return rng.normal(size=(3, 4))[y] * 2.0 + rng.normal(scale=0.4, size=(n, 4)), y


def test_a_step_lowers_the_objective() -> None:
    rows, _ = blobs()
    atoms = np.random.default_rng(1).normal(size=(9, 4))
    falling = [objective(atoms, rows, s2=6.0, ridge=1e-3)]
    for _ in range(10):
        atoms = improved(atoms, rows, s2=6.0, ridge=1e-3)
        falling.append(objective(atoms, rows, s2=6.0, ridge=1e-3))
    assert (np.diff(falling) < 0.0).all()
    assert falling[-1] < 0.5 * falling[0]


def test_the_objective_is_the_distance_in_kernel_space_plus_the_ridge() -> None:
    rows, _ = blobs(30)
    atoms, s2, ridge = rows[:5] + 0.1, 4.0, 0.01
    codes = encode(atoms, rows, s2, ridge)
    residual = (
        kernel(rows, rows, s2) - 2.0 * codes.T @ kernel(atoms, rows, s2) + codes.T @ kernel(atoms, atoms, s2) @ codes
    )
    expected = 0.5 * np.trace(residual) + 0.5 * ridge * np.sum(codes**2)
    assert objective(atoms, rows, s2, ridge) == pytest.approx(expected)


def test_blocks_give_what_the_whole_matrix_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    codes, inner = rng.normal(size=(50, 4)), np.eye(4)
    whole = codes @ codes.T
    whole = (whole - whole.min()) / (whole.max() - whole.min())
    whole[whole < np.sort(whole, axis=1)[:, [-4]]] = 0.0  # ln 50 = 3.9
    monkeypatch.setattr("goldfc_bench.methods.fedsc.BLOCK", 350)
    np.testing.assert_allclose(nearest_similarities(codes, inner).toarray(), np.maximum(whole, whole.T), atol=1e-12)


def test_fedsc_finds_blobs_across_sites() -> None:
    rows, y = blobs()
    labels, answer, port = run(FedSC(), [rows[y < 2], rows[y > 0]], 3)
    assert ari(np.concatenate([y[y < 2], y[y > 0]]), labels) > 0.95
    assert answer.uplinks == port.traffic.uplinks == 2 * 24


def test_the_server_can_restore_rows_from_what_fedsc_uploads() -> None:
    rows, _ = blobs()
    atoms, s2, ridge = np.random.default_rng(1).normal(size=(9, 4)), 6.0, 1e-3
    codes = encode(atoms, rows, s2, ridge)  # what a site sends; the server has all that is used from here on
    squares = -2.0 * s2 * np.log((kernel(atoms, atoms, s2) + ridge * np.eye(9)) @ codes)
    # |x - z|^2 - |x - z0|^2 = |z|^2 - |z0|^2 - 2 x (z - z0): linear in x
    lengths = np.sum(atoms**2, axis=1)[:, None]
    right = (lengths[1:] - lengths[0] - squares[1:] + squares[0]) / 2.0
    restored = np.linalg.lstsq(atoms[1:] - atoms[0], right, rcond=None)[0].T
    np.testing.assert_allclose(restored, rows, atol=1e-6)


def test_too_many_rows_are_refused_in_a_sentence() -> None:
    with pytest.raises(BadSettings, match="there are 120 rows: more than max_rows, which is 100"):
        run(FedSC(max_rows=100), [blobs()[0]], 3)


def test_fedsc_refuses_sites_without_any_distance() -> None:
    with pytest.raises(BadRows, match="no site has two different rows"):
        run(FedSC(), [np.ones((4, 2)), np.zeros((3, 2))], 2)


# --- All of them, on rows of every kind ---


@every_method
@pytest.mark.parametrize("kind", [*KINDS, "all zero", "some zero"])
@pytest.mark.parametrize("sizes", [(40, 1, 25), (1, 1, 1), (7,)], ids=str)
def test_an_answer_or_a_named_error(method: Method, kind: str, sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    if kind in KINDS:
        rows = KINDS[kind](rng, (sum(sizes), 4))
    else:
        rows = rng.normal(size=(sum(sizes), 4)) * (kind == "some zero") * rng.integers(2, size=(sum(sizes), 1))
    try:
        labels, answer, port = run(method, np.split(rows, np.cumsum(sizes)[:-1]), 3)
    except GoldError:
        assert kind != "in general position" or sum(sizes) == 3
        return
    assert np.unique(labels).tolist() == [0, 1, 2]
    assert answer.centroids.shape == (3, 4)
    assert np.isfinite(answer.centroids).all()
    assert answer.uplinks == port.traffic.uplinks


@every_method
def test_more_clusters_than_rows_are_refused(method: Method) -> None:
    with pytest.raises(TooFewMicroClusters, match="9 clusters were asked for"):
        run(method, [np.eye(4), np.eye(4) + 0.5], 9)


# --- Scores on the paper's own splits, beside those of a prototype that shares no code with this ---


@needs_splits
@pytest.mark.parametrize(
    ("method", "name", "expected_purity", "expected_ari"),
    [
        (OSFSCSparse(), "EC", 0.538, 0.148),
        (OSFSCSparse(), "US", 0.418, 0.050),
        (OSFSCThreshold(), "EC", 0.533, 0.155),
        (OSFSCThreshold(), "US", 0.371, 0.018),
        (FedSC(), "EC", 0.754, 0.469),
        (FedSC(), "US", 0.500, 0.173),
    ],
)
def test_scores_are_those_of_the_prototype(
    method: Method, name: str, expected_purity: float, expected_ari: float
) -> None:
    split, n_clusters = load_split(name), load(name).n_clusters
    labels = [run(method, split.rows_per_site(), n_clusters, seed)[0] for seed in range(6)]
    truth = np.concatenate([split.y[split.site == site] for site in np.unique(split.site)])
    assert np.mean([purity(truth, one) for one in labels]) == pytest.approx(expected_purity, abs=0.04)
    assert np.mean([ari(truth, one) for one in labels]) == pytest.approx(expected_ari, abs=0.05)


def kernel_error(name: str, rbf_c: float, n_atoms: int | None, seed: int) -> float:
    """How far the server's kernel matrix is from that of all rows; `n_atoms` is for a number that no site knows."""
    sites, method = load_split(name).rows_per_site(), FedSC(rbf_c=rbf_c)
    port = LocalPort([method.site(str(i), rows, generator(seed, str(i))) for i, rows in enumerate(sites)])
    s2, n_features = method.find_bandwidth(port)
    if n_atoms is None:
        atoms = method.first_atoms(port, s2, n_features, generator(seed))
    else:
        atoms = generator(seed).standard_normal((8, n_atoms, n_features)).mean(axis=0)
    atoms = method.learn_atoms(port, atoms, s2)
    rows = np.vstack(sites)
    codes, true = encode(atoms, rows, s2, method.ridge), kernel(rows, rows, s2)
    return float(np.linalg.norm(codes.T @ kernel(atoms, atoms, s2) @ codes - true) / np.linalg.norm(true))


# rbf_c here makes s2 what it is for all rows together, as in the authors' code; so is the number of atoms.
@needs_splits
@pytest.mark.parametrize(("name", "rbf_c", "n_atoms", "expected"), [("EC", 1.155, 18, 0.034), ("US", 1.079, 24, 0.018)])
def test_with_the_authors_bandwidth_and_size_the_kernel_error_is_the_prototypes(
    name: str, rbf_c: float, n_atoms: int, expected: float
) -> None:
    errors = [kernel_error(name, rbf_c, n_atoms, seed) for seed in range(5)]
    assert np.mean(errors) == pytest.approx(expected, abs=0.01)


@needs_splits
def test_without_them_the_kernel_is_still_restored_to_a_few_percent() -> None:
    assert np.mean([kernel_error("EC", 1.0, None, seed) for seed in range(5)]) < 0.08
