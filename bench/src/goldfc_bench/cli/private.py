"""The benchmark of differential privacy."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from goldfc.cli.shared import console, progress_bar
from goldfc_bench.cli.shared import JOBS_OPTION, command_line, main


@main.command("private")
@click.option("--seeds", type=click.IntRange(1), default=10, show_default=True, help="Draws of a federation, at most.")
@click.option("--federation", "chosen", multiple=True, help="Only this one, by its name; may be repeated.")
@click.option("--quick", is_flag=True, help="Two small federations, and attacks on one table.")
@JOBS_OPTION
@click.option("--out", type=click.Path(path_type=Path), help="A folder for private/README.md and its rows.")
def private_command(seeds: int, chosen: tuple[str, ...], quick: bool, jobs: int, out: Path | None) -> None:
    """What differential privacy costs, at eps .5 to 8, and what simpler mechanisms make of the same budget."""
    from goldfc_bench.attacks.run import Row as AttackRow
    from goldfc_bench.private import attacks, run, seconds
    from goldfc_bench.private.federations import GENERATED, HELD_OUT, SPLITS, Federation
    from goldfc_bench.private.making import make_rows, most_asked
    from goldfc_bench.private.page import Results, as_markdown
    from goldfc_bench.rows import RowFile

    federations: tuple[Federation, ...] = (*GENERATED, *SPLITS, *HELD_OUT)
    attacked, sizes = attacks.all_work(), seconds.SIZES
    if quick:
        federations = (Federation("small", 200, 3, 3, apart=3.0), Federation("smaller", 60, 2, 2, apart=4.0))
        attacked, sizes = attacks.all_work(("diabetes",), (300,)), seconds.SIZES[:1]
    federations = tuple(one for one in federations if not chosen or one.name in chosen)
    work = most_asked(run.all_work(federations, seeds), federations)
    of = partial(run.row_of, federations=federations)
    with TemporaryDirectory() as scratch, progress_bar("runs", len(work) + len(attacked)) as bar:
        folder = out / "private" if out else Path(scratch)
        more = partial(bar.advance, bar.task_ids[0])
        file, attack_file = (
            RowFile(folder / "rows.jsonl", run.Row.from_json),
            RowFile(folder / "attacks.jsonl", AttackRow.from_json),
        )
        rows = make_rows(work, of, run.code_of_rows(), jobs, file, more)
        found = make_rows(attacked, attacks.row_of, attacks.code_of_rows(), jobs, attack_file, more)
    times = [(size, list(seconds.seconds_of(size))) for size in sizes]
    page = as_markdown(Results(rows, federations), found, times, command_line())
    if out is None:
        click.echo(page)
        return
    (out / "private" / "README.md").write_text(page, encoding="utf-8")
    console.print(f"{out / 'private' / 'README.md'} is written.")
