"""A live node obeys its site's policy: nobody sits in front of it, so what is doubtful stays there."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="goldfc[flower] is not installed")

from flwr.app import Message

from goldfc.agreement import Agreement
from goldfc.site import audit
from goldfc.transport.flower.records import SENTENCES
from sites import agreement, rows_of, write_agreement, write_policy
from transport.flower.fake import question_of, real
from transport.flower.loopback import write_site

WHAT = agreement()


def write_rows(data: Path, n_rows: int, seed: int = 0) -> None:
    """The first rows of a site."""
    lines = [f"{age!r},{pressure!r}" for age, pressure in rows_of(seed)[:n_rows].tolist()]
    data.write_text("\n".join(["age,pressure", *lines]) + "\n", encoding="utf-8")


def asked(data: Path, what: Agreement = WHAT, **settings: str | Path | bool) -> tuple[bytes, str]:
    """What a node answers: its message, or its refusal."""
    question = Message(question_of(what), 1, "query.summarize")
    question.metadata.__dict__["_message_id"] = "1"
    reply = real(data=data, site="east", **settings)(question)
    assert reply is not None
    record = reply.content.config_records["goldfc"]
    body, refusal = record["body"], record["refusal"]
    assert isinstance(body, bytes)
    assert isinstance(refusal, str)
    assert bool(body) != bool(refusal)
    return body, refusal


def events(data: Path) -> list[str]:
    lines = (data.parent / ".goldfc" / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["event"] for line in lines]


def test_asked_at_80_81_and_82_rows_a_node_refuses_the_second_and_the_third(tmp_path: Path) -> None:
    data = write_site(tmp_path / "a", 0, WHAT)
    write_policy(data.parent, "least_seconds = 0")
    write_rows(data, 80)
    first, refusal = asked(data)
    assert not refusal
    for n_rows in (81, 82):
        write_rows(data, n_rows)
        assert asked(data) == (b"", "withheld")
    write_rows(data, 80)
    assert asked(data) == (first, "")
    assert events(data) == ["sent", "refused", "refused", "sent again"]
    write_rows(data, 90)
    assert asked(data)[1] == ""


def test_a_warning_is_a_refusal_unless_the_policy_accepts_it_by_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "TELLS_MEMBERS", 0.0)
    data = write_site(tmp_path / "a", 0, WHAT)
    with caplog.at_level(logging.WARNING, logger="goldfc.flower"):
        assert asked(data) == (b"", "withheld")
    assert "goldfc: membership: whoever has a row can guess" in caplog.text
    assert events(data) == ["refused"]
    write_policy(data.parent, 'accept = ["constant"]')
    assert asked(data) == (b"", "withheld")
    write_policy(data.parent, "most_auc = 0.0", 'accept = ["membership"]')
    assert asked(data) == (b"", "withheld")  # above the site's own limit it is no warning
    write_policy(data.parent, 'accept = ["membership"]')
    assert asked(data)[1] == ""
    last = (data.parent / ".goldfc" / "ledger.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    assert json.loads(last)["warnings"] == ["membership"]


def test_something_new_leaves_only_now_and_then_and_the_same_at_any_time(tmp_path: Path) -> None:
    data = write_site(tmp_path / "a", 0, WHAT)
    first, _ = asked(data)
    other = agreement(round=4)
    write_agreement(data.parent, other)
    assert asked(data, other) == (b"", "withheld")
    write_agreement(data.parent, WHAT)
    assert asked(data) == (first, "")
    write_agreement(data.parent, other)
    write_policy(data.parent, "least_seconds = 0")
    assert asked(data, other)[1] == ""


def test_rounds_of_the_same_people_end(tmp_path: Path) -> None:
    data = write_site(tmp_path / "a", 0, WHAT)
    write_policy(data.parent, "least_seconds = 0", "most_messages = 2")
    found = []
    for number in (4, 5, 6):
        write_agreement(data.parent, agreement(round=number))
        found.append(asked(data, agreement(round=number))[1])
    assert found == ["", "", "withheld"]


def test_all_refusals_that_depend_on_rows_are_one_word(tmp_path: Path) -> None:
    data = write_site(tmp_path / "a", 0, WHAT)
    rng = np.random.default_rng(0)
    tables = {
        "too few": "age,pressure\n" + "30.5,110.25\n" * 4,
        "all alike": "age,pressure\n" + "30.5,110.25\n" * 60,
        "no number": "age,pressure\n30,many\n",
        "out of range": "age,pressure\n" + "".join(f"{age},100\n" for age in rng.uniform(100, 130, 60)),
        "no rows": "age,pressure\n",
        "no table": "",
    }
    for text in tables.values():
        data.write_text(text, encoding="utf-8")
        assert asked(data) == (b"", "withheld")
    data.unlink()
    assert asked(data) == (b"", "withheld")
    assert "rows" not in SENTENCES
    assert "audit" not in SENTENCES


def test_what_was_agreed_on_is_refused_by_the_policy_in_a_word_of_its_own(tmp_path: Path) -> None:
    two = agreement(limits={"least_sites": 2})
    data = write_site(tmp_path / "a", 0, two)
    assert asked(data, two)[1] == ""
    (data.parent / "policy.toml").unlink()
    assert asked(data, two) == (b"", "policy")
    elsewhere = write_policy(tmp_path, "least_sites = 2")
    assert asked(data, two, policy=elsewhere)[1] == ""
    assert asked(data, two, policy=tmp_path / "nowhere.toml") == (b"", "settings")


def test_the_policy_of_a_node_is_not_taken_from_where_it_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_site(tmp_path / "a", 0, WHAT)
    write_policy(tmp_path, 'never = ["age"]')
    monkeypatch.chdir(tmp_path)
    assert asked(data)[1] == ""
