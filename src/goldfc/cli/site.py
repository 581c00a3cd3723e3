"""What a site runs: check, summarize, label, forget."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from goldfc.cli.form import form_for, form_options, keep_form
from goldfc.cli.shared import (
    A_FILE,
    FEDERATION_OPTION,
    ID_OPTION,
    KEY_OPTION,
    NAMES_OPTION,
    agreement_for,
    check_out,
    console,
    is_message,
    is_page,
    main,
    names_for,
    names_in,
    progress_bar,
    read_key,
    say,
    show_lines,
    working,
)

if TYPE_CHECKING:
    from goldfc.agreement import Agreement
    from goldfc.message.columns import Column
    from goldfc.message.envelope import PrivateKey
    from goldfc.message.model import Model
    from goldfc.names import Names
    from goldfc.site.audit import Audit
    from goldfc.site.labels import LabelCounts
    from goldfc.site.ledger import Ledger
    from goldfc.site.parts import Parts
    from goldfc.site.policy import Policy
    from goldfc.site.private.send import Budget, Request
    from goldfc.site.send import Draft
    from goldfc.site.table.form import Form
    from goldfc.site.table.table import Table

SITE_NAME = "The site's name.  [default: that of the output file]"
# What helps if a table is written otherwise than agreed.
SAY_HOW = (
    "how it is written (--rename HERE=AGREED, --alias COLUMN:HERE=AGREED, --factor COLUMN=NUMBER, --missing CODE, "
    "--dates COLUMN=years and others, see --help)"
)
# Of a message's digest, to name it by.
LEAST_DIGITS = 8
# Without an agreement, columns are guessed from so many blocks of the table.
GUESSED_FROM = 4


@main.command()
@click.argument("data", type=A_FILE)
@FEDERATION_OPTION
@ID_OPTION
@form_options
def check(data: Path, federation: Path | None, id_column: str | None, asked: "Form") -> None:
    """Look at DATA before anything is computed: all that is wrong or odd, by column, with counts and remedies.

    `summarize` looks at the same, and refuses what is wrong.
    """
    from goldfc.site.oddities import odd_values
    from goldfc.site.policy import read_policy

    agreement = agreement_for(data, federation)
    if agreement is None:
        agreement = agreement_without_file(data, None, None, id_column, asked)
    drop, id_column = agreement.missing == "drop", id_column or agreement.id_column
    settings = {"drop": drop, "id_column": id_column, "person_column": read_policy(data).person_column(agreement)}
    with opened_table(data, agreement.columns, form_for(data, asked), refuse="nothing", **settings) as table:
        usable, rows = table.rows.shape[0], table.rows.shape[0] + table.left_out_rows
        wrong = list(table.faults.sentences()) or ["No row has a value in every column"] * (not usable)
        for sentence in wrong:
            say(f"Wrong: {sentence}.")
        for note in (*table.notes, *odd_values(table)):
            say(f"Note: {note}")
        say(f"{data.name}: {usable:,} of {rows:,} rows can be used, with {len(agreement.columns)} columns.")
    keep_form(data, asked)
    if wrong:
        count = f"{len(wrong)} things are" if len(wrong) > 1 else "1 thing is"
        say(f"{count} wrong: correct the table, or say {SAY_HOW}.")
        click.get_current_context().exit(2)


@main.command()
@click.argument("data", type=A_FILE)
@click.option("-o", "--out", type=A_FILE, help="The message, such as site-a.summary; with --add not every time.")
@FEDERATION_OPTION
@click.option("--site", help=SITE_NAME)
@click.option("--add", is_flag=True, help="DATA are new rows: add them to those that were added before.")
@ID_OPTION
@click.option("--columns", help="Without a federation file: names of columns to use, separated by commas.")
@click.option("--privacy", type=click.Choice(["suppressed", "plain"]), help="Without a federation file only.")
@KEY_OPTION
@click.option("--dry-run", is_flag=True, help="Show what would leave, and write nothing.")
@click.option("--accept-risk", is_flag=True, help="Write the message although the audit speaks against it.")
@form_options
def summarize(  # noqa: PLR0913, PLR0917 (one argument per option)
    data: Path,
    out: Path | None,
    federation: Path | None,
    site: str | None,
    add: bool,
    id_column: str | None,
    columns: str | None,
    privacy: str | None,
    key_file: Path | None,
    dry_run: bool,
    accept_risk: bool,
    asked: "Form",
) -> None:
    """Make the one message that leaves this site: many small clusters of the rows in DATA, and no rows.

    With --add, of these rows and of all that were added before; without -o, they are added, and no message is made.
    """
    from goldfc.site.ledger import Ledger
    from goldfc.site.parts import Parts
    from goldfc.site.policy import read_policy
    from goldfc.site.private.send import Request
    from goldfc.site.send import draft_summary, sealed_for_server, send

    called, agreement, key = named_by(site, out, add=add), agreement_for(data, federation), read_key(key_file)
    if out is not None:
        check_out(out, is_message, [data, federation, key_file])
    if agreement is None:
        agreement = agreement_without_file(data, columns, privacy, id_column, asked)
    elif columns or privacy:
        raise click.UsageError("Columns and privacy are agreed on in the federation file; change them there.")
    name = checked_site(called, agreement)
    if out is not None:
        sealed_for_server(b"", name, agreement, key)  # a wrong key is told before any work
    policy = read_policy(data)
    say(policy_line(data, policy))
    if request := Request.of(name, agreement, policy):
        summarize_privately(
            request, data, out, key, policy, add=add, dry_run=dry_run, accept_risk=accept_risk, asked=asked
        )
        return
    drop, id_column = agreement.missing == "drop", id_column or agreement.id_column
    person, form = policy.person_column(agreement), form_for(data, asked)
    parts = Parts(name, agreement, policy.tightened(agreement).level, Ledger.of(data, policy)) if add else None
    with opened_table(data, agreement.columns, form, id_column=id_column, drop=drop, person_column=person) as own:
        for note in own.notes:
            say(note)
        keep_form(data, asked)
        table = with_earlier(own, parts, dry_run=dry_run)
        if out is None:
            return
        with working("learning"):
            draft = draft_summary(table, name, agreement, data, policy)
        show_draft(draft)
        if dry_run:
            say("Nothing is written (--dry-run).")
            return
        message = send(draft, agreement, data, out, key=key, accept_risk=accept_risk)
    say_sent(out, message, sealed=agreement.sealed)
    say(f"{draft.ledger.folder} is private and stays at this site: the next message is compared with this one.")


def show_draft(draft: "Draft") -> None:
    """What would leave, and what it would give away."""
    from goldfc.report.describe import describe

    for note in draft.notes:
        say(note)
    show_lines(list(describe(draft.summary.to_message())), title="What would leave")
    show_audit(draft.audit)


def named_by(site: str | None, out: Path | None, *, add: bool) -> str:
    """The site's name: as it was said, or that of the output file."""
    if out is None and not add:
        raise click.UsageError("Missing option '-o': name the message, such as north.summary.")
    if site is None and out is None:
        raise click.UsageError("Missing option '--site': name the site, or the message with -o.")
    return site or (out.stem if out else "")


