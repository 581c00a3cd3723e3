"""What all commands share: the group they belong to, the console, progress bars and exit codes."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from goldfc import errors

# What each command needs is imported when it runs: `goldfc --help` should not wait for numerics.

console = Console()

FAILED = 1
# More special ones first.
EXIT_CODES: tuple[tuple[type[Exception], int], ...] = (
    (errors.BadMessage, 3),
    (errors.TooFewSites, 4),
    (errors.AuditRefused, 5),
    (errors.BadSettings, 2),
    (errors.BadRows, 2),
    (errors.TooFewMicroClusters, 2),
    (errors.GoldError, FAILED),
    (OSError, FAILED),
)


# What helps on the command line; the library does not know by which options it is called.
HINTS = {
    "agreement-missing": "`goldfc init` writes one",
    "agreement-unreadable": "`goldfc init` writes one",
    "audit-refused": "say --accept-risk if you may accept that",
    "digests-damaged": "`goldfc forget --message` does that",
    "key-malformed": "`goldfc keygen` makes one",
    "memory-unreadable": "name it with --federation",
    "no-columns": "name some with --columns",
    "no-message": "`goldfc summarize` makes one from a table",
    "sealed-needs-key": "name it with --key",
    "round-has-model": "say --replace if that is intended",
    "server-key-missing": "name it with --key",
    "site-key-missing": "name it with --key",
    "sheets-several": "--sheet does that",
    "unsigned-after-sealed": "name it with --federation, or say --unsigned if a model without a signature is intended",
    "unsigned-of-unknown": "name it with --federation, or say --unsigned if you know where the model is from",
    "values-unusable": "options such as --rename, --factor, --alias or --missing say how a file is written",
}


class SentencesForErrors(click.Group):
    """Say what goldfc refuses in one sentence, without a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a refusal is printed and ends with its exit code."""
        try:
            return super().invoke(ctx)
        except (errors.GoldError, OSError) as error:
            click.echo(f"{self.name}: {printable(with_hint(error))}", err=True)
            ctx.exit(next(code for kind, code in EXIT_CODES if isinstance(error, kind)))


def with_hint(error: Exception) -> str:
    """The sentence, and which option helps."""
    hint = HINTS.get(errors.code_of(error, ""))
    return str(error) if hint is None else f"{str(error).rstrip('.')}; {hint}."


def printable(text: str) -> str:
    """A text that may hold names from strangers, without signs that would do something to a terminal."""
    return "".join(sign if sign.isprintable() or sign == "\n" else "\N{REPLACEMENT CHARACTER}" for sign in text)


def say(sentence: str) -> None:
    """One sentence; names in it may come from strangers."""
    console.print(escape(printable(sentence)), highlight=False, soft_wrap=True)


HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}
EPILOG = (
    "Exit codes: 0 done; 1 something else went wrong; 2 wrong usage, settings or data; 3 a message is bad or does not "
    "fit; 4 too few sites; 5 the audit refused."
)


@click.group("goldfc", cls=SentencesForErrors, context_settings=HELP_OPTIONS, epilog=EPILOG)
@click.version_option(package_name="goldfc")
def main() -> None:
    """One-shot federated clustering: cluster rows that cannot be moved."""
    log_to_stderr()


def log_to_stderr() -> None:
    """Show what the library has to say besides its results."""
    logger = logging.getLogger("goldfc")
    logger.setLevel(logging.INFO)
    if not any(isinstance(handler, LinesOnStderr) for handler in logger.handlers):
        logger.addHandler(LinesOnStderr())


class LinesOnStderr(logging.Handler):
    """What the library has to say besides its results, such as that it compiles."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line for one message."""
        click.echo(record.getMessage(), err=True)


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Progress]:
    """A bar with the time left, on a terminal; quiet in a pipe."""
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    bar.add_task(title, total=total)
    with bar:
        yield bar
