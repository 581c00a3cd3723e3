"""The privacy level `suppressed`, and the audit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from goldfc import OneShot, Summary, summarize
from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.agreement import Agreement
from goldfc.errors import BadRows
from goldfc.learning.rows import RowSource
from goldfc.message.columns import UNNAMED, Column, Terms
from goldfc.message.levels import with_fewest
from goldfc.message.summary import is_covariance
from goldfc.message.task import Task
from goldfc.server.one_shot import fusion_of
from goldfc.site.audit import USUAL, WARNINGS, Again, Audit, Change, Finding, Limits, audit, membership_of
from goldfc.site.membership import Guess
from goldfc.site.privacy import (
    Allowed,
    Precision,
    Rules,
    SameAsRows,
    Spread,
    Steps,
    coarse_counts,
    coarse_shape,
    directions_of,
    fewest_told_alike,
    ladder,
    off_the_rows,
    people_of_each,
    spread_of,
)
from goldfc.site.rows import Rows, checked
from goldfc.site.summarize import tell, tell_as, with_membership
from sentences import refused

WAY = OneShot(Task(level=with_fewest(5), rows_each=8))
PLAIN = OneShot(Task(most=1000, rows_each=1))


def with_loners(seed: int, n_features: int = 3) -> FloatArray:
    """Two crowds, and rows so far from all others that each would be a micro-cluster of its own."""
    rng = np.random.default_rng(seed)
    crowds = rng.normal(size=(300, n_features)) + 6.0 * rng.integers(0, 2, (300, 1))
    return np.vstack([crowds, rng.normal(size=(20, n_features)) * 60.0])


@contextmanager
def attack_as(finding: Callable[..., Guess | None]) -> Iterator[None]:
    """Another attack in place of ours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("goldfc.site.summarize.membership_of", finding)
        yield


def drawn(seed: int) -> Callable[..., Guess | None]:
    """What an attack finds is drawn, since what is told must be right on every rung of the ladder.

    Now and then it is made, which takes much longer than all the rest.
    """
    rng = np.random.default_rng(seed)

    def found(rows: Rows, again: Again, expected: float | None = None) -> Guess | None:
        made = rng.random() < 0.1
        return membership_of(rows, again, expected) if made else Guess(float(rng.choice([0.5, 1.0])), 0.0)

    return found


def nothing(*_: object) -> Guess:
    """No attack succeeds, so that as much is told as people allow."""
    return Guess(0.5, 0.0)


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
    for way in (WAY, OneShot(Task(most=1000, rows_each=1, level=with_fewest(5)))):
        with attack_as(drawn(seed)):
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
    told = tell(checked(rows, "a"), "a", way.task, Rules(terms))
    told = told if told.membership is not None else with_membership(told)
    return audit(told, change=change, required=5, limits=limits)


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
    rows: FloatArray,
    labels: RowLabels,
    terms: Terms = UNNAMED,
    people: IntArray | None = None,
    coarseness: float = 1.0,
) -> FloatArray:
    """The steps of all micro-clusters by the letter: standard errors, but at least 2 grains / people; rounded up.

    By the fewest people that are told as the same multiple of five.
    """
    whose = np.arange(len(rows)) if people is None else people
    steps = np.empty((labels.max() + 1, rows.shape[1]))
    around = np.sqrt(((rows - means_by(labels, rows)[labels]) ** 2).mean(axis=0))
    for number, feature in np.ndindex(*steps.shape):
        values = np.unique(rows[:, feature])
        grain = np.diff(values).min() if len(values) > 1 else 0.0
        count = len(np.unique(whose[labels == number]))
        alike = min(
            few for few in range(1, count + 1) if few == count or max(1, round(few / 5)) == max(1, round(count / 5))
        )
        alike = max(alike, min(count, 5))
        step = min(coarseness * around[feature] / np.sqrt(alike), 2.0 * float(rows[:, feature].std()))
        step = max(step, 2.0 * float(grain) / alike, (terms.features[feature].step or 0.0) if terms.features else 0.0)
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
    with attack_as(drawn(seed)):
        told = tell(checked(rows, "a"), "a", WAY.task)
    summary, labels, coarseness = told.summary, told.found.labels, told.allowed.coarseness
    steps = grid_by_hand(rows, labels, coarseness=coarseness)
    assert is_multiple(summary.centroids, steps)
    assert (np.abs(summary.centroids - means_by(labels, rows)) <= 0.5001 * steps).all()
    everybody = grid_by_hand(rows, np.zeros(n_rows, dtype=np.int32), coarseness=coarseness)[0]
    if summary.moments is not None:
        assert is_multiple(summary.moments.mean, everybody)
        assert summary.moments.count % 5 == 0
        apart = np.abs(summary.moments.variance - rows.var(axis=0))
        assert (apart <= 0.56 * rows.var(axis=0) * min(1.0, coarseness * np.sqrt(2.0 / (n_rows - 4)))).all()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n_rows=st.integers(6, 300), yes=st.floats(0.01, 0.99))
