"""The demo."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from goldfc.cli.shared import console, main, progress_bar

if TYPE_CHECKING:
    from goldfc.demo.run import Demo, Scores


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
    from goldfc.demo.report import write_report
    from goldfc.demo.run import N_SITES, run_demo

    # Every site is asked twice: to summarise its rows, and to label them.
    with progress_bar("asking the sites", 2 * N_SITES) as bar:
        result = run_demo(seed, n_jobs=-1, on_answer=lambda _: bar.advance(bar.task_ids[0]))
    out.parent.mkdir(parents=True, exist_ok=True)
    write_report(result, out)
    console.print(demo_table(result))
    for sentence in demo_sentences(result):
        console.print(sentence, highlight=False)
    console.print(f"Open [bold]{out}[/] in a browser to see what each site holds, sent and got back.")


def demo_table(result: "Demo") -> Table:
    """Each site alone, OneShot, pooled k-means."""
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
        f"of {ari_text(result.scores.told)} instead of {ari_text(result.scores.together)}. (Alone and pooled are "
        "k-means, told ten.)"
    )
    if math.isnan(result.scores.paper):
        yield r"GOLD, the paper's method, is not compared: it needs goldfc\[paper]."
    else:
        yield f"GOLD, the paper's method, told ten, has {ari_text(result.scores.paper)}."
    yield f"The server got {result.traffic.bytes_up / 1000:.0f} kB, one message from each of {len(result.sites)} sites."


def ari_text(score: float) -> str:
    """Two decimals; a dash where there is nothing to score."""
    return "-" if score != score else f"{score:.2f}"  # noqa: PLR0124 (not a number)
