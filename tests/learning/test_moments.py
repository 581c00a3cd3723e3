"""Moments of parts make the moments of the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldfc.learning.moments import Moments, pool_moments


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_pooled_moments_are_those_of_all_rows_in_one_place(seed: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(size, 3)) * [1.0, 1e6, 1e-6] + rng.normal() * np.array([0.0, 1e8, 5.0]) for size in sizes]
    pooled, whole = pool_moments([Moments.of(part) for part in parts]), Moments.of(np.vstack(parts))
    assert pooled.count == whole.count
    np.testing.assert_allclose(pooled.mean, whole.mean, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(pooled.squares, whole.squares, rtol=1e-6, atol=1e-12)


def test_a_constant_column_has_the_size_of_its_values_as_its_scale() -> None:
    rows = np.column_stack([np.full(5, 0.1), np.zeros(5), np.arange(5.0)])
    np.testing.assert_allclose(Moments.of(rows).scale, [0.1, 1.0, np.sqrt(2.0)])


def test_a_share_of_the_rows_counts_less_and_changes_nothing_else() -> None:
    moments = Moments.of(np.arange(12.0).reshape(4, 3))
    half = moments.weighing(0.5)
    assert half.count == pytest.approx(2.0)
    np.testing.assert_allclose(half.variance, moments.variance)
