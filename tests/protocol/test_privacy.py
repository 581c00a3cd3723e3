"""The privacy level `suppressed`, and the audit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldfc import OneShot, Summary, summarize
from goldfc._types import FloatArray, RowLabels
from goldfc.errors import BadRows
from goldfc.protocol.audit import WARNINGS, Change, Finding, Limits, audit
from goldfc.protocol.message import is_covariance
from goldfc.protocol.privacy import coarse_shape, round_to_multiple
from goldfc.protocol.rows import RowSource
from goldfc.protocol.terms import Column, Terms

WAY = OneShot(smallest=5, rows_each=8)
PLAIN = OneShot(most=1000, rows_each=1)


def with_loners(seed: int, n_features: int = 3) -> FloatArray:
    """Two crowds, and rows so far from all others that each would be a micro-cluster of its own."""
    rng = np.random.default_rng(seed)
    crowds = rng.normal(size=(300, n_features)) + 6.0 * rng.integers(0, 2, (300, 1))
    return np.vstack([crowds, rng.normal(size=(20, n_features)) * 60.0])


def is_a_row(centroids: FloatArray, rows: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """By looking at all pairs: the same up to rounding."""
    return np.array([np.isclose(rows, centroid, rtol=1e-12, atol=1e-12).all(axis=1).any() for centroid in centroids])


def summary_of(rows: FloatArray | RowSource, way: OneShot = WAY, terms: Terms | None = None) -> Summary:
    return summarize(rows, "a", way.task, terms=terms or Terms())[0]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n_features", [1, 2, 5, 10])
def test_no_centroid_is_a_row_and_no_micro_cluster_is_small(seed: int, n_features: int) -> None:
    rows = with_loners(seed, n_features)
    # Also where a site is asked for more micro-clusters than it can make of so many rows.
    for way in (WAY, OneShot(most=1000, rows_each=1, smallest=5)):
        summary, labels = summarize(rows, "a", way.task)
        assert not is_a_row(summary.centroids, rows).any()
        assert np.bincount(labels).min() >= 5
        if summary.mass is not None:
            assert summary.mass.min() >= 5
            assert (summary.mass % 5 == 0).all()


def test_without_suppression_the_same_rows_would_leave() -> None:
    rows = with_loners(0)
    assert is_a_row(summary_of(rows, PLAIN).centroids, rows).any()


@pytest.mark.parametrize("seed", range(3))
def test_members_are_hard_to_tell_from_others(seed: int) -> None:
    rows = with_loners(seed)
    report = audit(rows, *parts(rows), again=summary_of, required=5)
    assert report.membership_auc is not None
    assert report.membership_auc <= 0.65
    assert not report.failures


def parts(rows: FloatArray) -> tuple[Summary, RowLabels]:
    return summarize(rows, "a", WAY.task)


def test_integer_rows_are_stepped_aside_from() -> None:
    rows = np.random.default_rng(0).integers(0, 6, (200, 2)).astype(float)
    assert not is_a_row(summary_of(rows).centroids, rows).any()


@pytest.mark.parametrize("decimals", [0, 1, 2])
@pytest.mark.parametrize("n_features", [1, 2])
def test_where_rows_fill_the_grid_centroids_stay_where_they_are_but_on_no_row(decimals: int, n_features: int) -> None:
    terms = Terms(
        columns=tuple(Column(name=f"x{n}", step=10.0**-decimals, range=(0.0, 120.0)) for n in range(n_features))
    )
    rows = np.round(np.random.default_rng(0).uniform(0.0, 100.0, (3000, n_features)), decimals)
    summary, labels = summarize(rows, "a", WAY.task, terms=terms)
    assert not is_a_row(summary.centroids, rows).any()
    means = np.array([rows[labels == number].mean(axis=0) for number in range(len(summary.centroids))])
    assert np.abs(summary.centroids - means).max() <= 3.6 * 10.0**-decimals


def test_rows_that_are_all_alike_do_not_leave_as_a_micro_cluster() -> None:
    rng = np.random.default_rng(0)
    rows = np.vstack([np.full((50, 2), 7.0), rng.normal(size=(100, 2))])
    assert not (summary_of(rows).centroids == 7.0).all(axis=1).any()
    alike = np.full((50, 2), 7.0)
    report = audit(alike, *parts(alike), required=5)
    assert report.failures == (Finding("exact", "1 of 1 centroids are the same as a row"),)


def test_a_mean_that_is_one_rows_value_is_warned_of_by_column_and_row() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 2))
    assert audit(rows, *parts(rows), required=5).dominated == ()
    rows[17, 1] = 9999.0
    report = audit(rows, *parts(rows), required=5)
    assert report.dominated == (("1", 1, 17),)
    assert any("can be worked out from it: look at row 18" in warning.sentence for warning in report.warnings)


def test_yes_and_no_alone_never_leave_as_a_row() -> None:
    terms = Terms(columns=tuple(Column(name=name, kind="boolean") for name in "abcdef"))
    rng = np.random.default_rng(0)
    rare = np.column_stack([rng.random((5000, 5)) < 0.5, rng.random(5000) < 0.002]).astype(float)
    for rows in (rng.integers(0, 2, (120, 6)).astype(float), rare):
        centroids = summary_of(rows, terms=terms).centroids
        assert not is_a_row(centroids, rows).any()
        assert ((centroids >= 0.0) & (centroids <= 1.0)).all()


def test_everything_is_rounded() -> None:
    summary = summary_of(with_loners(0) * [1.0, 1000.0, 0.001])
    for numbers, decimals in zip(summary.centroids.T, (1, -2, 4), strict=True):
        np.testing.assert_allclose(numbers, np.round(numbers, decimals), rtol=0, atol=1e-9)
    assert summary.moments is not None
    assert summary.moments.count % 5 == 0


def test_an_agreed_step_is_the_grid() -> None:
    terms = Terms(columns=(Column(name="a", step=0.5), Column(name="b", step=2.0)))
    centroids = summary_of(with_loners(0, 2), terms=terms).centroids
    np.testing.assert_array_equal(centroids % [0.5, 2.0], 0.0)


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(
        BadRows, match="'a' has 9 rows, but at least 10 are needed when no micro-cluster may have fewer"
    ):
        summary_of(np.random.default_rng(0).normal(size=(9, 2)))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 60))
def test_a_rounded_shape_is_still_a_covariance(seed: int, n_features: int, n_rows: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.uniform(-6, 6, n_features)
    assert is_covariance(coarse_shape(rows.T @ rows / n_rows))


def test_sizes_are_rounded_to_the_nearest_multiple_and_never_to_none() -> None:
    np.testing.assert_array_equal(round_to_multiple(np.array([1, 5, 7, 8, 12, 13]), 5), [5, 5, 5, 10, 10, 15])


def test_the_audit_fails_what_is_plain() -> None:
    rows = with_loners(0)
    summary, labels = summarize(rows, "a", PLAIN.task)
    report = audit(rows, summary, labels, required=5)
    assert len(report.failures) == 2
    assert "centroids are the same as a row" in report.failures[0].sentence
    assert "the smallest micro-cluster has 1 rows, and 5 are required" in report.failures[1].sentence


def test_the_audit_refuses_a_small_difference_to_an_earlier_message() -> None:
    rows = with_loners(0)
    for change, fails in ((Change("2026-01-01", 1, 0), True), (Change("2026-01-01", 30, 2), False), (None, False)):
        report = audit(rows, *parts(rows), change=change, required=5)
        assert any("only 1 people came and 0 went" in failure.sentence for failure in report.failures) is fails
    one = Change("2026-01-01", 1, 0)
    assert not audit(rows, *parts(rows), change=one, required=5, limits=Limits(least_changed=0)).failures


def test_the_audit_refuses_more_messages_than_are_allowed() -> None:
    rows, same = with_loners(0), Change("2026-01-01", 0, 0, messages=3)
    for most, names in ((3, ["messages"]), (4, []), (None, [])):
        report = audit(rows, *parts(rows), change=same, required=5, limits=Limits(most_messages=most))
        assert [failure.name for failure in report.failures] == names


def test_every_warning_has_a_name_that_a_policy_can_accept() -> None:
    rows = with_loners(0)
    rows[:, 2] = rows[:, 0] > 3.0
    report = replace(
        audit(rows, *parts(rows), required=5),
        membership_auc=0.9,
        distance_ratio=0.1,
        dominated=(("x", 1, 2),),
        constant_columns=(("x", 1),),
    )
    assert tuple(warning.name for warning in report.warnings) == WARNINGS


def test_the_audit_names_columns_that_are_constant_inside_a_micro_cluster() -> None:
    rows = with_loners(0)
    rows[:, 2] = rows[:, 0] > 3.0
    terms = Terms(columns=tuple(Column(name=name) for name in ("x", "y", "ill")))
    summary, labels = summarize(rows, "a", WAY.task, terms=terms)
    report = audit(rows, summary, labels, required=5)
    assert [name for name, _ in report.constant_columns] == ["ill"]
    assert any("column 'ill' has one and the same value" in warning.sentence for warning in report.warnings)
