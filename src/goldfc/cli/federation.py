"""The federation by files, command by command."""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape
from rich.table import Table

from goldfc.cli.form import form_for, form_options, keep_form
from goldfc.cli.shared import console, main, printable, progress_bar, say

if TYPE_CHECKING:
    from goldfc.agreement import Agreement
    from goldfc.message.columns import Column
    from goldfc.message.envelope import PrivateKey
    from goldfc.message.message import Message
    from goldfc.message.model import Model
    from goldfc.message.summary import Summary
    from goldfc.server.folder import Event, Folder, FolderStatus
    from goldfc.server.influence import LeftOut
    from goldfc.server.round import Round
    from goldfc.site.audit import Audit
    from goldfc.site.init import Guess
    from goldfc.site.ledger import Ledger
    from goldfc.site.policy import Policy
    from goldfc.site.table.form import Form
    from goldfc.site.table.table import Table as TableOfRows

A_FILE = click.Path(path_type=Path)
FEDERATION_OPTION = click.option(
    "--federation",
    "federation",
    type=A_FILE,
    help="What was agreed on.  [default: federation.toml beside the data or here; must be named if both differ]",
)
KEY_OPTION = click.option("--key", "key_file", type=A_FILE, help="Your private key, where messages are sealed.")
ID_OPTION = click.option("--id-column", help="A column that tells rows apart; it stays here.  [default: as agreed]")
K_OPTION = click.option("-k", "--clusters", type=click.IntRange(1), help="How many; proposed if not given.")
SITE_NAME = "The site's name.  [default: that of the output file]"
# Leaving out each of more sites would take long.
MOST_LEFT_OUT = 30
# Of a message's digest, to name it by.
LEAST_DIGITS = 8
# Without an agreement, columns are guessed from so many blocks of the table.
GUESSED_FROM = 4
# A file that is written to again and again cannot keep everybody waiting.
MOST_SECONDS_TO_SETTLE = 10.0


# --- before a round ---


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


def names_in(columns: str | None) -> list[str]:
    """Names that are separated by commas."""
    return [part.strip() for part in columns.split(",")] if columns else []


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


# --- at a site ---


@main.command()
@click.argument("data", type=A_FILE)
@click.option("-o", "--out", type=A_FILE, required=True, help="The message, such as site-a.summary.")
@FEDERATION_OPTION
@click.option("--site", help=SITE_NAME)
@ID_OPTION
@click.option("--columns", help="Without a federation file: names of columns to use, separated by commas.")
@click.option("--privacy", type=click.Choice(["suppressed", "plain"]), help="Without a federation file only.")
@KEY_OPTION
@click.option("--dry-run", is_flag=True, help="Show what would leave, and write nothing.")
@click.option("--accept-risk", is_flag=True, help="Write the message although the audit speaks against it.")
@form_options
def summarize(  # noqa: PLR0913, PLR0917 (one argument per option)
    data: Path,
    out: Path,
    federation: Path | None,
    site: str | None,
    id_column: str | None,
    columns: str | None,
    privacy: str | None,
    key_file: Path | None,
    dry_run: bool,
    accept_risk: bool,
    asked: "Form",
) -> None:
    """Make the one message that leaves this site: many small clusters of the rows in DATA, and no rows."""
    from goldfc.report.describe import describe
    from goldfc.site.policy import read_policy
    from goldfc.site.send import draft_summary, sealed_for_server, send

    agreement = agreement_for(data, federation)
    check_out(out, is_message, [data, federation, key_file])
    if agreement is None:
        agreement = agreement_without_file(data, columns, privacy, id_column)
    elif columns or privacy:
        raise click.UsageError("Columns and privacy are agreed on in the federation file; change them there.")
    name = checked_site(site or out.stem, agreement)
    key = read_key(key_file)
    sealed_for_server(b"", name, agreement, key)  # a wrong key is told before any work
    policy = read_policy(data)
    say(policy_line(data, policy))
    policy.check(agreement)
    drop, id_column = agreement.missing == "drop", id_column or agreement.id_column
    person, form = policy.person_column(agreement), form_for(data, asked)
    with opened_table(data, agreement.columns, form, id_column=id_column, drop=drop, person_column=person) as table:
        for note in table.notes:
            say(note)
        keep_form(data, asked)
        with working("learning"):
            draft = draft_summary(table, name, agreement, data, policy)
        for note in draft.notes:
            say(note)
        show_lines(list(describe(draft.summary.to_message())), title="What would leave")
        show_audit(draft.audit)
        if dry_run:
            say("Nothing is written (--dry-run).")
            return
        message = send(draft, agreement, data, out, key=key, accept_risk=accept_risk)
    say_sent(out, message, draft.ledger, sealed=agreement.sealed)


