"""`goldfc federate` with a Flower that only pretends: what a person sees, and how the command ends."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from goldfc.cli import live, main
from goldfc.errors import GoldError
from goldfc.message.wire import encode
from goldfc.server.round import fuse_usable
from goldfc.transport.flower.job import Job, Status, Trouble
from goldfc.transport.flower.kit import QUIET
from pages import text_of
from sentences import has_sentence
from sites import Keys, agreement, summary_of, write_agreement
from transport.flower.loopback import write_site

DONE = Status(
    state="done",
    expected=4,
    joined=4,
    accepted=("east", "far", "north", "west"),
    refused={"node 7": "it went away"},
    silent=("node 8",),
    missing=("south",),
    left_out={"far": "its columns spread 1e+05 times as far"},
    odd=("Column 'age': north's mean is 660",),
    labelled=("east",),
    unlabelled={"north": "it has not answered in time"},
)

# It writes down how it was called, and says what it is told to say.
PRETENDER = """#!{python}
import json, os, pathlib, sys, tomllib
here = pathlib.Path(__file__).parent
word, told = sys.argv[1], json.loads((here / "told.json").read_text())
with (here / "called.jsonl").open("a") as file:
    file.write(json.dumps([sys.argv[1:], {{k: v for k, v in os.environ.items() if k[:4] in ("FLWR", "RAY_")}}]) + "\\n")
if word == "run":
    app, settings = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[sys.argv.index("--run-config") + 1])
    tomllib.loads((app / "pyproject.toml").read_text())
    facts = tomllib.loads(settings.read_text())
    if told["status"] is not None:
        status = {{"round": facts["round"], **told["status"]}}
        pathlib.Path(facts["job"]).with_name("status.json").write_text(json.dumps(status))
    print("Successfully started run 7")
    print(json.dumps(told["run"]))
elif word == "list":
    print(json.dumps({{"success": True, "runs": [{{"status": told["state"]}}]}}))
"""

Pretend = Callable[..., Result]


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pretend:
    """Run the command against a Flower that says what it is told."""
    program = tmp_path / "flwr"
    program.write_text(PRETENDER.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(live, "flower_program", lambda: str(program))
    monkeypatch.setattr(live, "ASK_FLOWER", 0.1)
    federation = write_site(tmp_path / "site", 0, agreement()).with_name("federation.toml")
    leave_result(tmp_path / "out")

    def call(status: Status | None, *options: str, state: str = "finished:completed", **run: object) -> Result:
        facts = None if status is None else json.loads(status.model_dump_json(exclude_unset=True))
        told = {"status": facts, "state": state, "run": {"success": True, "run-id": "7", **run}}
        (tmp_path / "told.json").write_text(json.dumps(told), encoding="utf-8")
        words = ["federate", str(federation), "--connection", "here", "-o", str(tmp_path / "out")]
        options = options or ("--expect", "4", "--join", "0.5", "--answer", "0.5")
        return CliRunner().invoke(main, [*words, *options])

    return call


def leave_result(out: Path) -> None:
    """What the server's program leaves in its folder: the summaries, and the model of those that are not left out."""
    what = agreement()
    sent = {name: summary_of(number, name, what)[0] for number, name in enumerate(("east", "north", "west", "far"))}
    model = fuse_usable([sent[name] for name in ("east", "north", "west")], what, 4, None)
    (out / "accepted").mkdir(parents=True)
    for name, summary in sent.items():
        (out / "accepted" / f"{name}.summary").write_bytes(encode(summary.to_message()))
    (out / "global.model").write_bytes(encode(replace(model, terms=what.terms).to_message()))


