"""A rule finds the rows of its cluster, says how precisely, and can be read."""

import re
from dataclasses import replace

import numpy as np
import pytest

from goldfc import Model, OneShot, OneShotClustering, fuse, summarize
from goldfc._types import FloatArray, IntArray
from goldfc.message.columns import Column, Terms
from goldfc.randomness import generator
from goldfc.report.profiles import Profiles
from goldfc.report.rules import COLUMNS_IN_A_RULE, ClusterRule, rules

CENTRES = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 0.0], [12.0, 0.0, 0.0], [6.0, 8.0, 0.0]])


def rows_and_kinds(centres: FloatArray, n_rows: int = 800) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(4)
    kinds = rng.integers(len(centres), size=n_rows)
    return centres[kinds] + rng.normal(size=(n_rows, centres.shape[1])), kinds


def model_of(rows: FloatArray, n_clusters: int, terms: Terms | None = None) -> Model:
    sent = [summarize(rows[n::3], "abc"[n], OneShot().task, terms=terms or Terms())[0] for n in range(3)]
    return fuse(sent, n_clusters, OneShot(), generator(0, "server"))


def rules_of(model: Model) -> list[ClusterRule]:
    return rules(model, Profiles.of(model, model.mass.astype(np.int64)))


def real(rule: ClusterRule, rows: FloatArray, own: FloatArray) -> tuple[float, float]:
    """Precision and coverage among rows."""
    fits = np.logical_and.reduce([condition.holds(rows) for condition in rule.conditions])
    return (fits & own).sum() / fits.sum(), (fits & own).sum() / own.sum()


def test_what_a_rule_says_of_drawn_rows_holds_for_real_ones() -> None:
    rows, _ = rows_and_kinds(CENTRES)
    found = OneShotClustering(4, random_state=0).fit(rows)
    for cluster, rule in enumerate(rules_of(found.model_)):
        assert (rule.precision, rule.covered) == pytest.approx(real(rule, rows, found.labels_ == cluster), abs=0.04)
        assert rule.precision > 0.95


def test_a_cluster_between_others_has_a_rule_with_two_ends() -> None:
    model = model_of(rows_and_kinds(CENTRES[:3])[0], 3)
    (middle,) = [rule for rule in rules_of(model) if " from " in rule.text]
    assert middle.text.startswith("column 1 from ")
    low, high = middle.conditions[0].low, middle.conditions[0].high
    assert 2.0 < low < 4.0
    assert 8.0 < high < 10.0


def test_no_rule_has_more_than_three_columns_and_none_that_does_not_help() -> None:
    rng = np.random.default_rng(0)
    rows, _ = rows_and_kinds(rng.normal(scale=1.2, size=(6, 12)))
    for rule in rules_of(model_of(rows, 6)):
        assert len({condition.feature.column for condition in rule.conditions}) <= COLUMNS_IN_A_RULE
    alone = rows_and_kinds(np.array([[0.0, 0.0], [20.0, 0.0]]))[0]
    assert all(len(rule.conditions) == 1 and rule.precision == 1.0 for rule in rules_of(model_of(alone, 2)))


def test_rules_are_the_same_for_the_same_model() -> None:
    model = model_of(rows_and_kinds(CENTRES)[0], 4)
    assert rules_of(model) == rules_of(model)


def test_of_categories_a_rule_says_which_or_which_not() -> None:
    rng = np.random.default_rng(1)
    kinds = rng.integers(3, size=600)
    level, smoker = np.eye(3)[kinds], rng.random(600) < np.array([0.98, 0.02, 0.02])[kinds]
    terms = Terms(
        columns=(
            Column(name="smoker", kind="boolean"),
            Column(name="ward", kind="category", categories=("a", "b", "c")),
        )
    )
    told = {rule.text for rule in rules_of(model_of(np.column_stack([smoker, level]), 3, terms))}
    assert {"ward=b", "ward=c"} <= told
    assert told & {"ward=a", "smoker"}


def test_units_and_digits_are_those_of_the_page() -> None:
    columns = (Column(name="age", unit="years"), *(Column(name=name) for name in "xy"))
    model = model_of(rows_and_kinds(CENTRES[[0, 2]] * 5.0)[0], 2, Terms(columns=columns))
    told = [re.fullmatch(r"age (below|at least) (\d\d) years", rule.text) for rule in rules_of(model)]
    assert {one[1] for one in told if one} == {"below", "at least"}
    assert {26 < int(one[2]) < 34 for one in told if one} == {True}  # in the middle between 0 and 60


def test_a_single_cluster_is_every_row() -> None:
    model = model_of(rows_and_kinds(CENTRES[:1])[0], 1)
    assert [(rule.text, rule.precision, rule.covered) for rule in rules_of(model)] == [("every row", 1.0, 1.0)]


def test_no_end_lies_beyond_what_rows_lie_around() -> None:
    # Half of all values are 0, as pixels are; a normal distribution has rows below that, and there are none.
    rows, kinds = rows_and_kinds(CENTRES)
    rows[:, 2] = np.where(kinds % 2, 0.0, 1.0 + rows[:, 2] ** 2)
    model = model_of(rows, 4)
    low = model.centroids.min(axis=0)
    for rule in rules_of(replace(model, covariance=model.covariance * 4.0)):
        for condition in rule.conditions:
            assert condition.high == np.inf or condition.high > low[condition.place]
