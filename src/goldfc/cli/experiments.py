"""The demo, the experiments and their data."""

import json
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
from rich.table import Table

from goldfc.cli.shared import console, main, progress_bar

if TYPE_CHECKING:
    from goldfc.bench.demo import Demo, Scores
    from goldfc.bench.paper import Cell
    from goldfc.bench.run import Job, Run
    from goldfc.bench.scale.parts import Table as ScaleTable


def not_zero(_context: click.Context, _parameter: click.Parameter, number: int) -> int:
    """Refuse a number of jobs that joblib cannot take."""
    if number == 0:
        raise click.BadParameter("0 runs at a time would never end; use -1 for one per core.")
    return number


# --- demo ---


@main.command()
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Another seed, other sites.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True)
def demo(seed: int, out: Path) -> None:
    """Cluster handwritten digits held by eight simulated sites, and write a report to open in a browser."""
    console.print("Eight sites hold handwritten digits. None may show its rows; nobody says how many clusters to find.")
    console.print(
        "Each finds its micro-clusters and sends one message: their centroids, their sizes, their common shape, and "
        "the mean and spread of every column."
    )
    from goldfc.bench.demo import N_CLIENTS, run_demo
    from goldfc.bench.demo_report import write_report

    # Every site is asked twice: to summarise its rows, and to label them.
    with progress_bar("asking the sites", 2 * N_CLIENTS) as bar:
        result = run_demo(seed, n_jobs=-1, on_answer=lambda _: bar.advance(bar.task_ids[0]))
    out.parent.mkdir(parents=True, exist_ok=True)
    write_report(result, out)
    console.print(demo_table(result))
    for sentence in demo_sentences(result):
        console.print(sentence, highlight=False)
    console.print(f"Open [bold]{out}[/] in a browser to see what each site holds, sent and got back.")


def demo_table(result: "Demo") -> Table:
    """Each client alone, OneShot, pooled k-means."""
    table = Table(title="Agreement with the true digits (ARI: 1 perfect, 0 chance)", title_justify="left")
    for name in ("site", "rows", "digits seen", "micro-clusters", "alone", "OneShot", "pooled k-means"):
        table.add_column(name, justify="left" if name == "site" else "right")
    for site in result.sites:
        counts = (site.rows, (site.truth > 0).sum(), len(site.sizes))
        table.add_row(site.name, *map(str, counts), *demo_scores(site.scores))
    table.add_section()
    totals = (result.rows, result.dataset.n_clusters, len(result.model.micro_labels))
    table.add_row("all", *map(str, totals), *demo_scores(result.scores), style="bold")
    return table


def demo_scores(scores: "Scores") -> list[str]:
    """The three that are in the table."""
    return [ari_text(score) for score in (scores.alone, scores.together, scores.pooled)]


def demo_sentences(result: "Demo") -> Iterator[str]:
    """Which clusters are proposed, of which kind, what else could be, what being told is worth, and the traffic."""
    best, *others = result.proposal.candidates
    yield f"How many clusters? OneShot proposes [bold]{best.n_clusters}[/]: {best.reason}."
    for other in others:
        yield f"  Or {other.n_clusters}: {other.reason}."
    yield f"What kind? [bold]{result.model.kind}[/]: {result.model.why}."
    yield (
        "There are ten digits, but one that is written in two ways may be two clusters. Told ten, OneShot has an ARI "
        f"of {ari_text(result.scores.told)} instead of {ari_text(result.scores.together)}; GOLD, the paper's method, "
        f"told ten, {ari_text(result.scores.paper)}. (Alone and pooled are k-means, told ten.)"
    )
    yield f"The server got {result.ledger.bytes_up / 1000:.0f} kB, one message from each of {len(result.sites)} sites."


def ari_text(score: float) -> str:
    """Two decimals; a dash where there is nothing to score."""
    return "-" if score != score else f"{score:.2f}"  # noqa: PLR0124 (not a number)


# --- bench ---

JOBS_OPTION = click.option(
    "--jobs", default=-1, show_default=True, callback=not_zero, help="Runs at the same time; -1: one per core."
)
SEEDS_OPTION = click.option(
    "--seeds", type=click.IntRange(1), default=10, show_default=True, help="Runs of each, with the seeds 0, 1, ..."
)


@main.group()
def bench() -> None:
    """Experiments: the paper's figures, speed and growth, the cost of safety."""