def with_earlier(table: "Table", parts: "Parts | None", *, dry_run: bool) -> "Table":
    """The rows of a table and of all that were added before; these are kept now, too. None: the table alone."""
    from goldfc.site.oddities import odd_values

    if parts is None:
        return table
    for note in odd_values(table):
        say(note)
    grown, known = parts.tried(table) if dry_run else parts.add(table)
    if known:
        say("This part was added before; it counts once.")
    kept = f", of which {len(grown.rows):,} are kept" if grown.is_sample else ""
    count = f"{len(grown.parts):,} parts" if len(grown.parts) > 1 else "1 part"
    say(f"{parts.site}: {count} with {grown.total:,} rows so far{kept}.")
    return grown.table()


def summarize_privately(  # noqa: PLR0913 (as the command)
    request: "Request",
    data: Path,
    out: Path | None,
    key: "PrivateKey | None",
    policy: "Policy",
    *,
    add: bool,
    dry_run: bool,
    accept_risk: bool,
    asked: "Form",
) -> None:
    """The message of the level `private`: what it costs and what to expect is said before anything is spent."""
    from goldfc.site.ledger import Ledger
    from goldfc.site.parts import Parts
    from goldfc.site.private.send import Budget, send_privately, stored

    ledger, agreement = Ledger.of(data, policy), request.agreement
    if out is None:
        say("The rows are added, and nothing is spent.")
    elif stored(request, ledger):
        say("This was asked for before: the same message is sent again, and costs nothing. It does not know new rows.")
    else:
        Budget.of(ledger, policy).check(request)
    form, person = form_for(data, asked), policy.person_column(agreement)
    settings = {"id_column": agreement.id_column, "person_column": person, "drop": True, "refuse": "columns"}
    parts = Parts(request.site, agreement, request.level, ledger) if add else None
    with opened_table(data, agreement.columns, form, guess=False, **settings) as own:
        for note in own.notes:
            say(note)
        keep_form(data, asked)
        table = with_earlier(own, parts, dry_run=dry_run)
        if out is None:
            return
        show_lines(private_lines(request, Budget.of(ledger, policy)), title="What would leave")
        if not stored(request, ledger):
            confirm_hope(request, table.rows.shape[0], accept_risk=accept_risk or dry_run)
        if dry_run:
            say("Nothing is written, and nothing spent (--dry-run).")
            return
        with working("learning"):
            sent = send_privately(request, table, data, policy, out, key)
    say_sent(out, sent.message, sealed=agreement.sealed)
    say(f"{ledger.folder} is private and stays at this site: it keeps this message, and what was spent.")


