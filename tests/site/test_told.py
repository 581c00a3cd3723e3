"""What is told and kept at the ends of what there may be: no moments, many numbers, values beyond the ends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goldfc import summarize
from goldfc.errors import BadSettings
from goldfc.message.columns import Terms
from goldfc.message.task import Task
from goldfc.site import membership
from goldfc.site.audit import FirstRows
from goldfc.site.digests import Key, PartDigests, digest_of_cells, open_kept
from goldfc.site.ledger import Ledger
from goldfc.site.membership import Guess, logistic_regression
from goldfc.site.policy import Policy, read_policy
from goldfc.site.privacy import Precision, Steps, coarse_shape
from goldfc.site.rows import Rows, checked
from goldfc.site.send import draft_summary, send
from goldfc.site.summarize import as_large, tell
from goldfc.site.table.readers import read_all
from goldfc.site.table.table import as_table
from sentences import refused
from sites import agreement, rows_of, write_policy


def sent(data: Path) -> bytes:
    """A message of a table beside its ledger, without an attack on it."""
    what = agreement()
    rows = rows_of(0, 200).tolist()
    names = ",".join(column.name for column in what.columns)
    data.write_text("\n".join([names, *(",".join(map(repr, row)) for row in rows)]) + "\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("goldfc.site.summarize.membership_of", lambda *_: Guess(0.5, 0.0))
        draft = draft_summary(as_table(read_all(data), what.columns), "east", what, data)
    return send(draft, what, data, None, key=None, accept_risk=True)


def test_of_many_numbers_variances_alone_are_told_in_steps_of_their_own() -> None:
    zero = np.zeros(3)
    steps = Steps(zero, zero, zero, zero, coarseness=1.0)
    coarse = coarse_shape(np.array([4.0, 1.0, 0.0]), Precision(np.array([50]), 50, steps, steps))
    np.testing.assert_allclose(coarse, [4.0, 1.0, 0.0], rtol=0.2)


def test_a_sample_without_moments_stands_for_all_rows() -> None:
    columns = tuple(column.model_copy(update={"range": (-500.0, 500.0)}) for column in agreement().columns)
    task = Task(scaling="ranges")
    summary, _ = summarize(rows_of(0, 100), "a", task, terms=Terms(columns=columns), stands_for=1_000)
    assert summary.moments is None
    assert summary.rows == pytest.approx(1_000, abs=100)


@pytest.mark.parametrize(("part", "people"), [(300, 1), (100, 5), (20, 1)])
def test_a_small_part_of_the_people_tells_no_less_of_each_and_has_several_micro_clusters(
    part: int, people: int
) -> None:
    rows = rows_of(0, 400)
    told = tell(checked(rows, "a"), "a", Task(most=10))
    assert as_large(Rows.of(rows[:part]), told) == people


def test_the_first_row_with_a_value_is_found_in_whichever_block_it_is() -> None:
    first = FirstRows(np.zeros(4, dtype=np.int64), {(0, 0): 7.0})
    first.see(slice(0, 2), np.array([[1.0], [2.0]]))
    first.see(slice(2, 4), np.array([[3.0], [7.0]]))
    assert first.places == {(0, 0): 3}


def test_steps_that_run_out_leave_weights_that_tell_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "MOST_NEWTON_STEPS", 1)
    member = np.repeat([0, 1], 50)
    X = member[:, None] + np.random.default_rng(0).normal(size=(100, 1))
    assert logistic_regression(X, member)[0] > 0.0


def test_a_digest_is_the_same_looked_up_or_worked_out() -> None:
    key, values = Key(1, 2), np.array([[-3.0], [0.0], [0.25], [1.0], [9.0]])
    many = PartDigests.for_many(key, 10**7)
    assert isinstance(many, PartDigests)
    assert PartDigests.for_many(key, 10) is key
    for some in (values, values[1:4]):
        np.testing.assert_array_equal(digest_of_cells(some, 0.0, 1.0, many), digest_of_cells(some, 0.0, 1.0, key))


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts.update(names=[]),
        lambda facts: facts.update(sent="2026-11-20T12:00:00"),
        lambda facts: facts.pop("to"),
    ],
    ids=["a name too few", "no time zone", "not to whom"],
)
def test_digests_that_do_not_say_of_what_they_are_are_damaged(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any]
) -> None:
    sent(tmp_path / "data.csv")
    (path,) = (tmp_path / ".goldfc").glob("*.rows")
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    facts = json.loads(header["__metadata__"]["goldfc"])
    change(facts)
    header["__metadata__"]["goldfc"] = json.dumps(facts)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    with refused(BadSettings, "digests-damaged"), open_kept(path):
        pass


def test_the_ledger_knows_when_a_site_sent_something_new(tmp_path: Path) -> None:
    kept = Ledger.of(tmp_path / "data.csv", Policy())
    assert kept.last_sent("east") is None
    sent(tmp_path / "data.csv")
    assert kept.last_sent("west") is None
    assert kept.last_sent("east") is not None


def test_a_policy_may_accept_the_warnings_that_there_are(tmp_path: Path) -> None:
    write_policy(tmp_path, 'accept = ["near", "constant"]')
    assert read_policy(tmp_path / "data.csv").accept == ("near", "constant")
