"""What hardly belongs in a column is named, and honest columns of any form are left alone."""

from collections.abc import Callable

import numpy as np
import pytest

from goldfc._types import FloatArray
from goldfc.learning.rows import InMemory
from goldfc.site.outliers import Outlier, outliers
from sites import Counted

Draw = Callable[[np.random.Generator, int], FloatArray]
HONEST: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(50.0, 10.0, n),
    "skewed": lambda rng, n: rng.lognormal(1.0, 1.2, n),
    "heavy tails": lambda rng, n: rng.standard_t(2.5, n),
    "exponential": lambda rng, n: rng.exponential(3.0, n),
    "counts": lambda rng, n: rng.poisson(2.0, n).astype(float),
    "rare": lambda rng, n: (rng.random(n) < 0.03) * rng.exponential(5.0, n),
    "two clusters": lambda rng, n: rng.choice([10.0, 90.0], n) + rng.normal(size=n),
    "yes or no": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "percentages": lambda rng, n: 100.0 * rng.beta(0.5, 0.5, n),
    "three decimals": lambda rng, n: np.round(rng.uniform(1.0, 200.0, n), 3),
    "thirds": lambda rng, n: np.round(rng.integers(3, 30, n) / 3.0, 3),
}


def found(column: FloatArray, name: str = "x") -> list[Outlier]:
    """Of one column beside an honest one."""
    other = np.random.default_rng(9).normal(size=len(column))
    return outliers(np.column_stack([other, column]), ["other", name])


@pytest.mark.parametrize("n_rows", [30, 300, 3000])
@pytest.mark.parametrize("name", HONEST)
def test_honest_columns_are_left_alone(name: str, n_rows: int) -> None:
    draws = [found(HONEST[name](np.random.default_rng(seed), n_rows)) for seed in range(10)]
    assert sum(any(one.kind != "constant" for one in alarms) for alarms in draws) <= 1


def test_a_constant_column_is_named() -> None:
    (one,) = found(np.full(40, 5.1))
    assert (one.column, one.kind, one.count, one.row, one.value) == ("x", "constant", 40, 0, 5.1)
    assert one.suspicion == "every row has 5.1"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_part_without_its_mark_of_thousands_is_counted_with_an_example(share: float) -> None:
    rng = np.random.default_rng(0)
    values = np.rint(rng.lognormal(8.0, 0.4, 400))
    struck = rng.random(400) < share
    (one,) = found(np.where(struck & (values >= 1000), values / 1000, values))
    assert one.kind == "thousands"
    assert "mark of thousands" in one.suspicion
    assert one.count in {int((struck & (values >= 1000)).sum()), int((~struck | (values < 1000)).sum())}


def test_a_mark_of_thousands_is_seen_where_it_is_read_as_people_write() -> None:
    values = np.rint(np.random.default_rng(0).lognormal(7.0, 0.9, 300))
    written = np.where(values >= 1000, values / 1000, values)  # 950 stays as it is
    (one,) = found(written)
    assert (one.kind, one.count) == ("thousands", int((values >= 1000).sum()))
    assert written[one.row] == one.value == written[values >= 1000][0]


def test_a_part_that_is_a_thousand_times_the_others_is_named() -> None:
    values = np.random.default_rng(0).lognormal(0.0, 0.3, 200)
    values[::20] *= 1000.0
    (one,) = found(values)
    assert (one.kind, one.count, one.row) == ("thousands", 10, 0)
    assert one.suspicion.startswith("about 1000 times what the others are")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_stray_value_is_named_on_either_side(sign: float) -> None:
    values = np.random.default_rng(0).normal(0.0, 1.0, 300)
    values[17] = sign * 500.0
    (one,) = found(values)
    assert (one.kind, one.count, one.row, one.value) == ("stray", 1, 17, sign * 500.0)
    assert "times as far out as the next" in one.suspicion


@pytest.mark.parametrize("code", [999.0, -99.0])
def test_a_code_for_a_missing_value_is_named_where_several_rows_have_it(code: float) -> None:
    values = np.random.default_rng(0).normal(37.0, 1.0, 300)
    values[[3, 40, 41, 99, 200]] = code
    (one,) = found(values)
    assert (one.kind, one.count, one.row, one.value) == ("code", 5, 3, code)


@pytest.mark.parametrize("count", [1, 2])
def test_a_negative_code_among_numbers_that_have_no_sign_is_named(count: int) -> None:
    values = np.random.default_rng(0).uniform(60.0, 200.0, 300)
    values[5 : 5 + count] = -9.0
    assert [(one.kind, one.count, one.row) for one in found(values)] == [("code", 2, 5)] * (count - 1)
    assert found(values - 100.0) == []


def test_a_part_that_counts_from_another_zero_is_named() -> None:
    values = np.random.default_rng(0).normal(36.8, 0.6, 300)
    values[100:120] += 273.15
    (one,) = found(values)
    assert (one.kind, one.count, one.row) == ("zero", 20, 100)
    assert "another zero" in one.suspicion


def test_missing_values_do_not_count() -> None:
    values = np.random.default_rng(0).normal(size=200)
    values[::3] = np.nan
    assert found(values) == []
    values[4] = 900.0
    assert found(values)[0].row == 4
    assert found(np.full(50, np.nan)) == []


def test_too_few_rows_say_nothing() -> None:
    assert found(np.array([1.0, 2.0, 3.0, 1e9])) == []


def test_in_a_large_table_nothing_is_missed_beside_the_sample_and_two_passes_are_enough() -> None:
    rows = np.random.default_rng(0).normal(size=(40_000, 2))
    rows[30_001, 1] = 1e4
    counted = Counted(rows)
    (one,) = outliers(counted, ["a", "b"])
    assert (one.column, one.count, one.row) == ("b", 1, 30_001)
    assert counted.rows_read <= 2 * len(rows)
    assert outliers(InMemory(rows[:30_000]), ["a", "b"]) == []
