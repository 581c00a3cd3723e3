"""Can anybody who has a row tell whether it is in a message? What the audit measures, and what it refuses."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.preprocessing import QuantileTransformer

from goldfc import OneShot, Summary, summarize
from goldfc._types import FloatArray, IntArray
from goldfc.learning.rows import RowSource
from goldfc.message.levels import with_fewest
from goldfc.message.task import Task
from goldfc.site.audit import (
    EXPECTED_COUNTS,
    MOST_AUC,
    Again,
    Audit,
    Limits,
    audit,
    halves_of,
    membership_of,
    split_once,
    tried,
)
from goldfc.site.membership import Normal, guess_by_score, try_out
from goldfc.site.privacy import expected_auc
from goldfc.site.rows import Rows, checked
from goldfc.site.summarize import tell, told_alike, with_membership
from sites import Counted

LEVEL = OneShot(Task(level=with_fewest(5), rows_each=8))
PLAIN = OneShot(Task(rows_each=2))


def noise(n_rows: int, n_features: int, seed: int = 0) -> FloatArray:
    """The hardest rows to hide: no two columns have anything in common."""
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


def factors(n_rows: int, n_features: int, seed: int = 0) -> FloatArray:
    """Rows like those of people: many columns that say much the same."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, 2)) @ rng.normal(size=(2, n_features)) + 0.5 * rng.normal(size=(n_rows, n_features))


def telling(rows: FloatArray | RowSource, way: OneShot) -> Again:
    """Other rows, as exactly as these are told."""
    return partial(told_alike, told=tell(checked(rows, "a"), "a", way.task))


def audited(rows: FloatArray | RowSource, way: OneShot = LEVEL, people: IntArray | None = None) -> Audit:
    told = tell(checked(rows, "a", people), "a", way.task)
    return audit(told if told.membership is not None else with_membership(told), required=way.task.smallest)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_rows", "n_features"), [(300, 3), (300, 6), (60, 10)])
def test_members_of_small_micro_clusters_are_found_and_the_level_hides_them(
    n_rows: int, n_features: int, seed: int
) -> None:
    rows = factors(n_rows, n_features, seed)
    small = membership_of(Rows.of(rows), telling(rows, PLAIN))
    assert small is not None
    assert small.auc > 0.85
    report = audited(rows)
    assert report.membership is not None
    assert report.membership.auc <= MOST_AUC
    assert report.membership.found <= 0.1
    assert not report.failures


def test_of_random_noise_in_few_columns_members_are_hidden_too() -> None:
    rows = noise(300, 3)
    small = membership_of(Rows.of(rows), telling(rows, PLAIN))
    report = audited(rows)
    assert small is not None
    assert report.membership is not None
    assert small.auc > 0.85
    assert report.membership.auc <= MOST_AUC
    assert not report.failures


def test_what_gives_more_away_than_the_limits_is_refused() -> None:
    report = audited(noise(600, 10))
    found = report.membership
    assert found is not None
    for limits, names in (
        (Limits(found.auc, found.found), []),
        (Limits(found.auc - 1e-6, 1.0), ["membership"]),
        (Limits(1.0, found.found - 1e-6), ["membership"]),
    ):
        assert [failure.name for failure in replace(report, limits=limits).failures] == names
    assert "membership" in [failure.name for failure in audited(noise(600, 10), PLAIN).failures]


def test_one_mean_of_all_gives_less_away_than_many() -> None:
    rows = noise(16, 10)
    summary = summarize(rows, "a", LEVEL.task)[0]
    assert len(summary.centroids) == 1
    report = audited(rows)
    assert report.membership is not None
    assert report.membership.auc <= MOST_AUC


@pytest.mark.parametrize("n_people", [10, 11, 12])
def test_with_fewer_than_twelve_people_nothing_can_be_measured_and_nothing_leaves(n_people: int) -> None:
    report = audited(noise(n_people, 2))
    names = [failure.name for failure in report.failures]
    assert (report.membership is None) == (n_people < 12) == ("unmeasured" in names)


def test_visits_of_few_people_cannot_be_measured_either() -> None:
    rows = noise(66, 2)
    people = np.arange(66) // 6
    report = audited(rows, people=people)
    assert report.membership is None
    assert [failure.name for failure in report.failures] == ["unmeasured"]
    # Where nothing is required, nothing need be with_membership.
    assert "unmeasured" not in [failure.name for failure in audited(rows[:8], PLAIN).failures]


def test_measuring_again_finds_the_same() -> None:
    rows = factors(200, 5)
    assert audited(rows) == audited(rows)


