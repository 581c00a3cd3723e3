"""The privacy level `suppressed`, and the audit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldfc import OneShot, Summary, summarize
from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.errors import BadRows
from goldfc.protocol.audit import USUAL, WARNINGS, Audit, Change, Finding, Limits, audit
from goldfc.protocol.client import alike
from goldfc.protocol.membership import Guess
from goldfc.protocol.message import is_covariance
from goldfc.protocol.privacy import coarse_counts, coarse_shape
from goldfc.protocol.rows import RowSource
from goldfc.protocol.terms import UNNAMED, Column, Terms

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


def audited(
    rows: FloatArray,
    way: OneShot = WAY,
    *,
    terms: Terms = UNNAMED,
    change: Change | None = None,
    limits: Limits = USUAL,
) -> Audit:
    """What the audit finds in what a site would send; five rows are required, whatever was asked for."""
    summary, labels = summarize(rows, "a", way.task, terms=terms)
    return audit(
        rows,
        summary,
        labels,
        again=lambda some, people: alike(some, summary, way.task, people),
        change=change,
        required=5,
        limits=limits,
    )


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
    apart = np.abs(summary.centroids - means_by(labels, rows)) / grid_by_hand(rows, labels, terms)
    # Half a step by rounding, and at most one more in one feature.
    assert apart.max() <= 1.5 + 1e-9
    assert (apart > 0.5 + 1e-9).sum(axis=1).max() <= 1


def test_rows_that_are_all_alike_do_not_leave_as_a_micro_cluster() -> None:
    rng = np.random.default_rng(0)
    rows = np.vstack([np.full((50, 2), 7.0), rng.normal(size=(100, 2))])
    assert not (summary_of(rows).centroids == 7.0).all(axis=1).any()
    same = np.full((50, 2), 7.0)
    assert audited(same).failures == (Finding("exact", "1 of 1 centroids are the same as a row"),)


def test_a_mean_that_is_one_rows_value_is_warned_of_by_column_and_row() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 2))
    assert audited(rows).dominated == ()
    rows[17, 1] = 9999.0
    report = audited(rows)
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


def means_by(labels: RowLabels, rows: FloatArray) -> FloatArray:
    return np.array([rows[labels == number].mean(axis=0) for number in range(labels.max() + 1)])


def grid_by_hand(
    rows: FloatArray, labels: RowLabels, terms: Terms = UNNAMED, people: IntArray | None = None
) -> FloatArray:
    """The steps of all micro-clusters by the letter: 2 max(SD, grain) / people, two digits, rounded up."""
    whose = np.arange(len(rows)) if people is None else people
    steps = np.empty((labels.max() + 1, rows.shape[1]))
    for number, feature in np.ndindex(*steps.shape):
        values = np.unique(rows[:, feature])
        grain = np.diff(values).min() if len(values) > 1 else 0.0
        count = len(np.unique(whose[labels == number]))
        step = 2.0 * max(float(rows[:, feature].std()), float(grain)) / count
        step = max(step, (terms.features[feature].step or 0.0) if terms.features else 0.0)
        step = max(step, 1e-12)
        unit = 10.0 ** (np.floor(np.log10(step)) - 1)
        steps[number, feature] = np.ceil(step / unit - 1e-9) * unit
    return steps


def is_multiple(values: FloatArray, steps: FloatArray) -> bool:
    return bool((np.abs(values / steps - np.round(values / steps)) < 1e-6).all())


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n_rows=st.integers(40, 400), n_features=st.integers(2, 6), units=st.integers(0, 6))
def test_every_told_mean_is_a_multiple_of_its_step(seed: int, n_rows: int, n_features: int, units: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.uniform(-units, units, n_features) + rng.normal()
    summary, labels = summarize(rows, "a", WAY.task)
    steps = grid_by_hand(rows, labels)
    assert is_multiple(summary.centroids, steps)
    assert (np.abs(summary.centroids - means_by(labels, rows)) <= 0.5001 * steps).all()
    everybody = grid_by_hand(rows, np.zeros(n_rows, dtype=np.int64))[0]
    if summary.moments is not None:
        assert is_multiple(summary.moments.mean, everybody)
        assert summary.moments.count % 5 == 0
        apart = np.abs(summary.moments.variance - rows.var(axis=0))
        assert (apart <= 0.56 * rows.var(axis=0) * min(1.0, 4.0 / n_rows)).all()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n_rows=st.integers(6, 300), yes=st.floats(0.01, 0.99))
def test_one_row_more_or_less_moves_a_mean_by_less_than_about_its_step(seed: int, n_rows: int, yes: float) -> None:
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.normal(size=n_rows), rng.uniform(size=n_rows), rng.random(n_rows) < yes])
    together = np.zeros(n_rows, dtype=np.int64)
    step = grid_by_hand(rows, together)[0]
    without = (rows.sum(axis=0) - rows) / (n_rows - 1)
    moved = np.abs(without - rows.mean(axis=0))
    # A row that is not further out than two deviations; yes or no, whichever is rare.
    usual = np.abs(rows - rows.mean(axis=0)) <= 2.0 * rows.std(axis=0)
    usual[:, 2] = True
    assert (moved <= np.where(usual, step * n_rows / (n_rows - 1), np.inf)).all()
    summary, _ = summarize(rows[:, :1], "a", OneShot(smallest=5, most=1).task) if n_rows >= 10 else (None, None)
    if summary is not None:
        less, _ = summarize(rows[1:, :1], "a", OneShot(smallest=5, most=1).task) if n_rows >= 11 else (summary, None)
        if usual[0, 0]:
            assert abs(summary.centroids - less.centroids).max() <= 2.3 * step[0]


def test_an_agreed_step_is_the_finest() -> None:
    terms = Terms(columns=(Column(name="a", step=0.5), Column(name="b", step=2000.0)))
    rows = with_loners(0, 2)
    summary, labels = summarize(rows, "a", WAY.task, terms=terms)
    steps = grid_by_hand(rows, labels, terms)
    assert is_multiple(summary.centroids, steps)
    assert steps[:, 0].min() >= 0.5
    np.testing.assert_array_equal(steps[:, 1], 2000.0)
    assert summary.moments is not None
    assert summary.moments.mean[1] % 2000.0 == 0.0


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(
        BadRows, match=r"'a' has 9 rows .or people., and with so many columns at least 10 are needed so that nobody"
    ):
        summary_of(np.random.default_rng(0).normal(size=(9, 2)))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 60), st.integers(1, 10**6))
def test_a_rounded_shape_is_still_a_covariance(seed: int, n_features: int, n_rows: int, n_people: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.uniform(-6, 6, n_features)
    shape = rows.T @ rows / n_rows
    coarse = coarse_shape(shape, n_people)
    assert is_covariance(coarse)
    # Variances are in steps of their own.
    step = np.diagonal(shape) * min(1.0, 4.0 / n_people)
    assert (np.abs(np.diagonal(coarse) - np.diagonal(shape)) <= 0.56 * step).all()


def test_sizes_are_rounded_to_the_nearest_multiple_and_never_to_fewer_than_the_smallest() -> None:
    np.testing.assert_array_equal(coarse_counts(np.array([1, 5, 7, 8, 12, 13])), [5, 5, 5, 10, 10, 15])
    np.testing.assert_array_equal(coarse_counts(np.array([26, 27, 28, 33]), 26), [30, 30, 30, 35])


def test_the_audit_fails_what_is_plain() -> None:
    rows = with_loners(0)
    failures = audited(rows, PLAIN).failures
    assert [failure.name for failure in failures] == ["membership", "exact", "small"]
    assert "centroids are the same as a row" in failures[1].sentence
    assert "the smallest micro-cluster has 1 rows, and 5 are required" in failures[2].sentence


def test_the_audit_refuses_a_small_difference_to_an_earlier_message() -> None:
    rows = with_loners(0)
    for change, fails in ((Change("2026-01-01", 1, 0), True), (Change("2026-01-01", 30, 2), False), (None, False)):
        report = audited(rows, change=change)
        assert any("only 1 people came and 0 went" in failure.sentence for failure in report.failures) is fails
    one = Change("2026-01-01", 1, 0)
    assert not audited(rows, change=one, limits=Limits(least_changed=0)).failures


def test_the_audit_refuses_more_messages_than_are_allowed() -> None:
    rows, same = with_loners(0), Change("2026-01-01", 0, 0, messages=3)
    for most, names in ((3, ["messages"]), (4, []), (None, [])):
        report = audited(rows, change=same, limits=Limits(most_messages=most))
        assert [failure.name for failure in report.failures] == names


def test_every_warning_has_a_name_that_a_policy_can_accept() -> None:
    rows = with_loners(0)
    rows[:, 2] = rows[:, 0] > 3.0
    report = replace(
        audited(rows),
        membership=Guess(0.66, 0.01),
        distance_ratio=0.1,
        dominated=(("x", 1, 2),),
        constant_columns=(("x", 1),),
    )
    assert tuple(warning.name for warning in report.warnings) == WARNINGS


def test_the_audit_names_columns_that_are_constant_inside_a_micro_cluster() -> None:
    rows = with_loners(0)
    rows[:, 2] = rows[:, 0] > 3.0
    terms = Terms(columns=tuple(Column(name=name) for name in ("x", "y", "ill")))
    report = audited(rows, terms=terms)
    assert [name for name, _ in report.constant_columns] == ["ill"]
    assert any("column 'ill' has one and the same value" in warning.sentence for warning in report.warnings)
