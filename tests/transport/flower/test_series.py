"""Rounds that follow one another, live: who has nothing new sends nothing, and who is away counts as before."""

from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="goldfc[flower] is not installed")

from click.testing import CliRunner
from flwr.app import Message

from goldfc.agreement import Agreement
from goldfc.cli import main
from goldfc.cli.live import absolute
from goldfc.errors import BadMessage
from goldfc.message.summary import Summary
from goldfc.message.wire import decode, encode
from goldfc.server.deliver import read_model
from goldfc.server.round import Round, fuse_admitted
from goldfc.site.ledger import Ledger
from goldfc.site.policy import Policy
from goldfc.transport.flower.job import Job, Status
from goldfc.transport.flower.series import next_place
from goldfc.transport.flower.server_app import run_job
from sentences import refused
from sites import NAMES, agreement, write_agreement, write_policy
from transport.flower.fake import FakeGrid, Node, question_of, real
from transport.flower.loopback import write_site
from transport.flower.test_port import TWO, nodes_of, sites_in
from transport.flower.test_private_nodes import RANGED

MANY = agreement(limits=TWO, round=1, repeats=True)


def next_round(folder: Path, nodes: list[Node], what: Agreement = MANY) -> Round:
    """As `goldfc federate --next` has it run."""
    place = next_place(folder / "rounds", what.round)
    place.folder.mkdir(parents=True, exist_ok=True)
    write_agreement(folder, what)
    job = Job(
        federation=str(folder / "federation.toml"),
        out=str(place.folder),
        number=place.number,
        after=absolute(place.after),
        kept=absolute(place.kept),
        expect=max(2, len(nodes)),
        join=0.3,
        answer=0.3,
    )
    job.write(job.file)
    return run_job(FakeGrid(dict(enumerate(nodes, start=100))), job)


def status_of(folder: Path, number: int) -> Status:
    return Status.read(folder / "rounds" / str(number) / "status.json")


def events(settings: dict[str, str | Path]) -> list[str]:
    return [line["event"] for line in Ledger.of(Path(settings["data"]), Policy()).lines()]


def test_a_quiet_round_takes_no_message_and_changes_no_id(tmp_path: Path) -> None:
    sites = sites_in(tmp_path, MANY)
    first = next_round(tmp_path, nodes_of(sites))
    second = next_round(tmp_path, nodes_of(sites))
    status = status_of(tmp_path, 2)
    assert (status.accepted, status.unchanged, status.remembered) == ((), NAMES, NAMES)
    assert status.labelled == NAMES
    assert second.model.after == first.model.digest
    assert second.model.terms.round == 2
    assert second.model.ids.tolist() == first.model.ids.tolist()
    assert second.model.descent is not None
    assert second.model.descent.changes == ()
    assert all(events(settings) == ["sent"] for settings in sites.values())


def test_new_rows_are_sent_and_who_is_away_counts_with_what_was_sent_before(tmp_path: Path) -> None:
    sites = sites_in(tmp_path, MANY)
    first = next_round(tmp_path, nodes_of(sites)[:3])
    other = write_site(tmp_path / "other", 5, MANY)
    other.replace(sites[NAMES[0]]["data"])
    write_policy(tmp_path / NAMES[0], "least_sites = 2\nleast_seconds = 0")
    there = nodes_of({name: sites[name] for name in (NAMES[0], NAMES[3])})
    second = next_round(tmp_path, there)
    status = status_of(tmp_path, 2)
    assert status.accepted == tuple(sorted((NAMES[0], NAMES[3])))
    assert status.remembered == tuple(sorted(NAMES[1:3]))
    assert status.labelled == status.accepted
    kept = sorted((tmp_path / "rounds" / "2" / "accepted").glob("*.summary"))
    summaries = [Summary.from_message(decode(path.read_bytes())) for path in kept]
    assert {summary.site: summary.terms.round for summary in summaries} == dict(zip(NAMES, (2, 1, 1, 2), strict=True))
    later = MANY.in_round(2)
    assert encode(fuse_admitted(summaries, later, None, after=first.model).model.to_message()) == encode(
        second.model.to_message()
    )


def test_a_private_site_pays_for_every_round_and_skips_those_that_it_cannot_pay(tmp_path: Path) -> None:
    what = agreement(limits=TWO, round=1, repeats=True, privacy="private", columns=RANGED)
    sites = sites_in(tmp_path, what)
    write_policy(tmp_path / NAMES[0], "least_sites = 2\nmost_eps_a_year = 1.2")
    next_round(tmp_path, nodes_of(sites), what)
    next_round(tmp_path, nodes_of(sites), what)
    status = status_of(tmp_path, 2)
    assert [who.split()[0] for who in status.refused] == [NAMES[0]]
    assert status.remembered == (NAMES[0],)
    assert events(sites[NAMES[0]]).count("spent") == 1
    assert all(events(sites[name]).count("spent") == 2 for name in NAMES[1:])


def test_a_later_round_is_only_done_where_that_is_agreed_on(tmp_path: Path) -> None:
    once = agreement(limits=TWO, round=1)
    settings = sites_in(tmp_path, once)[NAMES[0]]
    for number, what in ((2, once), (0, MANY)):
        asked = what.model_copy(update={"round": number})
        reply = real(**settings)(Message(question_of(asked), 1, "query.summarize"))
        assert reply is not None
        assert reply.content.config_records["goldfc"]["refusal"] == "message"
        with refused(BadMessage, "round-not-agreed", f"round {number}"):
            what.in_round(number)


def test_who_claims_to_have_nothing_new_and_never_sent_anything_is_refused(tmp_path: Path) -> None:
    sites = nodes_of(sites_in(tmp_path, MANY))

    def lazy(message: Message) -> Message | None:
        reply = sites[3](message)
        if reply is not None:
            reply.content.config_records["goldfc"].update({"body": b"", "refusal": "unchanged"})
        return reply

    next_round(tmp_path, [*sites[:3], lazy])
    (sentence,) = status_of(tmp_path, 1).refused.values()
    assert "nothing of it is known" in sentence


def test_a_round_that_was_cut_off_is_run_again_and_ends_as_it_would_have(tmp_path: Path) -> None:
    sites = sites_in(tmp_path, MANY)
    next_round(tmp_path, nodes_of(sites))
    whole = next_round(tmp_path, nodes_of(sites))
    place = tmp_path / "rounds" / "2" / "status.json"
    Status.read(place).model_copy(update={"state": "labelling"}).write(place)
    assert next_place(tmp_path / "rounds", 1).number == 2
    assert encode(next_round(tmp_path, nodes_of(sites)).model.to_message()) == encode(whole.model.to_message())
    assert next_place(tmp_path / "rounds", 1).number == 3
    assert next_place(tmp_path / "rounds", 7).number == 7
    assert read_model(tmp_path / "rounds" / "2" / "global.model").fingerprint == whole.model.fingerprint


def test_the_next_round_finds_the_last_model_by_itself() -> None:
    words = ["federate", "f.toml", "--connection", "here", "--next", "--after", "global.model", "-o", "rounds"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "leave out --after" in result.output
