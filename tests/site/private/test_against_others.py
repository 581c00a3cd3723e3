"""Noise and accounting against others: OpenDP's where it is installed, and an audit in one run with planted faults."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chi2_contingency, ks_2samp

from goldfc.learning.rows import InMemory
from goldfc.site.private import curator as curators
from goldfc.site.private.budget import delta_of, eps_of, rho_of
from goldfc.site.private.curator import Curator
from goldfc.site.private.noise import discrete_gaussian

CANARIES, DELTA, RHO = 1_000, Fraction(1, 100_000), Fraction(1, 200)
# What OpenDP 0.16.0 says delta is, by eps, for the rho that is spent.
OPENDPS = {
    0.1: 9.999886519702773e-06,
    0.5: 9.999994219875472e-06,
    1: 9.99999940838295e-06,
    2: 9.999999225525319e-06,
    8: 9.999999915213787e-06,
}


@pytest.mark.parametrize(("eps", "theirs"), OPENDPS.items())
def test_accounting_is_what_opendp_said(eps: float, theirs: float) -> None:
    assert float(delta_of(rho_of(Fraction(str(eps)), DELTA), Fraction(str(eps)))) == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize("eps", OPENDPS)
def test_accounting_is_opendps(eps: float) -> None:
    dp = pytest.importorskip("opendp.prelude", reason="OpenDP (276 MB) is not installed: pip install opendp")
    dp.enable_features("contrib")
    rho = rho_of(Fraction(str(eps)), DELTA)
    gaussian = dp.m.make_gaussian(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=(2 * float(rho)) ** -0.5)
    theirs = dp.c.make_zCDP_to_approxDP(gaussian).map(1).delta(eps)
    assert float(delta_of(rho, Fraction(str(eps)))) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("sigma", [3, 1_000])
def test_draws_are_like_opendps(sigma: int) -> None:
    dp = pytest.importorskip("opendp.prelude", reason="OpenDP (276 MB) is not installed: pip install opendp")
    dp.enable_features("contrib")
    vector = dp.vector_domain(dp.atom_domain(T=int), size=50_000)
    theirs = np.array(dp.m.make_gaussian(vector, dp.l2_distance(T=int), scale=float(sigma))([0] * 50_000))
    ours = discrete_gaussian(sigma, 50_000)
    assert ks_2samp(ours, theirs).pvalue > 1e-4
    values = np.arange(-2 * sigma, 2 * sigma + 1, max(1, sigma // 3))
    assert chi2_contingency([np.histogram(drawn, values)[0] for drawn in (ours, theirs)]).pvalue > 1e-4


def lower_bound(right: int, count: int) -> float:
    """The largest eps that so many right guesses speak against (Steinke, Nasr and Jagielski 2023), 1 in 1 000 wrong."""
    tried = np.linspace(0.0, 6.0, 601)
    refuted = binom.sf(right - 1, count, 1.0 / (1.0 + np.exp(-tried))) + 2.0 * count * float(DELTA) < 1e-3 + 0.02
    return float(tried[refuted].max(initial=0.0))


def audited(seed: int) -> float:
    """Canaries are in or not, by lot; whoever sees the release guesses which."""
    rng = np.random.default_rng(seed)
    inside = rng.random(CANARIES) < 0.5
    rows = np.flatnonzero(inside).astype(np.float64)[:, None]
    curator = Curator(InMemory(rows), randomness=rng.bytes)
    touched = curator.release(
        "canaries",
        lambda own: (own[:, 0].astype(np.int64), np.ones((len(own), 1))),
        (CANARIES, 1),
        1.0,
        RHO,
    )
    return lower_bound(int(((touched[:, 0] > 0.5) == inside).sum()), CANARIES)


def test_an_audit_in_one_run_stays_below_what_is_claimed() -> None:
    claimed = float(eps_of(RHO, DELTA))
    assert max(audited(seed) for seed in range(100)) < claimed


def test_it_catches_a_tenth_of_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curators, "sigma_of", lambda bound, rho: max(1, int((bound * bound / 2 / rho) ** 0.5 / 10)))
    assert min(audited(seed) for seed in range(10)) > float(eps_of(RHO, DELTA))


def test_it_catches_noise_from_a_generator_that_the_attacker_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    def known(sigma: int, count: int, _: object) -> np.ndarray:
        return discrete_gaussian(sigma, count, np.random.default_rng(7).bytes)

    monkeypatch.setattr(curators, "discrete_gaussian", known)
    rows = InMemory(np.arange(3.0)[:, None])
    ask = (lambda own: (own[:, 0].astype(np.int64), np.ones((len(own), 1))), (4, 1), 1.0, RHO)
    one, other = (Curator(rows).release("canaries", *ask) for _ in range(2))
    assert (one == other).all()  # two messages of the same rows never are: the next test
    monkeypatch.undo()
    one, other = (Curator(rows).release("canaries", *ask) for _ in range(2))
    assert (one != other).any()
