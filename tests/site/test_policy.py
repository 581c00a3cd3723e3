"""A site's own policy: it comes from the site alone, and makes what was agreed on stricter, never looser."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from goldfc.agreement import Agreement
from goldfc.cli import main
from goldfc.errors import BadRows, BadSettings, PolicyRefused
from goldfc.learning.rows import InMemory
from goldfc.message.columns import settings_in
from goldfc.server.one_shot import fusion_of
from goldfc.site.policy import MOST_BYTES_OF_A_POLICY, Policy, read_policy
from goldfc.site.send import draft_summary, send
from goldfc.site.summarize import summarize
from goldfc.site.table.cells import person_digests
from goldfc.site.table.readers import read_all
from goldfc.site.table.table import Table, as_table, open_table
from sentences import has_sentence, refused
from sites import agreement, rows_of, write_agreement, write_policy


def site(folder: Path, whose: bool = False) -> Path:
    """A table; with `whose`, of three rows each."""
    folder.mkdir(exist_ok=True)
    lines = [f"{age!r},{pressure!r}" for age, pressure in rows_of(0).tolist()]
    lines = [f"{line},p{number // 3}" for number, line in enumerate(lines)] if whose else lines
    data = folder / "data.csv"
    data.write_text("\n".join(["age,pressure,who" if whose else "age,pressure", *lines]) + "\n", encoding="utf-8")
    return data


def table_of(data: Path, what: Agreement, person: str | None = None) -> Table:
    return as_table(read_all(data), what.columns, person_column=person)


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    return result.exit_code, " ".join(result.output.split())


def test_without_a_file_there_are_the_defaults(tmp_path: Path) -> None:
    policy = read_policy(tmp_path / "data.csv")
    assert policy == Policy()
    assert (policy.smallest, policy.least_sites, policy.most_messages, policy.most_questions, policy.days) == (
        5,
        3,
        12,
        3,
        365,
    )
    assert (policy.most_auc, policy.most_tpr, policy.keep_days) == (0.7, 0.1, 365)


def test_a_policy_comes_from_beside_the_data_and_not_from_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    write_policy(tmp_path / "here", "smallest = 1")
    monkeypatch.chdir(tmp_path / "here")
    data = site(tmp_path / "there")
    assert read_policy(data) == Policy()
    write_policy(data.parent, "smallest = 9")
    assert read_policy(data).smallest == 9


@given(st.integers(2, 60), st.integers(1, 60), st.booleans())
def test_the_larger_smallest_holds(agreed: int, own: int, plain: bool) -> None:
    what = agreement(smallest=agreed, privacy="plain" if plain else "suppressed")
    task = Policy(smallest=own).tightened(what)
    assert task.smallest == max(1 if plain else agreed, own)
    assert task.rows_each >= fusion_of(what).task.rows_each


def test_what_leaves_has_the_larger_smallest_and_the_coarser_steps(tmp_path: Path) -> None:
    data, what = site(tmp_path / "a"), agreement()
    write_policy(data.parent, "smallest = 8", "steps = { age = 5, pressure = 0.001 }")
    summary = draft_summary(table_of(data, what), "east", what, data).summary
    assert summary.level.fewest == 8
    np.testing.assert_array_equal(summary.centroids[:, 0] % 5.0, 0.0)
    usual = summarize(rows_of(0), "east", Policy(smallest=8).tightened(what), terms=what.terms)[0]
    np.testing.assert_array_equal(summary.centroids[:, 1], usual.centroids[:, 1])  # finer than usual changes nothing


def test_a_column_that_never_leaves_is_refused(tmp_path: Path) -> None:
    data, what = site(tmp_path / "a"), agreement()
    write_policy(data.parent, 'never = ["pressure", "name"]')
    with refused(PolicyRefused, "policy-never", "'pressure'", "federation.toml", "policy.toml"):
        draft_summary(table_of(data, what), "east", what, data)


def test_fewer_sites_than_the_policy_wants_are_refused(tmp_path: Path) -> None:
    data, two = site(tmp_path / "a"), agreement(limits={"least_sites": 2})
    assert agreement().limits.least_sites == 3
    with refused(PolicyRefused, "policy-least-sites", "with 2 sites", "at least 3"):
        draft_summary(table_of(data, two), "east", two, data)
    write_policy(data.parent, "least_sites = 2")
    assert draft_summary(table_of(data, two), "east", two, data).summary.site == "east"


def test_a_persons_column_cannot_be_learned_from(tmp_path: Path) -> None:
    data, what = site(tmp_path / "a"), agreement()
    write_policy(data.parent, 'person = "age"')
    with refused(PolicyRefused, "policy-person", "'age'"):
        draft_summary(table_of(data, what), "east", what, data)
    with pytest.raises(ValueError, match="'age' says whose a row is, so it cannot be learned from"):
        agreement(person_column="age")


def test_the_limits_of_the_audit_are_the_sites_own(tmp_path: Path) -> None:
    data, what = site(tmp_path / "a"), agreement()
    for line, is_refused in (("most_auc = 0.0", True), ("most_tpr = 0.0", True), ("most_auc = 1.0", False)):
        write_policy(data.parent, line)
        found = draft_summary(table_of(data, what), "east", what, data).audit.failures
        assert ("membership" in [failure.name for failure in found]) is is_refused


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (["smallest = 0"], "settings-invalid smallest: Input should be greater than or equal to 1"),
        (['smallest = "5"'], "settings-invalid smallest: Input should be a valid integer"),
        (["larges = 5"], "settings-invalid larges"),
        (["steps = { age = 0 }"], "step-not-positive 'age'"),
        (["steps = { age = nan }"], "settings-invalid steps.age"),
        (['accept = ["everything"]'], "warning-unknown 'everything'; there are membership"),
        (["most_auc = 1.5"], "settings-invalid most_auc: Input should be less than or equal to 1"),
        (["days = 400"], "keep-days 400 days are counted, but forgotten after 365"),
        (["smallest = "], "toml-invalid"),
        (["# " + "x" * MOST_BYTES_OF_A_POLICY], "settings-large 65536"),
        (["a = " + "[" * 5000], "toml-invalid"),
    ],
)
def test_a_wrong_policy_is_an_error_that_names_the_line(tmp_path: Path, lines: list[str], code: str) -> None:
    path = write_policy(tmp_path, *lines)
    with refused(BadSettings, code, str(path)):
        read_policy(tmp_path / "data.csv")


def test_a_policy_that_cannot_be_read_is_no_policy_of_defaults(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").mkdir()
    with refused(BadSettings, "settings-unreadable"):
        read_policy(tmp_path / "data.csv")
    with refused(BadSettings, "settings-unreadable"):
        read_policy(tmp_path / "data.csv", tmp_path / "nowhere.toml")


def test_the_fingerprint_is_of_what_it_says_not_of_how_it_is_written() -> None:
    one = settings_in(b'smallest = 7\nnever = ["a"] # this', "policy.toml", Policy)
    other = settings_in(b'never   = ["a"]\nsmallest=7\ndays = 365', "policy.toml", Policy)
    assert one.fingerprint == other.fingerprint
    assert one.fingerprint != Policy().fingerprint
    assert len(one.fingerprint) == 64


# --- people ---


@pytest.mark.parametrize("large", [False, True])
def test_rows_have_the_number_of_their_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    data, what = site(tmp_path / "a", whose=True), agreement()
    if large:
        monkeypatch.setattr("goldfc.site.table.table.LARGEST_IN_MEMORY", 10)
        monkeypatch.setattr("goldfc.site.table.readers.BYTES_OF_A_BLOCK", 1000)
    with open_table(data, what.columns, person_column="who") as table:
        assert isinstance(table.rows, InMemory) is not large
        people = table.people
    assert people is not None
    assert sorted(np.unique(people).tolist()) == list(range(40))
    whose = np.arange(120) // 3
    np.testing.assert_array_equal(people[:, None] == people[None, :], whose[:, None] == whose[None, :])
    with open_table(data, what.columns, id_column="who") as table:
        assert table.people is not None
        np.testing.assert_array_equal(table.people, people)
    with open_table(data, what.columns) as table:
        assert table.people is None


def test_rows_that_are_left_out_are_nobodys(tmp_path: Path) -> None:
    data, what = site(tmp_path / "a", whose=True), agreement(missing="drop")
    lines = data.read_text(encoding="utf-8").splitlines()
    data.write_text("\n".join([lines[0], ",1,p0", *lines[1:], ",2,"]), encoding="utf-8")
    people = as_table(read_all(data), what.columns, drop=True, person_column="who").people
    assert people is not None
    assert len(people) == 120


def test_a_person_is_the_same_as_text_as_a_number_and_with_a_decimal_point() -> None:
    names = [pa.array(who) for who in (["17", "4"], [" 17.0 ", "4.0"], [17, 4], [17.0, 4.0])]
    found = {tuple(person_digests(who, "who", np.ones(2, dtype=bool), strict=True).tolist()) for who in names}
    assert len(found) == 1


@pytest.mark.parametrize("large", [False, True])
def test_a_missing_column_or_name_of_people_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    data, what = site(tmp_path / "a", whose=True), agreement()
    if large:
        monkeypatch.setattr("goldfc.site.table.table.LARGEST_IN_MEMORY", 10)
        monkeypatch.setattr("goldfc.site.table.readers.BYTES_OF_A_BLOCK", 1000)
    with (
        pytest.raises(BadRows, match="There is no column 'patient', which is to say whose a row is; the file has"),
        open_table(data, what.columns, person_column="patient"),
    ):
        pass
    text = data.read_text(encoding="utf-8").replace(",p20\n", ",\n", 1)
    data.write_text(text, encoding="utf-8")
    with (
        pytest.raises(BadRows, match="Column 'who', row 61 below the header says nobody"),
        open_table(data, what.columns, person_column="who"),
    ):
        pass


def test_the_policys_person_comes_before_the_agreed_one() -> None:
    assert Policy(person="who").person_column(agreement(person_column="case")) == "who"
    assert Policy().person_column(agreement(person_column="case")) == "case"
    assert Policy().person_column(agreement(id_column="row")) is None  # readers take the id then


# --- the command ---


def test_the_command_says_which_policy_it_obeyed(tmp_path: Path) -> None:
    data = site(tmp_path / "a")
    write_agreement(data.parent, agreement())
    words = ("summarize", data, "-o", tmp_path / "east.summary", "--federation", data.with_name("federation.toml"))
    code, said = run(*words, "--dry-run")
    assert code == 0, said
    assert f"This site's policy: the defaults, since there is no {data.with_name('policy.toml')}" in said
    write_policy(data.parent, "smallest = 7")
    said = run(*words)[1]
    assert f"This site's policy: {data.with_name('policy.toml')} (at least 7 rows in a micro-cluster" in said
    assert Policy(smallest=7).fingerprint[:12] in said
    write_policy(data.parent, 'never = ["age"]')
    code, said = run(*words)
    assert code == 5
    assert has_sentence(said, "policy-never")


def test_a_dry_run_shows_refusals(tmp_path: Path) -> None:
    data, what = site(tmp_path / "a"), agreement()
    write_agreement(data.parent, what)
    send(draft_summary(table_of(data, what), "east", what, data), what, data, None, key=None)
    lines = data.read_text(encoding="utf-8").splitlines()
    data.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    federation = data.with_name("federation.toml")
    code, said = run("summarize", data, "-o", tmp_path / "east.summary", "--federation", federation, "--dry-run")
    assert code == 0
    assert "Refused (change): since the message of" in said
    assert "Nothing is written (--dry-run)." in said


def test_the_command_takes_people_from_the_policy(tmp_path: Path) -> None:
    data = site(tmp_path / "a", whose=True)
    write_agreement(data.parent, agreement())
    write_policy(data.parent, 'person = "who"')
    federation = data.with_name("federation.toml")
    assert run("summarize", data, "-o", tmp_path / "east.summary", "--federation", federation)[0] == 0
    assert '"people":40' in (data.parent / ".goldfc" / "ledger.jsonl").read_text(encoding="utf-8")
