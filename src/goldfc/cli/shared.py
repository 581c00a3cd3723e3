"""What all commands share: the group they belong to, options, the console, progress bars and exit codes."""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from goldfc import errors

if TYPE_CHECKING:
    from goldfc.agreement import Agreement
    from goldfc.message.envelope import PrivateKey
    from goldfc.message.model import Model
    from goldfc.names import Names

# What each command needs is imported when it runs: `goldfc --help` should not wait for numerics.

console = Console()

A_FILE = click.Path(path_type=Path)
FEDERATION_OPTION = click.option(
    "--federation",
    "federation",
    type=A_FILE,
    help="What was agreed on.  [default: federation.toml beside the data or here; must be named if both differ]",
)
KEY_OPTION = click.option("--key", "key_file", type=A_FILE, help="Your private key, where messages are sealed.")
ID_OPTION = click.option("--id-column", help="A column that tells rows apart; it stays here.  [default: as agreed]")
AFTER_OPTION = click.option(
    "--after", type=A_FILE, help="The last model: its clusters keep their ids, and what has changed is told."
)
NAMES_OPTION = click.option(
    "--names", "names_file", type=A_FILE, help="What people call the clusters.  [default: names.toml beside the model]"
)
K_OPTION = click.option("-k", "--clusters", type=click.IntRange(1), help="How many; proposed if not given.")

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
    "key-unreadable": "`goldfc keygen` makes one",
    "line-of-other-length": "`goldfc check --header LINE` does that",
    "memory-unreadable": "name it with --federation",
    "model-not-after": "say --any-model if that is intended",
    "names-of-other-model": "name another file with --names",
    "no-columns": "name some with --columns, or say with --header or --separator how the table is written",
    "no-message": "`goldfc summarize` makes one from a table",
    "no-usable-column": "if another line is the header, `goldfc check --header LINE` says so",
    "sealed-needs-key": "name it with --key",
    "plan-hopeless": "say --accept-risk if you want to spend it all the same",
    "reservoir-differs": "`goldfc forget` does that",
    "round-has-model": "say --replace if that is intended",
    "secret-gone": "`goldfc forget` does that",
    "server-key-missing": "name it with --key",
    "site-key-missing": "name it with --key",
    "sheets-several": "`goldfc check --sheet NAME` does that",
    "unsigned-after-sealed": "name it with --federation, or say --unsigned if a model without a signature is intended",
    "unsigned-of-unknown": "name it with --federation, or say --unsigned if you know where the model is from",
    "values-unusable": "options such as --rename, --factor, --alias, --missing or --header say how a file is written",
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
    hint, text = HINTS.get(errors.code_of(error, "")), str(error)
    if hint is None:
        return text
    return f"{text}\n{hint[0].upper()}{hint[1:]}." if "\n" in text else f"{text.rstrip('.')}; {hint}."


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


def names_in(columns: str | None) -> list[str]:
    """Names that are separated by commas."""
    return [part.strip() for part in columns.split(",")] if columns else []


def check_out(out: Path, is_ours: Callable[[bytes], bool], inputs: Sequence[Path | None]) -> None:
    """Refuse, before any work, to write where it cannot be, over an input, or over what is no output of ours."""
    from goldfc.errors import BadSettings

    if not out.parent.is_dir():
        raise BadSettings(
            f"There is no folder {out.parent} to write {out.name} into; make it first.", "output-folder-missing"
        )
    if out.is_dir():
        raise BadSettings(f"{out} is a folder; name a file.", "output-is-folder")
    if not out.exists():
        return
    if any(path is not None and path.exists() and path.samefile(out) for path in inputs):
        raise BadSettings(f"{out} is an input, and would be overwritten; name another file with -o.", "output-is-input")
    with out.open("rb") as file:
        if not is_ours(file.read(4096)):
            raise BadSettings(
                f"{out} exists, and is not of the kind that would be written; move it, or name another.",
                "output-of-other-kind",
            )


def is_message(head: bytes) -> bool:
    """Whether a file looks like a message."""
    return b"goldfc" in head and (head[8:9] == b"{" or head.startswith(b"goldfc sealed"))


def is_page(head: bytes) -> bool:
    """Whether a file looks like a page."""
    return head.lstrip().lower().startswith(b"<!doctype html")


def working(what: str) -> AbstractContextManager[object]:
    """Something that moves on a terminal; nothing to see in a pipe."""
    return console.status(what) if console.is_terminal else nullcontext()


def agreement_for(beside: Path, federation: Path | None) -> "Agreement | None":
    """The federation file that was named, or one that is beside a file or here; if they differ, neither."""
    from goldfc.agreement import FILE, read_agreement
    from goldfc.errors import BadSettings

    if federation is not None:
        return read_agreement(federation)
    found = [path for path in (beside.parent / FILE, Path(FILE)) if path.is_file()]
    agreements = [read_agreement(path) for path in found]
    if len(agreements) > 1 and agreements[0] != agreements[1]:
        raise BadSettings(
            f"{found[0]} and {found[1].absolute()} differ; choose one with --federation, and remove the "
            "one that does not hold.",
            "agreements-differ",
        )
    return agreements[0] if agreements else None


def names_for(model_file: Path, model: "Model", named: Path | None) -> "Names":
    """What people call the clusters: in the file that was named, or in the one beside the model."""
    from goldfc.names import names_beside, read_names

    return names_beside(model_file, model) if named is None else read_names(named, model)


def read_key(path: Path | None) -> "PrivateKey | None":
    """The key, if one was named."""
    from goldfc.message.envelope import PrivateKey

    return None if path is None else PrivateKey.read(path, asked_passphrase)


def asked_passphrase(*, again: bool = False) -> str | None:
    """From the environment, or from a person, if there is one; `again`: she types it twice, so that it is right."""
    from goldfc.message.keyfile import from_environment

    known = from_environment()
    if known is not None or not (again or sys.stdin.isatty()):
        return known
    return str(click.prompt("Passphrase", hide_input=True, confirmation_prompt=again, err=True))


def show_lines(lines: Sequence[tuple[str, str]], title: str | None = None) -> None:
    """Names and values."""
    heading = None if title is None else escape(printable(title))
    table = Table(title=heading, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in lines:
        table.add_row(escape(printable(name)), escape(printable(value)))
    console.print(table)