def private_lines(request: "Request", budget: "Budget") -> list[tuple[str, str]]:
    """What is promised, and what it costs."""
    level = request.level
    delta = level.budget[1]
    return [
        ("micro-clusters", "their means, how many rows each has, and how rows lie around them, all with noise"),
        ("privacy level", level.promise),
        ("it costs", f"eps {level.eps:g}"),
        ("spent in a year", f"eps {float(budget.eps(delta)):.3g} so far, at delta {level.delta:g}"),
        ("not in it", "rows, their order, names or ids, file names; nothing else of rows"),
    ]


def confirm_hope(request: "Request", rows: int, *, accept_risk: bool) -> None:
    """Say what can be expected of so many rows; where that is nothing, ask."""
    from goldfc.errors import BadSettings
    from goldfc.site.private.plan import FEWEST_CLUSTERS, Plan

    plan = Plan.of(request.agreement, rows, None, FEWEST_CLUSTERS, request.level)
    say(
        f"With {rows:,} rows at each of {plan.sites} sites, {plan.cells:.0f} micro-clusters a site can be told through "
        f"the noise: enough for about {plan.clusters_enough} clusters (`goldfc plan` says more)."
    )
    if not plan.is_hopeless or accept_risk:
        return
    if not console.is_terminal:
        raise BadSettings(
            "That is hardly enough for anything, and eps would be spent for nothing; agree on a larger eps, or on more "
            "sites.",
            "plan-hopeless",
        )
    click.confirm("That is hardly enough for anything. Spend eps all the same?", abort=True)


