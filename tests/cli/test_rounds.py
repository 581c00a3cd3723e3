"""Several rounds, as a person meets them."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from goldfc.cli import main
from goldfc.errors import BadMessage
from goldfc.server.deliver import read_model
from goldfc.transport.flower.job import Job
from sentences import has_sentence, refused
from sites import NAMES, agreement, bodies, write_agreement


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Summaries of round 3, and of round 4 where north has sent nothing."""
    monkeypatch.chdir(tmp_path)
    for number in (3, 4):
        Path(str(number)).mkdir()
        for name, body in bodies(agreement(round=number)).items():
            Path(str(number), f"{name}.summary").write_bytes(body)
    Path("4/north.summary").unlink()
    return tmp_path


def fuse(number: int, files: list[Path], out: str, *options: str) -> tuple[int, str]:
    write_agreement(Path(), agreement(round=number))
    return run("fuse", *map(str, files), "-k", "3", "-o", out, *options)


def test_fuse_after_a_model_says_what_changed_and_takes_earlier_summaries(here: Path) -> None:
    first, second = sorted(here.glob("3/*.summary")), sorted(here.glob("4/*.summary"))
    assert "hanged" not in fuse(3, first[:3], "first.model")[1]
    mixed = [*second, here / "3" / "north.summary"]
    code, output = fuse(4, mixed, "second.model")
    assert code == 3
    assert has_sentence(output, "summary-of-other-terms")
    code, output = fuse(4, mixed, "second.model", "--after", "first.model")
    assert code == 0, output
    assert "Changed: west joined." in output
    code, output = run("inspect", "second.model")
    assert "made after model " in output
    assert "what changed west joined." in output
    code, output = run("report", "second.model", *map(str, mixed))
    assert code == 0, output
    page = Path("report.html").read_text(encoding="utf-8")
    assert "<li>west joined.</li>" in page
    assert "Summaries of round 3" in page


def test_a_later_model_is_not_overwritten_by_what_comes_after_an_earlier_one(here: Path) -> None:
    files = sorted(here.glob("3/*.summary"))
    assert fuse(3, files, "first.model")[0] == 0
    assert fuse(3, files, "second.model", "--after", "first.model")[0] == 0
    assert fuse(3, files, "second.model", "--after", "first.model")[0] == 0  # once more the same
    assert fuse(3, files, "third.model", "--after", "second.model")[0] == 0
    code, output = fuse(3, files, "third.model", "--after", "first.model")
    assert code == 3
    assert has_sentence(output, "model-before-old")


def test_nothing_changed_is_said(here: Path) -> None:
    files = sorted(here.glob("3/*.summary"))
    fuse(3, files, "first.model")
    assert "Nothing changed." in fuse(3, files, "second.model", "--after", "first.model")[1]


def test_the_next_round_in_a_folder_begins_by_its_number(here: Path) -> None:
    Path("f/inbox").mkdir(parents=True)
    write_agreement(Path("f"), agreement(round=3))
    for path in here.glob("3/*.summary"):
        shutil.copy(path, "f/inbox")
    assert run("collect", "f", "--close", "-k", "3")[0] == 0
    write_agreement(Path("f"), agreement(round=4))
    shutil.copy("4/south.summary", "f/inbox")
    code, output = run("collect", "f")
    assert "that of round 3 is no longer needed." in output
    assert "Nothing new of east: what it sent in round 3 is used." in output
    assert "Not closed yet" in output
    code, output = run("collect", "f", "--close", "-k", "3", "--without", "west")
    assert code == 0, output
    assert f"In: {', '.join(NAMES[:3])}." in output
    assert "Changed: west left." in output
    code, output = run("collect", "f", "--close", "--without", "east")
    assert code == 2
    assert has_sentence(output, "round-has-model")


def test_a_live_round_is_made_after_the_model_that_it_is_given(here: Path) -> None:
    fuse(3, sorted(here.glob("3/*.summary")), "first.model")
    job = Job(federation="federation.toml", out="out", expect=3, after="first.model")
    before = job.before(agreement(round=4))
    assert before is not None
    assert before.digest == read_model(here / "first.model").digest
    with refused(BadMessage, "model-before-later"):
        job.before(agreement(round=2))
    assert Job(federation="federation.toml", out="out", expect=3).before(agreement(round=4)) is None