def test_one_row_more_or_less_moves_a_mean_by_less_than_about_its_step(seed: int, n_rows: int, yes: float) -> None:
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.normal(size=n_rows), rng.uniform(size=n_rows), rng.random(n_rows) < yes])
    together = np.zeros(n_rows, dtype=np.int32)
    step = grid_by_hand(rows, together)[0]
    without = (rows.sum(axis=0) - rows) / (n_rows - 1)
    moved = np.abs(without - rows.mean(axis=0))
    # A row that is not further out than two deviations, or one of six; yes or no, whichever is rare.
    usual = np.abs(rows - rows.mean(axis=0)) <= 2.0 * rows.std(axis=0)
    usual[:, 2] = True
    assert (moved <= np.where(usual, step * n_rows / (n_rows - 1), np.inf)).all()
    if n_rows >= 11:
        with attack_as(nothing):
            summary, less = (
                summarize(some[:, :1], "a", Task(level=with_fewest(5), most=1))[0] for some in (rows, rows[1:])
            )
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


def test_too_few_rows_are_refused_and_columns_are_blamed_only_where_they_matter() -> None:
    with refused(BadRows, "people-too-few", "'a' has 9 rows", "at least 10"):
        summary_of(np.random.default_rng(0).normal(size=(9, 2)))
    with refused(BadRows, "people-too-few-for-columns", "'a' has 10 rows"):
        summary_of(np.random.default_rng(0).normal(size=(10, 400)))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 60), st.integers(1, 10**6))
