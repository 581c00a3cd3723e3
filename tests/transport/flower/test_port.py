"""A round over Flower's grid: the same bytes as by file, and who does not play along is named and left out."""

import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.exceptions import ConvergenceWarning

pytest.importorskip("flwr", reason="goldfc[flower] is not installed")

from flwr.app import Context, Message, RecordDict, UserConfig
from flwr.serverapp import Grid

from goldfc.agreement import Agreement, Bounds, ListedSite
from goldfc.cli import main
from goldfc.errors import AuditRefused, BadMessage, BadSettings, GoldError, TooFewSites
from goldfc.message.columns import Column
from goldfc.message.summary import Summary
from goldfc.message.wire import decode, encode
from goldfc.server.round import fuse_admitted
from goldfc.site.audit import WARNINGS
from goldfc.transport.flower import exchange, server_app, site_app
from goldfc.transport.flower.job import Job, Status
from goldfc.transport.flower.records import SENTENCES
from goldfc.transport.flower.server_app import run_job
from sentences import has_sentence, refused
from sites import NAMES, Keys, agreement, bodies, write_agreement, write_policy
from transport.flower.fake import FakeGrid, Node, error, question_of, real, records, silent
from transport.flower.loopback import write_site

TWO = {"least_sites": 2}
WHAT = agreement(limits=TWO)


def job_in(folder: Path, what: Agreement, *, expect: int, key: Path | None = None) -> Job:
    """A job in a folder of the server's own."""
    server = folder / "server"
    server.mkdir()
    write_agreement(server, what)
    job = Job(
        federation=str(server / "federation.toml"),
        out=str(server),
        key=None if key is None else str(key),
        clusters=3,
        expect=expect,
        join=0.3,
        answer=0.3,
    )
    job.write(job.file)
    return job


def sites_in(folder: Path, what: Agreement = WHAT, names: Sequence[str] = NAMES) -> dict[str, dict[str, str | Path]]:
    """The settings of some sites."""
    return {name: {"data": write_site(folder / name, number, what), "site": name} for number, name in enumerate(names)}


def nodes_of(sites: dict[str, dict[str, str | Path]]) -> list[Node]:
    return [real(**settings) for settings in sites.values()]


def grid_of(nodes: Sequence[Node]) -> FakeGrid:
    return FakeGrid(dict(enumerate(nodes, start=100)))


def status_in(folder: Path) -> Status:
    return Status.read(folder / "server" / "status.json")


def round_of(folder: Path, nodes: Sequence[Node], what: Agreement = WHAT) -> Status:
    """How a round ends in which two honest sites take part, and some others."""
    honest = nodes_of(sites_in(folder, what, NAMES[:2]))
    grid = grid_of([*honest, *nodes])
    result = run_job(grid, job_in(folder, what, expect=len(grid.nodes)))
    status = status_in(folder)
    assert status.state == "done"
    assert status.took_part == result.model.sites
    assert status.labelled == status.took_part
    return status


def by_file(folder: Path, what: Agreement, n_clusters: int | None = 3) -> bytes:
    """The model that `fuse_admitted` makes of what the server kept."""
    kept = sorted((folder / "server" / "accepted").glob("*.summary"))
    summaries = [Summary.from_message(decode(path.read_bytes())) for path in kept]
    return encode(fuse_admitted(summaries, what, n_clusters).model.to_message())


def command(*words: object) -> None:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, result.output


def test_summaries_model_and_labels_are_those_of_a_federation_by_files(tmp_path: Path) -> None:
    sites = sites_in(tmp_path)
    run_job(grid_of(nodes_of(sites)), job_in(tmp_path, WHAT, expect=4))
    server, files = tmp_path / "server", tmp_path / "files"
    for name in NAMES:
        write_site(files / name, NAMES.index(name), WHAT)
        command("summarize", files / name / "data.csv", "-o", files / f"{name}.summary")
        assert (files / f"{name}.summary").read_bytes() == (server / "accepted" / f"{name}.summary").read_bytes()
    summaries = [files / f"{name}.summary" for name in NAMES]
    federation = server / "federation.toml"
    command("fuse", *summaries, "-k", 3, "-o", files / "global.model", "--federation", federation)
    assert (files / "global.model").read_bytes() == (server / "global.model").read_bytes()
    for name in NAMES:
        data = files / name / "data.csv"
        command("label", data, "--model", files / "global.model", "-o", files / f"{name}.csv")
        assert (files / f"{name}.csv").read_bytes() == (tmp_path / name / "data.labels.csv").read_bytes()


