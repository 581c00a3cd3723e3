"""The same people are recognised, however their table is dressed up; and nobody else can recognise them."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from goldfc._types import FloatArray
from goldfc.agreement import Agreement, Server
from goldfc.cli import main
from goldfc.errors import AuditRefused, BadSettings
from goldfc.site import ledger
from goldfc.site.digests import Key, open_kept, siphash
from goldfc.site.ledger import Ledger
from goldfc.site.membership import Guess
from goldfc.site.policy import Policy, read_policy
from goldfc.site.send import Draft, draft_summary, send
from goldfc.site.table.readers import read_all
from goldfc.site.table.table import as_table
from sentences import refused
from sites import Keys, agreement, write_policy

NAMES = ("age", "pressure", "weight", "ill")


@pytest.fixture(autouse=True)
def each_attack_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is made: what an attacker learns from the messages, which takes longest to find out, is not asked here."""
    monkeypatch.setattr("goldfc.site.summarize.membership_of", lambda *_: Guess(0.5, 0.0))


@dataclass(frozen=True)
class Given:
    """A table to be written: columns by name, and perhaps whose the rows are."""

    columns: dict[str, FloatArray]
    people: tuple[str, ...] = ()

    def write(self, data: Path) -> Path:
        """As CSV."""
        data.parent.mkdir(parents=True, exist_ok=True)
        cells = [list(map(repr, values.tolist())) for values in self.columns.values()]
        names = list(self.columns)
        if self.people:
            names, cells = [*names, "who"], [*cells, list(self.people)]
        lines = [",".join(names), *(",".join(row) for row in zip(*cells, strict=True))]
        data.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return data

    @property
    def agreement(self) -> Agreement:
        """On its columns."""
        return agreement(columns=[{"name": name} for name in self.columns])


def table_of(n_rows: int, seed: int = 0, start: int = 0) -> Given:
    """Rows; the first ones of one seed are always the same."""
    rng = np.random.default_rng([seed, 1])
    rows = np.round(rng.normal(size=(start + n_rows, 4)) * [12.0, 18.0, 9.0, 1.0] + [50.0, 130.0, 75.0, 0.0], 3)
    rows[:, 3] = rows[:, 3] > 0.5
    return Given(dict(zip(NAMES, rows[start:].T, strict=True)))


def draft(given: Given, data: Path, site: str = "east", **changes: object) -> Draft:
    what = given.agreement.model_copy(update=changes)
    person = read_policy(data).person
    return draft_summary(as_table(read_all(data), what.columns, person_column=person), site, what, data)


def sent(given: Given, data: Path, site: str = "east", **changes: object) -> bytes:
    made = draft(given, given.write(data), site, **changes)
    return send(made, given.agreement.model_copy(update=changes), data, None, key=None, accept_risk=True)


def refusals(given: Given, data: Path, site: str = "east", **changes: object) -> list[str]:
    return [failure.name for failure in draft(given, given.write(data), site, **changes).audit.failures]


def test_the_keyed_digest_is_siphash() -> None:
    """By the vector of its authors: the key 00 to 0f, the message 00 to 07."""
    key = Key(int.from_bytes(bytes(range(8)), "little"), int.from_bytes(bytes(range(8, 16)), "little"))
    message = np.array([int.from_bytes(bytes(range(8)), "little")], dtype=np.uint64)
    assert siphash(message, key).tolist() == [0x93F5F5799A932462]


DRESSES: dict[str, Callable[[Given], Given]] = {
    "as it is": lambda given: given,
    "columns in another order": lambda given: Given({name: given.columns[name] for name in reversed(given.columns)}),
    "other units": lambda given: Given({name: 1000.0 * column for name, column in given.columns.items()}),
    "other units with another zero": lambda given: Given(
        {n: 1.8 * column + 32.0 for n, column in given.columns.items()}
    ),
    "one unit changed": lambda given: Given({**given.columns, "weight": given.columns["weight"] / 0.45359237}),
    "rows in another order": lambda given: Given({n: column[::-1].copy() for n, column in given.columns.items()}),
    "other names": lambda given: Given({f"col{n}": column for n, column in enumerate(given.columns.values())}),
    "a column less": lambda given: Given({name: given.columns[name] for name in NAMES[:3]}),
    "a column more": lambda given: Given(
        {**given.columns, "new": np.random.default_rng(9).normal(size=len(given.columns["age"]))}
    ),
}


