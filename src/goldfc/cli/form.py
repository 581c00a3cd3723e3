"""Options that say how a site writes its tables; they are kept in `site.toml` beside the data, for the next command."""

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from goldfc.cli.shared import say

if TYPE_CHECKING:
    from goldfc.site.table.form import Form

OPTIONS = (
    click.option("--decimal", type=click.Choice([".", ","]), help="The decimal mark.  [default: as numbers look]"),
    click.option("--thousands", type=click.Choice([".", ",", " ", "'"]), help="What stands between thousands."),
    click.option("--encoding", help="Of text, such as latin-1.  [default: UTF-8, UTF-16 or cp1252, as it looks]"),
    click.option("--sheet", help="Of a workbook that has several."),
    click.option("--header", type=click.IntRange(1), help="The line with the names of columns.  [default: the first]"),
    click.option("--separator", help="Between values.  [default: comma, semicolon, tab or bar, as the header looks]"),
    click.option("--missing", multiple=True, help="Also means that there is no value, such as -9; may be repeated."),
    click.option("--rename", multiple=True, metavar="HERE=AGREED", help="A column that has another name here."),
    click.option("--factor", multiple=True, metavar="COLUMN=NUMBER", help="Numbers are multiplied by it (units)."),
    click.option("--offset", multiple=True, metavar="COLUMN=NUMBER", help="It is added, after the factor."),
    click.option("--dates", multiple=True, metavar="COLUMN=years|days", help="Dates count as years, or as days."),
    click.option("--alias", multiple=True, metavar="COLUMN:HERE=AGREED", help="A value that is called otherwise here."),
)


def form_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command these options, and all of them together as `asked`."""

    @wraps(command)
    def with_form(*values: Any, **options: Any) -> None:
        names = ("decimal", "thousands", "encoding", "sheet", "header", "separator", "missing")
        plain = {name: value for name in names if (value := options.pop(name))}
        pairs = {name: options.pop(name) for name in ("rename", "factor", "offset", "dates", "alias")}
        command(*values, **options, asked=form_of(plain, pairs))

    for option in reversed(OPTIONS):
        with_form = option(with_form)
    return with_form


def form_of(plain: dict[str, Any], pairs: dict[str, Sequence[str]]) -> "Form":
    """What was said by options."""
    from pydantic import ValidationError

    from goldfc.message.columns import first_complaint
    from goldfc.site.table.form import Form

    columns: dict[str, dict[str, Any]] = {}
    for name in ("factor", "offset", "dates"):
        for column, value in (two_of(text, name) for text in pairs[name]):
            columns.setdefault(column, {})[name] = value if name == "dates" else number_in(value, name)
    for column, alias in (two_of(text, "alias", ":") for text in pairs["alias"]):
        here, agreed = two_of(alias, "alias")
        columns.setdefault(column, {}).setdefault("aliases", {})[here] = agreed
    rename = dict(two_of(text, "rename") for text in pairs["rename"])
    try:
        return Form.model_validate({**plain, "rename": rename, "columns": columns})
    except ValidationError as error:
        raise click.UsageError(f"The options do not fit: {first_complaint(error)}.") from error


def two_of(text: str, option: str, sign: str = "=") -> tuple[str, str]:
    """What stands before and behind a sign."""
    before, found, behind = text.rpartition(sign) if sign == "=" else text.partition(sign)
    if not (found and before.strip() and behind.strip()):
        raise click.UsageError(
            f"--{option} {text!r} lacks a {sign!r} between two names; `goldfc check --help` shows how."
        )
    return before.strip(), behind.strip()


def number_in(text: str, option: str) -> float:
    """The number that a text is."""
    try:
        return float(text)
    except ValueError as error:
        raise click.UsageError(f"--{option} needs a number, such as 0.0259, not {text!r}.") from error


def form_for(data: Path, asked: "Form") -> "Form":
    """What `site.toml` beside the data says, and what was asked for."""
    from goldfc.site.table.form import read_form

    return read_form(data).merged(asked)


def keep_form(data: Path, asked: "Form") -> None:
    """Write what was asked for into `site.toml`, where the next command finds it; what people wrote there stays."""
    from goldfc.files import write_durably
    from goldfc.site.table.form import AS_USUAL, form_beside, read_form

    path, there = form_beside(data), read_form(data)
    form = there.merged(asked)
    if asked == AS_USUAL or form == there:
        return
    if path.exists() and path.read_text(encoding="utf-8") != there.text:
        say(f"{path} was written by hand, and is left as it is. For the next command, let it say:\n{form.text}")
        return
    write_durably(path, form.text.encode())
    say(f"{path} keeps how the table is written, for the next command; it stays at this site.")