def test_whole_persons_are_inside_or_not() -> None:
    people = np.repeat(np.arange(40), 5)[np.random.default_rng(0).permutation(200)] * 7
    rows = np.column_stack([people, noise(200, 2)]).astype(float)
    seen: list[set[float]] = []

    def again(some: Rows) -> Summary:
        table, whose = some.source.read(0, some.shape[0]), some.people
        assert whose is not None
        np.testing.assert_array_equal(table[:, 0], whose)
        assert len(table) == 5 * len(np.unique(whose))  # all rows of everybody who is inside
        seen.append(set(whose.tolist()))
        return summarize(table, "a", LEVEL.task, people=whose)[0]

    rng, all_rows = np.random.default_rng(0), Rows.of(rows, people)
    for _ in range(5):
        trial = tried(all_rows, split_once(all_rows, rng), again)
        assert int(trial.member.sum()) == 5 * len(seen[-1]) == 100
        assert int((1 - trial.member).sum()) % 5 == 0
    assert len({frozenset(one) for one in seen}) == 5


def test_halves_of_one_split_share_nobody() -> None:
    people = np.repeat(np.arange(60), 4)
    rows = Rows.of(np.column_stack([people, noise(240, 2)]).astype(float), people)
    split = split_once(rows, np.random.default_rng(0))
    one, other = halves_of(rows, split, lambda some: Summary("a", some.sample[:3]), np.random.default_rng(1))
    whole = tried(rows, split, lambda some: Summary("a", some.sample[:3]))
    assert len(one.member) + len(other.member) == len(whole.member)
    assert len(one.member) % 4 == len(other.member) % 4 == 0
    assert one.member.any()
    assert other.member.any()
    at = {tuple(line): number for number, line in enumerate(whole.statistics.tolist())}
    whose = people[np.concatenate(split.looked_at()[:2])]
    inside, rest = ({int(whose[at[tuple(line)]]) for line in half.statistics.tolist()} for half in (one, other))
    assert not inside & rest


def test_a_large_table_is_measured_from_where_it_is_and_in_bounded_time() -> None:
    rows = factors(23_000, 4)
    elsewhere, again = Counted(rows), telling(rows, LEVEL)
    start = time.process_time()
    found = membership_of(Rows.of(elsewhere), again)
    assert time.process_time() - start < 60.0
    assert found is not None
    assert found.auc <= 0.6
    assert found == membership_of(Rows.of(rows), again)
    # One split of many rows, ten of a thousand: what is read grows more slowly than the table.
    assert elsewhere.rows_read <= 3 * len(rows)
    small = Counted(rows[:1000])
    assert membership_of(Rows.of(small), telling(rows[:1000], LEVEL)) is not None
    assert elsewhere.rows_read / 23_000 <= small.rows_read / 1000


def test_a_score_is_judged_by_area_and_by_who_is_found_at_one_false_alarm_in_a_hundred() -> None:
    member = np.repeat([1, 0], [200, 200])
    sure = guess_by_score(np.where(member == 1, 2.0, 1.0), member)
    assert (sure.auc, sure.found) == (1.0, 1.0)
    blind = guess_by_score(np.zeros(400), member)
    assert (blind.auc, blind.found) == (0.5, 0.0)
    tenth = np.zeros(400)
    tenth[:20] = 1.0
    assert guess_by_score(tenth, member).found == pytest.approx(0.1)


@pytest.mark.parametrize("parts", [("mass", "shape", "moments"), ("mass", "moments"), ("moments",), ()])
def test_whatever_a_message_tells_can_be_tried(parts: Sequence[str]) -> None:
    rows = factors(300, 4)
    whole = summarize(rows[:150], "a", LEVEL.task)[0]
    summary = Summary("a", whole.centroids, **{part: getattr(whole, part) for part in parts})
    trial = try_out(rows[:150], rows[150:200], rows[200:], summary)
    assert trial.statistics.shape[0] == 200
    assert np.isfinite(trial.statistics).all()
    assert trial.member.sum() == 150


def test_few_people_are_averaged_with_what_is_expected_of_the_message() -> None:
    rows = factors(40, 10)
    told = tell(checked(rows, "a"), "a", LEVEL.task)
    again, expected = partial(told_alike, told=told), expected_auc(told)
    raw, drawn = membership_of(told.rows, again), membership_of(told.rows, again, expected)
    assert raw is not None
    assert drawn is not None
    assert drawn.auc == pytest.approx((40 * raw.auc + EXPECTED_COUNTS * expected) / (40 + EXPECTED_COUNTS))
    assert drawn.found == raw.found


def test_larger_micro_clusters_and_coarser_steps_are_expected_to_tell_less() -> None:
    told = tell(checked(noise(400, 10), "a"), "a", LEVEL.task)
    coarser = replace(told, allowed=replace(told.allowed, coarseness=4.0 * told.allowed.coarseness))
    everybody = replace(told, found=told.found.merged(np.zeros(len(told.grid), dtype=np.int64)))
    assert expected_auc(coarser) < expected_auc(told)
    assert 0.5 < expected_auc(everybody) < expected_auc(told)


def test_statistics_are_made_normal_as_scikit_learn_does() -> None:
    rng = np.random.default_rng(0)
    learned, others = (np.column_stack([rng.normal(size=500), rng.integers(4, size=500)]) for _ in range(2))
    theirs = QuantileTransformer(n_quantiles=100, output_distribution="normal").fit(learned)
    for rows in (learned, others, 3.0 * others):
        np.testing.assert_array_equal(Normal.of(learned)(rows), theirs.transform(rows))
