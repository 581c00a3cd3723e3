"""Rows to try everything on: ordinary ones and every kind of degenerate ones."""

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from goldfc._types import FloatArray

KINDS: dict[str, Callable[[np.random.Generator, tuple[int, int]], FloatArray]] = {
    "in general position": lambda rng, shape: rng.normal(size=shape),
    "on a grid, so that ties abound": lambda rng, shape: rng.integers(3, size=shape).astype(float),
    "few distinct rows": lambda rng, shape: rng.normal(size=(3, shape[1]))[rng.integers(3, size=shape[0])],
    "constant columns": lambda rng, shape: rng.normal(size=shape) * rng.integers(2, size=shape[1]) + 0.1,
    "all rows equal": lambda rng, shape: np.full(shape, rng.normal()),
    "far apart": lambda rng, shape: rng.normal(size=shape) * 1e3 + rng.integers(2, size=(shape[0], 1)) * 1e6,
    "unequal scales": lambda rng, shape: rng.normal(size=shape) * 10.0 ** rng.integers(-4, 4, size=shape[1]),
}


@st.composite
def rows(draw: st.DrawFn, max_rows: int = 40) -> FloatArray:
    shape = draw(st.integers(1, max_rows)), draw(st.integers(1, 5))
    kind = draw(st.sampled_from(sorted(KINDS)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return np.ascontiguousarray(KINDS[kind](rng, shape))


seeds = st.integers(0, 2**32)
