"""How large are pages, and how fast: of a federation of 8 sites with 100 micro-clusters each of 36 columns.

    python tools/page_speed.py --out benchmarks/pages/README.md

In Debian's Chromium without a window, from the disk, without a network. The first picture: from the opening of the
page to what the browser calls its first contentful paint. A step of the slider: from its event until the page is laid
out again, and until the next frame is drawn.
"""

import argparse
import os
import platform
import shutil
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

from goldfc import Model, OneShot, Summary, fuse
from goldfc._types import FloatArray
from goldfc.learning.moments import Moments
from goldfc.message.columns import Column, Terms
from goldfc.randomness import generator
from goldfc.report.model_page import write_model_report
from goldfc.report.own_rows import OwnRows
from goldfc.report.site_page import write_site_report
from goldfc.server.influence import LeftOut
from goldfc.site.labels import LabelCounts, Labels, label_rows

SITES, MICRO_CLUSTERS, COLUMNS, KINDS = 8, 100, 36, 4
ROWS = 20_000
OPENED, ROUNDS = 5, 3
MOST_BYTES, MOST_SECONDS_TO_PICTURE, MOST_SECONDS_TO_STEP = 400_000, 1.0, 0.05
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
STEP = """async (place) => {
    const slider = document.getElementById("stop");
    const start = performance.now();
    slider.value = place;
    slider.dispatchEvent(new Event("input"));
    document.body.getBoundingClientRect();
    const laidOut = performance.now();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return [laidOut - start, performance.now() - start];
}"""
PAINT = """() => new Promise((done) => {
    const told = (list) => list.getEntriesByName("first-contentful-paint").forEach((one) => done(one.startTime));
    new PerformanceObserver(told).observe({ type: "paint", buffered: true });
})"""


def summaries_of(columns: tuple[Column, ...], n_sites: int, n_micro: int, kinds: int) -> list[Summary]:
    """Clusters far apart, of equal sizes; the last one is at the last site alone."""
    rng = np.random.default_rng(0)
    centres = 100.0 + 30.0 * rng.normal(size=(kinds, len(columns)))
    found = []
    for site in range(n_sites):
        kind = np.arange(n_micro) % (kinds if site == n_sites - 1 else kinds - 1)
        centroids = centres[kind] + 4.0 * rng.normal(size=(n_micro, len(columns)))
        mass, shape = rng.integers(5, 60, n_micro), 90.0 * np.eye(len(columns))
        mean = np.average(centroids, axis=0, weights=mass)
        squares = mass @ (centroids - mean) ** 2 + mass.sum() * 90.0
        moments = Moments(float(mass.sum()), mean, squares)
        terms = Terms(federation="wards", round=2, columns=columns)
        found.append(Summary(f"site-{site}", centroids, mass, shape, moments, terms=terms))
    return found


def model_of(summaries: list[Summary], n_clusters: int) -> Model:
    """Of a kind that is soon found."""
    return fuse(summaries, n_clusters, OneShot(kinds=("shared",), starts=2), generator(0))


def rows_like(model: Model, count: int) -> FloatArray:
    """Rows around the clusters, and some between the first two."""
    rng = np.random.default_rng(1)
    noise = 9.0 * rng.normal(size=(count, model.layout.numbers.size))
    rows = model.centroids[np.arange(count) % len(model.centroids)] + noise
    rows[::50] = model.centroids[:2].mean(axis=0)
    return rows


def write_pages(folder: Path) -> tuple[Path, Path]:
    """The federation's page, and one of a site's own rows."""
    columns = tuple(Column(name=f"measure {n}", unit="mg/dL") for n in range(COLUMNS))
    summaries = summaries_of(columns, SITES, MICRO_CLUSTERS, KINDS)
    model, page, own_page = model_of(summaries, KINDS), folder / "report.html", folder / "own.html"
    write_model_report(model, page, summaries, left_out=[LeftOut(one.site, 0.9, KINDS) for one in summaries])
    rows, own, counts = rows_like(model, ROWS), OwnRows(model), LabelCounts()
    labels = Labels(tuple(map(str, range(ROWS))), *label_rows(rows, model), ("",) * ROWS)
    own.see(labels, rows)
    counts.add(labels)
    write_site_report(own, counts, own_page)
    return page, own_page


def opened(browser: Browser, path: Path) -> Page:
    """A page in a window of its own."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True).new_page()
    page.goto(path.as_uri())
    return page


def seconds_to_picture(browser: Browser, path: Path) -> list[float]:
    """Of several openings."""
    return [opened(browser, path).evaluate(PAINT) / 1000.0 for _ in range(OPENED)]


def seconds_to_step(browser: Browser, path: Path) -> list[tuple[float, float]]:
    """Of every step of the slider, some times: laid out, and drawn."""
    page = opened(browser, path)
    places = range(page.locator("[data-stop]").count())
    found = [page.evaluate(STEP, place) for _ in range(ROUNDS) for place in places]
    return [(laid_out / 1000.0, drawn / 1000.0) for laid_out, drawn in found]


def line(what: str, measured: list[float], limit: float) -> str:
    """Of several measurements the usual one and the worst."""
    return f"| {what} | {1000 * median(measured):.0f} ms | {1000 * max(measured):.0f} ms | {1000 * limit:.0f} ms |"


def as_markdown() -> str:
    """All of it as a page."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page, own = write_pages(Path(folder))
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        steps = seconds_to_step(browser, page)
        pictures, own_pictures = seconds_to_picture(browser, page), seconds_to_picture(browser, own)
        lines = [
            "# How large pages are, and how fast",
            "",
            "`python tools/page_speed.py --out benchmarks/pages/README.md`",
            "",
            f"{SITES} sites x {MICRO_CLUSTERS} micro-clusters x {COLUMNS} columns, {KINDS} clusters; the site's page "
            f"is made of {ROWS:,} rows. Chromium {browser.version} without a window, on {os.cpu_count()} cores of "
            f"{platform.machine()} with a load of {os.getloadavg()[0]:.0f}: much of the worst is waiting for a core.",
            "",
            "| | usually | at worst | at most |",
            "|---|--:|--:|--:|",
            f"| size of the federation's page | {page.stat().st_size / 1000:.0f} kB | | {MOST_BYTES / 1000:.0f} kB |",
            f"| size of the site's page | {own.stat().st_size / 1000:.0f} kB | | {MOST_BYTES / 1000:.0f} kB |",
            line("first picture of the federation's page", pictures, MOST_SECONDS_TO_PICTURE),
            line("first picture of the site's page", own_pictures, MOST_SECONDS_TO_PICTURE),
            line("step of the slider, until laid out", [one for one, _ in steps], MOST_SECONDS_TO_STEP),
            line("step of the slider, until the next frame", [other for _, other in steps], MOST_SECONDS_TO_STEP),
        ]
        browser.close()
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/pages/README.md"))
    out = parser.parse_args().out
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(as_markdown(), encoding="utf-8")


if __name__ == "__main__":
    main()
