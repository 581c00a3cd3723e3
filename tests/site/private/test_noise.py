"""Discrete Gaussian noise: exact, in whole numbers, and a budget that adds up."""

import ast
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from goldfc._types import FloatArray
from goldfc.message.levels import Private
from goldfc.site.private import budget, noise
from goldfc.site.private.budget import FINE, cost_of, delta_of, eps_of, rho_of, sigma_of
from goldfc.site.private.curator import UNIT
from goldfc.site.private.mechanism import FOR_MOMENTS, FOR_RINGS, FOR_SCATTER, FOR_STEPS, FOR_VOTES
from goldfc.site.private.noise import LARGEST_SIGMA, below, by_exponential, discrete_gaussian

Randomness = Callable[[int], bytes]


@pytest.fixture
def randomness() -> Randomness:
    """Of a test, so that it never fails now and then."""
    return np.random.default_rng(20_261_119).bytes


def probabilities(sigma: int) -> tuple[np.ndarray, FloatArray]:
    values = np.arange(-12 * sigma, 12 * sigma + 1)
    weights = np.exp(-(values**2) / (2.0 * sigma**2))
    return values, weights / weights.sum()


@pytest.mark.parametrize("sigma", [1, 2, 3, 10])
def test_draws_have_the_probabilities_of_the_discrete_gaussian(sigma: int, randomness: Randomness) -> None:
    drawn = discrete_gaussian(sigma, 200_000, randomness)
    values, wanted = probabilities(sigma)
    often = wanted * len(drawn) > 20
    seen = np.array([(drawn == value).sum() for value in values[often]])
    rest = len(drawn) - seen.sum()
    expected = wanted[often] * len(drawn)
    assert chisquare([*seen, rest], [*expected, len(drawn) - expected.sum()]).pvalue > 1e-3


@pytest.mark.parametrize("sigma", [1_000, 654_321, LARGEST_SIGMA])
def test_with_a_large_sigma_draws_are_as_good_as_gaussian(sigma: int, randomness: Randomness) -> None:
    drawn = discrete_gaussian(sigma, 20_000, randomness)
    assert kstest(drawn / sigma, "norm").pvalue > 1e-3
    low = drawn % 16  # the last bits are even
    assert chisquare(np.bincount(low, minlength=16)).pvalue > 1e-3


@pytest.mark.parametrize("sigma", [0, -1, LARGEST_SIGMA + 1])
def test_a_sigma_out_of_range_is_refused(sigma: int) -> None:
    with pytest.raises(ValueError, match="sigma must be"):
        discrete_gaussian(sigma, 1)


@pytest.mark.parametrize(("p", "q"), [(0, 1), (1, 1), (1, 3), (7, 8)])
def test_chances_are_exponentials(p: int, q: int, randomness: Randomness) -> None:
    happened = by_exponential(np.full(100_000, p), q, randomness).sum()
    chance = np.exp(-p / q)
    assert abs(happened - 100_000 * chance) <= 4.0 * np.sqrt(100_000 * chance * (1.0 - chance)) + 1e-9


@given(st.lists(st.integers(1, 2**62), min_size=1, max_size=30), st.integers(0, 2**32))
@settings(max_examples=50)
def test_numbers_are_below_their_limits(limits: list[int], seed: int) -> None:
    found = below(np.array(limits), np.random.default_rng(seed).bytes)
    assert ((found >= 0) & (found < np.array(limits))).all()


def test_numbers_below_a_limit_are_all_alike(randomness: Randomness) -> None:
    assert chisquare(np.bincount(below(np.full(60_000, 6), randomness), minlength=6)).pvalue > 1e-3


def test_no_floating_point_number_is_in_the_sampler() -> None:
    tree = ast.parse(Path(noise.__file__).read_text(encoding="utf-8"))
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert not [value for value in constants if isinstance(value, float)]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Div)]


def test_noise_is_the_operating_systems_and_never_the_same_twice() -> None:
    assert discrete_gaussian(1_000_000, 8).tolist() != discrete_gaussian(1_000_000, 8).tolist()


# --- the budget ---


@pytest.mark.parametrize(
    ("eps", "rho"), [(0.5, 0.0085055), (1, 0.0305565), (2, 0.1082563), (4, 0.3731439), (8, 1.2297145)]
)
def test_eps_and_delta_buy_so_much_rho(eps: float, rho: float) -> None:
    found = rho_of(Fraction(eps), Fraction(1, 100_000))
    assert float(found) == pytest.approx(rho, abs=1e-6)
    assert delta_of(found, Fraction(eps)) <= Fraction(1, 100_000) < delta_of(found + Fraction(9, FINE), Fraction(eps))


@given(st.fractions(Fraction(1, 20), 64), st.integers(3, 12))
@settings(max_examples=60, deadline=None)
def test_what_was_bought_is_never_more_than_was_promised(eps: Fraction, digits: int) -> None:
    delta = Fraction(1, 10**digits)
    rho = rho_of(eps, delta)
    assert rho > 0
    assert delta_of(rho, eps) <= delta
    assert eps_of(rho, delta) <= eps + Fraction(1, 500)


@given(st.integers(1, 2**16), st.fractions(Fraction(1, 10**6), 4))
@settings(max_examples=200)
def test_sigma_is_the_least_that_costs_no_more(bound: int, rho: Fraction) -> None:
    sigma = sigma_of(bound, rho)
    assert cost_of(bound, sigma) <= rho
    assert sigma == 1 or cost_of(bound, sigma - 1) > rho


def test_the_smallest_budget_that_can_be_agreed_on_is_within_reach_of_the_sampler() -> None:
    rho = rho_of(*Private(eps=0.05, delta=1e-12).budget)
    least = min(FOR_RINGS, FOR_MOMENTS, FOR_SCATTER, *FOR_VOTES, *FOR_STEPS)
    assert sigma_of(UNIT, rho * least) <= LARGEST_SIGMA


def test_the_shares_of_the_touches_are_the_whole_budget() -> None:
    assert sum((FOR_RINGS, FOR_MOMENTS, FOR_SCATTER, *FOR_VOTES, *FOR_STEPS)) == 1


def test_a_budget_is_made_of_fractions() -> None:
    assert isinstance(rho_of(Fraction(1), Fraction(1, 1000)), Fraction)
    assert isinstance(cost_of(3, 7), Fraction)
    assert budget.DIGITS >= 50


def test_nothing_buys_nothing() -> None:
    assert delta_of(Fraction(0), Fraction(1)) == 0


def test_where_floating_point_numbers_are_too_hopeful_no_more_is_bought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "FINE", 1_000)
    monkeypatch.setattr(budget, "log_delta", lambda *_: -np.inf)
    eps, delta = Fraction(1), Fraction(1, 1_000)
    assert 0 < delta_of(rho_of(eps, delta), eps) <= delta


def test_a_broken_source_of_randomness_ends_in_an_error(
    monkeypatch: pytest.MonkeyPatch, randomness: Randomness
) -> None:
    monkeypatch.setattr(noise, "LONGEST_SERIES", 1)
    with pytest.raises(ArithmeticError, match="a series does not end"):
        by_exponential(np.ones(3, dtype=np.int64), 2, randomness)
