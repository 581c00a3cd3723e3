"""What the server runs: fuse, collect, report; and a gateway: merge, relay."""

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from goldfc.cli.shared import (
    A_FILE,
    AFTER_OPTION,
    FEDERATION_OPTION,
    K_OPTION,
    KEY_OPTION,
    NAMES_OPTION,
    agreement_for,
    check_out,
    is_message,
    is_page,
    main,
    names_for,
    progress_bar,
    read_key,
    say,
    working,
)

if TYPE_CHECKING:
    from goldfc.agreement import Agreement
    from goldfc.message.model import Model
    from goldfc.message.summary import Summary
    from goldfc.names import Names
    from goldfc.server.folder import Event, Folder, FolderStatus
    from goldfc.server.influence import LeftOut
    from goldfc.server.round import Round

# Leaving out each of more sites would take long.
MOST_LEFT_OUT = 30
# A file that is written to again and again cannot keep everybody waiting.
MOST_SECONDS_TO_SETTLE = 10.0


@main.command()
@click.argument("summaries", type=A_FILE, nargs=-1, required=True)
@K_OPTION
@click.option("-o", "--out", type=A_FILE, required=True, help="The model, such as global.model.")
@FEDERATION_OPTION
@AFTER_OPTION
def fuse(
    summaries: tuple[Path, ...], clusters: int | None, out: Path, federation: Path | None, after: Path | None
) -> None:
    """Make the global clusters of all sites' SUMMARIES; after a model, some may be of earlier rounds."""
    from goldfc.errors import BadSettings
    from goldfc.files import write_durably
    from goldfc.message.wire import encode, read_message
    from goldfc.server.admit import read_summary
    from goldfc.server.deliver import read_model
    from goldfc.server.round import fuse_admitted

    agreement = agreement_for(out, federation)
    check_out(out, is_message, [*summaries, federation, after])
    before = None if after is None else read_model(after)
    if before is not None and out.is_file():
        check_not_passed(before, out)
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
            found.append(read_summary(content, path.name, agreement, None, or_earlier=before is not None)[0])
            bar.advance(bar.task_ids[0])
    if agreement is None:
        raise click.UsageError("Name at least one summary.")

    with saying_warnings(), working("fusing"):
        result = fuse_admitted(found, agreement, clusters, after=before)
        write_durably(out, encode(result.model.to_message()))
    show_left_out(result.left_out, result.odd)
    show_result(result.model, out, names_or_none(out, result.model))
    say("Hand it to every site.")


def check_not_passed(before: "Model", out: Path) -> None:
    """Refuse to put what comes after a model in the place of one that came later still."""
    from goldfc.errors import BadMessage
    from goldfc.server.deliver import read_model

    there = read_model(out).descent
    if there is not None and before.digest in there.ancestors[:-1]:
        raise BadMessage(
            f"{out} is a later model, which was itself made after model {before.fingerprint}; go on after {out}.",
            "model-before-old",
        )


@main.command()
@click.argument("folder", type=A_FILE)
@K_OPTION
@KEY_OPTION
@click.option("--close", is_flag=True, help="Take nothing more, and fuse what is in.")
@click.option("--wait", is_flag=True, help="Stay until all listed sites are in or the deadline is over, then fuse.")
@click.option("--replace", is_flag=True, help="Make another model of a round that has one, such as with another -k.")
@click.option(
    "--without", multiple=True, metavar="SITE", help="Leave out a site that withdraws; what it sent is put aside."
)
def collect(
    folder: Path,
    clusters: int | None,
    key_file: Path | None,
    close: bool,
    wait: bool,
    replace: bool,
    without: tuple[str, ...],
) -> None:
    """Take in messages from FOLDER/inbox, say who is in and who is missing, and fuse when closed.

    To begin the next round, raise `round` in FOLDER/federation.toml: what is in stays in.
    """
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
        place.begin()
        for site in without:
            place.withdraw(site, replace=replace)
            say(f"{site} is left out.")
        take_in_all(place, wait=wait)
        status = place.status
        if close or place.is_due() or (wait and status.all_in):
            place.close()
        show_status(place.status)
        if not place.closed.is_file():
            say(f"Not closed yet: put messages into {place.inbox}, and run this again; --close ends the round.")
            return
        with saying_warnings(), working("fusing"):
            result = place.fuse(clusters, replace=replace)
        show_left_out(result.left_out, result.odd)
        present(result, folder, place.agreement, place.refused())
        sealed = place.agreement.sealed
        say(
            f"Hand {folder / 'sealed' / 'NAME.model'} to the site of that name." if sealed else "Hand it to every site."
        )


