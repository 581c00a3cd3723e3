"""What anybody runs: a message, shown; and what an agreement means, for those who have to allow it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from goldfc.cli.shared import (
    A_FILE,
    FEDERATION_OPTION,
    KEY_OPTION,
    NAMES_OPTION,
    agreement_for,
    check_out,
    main,
    names_for,
    read_key,
    say,
    show_lines,
)

if TYPE_CHECKING:
    from goldfc.agreement import Agreement
    from goldfc.message.envelope import PrivateKey
    from goldfc.message.message import Message


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


@main.command()
@click.argument("federation", type=A_FILE, default=Path("federation.toml"))
@click.option(
    "-o", "--out", type=A_FILE, default=Path("dossier.html"), show_default=True, help="A page, or Markdown: .md."
)
@click.option("--sbom", type=A_FILE, help="Also a bill of materials of this installation, as CycloneDX has it (JSON).")
def dossier(federation: Path, out: Path, sbom: Path | None) -> None:
    """Write what FEDERATION means for security and privacy, with what shows it: for a board, a security officer."""
    from goldfc.agreement import read_agreement
    from goldfc.errors import BadSettings
    from goldfc.files import write_durably
    from goldfc.report.dossier import FORMS
    from goldfc.report.materials import bill_of_materials, installed, is_bill

    if out.suffix not in FORMS:
        raise BadSettings(f"{out} must end in one of {', '.join(FORMS)}.", "dossier-suffix")
    write, is_ours = FORMS[out.suffix]
    agreement, components = read_agreement(federation), installed()
    check_out(out, is_ours, [federation])
    if sbom is not None:
        check_out(sbom, is_bill, [federation])
        write_durably(sbom, bill_of_materials(components))
        say(f"{sbom}: {len(components)} distributions.")
    write_durably(out, write(agreement, components).encode())
    say(f"{out}: read it before you sign, and hand it to who has to allow it.")


@main.command()
@click.argument("model_file", metavar="MODEL", type=A_FILE)
@click.option("-o", "--out", type=A_FILE, help="Also every column in every cluster, as CSV, such as profiles.csv.")
@click.option("--contrast", nargs=2, metavar="A B", help="What tells two clusters apart, by their numbers or names.")
@NAMES_OPTION
def profile(model_file: Path, out: Path | None, contrast: tuple[str, str] | None, names_file: Path | None) -> None:
    """Show what the clusters of MODEL are like: size, sites, what sets each apart, and a rule of a few columns.

    How precise a rule is was measured on rows drawn as the model describes its clusters, not on anybody's rows.
    """
    from goldfc.files import write_durably
    from goldfc.report.listing import csv_of, is_csv_of_result, list_clusters, list_contrast
    from goldfc.report.result import Result
    from goldfc.server.deliver import read_model

    if out is not None:
        check_out(out, is_csv_of_result, [model_file, names_file])
    model = read_model(model_file)
    result = Result(model, names=names_for(model_file, model, names_file))
    if contrast is not None:
        one, other = map(result.place_of, contrast)
        title = f"What tells {result.titles[one]} from {result.titles[other]}"
        show_lines(list(list_contrast(result, one, other)), title)
    else:
        for title, lines in list_clusters(result):
            show_lines(lines, title)
            say("")
    if out is not None:
        write_durably(out, csv_of(result), private=True)
        say(f"{out}: every column in every cluster.")
