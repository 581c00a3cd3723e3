"""Exact discrete Gaussian noise: whole numbers alone, and the operating system's randomness.

Canonne, Kamath and Steinke (2020): to draw y with a probability in proportion to exp(-y^2 / 2 sigma^2), draw it from
the discrete Laplace distribution of scale sigma, and accept it with probability exp(-(|y| - sigma)^2 / 2 sigma^2). All
that is decided by lot has a probability exp(-p / q), p and q whole and p <= q; nothing is rounded.

Here sigma is whole. |y| = u + sigma v with 0 <= u < sigma, so that with a = v - 1 and b = u, or for v = 0 with a = 0
and b = sigma - u, it is accepted with exp(-a^2 / 2) exp(-a b / sigma) exp(-b^2 / 2 sigma^2): no number outgrows 64
bits.
"""

import secrets
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from goldfc._types import IntArray

# The square of sigma, doubled and multiplied by the steps of a series, is to have less than 63 bits; the smallest eps
# and delta take a sigma of 1e8. A series of 200 steps has a probability of 1 in 200 factorial; longer ones are refused.
LARGEST_SIGMA, LONGEST_SERIES = 2**27, 200
# Gives so many random bytes.
Source = Callable[[int], bytes]
Decided = NDArray[np.bool_]


def discrete_gaussian(sigma: int, count: int, source: Source = secrets.token_bytes) -> IntArray:
    """Independent draws."""
    if not 1 <= sigma <= LARGEST_SIGMA:
        raise ValueError(f"sigma must be a whole number from 1 to {LARGEST_SIGMA}, got {sigma}")
    found, waiting = np.zeros(count, dtype=np.int64), np.arange(count)
    while len(waiting):
        drawn, accepted = propose(sigma, len(waiting), source)
        found[waiting[accepted]] = drawn[accepted]
        waiting = waiting[~accepted]
    return found


def propose(sigma: int, count: int, source: Source) -> tuple[IntArray, Decided]:
    """Draws from the discrete Laplace distribution, and which of them are accepted."""
    u = below(np.full(count, sigma), source)
    accepted = by_exponential(u, sigma, source)
    v = successes(count, source)
    inner = v == 0
    a, b = np.where(inner, 0, v - 1), np.where(inner, sigma - u, u)
    accepted &= by_exponential(b * b, 2 * sigma * sigma, source)
    accepted &= all_by_exponential(a, b, sigma, source)
    accepted &= all_by_exponential(a * a, np.ones_like(a), 2, source)
    negative = below(np.full(count, 2), source) == 1
    y = u + sigma * v
    accepted &= ~(negative & (y == 0))  # 0 has one sign
    return np.where(negative, -y, y), accepted


def by_exponential(p: IntArray, q: int, source: Source) -> Decided:
    """True with probability exp(-p / q), for every p from 0 to q.

    exp(-x) is the probability that the first of Bernoulli(x / 1), Bernoulli(x / 2), ... that fails has an odd number.
    """
    odd, waiting = np.ones(len(p), dtype=bool), np.arange(len(p))
    for step in range(1, LONGEST_SERIES):
        waiting = waiting[below(np.full(len(waiting), q * step), source) < p[waiting]]
        odd[waiting] ^= True
        if not len(waiting):
            return odd
    raise ArithmeticError("a series does not end: the source of randomness is broken")


def all_by_exponential(times: IntArray, p: IntArray, q: int, source: Source) -> Decided:
    """True with probability exp(-p / q) to the power of `times`."""
    left, so_far = times.copy(), np.ones(len(times), dtype=bool)
    while len(waiting := np.flatnonzero(so_far & (left > 0))):
        so_far[waiting] = by_exponential(p[waiting], q, source)
        left[waiting] -= 1
    return so_far


def successes(count: int, source: Source) -> IntArray:
    """How often in a row something of probability exp(-1) happens."""
    found, waiting = np.zeros(count, dtype=np.int64), np.arange(count)
    while len(waiting := waiting[by_exponential(np.ones(len(waiting), dtype=np.int64), 1, source)]):
        found[waiting] += 1
    return found


def below(limits: IntArray, source: Source) -> IntArray:
    """A whole number from 0 on below every limit, all alike: as many random bits as it takes, until they are below."""
    mask = (limits - 1).astype(np.uint64)
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    found, waiting = np.zeros(len(limits), dtype=np.int64), np.arange(len(limits))
    while len(waiting):
        drawn = (np.frombuffer(source(8 * len(waiting)), dtype="<u8") & mask[waiting]).astype(np.int64)
        fits = drawn < limits[waiting]
        found[waiting[fits]] = drawn[fits]
        waiting = waiting[~fits]
    return found
