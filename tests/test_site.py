"""The documentation as a site: built without a warning, it needs no network, and leads where a reader wants to go."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urldefrag

import click
import pytest
from pydantic import BaseModel

import goldfc
from goldfc.agreement import Agreement, Bounds, ListedSite, Server
from goldfc.cli import main
from goldfc.cli.shared import EXIT_CODES
from goldfc.message.columns import Column
from goldfc_bench.cli import main as bench

ROOT = Path(__file__).parent.parent
MOST_CLICKS = 3
# Of the site, and no file that is only handed out.
PAGE = re.compile(r"(?!.*(?:://|_downloads/)).*\.html")

ELSEWHERE = re.compile(r"[a-z]+:")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once, every warning an error."""
    out = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-c",
        "docs",
        "-d",
        f"{out}.trees",
        ".",
        str(out),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 (our own command)
    assert done.returncode == 0, done.stderr
    return out


def text_of(page: Path) -> str:
    """The article, without menus."""
    html = page.read_text(encoding="utf-8")
    return html[html.index('<article class="bd-article"') : html.index("</article>")]


def links_of(page: Path) -> set[Path]:
    """Pages that the article leads to."""
    targets = {urldefrag(unescape(link)).url for link in re.findall(r'href="([^"]*)"', text_of(page))}
    return {(page.parent / unquote(link)).resolve() for link in targets if PAGE.fullmatch(link)}


@pytest.fixture(scope="session")
def reached(site: Path) -> dict[str, str]:
    """What a reader who starts at the home page and uses no menu finds within three clicks."""
    home = site / "docs" / "index.html"
    found, front = {home}, {home}
    for _ in range(MOST_CLICKS):
        front = {link for page in front for link in links_of(page)} - found
        found |= front
    return {page.relative_to(site).as_posix(): text_of(page) for page in found}


def misses(page: Path, places: dict[Path, set[str]]) -> set[str]:
    """Links and pictures of a page, its menus as well, that lead to nothing."""
    targets = {unescape(link) for link in re.findall(r'(?:href|src)="([^"]*)"', page.read_text(encoding="utf-8"))}
    return {link for link in targets if not ELSEWHERE.match(link) and not is_there(link, page, places)}


def is_there(link: str, page: Path, places: dict[Path, set[str]]) -> bool:
    """Whether a link leads to a file, and if it is a page, to a place in it."""
    address, place = urldefrag(link)
    target = (page.parent / unquote(address.partition("?")[0])).resolve() if address else page
    return target.is_file() and (not place or target not in places or unquote(place) in places[target])


def codes_in(page: str) -> str:
    """All that is set as code."""
    return "\n".join(unescape(re.sub("<[^>]*>", "", code)) for code in re.findall(r"<code.*?</code>", page, re.DOTALL))


def test_the_first_page_is_the_home_page(site: Path) -> None:
    assert 'url=docs/index.html"' in (site / "index.html").read_text(encoding="utf-8")


def test_a_reader_finds_how_to_cluster_three_tables(reached: dict[str, str]) -> None:
    commands = unescape(re.sub("<[^>]*>", "", reached["README.html"]))
    assert all(f"goldfc summarize {name}/{name}.csv" in commands for name in ("north", "south", "west"))


def test_a_reader_finds_what_leaves(reached: dict[str, str]) -> None:
    assert 'id="what-leaves"' in reached["docs/privacy.html"]


def test_a_reader_finds_how_to_add_a_method(reached: dict[str, str]) -> None:
    assert 'id="a-method-of-your-own"' in reached["docs/benchmark.html"]


@pytest.mark.parametrize("part", [Agreement, Bounds, ListedSite, Server, Column], ids=lambda part: part.__name__)
def test_a_reader_finds_every_field_of_the_federation_file(reached: dict[str, str], part: type[BaseModel]) -> None:
    told = codes_in(reached["docs/federation-file.html"])
    assert [field for field in part.model_fields if not re.search(rf"\b{field}\b", told)] == []


def test_a_reader_finds_every_exit_code(reached: dict[str, str]) -> None:
    lines = re.findall(r"<tr.*?</tr>", reached["docs/exit-codes.html"], re.DOTALL)
    told = {(name, re.sub("<[^>]*>|\\s", "", line)[0]) for line in lines for name in codes_in(line).splitlines()}
    assert {(error.__name__, str(code)) for error, code in EXIT_CODES} <= told


def test_a_reader_finds_every_public_name(reached: dict[str, str]) -> None:
    assert [name for name in goldfc.__all__ if f'id="goldfc.{name}' not in reached["docs/api.html"]] == []


@pytest.mark.parametrize("program", [main, bench], ids=lambda program: program.name)
def test_a_reader_finds_every_command(reached: dict[str, str], program: click.Group) -> None:
    assert [
        name for name in program.commands if f'id="{program.name}-{name}"' not in reached["docs/commands.html"]
    ] == []


def test_every_link_and_picture_is_there(site: Path) -> None:
    pages = [page for page in site.rglob("*.html") if "_static" not in page.parts]
    places = {page: set(re.findall(r'\bid="([^"]*)"', page.read_text(encoding="utf-8"))) for page in pages}
    assert {page.relative_to(site).as_posix(): lost for page in pages if (lost := misses(page, places))} == {}


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    loaded = r'<(?:script|img|iframe)[^>]*src="(?:https?:)?//|<link[^>]*href="(?:https?:)?//'
    assert [page for page in site.rglob("*.html") if re.search(loaded, page.read_text(encoding="utf-8"))] == []


def test_search_needs_no_server(site: Path) -> None:
    assert 'src="searchindex.js"' in (site / "search.html").read_text(encoding="utf-8")