def test_a_rounded_shape_is_still_a_covariance(seed: int, n_features: int, n_rows: int, n_people: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.uniform(-6, 6, n_features)
    shape = rows.T @ rows / n_rows
    zero = np.zeros(n_features)
    steps = Steps(zero, zero, zero, zero, coarseness=1.0)
    coarse = coarse_shape(shape, Precision(np.array([n_people]), n_people, steps, steps))
    assert is_covariance(coarse)
    # Variances are in steps of their own.
    step = np.diagonal(shape) * min(1.0, np.sqrt(2.0 / fewest_told_alike(np.array([n_people]))[0]))
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
        membership=Guess(0.69, 0.01),
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


# --- what a site tells shrinks with its people ---


def how_much(rows: FloatArray, people: IntArray | None = None) -> str:
    """What is in a site's message, in one word."""
    try:
        summary, _ = summarize(rows, "a", WAY.task, people=people)
    except BadRows:
        return "nothing"
    if summary.shape is not None:
        assert summary.moments is not None
        return "covariance"
    if summary.moments is not None:
        assert len(summary.centroids) > 1
        return "moments"
    assert len(summary.centroids) == 1
    return "mean"


@pytest.mark.parametrize("n_features", [4, 10, 20])
def test_what_a_site_tells_shrinks_with_its_people(n_features: int) -> None:
    rows = factors(60 * n_features, n_features)
    amounts = [how_much(rows[:n_rows]) for n_rows in (len(rows), 19 * n_features, 12, 9)]
    assert amounts == ["covariance", "moments", "mean", "nothing"]


def factors(n_rows: int, n_features: int) -> FloatArray:
    """Rows like those of people: many columns that say much the same."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_rows, 2)) @ rng.normal(size=(2, n_features)) + 0.5 * rng.normal(size=(n_rows, n_features))


def test_the_fewer_people_for_every_direction_the_coarser() -> None:
    spread = spread_of(np.random.default_rng(0).normal(size=(800, 30)))
    rungs = [list(ladder(Spread(spread, spread), n_people, WAY.task, "a")) for n_people in (100, 200, 300, 800)]
    coarse = [one[0].coarseness for one in rungs]
    assert coarse == sorted(coarse, reverse=True)
    assert coarse[0] > 2.0
    for some in rungs:
        assert some[-1].is_one_mean
        for first, then in pairwise(some[:-1]):  # what the audit does not like: less of it, of more people, or coarser
            assert (then.coarseness, then.task.smallest, first.task.shape) > (
                first.coarseness,
                first.task.smallest,
                then.task.shape,
            )


@pytest.mark.parametrize("n_features", [2, 10, 30])
def test_micro_clusters_grow_with_the_directions(n_features: int) -> None:
    rng = np.random.default_rng(0)
    independent = rng.normal(size=(40 * n_features, n_features))
    one_factor = rng.normal(size=(40 * n_features, 1)) + 0.05 * rng.normal(size=(40 * n_features, n_features))
    for rows, directions in ((independent, n_features), (one_factor, 1)):
        summary, labels = summarize(rows, "a", WAY.task)
        assert np.bincount(labels).min() >= summary.level.fewest >= max(5, int(0.9 * directions))


def test_visits_are_not_people() -> None:
    rows = factors(300, 4)
    assert how_much(rows) == "covariance"
    for visits, amount in ((6, "moments"), (25, "mean"), (36, "nothing"), (50, "nothing")):
        assert how_much(rows, np.arange(300) // visits) == amount


# --- people ---


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n_people=st.integers(30, 120), visits=st.integers(1, 8), moves=st.floats(0.0, 3.0))
def test_every_micro_cluster_has_enough_different_people(seed: int, n_people: int, visits: int, moves: float) -> None:
    rng = np.random.default_rng(seed)
    people = np.sort(rng.integers(n_people, size=n_people * visits))
    # Visits of one person are alike, more or less.
    rows = (rng.normal(size=(n_people, 2)) * 3.0)[people] + moves * rng.normal(size=(len(people), 2))
    if len(np.unique(people)) < 30:
        return
    with attack_as(drawn(seed)):
        told = tell(checked(rows, "a", people), "a", WAY.task)
    summary, labels = told.summary, told.found.labels
    for number in range(len(summary.centroids)):
        assert len(np.unique(people[labels == number])) >= summary.level.fewest >= 5
    assert is_multiple(summary.centroids, grid_by_hand(rows, labels, people=people, coarseness=told.allowed.coarseness))


def test_six_visits_of_one_patient_are_no_micro_cluster() -> None:
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(120, 2)), 50.0 + 0.1 * rng.normal(size=(6, 2))])
    people = np.concatenate([np.arange(120), np.full(6, 120)])
    assert (summary_of(rows).centroids > 40.0).any()
    summary, labels = summarize(rows, "a", WAY.task, people=people)
    assert not (summary.centroids > 40.0).any()
    assert people_of_each(labels, people).min() >= 5


def test_a_persons_rows_may_be_in_several_micro_clusters() -> None:
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(60), 2)
    rows = rng.normal(size=(120, 2)) + 30.0 * (np.arange(120) % 2)[:, None]
    summary, labels = summarize(rows, "a", WAY.task, people=people)
    assert (labels[::2] != labels[1::2]).all()
    assert people_of_each(labels, people).sum() == 120
    assert people_of_each(labels, people).min() >= summary.level.fewest


# --- what is sensitive ---

SENSITIVE = Terms(columns=(Column(name="x"), Column(name="y"), Column(name="ill", kind="boolean", sensitive=True)))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n_rows=st.integers(40, 300), yes=st.sampled_from([0.0, 0.01, 0.3, 0.99, 1.0]))
def test_a_sensitive_yes_or_no_is_never_told_as_all_or_none(seed: int, n_rows: int, yes: float) -> None:
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.normal(size=(n_rows, 2)), rng.random(n_rows) < yes])
    with attack_as(drawn(seed)):
        summary, _ = summarize(rows, "a", WAY.task, terms=SENSITIVE)
    told = summary.centroids[:, 2]
    assert ((told > 0.0) & (told < 1.0)).all()
    if summary.moments is not None:
        assert 0.0 < summary.moments.mean[2] < 1.0
        assert summary.moments.variance[2] > 0.0  # nor as what does not vary
    # Whoever is ill is with the same others.
    allowed = Allowed(WAY.task, moments=True)
    together = []
    for share in (yes, 0.5):
        rows[:, 2] = rng.random(n_rows) < share
        together.append(tell_as(Rows.of(rows), "a", allowed, Rules(SENSITIVE)).found.labels)
    np.testing.assert_array_equal(together[0], together[1])


def test_levels_of_a_sensitive_category_are_never_told_as_all_or_none() -> None:
    status = Column(name="status", kind="category", categories=("a", "b", "c"), sensitive=True)
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(200, 2)), np.eye(3)[np.where(rng.random(200) < 0.97, 0, 1)]])
    told = summary_of(rows, terms=Terms(columns=(*SENSITIVE.columns[:2], status))).centroids[:, 2:]
    assert ((told > 0.0) & (told < 1.0)).all()


def test_what_is_not_sensitive_may_be_told_as_none() -> None:
    terms = Terms(columns=(*SENSITIVE.columns[:2], Column(name="ill", kind="boolean")))
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(200, 2)), rng.random(200) < 0.05])
    told = summary_of(rows, terms=terms).centroids[:, 2]
    assert (told == 0.0).any()
    assert ((told >= 0.0) & (told <= 1.0)).all()


# --- sizes and shares ---


def test_steps_are_those_of_all_who_are_told_as_the_same_number() -> None:
    people = np.arange(1, 200)
    fewest = fewest_told_alike(people)
    assert (fewest <= people).all()
    for number in np.unique(coarse_counts(people[4:])):
        assert len(np.unique(fewest[4:][coarse_counts(people[4:]) == number])) == 1


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n_rows=st.integers(60, 600), shares=st.lists(st.floats(0.05, 0.95), max_size=4))
def test_means_stay_inside_their_ranges_and_the_server_takes_them(seed: int, n_rows: int, shares: list[float]) -> None:
    columns = (
        Column(name="score", range=(0.0, 1.0)),
        Column(name="age", range=(17.5, 90.0)),
        *(Column(name=f"q{number}", kind="boolean") for number in range(len(shares))),
    )
    what = Agreement(federation="f", columns=columns)
    rng = np.random.default_rng(seed)
    rows = np.column_stack(
        [rng.beta(0.3, 0.3, n_rows), rng.choice([17.5, 18.0, 90.0], n_rows), rng.random((n_rows, len(shares))) < shares]
    )
    with attack_as(drawn(seed)):
        summary, _ = summarize(rows, "a", fusion_of(what).task, terms=what.terms)
    low, high = np.array([column.limits for column in columns]).T
    assert ((summary.centroids >= low) & (summary.centroids <= high)).all()
    assert what.read_summary(summary.to_message()).site == "a"


def test_counts_are_multiples_of_five_and_shares_do_not_tell_the_exact_size() -> None:
    """The trick: m rows have shares k / m, so the m that makes all of a row of shares whole is the size."""
    terms = Terms(columns=(Column(name="x"), *(Column(name=f"q{number}", kind="boolean") for number in range(8))))
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=2000), rng.random((2000, 8)) < 0.5]).astype(float)

    def guessed(centroids: FloatArray, sizes: IntArray) -> float:
        """How often the best guess of five sizes is right."""
        right = 0
        for shares, size in zip(centroids[:, 1:], sizes, strict=True):
            told = 5 * round(size / 5)
            guesses = [told + apart for apart in range(-2, 3)]
            misses = [np.abs(shares * one - np.round(shares * one)).max() for one in guesses]
            right += guesses[int(np.argmin(misses))] == size
        return right / len(sizes)

    plain, labels = summarize(rows, "a", Task(rows_each=20), terms=terms)
    assert guessed(plain.centroids, np.bincount(labels)) == 1.0
    summary, labels = summarize(rows, "a", WAY.task, terms=terms)
    assert summary.mass is not None
    assert summary.moments is not None
    assert (summary.mass % 5 == 0).all()
    assert summary.moments.count % 5 == 0
    assert len(labels) >= 50
    assert guessed(summary.centroids, np.bincount(labels)) <= 0.4


def test_one_rare_row_is_told_like_none_or_like_two() -> None:
    rng = np.random.default_rng(0)
    terms = Terms(columns=(Column(name="x"), Column(name="y"), Column(name="rare", kind="boolean")))
    told: dict[int, set[float]] = {}
    for _ in range(20):
        rows = np.column_stack([rng.normal(size=(400, 2)), rng.random(400) < 0.01])
        with attack_as(nothing):
            summary, labels = summarize(rows, "a", WAY.task, terms=terms)
        steps = grid_by_hand(rows, labels, terms)[:, 2]
        sizes = np.bincount(labels)
        assert (steps >= 2.0 / sizes - 1e-12).all()
        for share, step, count in zip(summary.centroids[:, 2], steps, np.bincount(labels, rows[:, 2]), strict=True):
            told.setdefault(int(count), set()).add(round(share / step))
    assert 0 in told[1]  # as one with none
    assert told[0] == {0}
    assert told[1] <= {0, 1}
    assert told.get(2, {1}) <= {1}


# --- directions ---


def test_directions_are_those_that_rounding_leaves() -> None:
    rng = np.random.default_rng(0)
    for n_features in (3, 10, 40):
        spread = spread_of(rng.normal(size=(5000, n_features)))
        for coarseness in (1.0, 3.0):
            expected = n_features / (1.0 + coarseness**2 / 12.0)
            assert directions_of(spread, coarseness) == pytest.approx(expected, rel=0.05)
    factor = spread_of(rng.normal(size=(1000, 1)) + 0.05 * rng.normal(size=(1000, 20)))
    assert directions_of(factor, 1.0) == pytest.approx(1.0, rel=0.6)
    assert directions_of(factor, 5.0) == pytest.approx(1.0, rel=0.1)
    assert directions_of(spread_of(np.full((50, 4), 3.0)), 1.0) == 1.0


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n_rows=st.integers(3, 60), n_features=st.integers(1, 80))
def test_directions_do_not_depend_on_units(seed: int, n_rows: int, n_features: int) -> None:
    """With fewer features than rows, and with more."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n_features)) * rng.uniform(0.1, 3.0, n_features)
    found = spread_of(rows)
    assert found.sum() == pytest.approx(n_features)
    np.testing.assert_allclose(spread_of(rows * rng.uniform(0.1, 90.0, n_features) + 7.0), found, atol=1e-9)


@pytest.mark.parametrize("coarseness", [1.0, 4.0, 12.0])
@pytest.mark.parametrize("n_features", [20, 100])
def test_a_mean_leaks_as_theory_says(n_features: int, coarseness: float) -> None:
    """The AUC of the best test of membership of one mean is Phi(sqrt(directions / 2 n))."""
    rng = np.random.default_rng(0)
    n_rows, areas = 2 * n_features, []
    for _ in range(200):
        inside, outside = rng.normal(size=(2, n_rows, n_features))
        step, aside = coarseness / np.sqrt(n_rows), rng.random(n_features)  # rows are not centred on the grid
        mean = (np.round(inside.mean(axis=0) / step + aside) - aside) * step
        areas.append((inside @ mean > (outside @ mean)[:, None]).mean())
    expected = norm.cdf(np.sqrt(directions_of(np.ones(n_features), coarseness) / (2.0 * n_rows)))
    assert np.mean(areas) == pytest.approx(expected, abs=0.03)


# --- beside the rows ---


def test_a_point_on_a_row_is_found_on_any_grid() -> None:
    rows = np.array([[1.0, 10.0], [2.5, 20.0], [-3.0, 0.0]])
    points = np.array([[1.0, 10.0], [2.5, 20.0], [2.6, 20.0], [-3.0, -0.0], [1.0, 20.0]])
    grid = np.array([[1.0, 10.0], [0.5, 0.1], [0.1, 4.0], [3.0, 1.0], [0.25, 20.0]])
    same = SameAsRows(points, grid)
    Rows.of(rows).sweep(same)
    np.testing.assert_array_equal(same.found, [True, True, False, True, False])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n_rows=st.integers(10, 200), levels=st.integers(2, 30))
