"""The commands as a person meets them: what they print, what they write, and how they end."""

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from goldfc import Model, label
from goldfc.cli import main
from goldfc.message.keyfile import LOCKED_PREFIX, VARIABLE
from goldfc.message.wire import decode
from sentences import has_sentence
from sites import rows_of, write_policy

HEADER = "id,age,pressure\n"


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert "Traceback" not in result.output
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with three tables."""
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("a", "b", "c")):
        Path(name).mkdir()
        (Path(name) / f"{name}.csv").write_text(table_text(name, number), encoding="utf-8")
    return tmp_path


def table_text(name: str, number: int) -> str:
    """The table of a site."""
    lines = [f"{name}{row},{age:.2f},{pressure:.2f}" for row, (age, pressure) in enumerate(rows_of(number))]
    return HEADER + "\n".join(lines) + "\n"


def summarize_all() -> None:
    for name in ("a", "b", "c"):
        code, output = run("summarize", f"{name}/{name}.csv", "-o", f"{name}.summary", "--id-column", "id")
        assert code == 0, output


def model_in(path: Path) -> Model:
    return Model.from_message(decode(path.read_bytes()))


def test_three_tables_become_three_label_files_in_eight_commands(here: Path) -> None:
    assert run("init", "a/a.csv", "--name", "wards", "--id-column", "id")[0] == 0
    summarize_all()
    code, output = run("fuse", "a.summary", "b.summary", "c.summary", "-o", "global.model")
    assert code == 0
    assert "How many clusters? 3: the best balance of fit and simplicity." in output
    assert "What they are like: clusters that are all stretched alike fit best" in output
    for name in ("a", "b", "c"):
        code, output = run(
            "label", f"{name}/{name}.csv", "--model", "global.model", "-o", f"{name}/labels.csv", "--id-column", "id"
        )
        assert code == 0
        lines = (here / name / "labels.csv").read_text(encoding="utf-8").splitlines()
        assert lines[0] == "id,cluster,certainty,far,reason,model"
        assert len(lines) == 121
        assert re.fullmatch(rf"{name}0,[012],[01]\.\d\d\d,no,,[0-9a-f]{{12}}", lines[1])


def test_without_a_federation_file_the_header_says_what_there_is(here: Path) -> None:
    for name in ("a", "b", "c"):
        code, output = run("summarize", f"{name}/{name}.csv", "-o", f"{name}.summary", "--id-column", "id")
        assert code == 0
        assert "There is no federation.toml" in output
    assert run("fuse", "a.summary", "b.summary", "c.summary", "-k", "3", "-o", "global.model")[0] == 0
    code, output = run("summarize", "a/a.csv", "-o", "d.summary", "--columns", "age")
    assert code == 0
    code, output = run("fuse", "a.summary", "d.summary", "-k", "3", "-o", "other.model")
    assert code == 3
    assert "d.summary: The summary of site 'd' does not fit federation.toml: it has 1 columns, not 2" in output
    assert not (here / "other.model").exists()


def test_plain_only_by_name(here: Path) -> None:
    options = ("summarize", "a/a.csv", "-o", "a.summary", "--id-column", "id", "--privacy", "plain")
    assert run(*options)[0] == 0
    assert "suppressed: no micro-cluster of fewer than 5 rows" in run("inspect", "a.summary")[1]
    (here / "a.summary").unlink()
    write_policy(here / "a", "smallest = 1")
    code, output = run(*options)
    assert code == 5
    assert re.search(r"a.summary is not written: .*\d+ of \d+ centroids are the same as a row", output)
    assert run(*options, "--accept-risk")[0] == 0
    assert (here / "a.summary").is_file()
    assert "privacy level plain: a micro-cluster may be a single row" in run("inspect", "a.summary")[1]
    run("init", "a/a.csv", "--name", "wards", "--id-column", "id")
    code, output = run(*options)
    assert code == 2
    assert "Columns and privacy are agreed on in the federation file" in output


def test_inspect_says_in_words_and_in_json_what_is_inside(here: Path) -> None:
    run("init", "a/a.csv", "--name", "wards", "--id-column", "id")
    summarize_all()
    code, output = run("inspect", "a.summary")
    assert code == 0
    for words in (
        "the summary of site 'a': all that leaves it",
        "wards, round 1",
        "suppressed: no micro-cluster of fewer than 5 rows",
        "not in it rows, their order, names or ids, file names",
    ):
        assert words in output
    facts = json.loads(CliRunner().invoke(main, ["inspect", "a.summary", "--json"]).output)
    assert facts["site"] == "a"
    assert len(facts["arrays"]["centroids"]) == len(facts["arrays"]["mass"])
    run("fuse", "a.summary", "b.summary", "c.summary", "-o", "global.model")
    told = run("inspect", "global.model")[1]
    for words in (
        "a model: what every site gets back",
        "their kind clusters that are all stretched alike fit best",
        "it tells every site the clusters' means and sizes and their common covariance, the names of all sites",
        f"fingerprint {model_in(here / 'global.model').fingerprint}, which every label by it has",
    ):
        assert words in told
    facts = json.loads(CliRunner().invoke(main, ["inspect", "global.model", "--json"]).output)
    assert facts["cluster_kind"] in {"shared", "own", "linked"}
    assert len(facts["arrays"]["cluster_mass"]) == len(facts["arrays"]["centroids"]) == 3
    assert "goldfc inspect" not in run("inspect", "nothing.summary")[1]
    assert run("inspect", "nothing.summary")[0] == 3
    assert here.is_dir()


def test_the_report_names_sites_and_what_changes_without_each(here: Path) -> None:
    run("init", "a/a.csv", "--name", "wards", "--id-column", "id")
    summarize_all()
    run("fuse", "a.summary", "b.summary", "c.summary", "-o", "global.model")
    code, output = run("report", "global.model", "a.summary", "b.summary", "c.summary", "-o", "page.html")
    assert (code, output) == (0, "Open page.html in a browser.")
    assert "pressure" in (here / "page.html").read_text(encoding="utf-8")
    (here / "c" / "c.csv").write_text(table_text("c", 7), encoding="utf-8")
    assert run("summarize", "c/c.csv", "-o", "c.summary", "--id-column", "id")[0] == 0
    code, output = run("report", "global.model", "c.summary", "-o", "page.html")
    assert code == 3
    assert "the model was made from another summary of site 'c'" in output


def test_a_column_in_other_units_is_named_when_it_is_fused_collected_and_reported(here: Path) -> None:
    days = [(7.0 * age, pressure) for age, pressure in rows_of(2)]
    lines = [f"c{row},{age:.2f},{pressure:.2f}" for row, (age, pressure) in enumerate(days)]
    Path("c/c.csv").write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    run("init", "a/a.csv", "--name", "wards", "--id-column", "id")
    summarize_all()
    odd = "Odd: Column 'age': c's mean is "
    code, output = run("fuse", "a.summary", "b.summary", "c.summary", "-k", "3", "-o", "global.model")
    assert code == 0
    assert odd in output
    assert "other units? (a factor of 7" in output
    (here / "round" / "inbox").mkdir(parents=True)
    for name in ("a.summary", "b.summary", "c.summary"):
        shutil.copy(name, here / "round" / "inbox" / name)
    shutil.copy("federation.toml", here / "round" / "federation.toml")
    code, output = run("collect", "round", "--close", "-k", "3")
    assert code == 0
    assert odd in output
    assert "c&#39;s mean is" in (here / "round" / "report.html").read_text(encoding="utf-8")


def test_sealed_from_end_to_end(here: Path) -> None:
    run("init", "a/a.csv", "--name", "wards", "--id-column", "id")
    text = (here / "federation.toml").read_text(encoding="utf-8")
    for name in ("server", "a", "b", "c"):
        code, output = run("keygen", name)
        assert code == 0
        assert "is private: keep it" in output
        key = (here / f"{name}.pub").read_text(encoding="utf-8").strip()
        text += f'[server]\nkey = "{key}"\n' if name == "server" else f'[[sites]]\nname = "{name}"\nkey = "{key}"\n'
    assert run("keygen", "a")[0] == 2
    (here / "federation.toml").write_text(text, encoding="utf-8")
    Path("round/inbox").mkdir(parents=True)
    Path("round/federation.toml").write_text(text, encoding="utf-8")
    for name in ("a", "b", "c"):
        out = f"round/inbox/{name}.summary"
        code, output = run("summarize", f"{name}/{name}.csv", "-o", out, "--id-column", "id", "--key", f"{name}.key")
        assert code == 0, output
    assert "a sealed message" in run("inspect", "round/inbox/a.summary")[1]
    assert "of each the mean of its rows" in run("inspect", "round/inbox/a.summary", "--key", "server.key")[1]
    assert json.loads(CliRunner().invoke(main, ["inspect", "round/inbox/a.summary", "--json"]).output)["site"] == "a"
    code, output = run("collect", "round", "--wait", "-k", "3")
    assert code == 2
    assert has_sentence(output, "server-key-missing")
    assert "; name it with --key." in output
    code, output = run("collect", "round", "--wait", "-k", "3", "--key", "server.key")
    assert code == 0, output
    assert (here / "round" / "report.html").is_file()
    assert "Hand round/sealed/NAME.model to the site of that name." in output
    code, output = run("fuse", "round/accepted/a.summary", "round/accepted/b.summary", "-o", "other.model")
    assert code == 2
    assert has_sentence(output, "sealed-needs-collect")
    model = ("--model", "round/sealed/a.model", "-o", "labels.csv", "--id-column", "id")
    assert run("label", "a/a.csv", *model, "--key", "a.key")[0] == 0
    assert "a model: what every site" in run("inspect", "round/sealed/a.model", "--key", "a.key")[1]
    code, output = run("label", "a/a.csv", *model)
    assert code == 2
    assert has_sentence(output, "sealed-needs-key")
    assert "; name it with --key." in output
    assert {(here / name).stat().st_mode & 0o777 for name in ("round/report.html", "labels.csv")} == {0o600}
    (here / "federation.toml").unlink()
    forged = ("--model", "round/global.model", "-o", "labels.csv", "--id-column", "id")
    code, output = run("label", "a/a.csv", *forged)
    assert code == 2
    assert has_sentence(output, "unsigned-after-sealed")
    assert "; name it with --federation, or say --unsigned" in output
    (here / "federation.toml").write_text(re.sub(r"(?ms)^\[server\].*", "", text), encoding="utf-8")
    code, output = run("label", "a/a.csv", *forged)
    assert code == 2
    assert has_sentence(output, "keys-gone")


def test_a_model_is_taken_without_a_federation_file_only_where_messages_were_made_without_keys(here: Path) -> None:
    summarize_all()
    run("fuse", "a.summary", "b.summary", "c.summary", "-k", "3", "-o", "global.model")
    words = ("--model", "global.model", "-o", "labels.csv", "--id-column", "id")
    assert run("label", "a/a.csv", *words)[0] == 0
    shutil.rmtree(here / "a" / ".goldfc")
    code, output = run("label", "a/a.csv", *words)
    assert code == 2
    assert has_sentence(output, "unsigned-of-unknown")
    assert "; name it with --federation, or say --unsigned if you know where the model is from." in output
    assert run("label", "a/a.csv", *words, "--unsigned")[0] == 0


def test_two_federation_files_that_differ_must_be_chosen_from(here: Path) -> None:
    run("init", "a/a.csv", "--name", "wards", "--id-column", "id")
    shutil.copy("federation.toml", "a/federation.toml")
    words = ("summarize", "a/a.csv", "-o", "a.summary", "--dry-run")
    assert run(*words)[0] == 0
    (here / "federation.toml").write_text(
        (here / "federation.toml").read_text(encoding="utf-8").replace("smallest = 5", "smallest = 2"), encoding="utf-8"
    )
    code, output = run(*words)
    assert code == 2
    assert has_sentence(output, "agreements-differ")
    assert f"a/federation.toml and {here / 'federation.toml'} differ" in output
    for federation in ("federation.toml", "a/federation.toml"):
        assert run(*words, "--federation", federation)[0] == 0


def test_keygen_overwrites_neither_key(here: Path) -> None:
    (here / "north.pub").write_text("the old one\n", encoding="utf-8")
    (here / "south.key").symlink_to("elsewhere")
    for name, there in (("north", "north.pub"), ("south", "south.key")):
        code, output = run("keygen", name)
        assert code == 2
        assert has_sentence(output, "key-exists")
        assert there in output
    assert (here / "north.pub").read_text(encoding="utf-8") == "the old one\n"
    assert not (here / "north.key").exists()
    assert not (here / "south.pub").exists()


def test_a_key_may_be_locked_with_a_passphrase(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    asked = CliRunner().invoke(main, ["keygen", "north", "--passphrase"], input="secret\nsecret\n")
    assert asked.exit_code == 0
    assert "secret" not in asked.output
    assert (here / "north.key").read_text(encoding="ascii").startswith(LOCKED_PREFIX)
    Path("round").mkdir()
    code, output = run("collect", "round", "--key", "north.key")
    assert code == 2
    assert "north.key is locked: say its passphrase when asked, or in the variable GOLDFC_PASSPHRASE" in output
    monkeypatch.setenv(VARIABLE, "secret")
    assert "federation.toml cannot be read" in run("collect", "round", "--key", "north.key")[1]


def test_collect_says_who_is_in_and_who_is_missing(here: Path) -> None:
    run("init", "a/a.csv", "--name", "wards", "--id-column", "id")
    Path("round/inbox").mkdir(parents=True)
    sites = "".join(f'[[sites]]\nname = "{name}"\n' for name in ("a", "b", "c"))
    agreed = (here / "federation.toml").read_text(encoding="utf-8") + sites
    for place in (Path(), Path("round")):
        (place / "federation.toml").write_text(agreed, encoding="utf-8")
    assert run("summarize", "a/a.csv", "-o", "round/inbox/a.summary", "--id-column", "id")[0] == 0
    code, output = run("collect", "round")
    assert code == 0
    assert "accepted: a.summary: the summary of 'a' is in. In: a. Missing: b, c. Not closed yet" in output
    bad = here / "round" / "inbox" / "b\u202e.summary"
    bad.write_bytes(b"nothing")
    os.utime(bad, (1, 1))
    code, output = run("collect", "round", "--close")
    assert code == 4
    assert "rejected: b" in output
    assert "\u202e" not in output
    assert "There is 1 to fuse, but at least 3 are agreed on; wait for more" in output
    for name in ("b", "c"):
        assert run("summarize", f"{name}/{name}.csv", "-o", f"round/inbox/{name}.summary", "--id-column", "id")[0] == 0
    assert run("collect", "round", "--close")[0] == 0  # it stayed open for more
    assert run("collect", "nowhere")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("summarize", "nothing.csv", "-o", "x.summary"), 2, "There is no file nothing.csv."),
        (
            ("summarize", "a/a.csv", "-o", "x.summary", "--columns", "id"),
            2,
            "Column 'id', row 1 below the header holds 'a0', which is not a number",
        ),
        (
            ("summarize", "a/a.csv", "-o", "../x y.summary", "--id-column", "id"),
            2,
            "The site name 'x y' must be letters",
        ),
        (("summarize", "a/a.csv"), 2, "Missing option '-o'"),
        (("summarize", "a/a.csv", "-o", "x.summary", "--federation", "f.toml"), 2, "f.toml cannot be read"),
        (
            ("fuse", "a/a.csv", "-o", "x.model"),
            3,
            "a.csv: this is not a goldfc message: it does not begin like one; `goldfc summarize` makes one",
        ),
        (("label", "a/a.csv", "--model", "a", "-o", "x.csv"), 3, "it must be a plain file, not a link, a folder"),
        (("label", "a/a.csv", "--model", "no.model", "-o", "x.csv"), 2, "There is no file no.model; `goldfc fuse` or"),
        (("summarize", "a/a.csv", "-o", "a/a.csv"), 2, "a/a.csv is an input, and would be overwritten"),
        (("summarize", "a/a.csv", "-o", "b/b.csv"), 2, "b/b.csv exists, and is not of the kind that would be written"),
        (("summarize", "a/a.csv", "-o", "no/a.summary"), 2, "There is no folder no to write a.summary into"),
        (("summarize", "a/a.csv", "-o", "a"), 2, "a is a folder; name a file."),
        (("init", "--name", "wards"), 2, "Name a table, or the columns with --columns."),
        (
            ("init", "a/a.csv", "--name", "../wards"),
            2,
            "What would be written is not as it should be: federation: must be letters, digits",
        ),
        (("init", "a/a.csv", "--name", "w", "--columns", "weight"), 2, "There is no column 'weight'"),
        (("keygen", "../me"), 2, "The name '../me' must be letters"),
        (("collect", "a"), 2, "agreed on; `goldfc init` writes one."),
    ],
)
def test_every_wrong_step_ends_in_a_sentence_that_says_what_to_do(
    here: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    before = sorted(here.rglob("*"))
    ended, output = run(*arguments)
    assert ended == code, output
    assert sentence in output
    assert [path for path in sorted(here.rglob("*")) if path not in before and path.is_file()] == []


def test_the_audit_refuses_with_its_own_exit_code(here: Path) -> None:
    """Yes and no in a single column: whatever is told of forty rows that are all alike is told of each."""
    (here / "d.csv").write_text("ill\n" + "yes\n" * 40, encoding="utf-8")
    (here / "federation.toml").write_text(
        'federation = "wards"\n[[columns]]\nname = "ill"\nkind = "boolean"\n', encoding="utf-8"
    )
    code, output = run("summarize", "d.csv", "-o", "d.summary")
    assert code == 5
    assert "d.summary is not written: 1 of 1 centroids are the same as a row" in output
    assert not (here / "d.summary").exists()
    assert not (here / ".goldfc").exists()
    assert run("summarize", "d.csv", "-o", "d.summary", "--accept-risk")[0] == 0


def test_the_agreed_id_column_need_not_be_named_again(here: Path) -> None:
    run("init", "a/a.csv", "--name", "wards", "--id-column", "id")
    for name in ("a", "b", "c"):
        assert run("summarize", f"{name}/{name}.csv", "-o", f"{name}.summary")[0] == 0
    assert run("fuse", "a.summary", "b.summary", "c.summary", "-k", "3", "-o", "global.model")[0] == 0
    assert run("label", "a/a.csv", "--model", "global.model", "-o", "labels.csv")[0] == 0
    assert (here / "labels.csv").read_text(encoding="utf-8").startswith("id,cluster,certainty,far,reason,model\na0,")
    code, output = run("summarize", "a/a.csv", "-o", "again.summary")
    assert code == 0
    assert "The same rows were summarised as site 'a' before; hand over one of the two messages." in output


def test_labels_are_those_of_the_model_with_and_without_the_private_folder(here: Path) -> None:
    run("init", "a/a.csv", "--name", "wards", "--id-column", "id")
    summarize_all()
    text = (here / "federation.toml").read_text(encoding="utf-8")
    (here / "federation.toml").write_text(text.replace("least_sites = 3", "least_sites = 2"), encoding="utf-8")
    for sent, model in (("abc", "global.model"), ("bc", "others.model")):
        run("fuse", *(f"{name}.summary" for name in sent), "-k", "3", "-o", model)
        read = model_in(here / model)
        rows = np.genfromtxt(here / "a" / "a.csv", delimiter=",", skip_header=1, usecols=(1, 2))
        cluster, certainty = label(rows, read)
        told = [
            f"a{n},{one},{sure:.3f},no,,{read.fingerprint}"
            for n, (one, sure) in enumerate(zip(cluster, certainty, strict=True))
        ]
        for folder in ("kept", "gone"):
            (here / folder).mkdir(exist_ok=True)
            if folder == "gone":
                shutil.rmtree(here / "a" / ".goldfc", ignore_errors=True)
            out = f"{folder}/{model}.csv"
            code, output = run("label", "a/a.csv", "--model", model, "-o", out)
            assert code == 0
            assert output.startswith(f"{out}: 120 rows in ")
            assert (here / out).read_text(encoding="utf-8").splitlines()[1:] == told


def test_fewer_clusters_than_asked_for_are_told_in_a_sentence(here: Path) -> None:
    run("init", "a/a.csv", "--name", "wards", "--id-column", "id")
    summarize_all()
    code, output = run("fuse", "a.summary", "b.summary", "c.summary", "-k", "60", "-o", "global.model")
    assert code == 0
    found = re.search(r"Only (\d+) clusters were found, and 60 were asked for: the sites' micro-clusters tell", output)
    assert found is not None
    assert f"global.model: {found[1]} clusters from" in output
    assert len(model_in(here / "global.model").centroids) == int(found[1])
    code, output = run("report", "global.model", "a.summary", "b.summary", "c.summary")
    assert code == 0
    page = (here / "report.html").read_text(encoding="utf-8")
    assert "No more could be told apart, of 60 that were asked for." in page
    assert "as many of those asked for as can be told apart: <strong>taken here</strong>" in page
    (here / "round" / "inbox").mkdir(parents=True)
    shutil.copy(here / "federation.toml", here / "round")
    for name in "abc":
        shutil.copy(here / f"{name}.summary", here / "round" / "inbox")
    code, output = run("collect", "round", "--close", "-k", "60")
    assert code == 0
    assert "and 60 were asked for" in output


def test_a_label_file_is_written_again_and_anything_else_is_not_written_over(here: Path) -> None:
    run("init", "a/a.csv", "--name", "wards", "--id-column", "id")
    summarize_all()
    run("fuse", "a.summary", "b.summary", "c.summary", "-k", "3", "-o", "global.model")
    words = ("label", "a/a.csv", "--model", "global.model", "-o", "labels.csv")
    assert run(*words)[0] == run(*words)[0] == 0
    (here / "labels.csv").write_text("id,diagnosis\na0,flu\n", encoding="utf-8")
    code, output = run(*words)
    assert code == 2
    assert has_sentence(output, "output-of-other-kind")


def test_an_existing_agreement_is_not_replaced_by_accident(here: Path) -> None:
    (here / "federation.toml").write_text("ours", encoding="utf-8")
    assert run("init", "--columns", "age,pressure", "--name", "w")[0] == 2
    assert (here / "federation.toml").read_text(encoding="utf-8") == "ours"
    assert run("init", "--columns", "age,pressure", "--name", "w", "--force")[0] == 0


def test_help_names_the_exit_codes() -> None:
    assert "3 a message is bad or does not fit; 4 too few sites; 5 the audit refused" in run("--help")[1]