@bench.command()
@SEEDS_OPTION
@click.option("--dataset", "names", multiple=True, help="One of the ten sets, such as EC; all of them if not given.")
@JOBS_OPTION
@click.option("--out", type=click.Path(path_type=Path), help="A folder for paper/README.md and paper/rows.jsonl.")
def paper(seeds: int, names: tuple[str, ...], jobs: int, out: Path | None) -> None:
    """Run GOLD on the paper's ten splits and put our figures beside the paper's."""
    from goldfc.bench.datasets import DATASETS
    from goldfc.bench.paper import as_markdown, compare, summary
    from goldfc.bench.run import Job, Rows, run_jobs

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


@bench.command("run")
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
    from goldfc.bench.methods import METHODS
    from goldfc.bench.run import Job

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


@bench.command("report")
@click.option("--rows", type=click.Path(path_type=Path), default=Path("benchmarks/results"), show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("benchmarks/results"), show_default=True)
def report_command(rows: Path, out: Path) -> None:
    """Make tables and figures of the rows in a folder: one page for a browser, and files for a repository."""
    from goldfc.bench.report import write_report

    write_report(rows, out)
    console.print(f"Open [bold]{out / 'report.html'}[/] in a browser; {out / 'README.md'} is the same in Markdown.")


def make_runs(todo: "list[Job]", path: Path, jobs: int) -> "list[Run]":
    """Make the runs with a progress bar, and say in the end how many did not work out."""
    from goldfc.bench.run import Rows, run_jobs

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

    @bench.command(name)
    @click.option("--quick", is_flag=True, help="A small form that ends within two minutes.")
    @click.option(
        "--fresh", is_flag=True, help="Forget the rows that are there; without it, only missing ones are made."
    )
    @JOBS_OPTION
    @click.option("--out", type=click.Path(path_type=Path), help=OUT_HELP)
    def experiment_command(quick: bool, fresh: bool, jobs: int, out: Path | None) -> None:
        from goldfc.bench.experiments import EXPERIMENTS

        experiment = EXPERIMENTS[name]
        folder = out or Path("benchmarks") / ("quick" if quick else "results")
        path = folder / f"{name}.jsonl"
        if fresh:
            path.unlink(missing_ok=True)
        console.print(f"[bold]{experiment.title}[/]")
        make_runs(experiment.jobs(quick), path, 1 if experiment.one_at_a_time else jobs)

    experiment_command.help = f"Experiment: {EXPERIMENT_HELP[name]}"