def take_in_all(place: "Folder", *, wait: bool) -> None:
    """Until the inbox is settled; with `wait`, until everybody is in or the deadline is over."""
    told: set[tuple[str, str]] = set()
    patience = time.monotonic() + MOST_SECONDS_TO_SETTLE
    while True:
        events = take_in_once(place, told)
        unsettled = any(event.outcome == "waiting" for event in events) and time.monotonic() < patience
        all_in = bool(place.agreement.sites) and place.status.all_in
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


def present(
    result: "Round", folder: Path, agreement: "Agreement", refused: Mapping[str, str], last: Path | None = None
) -> None:
    """Say what came out, and write the page into the folder of the model: alike for files and live rounds.

    Names are beside the model, or beside the `last` one.
    """
    from goldfc.names import NAMES_FILE
    from goldfc.report.model_page import write_model_report
    from goldfc.server.deliver import MODEL

    model, out, page = result.model, folder / MODEL, folder / "report.html"
    names = names_or_none(out if last is None or (folder / NAMES_FILE).is_file() else last, model)
    write_model_report(
        model,
        page,
        result.summaries,
        left_out=leave_each_out(result.summaries, model, agreement),
        expected=agreement.names,
        refused={**refused, **result.left_out},
        names=names,
    )
    show_result(model, out, names)
    say(f"Open {page} in a browser to see the clusters and who supports them.")


def names_or_none(model_file: Path, model: "Model") -> "Names":
    """What people call the clusters; what cannot be used is said, and stops nothing that was hard to make."""
    from goldfc.errors import BadSettings
    from goldfc.names import NAMELESS, names_beside

    try:
        return names_beside(model_file, model)
    except BadSettings as error:
        say(f"Names are not used: {error}")
        return NAMELESS


@main.command()
@click.argument("summaries", type=A_FILE, nargs=-1, required=True)
@click.option("-o", "--out", type=A_FILE, required=True, help="The message for the server above, such as west.summary.")
@click.option("--site", "region", help="The gateway's name up there.  [default: that of the output file]")
@KEY_OPTION
@FEDERATION_OPTION
def merge(
    summaries: tuple[Path, ...], out: Path, region: str | None, key_file: Path | None, federation: Path | None
) -> None:
    """At a gateway: make one summary of many devices' SUMMARIES, or of other gateways', for the server above.

    What was agreed on with the devices is federation.toml beside their summaries, or beside their folder.
    """
    from goldfc.cli.site import checked_site
    from goldfc.files import write_durably
    from goldfc.message.wire import encode, read_message
    from goldfc.server.admit import read_summary
    from goldfc.server.merge import merge_admitted
    from goldfc.site.send import sealed_for_server

    own = own_agreement(summaries[0].parent)
    above = agreement_for(out, federation) or own
    check_out(out, is_message, [*summaries, federation, key_file])
    name, key = checked_site(region or out.stem, above), read_key(key_file)
    sealed_for_server(b"", name, above, key)  # a wrong key is told before any work
    found = []
    with progress_bar("reading", len(summaries)) as bar:
        for path in summaries:
            found.append(read_summary(read_message(path), path.name, own, key if own.sealed else None)[0])
            bar.advance(bar.task_ids[0])
    with working("merging"):
        result = merge_admitted(found, own, above, name)
    show_left_out(result.left_out, result.odd)
    write_durably(out, sealed_for_server(encode(result.summary.to_message()), name, above, key))
    micro, sites = len(result.summary.centroids), result.summary.sites
    say(f"{out}: {micro} micro-clusters of {sites} sites as {name!r}, and none of their names. Hand it over.")


@main.command()
@click.argument("model_file", metavar="MODEL", type=A_FILE)
@click.argument("folder", type=A_FILE)
@click.option("--site", "region", help="The gateway's name above.  [default: that of the model file]")
@KEY_OPTION
@FEDERATION_OPTION
def relay(model_file: Path, folder: Path, region: str | None, key_file: Path | None, federation: Path | None) -> None:
    """At a gateway: hand the MODEL of the server above on to its devices, by the federation.toml in FOLDER."""
    from goldfc.message.wire import read_message
    from goldfc.server.deliver import letters_to, write_model
    from goldfc.site.send import open_model

    own, key = own_agreement(folder), read_key(key_file)
    above = agreement_for(model_file, federation) or own
    model = open_model(read_message(model_file), model_file.name, above, region or model_file.stem, key)
    letters = letters_to(own.names, model, own, key if own.sealed else None)
    write_model(folder, model, letters, sealed=own.sealed)
    where = folder / "sealed" / "NAME.model" if own.sealed else folder / "global.model"
    say(f"Hand {where} to {'the device of that name' if own.sealed else 'every device'}.")
    say(f"Its fingerprint, which every label has: {model.fingerprint}.")


