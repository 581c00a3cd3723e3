"""From rows to micro-clusters: in any units, and with categories that count as what they are."""

import numpy as np
import pytest

from goldfc import summarize
from goldfc._types import FloatArray
from goldfc.message.columns import Column, Terms
from goldfc.message.levels import with_fewest
from goldfc.message.task import Scaling, Task
from goldfc.site.learn import DIFFERENT_LEVELS, FEWEST_NUMBERS, unit_of
from goldfc.site.privacy import Rules
from goldfc.site.rows import Rows, checked
from goldfc.site.summarize import tell

WARD = Column(name="ward", kind="category", categories=("a", "b", "c"))
SEX = Column(name="sex", kind="category", categories=("f", "m"))
ILL = Column(name="ill", kind="boolean")
AGE, WEIGHT = Column(name="age", range=(0.0, 120.0)), Column(name="weight", range=(0.0, 200.0))
MIXED = Terms(columns=(WARD, AGE, ILL, WEIGHT, SEX))


def mixed(n_rows: int, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    ward, sex, ill = rng.integers(3, size=n_rows), rng.integers(2, size=n_rows), rng.integers(2, size=n_rows)
    numbers = rng.normal(size=(n_rows, 2)) * [15.0, 12.0] + [60.0, 75.0]
    return np.column_stack([np.eye(3)[ward], numbers[:, 0], ill, numbers[:, 1], np.eye(2)[sex]])


@pytest.mark.parametrize("scaling", ["pooled", "ranges", "given"])
def test_rows_with_different_levels_are_as_far_apart_as_numbers_by_a_deviation(scaling: Scaling) -> None:
    rows = mixed(3000)
    unit = unit_of(Rows.of(rows).moments, scaling, MIXED)
    usual = np.sqrt(unit(rows)[:, [3, 5]].var(axis=0).mean())
    one = np.array([1.0, 0.0, 0.0, 60.0, 0.0, 75.0, 1.0, 0.0])
    other_ward = np.array([0.0, 0.0, 1.0, 60.0, 0.0, 75.0, 1.0, 0.0])
    other_sex = np.array([1.0, 0.0, 0.0, 60.0, 0.0, 75.0, 0.0, 1.0])
    ill = np.array([1.0, 0.0, 0.0, 60.0, 1.0, 75.0, 1.0, 0.0])
    for other in (other_ward, other_sex, ill):
        apart = np.linalg.norm(unit(one[None]) - unit(other[None]))
        np.testing.assert_allclose(apart, DIFFERENT_LEVELS * usual, rtol=1e-9)


def test_many_categories_do_not_outweigh_the_numbers() -> None:
    rng = np.random.default_rng(0)
    columns = (AGE, *(Column(name=f"q{number}", kind="boolean") for number in range(40)))
    rows = np.column_stack([rng.normal(size=500), rng.integers(2, size=(500, 40))]).astype(float)
    spread = unit_of(Rows.of(rows).moments, "pooled", Terms(columns=columns))(rows).var(axis=0)
    np.testing.assert_allclose(spread[0], 1.0)
    np.testing.assert_allclose(spread[1:].sum(), FEWEST_NUMBERS)


def test_a_category_that_all_rows_share_does_no_harm() -> None:
    rows = mixed(60)
    rows[:, [0, 1, 2, 4, 6, 7]] = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]
    unit = unit_of(Rows.of(rows).moments, "pooled", MIXED)
    assert np.isfinite(unit(rows)).all()
    summary, _ = summarize(rows, "a", Task(), terms=MIXED)
    np.testing.assert_array_equal(summary.centroids[:, [0, 4]], 1.0)
    constant = np.zeros((60, 8))
    assert len(summarize(constant, "a", Task(), terms=MIXED)[0].centroids) == 1


@pytest.mark.parametrize("units", [(1000.0, 1000.0), (1e9, 1e-6)])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_units_and_origins_do_not_change_the_micro_clusters(units: tuple[float, float], shift: float) -> None:
    rows = mixed(500)
    moved = rows.copy()
    moved[:, [3, 5]] = (moved[:, [3, 5]] + shift) * units
    one = summarize(rows, "a", Task(), terms=MIXED)[1]
    other = summarize(moved, "a", Task(), terms=MIXED)[1]
    np.testing.assert_array_equal(one, other)


def test_the_shape_is_that_of_the_numbers() -> None:
    rows = mixed(400)
    summary, labels = summarize(rows, "a", Task(), terms=MIXED)
    apart = (rows - summary.centroids[labels])[:, [3, 5]]
    assert summary.shape is not None
    np.testing.assert_allclose(summary.shape, apart.T @ apart / 400, atol=1e-12)
    yes_or_no = Terms(columns=(Column(name="ill", kind="boolean"),))
    assert summarize(rows[:, 4:5].copy(), "a", Task(), terms=yes_or_no)[0].shape is None


def test_of_suppressed_mixed_tables_no_micro_cluster_is_small_and_shares_are_rounded() -> None:
    rows = mixed(500)
    told = tell(checked(rows, "a"), "a", Task(level=with_fewest(5), rows_each=8), Rules(MIXED))
    labels, those = told.found.labels, [0, 1, 2, 4, 6, 7]
    shares, steps, sizes = told.summary.centroids[:, those], told.grid[:, those], np.bincount(labels)
    assert sizes.min() >= 5
    # With every row the share of a level moves by 1 / size.
    assert (steps >= 2.0 / sizes[:, None] - 1e-12).all()
    # Half a step aside are only those that would have been a row.
    np.testing.assert_allclose(shares / steps * 2.0, np.round(shares / steps * 2.0), atol=1e-6)
    assert ((shares >= 0.0) & (shares <= 1.0)).all()
    means = np.array([rows[labels == number].mean(axis=0) for number in range(len(shares))])
    # The last step below 1 stands for all above it, too.
    assert (np.abs(shares - means[:, those]) <= steps).all()
