"""The server's folder: messages are taken in, kept, refused with a reason, and fused."""

import errno
import os
import random
import re
import shutil
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from goldfc import summarize
from goldfc._types import FloatArray
from goldfc.agreement import Agreement, Bounds, ListedSite
from goldfc.errors import BadMessage, BadSettings, TooFewSites
from goldfc.message.columns import Column
from goldfc.message.envelope import PrivateKey
from goldfc.message.message import Message
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.message.wire import decode, encode, read_message
from goldfc.server.folder import CLAIMED, Event, Folder, claimed_name
from goldfc.server.one_shot import fusion_of, pool, shares_of
from goldfc.server.round import fuse_admitted
from goldfc.site.send import open_model
from sentences import has_sentence, refused
from sites import NAMES, Keys, agreement, bodies, summary_of, write_agreement

NOBODY = 65534


def folder_of(path: Path, what: Agreement, key: PrivateKey | None = None) -> Folder:
    path.mkdir(exist_ok=True)
    write_agreement(path, what)
    return Folder(path, key)


def put(folder: Folder, name: str, content: bytes, *, age: float = 60.0) -> Path:
    """A file in the inbox that nobody writes any more."""
    path = folder.inbox / name
    path.write_bytes(content)
    moment = path.stat().st_mtime - age
    os.utime(path, (moment, moment))
    return path


def take(folder: Folder) -> list[Event]:
    return list(folder.take_in())


def outcomes(events: list[Event]) -> list[str]:
    return [event.outcome for event in events]


def model_of(folder: Folder) -> Model:
    return Model.from_message(decode((folder.path / "global.model").read_bytes()))


