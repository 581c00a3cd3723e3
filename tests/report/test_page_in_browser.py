"""The page in a real browser, from the disk: every control does what it says, and nothing is fetched."""

from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tools.page_speed import ARGUMENTS, MOST_BYTES, model_of, rows_like, summaries_of

from goldfc import Model
from goldfc.message.columns import Column
from goldfc.names import NAMES_FILE, Called, Names, read_names
from goldfc.report.model_page import write_model_report
from goldfc.report.site_page import write_site_report
from goldfc.server.influence import LeftOut
from needs import BROWSER, needs_browser
from report.own import own_rows

pytestmark = needs_browser

MOST_BYTES_OF_SCRIPT = 60_000
EVIL = "<script>document.title='gone'</script><img src=x onerror=alert(1)>\"'`${7*7}&amp;=1+1"
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    """Of eight sites with a hundred micro-clusters of 36 columns, and its page."""
    summaries = summaries_of(tuple(Column(name=f"measure {n}", unit="mg/dL") for n in range(36)), 8, 100, 4)
    model = model_of(summaries, 4)
    left_out = [LeftOut(summary.site, 0.9, 4) for summary in summaries]
    write_model_report(model, folder / "large.html", summaries, left_out=left_out)
    rows = rows_like(model, 2000)
    rows[41, 7] += 5_000.0
    write_site_report(*own_rows(model, rows), folder / "own.html")
    return model


@pytest.fixture(scope="module")
def evil(folder: Path) -> Model:
    """A small one in which whatever can be called something is called something evil."""
    columns = tuple(Column(name=f"{n} {EVIL}", unit=EVIL) for n in range(4))
    summaries = summaries_of(columns, 3, 20, 3)
    model = model_of(summaries, 3)
    names = Names(clusters=(Called(id=0, name=EVIL[:60], note=EVIL), Called(id=9, name="of a cluster that is gone")))
    refused = {f"x{EVIL}": f"\x00\x1b[31m{EVIL}"}
    write_model_report(model, folder / "evil.html", summaries, names=names, expected=[EVIL], refused=refused)
    write_model_report(model, folder / "alone.html")
    rows = rows_like(model, 300)
    rows[[3, 5]] += 3_000.0
    rows[[8, 9]] = np.nan
    own = own_rows(model, rows, name=lambda number: f"{number}\x1b[31m{EVIL}", reason=f"\x00{EVIL}")
    write_site_report(*own, folder / "own-evil.html", names, id_name=EVIL)
    return model


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def told() -> list[str]:
    """What the browser says in its console, and what it asks for."""
    return []


@pytest.fixture
def opened(browser: Browser, folder: Path, model: Model, evil: Model, told: list[str]) -> Iterator[Open]:
    """Pages from the disk, without a network; in the end nothing was asked for and nothing complained of."""
    del model, evil
    contexts = []

    def open_page(name: str = "large", width: int = 1280, scheme: str = "light", *, script: bool = True) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            offline=True,
            java_script_enabled=script,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("dialog", lambda dialog: told.append(dialog.message))
        page.on("request", lambda request: told.append(request.url) if "blob:" not in request.url else None)
        address = (folder / f"{name}.html").as_uri()
        page.goto(address)
        told.remove(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert told == []


@pytest.mark.parametrize("name", ["large", "evil", "alone", "own", "own-evil"])
@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_window(opened: Open, name: str, width: int) -> None:
    assert opened(name, width).evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("large", 1280, "light"),
        ("evil", 400, "light"),
        ("evil", 1280, "dark"),
        ("alone", 400, "dark"),
        ("own-evil", 1280, "light"),
        ("own-evil", 400, "dark"),
    ],
)
def test_everybody_can_read_the_page(opened: Open, name: str, width: int, scheme: str) -> None:
    page = opened(name, width, scheme)
    assert page.title() != "gone"
    for one in page.locator("details").all():
        one.evaluate("one => { one.open = true; }")
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)")
    serious = [one for one in found if one["impact"] in {"serious", "critical"}]
    assert [(one["id"], one["nodes"][0]["html"][:200]) for one in serious] == []


@pytest.mark.parametrize("name", ["evil", "own-evil"])
def test_a_script_that_is_not_the_pages_own_does_not_run(opened: Open, told: list[str], name: str) -> None:
    page = opened(name)
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {textContent: 'gone = 1'}))")
    assert page.evaluate("typeof gone") == "undefined"
    assert "Content Security Policy" in told.pop()


