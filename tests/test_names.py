"""Names of clusters are text, fit the model, and go wherever its clusters are shown."""

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

from goldfc import Model, fuse
from goldfc.cli import main
from goldfc.errors import BadSettings
from goldfc.message.wire import encode
from goldfc.names import LONGEST_NAME, NAMES_FILE, names_beside, read_names
from goldfc.randomness import generator
from goldfc.server.one_shot import fusion_of
from pages import tags_of, text_of
from sentences import refused
from sites import NAMES, agreement, rows_of, summary_of, write_agreement

EVIL = "=cmd|' /C calc'!A0 <script>alert(1)</script> \\\"quoted\\\""
CALLED = "=cmd|' /C calc'!A0 <script>alert(1)</script> \"quoted\""


@pytest.fixture(scope="module")
def model() -> Model:
    what = agreement()
    summaries = [summary_of(number, name, what)[0] for number, name in enumerate(NAMES)]
    return fuse(summaries, 3, fusion_of(what), generator(0, "server"))


def named(folder: Path, *clusters: str, model: str = "") -> Path:
    path = folder / NAMES_FILE
    parts = [f"[[clusters]]\n{lines}\n" for lines in clusters]
    path.write_text((f'model = "{model}"\n' if model else "") + "\n".join(parts), encoding="utf-8")
    return path


def test_a_cluster_is_called_as_the_file_beside_the_model_says(model: Model, tmp_path: Path) -> None:
    assert [one.name for one in names_beside(tmp_path / "global.model", model).in_model(model)] == [""] * 3
    named(tmp_path, 'id = 2\nname = "old"\nnote = "seen in May"', "id = 77", model=model.fingerprint)
    names = names_beside(tmp_path / "global.model", model)
    assert [(one.id, one.name, one.note) for one in names.in_model(model)] == [
        (0, "", ""),
        (1, "", ""),
        (2, "old", "seen in May"),
    ]


@pytest.mark.parametrize(
    ("clusters", "code"),
    [
        (('id = 0\nname = "a\\u0007b"',), "text-not-printable"),
        (('id = 0\nname = "a\\u202eb"',), "text-not-printable"),
        (('id = 0\nname = "a\\u2800b"',), "text-invisible"),
        (('id = 0\nnote = "two\\nlines"',), "text-not-printable"),
        (('id = 0\nname = "e\\u0301"',), "text-not-normal"),
        ((f'id = 0\nname = "{"x" * (LONGEST_NAME + 1)}"',), "settings-invalid"),
        (('id = -1\nname = "a"',), "settings-invalid"),
        (('id = 0\ncolour = "red"',), "settings-invalid"),
        (('id = 0\nname = "a"', "id = 0"), "twice"),
        (('id = 0\nname = "a"', 'id = 1\nname = "a"'), "twice"),
        (('id = 0\nname = "A1"', 'id = 1\nname = "\uff211"'), "alike"),
        (("id =",), "toml-invalid"),
    ],
)
def test_a_bad_file_is_refused(model: Model, tmp_path: Path, clusters: tuple[str, ...], code: str) -> None:
    with pytest.raises(BadSettings) as caught:
        read_names(named(tmp_path, *clusters), model)
    assert caught.value.code == code
    assert NAMES_FILE in str(caught.value)


def test_names_of_another_model_are_refused(model: Model, tmp_path: Path) -> None:
    with refused(BadSettings, "names-of-other-model", "'0123456789ab'", model.fingerprint):
        read_names(named(tmp_path, 'id = 0\nname = "a"', model="0123456789ab"), model)


@pytest.fixture
def folder(model: Model, tmp_path: Path) -> Path:
    (tmp_path / "global.model").write_bytes(encode(model.to_message()))
    write_agreement(tmp_path, agreement())
    rows = "\n".join(f"{n},{age:.1f},{pressure:.1f}" for n, (age, pressure) in enumerate(rows_of(0, 20)))
    (tmp_path / "rows.csv").write_text(f"id,age,pressure\n{rows}\n", encoding="utf-8")
    return tmp_path


def run(folder: Path, command: str, *arguments: str, code: int = 0) -> str:
    paths = [str(folder / one) if "." in one else one for one in arguments]
    result = CliRunner().invoke(main, [command, *paths])
    assert result.exit_code == code, result.output
    return result.output


def test_names_go_into_labels_and_pages_as_text_alone(folder: Path) -> None:
    named(folder, *(f'id = {n}\nname = "{EVIL} {n}"\nnote = "<b>"' for n in range(3)))
    for _ in range(2):  # written over what it wrote before
        run(folder, "label", "rows.csv", "--model", "global.model", "-o", "labels.csv")
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["name"] for line in lines} == {f"'{CALLED} {n}" for n in {line["cluster"] for line in lines}}
    run(folder, "report", "global.model", "-o", "page.html")
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert tags_of(page).count("script") == 2
    assert "b" in tags_of(page)  # of our own
    assert "<b></p>" not in page
    assert f"Cluster 1 {CALLED} 1" in text_of(page)


def test_without_names_labels_have_no_column_for_them(folder: Path) -> None:
    run(folder, "label", "rows.csv", "--model", "global.model", "-o", "labels.csv")
    assert (folder / "labels.csv").read_text(encoding="utf-8").startswith("row,cluster,certainty,far,reason,model\n")


def test_another_file_of_names_can_be_given_and_must_be_good(folder: Path) -> None:
    named(folder, 'id = 0\nname = "here"').rename(folder / "other.toml")
    run(folder, "label", "rows.csv", "--model", "global.model", "-o", "labels.csv", "--names", "other.toml")
    assert ",name\n" in (folder / "labels.csv").read_text(encoding="utf-8")
    run(folder, "report", "global.model", "-o", "page.html", "--names", "none.toml", code=2)
    named(folder, "id =")
    run(folder, "report", "global.model", "-o", "page.html", code=2)


def test_who_fuses_is_told_names_and_not_stopped_by_a_bad_file(folder: Path) -> None:
    what = agreement()
    for number, name in enumerate(NAMES):
        (folder / f"{name}.summary").write_bytes(encode(summary_of(number, name, what)[0].to_message()))
    arguments = [*(f"{name}.summary" for name in NAMES), "-o", "global.model", "-k", "3"]
    named(folder, 'id = 1\nname = "[red]old"')
    assert "What they are called: 1 is '[red]old'." in run(folder, "fuse", *arguments)
    named(folder, "id =")
    assert "Names are not used: " in run(folder, "fuse", *arguments)
