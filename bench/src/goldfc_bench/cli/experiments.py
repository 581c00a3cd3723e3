"""The experiments."""

import json
import os
from collections import Counter
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
from rich.table import Table

from goldfc.cli.shared import console, progress_bar
from goldfc_bench.cli.shared import JOBS_OPTION, SEEDS_OPTION, command_line, main

if TYPE_CHECKING:
    from goldfc_bench.paper import Cell
    from goldfc_bench.run import Job, Run
    from goldfc_bench.scale.parts import Table as ScaleTable


@main.command()
@SEEDS_OPTION
@click.option("--dataset", "names", multiple=True, help="One of the ten sets, such as EC; all of them if not given.")
@JOBS_OPTION
@click.option("--out", type=click.Path(path_type=Path), help="A folder for paper/README.md and paper/rows.jsonl.")
def paper(seeds: int, names: tuple[str, ...], jobs: int, out: Path | None) -> None:
    """Run GOLD on the paper's ten splits and put our figures beside the paper's."""
    from goldfc_bench.datasets import DATASETS
    from goldfc_bench.paper import as_markdown, compare, summary
    from goldfc_bench.run import Job, Rows, run_jobs

    chosen = names or tuple(DATASETS)
    todo = [Job(name, "paper", "GOLD", seed) for name in chosen for seed in range(seeds)]
    with TemporaryDirectory() as scratch, progress_bar("GOLD on the paper's splits", len(todo)) as bar:
        rows = Rows((out / "paper" if out else Path(scratch)) / "rows.jsonl")
        rows.path.unlink(missing_ok=True)  # a minute's work, and always made by the code as it is
        runs = run_jobs(todo, rows, jobs, lambda _: bar.advance(bar.task_ids[0]))
    cells = compare(runs)
    for evaluation in ("federated", "global"):
        console.print(paper_table([cell for cell in cells if cell.evaluation == evaluation]))
    for sentence in (*summary(cells, runs), *(f"- {cell.sentence}" for cell in cells if not cell.agrees)):
        console.print(sentence, highlight=False)
    if out is not None:
        (out / "paper" / "README.md").write_text(as_markdown(cells, runs, command_line()), encoding="utf-8")


def paper_table(cells: "list[Cell]") -> Table:
    """One evaluation: a row per data set, a column per index."""
    table = Table(title=f"{cells[0].evaluation}: ours (paper's)", title_justify="left")
    table.add_column("")
    for index in dict.fromkeys(cell.index for cell in cells):
        table.add_column(index)
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        row = [cell for cell in cells if cell.dataset == dataset]
        texts = (f"{cell.ours.mean:.3f} ({cell.paper.mean:.3f})" for cell in row)
        marks = ("" if cell.agrees else "[bold red]" for cell in row)
        table.add_row(dataset, *(mark + text for mark, text in zip(marks, texts, strict=True)))
    return table


@main.command("run")
@click.option("--dataset", "datasets", multiple=True, required=True, help="EC ... LE, SD-1000x10, or a CSV file.")
@click.option("--split", "splits", multiple=True, default=("paper",), show_default=True, help="Or non-icd-8-0, even-8.")
@click.option("--method", "methods", multiple=True, help="A name, or file.py:Class; all twelve if not given.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Change a setting of the methods.")
@SEEDS_OPTION
@click.option(
    "--limit",
    type=click.FloatRange(0.0, min_open=True),
    default=600.0,
    show_default=True,
    help="Seconds that a run may take.",
)
@JOBS_OPTION
@click.option("--out", type=click.Path(path_type=Path), default=Path("rows.jsonl"), show_default=True)
def run_command(  # noqa: PLR0913, PLR0917 (one argument per option)
    datasets: tuple[str, ...],
    splits: tuple[str, ...],
    methods: tuple[str, ...],
    settings: tuple[str, ...],
    seeds: int,
    limit: float,
    jobs: int,
    out: Path,
) -> None:
    """Run methods on data sets and splits, a row for every run; start it again to go on where it was."""
    from goldfc_bench.methods import METHODS
    from goldfc_bench.run import Job

    changed = {name: json.loads(value) for name, value in (pair.split("=", maxsplit=1) for pair in settings)}
    make_runs(
        [
            Job(dataset, split, method, seed, changed, limit)
            for seed in range(seeds)
            for dataset in datasets
            for split in splits
            for method in methods or METHODS
        ],
        out,
        jobs,
    )


@main.command("report")
@click.option("--rows", type=click.Path(path_type=Path), default=Path("benchmarks/results"), show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("benchmarks/results"), show_default=True)
def report_command(rows: Path, out: Path) -> None:
    """Make tables and figures of the rows in a folder: one page for a browser, and files for a repository."""
    from goldfc_bench.report import write_report

    write_report(rows, out)
    console.print(f"Open [bold]{out / 'report.html'}[/] in a browser; {out / 'README.md'} is the same in Markdown.")


