"""The benchmark of attacks."""

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from goldfc.cli.shared import console, progress_bar
from goldfc_bench.cli.shared import JOBS_OPTION, command_line, main


@main.command("attacks")
@click.option(
    "--targets",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help="Sites of every table and size; more of small ones.",
)
@click.option("--table", "names", multiple=True, help="One of the tables, such as 'digits'; all if not given.")
@click.option("--quick", is_flag=True, help="Two tables (unless you name others), one size, few targets, no price.")
@click.option("--fresh", is_flag=True, help="Forget the rows that are there; without it, only missing ones are made.")
@JOBS_OPTION
@click.option("--out", type=click.Path(path_type=Path), help="A folder for attacks/README.md and attacks/rows.jsonl.")
def attacks_command(
    targets: int, names: tuple[str, ...], quick: bool, fresh: bool, jobs: int, out: Path | None
) -> None:
    """What can be found out from a message: rows, members, attributes, new rows; and what the protection costs."""
    from goldfc._parallel import side_by_side
    from goldfc_bench.attacks.file import file_of_rows, make_rows
    from goldfc_bench.attacks.homogeneity import claims_before_and_after
    from goldfc_bench.attacks.page import Results, as_markdown
    from goldfc_bench.attacks.price import price_of
    from goldfc_bench.attacks.run import SIZES, all_work
    from goldfc_bench.experiments import TEN
    from goldfc_bench.families import FAMILIES

    names, sizes, targets = (names or ("digits", "wine"), (40,), 1) if quick else (names, SIZES, targets)
    work = all_work(sizes, names)
    with TemporaryDirectory() as scratch, progress_bar("attacks", len(work)) as bar:
        file = file_of_rows((out / "attacks" if out else Path(scratch)) / "rows.jsonl")
        if fresh:
            file.path.unlink(missing_ok=True)
        found = make_rows(work, targets, jobs, file, lambda: bar.advance(bar.task_ids[0]))
    splits, families = ((), ()) if quick else (TEN, tuple(family.name for family in FAMILIES))
    with progress_bar("prices", len(splits) + len(families)) as bar:
        prices = []
        for price in side_by_side(price_of, [*splits, *families], jobs, prefer="processes"):
            prices.append(price)
            bar.advance(bar.task_ids[0])
    claims, claims_rows = claims_before_and_after(10 if not quick else 2)
    results = Results(found, claims, claims_rows, prices[: len(splits)], prices[len(splits) :])
    page = as_markdown(results, command_line())
    if out is None:
        click.echo(page)
        return
    (out / "attacks" / "README.md").write_text(page, encoding="utf-8")
    console.print(f"{out / 'attacks' / 'README.md'} is written.")