@main.command()
@click.argument("data", type=A_FILE)
def budget(data: Path) -> None:
    """What the private messages of DATA, and of all that shares its ledger, have spent."""
    from goldfc.site.ledger import Ledger
    from goldfc.site.policy import read_policy
    from goldfc.site.private.send import SPENT, Budget

    policy = read_policy(data)
    ledger = Ledger.of(data, policy)
    spent = [line for line in ledger.lines() if line["event"] == SPENT]
    for line in spent:
        about = f"{line['federation'] or 'not named'}, round {line['round']}, as {line['site']}"
        show_lines([(str(line["time"])[:10], f"eps {line['eps']}, delta {line['delta']}: {about} ({line['data']})")])
    delta = max((Fraction(str(line["delta"])) for line in spent), default=Fraction(1, 100_000))
    total = Budget.of(ledger, policy).eps(delta)
    say(
        f"Private messages: {len(spent)}. In the last year they add up to eps {float(total):.3g} at delta "
        f"{float(delta):g}, of {policy.most_eps_a_year:g} that the policy allows. Sites that share people "
        "spend on their own: for those people it adds up."
    )


def say_sent(out: Path, message: bytes, *, sealed: bool) -> None:
    """What to do with the message."""
    if sealed:
        say(f"{out}: {len(message) / 1000:.1f} kB, signed and sealed: only the server can read it. Hand it over.")
    else:
        say(f"{out}: {len(message) / 1000:.1f} kB. `goldfc inspect` shows it again; hand it to the server.")


def policy_line(data: Path, policy: "Policy") -> str:
    """Which policy is obeyed."""
    from goldfc.site.policy import policy_beside

    path = policy_beside(data)
    where = str(path) if path.exists() else f"the defaults, since there is no {path}"
    return (
        f"This site's policy: {where} (at least {policy.smallest} rows in a micro-cluster, at least "
        f"{policy.least_sites} sites; fingerprint {policy.fingerprint[:12]})."
    )


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


@main.command()
@click.argument("data", type=A_FILE)
@click.option("--model", "model_file", type=A_FILE, required=True, help="What came back, such as global.model.")
@click.option("-o", "--out", type=A_FILE, required=True, help="The labels, such as labels.csv.")
@FEDERATION_OPTION
@click.option("--site", help="The site's name, where the model is sealed.  [default: that of the model file]")
@ID_OPTION
@KEY_OPTION
@click.option("--unsigned", is_flag=True, help="Without federation.toml: take a model that nobody signed.")
@click.option("--any-model", is_flag=True, help="Also one that does not come after the model of the last labels.")
@click.option("--strict", is_flag=True, help="Refuse a table in which a row cannot be read; otherwise it has no label.")
@click.option("--report", "page", type=A_FILE, help="Also a page of your own rows, such as page.html; it stays here.")
@NAMES_OPTION
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
    any_model: bool,
    strict: bool,
    page: Path | None,
    names_file: Path | None,
    asked: "Form",
) -> None:
    """Give every row in DATA the label of its cluster; rows need not have been summarised.

    With --report, a page for this site alone: its rows against all sites', typical, far and unsure ones.
    """
    from goldfc.errors import BadSettings
    from goldfc.message.wire import read_message
    from goldfc.site.seals import check_unsigned
    from goldfc.site.send import open_model
    from goldfc.site.succession import check_succession, remember_model

    agreement = agreement_for(data, federation)
    inputs = [data, model_file, federation, key_file, names_file]
    check_out(out, is_label_file, inputs)
    if page is not None:
        check_out(page, is_page, [*inputs, out])
        if page.resolve() == out.resolve():
            raise click.UsageError("Labels and their page need a file each.")
    if not model_file.exists():
        raise BadSettings(
            f"There is no file {model_file}; `goldfc fuse` or `goldfc collect` makes it at the server.", "model-missing"
        )
    id_column = id_column or (agreement.id_column if agreement else None)
    name = site or model_file.stem
    model = open_model(read_message(model_file), model_file.name, agreement, name, read_key(key_file))
    if agreement is None or not agreement.sealed:
        check_unsigned(data, agreement, model.terms.federation, said=unsigned)
    check_succession(data, model, said=any_model)
    names = names_for(model_file, model, names_file)
    settings = {"drop": agreement is not None and agreement.missing == "drop", "id_column": id_column}
    settings["refuse"] = "values" if strict else "columns"
    columns, form = model.terms.columns, form_for(data, asked)
    with opened_table(data, columns, form, **settings) as table, working("labelling"):
        labels = write_both(table, model, out, page, names, id_column)
    keep_form(data, asked)
    remember_model(data, model)
    if page is not None:
        say(f"{page}: a page of your own rows, for this site alone. Do not pass it on.")
    say(f"{out}: {labels.rows} rows in {len(labels.clusters)} clusters, by model {model.fingerprint}.")
    if labels.far:
        say(f"{labels.far} of them are far from every cluster (column far): nobody sent anything like them.")
    if labels.without:
        total = labels.without.total()
        say(f"{total:,} {'row has' if total == 1 else 'rows have'} no cluster (column reason):")
    for reason, count in labels.without.most_common():
        say(f"  {count}: {reason}.")