def make_runs(todo: "list[Job]", path: Path, jobs: int) -> "list[Run]":
    """Make the runs with a progress bar, and say in the end how many did not work out."""
    from goldfc_bench.run import Rows, run_jobs

    with progress_bar("runs", len(todo)) as bar:
        runs = run_jobs(todo, Rows(path), jobs, lambda _: bar.advance(bar.task_ids[0]))
    for (method, dataset, status, reason), count in Counter(
        (run.method, run.dataset, run.status, run.reason) for run in runs if run.status != "done"
    ).items():
        console.print(f"{count} x {method} on {dataset}, {status}: {reason}", highlight=False)
    console.print(f"{len(runs)} rows in {path}")
    return runs


def add_experiment(name: str) -> None:
    """One command per experiment."""

    @main.command(name)
    @click.option("--quick", is_flag=True, help="A small form that ends within two minutes.")
    @click.option(
        "--fresh", is_flag=True, help="Forget the rows that are there; without it, only missing ones are made."
    )
    @JOBS_OPTION
    @click.option("--out", type=click.Path(path_type=Path), help=OUT_HELP)
    def experiment_command(quick: bool, fresh: bool, jobs: int, out: Path | None) -> None:
        from goldfc_bench.experiments import EXPERIMENTS

        experiment = EXPERIMENTS[name]
        folder = out or Path("benchmarks") / ("quick" if quick else "results")
        path = folder / f"{name}.jsonl"
        if fresh:
            path.unlink(missing_ok=True)
        console.print(f"[bold]{experiment.title}[/]")
        make_runs(experiment.jobs(quick), path, 1 if experiment.one_at_a_time else jobs)

    experiment_command.help = f"Experiment: {EXPERIMENT_HELP[name]}"


@main.command()
@click.option("--quick", is_flag=True, help="The same: it is a single run.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("benchmarks/results"), show_default=True)
def picture(quick: bool, out: Path) -> None:
    """Experiment: the whole process of one run as a picture."""
    from goldfc_bench.picture import make_picture, save

    del quick
    save(make_picture(seed=0), out / "picture.json")
    console.print(f"The run is in {out / 'picture.json'}; `goldfc-bench report` draws it.")


OUT_HELP = "A folder for the rows.  [default: benchmarks/results, or benchmarks/quick with --quick]"
EXPERIMENT_HELP = {
    "performance": "all methods on the paper's ten splits.",
    "degree": "from hardly to heavily Non-ICD sites.",
    "exchange": "the same rows at sites that are more and less Non-ICD.",
    "ablation": "what FCPL and MCPL are worth.",
    "granularity": "what each level is worth.",
    "unknown": "the number of clusters nobody knows.",
    "sites": "from 100 to 1000 sites.",
    "time": "seconds against rows and features.",
    "hyper": "learning rate and first candidates.",
}
for experiment_name in EXPERIMENT_HELP:
    add_experiment(experiment_name)


@main.command()
@click.option(
    "--repeats", type=click.IntRange(1), default=5, show_default=True, help="Turns of everything; the median counts."
)
@click.option("--quick", is_flag=True, help="Tiny sizes, for a look at the form.")
@click.option("--out", type=click.Path(path_type=Path), help="A folder for speed/README.md, figures.json, growth.svg.")
def speed(repeats: int, quick: bool, out: Path | None) -> None:
    """Speed against others, growth, memory, and where the time goes; as ratios within one run."""
    from threadpoolctl import threadpool_limits

    from goldfc_bench.scale.measuring import Measuring
    from goldfc_bench.scale.page import Circumstances, as_json, as_markdown, target_table
    from goldfc_bench.scale.picture import draw_growth
    from goldfc_bench.scale.plan import FULL, QUICK

    how = Circumstances.now(command_line(), repeats)
    measuring = Measuring(QUICK if quick else FULL, repeats)
    with threadpool_limits(limits=1):
        for part in measuring.parts():
            with progress_bar(part.title, part.steps) as bar:
                section = measuring.finish(part, partial(bar.advance, bar.task_ids[0]))
            console.print(rich_table(section.title, section.table))
    if measuring.targets:
        console.print(rich_table("Targets", target_table(measuring.targets)))
    if out is not None:
        folder = out / "speed"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "README.md").write_text(as_markdown(measuring.sections, how), encoding="utf-8")
        (folder / "figures.json").write_text(as_json(measuring.sections, how), encoding="utf-8")
        (folder / "growth.svg").write_text(draw_growth(measuring.races, measuring.growths), encoding="utf-8")