@pytest.mark.parametrize("n_clusters", [3, None])
def test_a_mixed_table_ends_as_by_files_too(tmp_path: Path, n_clusters: int | None) -> None:
    ward = Column(name="ward", kind="category", categories=("a", "b", "c"))
    what = agreement(columns=(*WHAT.columns, ward, Column(name="ill", kind="boolean")))
    sites, files = {name: tmp_path / name / "data.csv" for name in NAMES}, tmp_path / "files"
    for number, name in enumerate(NAMES):
        rng = np.random.default_rng(number)
        for folder in (tmp_path, files):
            write_site(folder / name, number, WHAT, n_rows=400)
            write_agreement(folder / name, what)
        _, *lines = sites[name].read_text(encoding="utf-8").splitlines()
        more = [f"{line},{rng.choice(['a', 'b', 'c'])},{rng.choice(['yes', 'no'])}" for line in lines]
        table = "\n".join(["age,pressure,ward,ill", *more])
        for data in (sites[name], files / name / "data.csv"):
            data.write_text(table, encoding="utf-8")
    job = job_in(tmp_path, what, expect=4).model_copy(update={"clusters": n_clusters})
    job.write(job.file)
    run_job(grid_of([real(data=data, site=name) for name, data in sites.items()]), job)
    assert (tmp_path / "server" / "global.model").read_bytes() == by_file(tmp_path, what, n_clusters)
    for name in NAMES:
        data = files / name / "data.csv"
        command("summarize", data, "-o", files / f"{name}.summary")
        kept = tmp_path / "server" / "accepted" / f"{name}.summary"
        assert (files / f"{name}.summary").read_bytes() == kept.read_bytes()
        command("label", data, "--model", tmp_path / "server" / "global.model", "-o", files / f"{name}.csv")
        assert (files / f"{name}.csv").read_bytes() == (tmp_path / name / "data.labels.csv").read_bytes()


def test_more_clusters_than_can_be_told_apart_end_in_fewer_and_a_warning(tmp_path: Path) -> None:
    grid = grid_of(nodes_of(sites_in(tmp_path)))
    job = job_in(tmp_path, WHAT, expect=4).model_copy(update={"clusters": 80})
    job.write(job.file)
    with pytest.warns(ConvergenceWarning, match="and 80 were asked for"):
        result = run_job(grid, job)
    assert 3 < len(result.model.centroids) < 80
    assert status_in(tmp_path).labelled == NAMES


def run_sealed(folder: Path) -> tuple[Agreement, FakeGrid]:
    """A round of sites and a server with keys."""
    keys = Keys.new()
    what = keys.agreement()
    sites = sites_in(folder, what)
    keys.server.write(folder / "server.key")
    for name, key in keys.sites.items():
        key.write(folder / f"{name}.key")
        sites[name]["key"] = folder / f"{name}.key"
    grid = grid_of(nodes_of(sites))
    run_job(grid, job_in(folder, what, expect=4, key=folder / "server.key"))
    return what, grid


def test_where_there_are_keys_everything_crosses_in_envelopes_and_the_model_is_the_same(tmp_path: Path) -> None:
    what, grid = run_sealed(tmp_path)
    assert (tmp_path / "server" / "global.model").read_bytes() == by_file(tmp_path, what)
    assert status_in(tmp_path).labelled == NAMES
    for reply in grid.replies:
        body = reply.content.config_records["goldfc"]["body"]
        assert isinstance(body, bytes)
        assert not body or body.startswith(b"goldfc sealed")
    assert sorted(path.stem for path in (tmp_path / "server" / "sealed").iterdir()) == list(NAMES)


def test_a_node_keeps_the_model_by_which_its_site_makes_a_page_of_its_rows(tmp_path: Path) -> None:
    run_sealed(tmp_path)
    here = tmp_path / "north"
    words = ["--key", tmp_path / "north.key", "-o", here / "again.csv", "--report", here / "page.html"]
    command("label", here / "data.csv", "--model", here / "north.model", *words)
    assert (here / "again.csv").read_bytes() == (here / "data.labels.csv").read_bytes()
    assert "of our 120 rows have a label" in (here / "page.html").read_text(encoding="utf-8")


def test_it_waits_until_all_that_are_expected_have_joined(tmp_path: Path) -> None:
    grid = grid_of(nodes_of(sites_in(tmp_path)))
    grid.joined = [0, 1, 1, 3, 2]
    job = job_in(tmp_path, WHAT, expect=4).model_copy(update={"join": 30.0})
    assert len(run_job(grid, job).summaries) == 4


