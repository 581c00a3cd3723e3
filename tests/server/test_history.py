"""A federation's folder over several rounds: what is kept, what is forgotten, and what is refused."""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from goldfc import summarize
from goldfc.errors import BadMessage, BadSettings, TooFewSites
from goldfc.message.columns import Column
from goldfc.message.wire import encode
from goldfc.server.deliver import read_model
from goldfc.server.folder import Folder
from goldfc.server.one_shot import fusion_of
from goldfc.server.round import fuse_admitted, judged
from sentences import refused
from sites import NAMES, agreement, bodies, rows_of, summary_of, write_agreement


def bodies_in(number: int) -> dict[str, bytes]:
    """What the sites send in a round."""
    return bodies(agreement(round=number))


def folder_in(path: Path, number: int, sent: Mapping[str, bytes]) -> Folder:
    """The folder as it is once a round has begun, with what sites have put into its inbox."""
    path.mkdir(exist_ok=True)
    write_agreement(path, agreement(round=number))
    folder = Folder(path)
    for name, body in sent.items():
        put(folder, name, body)
    return folder


def put(folder: Folder, name: str, body: bytes) -> None:
    """A file in the inbox that nobody writes any more."""
    path = folder.inbox / f"{name}.summary"
    path.write_bytes(body)
    os.utime(path, (0.0, 0.0))


def run(path: Path, number: int, sent: Mapping[str, bytes]) -> Folder:
    """A whole round."""
    folder = folder_in(path, number, sent)
    assert {event.outcome for event in folder.take_in()} <= {"accepted", "again"}
    folder.close()
    folder.fuse(3)
    return folder


@pytest.fixture
def second(tmp_path: Path) -> Folder:
    """After two rounds; in the second only north had something new."""
    run(tmp_path / "f", 3, bodies_in(3))
    return run(tmp_path / "f", 4, {"north": new_of("north", 4)})


def new_of(name: str, number: int) -> bytes:
    """A summary of other rows than before, in a round."""
    terms = agreement(round=number).terms
    message = summarize(rows_of(number), name, fusion_of(agreement()).task, terms=terms)[0].to_message()
    return encode(message)


def test_a_site_with_nothing_new_sends_nothing(second: Folder) -> None:
    assert second.status.accepted == NAMES
    assert second.status.earlier == {"east": 3, "south": 3, "west": 3}
    model = read_model(second.path / "global.model")
    assert model.sites == NAMES
    assert model.terms.round == 4


def test_the_model_is_made_after_the_last_one(second: Folder) -> None:
    model = read_model(second.path / "global.model")
    assert model.after == read_model(second.path / "rounds" / "3" / "global.model").digest
    assert (second.path / "rounds" / "3" / "closed.json").is_file()
    assert model.ids.tolist() == [0, 1, 2]


def test_a_late_site_sends_one_file_and_nobody_else_does_anything(tmp_path: Path) -> None:
    run(tmp_path / "f", 3, {name: bodies_in(3)[name] for name in NAMES[:3]})
    folder = run(tmp_path / "f", 4, {NAMES[3]: bodies_in(4)[NAMES[3]]})
    model = read_model(folder.path / "global.model")
    assert model.sites == NAMES
    assert model.descent is not None
    assert model.descent.joined == NAMES[3:]


def test_what_was_rejected_goes_with_its_round(tmp_path: Path) -> None:
    folder = folder_in(tmp_path / "f", 3, {**bodies_in(3), "junk": b"junk" * 10})
    assert [event.outcome for event in folder.take_in()].count("rejected") == 1
    folder.close()
    folder.fuse(3)
    folder = folder_in(tmp_path / "f", 4, {})
    folder.begin()
    assert folder.refused() == {}
    assert (folder.path / "rounds" / "3" / "rejected" / "junk.summary").is_file()


