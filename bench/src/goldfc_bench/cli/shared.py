"""What all commands of the benchmark share: the group they belong to, options, the record of the command."""

import shlex
import sys

import click

from goldfc.cli.shared import EPILOG, HELP_OPTIONS, SentencesForErrors, log_to_stderr


@click.group("goldfc-bench", cls=SentencesForErrors, context_settings=HELP_OPTIONS, epilog=EPILOG)
@click.version_option(package_name="goldfc-bench")
def main() -> None:
    """Experiments with goldfc: the paper's figures, speed and growth, attacks, the cost of safety."""
    log_to_stderr()


def not_zero(_context: click.Context, _parameter: click.Parameter, number: int) -> int:
    """Refuse a number of jobs that joblib cannot take."""
    if number == 0:
        raise click.BadParameter("0 runs at a time would never end; use -1 for one per core.")
    return number


JOBS_OPTION = click.option(
    "--jobs", default=-1, show_default=True, callback=not_zero, help="Runs at the same time; -1: one per core."
)
SEEDS_OPTION = click.option(
    "--seeds", type=click.IntRange(1), default=10, show_default=True, help="Runs of each, with the seeds 0, 1, ..."
)


def command_line() -> str:
    """The command that is running, for the record."""
    return shlex.join(["goldfc-bench", *sys.argv[1:]])
