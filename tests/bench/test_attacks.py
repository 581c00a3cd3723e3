"""The attacks of the benchmark, in a quick form: what came back before, and what comes back now."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from goldfc import summarize
from goldfc._types import FloatArray
from goldfc.errors import BadRows
from goldfc.message.levels import with_fewest
from goldfc.site.membership import guess_by_score
from goldfc_bench.attacks import attributes, differencing, homogeneity, membership, neighbours, reconstruction, run
from goldfc_bench.attacks.before import told_before
from goldfc_bench.attacks.file import file_of_rows, make_rows
from goldfc_bench.attacks.price import price_of
from goldfc_bench.attacks.run import TASK, all_work, row_of, sent_before, sent_now
from goldfc_bench.attacks.sites import SENSITIVE, Table, Target, tables, target_of
from goldfc_bench.cli import main
from needs import needs_data


def table_named(name: str) -> Table:
    return next(table for table in tables() if table.name == name)


def target(name: str, n_rows: int, seed: int = 0) -> Target:
    found = target_of(table_named(name), n_rows, seed)
    assert found is not None
    return found


@pytest.mark.parametrize("n_rows", [20, 30, 40])
def test_before_every_row_came_back_from_one_message(n_rows: int) -> None:
    site = target("digits", n_rows)
    found = reconstruction.restore(told_before(site.inside, site.table.terms), site.inside.astype(np.int64))
    assert found.rows == n_rows


def test_rows_are_found_behind_their_gram_matrix() -> None:
    rows = np.random.default_rng(0).integers(0, 9, (12, 20))
    found = reconstruction.rows_behind(rows.T @ rows)
    assert found is not None
    assert {tuple(row) for row in np.abs(found)} == {tuple(row) for row in rows}


@pytest.mark.parametrize("n_rows", [20, 40, 100, 300])
@pytest.mark.parametrize("name", ["digits", "digits, 20 categories"])
def test_no_row_comes_back_now(name: str, n_rows: int) -> None:
    site = target(name, n_rows)
    try:
        summary, _ = summarize(site.inside, "a", TASK, terms=site.table.terms)
    except BadRows:
        assert n_rows < 100
        return
    assert reconstruction.restore(summary, site.inside.astype(np.int64)).rows == 0


def best_auc(site: Target, level: str) -> float:
    sent = sent_before(site) if level == "before" else sent_now(site)
    found = membership.attack(site, sent.summary, sent.again, np.random.default_rng(0))
    return max(guess_by_score(scores, found.member).auc for scores in found.scores.values())


@pytest.mark.parametrize(("name", "n_rows"), [("breast cancer", 100), ("digits", 150), ("wine", 60)])
def test_members_were_told_from_others_and_hardly_are_now(name: str, n_rows: int) -> None:
    then, now = (best_auc(target(name, n_rows), level) for level in ("before", "after"))
    assert then > 0.75
    assert now < 0.72


def test_columns_of_members_were_known_and_are_not_now() -> None:
    site = target("breast cancer", 40)
    now, _ = summarize(site.inside, "a", TASK)
    assert attributes.advantage(site, told_before(site.inside, site.table.terms)) > 0.25
    assert attributes.advantage(site, now) < 0.15


@pytest.mark.parametrize("n_rows", [40, 100])
def test_the_row_that_came_between_two_messages_stays_unknown(n_rows: int) -> None:
    site = target("breast cancer", n_rows)
    assert differencing.errors_of_new_row(site, sent_before(site).again).told < 0.15
    assert differencing.errors_of_new_row(site, sent_now(site).again).told > 0.35


def test_one_of_two_sites_learns_little_of_the_other() -> None:
    site = target("digits", 150)
    assert neighbours.auc_of_the_other(site, sent_now(site).again, np.random.default_rng(0)) < 0.65


def test_claims_about_a_sensitive_column_are_no_better_than_without_the_message() -> None:
    claims, _ = homogeneity.claims_before_and_after(3)
    assert claims["after"].about < claims["before"].about
    assert claims["after"].right <= claims["after"].without + 0.05
    assert SENSITIVE.sensitive


def test_a_table_with_too_few_rows_has_no_row() -> None:
    assert row_of(("wine", 1_000, "after"), 1) is None


def test_where_a_site_refuses_the_row_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "TASK", replace(TASK, level=with_fewest(50)))
    row = row_of(("digits", 20, "after"), 2)
    assert row is not None
    assert row.refused == row.targets == 12


@needs_data
def test_the_price_is_small() -> None:
    price = price_of("YE", 1)
    assert price.refused == 0
    assert price.cost < 0.1


def test_the_price_of_a_family_with_larger_sites() -> None:
    assert price_of("own sizes", 1).cost < 0.05


def test_the_command_ends_in_a_page_and_in_rows_that_say_what_came_of_all_attacks(tmp_path: Path) -> None:
    arguments = ["attacks", "--quick", "--jobs", "1", "--table", "wine", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "attacks" / "README.md").read_text(encoding="utf-8")
    assert "| rows restored | 0 | 0 | met |" in page
    assert "| wine (13) |" in page
    file = file_of_rows(tmp_path / "attacks" / "rows.jsonl")
    rows = file.read()
    before, after = rows
    assert [row.work for row in rows] == all_work((40,), ("wine",))
    assert before.auc > after.auc
    file.rewrite([replace(before, auc=9.0, code="of older code"), replace(after, auc=9.0)])
    again = make_rows([row.work for row in rows], 1, 1, file, lambda: None)
    # Only what other code has made is made anew.
    assert [row.auc for row in again] == pytest.approx([before.auc, 9.0], abs=1e-4)


def test_levels_of_categories_sum_to_one() -> None:
    rows: FloatArray = table_named("digits, 20 categories").rows
    np.testing.assert_array_equal(rows.reshape(len(rows), -1, 3).sum(axis=2), 1.0)