def rich_table(title: str, table: "ScaleTable") -> Table:
    """For a terminal."""
    shown = Table(title=title, title_justify="left")
    for column in table.columns:
        shown.add_column(column)
    for row in table.rows:
        shown.add_row(*row)
    return shown


@main.command()
@SEEDS_OPTION
@click.option("--quick", is_flag=True, help="One small set, one hostile site, twenty summaries.")
@JOBS_OPTION
@click.option("--out", type=click.Path(path_type=Path), help="A folder for trust/README.md and trust/rows.jsonl.")
def trust(seeds: int, quick: bool, jobs: int, out: Path | None) -> None:
    """What pooled scaling and suppression cost, what hostile sites can do, and a thousand summaries."""
    from threadpoolctl import threadpool_limits

    from goldfc_bench import trust as parts
    from goldfc_bench.datasets import DATASETS
    from goldfc_bench.run import Rows, run_jobs

    datasets = ("EC",) if quick else tuple(DATASETS)
    todo = parts.jobs(datasets, 1 if quick else seeds)
    page: dict[str, list[str]] = {}
    with TemporaryDirectory() as scratch, threadpool_limits(limits=1):
        # First, because it tells how much memory the process had at most.
        thousand = list(parts.thousand_summaries(Path(scratch) / "thousand", 20 if quick else 1_000))
        with progress_bar("runs", len(todo)) as bar:
            rows = Rows((out / "trust" if out else Path(scratch)) / "rows.jsonl")
            rows.path.unlink(missing_ok=True)
            runs = run_jobs(todo, rows, jobs, lambda _: bar.advance(bar.task_ids[0]))
        page["Federated ARI on the paper's ten splits"] = list(parts.cost_table(runs))
        page["What the audit finds there, at the default level"] = list(parts.membership_table(datasets))
        draws, hostile = (range(1), range(1)) if quick else (range(3), range(8))
        with progress_bar("hostile sites", len(draws) * len(hostile)) as bar:
            attacks = list(parts.attack_table(draws, hostile, lambda: bar.advance(bar.task_ids[0])))
        page["One hostile site of eight: the ARI that the other seven lose (digits, k = 10)"] = attacks
        page["A thousand sites"] = thousand
    text = parts.as_markdown(page, command_line())
    click.echo(text)
    if out is not None:
        (out / "trust").mkdir(parents=True, exist_ok=True)
        (out / "trust" / "README.md").write_text(text, encoding="utf-8")


@main.command("live")
@click.option("--nodes", multiple=True, type=click.IntRange(2), default=(8, 100, 1000), show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="A folder for live/README.md.")
def live_command(nodes: tuple[int, ...], out: Path | None) -> None:
    """What a round on Flower's simulation engine costs, against the same round in one process."""
    from goldfc_bench.flower.measure import measure

    lines = list[str]()
    for count in nodes:
        with TemporaryDirectory() as scratch:
            lines += measure(Path(scratch) / "sites", count)
    page = LIVE_PAGE.format(command=command_line(), lines="\n".join(lines))
    click.echo(page)
    if out is not None:
        (out / "live").mkdir(parents=True, exist_ok=True)
        (out / "live" / "README.md").write_text(page, encoding="utf-8")


@main.command("stream")
@click.option(
    "--gigabytes", multiple=True, type=click.FloatRange(0.0, min_open=True), default=(1.0,), show_default=True
)
@click.option(
    "--scratch", type=click.Path(path_type=Path), help="Where the files go for a while.  [default: temporary]"
)
@click.option("--out", type=click.Path(path_type=Path), help="A folder for stream/README.md.")
def stream_command(gigabytes: tuple[float, ...], scratch: Path | None, out: Path | None) -> None:
    """Memory and time of summarising generated files that are larger than memory should be."""
    from goldfc_bench.stream import as_markdown, measure

    measurements, load = [], os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    with progress_bar("files", len(gigabytes)) as bar:
        for size in gigabytes:
            with TemporaryDirectory(dir=scratch) as folder:
                measurements.append(measure(Path(folder), 1000.0 * size))
            bar.advance(bar.task_ids[0])
    page = as_markdown(measurements, command_line(), load)
    click.echo(page)
    if out is not None:
        (out / "stream").mkdir(parents=True, exist_ok=True)
        (out / "stream" / "README.md").write_text(page, encoding="utf-8")


LIVE_PAGE = """# What the network costs

Made by `{command}`: sites of 100 rows x 4 on Flower's simulation engine (Ray, one process per core), against the same
work (read, summarise, audit, fuse, label) in one process.

| nodes | one process | simulated nodes | per node | accounted for | model |
|---|---|---|---|---|---|
{lines}
"""
