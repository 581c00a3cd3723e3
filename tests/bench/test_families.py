"""Generated families are what their names say, and the same from the same seed."""

from collections import Counter

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from goldfc._types import FloatArray
from goldfc_bench.families import (
    BACKGROUND,
    FAMILIES,
    Family,
    Table,
    comparable,
    equal,
    geometric,
    members,
    sites_of,
    spread_centres,
)

BY_NAME = {family.name: family for family in FAMILIES}
SMALL = [family for family in FAMILIES if family.name not in ("384 features", "1024 features")]


def drawn(name: str, seed: int = 0) -> Table:
    return BY_NAME[name].draw(np.random.default_rng(seed))


def covariance_of(table: Table, cluster: int) -> FloatArray:
    return np.asarray(np.cov(table.X[table.y == cluster].T))


def test_there_are_as_many_families_as_were_asked_for() -> None:
    kinds = Counter(family.kind for family in FAMILIES)
    assert len(BY_NAME) == len(FAMILIES) == 30
    assert kinds["mixed"] == 10


@pytest.mark.parametrize("family", SMALL, ids=lambda family: family.name)
def test_a_draw_is_the_same_from_the_same_seed_and_another_from_another(family: Family) -> None:
    first, again, other = (family.draw(np.random.default_rng(seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)


@pytest.mark.parametrize("family", SMALL, ids=lambda family: family.name)
def test_tables_are_finite_shuffled_and_have_every_cluster_twice(family: Family) -> None:
    table = family.draw(np.random.default_rng(0))
    assert np.isfinite(table.X).all()
    counts = np.bincount(table.y[table.scored])
    assert counts.min() >= 2
    assert len(counts) == table.n_clusters
    assert (np.diff(table.y) < 0).any()
    assert (table.categorical != ()) == (family.kind == "mixed")
    codes = table.X[:, list(table.categorical)]
    np.testing.assert_array_equal(codes, np.rint(codes))


@pytest.mark.parametrize("name", ["384 features", "1024 features"])
def test_wide_tables_are_as_wide_as_they_say(name: str) -> None:
    assert drawn(name).X.shape[1] == int(name.split(maxsplit=1)[0])


def test_units_differ_by_nine_orders_of_magnitude() -> None:
    spread = drawn("mixed units").X.std(axis=0)
    assert spread.max() / spread.min() > 1e8


def test_a_tenth_is_background_and_does_not_count() -> None:
    table = drawn("10 % background")
    assert (table.y == BACKGROUND).mean() == pytest.approx(0.1, abs=0.001)
    assert BACKGROUND not in table.y[table.scored]
    assert table.n_clusters == 8


def test_clusters_are_stretched_alike_or_each_in_its_own_way() -> None:
    alike, own = (
        cosine(covariance_of(table, 0), covariance_of(table, 1))
        for table in (drawn("stretched alike"), drawn("own covariances"))
    )
    assert alike > 0.95
    assert own < 0.8


def cosine(one: FloatArray, other: FloatArray) -> float:
    return float((one * other).sum() / np.linalg.norm(one) / np.linalg.norm(other))


def test_masses_differ_as_they_say() -> None:
    counts = np.bincount(drawn("masses 1 to 90").y)
    assert counts.max() / counts.min() == pytest.approx(90.0, rel=0.2)


def test_densities_differ_by_more_than_a_hundred() -> None:
    areas = [np.linalg.det(covariance_of(drawn("own densities"), cluster)) for cluster in range(6)]
    assert np.sqrt(max(areas) / min(areas)) > 100.0


def test_centres_are_a_gap_from_the_nearest_other_in_the_mean() -> None:
    centres = spread_centres(9, 3, 4.0, np.random.default_rng(0))
    distances = cdist(centres, centres) + np.diag(np.full(9, np.inf))
    assert distances.min(axis=1).mean() == pytest.approx(4.0)


def test_no_cluster_is_too_small_to_be_one() -> None:
    assert np.bincount(members(20, geometric(4, 1000.0))).min() == 2
    np.testing.assert_array_equal(np.bincount(members(20, equal(4))), 5)


def test_comparable_columns_have_variance_one_or_are_levels() -> None:
    table = drawn("all informative")
    numbers = table.X.shape[1] - len(table.categorical)
    X = comparable(table)
    np.testing.assert_allclose(X[:, :numbers].std(axis=0), 1.0)
    np.testing.assert_array_equal(X[:, numbers:].sum(axis=1), len(table.categorical))


def test_sites_hold_rows_of_the_table_and_no_two_the_same() -> None:
    table = drawn("round")
    held = sites_of(table, 8, np.random.default_rng(0))
    assert len(held) == 8
    assert len({rows.tobytes() for rows in held}) == 8
    assert all(len(np.unique(rows)) == len(rows) and rows.max() < len(table.X) for rows in held)
    assert min(len(np.unique(table.y[rows])) for rows in held) < table.n_clusters