def write_both(
    table: "Table", model: "Model", out: Path, page: Path | None, names: "Names", id_column: str | None
) -> "LabelCounts":
    """The labels, and the page of the rows if it is asked for: all of it in one pass."""
    from goldfc.site.labels import labels_of, write_labels

    id_name = id_column or "row"
    if page is None:
        return write_labels(labels_of(table, model), out, id_name, model.fingerprint, names)
    from goldfc.report.own_rows import OwnRows
    from goldfc.report.site_page import write_site_report

    own = OwnRows(model)
    labels = write_labels(labels_of(table, model, own.see), out, id_name, model.fingerprint, names)
    write_site_report(own, labels, page, names, id_name=id_column)
    return labels


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
    Rows that were added in parts are removed as well, unless a day or a message is named.
    """
    from goldfc.errors import BadSettings
    from goldfc.site.ledger import Ledger
    from goldfc.site.parts import forget_parts, reservoirs
    from goldfc.site.policy import read_policy

    policy = read_policy(data)
    ledger = Ledger.of(data, policy)
    found, everything = chosen_messages(ledger, before, sha), before is None and sha is None
    kept = everything and bool(reservoirs(ledger))
    if not (found or kept):
        say(f"Nothing of that kind is kept in {ledger.folder}.")
        return
    what = f"{len(found)} messages" + (" and all rows that were added in parts" if kept else "")
    if not yes and not console.is_terminal:
        raise BadSettings(f"{what} would be forgotten; say --yes if that is intended.", "forget-unconfirmed")
    if not yes and not click.confirm(f"Forget {what}? No later message will be compared with what is forgotten."):
        return
    with ledger.locked():
        ledger.forget(found, policy)
        if kept:
            forget_parts(ledger, policy)
    say(f"{what} are forgotten; a line in the ledger says that something was.")


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


@contextmanager
def opened_table(data: Path, columns: "Sequence[Column]", form: "Form", **settings: Any) -> "Iterator[Table]":
    """The rows; on a terminal, a bar while a large file is read."""
    from goldfc.site.table.table import open_table

    with ExitStack() as in_use:
        with progress_bar("reading (%)", 100) as bar:

            def show(done: int, total: int) -> None:
                bar.update(bar.task_ids[0], completed=100 * done // total)

            table = in_use.enter_context(open_table(data, columns, form=form, on_progress=show, **settings))
        yield table


def is_label_file(head: bytes) -> bool:
    """Whether a file looks like labels."""
    from goldfc.site.labels import holds_labels

    return holds_labels(head)


def agreement_without_file(
    data: Path, columns: str | None, privacy: str | None, id_column: str | None, asked: "Form"
) -> "Agreement":
    """What is meant where nobody wrote it down: numbers, and the defaults; ids stay here."""
    from goldfc.agreement import Agreement
    from goldfc.errors import BadRows, BadSettings
    from goldfc.message.columns import Column
    from goldfc.site.init import guess_columns

    names = names_in(columns)
    if not names:
        found = guess_columns([data], id_column=id_column, most_blocks=GUESSED_FROM, form=asked)
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