def own_agreement(folder: Path) -> "Agreement":
    """What a gateway agreed on with its devices: in the folder of their messages, or the one above that."""
    from goldfc.agreement import FILE, read_agreement

    beside = folder / FILE
    return read_agreement(beside if beside.exists() else folder.resolve().parent / FILE)


@main.command()
@click.argument("model_file", metavar="MODEL", type=A_FILE)
@click.argument("summaries", type=A_FILE, nargs=-1)
@click.option("-o", "--out", type=A_FILE, default=Path("report.html"), show_default=True)
@NAMES_OPTION
@FEDERATION_OPTION
def report(
    model_file: Path, summaries: tuple[Path, ...], out: Path, names_file: Path | None, federation: Path | None
) -> None:
    """Make a page of MODEL: its clusters, who supports them, and, with the SUMMARIES, who changes what."""
    from goldfc.message.wire import decode, naming, read_message
    from goldfc.report.model_page import write_model_report
    from goldfc.server.deliver import read_model

    check_out(out, is_page, [model_file, names_file, federation, *summaries])
    model = read_model(model_file)
    names = names_for(model_file, model, names_file)
    agreement = agreement_for(model_file, federation)
    found = []
    for path in summaries:
        content = read_message(path)
        agreement = agreement or agreement_of_summary(content, path.name)
        # Also where messages are sealed: what was accepted lies there opened, and the model knows it by its digest.
        body = decode(content, path.name)
        with naming(path.name):
            summary = agreement.read_summary(body, or_earlier=model.after is not None)
        check_part_of(model, summary, path)
        found.append(summary)
    left_out = leave_each_out(found, model, agreement) if agreement else ()
    expected = agreement.names if agreement else ()
    write_model_report(model, out, found, left_out=left_out, expected=expected, names=names)
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


def show_status(status: "FolderStatus") -> None:
    """Who is in, and who is missing."""
    say(f"In: {', '.join(status.accepted) or 'nobody yet'}.")
    for site, number in status.earlier.items():
        say(f"Nothing new of {site}: what it sent in round {number} is used.")
    if status.missing:
        say(f"Missing: {', '.join(status.missing)}.")
    if status.model:
        say(f"This round has a model: {status.model}.")


def show_result(model: "Model", out: Path, names: "Names") -> None:
    """What came out."""
    from goldfc.report.changes import NOTHING_CHANGED, change_sentences

    show_number(model)
    clusters, micro = len(model.centroids), len(model.micro_labels)
    say(f"{out}: {clusters} clusters from {micro} micro-clusters of {len(model.sites)} sites.")
    if called := [f"{one.id} is {one.name!r}" for one in names.in_model(model) if one.name]:
        say(f"What they are called: {', '.join(called)}.")
    say(f"Its fingerprint, which every label has: {model.fingerprint}.")
    say(f"What they are like: {model.why}.")
    for sentence in change_sentences(model):
        say(f"Changed: {sentence}" if sentence != NOTHING_CHANGED else sentence)


def show_number(model: "Model") -> None:
    """What the evidence says of their number."""
    if model.proposal is None:
        return
    best, *others = model.proposal.candidates
    asked = "" if model.asked is None else f"{model.asked} were asked for; the evidence speaks for "
    say(f"How many clusters? {asked}{best.n_clusters}: {best.reason}.")
    for other in others:
        if other.n_clusters != model.asked:
            say(f"  Or {other.n_clusters}: {other.reason} (-k {other.n_clusters}).")


def show_left_out(left_out: Mapping[str, str], odd: Sequence[str]) -> None:
    """Whose summary was not used, and what is odd in the others."""
    for site, why in left_out.items():
        say(f"Left out: {site}: {why}")
    for sentence in odd:
        say(f"Odd: {sentence}")


@contextmanager
def saying_warnings() -> Iterator[None]:
    """What scikit-learn's users get as a warning, as a sentence: that there are fewer clusters than asked for."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ConvergenceWarning)
        yield
    for warning in told:
        say(str(warning.message))


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
