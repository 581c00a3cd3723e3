"""The benchmark of clusters that last from round to round."""

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from goldfc.cli.shared import console, progress_bar
from goldfc_bench.cli.shared import JOBS_OPTION, command_line, main


@main.command("rounds")
@click.option("--draws", type=click.IntRange(1), default=20, show_default=True, help="Mixtures that drift.")
@click.option("--dataset", "sets", multiple=True, help="One of the ten sets; several are possible.  [default: all]")
@click.option("--quick", is_flag=True, help="One mixture, and few rounds in the folder.")
@JOBS_OPTION
@click.option("--out", type=click.Path(path_type=Path), help="A folder for rounds/README.md and rows.jsonl.")
def rounds_command(draws: int, sets: tuple[str, ...], quick: bool, jobs: int, out: Path | None) -> None:
    """Whether rows keep their cluster's id from round to round, and what changes is named."""
    from goldfc_bench.experiments import TEN
    from goldfc_bench.rounds.growth import grow
    from goldfc_bench.rounds.page import as_markdown
    from goldfc_bench.rounds.run import Row, all_work, make_rows
    from goldfc_bench.rows import RowFile

    work = all_work(1, ()) if quick else all_work(draws, sets or TEN)
    with TemporaryDirectory() as scratch, progress_bar("scenes", len(work)) as bar:
        file = RowFile((out / "rounds" if out else Path(scratch)) / "rows.jsonl", Row.from_json)
        rows = make_rows(work, jobs, file, lambda: bar.advance(bar.task_ids[0]))
    page = as_markdown(rows, grow(2 if quick else 100), command_line())
    if out is None:
        click.echo(page)
        return
    (out / "rounds" / "README.md").write_text(page, encoding="utf-8")
    console.print(f"{out / 'rounds' / 'README.md'} is written.")
