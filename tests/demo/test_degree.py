import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import jensenshannon
from sklearn.neighbors import KernelDensity

from goldfc._types import FloatArray
from goldfc.demo import degree
from goldfc.demo.degree import (
    BANDWIDTHS,
    choose_bandwidth,
    jensen_shannon,
    kullback_leibler,
    log_kernel_density,
    non_icd_degree,
)
from goldfc.errors import BadRows, BadSettings
from sentences import refused


def _gauss(seed: int, n_rows: int = 40, n_features: int = 3, shift: float = 0.0) -> FloatArray:
    return np.random.default_rng(seed).standard_normal((n_rows, n_features)) + shift


def _log(weights: FloatArray) -> FloatArray:
    return np.asarray(np.log(weights / weights.sum()))


# --- lambda ---


def test_identical_sites_have_degree_zero() -> None:
    assert non_icd_degree([_gauss(0), _gauss(0), _gauss(0)]) == pytest.approx(0.0, abs=1e-12)


def test_sites_far_apart_have_degree_one() -> None:
    assert non_icd_degree([_gauss(0), _gauss(1, shift=1e3), _gauss(2, shift=-1e3)]) == pytest.approx(1.0)


def test_the_degree_grows_as_sites_move_apart() -> None:
    degrees = [non_icd_degree([_gauss(0), _gauss(1, shift=shift)]) for shift in (0.0, 0.5, 1.0, 2.0, 4.0)]
    assert degrees == sorted(degrees)


def test_the_order_of_sites_does_not_change_the_degree() -> None:
    sites = [_gauss(seed, shift=seed / 2) for seed in range(4)]
    assert non_icd_degree(sites[::-1]) == pytest.approx(non_icd_degree(sites))


def test_the_order_of_rows_does_not_change_the_degree() -> None:
    sites = [_gauss(seed, shift=seed / 2) for seed in range(3)]
    assert non_icd_degree([rows[::-1] for rows in sites]) == pytest.approx(non_icd_degree(sites))


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_unit_of_measurement_does_not_change_the_degree(scale: float) -> None:
    sites = [_gauss(seed, shift=seed / 2) for seed in range(3)]
    assert non_icd_degree([scale * rows for rows in sites]) == pytest.approx(non_icd_degree(sites))


def test_the_degree_is_the_mean_over_pairs() -> None:
    same, other = _gauss(0), _gauss(1, shift=1e3)
    assert non_icd_degree([same, same, other]) == pytest.approx(2 / 3)


@given(
    st.lists(
        arrays(np.float64, st.tuples(st.integers(1, 6), st.just(2)), elements=st.floats(-1e6, 1e6)),
        min_size=2,
        max_size=4,
    )
)
def test_the_degree_is_in_the_unit_interval(sites: list[FloatArray]) -> None:
    assert 0.0 <= non_icd_degree(sites) <= 1.0


@pytest.mark.parametrize(
    "sites",
    [
        pytest.param([np.zeros((1, 2)), np.ones((1, 2))], id="one row each"),
        pytest.param([np.zeros((5, 2)), np.zeros((3, 2))], id="nothing varies"),
        pytest.param([np.full((5, 2), 0.1), np.full((3, 2), 0.1)], id="nothing varies, and 0.1 is no binary fraction"),
        pytest.param([np.repeat(_gauss(0), 3, axis=0), _gauss(1)], id="every row three times"),
        pytest.param([_gauss(0) * [1.0, 0.0, 1.0], _gauss(1) * [1.0, 0.0, 1.0]], id="a constant column"),
        pytest.param([_gauss(0), np.zeros((1, 3))], id="one row against many"),
        pytest.param([_gauss(0) * 1e-9, _gauss(1) + 1e9], id="scales far apart"),
    ],
)
def test_degenerate_sites_have_a_degree(sites: list[FloatArray]) -> None:
    assert 0.0 <= non_icd_degree(sites) <= 1.0


def test_memory_is_bounded_without_changing_the_degree(monkeypatch: pytest.MonkeyPatch) -> None:
    sites = [_gauss(seed, shift=seed / 2) for seed in range(3)]
    at_once = non_icd_degree(sites)
    monkeypatch.setattr(degree, "DISTANCES_AT_ONCE", 70)
    assert non_icd_degree(sites) == pytest.approx(at_once)


def test_one_site_alone_is_refused() -> None:
    with refused(BadSettings, "degree-of-few-sites"):
        non_icd_degree([_gauss(0)])


def test_a_site_without_rows_is_refused() -> None:
    with refused(BadRows, "site-without-rows"):
        non_icd_degree([_gauss(0), np.empty((0, 3))])


# --- Its parts ---


def test_the_density_is_scikit_learns() -> None:
    rows, at = _gauss(0), _gauss(1)
    expected = KernelDensity(bandwidth=0.7).fit(rows).score_samples(at)
    assert log_kernel_density(at, rows, 0.7) == pytest.approx(expected)


def test_the_density_integrates_to_one() -> None:
    grid = np.linspace(-20.0, 20.0, 4001)[:, None]
    assert np.trapezoid(np.exp(log_kernel_density(grid, _gauss(0, 10, 1), 0.5)), grid[:, 0]) == pytest.approx(1.0)


def test_the_density_is_finite_where_its_value_would_underflow() -> None:
    assert np.isfinite(log_kernel_density(np.full((1, 3), 1e4), _gauss(0), 0.01)).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_bandwidth_is_the_likeliest_when_each_row_is_left_out_in_turn(seed: int) -> None:
    rows = _gauss(seed, 15, 2)

    def likelihood(bandwidth: float) -> float:
        rest = [np.delete(rows, row, axis=0) for row in range(len(rows))]
        return float(sum(log_kernel_density(rows[[row]], rest[row], bandwidth)[0] for row in range(len(rows))))

    assert choose_bandwidth(rows) == max(BANDWIDTHS, key=likelihood)


def test_more_rows_need_less_smoothing() -> None:
    assert choose_bandwidth(_gauss(0, 1000)) < choose_bandwidth(_gauss(0, 10))


def test_jensen_shannon_is_scipys() -> None:
    p, q = np.random.default_rng(0).random((2, 20))
    assert jensen_shannon(_log(p), _log(q)) == pytest.approx(jensenshannon(p, q, base=2) ** 2)


def test_jensen_shannon_does_not_tell_its_sides_apart() -> None:
    p, q = _log(np.array([1.0, 2.0, 5.0])), _log(np.array([4.0, 3.0, 1.0]))
    assert jensen_shannon(p, q) == pytest.approx(jensen_shannon(q, p))


def test_kullback_leibler_of_a_sure_thing_from_a_coin_is_one_bit() -> None:
    sure, coin = np.log(np.array([1.0, 1e-300])), np.log(np.array([0.5, 0.5]))
    assert kullback_leibler(sure, coin) == pytest.approx(1.0)


def test_kullback_leibler_of_a_distribution_from_itself_is_zero() -> None:
    p = _log(np.array([1.0, 2.0, 5.0]))
    assert kullback_leibler(p, p) == 0.0
