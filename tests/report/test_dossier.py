"""The dossier says of a federation what is true, names what shows it, and takes names from the file for text."""

import ast
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from goldfc.agreement import Agreement, parse_agreement
from goldfc.cli import main
from goldfc.message.envelope import PrivateKey
from goldfc.report.dossier import as_markdown, as_page, sections_of
from goldfc.report.evidence import ATTACKS, CLAIMS, MEASURED
from goldfc.report.materials import Component, bill_of_materials, installed, licence_in
from pages import addresses_in, policy_of, tags_of, text_of
from sentences import has_sentence

ROOT = Path(__file__).parent.parent.parent
COLUMN = '[[columns]]\nname = "age"\nrange = [0, 120]\n'
EVIL = "<script>alert(1)</script> [x](http://evil.example) | `www.evil.example` **b**"


def agreed(lines: str = "") -> Agreement:
    return parse_agreement(f'federation = "f"\n{lines}\n{COLUMN}', "it")


def sealed() -> Agreement:
    server, *sites = (PrivateKey.new().public.text for _ in range(4))
    listed = "".join(f'[[sites]]\nname = "s{number}"\nkey = "{key}"\n' for number, key in enumerate(sites))
    return agreed(f'id_column = "id"\n[server]\nkey = "{server}"\n{listed}')


def test_every_test_that_is_named_exists() -> None:
    told = [*sections_of(agreed("[limits]\nsites_behind = 9")), *sections_of(sealed())]
    named = [*(row.shown_by for section in told for row in section.rows), *(claim.shown_by for claim in CLAIMS)]
    for place in {place for places in named for place in places}:
        path, _, test = place.partition("::")
        content = (ROOT / path).read_text(encoding="utf-8")
        assert not test or test in {node.name for node in ast.parse(content).body if isinstance(node, ast.FunctionDef)}


def test_every_figure_is_the_measured_one() -> None:
    page = (ROOT / ATTACKS).read_text(encoding="utf-8")
    lines = re.search(r"## Targets.*?\| --- .*?\n(.*?)\n\n", page, flags=re.DOTALL)
    assert lines is not None
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1].splitlines()]
    assert [(name, figure) for name, _, figure, _ in cells] == [(one.name, one.figure) for one in MEASURED]


def test_the_picture_is_that_of_the_documentation() -> None:
    picture = (ROOT / "docs" / "data-flow.svg").read_text(encoding="utf-8")
    own = (ROOT / "src/goldfc/report/templates/data-flow.svg").read_text(encoding="utf-8")
    assert own == picture.replace(' xmlns="http://www.w3.org/2000/svg"', "")


def test_the_page_stands_by_itself() -> None:
    page = as_page(sealed(), installed())
    assert addresses_in(page) == []
    assert "script" not in tags_of(page)
    assert policy_of(page) == "default-src 'none'; style-src our style; base-uri 'none'"


def test_names_from_a_file_are_text_and_nothing_else() -> None:
    lines = f"title = '{EVIL}'\n[[columns]]\nname = '{EVIL}'\nkind = \"category\"\ncategories = ['<b>', '{EVIL}']\n"
    page = as_page(agreed(lines))
    assert not {"script", "b"} & set(tags_of(page))
    assert EVIL in text_of(page)
    markdown = as_markdown(agreed(lines))
    assert r"\<script\>alert(1)\</script\> \[x\](http:\//evil.example) \| \`www\.evil.example\`" in markdown
    assert not re.search(r"(?<!\\)[<\[]", markdown)


@pytest.mark.parametrize(
    ("agreement", "said", "unsaid"),
    [
        (agreed(), "This is no differential privacy.", "rows may be"),
        (agreed(), "Messages are not sealed", "compare these public ones"),
        (agreed(), "No sites are listed", "Micro-clusters of 5 people are allowed"),
        (
            agreed("smallest = 2"),
            "Micro-clusters of 2 people are allowed; sites with the default policy use 5",
            "Nothing in the file",
        ),
        (agreed("[limits]\nleast_sites = 2"), "content with 2 sites", "Nothing in the file needs a remark"),
        (agreed('privacy = "plain"'), "is for research, and not for data of people", "0.701 (EP"),
        (agreed('privacy = "private"\neps = 3.0'), "(3, 1e-05)-differential privacy for any row", "0.701 (EP"),
        (agreed('privacy = "private"\neps = 3.0'), "eps is above 2", "covers"),
        (sealed(), "Nothing in the file needs a remark", "not sealed"),
        (sealed(), "Nobody can speak for another site", "All of it"),
        (agreed("[limits]\nsites_behind = 9"), "the server gets their sum alone", "sealed for the server"),
    ],
)
def test_it_says_what_holds_at_the_agreed_level(agreement: Agreement, said: str, unsaid: str) -> None:
    text = text_of(as_page(agreement))
    assert said in text
    assert unsaid not in text


def test_page_and_markdown_say_the_same() -> None:
    agreement = sealed()
    for text in (text_of(as_page(agreement)), as_markdown(agreement)):
        told = re.sub(r"[^\w]|\s", "", text)
        assert [
            one for one in CLAIMS if "suppressed" in one.levels and re.sub(r"[^\w]", "", one.sentence) not in told
        ] == []


def test_a_bill_of_materials_has_what_goldfc_needs_and_leads_nowhere_else() -> None:
    components = installed()
    bill = json.loads(bill_of_materials(components))
    assert bill["metadata"]["component"]["name"] == "goldfc"
    told = {one["bom-ref"] for one in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    assert {"numpy", "pyarrow", "cryptography"} <= {one["name"] for one in bill["components"]}
    assert not {"pytest", "mypy"} & {one["name"] for one in bill["components"]}
    assert {ref for line in bill["dependencies"] for ref in (line["ref"], *line["dependsOn"])} == told
    assert bill_of_materials(installed()) == bill_of_materials(components)


def test_a_licence_is_found_in_each_of_three_places() -> None:
    assert licence_in("MIT", None, ()) == ("MIT", True)
    assert licence_in(None, "A long text\nof a licence", ["License :: OSI Approved :: BSD License"])[0] == "BSD License"
    assert licence_in(None, "Apache 2.0", ["Typing :: Typed"]) == ("Apache 2.0", False)
    assert licence_in(None, None, ()) == ("not told", False)
    assert Component("a", "1", "MIT", is_spdx=True).url == "pkg:pypi/a@1"


def test_the_command_writes_both_forms_and_overwrites_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("federation.toml").write_text(f'federation = "f"\n{COLUMN}', encoding="utf-8")
    Path("mine.md").write_text("# Mine\n", encoding="utf-8")

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["dossier", *arguments])
        return result.exit_code, result.output

    for _ in range(2):
        assert run("--sbom", "bill.json")[0] == run("-o", "d.md")[0] == 0
    assert tags_of(Path("dossier.html").read_text(encoding="utf-8"))
    assert json.loads(Path("bill.json").read_text(encoding="utf-8"))["bomFormat"] == "CycloneDX"
    assert Path("d.md").read_text(encoding="utf-8").startswith("# Security and privacy of the federation f\n")
    for code, *options in (("output-of-other-kind", "-o", "mine.md"), ("dossier-suffix", "-o", "d.pdf")):
        exit_code, output = run(*options)
        assert exit_code == 2
        assert has_sentence(output.removeprefix("goldfc: "), code)
    assert run("--sbom", "mine.md")[0] == 2