def test_a_site_that_withdraws_is_left_out_and_that_is_told(second: Folder) -> None:
    folder = folder_in(second.path, 5, {})
    folder.begin()
    folder.withdraw("west")
    folder.withdraw("west")  # whoever was killed says it again
    folder.close()
    model = folder.fuse(3).model
    assert model.sites == NAMES[:3]
    assert model.descent is not None
    assert model.descent.left == ("west",)
    assert (folder.path / "withdrawn" / "west.summary").is_file()


def test_nobody_withdraws_who_is_not_in_or_once_there_is_a_model(second: Folder) -> None:
    with refused(BadSettings, "round-has-model"):
        second.withdraw("west")
    with refused(BadSettings, "site-not-in"):
        second.withdraw("nowhere", replace=True)


def test_a_summary_of_an_earlier_round_is_not_taken_from_the_inbox(second: Folder) -> None:
    put(second, "west", bodies_in(3)["west"])
    folder = folder_in(second.path, 5, {})
    assert [event.outcome for event in folder.take_in()] == ["rejected"]


def test_rounds_go_forward_only(second: Folder) -> None:
    with refused(BadSettings, "round-over"):
        folder_in(second.path, 3, {}).begin()


def test_a_model_that_is_put_in_the_place_of_another_one_is_refused(second: Folder) -> None:
    folder = folder_in(second.path, 5, {})
    folder.begin()
    old, new = (folder.path / "rounds" / number / "global.model" for number in ("3", "4"))
    good = new.read_bytes()
    shutil.copy(old, new)
    with refused(BadMessage, "history-round"):
        folder.before()
    model = read_model(old)
    new.write_bytes(encode(replace(model, terms=agreement(round=4).terms).to_message()))
    with refused(BadMessage, "history-forged"):
        folder.before()
    new.write_bytes(good)
    assert folder.before() is not None


def test_a_model_of_another_federation_is_not_followed(second: Folder) -> None:
    other = agreement(round=5, columns=(Column(name="height"), Column(name="weight")))
    with refused(BadMessage, "model-before-other"):
        fuse_admitted(
            [summary_of(number, name, other)[0] for number, name in enumerate(NAMES)],
            other,
            3,
            after=read_model(second.path / "global.model"),
        )


def test_a_window_forgets_what_is_older() -> None:
    what = agreement(round=5, memory={"window": 2})
    summaries = [summary_of(0, "east", agreement(round=number))[0] for number in (3, 4, 5)]
    summaries = [replace(one, site=name) for one, name in zip(summaries, NAMES, strict=False)]
    with refused(TooFewSites, "too-few-sites"):
        fuse_admitted(summaries, what, 3)
    assert set(judged(summaries, what)[0]) == {"east"}


class Killed(BaseException):
    """As a process that is killed sees the world: no more."""


@dataclass
class Killer:
    """Kills after so many steps that are on the disk."""

    steps: int
    struck: bool = False

    def fsync(self, handle: int) -> None:
        """Instead of the real one."""
        os_fsync(handle)
        self.steps -= 1
        if self.steps < 0:
            self.struck = True
            raise Killed


os_fsync = os.fsync


def test_killed_after_any_step_on_the_disk_the_round_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, news = run(tmp_path / "history", 3, bodies_in(3)).path, {"north": new_of("north", 4)}
    shutil.copytree(history, tmp_path / "calm")
    calm, steps, struck = run(tmp_path / "calm", 4, news).path, 0, True
    while struck:
        path, killer = tmp_path / f"killed-{steps}", Killer(steps)
        shutil.copytree(history, path)
        with monkeypatch.context() as patch, suppress(Killed):
            patch.setattr(os, "fsync", killer.fsync)
            run(path, 4, news)
        run(path, 4, {})
        for name in ("global.model", "rounds/3/global.model", "rounds/3/closed.json", "accepted/north.summary"):
            assert (path / name).read_bytes() == (calm / name).read_bytes()
        steps, struck = steps + 1, killer.struck
    assert steps >= 15
