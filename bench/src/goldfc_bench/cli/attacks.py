"""The benchmark of attacks."""

from functools import partial
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
@click.option("--fresh", is_flag=True, help="Forget what is there; without it, only what is missing is made.")
@JOBS_OPTION
@click.option("--out", type=click.Path(path_type=Path), help="A folder for attacks/README.md and its rows.")
def attacks_command(
    targets: int, names: tuple[str, ...], quick: bool, fresh: bool, jobs: int, out: Path | None
) -> None:
    """What can be found out from a message: rows, members, attributes, new rows; and what the protection costs."""
    from goldfc_bench.attacks.beyond import CASES, TARGETS, beyond
    from goldfc_bench.attacks.file import file_of_rows, make_rows
    from goldfc_bench.attacks.homogeneity import claims_before_and_after
    from goldfc_bench.attacks.page import Results, as_markdown
    from goldfc_bench.attacks.price import Price, code_of_prices, price_of
    from goldfc_bench.attacks.run import SIZES, all_work
    from goldfc_bench.experiments import TEN
    from goldfc_bench.families import FAMILIES
    from goldfc_bench.private.making import make_rows as make_prices
    from goldfc_bench.rows import RowFile

    names, sizes, targets = (names or ("digits", "wine"), (40,), 1) if quick else (names, SIZES, targets)
    work = all_work(sizes, names)
    splits, families = ((), ()) if quick else (TEN, tuple(family.name for family in FAMILIES))
    with TemporaryDirectory() as scratch, progress_bar("attacks", len(work) + len(splits) + len(families)) as bar:
        folder, more = out / "attacks" if out else Path(scratch), partial(bar.advance, bar.task_ids[0])
        file, price_file = file_of_rows(folder / "rows.jsonl"), RowFile(folder / "prices.jsonl", Price.from_json)
        if fresh:
            file.path.unlink(missing_ok=True)
            price_file.path.unlink(missing_ok=True)
        found = make_rows(work, targets, jobs, file, more)
        prices = make_prices([*splits, *families], price_of, code_of_prices(), jobs, price_file, more)
    claims, claims_rows = claims_before_and_after(10 if not quick else 2)
    more_known = [one for case in CASES[: 1 if quick else None] if (one := beyond(case, 1 if quick else TARGETS))]
    results = Results(found, claims, claims_rows, more_known, prices[: len(splits)], prices[len(splits) :])
    page = as_markdown(results, command_line())
    if out is None:
        click.echo(page)
        return
    (out / "attacks" / "README.md").write_text(page, encoding="utf-8")
    console.print(f"{out / 'attacks' / 'README.md'} is written.")