def test_what_is_accepted_is_kept_and_becomes_the_model(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", agreement(sites=tuple(ListedSite(name=name) for name in NAMES)))
    sent = bodies(folder.agreement)
    for name in NAMES[:3]:
        put(folder, f"{name}.summary", sent[name])
    assert outcomes(take(folder)) == ["accepted"] * 3
    assert folder.status.accepted == NAMES[:3]
    assert folder.status.missing == NAMES[3:]
    assert list(folder.inbox.iterdir()) == []
    folder.close()
    folder.fuse(3)
    assert model_of(folder).sites == NAMES[:3]
    assert len(model_of(folder).centroids) == 3


def test_the_same_bytes_twice_are_accepted_once_and_that_is_said(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    body = bodies(folder.agreement)["east"]
    put(folder, "a.summary", body)
    put(folder, "b.summary", body)
    events = take(folder)
    assert outcomes(events) == ["accepted", "again"]
    assert "'east' is in already, the very same" in events[1].sentence


def test_of_two_different_ones_the_first_is_kept_and_the_conflict_reported(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    first = bodies(folder.agreement)["east"]
    other = encode(summary_of(7, "east", folder.agreement)[0].to_message())
    put(folder, "a.summary", first)
    put(folder, "b.summary", other)
    events = take(folder)
    assert outcomes(events) == ["accepted", "rejected"]
    assert "site 'east' has sent another summary before; the first one is kept" in events[1].sentence
    assert (folder.accepted / "east.summary").read_bytes() == first
    assert (folder.rejected / "b.summary").read_bytes() == other
    assert "has sent another summary" in (folder.rejected / "b.summary.reason.txt").read_text(encoding="utf-8")


def test_two_bad_files_of_the_same_name_are_both_kept(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    for content in (b"one", b"two"):
        put(folder, "x.summary", content)
        assert outcomes(take(folder)) == ["rejected"]
    assert (folder.rejected / "x.summary").read_bytes() == b"one"
    assert (folder.rejected / "x.summary.2").read_bytes() == b"two"
    assert len(folder.refused()) == 2


def changed(what: Agreement, **changes: object) -> bytes:
    """A message of a federation that agreed on something else."""
    other = agreement(**{"limits": what.limits, "privacy": what.privacy, **changes})
    return encode(summary_of(0, "east", other)[0].to_message())


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (lambda _: b"", "file-empty"),
        (lambda what: bodies(what)["east"][:-9], "arrays-disagree"),
        (lambda _: b"PK\3\4" + bytes(100), "no-message"),
        (
            lambda what: changed(what, federation="others"),
            "summary-of-other-terms it is of federation 'others', not of 'wards'",
        ),
        (lambda what: changed(what, round=2), "summary-of-other-terms it is of round 2, not of round 3"),
        (
            lambda what: changed(what, columns=what.columns[::-1]),
            "summary-of-other-terms column 1 ('age') has the name 'pressure', not 'age'",
        ),
        (
            lambda what: changed(what, columns=(what.columns[0], Column(name="pressure", unit="kPa"))),
            "summary-of-other-terms column 2 ('pressure') has the unit 'kPa', not 'mmHg'",
        ),
        (lambda what: changed(what, privacy="plain"), "privacy-level-low its level is 'plain'"),
        (lambda what: changed(what, limits=Bounds(most_micro_clusters=60)), "too-many-micro-clusters at most 5"),
        (lambda _: encode(Message("model", {}, {})), "header-invalid"),
    ],
)
def test_what_does_not_fit_is_rejected_with_the_reason(tmp_path: Path, content: object, what: str) -> None:
    folder = folder_of(tmp_path / "f", agreement(limits=Bounds(most_micro_clusters=5)))
    before = bodies(folder.agreement)
    put(folder, "north.summary", before["north"])
    put(folder, "odd.summary", content(folder.agreement))  # type: ignore[operator]
    events = {event.file: event for event in take(folder)}
    assert events["odd.summary"].outcome == "rejected"
    code, _, value = what.partition(" ")
    assert has_sentence(events["odd.summary"].sentence, code)
    assert value in events["odd.summary"].sentence
    assert (folder.accepted / "north.summary").read_bytes() == before["north"]


def test_values_outside_of_an_agreed_range_are_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    wide = agreement(columns=(Column(name="age", unit="years"), folder.agreement.columns[1]))
    summary, _ = summary_of(0, "east", wide)
    far = Summary(
        "east",
        summary.centroids + np.array([1000.0, 0.0]),
        summary.mass,
        summary.shape,
        replace(summary.moments, mean=summary.moments.mean + np.array([1000.0, 0.0])) if summary.moments else None,
        summary.level,
        folder.agreement.terms,
    )
    put(folder, "east.summary", encode(far.to_message()))
    (event,) = take(folder)
    assert event.outcome == "rejected"
    assert has_sentence(event.sentence, "outside-range")
    assert "in 'age', outside the agreed range from 0 to 120" in event.sentence


def test_links_pipes_and_folders_are_rejected_as_they_are(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    (folder.inbox / "link.summary").symlink_to(secret)
    os.mkfifo(folder.inbox / "pipe.summary")
    (folder.inbox / "tree.summary").mkdir()
    for entry in folder.inbox.iterdir():
        os.utime(entry, (1, 1), follow_symlinks=False)
    assert outcomes(take(folder)) == ["rejected"] * 3
    assert secret.read_text(encoding="utf-8") == "secret"
    assert (folder.rejected / "link.summary").is_symlink()


def test_no_name_in_the_inbox_can_stop_the_others(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    secret = tmp_path / "secret"
    secret.write_text("TOPSECRET", encoding="utf-8")
    (folder.inbox / "a.reason.txt").symlink_to(secret)
    os.mkfifo(folder.inbox / "b.reason.txt")
    (folder.inbox / ("c" * 240 + ".summary")).write_bytes(b"long")
    Path(os.fsdecode(os.fsencode(folder.inbox) + b"/d\xff\xe2\x80\xae.summary")).write_bytes(b"bytes")
    (folder.inbox / "e\n.summary").write_bytes(b"two lines")
    (folder.inbox / "f.summary").write_bytes(b"of tomorrow")
    for entry in folder.inbox.iterdir():
        os.utime(entry, (1, 1), follow_symlinks=False)
    tomorrow = datetime.now(UTC).timestamp() + 1e7
    os.utime(folder.inbox / "f.summary", (tomorrow, tomorrow))
    put(folder, "z.summary", bodies(folder.agreement)["east"])
    assert sorted(outcomes(take(folder))) == ["accepted", *["rejected"] * 6]
    refused = folder.refused()
    assert len(refused) == 6
    assert all(text.isprintable() and "TOPSECRET" not in text for text in (*refused, *refused.values()))
    assert secret.read_text(encoding="utf-8") == "TOPSECRET"


def test_a_message_still_being_written_is_waited_for(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    body = bodies(folder.agreement)["east"]
    put(folder, "east.summary", body[:500], age=0.0)
    put(folder, "north.summary.part", b"on its way")
    assert outcomes(take(folder)) == ["waiting"]
    put(folder, "east.summary", body, age=0.0)
    assert outcomes(take(folder)) == ["accepted"]


def test_after_closing_messages_are_late(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    sent = bodies(folder.agreement)
    for name in NAMES[:3]:
        put(folder, f"{name}.summary", sent[name])
    take(folder)
    folder.close()
    put(folder, "late.summary", sent["west"])
    (event,) = take(folder)
    assert event.outcome == "rejected"
    assert "it came too late, the round is closed" in event.sentence
    folder.fuse(3)
    assert model_of(folder).sites == NAMES[:3]


def test_a_round_keeps_its_model_unless_another_one_is_asked_for(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    sent = bodies(folder.agreement)
    for name in NAMES[:3]:
        put(folder, f"{name}.summary", sent[name])
    take(folder)
    assert folder.status.model is None
    folder.close()
    first = folder.fuse(3).model.fingerprint
    assert folder.fuse(3).model.fingerprint == first == folder.status.model
    with refused(BadSettings, "round-has-model", first):
        folder.fuse(2)
    assert model_of(folder).fingerprint == first
    assert folder.fuse(2, replace=True).model.fingerprint == model_of(folder).fingerprint != first


def test_a_listed_site_that_comes_too_late_gets_the_model(tmp_path: Path) -> None:
    keys = Keys.new()
    what = keys.agreement()
    folder = folder_of(tmp_path / "f", what, keys.server)
    sent = bodies(what)
    for name in NAMES[:3]:
        put(folder, f"{name}.summary", keys.sealed(sent[name], name, what))
    take(folder)
    folder.close()
    folder.fuse(3)
    put(folder, "west.summary", keys.sealed(sent["west"], "west", what))
    assert outcomes(take(folder)) == ["rejected"]
    letter = (folder.path / "sealed" / "west.model").read_bytes()
    assert open_model(letter, "west.model", what, "west", keys.sites["west"]).sites == NAMES[:3]


def test_the_deadline_closes(tmp_path: Path) -> None:
    past = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    assert folder_of(tmp_path / "f", agreement(deadline=past)).is_due()
    assert not folder_of(tmp_path / "g", agreement(deadline=past + timedelta(days=1))).is_due()


@pytest.mark.parametrize("count", [0, 1, 2])
def test_with_fewer_than_three_sites_nothing_is_fused(tmp_path: Path, count: int) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    sent = bodies(folder.agreement)
    for name in NAMES[:count]:
        put(folder, f"{name}.summary", sent[name])
    take(folder)
    with pytest.raises((TooFewSites, BadMessage)) as caught:
        folder.fuse(3)
    assert caught.value.code in {"too-few-sites", "no-summaries"}
    assert not (folder.path / "global.model").exists()


def test_fifty_orders_of_arrival_give_one_model(tmp_path: Path) -> None:
    what = agreement()
    sent, order, models = bodies(what), list(NAMES), set()
    shuffle = random.Random(0)  # noqa: S311 (an order, no secret)
    for number in range(50):
        shuffle.shuffle(order)
        folder = folder_of(tmp_path / f"f{number}", what)
        for name in order:  # one after the other, as they come
            put(folder, f"{name}.summary", sent[name])
            take(folder)
        folder.close()
        folder.fuse(3)
        models.add((folder.path / "global.model").read_bytes())
    assert len(models) == 1


def test_one_process_at_a_time(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    again = Folder(folder.path)
    with (
        folder.locked(),
        refused(BadSettings, "folder-locked"),
        again.locked(),
    ):
        pass
    with again.locked():
        pass


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    sent = bodies(folder.agreement)
    put(folder, "east.summary", sent["east"])
    take(folder)
    put(folder, "north.summary", sent["north"])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            take(folder)
    assert (folder.accepted / "east.summary").read_bytes() == sent["east"]
    assert (folder.inbox / "north.summary").read_bytes() == sent["north"]
    assert sorted(path.name for path in folder.accepted.iterdir()) == ["east.summary"]
    assert outcomes(take(folder)) == ["accepted"]


def test_sealed_messages_are_opened_and_models_sealed_for_each(tmp_path: Path) -> None:
    keys = Keys.new()
    what = keys.agreement()
    folder = folder_of(tmp_path / "f", what, keys.server)
    for name, body in bodies(what).items():
        put(folder, f"{name}.summary", keys.sealed(body, name, what))
        # Sealed again it has other bytes, but says the same.
        put(folder, f"{name}.twice.summary", keys.sealed(body, name, what))
    assert sorted(outcomes(take(folder))) == ["accepted"] * 4 + ["again"] * 4
    folder.fuse(3)
    assert sorted(path.name for path in (folder.path / "sealed").iterdir()) == [f"{name}.model" for name in NAMES]


def test_what_is_not_signed_by_whom_it_speaks_for_is_rejected(tmp_path: Path) -> None:
    keys, strangers = Keys.new(), Keys.new()
    what = keys.agreement()
    folder = folder_of(tmp_path / "f", what, keys.server)
    body = bodies(what)["east"]
    old = keys.agreement(round=2)
    put(folder, "1-open.summary", body)
    put(folder, "2-stranger.summary", keys.sealed(body, "east", what, strangers.sites["east"]))
    put(folder, "3-neighbour.summary", keys.sealed(body, "north", what))
    put(folder, "4-replay.summary", keys.sealed(bodies(old)["east"], "east", old))
    put(folder, "5-elsewhere.summary", strangers.sealed(body, "east", what, keys.sites["east"]))
    put(folder, "6-unlisted.summary", keys.sealed(body, "mars", what, strangers.sites["east"]))
    wanted = {
        "summary-unsigned": "federation.toml",
        "signature-wrong": "'east'",
        "signer-not-sender": "site 'north' signed it, but it speaks for 'east'",
        "envelope-elsewhere": "for round 2, not for 3",
        "envelope-not-opened": "",
        "site-key-unknown": "'mars'",
    }
    for event, (code, value) in zip(take(folder), wanted.items(), strict=True):
        assert has_sentence(event.sentence, code)
        assert value in event.sentence
    assert folder.status.accepted == ()


def test_the_server_must_have_its_own_key(tmp_path: Path) -> None:
    keys = Keys.new()
    with refused(BadSettings, "server-key-missing"):
        folder_of(tmp_path / "f", keys.agreement())
    with refused(BadSettings, "server-key-wrong"):
        folder_of(tmp_path / "f", keys.agreement(), keys.sites["east"])


def lie(summary: Summary, **changes: FloatArray) -> Message:
    """Its message, with other arrays than it would have."""
    message = summary.to_message()
    return Message(message.kind, {**message.arrays, **changes}, message.facts)


def test_micro_clusters_that_the_told_moments_cannot_have_are_refused() -> None:
    what = agreement()
    summary, _ = summary_of(0, "east", what)
    assert summary.shape is not None
    for changes in (
        {"centroids": summary.centroids * [1.0, 50.0]},
        {"shape": summary.shape * 1e6},
        {"centroids": np.vstack([summary.centroids[:-1], [[30.0, 1e6]]])},
    ):
        with refused(BadMessage, "moments-impossible"):
            what.read_summary(lie(summary, **changes))


def test_a_site_must_tell_what_was_agreed_and_nothing_else() -> None:
    what = agreement()
    summary, _ = summary_of(0, "east", what)
    message = summary.to_message()
    less = {name: array for name, array in message.arrays.items() if name != "mass"}
    with refused(BadMessage, "mass-not-as-agreed", "must tell its mass"):
        what.read_summary(Message(message.kind, less, message.facts))
    with refused(BadMessage, "moments-missing"):
        what.read_summary(replace(summary, moments=None).to_message())
    columns = (Column(name="age", range=(0.0, 120.0)), Column(name="pressure", range=(0.0, 300.0)))
    ranged = agreement(scaling="ranges", columns=columns)
    with refused(BadMessage, "moments-not-agreed"):
        ranged.read_summary(replace(summary, terms=ranged.terms).to_message())
    for part, code in (("mass", "mass-not-as-agreed"), ("shape", "shape-not-agreed")):
        with refused(BadMessage, code, f"must not tell its {part}"):
            agreement(withhold=(part,)).read_summary(message)


def test_a_site_with_few_rows_may_tell_less() -> None:
    what = agreement()
    summary, _ = summary_of(0, "east", what)
    assert summary.mass is not None
    assert what.read_summary(replace(summary, shape=None).to_message()).shape is None
    one = replace(
        summary, centroids=summary.centroids[:1], mass=summary.mass.sum(keepdims=True), shape=None, moments=None
    )
    assert what.read_summary(one.to_message()).moments is None


def test_of_two_sites_the_larger_counts_no_more_than_the_smaller() -> None:
    what = agreement()
    summaries = [summary_of(number, name, what)[0] for number, name in enumerate(("east", "north"))]
    assert summaries[1].mass is not None
    assert summaries[1].moments is not None
    mass = summaries[1].mass * 10_000
    share = float(mass.sum()) / summaries[1].moments.count
    summaries[1] = replace(summaries[1], mass=mass, moments=summaries[1].moments.weighing(share))
    shares = shares_of(summaries, what.limits.mass_cap)
    counted, first = pool(summaries, summaries[0].layout, shares=shares).mass, len(summaries[0].centroids)
    assert counted[:first].sum() == pytest.approx(counted[first:].sum())


def test_there_is_no_setting_for_another_fusion() -> None:
    with pytest.raises(ValidationError, match="fusion"):
        agreement(fusion="remc")


@pytest.mark.parametrize("most", [7, 100, 500])
def test_a_large_site_does_not_exceed_its_own_quota(most: int) -> None:
    what = agreement(limits=Bounds(most_micro_clusters=most))
    rows = np.random.default_rng(0).normal(size=(3000, 2)) * [10.0, 20.0] + [50.0, 120.0]
    summary, _ = summarize(np.clip(rows, 0.0, 120.0), "east", fusion_of(what).task, terms=what.terms)
    count = len(what.read_summary(summary.to_message()).centroids)
    assert 0.9 * min(most, 100) <= count <= min(most, 100)


def test_a_site_in_other_units_is_left_out_and_named() -> None:
    what = agreement(columns=(Column(name="age"), Column(name="pressure")))
    summaries = [summary_of(number, name, what)[0] for number, name in enumerate(NAMES)]
    odd = summaries[2]
    assert odd.moments is not None
    assert odd.shape is not None
    moments = type(odd.moments)(odd.moments.count, odd.moments.mean * 1e6, odd.moments.squares * 1e12)
    summaries[2] = Summary("south", odd.centroids * 1e6, odd.mass, odd.shape * 1e12, moments, odd.level, odd.terms)
    result = fuse_admitted(summaries, what, 3)
    left_out = result.left_out
    assert list(left_out) == ["south"]
    assert "times as far as the median site's" in left_out["south"]
    assert result.model.sites == ("east", "north", "west")


def cannot(patch: pytest.MonkeyPatch, method: str, names: str, number: int) -> None:
    """Have some files refuse to be renamed, or removed, as in a folder where only owners may."""
    really = getattr(Path, method)

    def refuse(path: Path, *arguments: object, **options: object) -> object:
        if re.search(names, path.name) and path.parent.name == "inbox":
            raise OSError(number, os.strerror(number))
        return really(path, *arguments, **options)

    patch.setattr(Path, method, refuse)


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.EXDEV, errno.EBUSY, errno.EROFS])
def test_what_cannot_be_taken_out_of_the_inbox_is_named_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    sent = bodies(folder.agreement)
    put(folder, "a-junk.summary", b"junk")
    put(folder, "b-good.summary", sent["east"])
    put(folder, "c-good.summary", sent["north"])
    cannot(monkeypatch, "rename", "^[ab]-", number)
    for outcome in ("accepted", "again"):
        events = {event.file: event for event in take(folder)}
        assert events["a-junk.summary"].outcome == "rejected"
        assert events["b-good.summary"].outcome == outcome
        for name in ("a-junk.summary", "b-good.summary"):
            assert events[name].stuck
            assert events[name].sentence.endswith(
                f"It cannot be taken out of the inbox ({os.strerror(number)}); remove it by hand."
            )
    assert folder.status.accepted == ("east", "north")
    assert sorted(path.name for path in folder.inbox.iterdir()) == ["a-junk.summary", "b-good.summary"]
    assert list(folder.refused()) == ["a-junk.summary"]


@pytest.mark.parametrize(("method", "file"), [("unlink", "good.summary"), ("rename", "junk.summary")])
def test_what_cannot_be_taken_out_has_its_own_name_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, file: str
) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    put(folder, "good.summary", bodies(folder.agreement)["east"])
    put(folder, "junk.summary", b"junk")
    really = getattr(Path, method)

    def refuse(path: Path, *arguments: object) -> object:
        if path.name.endswith(CLAIMED) and (method == "unlink" or Path(str(arguments[0])).parent == folder.rejected):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return really(path, *arguments)

    monkeypatch.setattr(Path, method, refuse)
    events = {event.file: event for event in take(folder)}
    assert events[file].stuck
    assert [path.name for path in folder.inbox.iterdir()] == [file]
    assert folder.status.accepted == ("east",)


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root: an inbox in which only owners may remove files")
def test_a_file_of_somebody_else_in_an_inbox_with_the_sticky_bit_does_not_stop_collect() -> None:
    shared = Path(tempfile.mkdtemp())  # where another user can go
    try:
        shared.chmod(0o755)
        folder = folder_of(shared / "f", agreement())
        put(folder, "a-junk.summary", b"junk")
        put(folder, "b-good.summary", bodies(folder.agreement)["east"])
        os.chown(folder.inbox / "b-good.summary", NOBODY, NOBODY)
        folder.inbox.chmod(0o1777)
        for part in (folder.path, folder.accepted, folder.rejected):
            os.chown(part, NOBODY, NOBODY)
        child = os.fork()
        if not child:  # from here on as nobody, who may not move what root put there
            as_wanted = False
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                found = [(event.outcome, event.stuck) for event in take(folder)]
                as_wanted = found == [("rejected", True), ("accepted", False)]
            finally:
                os._exit(0 if as_wanted else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert folder.status.accepted == ("east",)
    finally:
        shutil.rmtree(shared)


@pytest.mark.parametrize("first", ["good", "junk"])
def test_a_message_that_replaces_another_while_that_is_read_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    sent = bodies(folder.agreement)
    put(folder, "x.summary", sent["east"] if first == "good" else b"junk")

    def read_and_replace(path: Path) -> bytes:
        content = read_message(path)
        path.unlink()
        put(folder, "x.summary", sent["north"])
        return content

    with monkeypatch.context() as patch:
        patch.setattr("goldfc.server.folder.read_message", read_and_replace)
        (event,) = take(folder)
    assert event.outcome == "waiting"
    assert "it was replaced; it is looked at again" in event.sentence
    assert outcomes(take(folder)) == ["accepted"]
    assert folder.status.accepted == (("east", "north") if first == "good" else ("north",))
    assert folder.refused() == {}


def test_what_was_claimed_by_a_process_that_was_killed_is_looked_at_again(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    sent = bodies(folder.agreement)
    put(folder, claimed_name("east.summary"), sent["east"])
    put(folder, claimed_name("n" * 250), sent["north"])
    events = take(folder)
    assert outcomes(events) == ["accepted"] * 2
    assert "east.summary" in {event.file for event in events}
    assert list(folder.inbox.iterdir()) == []


def test_the_lock_does_not_follow_a_link(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", agreement())
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    (folder.path / ".lock").symlink_to(secret)
    with pytest.raises(BadSettings, match=r"\.lock cannot be used .* remove it"), folder.locked():
        pass
    assert secret.read_text(encoding="utf-8") == "secret"
