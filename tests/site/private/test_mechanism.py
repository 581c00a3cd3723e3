"""What becomes of single rows, against plain loops over whole numbers and fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from goldfc._types import FloatArray
from goldfc.learning.micro_clusters import MOST_FEATURES_FOR_CORRELATIONS
from goldfc.site.private.mechanism import FEATURES_AT_LEAST, cells_for, matrix, nearest_cell, products_of_pairs

MOST_ON_GRID = 2**13


def whole_numbers(rows: int) -> st.SearchStrategy[FloatArray]:
    return arrays(np.float64, (rows, 3), elements=st.integers(-MOST_ON_GRID, MOST_ON_GRID).map(float))


@given(whole_numbers(6), whole_numbers(4))
def test_the_nearest_cell_is_the_first_of_the_nearest(rows: FloatArray, centres: FloatArray) -> None:
    def squared(row: FloatArray, centre: FloatArray) -> int:
        return sum(int(one - other) ** 2 for one, other in zip(row, centre, strict=True))

    expected = [min(range(4), key=lambda cell: squared(row, centres[cell])) for row in rows]
    assert nearest_cell(rows, centres).tolist() == expected


@pytest.mark.parametrize("n_features", [1, 2, 7])
def test_products_of_pairs_are_the_matrix_and_as_long_as_the_squared_vector(n_features: int) -> None:
    vectors = np.random.default_rng(n_features).standard_normal((5, n_features))
    products = products_of_pairs(vectors)
    np.testing.assert_allclose(np.linalg.norm(products, axis=1), (vectors**2).sum(axis=1))
    for vector, own in zip(vectors, products, strict=True):
        np.testing.assert_allclose(matrix(own, n_features), np.outer(vector, vector))


def test_of_many_features_only_squares_are_added_up() -> None:
    vectors = np.random.default_rng(0).standard_normal((5, MOST_FEATURES_FOR_CORRELATIONS + 1))
    np.testing.assert_array_equal(products_of_pairs(vectors), vectors**2)


def test_few_features_make_no_more_cells_than_masses_can_be_told_of() -> None:
    counts = [cells_for(1_000, n_features, Fraction(1, 30)) for n_features in (1, FEATURES_AT_LEAST, 20)]
    assert counts[0] == counts[1] > counts[2]