def test_what_is_moved_off_the_rows_stays_inside_its_limits(seed: int, n_rows: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    terms = Terms(columns=(Column(name="a", range=(0.0, float(levels - 1))), Column(name="b", kind="boolean")))
    rows = np.column_stack([rng.integers(levels, size=n_rows), rng.integers(2, size=n_rows)]).astype(float)
    grid = np.column_stack([rng.choice([0.5, 1.0, 2.0], 20), rng.choice([0.1, 0.25, 0.4], 20)])
    points = rows[rng.integers(n_rows, size=20)]
    moved = off_the_rows(points, np.ones(20, dtype=bool), Rows.of(rows), grid, terms)
    assert not is_a_row(moved, rows).any()
    assert ((moved >= 0.0) & (moved <= [levels - 1, 1.0])).all()
    assert (np.abs(moved - points) <= grid + 1e-12).all()


# --- dominance ---


@pytest.mark.parametrize("usual", [0.0, 1.0])
def test_a_dominant_row_is_found_in_a_column_that_is_mostly_one_value(usual: float) -> None:
    """Costs: nearly everybody has none, a few have some, and one has nearly all."""
    rng = np.random.default_rng(0)
    costs = np.where(rng.random(400) < 0.03, rng.uniform(10.0, 20.0, 400), usual)
    rows = np.column_stack([rng.normal(size=(400, 2)), costs])
    terms = Terms(columns=tuple(Column(name=name) for name in ("x", "y", "costs")))
    assert np.median(np.abs(costs - np.median(costs))) == 0.0
    assert audited(rows, terms=terms).dominated == ()
    rows[123, 2] = 1e6
    report = audited(rows, terms=terms)
    assert [(name, row) for name, _, row in report.dominated] == [("costs", 123)]
