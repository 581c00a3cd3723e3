"""Screening in single precision changes nothing: labels and centroids are those without it, to the last digit."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from goldfc._types import FloatArray, IntArray
from goldfc.learning.paper import _epoch
from goldfc.learning.paper.competition import Learning, as_rows, compete, drop_singletons, start
from goldfc.learning.paper.importance import feature_importance

Make = Callable[[np.random.Generator, tuple[int, int]], FloatArray]

SPREADS: dict[str, Make] = {
    "in general position": lambda rng, shape: rng.normal(size=shape),
    "with a heavy tail": lambda rng, shape: rng.standard_t(2, size=shape),
    "in clusters": lambda rng, shape: 8.0 * rng.integers(3, size=(shape[0], 1)) + rng.normal(size=shape),
    "on a grid, so that ties abound": lambda rng, shape: rng.integers(4, size=shape).astype(float),
    "every row twice or more": lambda rng, shape: rng.normal(size=shape)[rng.integers(shape[0] // 2, size=shape[0])],
    "a hundred distinct rows": lambda rng, shape: rng.normal(size=(100, shape[1]))[rng.integers(100, size=shape[0])],
    "unequal scales": lambda rng, shape: rng.normal(size=shape) * 10.0 ** rng.integers(-6, 6, size=shape[1]),
    "constant columns": lambda rng, shape: rng.normal(size=shape) * rng.integers(2, size=shape[1]),
}
SCALES = [1.0, 1.0, 1e-3, 1e3, 1e-8, 1e8, 1e14, 1e-20, 1e-45, 1e-160, 1e-310, 1e16, 1e60, 1e98]
OFFSETS = [0.0, 0.0, 1.0, 1e6, -1e12]


@st.composite
def many_rows(draw: st.DrawFn) -> FloatArray:
    shape = draw(st.integers(250, 700)), draw(st.integers(1, 70))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    spread = SPREADS[draw(st.sampled_from(sorted(SPREADS)))](rng, shape)
    return np.ascontiguousarray(spread * draw(st.sampled_from(SCALES)) + draw(st.sampled_from(OFFSETS)))


@st.composite
def masses(draw: st.DrawFn, n: int) -> FloatArray:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["one", "whole", "tiny and large", "one row has nearly all"]))
    if kind == "tiny and large":
        return 10.0 ** rng.uniform(-9, 4, size=n)
    mass = rng.integers(1, 30, size=n).astype(float) if kind == "whole" else np.ones(n)
    if kind == "one row has nearly all":
        mass[rng.integers(n)] = 1e9
    return mass


def run(
    X: FloatArray, mass: FloatArray, learning: Learning, seed: int, *, moderate: bool
) -> tuple[IntArray, FloatArray, int]:
    """What `compete` does, with or without screening; labels, centroids, and how many rows were screened."""
    rows = as_rows(X, mass)._replace(moderate=moderate)
    n_candidates = learning.candidates(len(X))
    labels, clusters = start(X, mass, n_candidates, np.random.default_rng(seed))
    count, all_wins, screened = n_candidates, float(n_candidates), 0
    for number in range(1, learning.max_epochs + 1):
        moved, count, by_screen = _epoch.epoch(rows, labels, clusters, count, all_wins, learning.learning_rate)
        screened += by_screen
        all_wins += len(X)
        if moved == 0 or number == learning.max_epochs:
            break
        count = drop_singletons(clusters, count, labels)
        importance, means = feature_importance(X, mass, labels, clusters.size[:count])
        clusters.importance[:count], clusters.centroid[:count] = importance, means
    return labels, clusters.centroid[:count].copy(), screened


@settings(max_examples=150, deadline=None)
@given(X=many_rows(), rate=st.sampled_from([0.001, 0.05, 0.5]), seed=st.integers(0, 2**32), data=st.data())
def test_screening_changes_nothing(X: FloatArray, rate: float, seed: int, data: st.DataObject) -> None:
    mass = data.draw(masses(len(X)))
    mass = mass / mass.mean()
    learning = Learning(rate, initial_fraction=data.draw(st.sampled_from([0.5, 1.0])), max_epochs=3)
    labels, centroids, _ = run(X, mass, learning, seed, moderate=as_rows(X, mass).moderate)
    plain_labels, plain_centroids, screened = run(X, mass, learning, seed, moderate=False)
    assert screened == 0
    np.testing.assert_array_equal(labels, plain_labels)
    np.testing.assert_array_equal(centroids, plain_centroids)


@settings(max_examples=15, deadline=None)
@given(
    kind=st.sampled_from(sorted(SPREADS)),
    d=st.integers(1, 6),
    seed=st.integers(0, 2**32),
    offset=st.sampled_from(OFFSETS),
)
def test_screened_competitions_give_the_labels_of_their_naive_twin(kind: str, d: int, seed: int, offset: float) -> None:
    X = SPREADS[kind](np.random.default_rng(seed), (260, d)) + offset
    mass = np.random.default_rng(seed).choice([1.0, 1.0, 2.0, 4.0], size=len(X))
    learning = Learning(max_epochs=1)
    fast = compete(X, 130, learning, np.random.default_rng(seed), mass=mass)
    slow = naive.compete(X, 130, learning, np.random.default_rng(seed), mass)
    np.testing.assert_array_equal(fast.labels, naive.labels_of(slow, len(X)))


@pytest.mark.parametrize("shape", [(1000, 1), (1000, 10), (700, 70), (400, 300)])
def test_ordinary_rows_are_screened(shape: tuple[int, int]) -> None:
    X = SPREADS["in clusters"](np.random.default_rng(0), shape)
    _, _, screened = run(X, np.ones(len(X)), Learning(max_epochs=1), 0, moderate=as_rows(X, np.ones(len(X))).moderate)
    assert screened > 0.9 * len(X)


FALL_BACK = {
    "values too large for single precision": np.random.default_rng(0).normal(size=(400, 3)) * 1e16,
    "the largest values that are taken": np.random.default_rng(0).uniform(-1e100, 1e100, size=(400, 3)),
    "too many candidates, because all rows are the same": np.full((400, 3), 0.1),
    "too few clusters for it to pay": np.random.default_rng(0).normal(size=(_epoch.FEWEST_SCREENED, 3)),
}


@pytest.mark.parametrize("case", FALL_BACK)
def test_other_rows_are_compared_in_double_precision_only(case: str) -> None:
    X = FALL_BACK[case]
    mass = np.ones(len(X))
    labels, _, screened = run(X, mass, Learning(max_epochs=1), 0, moderate=as_rows(X, mass).moderate)
    assert screened < 0.1 * len(X)
    assert (labels >= 0).all()


def test_nobody_is_screened_while_one_row_has_most_of_the_mass() -> None:
    X = np.random.default_rng(0).normal(size=(400, 3))
    mass = np.ones(400)
    mass[0] = 1e6
    *_, screened = run(X, mass / mass.mean(), Learning(max_epochs=1), 0, moderate=True)
    assert screened == 0
