"""How a site writes its tables: `site.toml` beside its data. It never leaves the site, and nobody has to agree to it.

decimal = ","                # the decimal mark; by the look of the numbers if nothing is said
thousands = "."              # what stands between thousands
encoding = "cp1252"          # of text; UTF-8 and UTF-16 are recognised
sheet = "2026"               # of a workbook that has several
header = 3                   # the line with the names of columns, if it is not the first
separator = ":"              # between values; commas, semicolons, tabs and bars are recognised
missing = ["-9", "unknown"]  # also mean that there is no value

[rename]
"Alter (J.)" = "age"         # what the file says = what was agreed on

[columns.ldl]                # by the agreed name
factor = 0.02586             # numbers are multiplied by it, and then `offset` is added
[columns.sex]
aliases = { w = "female" }   # what the file says = what was agreed on
[columns.birth]
dates = "years"              # or "days", since 1970-01-01
format = "%d.%m.%Y"          # how dates are written, if they are not like 2027-01-31 or 31.1.2027
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from goldfc.errors import BadRows, BadSettings
from goldfc.message.columns import Column, Number, Strict, read_settings
from goldfc.message.units import to_unit

FORM = "site.toml"
MOST_BYTES_OF_A_FORM = 2**18
# A unit behind a name, as in "weight [kg]" or "weight (kg)".
HEADER = re.compile(r"^(?P<name>.*\S)\s*[\[(](?P<unit>[^\[\]()]+)[\])]$")

Words = Annotated[tuple[str, ...], Field(strict=False)]


class ColumnForm(Strict):
    """How a site writes one column."""

    factor: Number = 1.0
    offset: Number = 0.0
    aliases: dict[str, str] = Field(default_factory=dict)
    missing: Words = ()
    dates: Literal["days", "years"] | None = None
    format: str = ""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not self.factor:
            raise BadSettings("a factor of 0 leaves nothing of a column", "form-factor")
        return self


class Form(Strict):
    """The content of `site.toml`."""

    decimal: Literal[".", ","] | None = None
    thousands: Literal[".", ",", " ", "'"] | None = None
    encoding: str = ""
    sheet: str = ""
    header: Annotated[int, Field(ge=1)] | None = None
    separator: str = ""
    missing: Words = ()
    rename: dict[str, str] = Field(default_factory=dict)
    columns: dict[str, ColumnForm] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.thousands is not None and self.thousands == (self.decimal or "."):
            raise BadSettings("decimal and thousands must be two different marks", "form-marks-alike")
        if not re.fullmatch(r"[ !#-~\t]?", self.separator):
            raise BadSettings("a separator must be one plain sign, and no quotation mark", "form-separator")
        try:
            "".encode(self.encoding or "utf-8")
        except LookupError as error:
            raise BadSettings(f"there is no encoding {self.encoding!r}", "form-encoding-unknown") from error
        return self

    def of(self, column: str) -> ColumnForm:
        """How a column is written, by its agreed name."""
        own = self.columns.get(column, ColumnForm())
        return own.model_copy(update={"missing": (*self.missing, *own.missing)}) if self.missing else own

    def merged(self, other: "Form") -> "Form":
        """The same, but as `other` says where it says something."""
        mine, others = as_said(self), as_said(other)
        return Form.model_validate(joined(mine, others))

    @property
    def text(self) -> str:
        """As its file."""
        said = as_said(self)
        tables = {name: said.pop(name) for name in ("rename",) if name in said}
        tables |= {f"columns.{key_text(name)}": own for name, own in said.pop("columns", {}).items()}
        lines = [*toml_lines(said)]
        for name, own in tables.items():
            lines += ["", f"[{name}]", *toml_lines(own)]
        return "\n".join(lines).lstrip("\n") + "\n"


AS_USUAL = Form()


def as_said(form: Form) -> dict[str, Any]:
    """What is not left at its default."""
    return form.model_dump(mode="json", exclude_defaults=True)


def joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two nested tables as one; lists are put one behind the other."""
    found = dict(one)
    for name, value in other.items():
        if isinstance(value, dict):
            found[name] = joined(found.get(name, {}), value)
        elif isinstance(value, list):
            found[name] = list(dict.fromkeys([*found.get(name, []), *value]))
        else:
            found[name] = value
    return found