def calls(folder: Path) -> list[tuple[list[str], dict[str, str]]]:
    return [tuple(json.loads(line)) for line in (folder / "called.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_person_sees_what_became_of_everybody_and_the_page(pretend: Pretend, tmp_path: Path) -> None:
    (tmp_path / "out" / "names.toml").write_text('[[clusters]]\nid = 1\nname = "old"\n', encoding="utf-8")
    result = pretend(DONE)
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    for sentence in (
        "Waiting for 4 sites to join",
        "Joined: 4 of 4.",
        "Answered: east.",
        "Refused: node 7: it went away.",
        "Silent: node 8.",
        "Missing of those that are listed: south.",
        "Left out: far: its columns spread 1e+05 times as far",
        "Odd: Column 'age': north's mean is 660",
        "Labelled: east.",
        "Not labelled: north: it has not answered in time.",
        "Took part: east, north, west.",
        "How many clusters? 4 were asked for; the evidence speaks for 3: the best balance of fit and simplicity.",
        "4 clusters from",
        "micro-clusters of 3 sites.",
        "What they are called: 1 is 'old'.",
        "report.html in a browser",
    ):
        assert sentence in said, said
    page = text_of((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    for sentence in (
        "Not used: node 7it went away",
        "Not used: node 8it did not answer in time",
        "Not used: farits columns spread 1e+05 times as far",
        "The evidence speaks for 3",
        "4asked for: taken here",
    ):
        assert sentence in page


@pytest.mark.parametrize(
    ("kind", "code"),
    [("BadMessage", 3), ("TooFewSites", 4), ("BadSettings", 2), ("TooFewMicroClusters", 2), ("GoldError", 1)],
)
def test_a_failed_round_ends_with_the_exit_code_of_its_error(pretend: Pretend, kind: str, code: int) -> None:
    trouble = Trouble(kind=kind, sentence="This is why.")
    result = pretend(DONE.model_copy(update={"state": "failed", "trouble": trouble}))
    assert result.exit_code == code
    assert "goldfc: This is why." in result.output


def test_a_run_that_flower_ends_before_its_time_is_a_failure(pretend: Pretend, tmp_path: Path) -> None:
    result = pretend(None, state="finished:failed")
    assert result.exit_code == 1
    assert "Flower ended the run before the round was over" in result.output
    assert calls(tmp_path)[-1][0][0] == "stop"


def test_a_run_that_does_not_end_is_stopped(pretend: Pretend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "OVERHEAD", 0.1)
    result = pretend(DONE.model_copy(update={"state": "labelling"}), state="running")
    assert result.exit_code == 1
    assert "did not end within" in result.output
    assert calls(tmp_path)[-1][0] == ["stop", "7", "here"]


def test_a_flower_that_cannot_be_asked_once_or_twice_is_asked_again() -> None:
    answers = ["down", "down", "running", "down", "down", "finished", "down", "down", "down"]

    class Shaky:
        def state(self) -> str:
            if (answer := answers.pop(0)) == "down":
                raise GoldError("`flwr list` failed")
            return answer

        def stop(self) -> None:
            raise NotImplementedError

    patient = live.Patient(Shaky())
    assert [patient.has_ended() for _ in range(6)] == [False] * 5 + [True]
    with pytest.raises(GoldError):
        [patient.has_ended() for _ in range(3)]


def test_flower_is_asked_so_seldom_that_most_of_the_time_is_left_to_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=lambda: now[0]))

    class Slow:
        def state(self) -> str:
            now[0] += 3.0
            return "running"

        def stop(self) -> None:
            raise NotImplementedError

    patient = live.Patient(Slow())
    for begin, end in ((0.0, live.ASK_FLOWER), (live.ASK_FLOWER + 3.0, live.ASK_FLOWER + 3.0 + 3.0 * live.SELDOM)):
        assert now[0] == begin
        now[0] = end - 0.1
        assert not patient.is_to_be_asked
        now[0] = end
        assert patient.is_to_be_asked
        assert not patient.has_ended()


def test_what_is_said_of_another_round_in_the_folder_is_not_believed(pretend: Pretend) -> None:
    result = pretend(DONE.model_copy(update={"round": "the one before"}), state="finished:failed")
    assert result.exit_code == 1
    assert "Flower ended the run before the round was over" in result.output


def test_a_run_that_cannot_be_started_is_a_failure(pretend: Pretend) -> None:
    result = pretend(None, **{"success": False, "error-message": "no such connection"})
    assert result.exit_code == 1
    assert "`flwr run` failed: no such connection" in result.output


def test_flower_is_kept_offline_and_nodes_learn_no_path_but_that_of_the_job(pretend: Pretend, tmp_path: Path) -> None:
    pretend(DONE)
    for _, known in calls(tmp_path):
        assert known.items() >= QUIET.items()
    assert Job.read(tmp_path / "out" / "job.json").expect == 4
    assert "{" not in live.APP
    assert str(tmp_path) not in live.APP


def test_how_many_to_expect_is_said_or_listed(pretend: Pretend, tmp_path: Path) -> None:
    result = pretend(DONE, "--join", "1")
    assert result.exit_code == 2
    assert "--expect" in result.output
    assert not (tmp_path / "called.jsonl").exists()


def test_what_does_not_fit_is_told_before_flower_is_asked(pretend: Pretend, tmp_path: Path) -> None:
    write_agreement(tmp_path / "site", Keys.new().agreement())
    result = pretend(DONE, "--join", "1")
    assert result.exit_code == 2
    assert has_sentence(result.output, "server-key-missing")
    result = pretend(DONE, "--simulate", "2")
    assert result.exit_code == 2
    assert not (tmp_path / "called.jsonl").exists()


def test_a_simulation_needs_as_many_tables_as_sites(tmp_path: Path) -> None:
    data = write_site(tmp_path / "site", 0, agreement())
    words = ["federate", data.with_name("federation.toml"), "--simulate", "2", "--data", data.parent, "-o", tmp_path]
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 2
    assert "has 1 tables, and 2 sites are to be simulated" in result.output


def test_without_flower_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    federation = write_site(tmp_path / "site", 0, agreement()).with_name("federation.toml")
    words = ["federate", str(federation), "--connection", "here", "--expect", "3", "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "install goldfc[flower]" in result.output
    assert not (tmp_path / "out").exists()
