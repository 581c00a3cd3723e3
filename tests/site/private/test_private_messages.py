"""Private messages by file and live: paid once, sent again byte by byte, and nothing else depends on rows."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from goldfc import OneShotClustering
from goldfc.agreement import Agreement, read_agreement
from goldfc.cli import main
from goldfc.errors import BadMessage, BadSettings, PolicyRefused
from goldfc.message.columns import Column
from goldfc.message.levels import Private, Suppressed
from goldfc.message.summary import Summary
from goldfc.message.wire import decode
from goldfc.site.ledger import Ledger
from goldfc.site.policy import Policy
from goldfc.site.private.curator import first_rows
from goldfc.site.private.plan import Plan
from goldfc.site.private.send import Budget, Request
from goldfc.site.send import draft_summary
from goldfc.site.summarize import summarize
from goldfc.site.table.table import open_table
from sentences import has_sentence, refused
from sites import bodies, rows_in, rows_of, write_policy

AGREED = """federation = "wards"
round = {round}
privacy = "private"
eps = {eps}
missing = "drop"
[[columns]]
name = "age"
range = [0, 120]
[[columns]]
name = "pressure"
range = [50, 250]
"""
MANY = 2_000


def site(folder: Path, number: int = 0, *, rows: int = MANY, eps: float = 1.0, turn: int = 1) -> Path:
    """A table, and what was agreed on."""
    folder.mkdir(exist_ok=True)
    (folder / "federation.toml").write_text(AGREED.format(eps=eps, round=turn), encoding="utf-8")
    data = folder / "data.csv"
    lines = [f"{age!r},{pressure!r}" for age, pressure in rows_of(number, rows).tolist()]
    data.write_text("\n".join(["age,pressure", *lines]) + "\n", encoding="utf-8")
    return data


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    return result.exit_code, " ".join(result.output.split())


def summarized(data: Path, *words: object) -> bytes:
    out = data.with_name("east.summary")
    code, told = run("summarize", data, "-o", out, *words)
    assert code == 0, told
    return out.read_bytes()


def lines_of(data: Path, event: str) -> list[dict[str, object]]:
    return [line for line in Ledger.of(data, Policy()).lines() if line["event"] == event]


def test_three_private_sites_find_the_clusters(tmp_path: Path) -> None:
    messages, kinds = [], []
    for number in range(3):
        data = site(tmp_path / str(number), number)
        out = tmp_path / f"{number}.summary"
        assert run("summarize", data, "-o", out)[0] == 0
        messages.append(out)
        kinds.append(np.random.default_rng(number).choice([number % 3, (number + 1) % 3], MANY))
    model, labels = tmp_path / "global.model", tmp_path / "labels.csv"
    agreed = tmp_path / "0" / "federation.toml"
    assert run("fuse", *messages, "-k", 3, "-o", model, "--federation", agreed)[0] == 0
    run("label", tmp_path / "0" / "data.csv", "--model", model, "-o", labels)
    found = [line.split(",")[1] for line in labels.read_text(encoding="utf-8").splitlines()[1:]]
    assert adjusted_rand_score(kinds[0], found) > 0.95
    told = run("inspect", messages[0])[1]
    assert "(1, 1e-05)-differential privacy for any row" in told


def test_the_same_request_has_the_same_answer_and_costs_once(tmp_path: Path) -> None:
    data = site(tmp_path / "east")
    first = summarized(data)
    data.write_text("age,pressure\n1,100\n", encoding="utf-8")  # whatever has become of the rows
    assert summarized(data) == first
    assert [len(lines_of(data, event)) for event in ("spent", "sent", "sent again")] == [1, 1, 1]
    assert "Private messages: 1." in run("budget", data)[1]
    (data.parent / "federation.toml").write_text(AGREED.format(eps=1.0, round=2), encoding="utf-8")
    (tmp_path / "other").mkdir()
    data.write_bytes(site(tmp_path / "more").read_bytes())
    assert summarized(data) != first
    assert len(lines_of(data, "spent")) == 2


def test_a_dry_run_draws_nothing_and_spends_nothing(tmp_path: Path) -> None:
    data = site(tmp_path / "east")
    code, told = run("summarize", data, "-o", tmp_path / "east.summary", "--dry-run")
    assert (code, "nothing spent" in told) == (0, True)
    assert not (tmp_path / "east.summary").exists()
    assert not lines_of(data, "spent")


def test_the_policy_only_makes_it_more_private(tmp_path: Path) -> None:
    data = site(tmp_path / "east", eps=8.0)
    write_policy(data.parent, "most_eps = 0.5")
    level = Summary.from_message(decode(summarized(data))).level
    assert level == Private(eps=0.5)
    assert Policy(most_eps=9.0).tightened(read_agreement(data.with_name("federation.toml"))).level == Private(eps=8.0)


def test_a_private_message_is_as_coarse_as_was_agreed_and_as_the_site_wants_it(tmp_path: Path) -> None:
    data = site(tmp_path / "east")
    (data.parent / "federation.toml").write_text(AGREED.format(eps=1.0, round=1) + "step = 2\n", encoding="utf-8")
    write_policy(data.parent, "steps = { age = 5 }")
    told = Summary.from_message(decode(summarized(data))).centroids
    np.testing.assert_array_equal(told % [5.0, 2.0], 0.0)


def test_what_would_overdraw_the_budget_of_a_year_is_not_made(tmp_path: Path) -> None:
    data = site(tmp_path / "east", eps=1.0)
    write_policy(data.parent, "most_eps_a_year = 1.2")
    summarized(data)
    (data.parent / "federation.toml").write_text(AGREED.format(eps=1.0, round=2), encoding="utf-8")
    code, told = run("summarize", data, "-o", tmp_path / "again.summary")
    assert code == 5
    assert has_sentence(told, "budget-overdrawn")
    assert not (tmp_path / "again.summary").exists()
    assert len(lines_of(data, "spent")) == 1


def test_budgets_add_up_in_rho_and_end_after_a_year(tmp_path: Path) -> None:
    data = site(tmp_path / "east")
    ledger, delta = Ledger.of(data, Policy()), Fraction(1, 100_000)
    for days in (400, 200, 10):
        ledger.note("spent", rho="1/50")
        lines = (ledger.folder / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
        when = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="seconds")
        lines[-1] = lines[-1].replace(lines[-1].split('"time":"')[1].split('"')[0], when)
        (ledger.folder / "ledger.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    budget = Budget.of(ledger, Policy())
    assert budget.spent == Fraction(2, 50)
    assert budget.eps(delta) < 2 * Budget(Fraction(1, 50), Policy()).eps(delta)


def test_killed_after_the_noise_was_drawn_it_has_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = site(tmp_path / "east")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("goldfc.site.private.send.tell_privately", killed)
        CliRunner().invoke(main, ["summarize", str(data), "-o", str(tmp_path / "east.summary")])
    assert len(lines_of(data, "spent")) == 1
    assert not lines_of(data, "sent")
    summarized(data)
    assert len(lines_of(data, "spent")) == 2


def test_no_single_row_stops_a_message_or_changes_how_others_are_read(tmp_path: Path) -> None:
    odd = ["", "54,7", "1e999", "abc", "nan", "-3", '"4,5"', "1 060", "2026-01-01"]
    for number, value in enumerate(odd):
        data = site(tmp_path / str(number), rows=400)
        columns = read_agreement(data.with_name("federation.toml")).columns
        with open_table(data, columns, drop=True, refuse="columns", guess=False) as table:
            before = table.rows.read(0, table.rows.shape[0])
        quoted = value if value.startswith('"') else f'"{value}"'
        data.write_text(data.read_text(encoding="utf-8") + f"{quoted},100\n", encoding="utf-8")
        with open_table(data, columns, drop=True, refuse="columns", guess=False) as table:
            after = table.rows.read(0, table.rows.shape[0])
        np.testing.assert_array_equal(after[: len(before)], before)
        assert len(after) <= len(before) + 1


def test_rows_of_nobody_do_not_count_for_they_may_be_anybodys(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("who,age\n,1\nanna,2\nNA,3\nbea,4\nanna,5\n", encoding="utf-8")
    age = Column(name="age", range=(0.0, 120.0))
    roles: list[dict[str, Any]] = [{"person_column": "who"}, {"id_column": "who"}]
    for role in roles:
        with open_table(data, [age], drop=True, refuse="columns", guess=False, **role) as table:
            assert rows_in(table).ravel().tolist() == [2.0, 4.0, 5.0]
            assert cast("np.ndarray", first_rows(table.people, 1)).tolist() == [True, True, False]


def test_where_nothing_can_be_expected_it_asks_before_it_spends(tmp_path: Path) -> None:
    data = site(tmp_path / "east", rows=12, eps=0.05)
    code, told = run("summarize", data, "-o", tmp_path / "east.summary")
    assert (code, lines_of(data, "spent")) == (2, [])
    assert has_sentence(told, "plan-hopeless")
    assert run("summarize", data, "-o", tmp_path / "east.summary", "--accept-risk")[0] == 0


def test_ranges_are_agreed_and_never_taken_from_rows() -> None:
    with pytest.raises(ValueError, match="privacy needs a range for every column of numbers; 'age' has none"):
        Agreement(federation="wards", privacy="private", columns=(Column(name="age"),))
    with pytest.raises(ValueError, match="it needs a person_column"):
        Agreement(federation="wards", most_rows=2, columns=(Column(name="age"),))
    with refused(PolicyRefused, "policy-range"):
        Policy(privacy="private").tightened(Agreement(federation="wards", columns=(Column(name="age"),)))


def test_a_private_site_takes_part_in_a_federation_that_is_not(tmp_path: Path) -> None:
    data = site(tmp_path / "east")
    text = AGREED.format(eps=1.0, round=1).replace('privacy = "private"', 'privacy = "suppressed"')
    (data.parent / "federation.toml").write_text(text, encoding="utf-8")
    write_policy(data.parent, 'privacy = "private"')
    agreed = read_agreement(data.with_name("federation.toml"))
    summary = agreed.read_summary(decode(summarized(data)))
    assert (summary.level, agreed.level) == (Private(), Suppressed())
    private = agreed.model_copy(update={"privacy": "private"})
    suppressed = next(iter(bodies(agreed).values()))
    with refused(BadMessage, "privacy-level-low"):
        private.read_summary(decode(suppressed))


@pytest.mark.parametrize(
    ("agreed", "told"),
    [
        (Private(eps=1.0), Private(eps=1.1)),
        (Private(delta=1e-6), Private(delta=1e-5)),
        (Private(most_rows=3), Private(most_rows=2)),
        (Private(), Suppressed()),
    ],
)
def test_a_weaker_promise_is_not_enough(agreed: Private, told: Private | Suppressed) -> None:
    assert agreed.missing_in(told)
    assert agreed.missing_in(agreed) is None
    assert Suppressed().missing_in(agreed) is None


def test_a_private_message_is_not_drafted_as_others_are(tmp_path: Path) -> None:
    data = site(tmp_path / "east", rows=50)
    agreed = read_agreement(data.with_name("federation.toml"))
    with open_table(data, agreed.columns) as table, refused(BadSettings, "draft-private"):
        draft_summary(table, "east", agreed, data)


def test_requests_differ_by_all_that_is_asked_for(tmp_path: Path) -> None:
    agreed = read_agreement(site(tmp_path / "east").with_name("federation.toml"))
    others = [agreed.model_copy(update=change) for change in ({"round": 2}, {"eps": 0.9}, {"withhold": ("mass",)})]
    requests = [Request.of("east", one, Policy()) for one in (agreed, *others)] + [Request.of("west", agreed, Policy())]
    requests += [Request.of("east", agreed, Policy(**own)) for own in ({"steps": {"age": 5.0}}, {"person": "who"})]
    assert len({one.digest for one in requests if one}) == len(requests)


# --- in Python, and what to expect


def test_the_estimator_simulates_it_and_asks_for_ranges() -> None:
    X, y = make_blobs(6_000, centers=4, n_features=3, cluster_std=0.6, random_state=3)
    groups = np.arange(6_000) % 3
    ranges = np.array([[-15.0, 15.0]] * 3)
    model = OneShotClustering(4, privacy=1.0, ranges=ranges, random_state=0).fit(X, groups=groups)
    again = OneShotClustering(4, privacy=Private(), ranges=ranges, random_state=0).fit(X, groups=groups)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    np.testing.assert_array_equal(model.micro_centroids_, again.micro_centroids_)
    fresh = [OneShotClustering(4, privacy=1.0, ranges=ranges).fit(X, groups=groups) for _ in range(2)]
    assert fresh[0].micro_centroids_[0, 0] != fresh[1].micro_centroids_[0, 0]
    with refused(BadSettings, "ranges-missing"):
        OneShotClustering(4, privacy=1.0).fit(X)
    with refused(BadSettings, "ranges-form"):
        OneShotClustering(4, privacy=1.0, ranges=ranges[:2]).fit(X)


def test_with_several_rows_of_a_person_there_are_as_many_micro_clusters_as_the_plan_says(tmp_path: Path) -> None:
    data = site(tmp_path / "east")
    agreed = read_agreement(data.with_name("federation.toml"))
    level = Private(most_rows=4)
    task, hoped = replace(agreed.task, level=level), Plan.of(agreed, MANY, 1, 2, level).cells
    lots = [np.random.default_rng(seed).bytes for seed in range(5)]
    told = [summarize(rows_of(0, MANY), "east", task, terms=agreed.terms, randomness=lot)[0] for lot in lots]
    counts = [len(summary.centroids) for summary in told]
    assert max(counts) <= hoped
    assert float(np.median(counts)) >= hoped / 1.5


def test_a_plan_knows_hope_from_none(tmp_path: Path) -> None:
    agreed = read_agreement(site(tmp_path / "east").with_name("federation.toml"))
    rich, poor = (Plan.of(agreed, rows, 8, 10, Private()) for rows in (50_000, 40))
    assert not rich.is_hopeless
    assert poor.is_hopeless
    assert rich.is_enough
    assert rich.sites_enough is not None
    assert (poor.sites_enough, poor.enough) == (None, None)
    assert rich.enough is not None
    assert rich.enough <= 1.0
    code, told = run("plan", tmp_path / "east" / "federation.toml", "--rows", 5_000, "--sites", 8, "-k", 10)
    assert code == 0
    assert "8 sites with 5,000 rows" in told
