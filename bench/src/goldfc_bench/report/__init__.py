"""`goldfc-bench report`: the rows of all experiments become tables and figures, on one page and in a folder."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from goldfc_bench.errors import DataNotFound
from goldfc_bench.experiments import EXPERIMENTS
from goldfc_bench.report.page import write_figures, write_html, write_markdown, write_tables
from goldfc_bench.report.parts import Part, Section, Text
from goldfc_bench.report.sections.ablation import ablation
from goldfc_bench.report.sections.degree import degree, degrees_of
from goldfc_bench.report.sections.exchange import exchange
from goldfc_bench.report.sections.granularity import granularity
from goldfc_bench.report.sections.hyper import hyper
from goldfc_bench.report.sections.performance import all_figures, performance
from goldfc_bench.report.sections.picture import picture
from goldfc_bench.report.sections.seconds import seconds
from goldfc_bench.report.sections.sites import sites
from goldfc_bench.report.sections.unknown import unknown
from goldfc_bench.report.tables import origin
from goldfc_bench.run import Rows, Run

__all__ = ["write_report"]

PICTURE = "The whole process as a picture"


def write_report(folder: Path, out: Path) -> None:
    """All experiments whose rows are in a folder: report.html, README.md, tables/*.csv and figures/*.svg."""
    runs = {name: Rows(folder / f"{name}.jsonl").read() for name in EXPERIMENTS}
    if not any(runs.values()):
        raise DataNotFound(f"There are no rows in {folder}; make some with `goldfc-bench performance`.")
    lambdas = degrees_of([*runs["degree"], *runs["exchange"]], folder / "degrees.json")
    sections = [
        section("performance", runs, performance),
        section("unknown", runs, unknown),
        section("degree", runs, lambda own: degree(own, lambdas)),
        section("exchange", runs, lambda own: exchange(own, lambdas)),
        section("ablation", runs, ablation),
        section("granularity", runs, granularity),
        section("sites", runs, sites),
        section("time", runs, seconds),
        section("hyper", runs, hyper),
        picture_section(folder / "picture.json"),
    ]
    write_tables([*sections, Section("", "", [all_figures(runs["performance"])])], out / "tables")
    write_figures(sections, out / "figures")
    write_markdown(sections, out / "README.md")
    write_html(sections, out / "report.html")


def section(name: str, runs: dict[str, list[Run]], parts: Callable[[Sequence[Run]], Iterable[Part]]) -> Section:
    """What an experiment's rows say, or how to make them."""
    own = runs[name]
    return Section(name, EXPERIMENTS[name].title, [origin(name, own), *parts(own)] if own else [missing(name)])


def picture_section(path: Path) -> Section:
    """The one experiment that is no rows."""
    return Section("picture", PICTURE, list(picture(path)) if path.is_file() else [missing("picture")])


def missing(name: str) -> Text:
    """What to do about an experiment that was not made."""
    return Text(f"Not made yet: `goldfc-bench {name}` makes it.")