def test_it_goes_on_without_those_who_have_not_joined_in_time_if_enough_have(tmp_path: Path) -> None:
    grid = grid_of(nodes_of(sites_in(tmp_path, names=NAMES[:2])))
    assert len(run_job(grid, job_in(tmp_path, WHAT, expect=4)).summaries) == 2
    assert (status_in(tmp_path).joined, status_in(tmp_path).expected) == (2, 4)


def test_it_looks_ever_more_seldom_and_once_more_when_it_is_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(exchange, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    *before, last = exchange.looks(60.0)
    assert last
    assert not any(before)
    assert len(before) == len(pauses)
    assert pauses[0] == exchange.SHORTEST
    assert max(pauses) == exchange.LONGEST
    assert pauses[:-1] == sorted(pauses[:-1])
    assert sum(pauses) == pytest.approx(60.0)


@pytest.mark.parametrize("others", [[], [silent], [error(2, "boom")]])
def test_with_too_few_it_fails_and_says_so(tmp_path: Path, others: list[Node]) -> None:
    grid = grid_of([*nodes_of(sites_in(tmp_path, names=NAMES[:1])), *others])
    begin = time.monotonic()
    with pytest.raises(TooFewSites):
        run_job(grid, job_in(tmp_path, WHAT, expect=2))
    assert time.monotonic() - begin < 10.0
    status = status_in(tmp_path)
    assert status.state == "failed"
    assert status.trouble is not None
    assert status.trouble.kind == "TooFewSites"
    assert not (tmp_path / "server" / "global.model").exists()


def test_a_node_that_never_answers_is_named_and_left_out(tmp_path: Path) -> None:
    status = round_of(tmp_path, [silent])
    assert status.silent == ("node 102",)
    assert status.took_part == NAMES[:2]


def test_who_is_listed_and_not_in_is_named_also_where_only_a_node_is_known_to_be_silent(tmp_path: Path) -> None:
    what = agreement(limits=TWO, sites=tuple(ListedSite(name=name) for name in NAMES[:3]))
    status = round_of(tmp_path, [silent], what)
    assert (status.silent, status.missing) == (("node 102",), ("south",))


def test_a_node_that_flower_does_not_take_a_message_for_is_silent(tmp_path: Path) -> None:
    grid = grid_of(nodes_of(sites_in(tmp_path)))
    grid.refuses_to_push = frozenset({103})
    run_job(grid, job_in(tmp_path, WHAT, expect=4))
    assert status_in(tmp_path).silent == ("node 103",)


def test_what_an_error_of_flower_says_is_not_repeated(tmp_path: Path) -> None:
    status = round_of(tmp_path, [error(2, "<class 'ValueError'>:<'could not convert JANE DOE'>"), error(5, "gone")])
    assert status.refused == {"node 102": SENTENCES["other"], "node 103": "it went away"}


def test_a_node_whose_audit_fails_answers_with_a_refusal_and_no_data(tmp_path: Path) -> None:
    data = write_site(tmp_path / "clones", 0, WHAT)
    data.write_text("age,pressure\n" + "30.5,110.25\n" * 60, encoding="utf-8")
    status = round_of(tmp_path, [real(data=data, site="clones")])
    assert status.refused == {"clones (node 102)": SENTENCES["withheld"]}
    assert [path.name for path in (tmp_path / "clones" / ".goldfc").iterdir()] == ["ledger.jsonl"]


def test_a_site_may_accept_the_risk_for_itself(tmp_path: Path) -> None:
    data = write_site(tmp_path / "clones", 0, WHAT)
    data.write_text("age,pressure\n" + "30.5,110.25\n" * 60, encoding="utf-8")
    status = round_of(tmp_path, [real(data=data, site="clones", accept_risk=True)])
    assert status.took_part == ("clones", *NAMES[:2])


OF_ROWS = {
    "all alike": "age,pressure\n" + "30.5,110.25\n" * 60,
    "too few": "age,pressure\n30.5,110.25\n",
    "none": "age,pressure\n",
    "a word": "age,pressure\n30.5,high\n",
    "outside of the range": "age,pressure\n" + "300.5,110.25\n" * 60,
    "another header": "weight\n" + "30.5\n" * 60,
    "no text": "\0",
}


@pytest.mark.parametrize("table", OF_ROWS.values(), ids=OF_ROWS)
def test_a_refusal_that_depends_on_rows_is_one_word_whatever_it_is(tmp_path: Path, table: str) -> None:
    data = write_site(tmp_path / "east", 0, WHAT)
    data.write_text(table, encoding="utf-8")
    reply = asked_to_summarize(real(data=data, site="east"), WHAT)
    assert reply == {"site": "east", "body": b"", "refusal": "withheld"}


@pytest.mark.parametrize(
    "error", [BadMessage("it"), BadSettings("it"), OSError(28, "full"), MemoryError(), AuditRefused("it")], ids=repr
)
def test_whatever_fails_once_rows_are_looked_at_is_the_same_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(site_app, "send", fails)
    node = real(data=write_site(tmp_path / "east", 0, WHAT), site="east")
    assert asked_to_summarize(node, WHAT)["refusal"] == "withheld"
    assert f"goldfc: {error}" in caplog.text  # the node's own log still says what it was


def asked_to_summarize(node: Node, what: Agreement) -> dict[str, object]:
    asked = Message(question_of(what), 1, "query.summarize")
    asked.metadata.__dict__["_message_id"] = "1"
    reply = node(asked)
    assert reply is not None
    return dict(reply.content.config_records["goldfc"])


def test_no_text_of_an_error_leaves_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad_value = write_site(tmp_path / "secret-value", 0, WHAT)
    bad_value.write_text("age,pressure\n30,SECRET-77\n", encoding="utf-8")
    nodes = [
        real(data=bad_value, site="a"),
        real(
            data=tmp_path / "secret-path" / "data.csv",
            site="b",
            federation=bad_value.with_name("federation.toml"),
            policy=bad_value.with_name("policy.toml"),
        ),
        real(data=tmp_path / "secret-path" / "data.csv", site="c"),
        real(site="d"),
        real(data=bad_value, site="../secret-name"),
    ]
    grid = grid_of(nodes)
    with pytest.raises(TooFewSites):
        run_job(grid, job_in(tmp_path, WHAT, expect=5))
    assert len(grid.replies) == 5
    assert b"secret" not in grid.crossed.lower()
    assert status_in(tmp_path).refused == {
        "a (node 100)": SENTENCES["withheld"],
        "b (node 101)": SENTENCES["withheld"],
        "c (node 102)": SENTENCES["settings"],
        "d (node 103)": SENTENCES["settings"],
        "node 104": SENTENCES["settings"],
    }

    def fails(*_: object) -> None:
        raise ZeroDivisionError("SECRET-78")

    monkeypatch.setattr(site_app, "draft_summary", fails)
    grid = grid_of(nodes_of(sites_in(tmp_path / "more")))
    with pytest.raises(TooFewSites):
        run_job(grid, job_in(tmp_path / "more", WHAT, expect=4))
    assert set(status_in(tmp_path / "more").refused.values()) == {SENTENCES["withheld"]}
    assert b"SECRET" not in grid.crossed


def test_of_two_nodes_with_one_name_the_first_is_kept_and_the_conflict_told(tmp_path: Path) -> None:
    twin = write_site(tmp_path / "twin", 3, WHAT)
    status = round_of(tmp_path, [real(data=twin, site="east")])
    assert status.took_part == NAMES[:2]
    assert list(status.refused) == ["east (node 102)"]
    assert "the first one is kept" in status.refused["east (node 102)"]
    kept = (tmp_path / "server" / "accepted" / "east.summary").read_bytes()
    (sent,) = (tmp_path / "east" / ".goldfc").glob("*.message")
    assert kept == sent.read_bytes()


def test_the_very_same_summary_from_two_nodes_counts_once(tmp_path: Path) -> None:
    twin = write_site(tmp_path / "twin", 0, WHAT)
    status = round_of(tmp_path, [real(data=twin, site="east")])
    assert has_sentence(status.refused["east (node 102)"], "summary-again")


def test_who_is_not_listed_is_refused_by_the_server_too(tmp_path: Path) -> None:
    what = agreement(limits=TWO, sites=(ListedSite(name="east"), ListedSite(name="north")))
    stranger = write_site(tmp_path / "stranger", 2, WHAT)  # its own file lists nobody
    status = round_of(tmp_path, [real(data=stranger, site="stranger")], what)
    assert has_sentence(status.refused["stranger (node 102)"], "site-not-listed")


def test_a_site_with_another_agreement_refuses(tmp_path: Path) -> None:
    other = write_site(tmp_path / "other", 2, agreement(round=4, limits=TWO))
    status = round_of(tmp_path, [real(data=other, site="other")])
    assert status.refused == {"other (node 102)": SENTENCES["message"]}


def test_a_site_does_not_do_what_the_server_asks_beyond_the_agreement(tmp_path: Path) -> None:
    data = write_site(tmp_path / "east", 0, WHAT)
    node = real(data=data, site="east")
    reply = asked_to_summarize(node, agreement(privacy="plain"))
    assert reply == {"site": "east", "body": b"", "refusal": "message"}


JUNK: dict[str, Node] = {
    "no record": lambda message: Message(RecordDict(), reply_to=message),
    "other words": records(hello="world"),
    "other types": records(site=1, body="text", refusal=2.0),
    "an unknown refusal": records(site="south", body=b"", refusal="<b>anything</b>"),
    "no summary": records(site="south", body=b"", refusal=""),
    "junk": records(site="south", body=b"\x00" * 100, refusal=""),
    "a bad name": records(site="../../etc", body=b"junk", refusal=""),
    "cut": records(site="south", body=bodies(WHAT)["south"][:-9], refusal=""),
    "another round": records(site="south", body=bodies(agreement(round=2, limits=TWO))["south"], refusal=""),
    "too large": records(site="south", body=b"\xff" * (17 * 2**20), refusal=""),
}


@pytest.mark.parametrize("node", JUNK.values(), ids=JUNK)
def test_what_is_no_summary_is_refused_and_the_others_go_on(tmp_path: Path, node: Node) -> None:
    status = round_of(tmp_path, [node])
    assert status.took_part == NAMES[:2]
    (who,) = status.refused
    assert who in {"node 102", "south (node 102)"}
    assert "anything" not in status.refused[who]


def test_an_answer_that_cannot_be_fetched_takes_nobody_with_it(tmp_path: Path) -> None:
    def unreadable(_: Message) -> Message:
        raise ValueError("Flower cannot make an object of this")

    status = round_of(tmp_path, [unreadable])
    assert status.refused == {"node 102": "its answer cannot be read"}


def test_a_message_that_somebody_else_signed_is_refused(tmp_path: Path) -> None:
    keys = Keys.new()
    what = keys.agreement()
    sites = sites_in(tmp_path, what)
    keys.server.write(tmp_path / "server.key")
    for name, key in keys.sites.items():
        key.write(tmp_path / f"{name}.key")
        sites[name]["key"] = tmp_path / f"{name}.key"
    thief = records(
        site="east", body=keys.sealed(bodies(what)["east"], "east", what, sender=keys.sites["west"]), refusal=""
    )
    open_letter = records(site="east", body=bodies(what)["east"], refusal="")
    grid = grid_of([thief, open_letter, *nodes_of(sites)])
    run_job(grid, job_in(tmp_path, what, expect=6, key=tmp_path / "server.key"))
    assert status_in(tmp_path).took_part == NAMES
    assert len(status_in(tmp_path).refused) == 2


def test_who_is_implausibly_far_out_is_left_out_as_by_file(tmp_path: Path) -> None:
    what = agreement(columns=[{"name": "age"}, {"name": "pressure"}])
    sites = sites_in(tmp_path, what)
    rng = np.random.default_rng(0)
    rows = "".join(f"{a},{b}\n" for a, b in rng.normal(size=(120, 2)) * 1e6)
    Path(sites["west"]["data"]).write_text(f"age,pressure\n{rows}", encoding="utf-8")
    write_policy(Path(sites["west"]["data"]).parent, f"accept = {list(WARNINGS)}")
    run_job(grid_of(nodes_of(sites)), job_in(tmp_path, what, expect=4))
    status = status_in(tmp_path)
    assert status.took_part == NAMES[:3]
    assert list(status.left_out) == ["west"]
    assert (tmp_path / "server" / "global.model").read_bytes() == by_file(tmp_path, what)


def test_a_site_that_cannot_label_is_named_and_the_model_is_there(tmp_path: Path) -> None:
    sites = sites_in(tmp_path, names=NAMES[:2])
    first, second = nodes_of(sites)

    def breaks(message: Message) -> Message | None:
        if message.metadata.message_type == "query.label":
            Path(sites["north"]["data"]).unlink()
        return second(message)

    def leaves(message: Message) -> Message | None:
        return None if message.metadata.message_type == "query.label" else third(message)

    third = real(data=write_site(tmp_path / "south", 2, WHAT), site="south")
    run_job(grid_of([first, breaks, leaves]), job_in(tmp_path, WHAT, expect=3))
    status = status_in(tmp_path)
    assert status.labelled == ("east",)
    assert status.unlabelled == {"north": SENTENCES["withheld"], "south": "it has not answered in time"}
    assert status.took_part == NAMES[:3]
    assert (tmp_path / "server" / "global.model").read_bytes() == by_file(tmp_path, WHAT)


def test_labels_do_not_go_over_what_is_no_labels(tmp_path: Path) -> None:
    data = write_site(tmp_path / "south", 2, WHAT)
    status = round_of(tmp_path, [real(data=data, site="south", labels=data)])
    assert status.refused == {"south (node 102)": SENTENCES["settings"]}


def test_a_failure_of_the_server_itself_is_told_without_its_text(tmp_path: Path) -> None:
    class Broken(FakeGrid):
        def get_node_ids(self) -> list[int]:
            raise RuntimeError("SECRET")

    grid: Grid = Broken({})
    with pytest.raises(RuntimeError):
        run_job(grid, job_in(tmp_path, WHAT, expect=2))
    trouble = status_in(tmp_path).trouble
    assert trouble is not None
    assert trouble.kind == "GoldError"
    assert "SECRET" not in trouble.sentence


def contents(folder: Path) -> dict[str, bytes]:
    """Everything in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", ["summarize", "label"])
def test_once_another_round_has_begun_in_its_folder_a_round_writes_no_more_and_ends(tmp_path: Path, kind: str) -> None:
    first, *others = nodes_of(sites_in(tmp_path))
    job, then = job_in(tmp_path, WHAT, expect=4), dict[str, bytes]()

    def meanwhile(message: Message) -> Message | None:
        if message.metadata.message_type == f"query.{kind}":
            job.model_copy(update={"round": "another"}).write(job.file)
            then.update(contents(tmp_path / "server"))
        return first(message)

    with refused(GoldError, "another-round"):
        run_job(grid_of([meanwhile, *others]), job)
    assert then
    assert contents(tmp_path / "server") == then


def test_a_run_that_is_taken_up_when_another_round_has_begun_does_nothing_at_all(tmp_path: Path) -> None:
    job = job_in(tmp_path, WHAT, expect=4)
    before = contents(tmp_path / "server")
    grid = grid_of(nodes_of(sites_in(tmp_path)))
    settings: UserConfig = {"job": str(job.file), "round": "the one before"}
    with refused(GoldError, "another-round"):
        server_app.app(grid, Context(1, 1, {}, RecordDict(), settings))
    assert contents(tmp_path / "server") == before
    assert not grid.sent
    server_app.app(grid, Context(1, 1, {}, RecordDict(), {**settings, "round": job.round}))
    assert status_in(tmp_path).round == job.round
    assert status_in(tmp_path).labelled == NAMES


def test_a_round_in_the_folder_of_another_one_begins_anew(tmp_path: Path) -> None:
    first = job_in(tmp_path, WHAT, expect=4)
    run_job(grid_of(nodes_of(sites_in(tmp_path))), first)
    second = Job.model_validate({**first.model_dump(exclude={"round"}), "expect": 2})
    assert second.round != first.round
    second.write(second.file)
    run_job(grid_of(nodes_of(sites_in(tmp_path / "more", names=NAMES[:2]))), second)
    assert status_in(tmp_path).round == second.round
    assert status_in(tmp_path).took_part == NAMES[:2]


def test_a_job_that_does_not_fit_the_agreement_is_refused(tmp_path: Path) -> None:
    keys = Keys.new()
    job = job_in(tmp_path, keys.agreement(), expect=4)
    with refused(BadSettings, "server-key-missing"):
        job.load()
    keys.sites["east"].write(tmp_path / "east.key")
    with refused(BadSettings, "server-key-wrong"):
        job.model_copy(update={"key": str(tmp_path / "east.key")}).load()
    (tmp_path / "b").mkdir()
    few = job_in(tmp_path / "b", replace_limits(agreement(), least=3), expect=2)
    with refused(BadSettings, "expect-too-few", "at least 3"):
        few.load()
    with refused(BadSettings, "job-unreadable"):
        Job.read(tmp_path / "nowhere.json")


def replace_limits(what: Agreement, least: int) -> Agreement:
    return what.model_copy(update={"limits": Bounds(least_sites=least)})
