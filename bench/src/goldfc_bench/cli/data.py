"""The data sets."""

import click
from rich.table import Table

from goldfc.cli.shared import console
from goldfc_bench.cli.shared import main


@main.group()
def data() -> None:
    """The data sets of the experiments."""


@data.command("list")
def list_data() -> None:
    """Show the known data sets and which of them are here."""
    from goldfc_bench.datasets import DATASETS, data_folder, names

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
    from goldfc_bench import datasets

    for name in datasets.DATASETS if names == ("all",) else names:
        console.print(f"{name}: {datasets.fetch(name, force=force)}")