@bench.command()
@click.option("--quick", is_flag=True, help="The same: it is a single run.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("benchmarks/results"), show_default=True)
def picture(quick: bool, out: Path) -> None:
    """Experiment: the whole process of one run as a picture."""
    from goldfc.bench.picture import make_picture, save

    del quick
    save(make_picture(seed=0), out / "picture.json")
    console.print(f"The run is in {out / 'picture.json'}; `goldfc bench report` draws it.")


OUT_HELP = "A folder for the rows.  [default: benchmarks/results, or benchmarks/quick with --quick]"
EXPERIMENT_HELP = {
    "performance": "all methods on the paper's ten splits.",
    "degree": "from hardly to heavily Non-ICD clients.",
    "exchange": "the same rows at clients that are more and less Non-ICD.",
    "ablation": "what FCPL and MCPL are worth.",
    "granularity": "what each level is worth.",
    "unknown": "the number of clusters nobody knows.",
    "clients": "from 100 to 1000 clients.",
    "time": "seconds against rows and features.",
    "hyper": "learning rate and first candidates.",
}
for experiment_name in EXPERIMENT_HELP:
    add_experiment(experiment_name)


@bench.command()
@click.option(
    "--repeats", type=click.IntRange(1), default=5, show_default=True, help="Turns of everything; the median counts."
)
@click.option("--quick", is_flag=True, help="Tiny sizes, for a look at the form.")
@click.option("--out", type=click.Path(path_type=Path), help="A folder for speed/README.md, figures.json, growth.svg.")
def speed(repeats: int, quick: bool, out: Path | None) -> None:
    """Speed against others, growth, memory, and where the time goes; as ratios within one run."""
    from threadpoolctl import threadpool_limits

    from goldfc.bench.scale.measuring import Measuring
    from goldfc.bench.scale.page import Circumstances, as_json, as_markdown, target_table
    from goldfc.bench.scale.picture import draw_growth
    from goldfc.bench.scale.plan import FULL, QUICK

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


@bench.command()
@SEEDS_OPTION
@click.option("--quick", is_flag=True, help="Two small sets, twenty summaries.")
@JOBS_OPTION
@click.option("--out", type=click.Path(path_type=Path), help="A folder for trust/README.md and trust/rows.jsonl.")
def trust(seeds: int, quick: bool, jobs: int, out: Path | None) -> None:
    """What pooled scaling and suppression cost, what hostile clients can do, and a thousand summaries."""
    from threadpoolctl import threadpool_limits

    from goldfc.bench import trust as parts
    from goldfc.bench.datasets import DATASETS
    from goldfc.bench.run import Rows, run_jobs

    datasets = ("EC", "US") if quick else tuple(DATASETS)
    todo = parts.jobs(datasets, 1 if quick else seeds)
    page: dict[str, list[str]] = {}
    with TemporaryDirectory() as scratch, threadpool_limits(limits=1):
        # First, because it tells how much memory the process had at the most.
        thousand = list(parts.thousand_summaries(Path(scratch) / "thousand", 20 if quick else 1_000))
        with progress_bar("runs", len(todo)) as bar:
            rows = Rows((out / "trust" if out else Path(scratch)) / "rows.jsonl")
            rows.path.unlink(missing_ok=True)
            runs = run_jobs(todo, rows, jobs, lambda _: bar.advance(bar.task_ids[0]))
        page["Federated ARI on the paper's ten splits"] = list(parts.cost_table(runs))
        page["What the audit finds there, at the default level"] = list(parts.membership_table(datasets))
        draws = range(1 if quick else 3)
        with progress_bar("hostile sites", 8 * len(draws)) as bar:
            attacks = list(parts.attack_table(draws, lambda: bar.advance(bar.task_ids[0])))
        page["One hostile site of eight: the ARI that the other seven lose (digits, k = 10)"] = attacks
        page["A thousand clients"] = thousand
    text = parts.as_markdown(page, command_line())
    click.echo(text)
    if out is not None:
        (out / "trust").mkdir(parents=True, exist_ok=True)
        (out / "trust" / "README.md").write_text(text, encoding="utf-8")


@bench.command("live")
@click.option("--nodes", multiple=True, type=click.IntRange(2), default=(8, 100, 1000), show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="A folder for live/README.md.")
def live_command(nodes: tuple[int, ...], out: Path | None) -> None:
    """What a round on Flower's simulation engine costs, against the same round in one process."""
    from goldfc.flower.measure import measure

    lines = list[str]()
    for count in nodes:
        with TemporaryDirectory() as scratch:
            lines += measure(Path(scratch) / "sites", count)
    page = LIVE_PAGE.format(command=command_line(), lines="\n".join(lines))
    click.echo(page)
    if out is not None:
        (out / "live").mkdir(parents=True, exist_ok=True)
        (out / "live" / "README.md").write_text(page, encoding="utf-8")


@bench.command("stream")
@click.option(
    "--gigabytes", multiple=True, type=click.FloatRange(0.0, min_open=True), default=(1.0,), show_default=True
)
@click.option(
    "--scratch", type=click.Path(path_type=Path), help="Where the files go for a while.  [default: temporary]"
)
@click.option("--out", type=click.Path(path_type=Path), help="A folder for stream/README.md.")
def stream_command(gigabytes: tuple[float, ...], scratch: Path | None, out: Path | None) -> None:
    """Memory and time of summarising generated files that are larger than memory should be."""
    from goldfc.bench.stream import as_markdown, measure

    measurements = []
    with progress_bar("files", len(gigabytes)) as bar:
        for size in gigabytes:
            with TemporaryDirectory(dir=scratch) as folder:
                measurements.append(measure(Path(folder), 1000.0 * size))
            bar.advance(bar.task_ids[0])
    page = as_markdown(measurements, command_line())
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


def command_line() -> str:
    """The command that is running, for the record."""
    return shlex.join(["goldfc", *sys.argv[1:]])


# --- data ---


@main.group()
def data() -> None:
    """The data sets of the experiments."""


@data.command("list")
def list_data() -> None:
    """Show the known data sets and which of them are here."""
    from goldfc.bench.datasets import DATASETS, data_folder, names

    table = Table(title=f"data folder: {data_folder()}", title_justify="left")
    for column in ("name", "title", "rows", "features", "classes", "here", "paper's split"):
        table.add_column(column)
    for name, facts in DATASETS.items():
        here = (data_folder() / "full" / f"{name}.csv").is_file(), (data_folder() / "splits" / f"{name}.npz").is_file()
        sizes = map(str, (facts.n_rows, facts.n_features, facts.n_clusters))
        table.add_row(name, facts.title, *sizes, *("yes" if there else "no" for there in here))
    console.print(table)
    console.print("Always here:", ", ".join(name for name in names() if name not in DATASETS))


@data.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--force", is_flag=True, help="Replace files that are there.")
def fetch(names: tuple[str, ...], force: bool) -> None:
    """Download data sets (NAMES such as EC US, or all) into the data folder, repaired and checked."""
    from goldfc.bench import datasets

    for name in datasets.DATASETS if names == ("all",) else names:
        console.print(f"{name}: {datasets.fetch(name, force=force)}")