def toml_lines(table: Mapping[str, Any]) -> Iterator[str]:
    """Lines of TOML, which has texts, numbers and lists as JSON has them."""
    for name, value in table.items():
        inside = ", ".join(toml_lines(value)) if isinstance(value, dict) else ""
        shown = f"{{ {inside} }}" if inside else json.dumps(value, ensure_ascii=False)
        yield f"{key_text(name)} = {shown}"


def key_text(name: str) -> str:
    """A name as a key of TOML."""
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else quoted(name)


def quoted(text: str) -> str:
    """A text as TOML has it; printable ones are written as in JSON."""
    return json.dumps(text, ensure_ascii=False)


def form_beside(data: Path) -> Path:
    """Where a site's form is looked for."""
    return data.parent / FORM


def read_form(data: Path) -> Form:
    """The form beside the data; as usual if there is none."""
    path = form_beside(data)
    return read_settings(path, Form, MOST_BYTES_OF_A_FORM) if path.exists() else AS_USUAL


# --- what columns are called ---


def name_and_unit(header: str) -> tuple[str, str]:
    """What a header calls the column, and the unit behind it, if there is one."""
    match = HEADER.match(header)
    return (match["name"], match["unit"].strip()) if match else (header, "")


def look_of_header(name: str) -> str:
    """What a header looks like, whatever the case and the signs between words."""
    return re.sub(r"[\s_.\-]+", "", name.casefold())


def called(there: Sequence[str], wanted: Sequence[str], form: Form) -> dict[str, str]:
    """Of all agreed names that the file has, in whatever look, what it calls them."""
    if unknown := [name for name in form.rename if name not in there]:
        raise BadRows(
            f"{unknown[0]!r} is to be renamed ({FORM}), but the file has {', '.join(map(repr, there))}.",
            "rename-unknown",
        )
    found = {agreed: name for name, agreed in form.rename.items()}
    if len(found) < len(form.rename):
        raise BadRows(f"{FORM} gives two columns of the file the same name; rename one of them.", "rename-twice")
    found |= {name: name for name in wanted if name in there and name not in found}
    free = [name for name in there if name not in found.values()]
    for name in wanted:
        alike = [one for one in free if look_of_header(name_and_unit(one)[0]) == look_of_header(name)]
        if name not in found and len(alike) == 1:
            found[name] = alike[0]
    return {name: found[name] for name in wanted if name in found}


def check_form(form: Form, columns: Sequence[Column]) -> None:
    """Refuse a form that speaks of what was not agreed on."""
    known = {column.name: column for column in columns}
    for name, own in form.columns.items():
        if name not in known:
            raise BadSettings(
                f"It is said how column {name!r} is written ({FORM}), but agreed on were "
                f"{', '.join(map(repr, known))}.",
                "form-column-unknown",
            )
        wrong = sorted(set(own.aliases.values()) - set(known[name].categories))
        if wrong and known[name].kind == "category":
            raise BadSettings(
                f"{FORM} has an alias for {wrong[0]!r} in column {name!r}, but the agreed categories are "
                f"{', '.join(map(repr, known[name].categories[:10]))}.",
                "form-alias-unknown",
            )


def unit_faults(columns: Sequence[Column], called: Mapping[str, str], form: Form) -> Iterator[str]:
    """Headers with another unit than the agreed one, where the form does not say what to do about it."""
    for column in columns:
        header, own = called.get(column.name, column.name), form.columns.get(column.name, ColumnForm())
        unit = name_and_unit(header)[1]
        converted = {"factor", "offset"} & own.model_fields_set
        differs = unit and column.unit and look_of_header(unit) != look_of_header(column.unit)
        if header != column.name and differs and not converted:
            known = to_unit(column.name, unit, column.unit)
            fits = (
                known and f" ({known.factor:.6g}{f', and then {known.offset:+.6g}' if known.offset else ''} would fit)"
            )
            yield (
                f"The file has {header!r}, but column {column.name!r} was agreed on in {column.unit!r}; convert it, or "
                f"say in {FORM} by which factor it is to be multiplied{fits or ''}"
            )


def rename_notes(names: Mapping[str, str], form: Form) -> Iterator[str]:
    """Which columns are called otherwise in the file."""
    others = {own: name for name, own in names.items() if name != own}
    if others:
        told = (f"{own!r} as {name!r}{f' ({FORM})' if own in form.rename else ''}" for own, name in others.items())
        yield f"Columns are read under other names: {', '.join(told)}."
