"""The benchmark of columns that do not look like the others'."""

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from goldfc.cli.shared import console, progress_bar
from goldfc_bench.cli.shared import JOBS_OPTION, command_line, main


@main.command("plausible")
@click.option("--federations", type=click.IntRange(1), default=200, show_default=True, help="With a fault each.")
@click.option("--quick", is_flag=True, help="Three federations, and one of honest sites.")
@JOBS_OPTION
@click.option("--out", type=click.Path(path_type=Path), help="A folder for plausible/README.md and rows.jsonl.")
def plausible_command(federations: int, quick: bool, jobs: int, out: Path | None) -> None:
    """Whether a column in other units, moved or constant at one site is found, and honest ones are left alone."""
    from goldfc_bench.experiments import TEN
    from goldfc_bench.plausible.page import as_markdown
    from goldfc_bench.plausible.run import Row, all_work, make_rows, narrow_families
    from goldfc_bench.rows import RowFile

    work = all_work(3, (), ("150 rows",)) if quick else all_work(federations, TEN, narrow_families())
    with TemporaryDirectory() as scratch, progress_bar("federations", len(work)) as bar:
        file = RowFile((out / "plausible" if out else Path(scratch)) / "rows.jsonl", Row.from_json)
        rows = make_rows(work, jobs, file, lambda: bar.advance(bar.task_ids[0]))
    page = as_markdown(rows, command_line())
    if out is None:
        click.echo(page)
        return
    (out / "plausible" / "README.md").write_text(page, encoding="utf-8")
    console.print(f"{out / 'plausible' / 'README.md'} is written.")