def test_a_large_page_and_its_script_are_small(folder: Path, model: Model) -> None:
    assert len(model.micro_labels) == 800
    for name in ("large", "own"):
        page = (folder / f"{name}.html").read_bytes()
        assert len(page) <= MOST_BYTES
        assert len(page.rpartition(b"<script>")[2]) <= MOST_BYTES_OF_SCRIPT


def test_two_clicks_answer_which_columns_set_a_cluster_apart_and_which_site_alone_has_it(
    opened: Open, model: Model
) -> None:
    alone = int(model.labels_of("site-7")[3])
    page = opened()
    page.get_by_role("link", name=f"Cluster {alone}", exact=True).click()
    card = page.locator(f"#cluster-{alone}")
    expect(card).to_be_in_viewport()
    expect(card.locator(".traits li")).to_have_count(5)
    expect(card.locator(".traits li").first).to_contain_text("mg/dL")
    expect(card).to_contain_text("one site only")
    assert card.locator(".chips li").all_text_contents() == ["site-7"]


def test_one_click_answers_what_if_there_were_six(opened: Open) -> None:
    page = opened()
    page.get_by_role("group", name="Number of clusters").get_by_role("button", name="6", exact=True).click()
    expect(page.locator("#stop-count")).to_have_text("6 clusters")
    expect(page.locator("#stop-said")).to_contain_text("is cut off")
    expect(page.locator("#groups li")).to_have_count(6)
    assert len(set(page.locator(".place").all_text_contents())) == 6


def test_two_clicks_answer_what_tells_0_from_2(opened: Open, model: Model) -> None:
    page = opened()
    page.get_by_label("One cluster", exact=True).select_option("0")
    page.get_by_label("The other cluster").select_option("2")
    furthest = int(np.abs(model.centroids[0] - model.centroids[2]).argmax())
    first = page.locator("#versus tbody tr").first
    expect(first.locator("th")).to_have_text(f"measure {furthest}mg/dL")
    expect(first).to_contain_text("higher" if model.centroids[0, furthest] > model.centroids[2, furthest] else "lower")
    expect(page.locator("#versus thead th").nth(2)).to_have_text("2")
    page.get_by_label("One cluster", exact=True).select_option("2")
    expect(page.locator("#versus tbody")).to_have_text("Choose two.")


def test_one_click_answers_which_rows_of_ours_are_far(opened: Open) -> None:
    page = opened("own")
    page.get_by_role("link", name="Far rows").click()
    table = page.get_by_role("region", name="Far rows")
    expect(table).to_be_in_viewport()
    expect(table.locator("tbody tr")).to_have_count(1)
    expect(table.locator("tbody th")).to_have_text("42")
    expect(table).to_contain_text("measure 7 ")


def test_a_site_looks_at_one_cluster_alone_and_at_all_again(opened: Open) -> None:
    page = opened("own")
    button = page.locator("[data-show='2']")
    for pressed, clusters in (("true", {"2"}), ("false", {"0", "1", "2", "3"})):
        button.click()
        expect(button).to_have_attribute("aria-pressed", pressed)
        shown = page.locator("[data-of]:not([hidden])").evaluate_all("all => all.map(one => one.dataset.of)")
        assert set(shown) == clusters
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")


def test_the_slider_goes_from_number_to_number_by_keys(opened: Open) -> None:
    page = opened()
    slider = page.get_by_label("What if there were more, or fewer?")
    slider.focus()
    for key, count in (("ArrowRight", 5), ("ArrowLeft", 4), ("ArrowLeft", 3), ("Home", 2), ("End", 8)):
        slider.press(key)
        expect(page.locator("#stop-count")).to_have_text(f"{count} clusters")
        assert len(set(page.locator(".place").all_text_contents())) == count
        assert slider.get_attribute("aria-valuetext") == f"{count} clusters"
    pressed = page.locator("[data-stop][aria-pressed=true]")
    expect(pressed).to_have_text("8")


def test_the_map_tells_of_every_disc_by_pointer_and_by_keys(opened: Open) -> None:
    page = opened("evil")
    said = page.locator("#said")
    page.locator(".disc").last.hover(force=True)
    expect(said).to_contain_text("% certain: cluster")
    page.locator("#terrain").focus()
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("site-")
    first = said.text_content()
    page.keyboard.press("ArrowLeft")
    assert said.text_content() != first
    page.keyboard.press("Escape")
    expect(said).to_have_text("")


def test_the_map_is_a_table_as_well(opened: Open) -> None:
    page = opened()
    page.locator("#listed summary").click()
    lines = page.locator("#listed tbody tr")
    expect(lines).to_have_count(800)
    expect(lines.first).to_contain_text("rows, 100 % certain")


