"""How much privacy costs: zero-concentrated differential privacy, in fractions.

A release with discrete Gaussian noise of sigma on whole numbers that one row changes by at most D (Euclidean length) is
rho-zCDP with rho = D^2 / 2 sigma^2. Releases add up, also where later ones depend on earlier ones, and what is made of
them costs nothing (Bun and Steinke 2016; Canonne, Kamath and Steinke 2020). Only once, at the end, rho is told as eps
and delta.
"""

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import isqrt, log, log1p

# rho is looked for in multiples of 1 / FINE, with so many digits.
FINE, DIGITS, BISECTIONS = 10**9, 60, 80
# And eps in multiples of 1 / FINE_EPS, up to 1 024.
FINE_EPS = 2**10
# What 60 digits may be wrong by is far less than this.
SLACK = Decimal(10) ** -50


def rho_of(eps: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, rounded down, for which rho-zCDP implies (eps, delta)-differential privacy."""
    low, high = 0.0, float(eps)  # rho is never above eps
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        hidden = log_delta(middle, float(eps), best_order(middle, float(eps))) < log(delta)
        low, high = (middle, high) if hidden else (low, middle)
    rho = Fraction(int(low * FINE), FINE)
    while rho > 0 and delta_of(rho, eps) > delta:  # where floating-point numbers are too hopeful
        rho -= Fraction(1, FINE)
    return max(rho, Fraction(0))


def delta_of(rho: Fraction, eps: Fraction) -> Fraction:
    """The delta that rho-zCDP implies together with eps, rounded up (Canonne, Kamath and Steinke 2020, Corollary 13).

    exp((a - 1)(a rho - eps)) / (a - 1) (1 - 1 / a)^a for the order a > 1 that makes it least; any is true.
    """
    if not rho:
        return Fraction(0)
    a = Decimal(best_order(float(rho), float(eps)))
    with localcontext(Context(prec=DIGITS)):
        r, e = (Decimal(value.numerator) / value.denominator for value in (rho, eps))
        return Fraction(((a - 1) * (a * r - e) - (a - 1).ln() + a * (1 - 1 / a).ln()).exp() + SLACK)


def eps_of(rho: Fraction, delta: Fraction) -> Fraction:
    """An eps that rho-zCDP implies together with delta, rounded up; 1 024 stands for more."""
    low, high = Fraction(0), Fraction(2**20, FINE_EPS)
    while high - low > Fraction(1, FINE_EPS):
        middle = Fraction(int((low + high) / 2 * FINE_EPS), FINE_EPS)
        low, high = (low, middle) if delta_of(rho, middle) <= delta else (middle, high)
    return high


def best_order(rho: float, eps: float) -> float:
    """Where the logarithm of delta, which is convex in the order, is least."""
    low, high = 1.0 + 1e-9, (eps + 1.0) / rho + 2.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        slope = (2.0 * middle - 1.0) * rho - eps + log1p(-1.0 / middle)
        low, high = (middle, high) if slope < 0.0 else (low, middle)
    return (low + high) / 2.0


def log_delta(rho: float, eps: float, a: float) -> float:
    """The logarithm of that delta, nearly."""
    return (a - 1.0) * (a * rho - eps) - log(a - 1.0) + a * log1p(-1.0 / a)


def sigma_of(bound: int, rho: Fraction) -> int:
    """The least whole sigma that hides a change of length `bound` at a cost of no more than rho."""
    square = Fraction(bound * bound) / (2 * rho)
    least = isqrt(square.numerator // square.denominator)
    while least * least < square:
        least += 1
    return least


def cost_of(bound: int, sigma: int) -> Fraction:
    """What that sigma costs."""
    return Fraction(bound * bound, 2 * sigma * sigma)
