"""The benchmarks of fleets behind gateways, and of rows that come in parts."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from goldfc.cli.shared import console, progress_bar
from goldfc_bench.cli.shared import command_line, main


@main.command("fleet")
@click.option("--quick", is_flag=True, help="A few devices.")
@click.option("--out", type=click.Path(path_type=Path), help="A folder for fleet/README.md.")
def fleet_command(quick: bool, out: Path | None) -> None:
    """100 000 devices behind 100 gateways against all summaries at once, and hostile devices among a few."""
    from goldfc_bench.fleet.hostile import PLANS, measure_harm
    from goldfc_bench.fleet.made import HOSTILE, Fleet
    from goldfc_bench.fleet.page import as_markdown
    from goldfc_bench.fleet.tiers import measure_tiers

    load, fleet = load_now(), Fleet(gateways=4, devices=10) if quick else Fleet()
    small = [Fleet(10, 3 if quick else 100, seed=seed) for seed in range(1 if quick else 3)]
    attacks = list(HOSTILE)[: 1 if quick else None]
    with TemporaryDirectory() as scratch, progress_bar("gateways", fleet.gateways) as bar:
        tiers = measure_tiers(fleet, Path(scratch), lambda: bar.advance(bar.task_ids[0]))
    with progress_bar("hostile devices", len(small) * len(attacks) * len(PLANS)) as bar:
        harm = list(measure_harm(small, attacks, lambda: bar.advance(bar.task_ids[0])))
    finish(as_markdown(tiers, harm, small, command_line(), load), out, "fleet")


@main.command("parts")
@click.option("--quick", is_flag=True, help="Few rows.")
@click.option("--out", type=click.Path(path_type=Path), help="A folder for parts/README.md.")
def parts_command(quick: bool, out: Path | None) -> None:
    """Rows that come in 50 parts against all at once, and how many of them must be kept."""
    from goldfc_bench.parts import LIMITS, as_markdown, measure_limits, measure_parts

    load = load_now()
    parts, blocks, rows, draws = (3, 1, 8_000, 1) if quick else (50, 2, 400_000, 2)
    with TemporaryDirectory() as scratch, progress_bar("parts", parts) as bar:
        added = measure_parts(parts, blocks, Path(scratch), lambda: bar.advance(bar.task_ids[0]))
    with progress_bar("limits", 2 * draws * (1 + sum(limit < rows for limit in LIMITS))) as bar:
        limits = measure_limits(rows, draws, lambda: bar.advance(bar.task_ids[0]))
    finish(as_markdown(added, limits, draws, command_line(), load), out, "parts")


def load_now() -> float:
    """How much else is done on the machine, where it tells."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def finish(page: str, out: Path | None, name: str) -> None:
    """Show a page, or write it."""
    if out is None:
        click.echo(page)
        return
    (out / name).mkdir(parents=True, exist_ok=True)
    (out / name / "README.md").write_text(page, encoding="utf-8")
    console.print(f"{out / name / 'README.md'} is written.")
