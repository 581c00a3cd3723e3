"""What comes before a round: a first federation.toml, and keys."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from goldfc.cli.shared import A_FILE, ID_OPTION, asked_passphrase, console, main, names_in, say, working

if TYPE_CHECKING:
    from goldfc.site.init import Guess


@main.command()
@click.argument("tables", metavar="[DATA]...", type=A_FILE, nargs=-1)
@click.option("--name", required=True, help="The federation's name, such as three-hospitals.")
@ID_OPTION
@click.option("--columns", help="Names, separated by commas: these only, or, without DATA, these as numbers.")
@click.option(
    "--missing",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    show_default=True,
    help="What becomes of rows in which values are missing.",
)
@click.option("-o", "--out", type=A_FILE, default=Path("federation.toml"), show_default=True)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init(
    tables: tuple[Path, ...],
    name: str,
    id_column: str | None,
    columns: str | None,
    missing: str,
    out: Path,
    force: bool,
) -> None:
    """Write a first federation.toml, from the columns of DATA or from --columns: the sites read it and agree."""
    from goldfc.agreement import parse_agreement
    from goldfc.errors import BadSettings
    from goldfc.files import write_durably
    from goldfc.message.columns import Column
    from goldfc.site.init import Guess, agreement_text, guess_columns
    from goldfc.site.policy import read_policy

    wanted = names_in(columns)
    if not tables and not wanted:
        raise click.UsageError("Name a table, or the columns with --columns.")
    if out.exists() and not force:
        raise BadSettings(f"{out} exists already; --force replaces it.", "output-exists")
    if tables:
        smallest = max(5, *(read_policy(data).smallest for data in tables))
        with working("reading"):
            found = guess_columns(tables, wanted, id_column, smallest=smallest)
    else:
        found = Guess([Column(name=each) for each in wanted], {}, {}, [], [], id_column)
    if not found.columns:
        raise BadSettings("No column looks like numbers or categories; name some with --columns.", "no-usable-column")
    text = agreement_text(name, found.columns, found.id_column, missing=missing, gaps=found.gaps, remarks=found.remarks)
    parse_agreement(text, "What would be written")
    write_durably(out, text.encode())
    show_guess(found, out)


def show_guess(found: "Guess", out: Path) -> None:
    """What the file has, and what it has not."""
    kinds = ", ".join(f"{column.name} ({column.kind})" for column in found.columns)
    say(f"{out} has {len(found.columns)} columns: {kinds}.")
    if found.id_column:
        say(f"Column {found.id_column!r} tells rows apart; it stays at the sites.")
    for each, reason in found.odd.items():
        say(f"Left out: {each!r}: {reason}.")
    for sentence in found.said:
        say(sentence)
    say(
        "Read it and correct it (units, ranges, the categories of all sites), and give the same file to all sites; "
        "each keeps it beside its data."
    )


@main.command()
@click.argument("federation", type=A_FILE)
@click.option("--rows", type=click.IntRange(1), required=True, help="About so many rows, or people, has a site.")
@click.option("--sites", type=click.IntRange(1), help="How many take part.  [default: those listed, or least_sites]")
@click.option("-k", "--clusters", type=click.IntRange(1), default=5, show_default=True, help="About so many clusters.")
def plan(federation: Path, rows: int, sites: int | None, clusters: int) -> None:
    """What to expect of FEDERATION at the level `private`, before anything is spent: from what is agreed on alone."""
    from goldfc.agreement import read_agreement
    from goldfc.message.levels import Private
    from goldfc.site.private.plan import TRIED, Plan

    agreement = read_agreement(federation)
    asked = Plan.of(agreement, rows, sites, clusters, Private.agreed(vars(agreement)))
    table = Table(box=None, pad_edge=False)
    for name in ("eps", "micro-clusters a site", "for each cluster", "of the result without privacy"):
        table.add_column(name, justify="right" if name != "of the result without privacy" else "left")
    for eps in sorted({*TRIED, asked.level.eps}):
        one = asked.with_eps(eps)
        mark = "*" if eps == asked.level.eps else ""
        table.add_row(f"{eps:g}{mark}", f"{one.cells:.0f}", f"{one.for_each_cluster:.1f}", one.expected)
    say(f"{asked.sites} sites with {rows:,} rows, {asked.n_features} numbers each, {clusters} clusters (* as agreed):")
    console.print(table)
    enough = "no eps up to 8 is enough" if asked.enough is None else f"eps {asked.enough:g} is enough"
    sites_enough = "no number of such sites" if asked.sites_enough is None else f"{asked.sites_enough} such sites"
    say(f"For most of the result {enough}, or, as agreed, {sites_enough}.")


@main.command()
@click.argument("name")
@click.option("--folder", type=A_FILE, default=Path(), help="Where to write it.  [default: here]")
@click.option("--passphrase", is_flag=True, help="Lock NAME.key with one: GOLDFC_PASSPHRASE, or asked for.")
def keygen(name: str, folder: Path, passphrase: bool) -> None:
    """Make a pair of keys: NAME.key is private and stays with you, NAME.pub goes into federation.toml."""
    from goldfc.errors import BadSettings, code_of
    from goldfc.files import write_durably
    from goldfc.message.columns import plain_name
    from goldfc.message.envelope import PrivateKey

    try:
        plain_name(name)
    except ValueError as error:
        raise BadSettings(f"The name {name!r} {error}.", code_of(error, "name-invalid")) from error
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    if there := [path for path in (private, public) if os.path.lexists(path)]:
        raise BadSettings(
            f"{there[0]} exists already; whoever loses a key cannot open what was sealed for it.", "key-exists"
        )
    key = PrivateKey.new()
    key.write(private, asked_passphrase(again=True) if passphrase else None)
    write_durably(public, f"{key.public.text}\n".encode())
    say(f"{private} is private: keep it. {public} is for federation.toml:")
    click.echo(f'name = "{name}"\nkey = "{key.public.text}"')
