"""The benchmark of attacks."""

from pathlib import Path

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
@click.option("--quick", is_flag=True, help="Two tables (unless you name others), three sizes, few targets, no price.")
@JOBS_OPTION
@click.option("--out", type=click.Path(path_type=Path), help="A folder for attacks/README.md and attacks/rows.jsonl.")
def attacks_command(targets: int, names: tuple[str, ...], quick: bool, jobs: int, out: Path | None) -> None:
    """What can be found out from a message: rows, members, attributes, new rows; and what the protection costs."""
    from goldfc._parallel import side_by_side
    from goldfc_bench.attacks.homogeneity import claims_before_and_after
    from goldfc_bench.attacks.page import Results, as_markdown
    from goldfc_bench.attacks.price import price_of
    from goldfc_bench.attacks.run import LEVELS, SIZES, all_rows
    from goldfc_bench.attacks.sites import tables
    from goldfc_bench.experiments import TEN
    from goldfc_bench.families import FAMILIES

    names, sizes, targets = (names or ("digits", "wine"), (20, 40, 100), 1) if quick else (names, SIZES, targets)
    n_rows = len(names or tables()) * len(sizes) * len(LEVELS)
    with progress_bar("attacks", n_rows) as bar:
        rows = []
        for row in all_rows(targets, jobs, sizes, names):
            rows.append(row)
            bar.advance(bar.task_ids[0])
    found = [row for row in rows if row is not None]
    if out is not None:  # before anything else is done: it took long
        (out / "attacks").mkdir(parents=True, exist_ok=True)
        (out / "attacks" / "rows.jsonl").write_text("".join(f"{row.to_json()}\n" for row in found), encoding="utf-8")
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
