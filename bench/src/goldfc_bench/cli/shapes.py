"""The benchmark on generated families of data."""

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from goldfc.cli.shared import console, progress_bar
from goldfc_bench.cli.experiments import rich_table
from goldfc_bench.cli.shared import JOBS_OPTION, command_line, main


@main.command("shapes")
@click.option("--draws", type=click.IntRange(1), default=3, show_default=True, help="Draws of every family.")
@click.option("--family", "names", multiple=True, help="One of the families, such as 'two moons'; all if not given.")
@click.option("--fresh", is_flag=True, help="Forget the rows that are there; without it, only missing ones are made.")
@JOBS_OPTION
@click.option("--out", type=click.Path(path_type=Path), help="A folder for shapes/README.md, rows.jsonl, shapes.svg.")
def shapes_command(draws: int, names: tuple[str, ...], fresh: bool, jobs: int, out: Path | None) -> None:
    """Generated families of data: the default, each kind of cluster alone, others, and the price of federation."""
    from goldfc_bench.rows import RowFile
    from goldfc_bench.shapes.page import as_markdown, target_table
    from goldfc_bench.shapes.picture import draw_families
    from goldfc_bench.shapes.results import Results
    from goldfc_bench.shapes.run import Row, families_named, run_all

    families = families_named(names)
    with TemporaryDirectory() as scratch, progress_bar("draws", draws * len(families)) as bar:
        file = RowFile((out / "shapes" if out else Path(scratch)) / "rows.jsonl", Row.from_json)
        if fresh:
            file.path.unlink(missing_ok=True)
        rows = run_all(families, draws, file, jobs, lambda: bar.advance(bar.task_ids[0]))
    results = Results(families, rows)
    page = as_markdown(results, command_line())
    if out is None:
        click.echo(page)
    else:
        console.print(rich_table("Targets", target_table(results)))
        (out / "shapes" / "README.md").write_text(page, encoding="utf-8")
        (out / "shapes" / "shapes.svg").write_text(draw_families(results), encoding="utf-8")
