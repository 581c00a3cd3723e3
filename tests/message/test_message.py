"""What a summary may hold: every refusal is a sentence, and what honest sites send is never refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from goldfc import Summary, summarize
from goldfc._types import FloatArray
from goldfc.errors import BadMessage
from goldfc.learning.micro_clusters import MOST_FEATURES_FOR_CORRELATIONS
from goldfc.learning.moments import Moments
from goldfc.message.columns import Column, Terms
from goldfc.message.message import Message
from goldfc.message.summary import LARGEST_MASS, is_covariance
from goldfc.message.task import Task
from sentences import refused
from strategies import rows

MANY = MOST_FEATURES_FOR_CORRELATIONS + 1
MIXED = Terms(
    columns=(
        Column(name="ward", kind="category", categories=("a", "b", "c")),
        Column(name="age"),
        Column(name="ill", kind="boolean"),
        Column(name="weight"),
    )
)
WITHOUT_NUMBERS = Terms(columns=tuple(column for column in MIXED.columns if column.kind != "number"))


@pytest.mark.parametrize(
    ("mass", "code"),
    [
        ([1], "mass-form 2; it has the shape (1,)"),
        ([[1, 2]], "mass-form 2; it has the shape (1, 2)"),
        (3, "mass-form 2; it has the shape ()"),
        ([0, 1], "mass-not-whole 1 to 100000000"),
        ([-1, 1], "mass-not-whole 1 to 100000000"),
        ([1.5, 1], "mass-not-whole 1 to 100000000"),
        ([np.nan, 1], "mass-not-whole 1 to 100000000"),
        ([np.inf, 1], "mass-not-whole 1 to 100000000"),
        ([LARGEST_MASS + 1, 1], "mass-not-whole 1 to 100000000"),
        (["many", "few"], "not-numbers masses"),
    ],
)
def test_masses_that_no_rows_have_are_refused(mass: Any, code: str) -> None:
    with refused(BadMessage, code, "'a'"):
        Summary("a", np.ones((2, 2)), np.array(mass))
    message = Message("summary", {"centroids": np.ones((2, 2)), "mass": np.array(mass)}, {"site": "a"})
    with refused(BadMessage, code):
        Summary.from_message(message)


@pytest.mark.parametrize(
    ("shape", "code"),
    [
        (np.eye(3), "shape-form 2 x 2 numbers; it has 3 x 3"),
        (np.ones(2), "shape-form 2 x 2 numbers; it has 2"),
        (np.ones((1, 2, 2)), "shape-form 2 x 2 numbers; it has 1 x 2 x 2"),
        ([[np.nan, 0.0], [0.0, 1.0]], "shape-not-finite"),
        ([[np.inf, 0.0], [0.0, 1.0]], "shape-not-finite"),
        ([[1e201, 0.0], [0.0, 1.0]], "shape-not-finite"),
        ([[1.0, 0.5], [0.4, 1.0]], "shape-impossible"),
        ([[-1.0, 0.0], [0.0, 1.0]], "shape-impossible"),
        ([[1.0, 2.0], [2.0, 1.0]], "shape-impossible"),
        ([[0.0, 1.0], [1.0, 0.0]], "shape-impossible"),
        ([["wide", "thin"], ["thin", "wide"]], "not-numbers a shape"),
    ],
)
def test_shapes_that_no_rows_have_are_refused(shape: Any, code: str) -> None:
    with refused(BadMessage, code, "'a'"):
        Summary("a", np.ones((2, 2)), shape=np.array(shape))
    message = Message("summary", {"centroids": np.ones((2, 2)), "shape": np.array(shape)}, {"site": "a"})
    with refused(BadMessage, code):
        Summary.from_message(message)


@pytest.mark.parametrize(
    ("moments", "code"),
    [
        (Moments(5.0, np.ones(3), np.ones(2)), "moments-form"),
        (Moments(5.0, np.ones(2), np.array([1.0, -1.0])), "moments-not-finite"),
        (Moments(2.5, np.ones(2), np.ones(2)), "count-not-whole 2.5"),
        (Moments(0.0, np.ones(2), np.ones(2)), "count-not-whole 0"),
    ],
)
def test_moments_that_no_rows_have_are_refused(moments: Moments, code: str) -> None:
    with refused(BadMessage, code, "'a'"):
        Summary("a", np.ones((2, 2)), moments=moments)


@pytest.mark.parametrize("error", [[1.0], [1.0, -1.0], [1.0, np.inf]])
def test_errors_that_no_noise_has_are_refused(error: list[float]) -> None:
    with refused(BadMessage, "error-form", "'a'"):
        Summary("a", np.ones((2, 2)), error=np.array(error))


def test_a_task_with_settings_out_of_range_is_refused() -> None:
    told = Task().to_message()
    bad = Message(told.kind, facts={**told.facts, "level": {"name": "private", "eps": 1e9}})
    with refused(BadMessage, "message-invalid", "eps"):
        Task.from_message(bad)


def test_a_summary_is_shown_without_its_arrays() -> None:
    assert repr(Summary("a", np.ones((3, 2)))) == "<Summary of site 'a': 3 micro-clusters of 2 features>"


def test_with_many_features_a_shape_is_variances() -> None:
    centroids = np.zeros((2, MANY))
    np.testing.assert_array_equal(Summary("a", centroids, shape=np.ones(MANY)).shape, np.ones(MANY))
    with refused(BadMessage, "shape-form", f"{MANY} numbers; it has {MANY} x {MANY}"):
        Summary("a", centroids, shape=np.eye(MANY))
    with refused(BadMessage, "shape-impossible"):
        Summary("a", centroids, shape=np.full(MANY, -1.0))


def test_a_shape_is_that_of_the_numbers_alone() -> None:
    centroids = np.array([[0.5, 0.5, 0.0, 40.0, 1.0, 70.0], [0.0, 0.2, 0.8, 60.0, 0.0, 80.0]])
    shape = np.array([[4.0, 1.0], [1.0, 9.0]])
    np.testing.assert_array_equal(Summary("a", centroids, shape=shape, terms=MIXED).shape, shape)
    with refused(BadMessage, "shape-form", "2 x 2 numbers; it has 6 x 6"):
        Summary("a", centroids, shape=np.eye(6), terms=MIXED)
    np.testing.assert_array_equal(Summary("a", centroids, terms=MIXED).layout.numbers, [3, 5])


def test_where_there_are_no_numbers_there_is_no_shape() -> None:
    centroids = np.array([[0.5, 0.5, 0.0, 1.0], [0.0, 0.2, 0.8, 0.0]])
    assert Summary("a", centroids, terms=WITHOUT_NUMBERS).shape is None
    for shape in (np.eye(4), np.ones((1, 1)), np.empty((0, 0))):
        with refused(BadMessage, "shape-without-numbers", "'a'"):
            Summary("a", centroids, shape=shape, terms=WITHOUT_NUMBERS)
    rows = np.eye(4)[np.random.default_rng(0).integers(4, size=60)]
    summary, _ = summarize(rows, "a", Task(), terms=WITHOUT_NUMBERS)
    assert summary.shape is None
    assert "shape" not in summary.to_message().arrays


def test_columns_that_make_other_features_are_told_before_anything_else() -> None:
    summary = Summary("a", np.ones((2, 2)), np.array([1, 2]), np.eye(2))
    with refused(BadMessage, "features-not-columns", "of 2 features", "make 6"):
        replace(summary, terms=MIXED)


def test_whole_masses_are_taken_in_any_kind_of_number() -> None:
    for mass in (np.array([3, 4], dtype=np.int32), np.array([3.0, 4.0]), np.array([3, 4], dtype=np.uint8)):
        taken = Summary("a", np.ones((2, 2)), mass).mass  # type: ignore[arg-type]
        assert taken is not None
        assert taken.dtype == np.int64
        assert taken.tolist() == [3, 4]
    largest = Summary("a", np.ones((1, 1)), np.array([LARGEST_MASS])).mass
    assert largest is not None
    assert largest.tolist() == [LARGEST_MASS]


@pytest.mark.parametrize("scale", [1e-90, 1e-6, 1.0, 1e6, 1e90])
def test_a_covariance_is_one_in_all_units(scale: float) -> None:
    apart = np.random.default_rng(0).normal(size=(50, 3)) * np.array([1.0, scale, 1.0])
    honest = apart.T @ apart
    assert is_covariance(honest)
    assert is_covariance(np.zeros((3, 3)))
    dishonest = honest.copy()
    dishonest[0, 1] = dishonest[1, 0] = 1.1 * np.sqrt(honest[0, 0] * honest[1, 1])
    assert not is_covariance(dishonest)


def test_of_several_covariances_each_must_be_one() -> None:
    good = np.array([[2.0, 0.5], [0.5, 1.0]])
    assert is_covariance(np.stack([good, 1e90 * good, np.zeros((2, 2))]))
    for bad in ([[1.0, 2.0], [2.0, 1.0]], [[-1.0, 0.0], [0.0, 1.0]], [[1.0, 0.5], [0.4, 1.0]]):
        for place in range(3):
            several = np.stack([good, good, good])
            several[place] = bad
            assert not is_covariance(several)
    assert is_covariance(np.ones((5, 1, 1)))
    assert not is_covariance(-np.ones((5, 1, 1)))


@settings(max_examples=100, deadline=None)
@given(X=rows())
def test_what_an_honest_site_sends_is_never_refused(X: FloatArray) -> None:
    summary, _ = summarize(X, "a", Task())
    back = Summary.from_message(summary.to_message())
    assert back.mass is not None
    assert back.shape is not None
    assert back.mass.sum() == len(X)
    assert len(back.centroids) <= max(1, len(X) // 5)


@pytest.mark.parametrize("size", [1e-200, 1e-158, 1e-100, 1e-30, 1e30, 1e99])
def test_tiny_and_huge_rows_can_be_sent(size: float) -> None:
    for seed in range(10):
        X = np.random.default_rng(seed).normal(size=(seed + 2, 3)) * size
        summary, _ = summarize(X, "a", Task())
        assert summary.shape is not None
        assert np.isfinite(summary.shape).all()