@pytest.mark.parametrize("dress", DRESSES)
def test_the_same_people_are_recognised_however_their_table_is_dressed_up(tmp_path: Path, dress: str) -> None:
    sent(table_of(80), tmp_path / "a" / "data.csv")
    for n_rows, names in ((80, []), (81, ["change"]), (83, ["change"]), (77, ["change"]), (95, [])):
        other = DRESSES[dress](table_of(n_rows))
        made = draft(other, other.write(tmp_path / "a" / "other.csv"), "west", round=4)
        assert made.audit.change is not None
        assert made.audit.change.people == abs(n_rows - 80)
        assert [failure.name for failure in made.audit.failures] == names


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    scales=st.lists(st.floats(0.001, 1000.0), min_size=4, max_size=4),
    shifts=st.lists(st.floats(-1000.0, 1000.0), min_size=4, max_size=4),
    columns=st.permutations(NAMES),
    new=st.integers(-3, 3),
)
def test_no_order_unit_or_shift_hides_the_same_people(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    scales: list[float],
    shifts: list[float],
    columns: list[str],
    new: int,
) -> None:
    folder, rng = tmp_path_factory.mktemp("site"), np.random.default_rng(seed)
    first = table_of(80, seed)
    later, order = table_of(80 + new, seed), rng.permutation(80 + new)
    units = dict(zip(NAMES, zip(scales, shifts, strict=True), strict=True))
    other = Given({name: (later.columns[name] * units[name][0] + units[name][1])[order] for name in columns})
    sent(first, folder / "data.csv")
    made = draft(other, other.write(folder / "data.csv"), "west", round=4)
    assert made.audit.change is not None
    assert made.audit.change.people == abs(new)


def test_other_people_are_others(tmp_path: Path) -> None:
    sent(table_of(80), tmp_path / "data.csv")
    for other in (table_of(80, seed=1), table_of(80, start=80), table_of(81, seed=2)):
        assert draft(other, other.write(tmp_path / "data.csv")).audit.change is None