def test_a_step_of_the_slider_touches_every_disc_once(opened: Open) -> None:
    page = opened()
    touched = page.evaluate(
        """async () => {
            const records = [];
            const map = document.getElementById("terrain");
            new MutationObserver((found) => records.push(...found)).observe(map, {subtree: true, attributes: true});
            document.querySelector("[data-stop]").click();
            await new Promise((done) => setTimeout(done));
            return records.filter((one) => one.target.classList.contains("disc")).length;
        }"""
    )
    assert touched == 800


def test_one_cluster_is_shown_and_all_again(opened: Open, model: Model) -> None:
    page = opened()
    button = page.locator("[data-show='2']")
    button.click()
    expect(page.locator(".disc:not(.dim)")).to_have_count(int((model.micro_labels == 2).sum()))
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()
    expect(page.locator(".disc.dim")).to_have_count(0)


def test_the_table_sorts_by_a_cluster_both_ways_and_back(opened: Open, model: Model) -> None:
    page = opened()
    names = page.locator("#heat tbody th")
    before = names.all_text_contents()
    header = page.locator("#heat thead th").nth(2 + 1)
    moments = model.moments
    assert moments is not None
    z = (model.centroids[1] - moments.mean) / moments.scale
    for way, order in (("descending", np.argsort(-z)), ("ascending", np.argsort(z))):
        header.get_by_role("button").click()
        expect(header).to_have_attribute("aria-sort", way)
        assert names.all_text_contents() == [before[f] for f in order]
    header.get_by_role("button").click()
    assert names.all_text_contents() == before


def test_names_that_are_typed_are_text_and_saved_as_the_file_that_is_read(
    opened: Open, folder: Path, evil: Model
) -> None:
    page = opened("evil")
    expect(page.locator("#saving")).to_be_hidden()
    for one in page.locator(".naming").all():
        one.locator("summary").click()
    name, note = '  =1+1 "<b>\\ \u202e\u0007é ', "two\nlines ' of [toml]"
    page.locator("#name-1").fill(name)
    page.locator("#note-1").fill(note)
    expect(page.locator("#title-1 .called")).to_have_text('=1+1 "<b>\\ é')
    page.locator("#name-2").fill('=1+1 "<b>\\ é')
    expect(page.locator("#wrong-2")).to_have_text("Another cluster is called so.")
    expect(page.locator("#save")).to_be_disabled()
    page.locator("#name-2").fill("old")
    expect(page.locator("#other option").nth(2)).to_have_text("2 old")
    with page.expect_download() as download:
        page.locator("#save").click()
    download.value.save_as(folder / NAMES_FILE)
    names = read_names(folder / NAMES_FILE, evil)
    assert names.model == evil.fingerprint
    assert names.clusters == (
        Called(id=0, name=EVIL[:60], note=EVIL),
        Called(id=1, name='=1+1 "<b>\\ é', note="two lines ' of [toml]"),
        Called(id=2, name="old"),
        Called(id=9, name="of a cluster that is gone"),
    )


def test_without_script_everything_can_be_read(opened: Open) -> None:
    page = opened(script=False)
    for control in ("#stop", "#versus", "#saving", ".naming"):
        expect(page.locator(control).first).to_be_hidden()
    expect(page.locator(".card .traits li")).to_have_count(20)
    expect(page.locator(".card .about")).to_have_count(4)
    expect(page.locator(".disc title")).to_have_count(800)
    page.locator("#all-stops summary").click()
    expect(page.locator("#all-stops li").first).to_be_visible()


@pytest.mark.parametrize(
    ("name", "controls"), [("evil", ("nav", "#stop", ".naming", "[data-show]")), ("own-evil", ("nav", "[data-show]"))]
)
def test_on_paper_there_are_no_controls_and_nothing_is_folded_away(
    opened: Open, name: str, controls: tuple[str, ...]
) -> None:
    page = opened(name)
    page.emulate_media(media="print")
    for control in controls:
        expect(page.locator(control).first).to_be_hidden()
    assert len(page.pdf()) > 10_000
    assert page.locator("details:not(.live):not([open])").count() == 0


def test_what_a_site_sees_can_be_read_without_script(opened: Open) -> None:
    page = opened("own", script=False)
    expect(page.locator("[data-show]").first).to_be_hidden()
    expect(page.locator(".strip")).to_have_count(144)
    page.locator(".column summary").first.click()
    expect(page.locator(".column table").first).to_be_visible()
