"""The benchmark of differential privacy."""

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from goldfc.cli.shared import console, progress_bar
from goldfc_bench.cli.shared import JOBS_OPTION, command_line, main


@main.command("private")
@click.option("--seeds", type=click.IntRange(1), default=10, show_default=True, help="Draws of every federation.")
@click.option("--federation", "chosen", multiple=True, help="Only this one, by its name; may be repeated.")
@click.option("--quick", is_flag=True, help="Two small federations.")
@JOBS_OPTION
@click.option("--out", type=click.Path(path_type=Path), help="A folder for private/README.md and rows.jsonl.")
def private_command(seeds: int, chosen: tuple[str, ...], quick: bool, jobs: int, out: Path | None) -> None:
    """What differential privacy costs, at eps .5 to 8, and what simpler mechanisms make of the same budget."""
    from goldfc_bench.experiments import TEN
    from goldfc_bench.private.federations import GENERATED, Federation
    from goldfc_bench.private.page import as_markdown
    from goldfc_bench.private.run import Row, all_work, make_rows
    from goldfc_bench.rows import RowFile

    federations = (*GENERATED, *(Federation(name) for name in TEN))
    if quick:
        federations = (Federation("small", 200, 3, 3, apart=3.0), Federation("smaller", 60, 2, 2, apart=4.0))
    federations = tuple(one for one in federations if not chosen or one.name in chosen)
    work = all_work(federations, seeds)
    with TemporaryDirectory() as scratch, progress_bar("runs", len(work)) as bar:
        file = RowFile((out / "private" if out else Path(scratch)) / "rows.jsonl", Row.from_json)
        rows = make_rows(work, federations, jobs, file, lambda: bar.advance(bar.task_ids[0]))
    page = as_markdown(rows, federations, command_line())
    if out is None:
        click.echo(page)
        return
    (out / "private" / "README.md").write_text(page, encoding="utf-8")
    console.print(f"{out / 'private' / 'README.md'} is written.")