def test_with_names_people_are_recognised_by_their_names_whatever_was_measured(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    write_policy(tmp_path, 'person = "who"')
    names = tuple(f"p{number}" for number in range(90))
    sent(Given(table_of(80).columns, names[:80]), data)
    again = Given(table_of(81, seed=5).columns, names[:81])
    assert refusals(again, data) == ["change"]
    assert refusals(Given(table_of(80, seed=5).columns, names[:80]), data) == []
    assert refusals(Given(table_of(85, seed=5).columns, names[:85]), data) == []
    one = table_of(80)
    one.columns["age"][7] += 40.0  # more than rounding hides
    assert refusals(Given(one.columns, names[:80]), data) == ["change"]


def test_visits_of_one_person_are_one_person(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    write_policy(tmp_path, 'person = "who"')
    whose = tuple(f"p{number // 6}" for number in range(120))
    sent(Given(table_of(114).columns, whose[:114]), data)
    made = draft(Given(table_of(120).columns, whose), Given(table_of(120).columns, whose).write(data))
    assert made.audit.change is not None
    assert (made.audit.change.added, made.audit.change.removed) == (1, 0)


def test_the_very_same_message_is_sent_again_byte_for_byte(tmp_path: Path) -> None:
    keys, data = Keys.new(), table_of(80).write(tmp_path / "data.csv")
    what = keys.agreement(columns=[{"name": name} for name in NAMES])
    letters = set()
    for _ in range(3):
        made = draft_summary(as_table(read_all(data), what.columns), "east", what, data)
        letters.add(send(made, what, data, None, key=keys.sites["east"]))
    assert len(letters) == 1
    events = [json.loads(line)["event"] for line in (tmp_path / ".goldfc" / "ledger.jsonl").read_text().splitlines()]
    assert events == ["sent", "sent again", "sent again"]
    other = what.model_copy(update={"server": Server(key=Keys.new().server.public.text)})
    made = draft_summary(as_table(read_all(data), what.columns), "east", other, data)
    assert send(made, other, data, None, key=keys.sites["east"]) not in letters  # sealed for somebody else


def test_rounds_of_the_same_people_are_counted_and_end(tmp_path: Path) -> None:
    write_policy(tmp_path, "most_messages = 3")
    data = tmp_path / "data.csv"
    for number in range(4, 7):
        assert refusals(table_of(80), data, round=number) == []
        sent(table_of(80), data, round=number)
    assert refusals(table_of(80), data, round=7) == ["messages"]
    assert refusals(table_of(80), data, round=6) == []  # the same message as before
    assert refusals(table_of(80, seed=1), data, round=7) == []


def test_the_same_people_answer_few_different_questions(tmp_path: Path) -> None:
    given, data = table_of(80), tmp_path / "data.csv"
    for left_out in NAMES[:3]:
        columns = {name: column for name, column in given.columns.items() if name != left_out}
        assert refusals(Given(columns), data) == []
        sent(Given(columns), data)
        sent(Given(dict(reversed(columns.items()))), data, round=2)  # the order of columns makes no other question
    assert refusals(given, data) == ["questions"]
    assert refusals(Given(columns), data, round=3) == []
    assert refusals(Given(columns), data, smallest=9) == ["questions"]
    write_policy(tmp_path, "most_questions = 4")
    assert refusals(given, data) == []


def later(monkeypatch: pytest.MonkeyPatch, **ago: float) -> None:
    """Let time pass."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            assert tz is UTC
            return datetime.now(UTC) + timedelta(**ago)

    monkeypatch.setattr(ledger, "datetime", Clock)
    monkeypatch.setattr("goldfc.site.send.datetime", Clock)


def test_old_messages_do_not_count_and_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_policy(tmp_path, "most_messages = 1", "days = 10", "keep_days = 100")
    data = tmp_path / "data.csv"
    sent(table_of(80), data)
    assert refusals(table_of(80), data, round=4) == ["messages"]
    later(monkeypatch, days=11)
    assert refusals(table_of(80), data, round=4) == []
    assert refusals(table_of(81), data, round=4) == ["change"]  # what is kept is compared
    later(monkeypatch, days=101)
    sent(table_of(80, seed=3), data, round=4)
    assert len(list((tmp_path / ".goldfc").glob("*.rows"))) == 1
    assert refusals(table_of(81), data, round=5) == []


@pytest.mark.parametrize("way", ["policy", "environment", "above"])
def test_several_folders_of_a_site_share_one_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    first, second = tmp_path / "one" / "data.csv", tmp_path / "two" / "deep" / "data.csv"
    for data in (first, second):
        data.parent.mkdir(parents=True)
        if way == "policy":
            write_policy(data.parent, f'ledger = "{tmp_path / "ours"}"')
    if way == "environment":
        monkeypatch.setenv("GOLDFC_LEDGER", str(tmp_path / "ours"))
    sent(table_of(80), tmp_path / "data.csv" if way == "above" else first)
    assert refusals(table_of(81), second) == ["change"]
    assert not (second.parent / ".goldfc").exists()


def test_a_ledger_above_is_only_taken_if_it_is_ours_alone(tmp_path: Path) -> None:
    sent(table_of(80), tmp_path / "data.csv")
    below = tmp_path / "below" / "data.csv"
    below.parent.mkdir()
    assert Ledger.of(below, Policy()).folder == tmp_path / ".goldfc"
    (tmp_path / ".goldfc").chmod(0o755)
    assert Ledger.of(below, Policy()).folder == tmp_path / "below" / ".goldfc"


def test_a_link_in_place_of_the_private_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".goldfc").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadSettings, match="no link to one"):
        sent(table_of(80), tmp_path / "data.csv")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_digests_of_two_sites_have_nothing_in_common(tmp_path: Path) -> None:
    digests = []
    for name in ("one", "two"):
        sent(table_of(80), tmp_path / name / "data.csv")
        (path,) = (tmp_path / name / ".goldfc").glob("*.rows")
        with open_kept(path) as kept:
            digests.append(np.concatenate(list(kept.blocks())))
    assert not np.intersect1d(digests[0], digests[1]).size


def test_without_its_secret_a_ledger_says_so(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    sent(table_of(80), data)
    secret = tmp_path / ".goldfc" / "secret"
    secret.chmod(0o644)
    with refused(BadSettings, "secret-shared"):
        draft(table_of(80), data, round=4)
    secret.unlink()
    with refused(BadSettings, "secret-gone"):
        draft(table_of(80), data, round=4)


def test_of_two_messages_made_at_once_the_second_is_made_anew(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    one, other = table_of(80), table_of(81)
    first, second = draft(one, one.write(data)), draft(other, other.write(data))
    send(first, one.agreement, data, None, key=None)
    with refused(AuditRefused, "not-compared"):
        send(second, other.agreement, data, None, key=None)


def test_every_line_says_which_policy_was_obeyed(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    sent(table_of(80), data)
    write_policy(tmp_path, "smallest = 9")
    sent(table_of(80), data, round=4)
    lines = (tmp_path / ".goldfc" / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["policy"] for line in lines] == [Policy().fingerprint, Policy(smallest=9).fingerprint]
    assert [json.loads(line)["smallest"] for line in lines] == [5, 9]


# --- forgetting ---


def forget(data: Path, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["forget", str(data), *options], catch_exceptions=False)
    return result.exit_code, " ".join(result.output.split())


def names_in(folder: Path) -> list[str]:
    return sorted(path.suffix or path.name for path in folder.iterdir())


def test_what_is_forgotten_is_gone_and_only_that_it_was_is_written_down(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    sent(table_of(80), data)
    code, said = forget(data)
    assert (code, said) == (2, "goldfc: 1 messages would be forgotten; say --yes if that is intended.")
    assert names_in(tmp_path / ".goldfc") == [".json", ".jsonl", ".lock", ".message", ".rows", "secret"]
    assert forget(data, "--yes")[0] == 0
    assert names_in(tmp_path / ".goldfc") == [".json", ".jsonl", ".lock", "secret"]
    last = json.loads((tmp_path / ".goldfc" / "ledger.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert set(last) == {"time", "event", "policy"}
    assert last["event"] == "forgot"
    assert refusals(table_of(81), data) == []
    assert "Nothing of that kind is kept" in forget(data, "--yes")[1]


def test_one_message_or_those_of_before_a_day_can_be_forgotten(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    for number in (4, 5, 6):
        sent(table_of(80), data, round=number)
    lines = (tmp_path / ".goldfc" / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    first, second, third = map(json.loads, lines)
    assert forget(data, "--message", first["sha256"][:12], "--yes")[0] == 0
    assert Ledger(tmp_path / ".goldfc").digests() == {second["digest"], third["digest"]}
    assert forget(data, "--message", second["digest"][:12], "--yes")[0] == 0
    assert forget(data, "--message", "12", "--yes")[0] == 2
    assert forget(data, "--message", "1" * 8, "--before", "2027-01-01", "--yes")[0] == 2
    assert forget(data, "--before", "2020-01-01", "--yes")[0] == 0
    assert Ledger(tmp_path / ".goldfc").digests() == {third["digest"]}
    assert forget(data, "--before", "2999-01-01", "--yes")[0] == 0
    assert Ledger(tmp_path / ".goldfc").digests() == frozenset()


def test_a_damaged_file_can_be_forgotten(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    sent(table_of(80), data)
    (path,) = (tmp_path / ".goldfc").glob("*.rows")
    path.write_bytes(b"nothing")
    assert forget(data, "--message", path.stem[:12], "--yes")[0] == 0
    assert refusals(table_of(81), data) == []


def test_everything_that_stays_is_private(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        sent(table_of(80), tmp_path / "data.csv")
    finally:
        os.umask(old)
    assert (tmp_path / ".goldfc").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / ".goldfc").iterdir()} == {0o600}


@pytest.mark.parametrize("step", ["write_kept", "write_durably"])
def test_nothing_leaves_if_what_must_stay_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    given, data, out = table_of(80), tmp_path / "data.csv", tmp_path / "east.summary"
    made = draft(given, given.write(data))

    def fails(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, step, fails)
        with pytest.raises(OSError, match="No space left"):
            send(made, given.agreement, data, out, key=None)
    assert not out.exists()
    assert Ledger(tmp_path / ".goldfc").digests() == frozenset()
    message = send(draft(given, data), given.agreement, data, out, key=None)
    assert out.read_bytes() == message
