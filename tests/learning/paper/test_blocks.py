"""Block learning: what must hold however many blocks there are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldfc._types import FloatArray
from goldfc.learning.k_means import nearest
from goldfc.learning.micro_clusters import means_of
from goldfc.learning.paper import blocks
from goldfc.learning.paper.blocks import BLOCK, Weighted, learn_in_blocks
from goldfc.learning.paper.competition import Learning, compete
from strategies import rows, seeds


def learned(X: FloatArray, seed: int, learning: Learning | None = None) -> Weighted:
    parts = (X[start : start + blocks.BLOCK] for start in range(0, len(X), blocks.BLOCK))
    return learn_in_blocks(parts, learning or Learning(), np.random.default_rng(seed))


@settings(max_examples=100, deadline=None)
@given(X=rows(max_rows=60), seed=seeds, block=st.integers(1, 20), fraction=st.sampled_from([0.1, 0.5, 1.0]))
def test_no_mass_is_lost_and_the_mean_of_all_stays_where_it_is(
    X: FloatArray, seed: int, block: int, fraction: float
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", block)
        micro = learned(X, seed, Learning(initial_fraction=fraction))
    assert micro.mass.min() >= 1.0
    assert micro.mass.sum() == pytest.approx(len(X))
    scale = max(1.0, float(np.abs(X).max()))
    np.testing.assert_allclose(
        np.average(micro.centroids, axis=0, weights=micro.mass), X.mean(axis=0), rtol=1e-6, atol=1e-9 * scale
    )


def test_rounds_of_merging_end_with_few_micro_clusters_whatever_the_number_of_blocks() -> None:
    micro = learned(np.random.default_rng(0).normal(size=(15 * BLOCK, 2)), 0)
    assert len(micro) < BLOCK
    assert micro.mass.sum() == 15 * BLOCK


def test_a_single_block_is_learned_and_not_merged() -> None:
    X = np.random.default_rng(0).normal(size=(500, 3))
    micro = learned(X, 0)
    few = Learning(initial_fraction=blocks.BLOCK_CANDIDATES, max_epochs=blocks.BLOCK_EPOCHS)
    rng = np.random.default_rng(0)
    rng.spawn(1)  # the merger's
    alone = compete(X, few.candidates(500), few, rng.spawn(1)[0])
    np.testing.assert_array_equal(micro.centroids, alone.centroids)


def test_clusters_that_are_apart_stay_apart() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(5, size=3 * BLOCK)
    X = rng.normal(size=(3 * BLOCK, 4)) + 20.0 * np.eye(5, 4)[y] - 20.0 * (y == 4)[:, None]
    labels = nearest(X, learned(X, 0).centroids)
    for micro_cluster in np.unique(labels):
        assert len(set(y[labels == micro_cluster])) == 1


def test_only_how_masses_compare_counts() -> None:
    rng = np.random.default_rng(2)
    X, mass = rng.normal(size=(200, 3)), rng.integers(1, 50, 200).astype(np.float64)
    one = compete(X, 80, Learning(), np.random.default_rng(0), mass=mass)
    other = compete(X, 80, Learning(), np.random.default_rng(0), mass=64.0 * mass)
    np.testing.assert_array_equal(one.labels, other.labels)
    assert not np.array_equal(one.labels, compete(X, 80, Learning(), np.random.default_rng(0)).labels)


def test_merged_centroids_are_means_by_mass() -> None:
    rng = np.random.default_rng(3)
    micro, into = Weighted(rng.normal(size=(30, 2)), rng.integers(1, 9, 30).astype(np.float64)), np.arange(30) % 7
    merged = micro.merged(into)
    np.testing.assert_allclose(merged.mass, np.bincount(into, weights=micro.mass))
    np.testing.assert_allclose(merged.centroids, means_of(micro.centroids, into, micro.mass))