def say_sent(out: Path, message: bytes, ledger: "Ledger", *, sealed: bool) -> None:
    """What to do with the message, and what stays."""
    if sealed:
        say(f"{out}: {len(message) / 1000:.1f} kB, signed and sealed: only the server can read it. Hand it over.")
    else:
        say(f"{out}: {len(message) / 1000:.1f} kB. `goldfc inspect` shows it again; hand it to the server.")
    say(f"{ledger.folder} is private and stays at this site: the next message is compared with this one.")


def policy_line(data: Path, policy: "Policy") -> str:
    """Which policy is obeyed."""
    from goldfc.site.policy import policy_beside

    path = policy_beside(data)
    where = str(path) if path.exists() else f"the defaults, since there is no {path}"
    return (
        f"This site's policy: {where} (at least {policy.smallest} rows in a micro-cluster, at least "
        f"{policy.least_sites} sites; fingerprint {policy.fingerprint[:12]})."
    )


@contextmanager
def opened_table(data: Path, columns: "Sequence[Column]", form: "Form", **settings: Any) -> "Iterator[TableOfRows]":
    """The rows; on a terminal, a bar while a large file is read."""
    from goldfc.site.table.table import open_table

    with ExitStack() as in_use:
        with progress_bar("reading (%)", 100) as bar:

            def show(done: int, total: int) -> None:
                bar.update(bar.task_ids[0], completed=100 * done // total)

            table = in_use.enter_context(open_table(data, columns, form=form, on_progress=show, **settings))
        yield table


@main.command()
@click.argument("data", type=A_FILE)
@FEDERATION_OPTION
@ID_OPTION
@form_options
def check(data: Path, federation: Path | None, id_column: str | None, asked: "Form") -> None:
    """Look at DATA before anything is computed: all that is wrong or odd, by column, with counts and remedies.

    `summarize` looks at the same, and refuses what is wrong.
    """
    from goldfc.site.policy import read_policy

    agreement = agreement_for(data, federation)
    if agreement is None:
        agreement = agreement_without_file(data, None, None, id_column)
    drop, id_column = agreement.missing == "drop", id_column or agreement.id_column
    settings = {"drop": drop, "id_column": id_column, "person_column": read_policy(data).person_column(agreement)}
    with opened_table(data, agreement.columns, form_for(data, asked), refuse="nothing", **settings) as table:
        wrong = list(table.faults.sentences())
        for sentence in wrong:
            say(f"Wrong: {sentence}.")
        for note in table.notes:
            say(f"Note: {note}")
        usable, rows = table.rows.shape[0], table.rows.shape[0] + table.left_out_rows
        columns = len(agreement.columns)
        say(f"{data.name}: {usable:,} of {rows:,} rows can be used, with the {columns} columns that were agreed on.")
    keep_form(data, asked)
    if wrong:
        say(f"{len(wrong)} things are wrong; correct the table, or say by options how it is written (--help).")
        click.get_current_context().exit(2)


@main.command()
@click.argument("data", type=A_FILE)
@click.option("--model", "model_file", type=A_FILE, required=True, help="What came back, such as global.model.")
@click.option("-o", "--out", type=A_FILE, required=True, help="The labels, such as labels.csv.")
@FEDERATION_OPTION
@click.option("--site", help="The site's name, where the model is sealed.  [default: that of the model file]")
@ID_OPTION
@KEY_OPTION
@click.option("--unsigned", is_flag=True, help="Without federation.toml: take a model that nobody signed.")
@click.option("--strict", is_flag=True, help="Refuse a table in which a row cannot be read; otherwise it has no label.")
@form_options
def label(  # noqa: PLR0913, PLR0917 (one argument per option)
    data: Path,
    model_file: Path,
    out: Path,
    federation: Path | None,
    site: str | None,
    id_column: str | None,
    key_file: Path | None,
    unsigned: bool,
    strict: bool,
    asked: "Form",
) -> None:
    """Give every row in DATA the label of its cluster; rows need not have been summarised."""
    from goldfc.errors import BadSettings
    from goldfc.message.wire import read_message
    from goldfc.site.labels import labels_of, write_labels
    from goldfc.site.seals import check_unsigned
    from goldfc.site.send import open_model

    agreement = agreement_for(data, federation)
    check_out(out, is_label_file, [data, model_file, federation, key_file])
    if not model_file.exists():
        raise BadSettings(
            f"There is no file {model_file}; `goldfc fuse` or `goldfc collect` makes it at the server.", "model-missing"
        )
    id_column = id_column or (agreement.id_column if agreement else None)
    name = site or model_file.stem
    model = open_model(read_message(model_file), model_file.name, agreement, name, read_key(key_file))
    if agreement is None or not agreement.sealed:
        check_unsigned(data, agreement, model.terms.federation, said=unsigned)
    settings = {"drop": agreement is not None and agreement.missing == "drop", "id_column": id_column}
    settings["refuse"] = "values" if strict else "columns"
    columns, form = model.terms.columns, form_for(data, asked)
    with opened_table(data, columns, form, **settings) as table, working("labelling"):
        labels = write_labels(labels_of(table, model), out, id_column or "row", model.fingerprint)
    keep_form(data, asked)
    say(f"{out}: {labels.rows} rows in {len(labels.clusters)} clusters, by model {model.fingerprint}.")
    if labels.far:
        say(f"{labels.far} of them are far from every cluster (column far): nobody sent anything like them.")
    if labels.without:
        say(f"{labels.without.total()} rows have no cluster (column reason):")
    for reason, count in labels.without.most_common():
        say(f"  {count}: {reason}.")


@main.command()
@click.argument("data", type=A_FILE)
@click.option(
    "--before", type=click.DateTime(["%Y-%m-%d"]), help="Only messages from before this day, such as 2027-01-31."
)
@click.option("--message", "sha", help="Only this message: the first digits of its sha256 in the ledger, at least 8.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget(data: Path, before: datetime | None, sha: str | None, yes: bool) -> None:
    """Remove what this site keeps of earlier messages of DATA and of all that shares its ledger.

    Later messages are no longer compared with them, so forget only what was never handed over, or is too old to matter.
    """
    from goldfc.errors import BadSettings
    from goldfc.site.ledger import Ledger
    from goldfc.site.policy import read_policy

    policy = read_policy(data)
    ledger = Ledger.of(data, policy)
    found = chosen_messages(ledger, before, sha)
    if not found:
        say(f"Nothing of that kind is kept in {ledger.folder}.")
        return
    if not yes and not console.is_terminal:
        raise BadSettings(
            f"{len(found)} messages would be forgotten; say --yes if that is intended.", "forget-unconfirmed"
        )
    if not yes and not click.confirm(f"Forget {len(found)} messages? No later one will be compared with them."):
        return
    with ledger.locked():
        ledger.forget(found, policy)
    say(f"{len(found)} messages are forgotten; a line in the ledger says that something was.")


def chosen_messages(ledger: "Ledger", before: datetime | None, sha: str | None) -> list[str]:
    """The messages that are meant: all if nothing is said."""
    from goldfc.errors import BadSettings

    if before is not None and sha is not None:
        raise click.UsageError("Name a day or a message, not both.")
    if sha is not None and len(sha) < LEAST_DIGITS:
        raise BadSettings(
            f"{sha!r} could be several messages; give at least {LEAST_DIGITS} digits.", "message-ambiguous"
        )
    if sha is not None:
        return ledger.called(sha)
    return ledger.everything() if before is None else ledger.older_than(before.replace(tzinfo=UTC))


@main.command()
@click.argument("file", type=A_FILE)
@click.option("--json", "as_json", is_flag=True, help="Everything, for a program.")
@FEDERATION_OPTION
@click.option("--site", help="The site's name, for a sealed model.  [default: that of the file]")
@KEY_OPTION
def inspect(file: Path, as_json: bool, federation: Path | None, site: str | None, key_file: Path | None) -> None:
    """Show in plain words what a message contains."""
    from goldfc.message.envelope import is_sealed, read_cover
    from goldfc.message.wire import decode, naming, read_message
    from goldfc.report.describe import describe

    content = read_message(file)
    if is_sealed(content) and key_file is None:
        with naming(file.name):
            cover = read_cover(content)[0]
        facts = {"what": "a sealed message", **cover.model_dump(), "bytes": len(content)}
        if as_json:
            click.echo(json.dumps(facts))
            return
        show_lines([(name, str(value)) for name, value in facts.items()])
        say("What is inside can be read with the receiver's key (--key) only.")
        return
    if is_sealed(content):
        content = opened(content, file, agreement_for(file, federation), site, read_key(key_file))
    message = decode(content, file.name)
    lines = list(describe(message))
    if as_json:
        click.echo(message_json(message))
        return
    show_lines([*lines, ("size", f"{len(content)} bytes")])


def message_json(message: "Message") -> str:
    """All of it."""
    arrays = {name: array.tolist() for name, array in message.arrays.items()}
    return json.dumps({"kind": message.kind, **message.facts, "arrays": arrays})


def opened(
    content: bytes, file: Path, agreement: "Agreement | None", site: str | None, key: "PrivateKey | None"
) -> bytes:
    """The inside of an envelope, for whoever may open it."""
    from goldfc.agreement import FILE
    from goldfc.errors import BadSettings
    from goldfc.message.envelope import read_cover
    from goldfc.message.wire import encode, naming
    from goldfc.server.admit import read_body
    from goldfc.site.send import open_model

    if agreement is None:
        raise BadSettings(
            f"{file.name} is sealed: to open it takes {FILE}, which has the keys.", "sealed-needs-agreement"
        )
    with naming(file.name):
        if read_cover(content)[0].to == "server":
            return read_body(content, agreement, key)
    return encode(open_model(content, file.name, agreement, site or file.stem, key).to_message())


# --- at the server ---


@main.command()
@click.argument("summaries", type=A_FILE, nargs=-1, required=True)
@K_OPTION
@click.option("-o", "--out", type=A_FILE, required=True, help="The model, such as global.model.")
@FEDERATION_OPTION
def fuse(summaries: tuple[Path, ...], clusters: int | None, out: Path, federation: Path | None) -> None:
    """Make the global clusters of all sites' SUMMARIES."""
    from goldfc.errors import BadSettings
    from goldfc.files import write_durably
    from goldfc.message.wire import encode, read_message
    from goldfc.server.admit import read_summary
    from goldfc.server.round import fuse_admitted

    agreement = agreement_for(out, federation)
    check_out(out, is_message, [*summaries, federation])
    if agreement is not None and agreement.sealed:
        raise BadSettings(
            "In this federation messages are sealed, and so must be the models for every site: put the summaries into "
            "FOLDER/inbox and federation.toml into FOLDER, and use `goldfc collect FOLDER --key ...`.",
            "sealed-needs-collect",
        )
    found = []
    with progress_bar("reading", len(summaries)) as bar:
        for path in summaries:
            content = read_message(path)
            if agreement is None:
                agreement = agreement_of_summary(content, path.name)
                say("There is no federation.toml: the first summary says what the others must be like.")
            found.append(read_summary(content, path.name, agreement, None)[0])
            bar.advance(bar.task_ids[0])
    if agreement is None:
        raise click.UsageError("Name at least one summary.")

    with saying_warnings(), working("fusing"):
        result = fuse_admitted(found, agreement, clusters)
        write_durably(out, encode(result.model.to_message()))
    show_result(result, out)


@main.command()
@click.argument("folder", type=A_FILE)
@K_OPTION
@KEY_OPTION
@click.option("--close", is_flag=True, help="Take nothing more, and fuse what is in.")
@click.option("--wait", is_flag=True, help="Stay until all listed sites are in or the deadline is over, then fuse.")
@click.option("--replace", is_flag=True, help="Make another model of a round that has one, such as with another -k.")
def collect(folder: Path, clusters: int | None, key_file: Path | None, close: bool, wait: bool, replace: bool) -> None:
    """Take in messages from FOLDER/inbox, say who is in and who is missing, and fuse when closed."""
    from goldfc.errors import BadSettings
    from goldfc.server.folder import Folder

    if not folder.is_dir():
        raise BadSettings(f"There is no folder {folder}; make one with a federation.toml in it.", "folder-missing")
    place = Folder(folder, read_key(key_file))
    if wait and not place.agreement.sites and place.agreement.deadline is None:
        raise BadSettings(
            "--wait needs an end: list the [[sites]] in federation.toml, or set a deadline.", "wait-endless"
        )
    with place.locked():
        take_in_all(place, wait=wait)
        status = place.status
        if close or place.is_due() or (wait and not status.missing):
            place.close()
        show_status(place.status)
        if not place.closed.is_file():
            say(f"Not closed yet: put messages into {place.inbox}, and run this again; --close ends the round.")
            return
        with saying_warnings(), working("fusing"):
            result = place.fuse(clusters, replace=replace)
        write_folder_report(place, result.summaries, result.model, result.left_out)
        sealed = folder / "sealed" / "NAME.model" if place.agreement.sealed else None
        show_result(result, folder / "global.model", sealed)
        say(f"Open {folder / 'report.html'} in a browser to see the clusters and who supports them.")


def take_in_all(place: "Folder", *, wait: bool) -> None:
    """Until the inbox is settled; with `wait`, until everybody is in or the deadline is over."""
    told: set[tuple[str, str]] = set()
    patience = time.monotonic() + MOST_SECONDS_TO_SETTLE
    while True:
        events = take_in_once(place, told)
        unsettled = any(event.outcome == "waiting" for event in events) and time.monotonic() < patience
        all_in = bool(place.agreement.sites) and not place.status.missing
        done = not wait or place.is_due() or place.closed.is_file() or all_in
        if done and not unsettled:
            return
        if not done:
            patience = time.monotonic() + MOST_SECONDS_TO_SETTLE
        time.sleep(0.5)


def take_in_once(place: "Folder", told: set[tuple[str, str]]) -> "list[Event]":
    """One look at the inbox; news are told once."""
    events = []
    for event in place.take_in():
        events.append(event)
        if (event.file, event.outcome) not in told:
            say(f"{event.outcome}: {event.sentence}")
        if event.outcome == "waiting" or event.stuck:
            told.add((event.file, event.outcome))
    return events


def write_folder_report(
    place: "Folder", summaries: "Sequence[Summary]", model: "Model", left_out: Mapping[str, str]
) -> None:
    """The page, with what would change without each of them."""
    from goldfc.report.model_page import write_model_report

    write_model_report(
        model,
        place.path / "report.html",
        summaries,
        left_out=leave_each_out(summaries, model, place.agreement),
        expected=place.agreement.names,
        refused={**place.refused(), **left_out},
    )


@main.command()
@click.argument("model_file", metavar="MODEL", type=A_FILE)
@click.argument("summaries", type=A_FILE, nargs=-1)
@click.option("-o", "--out", type=A_FILE, default=Path("report.html"), show_default=True)
@FEDERATION_OPTION
def report(model_file: Path, summaries: tuple[Path, ...], out: Path, federation: Path | None) -> None:
    """Make a page of MODEL: its clusters, who supports them, and, with the SUMMARIES, who changes what."""
    from goldfc.message.model import Model
    from goldfc.message.wire import decode, naming, read_message
    from goldfc.report.model_page import write_model_report

    check_out(out, is_page, [model_file, federation, *summaries])
    message = decode(read_message(model_file), model_file.name)
    with naming(model_file.name):
        model = Model.from_message(message)
    agreement = agreement_for(model_file, federation)
    found = []
    for path in summaries:
        content = read_message(path)
        agreement = agreement or agreement_of_summary(content, path.name)
        # Also where messages are sealed: what was accepted lies there opened, and the model knows it by its digest.
        body = decode(content, path.name)
        with naming(path.name):
            summary = agreement.read_summary(body)
        check_part_of(model, summary, path)
        found.append(summary)
    left_out = leave_each_out(found, model, agreement) if agreement else ()
    expected = agreement.names if agreement else ()
    write_model_report(model, out, found, left_out=left_out, expected=expected)
    say(f"Open {out} in a browser.")


def check_part_of(model: "Model", summary: "Summary", path: Path) -> None:
    """Refuse a summary that the model was not made from."""
    from goldfc.errors import BadMessage

    model.own(summary.site)
    if model.digest_of(summary.site) != summary.to_message().digest:
        raise BadMessage(
            f"{path.name}: the model was made from another summary of site {summary.site!r}.", "model-of-other-summary"
        )


def leave_each_out(summaries: "Sequence[Summary]", model: "Model", agreement: "Agreement") -> "list[LeftOut]":
    """How the result changes without each of them; nothing where that would take long."""
    from goldfc.randomness import generator
    from goldfc.server.influence import leave_one_out
    from goldfc.server.one_shot import fusion_of

    if not 3 <= len(summaries) <= MOST_LEFT_OUT or len(summaries) != len(model.sites):
        return []
    found = []
    with progress_bar("leaving each out", len(summaries)) as bar:
        k, rng_of = len(model.centroids), lambda: generator(agreement.seed, "server")
        for one in leave_one_out(summaries, k, fusion_of(agreement), rng_of, model):
            found.append(one)
            bar.advance(bar.task_ids[0])
    return found


# --- shared ---


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


def is_label_file(head: bytes) -> bool:
    """Whether a file looks like labels."""
    from goldfc.site.labels import LABEL_COLUMNS

    return ",".join(("", *LABEL_COLUMNS)).encode() + b"\n" in head


def is_page(head: bytes) -> bool:
    """Whether a file looks like a page."""
    return head.lstrip().lower().startswith(b"<!doctype html")


def working(what: str) -> AbstractContextManager[object]:
    """Something that moves on a terminal; nothing to see in a pipe."""
    return console.status(what) if console.is_terminal else nullcontext()


@contextmanager
def saying_warnings() -> Iterator[None]:
    """What scikit-learn's users get as a warning, as a sentence: that there are fewer clusters than asked for."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ConvergenceWarning)
        yield
    for warning in told:
        say(str(warning.message))


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


def agreement_without_file(data: Path, columns: str | None, privacy: str | None, id_column: str | None) -> "Agreement":
    """What is meant where nobody wrote it down: numbers, and the defaults; ids stay here."""
    from goldfc.agreement import Agreement
    from goldfc.errors import BadRows, BadSettings
    from goldfc.message.columns import Column
    from goldfc.site.init import guess_columns

    names = names_in(columns)
    if not names:
        found = guess_columns([data], id_column=id_column, most_blocks=GUESSED_FROM)
        names, id_column = [one.name for one in found.columns if one.kind == "number"], found.id_column
        others = [*found.odd, *(one.name for one in found.columns if one.kind != "number")]
        say("There is no federation.toml: all numbers are taken, and names must agree at all sites.")
        if others:
            say(
                f"Left out: {', '.join(map(repr, others))}. `goldfc init` makes a federation.toml; --columns "
                "names some."
            )
        if id_column:
            say(f"Column {id_column!r} tells rows apart; it stays here.")
    if not names:
        raise BadRows(f"{data.name} has no column of numbers that is not an id.", "no-columns")
    try:
        return Agreement(
            federation="unnamed",
            round=0,
            privacy="plain" if privacy == "plain" else "suppressed",
            id_column=id_column,
            columns=tuple(Column(name=name) for name in names),
        )
    except ValueError as error:
        raise BadSettings(f"These columns cannot be used ({error}); `goldfc init` helps.", "columns-invalid") from error


def agreement_of_summary(content: bytes, source: str) -> "Agreement":
    """What the others must be like, where nobody wrote it down."""
    from goldfc.agreement import FILE, Agreement
    from goldfc.errors import BadMessage, BadSettings
    from goldfc.message.envelope import is_sealed
    from goldfc.message.summary import Summary
    from goldfc.message.wire import decode, naming

    if is_sealed(content):
        raise BadSettings(f"{source} is sealed: to open it takes {FILE}, which has the keys.", "sealed-needs-agreement")
    message = decode(content, source)
    with naming(source):
        summary = Summary.from_message(message)
        try:
            return Agreement(
                federation=summary.terms.federation,
                round=summary.terms.round,
                columns=summary.terms.columns,
                privacy=summary.level.name,
                smallest=max(summary.level.fewest, 2),
                scaling="pooled" if summary.moments else "ranges",
            )
        except ValueError as error:
            raise BadMessage(
                f"it cannot be fused without {FILE}, which says what it is about", "summary-nameless"
            ) from error


def checked_site(name: str, agreement: "Agreement") -> str:
    """The site's name, if it may be called so."""
    from goldfc.agreement import FILE
    from goldfc.errors import BadSettings
    from goldfc.message.columns import plain_name

    try:
        plain_name(name)
    except ValueError as error:
        raise BadSettings(f"The site name {name!r} {error}; name the site with --site.", "site-name-invalid") from error
    if agreement.sites and name not in agreement.names:
        raise BadSettings(
            f"{FILE} lists no site {name!r}; it lists {', '.join(agreement.names)}; use --site.", "site-name-unlisted"
        )
    return name


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


def show_audit(audit: "Audit") -> None:
    """What would leave, before it does."""
    guess = audit.membership
    best = (
        "not measured"
        if guess is None
        else f"AUC {guess.auc:.2f} (0.5: by chance), {guess.found:.0%} found at 1% wrong"
    )
    show_lines(
        [
            ("rows", str(audit.rows)),
            ("micro-clusters", str(audit.micro_clusters)),
            ("smallest of them", f"{audit.smallest} rows or people (required: {audit.required})"),
            ("centroids that are a row", f"{audit.exact_matches} (required: 0)"),
            ("distance to the nearest row", f"{audit.distance_ratio:.2f} times that between rows"),
            ("guessing who is in", best),
        ],
        title="Audit: what the message would give away",
    )
    for finding in audit.warnings:
        say(f"Warning ({finding.name}): {finding.sentence}.")
    for finding in audit.failures:
        say(f"Refused ({finding.name}): {finding.sentence}.")


def show_lines(lines: Sequence[tuple[str, str]], title: str | None = None) -> None:
    """Names and values."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in lines:
        table.add_row(escape(printable(name)), escape(printable(value)))
    console.print(table)


def show_status(status: "FolderStatus") -> None:
    """Who is in, and who is missing."""
    say(f"In: {', '.join(status.accepted) or 'nobody yet'}.")
    if status.missing:
        say(f"Missing: {', '.join(status.missing)}.")


def show_result(result: "Round", out: Path, sealed: Path | None = None) -> None:
    """What came out."""
    model = result.model
    for site, why in result.left_out.items():
        say(f"Left out: {site}: {why}")
    for sentence in result.odd:
        say(f"Odd: {sentence}")
    if model.proposal is not None:
        best, *others = model.proposal.candidates
        say(f"How many clusters? {best.n_clusters}: {best.reason}.")
        for other in others:
            say(f"  Or {other.n_clusters}: {other.reason} (-k {other.n_clusters}).")
    clusters, micro = len(model.centroids), len(model.micro_labels)
    say(f"{out}: {clusters} clusters from {micro} micro-clusters of {len(model.sites)} sites.")
    say(f"Its fingerprint, which every label has: {model.fingerprint}.")
    say(f"What they are like: {model.why}.")
    say(f"Hand {sealed} to the site of that name." if sealed else "Hand it to every site.")
