"""What a summary is about: which federation, which round, which columns in which units."""

import math
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, Field, ValidationError, model_validator

from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadSettings, code_of
from goldfc.learning.micro_clusters import Layout

# Names go into file names, tables and pages: letters, digits and a few signs, so that none can point elsewhere.
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
DEVICES = frozenset({"CON", "PRN", "AUX", "NUL", *(f"{port}{n}" for port in ("COM", "LPT") for n in range(1, 10))})
MOST_FEATURES = 4096
MOST_CATEGORIES = 1000
# Printable by Python's rules, and yet nothing to see: fillers, joiners, variation selectors, the empty Braille pattern.
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# Signs of names that are easily taken for each other, all as one of them.
TAKEN_FOR = str.maketrans({"0": "o", "1": "l", "i": "l", ".": "-", "_": "-"})


def shown(text: str) -> str:
    """A text from a stranger as it may be shown: what is invisible or steers a terminal is spelled out."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def plain_text(text: str) -> str:
    """A text that a person can read: nothing that is invisible or turns the direction of writing."""
    if not text.isprintable() or text.strip() != text:
        raise BadSettings("must be printable, without blanks at either end", "text-not-printable")
    if INVISIBLE.search(text):
        raise BadSettings("must not have invisible characters; type it again", "text-invisible")
    # Otherwise two texts could look the same and be different, such as an accent in one sign and in two.
    if not unicodedata.is_normalized("NFC", text):
        raise BadSettings("must be written in Unicode's normal form C; type it again", "text-not-normal")
    return text


def plain_name(text: str) -> str:
    """A name that is safe in a file name, on every platform."""
    if not re.fullmatch(NAME, text) or text.partition(".")[0].upper() in DEVICES:
        raise BadSettings(
            "must be letters, digits, '.', '_' or '-', at most 64, begin with a letter or digit, and not be a device "
            "of Windows, such as 'nul'",
            "name-not-plain",
        )
    return text


def look_of_name(name: str) -> str:
    """What a name looks like at a glance: the same for two that people, or file systems, take for each other."""
    return name.casefold().translate(TAKEN_FOR).replace("rn", "m").replace("vv", "w")


def look_of_text(text: str) -> str:
    """The same for texts that differ in how their signs are set only, such as wide letters and raised digits."""
    return unicodedata.normalize("NFKC", text)


def alike(texts: Iterable[str], look: Callable[[str], str]) -> tuple[str, str] | None:
    """The first two that look alike, if any do."""
    seen = dict[str, str]()
    for text in texts:
        if (own := look(text)) in seen:
            return seen[own], text
        seen[own] = text
    return None


def refuse_alike(what: str, texts: Iterable[str], look: Callable[[str], str]) -> None:
    """Refuse two that are identical, or that people take for each other."""
    one, other = alike(texts, look) or ("", "")
    if one != other:
        raise BadSettings(f"{what}s {one!r} and {other!r} look alike; rename one of them", "alike")
    if one:
        raise BadSettings(f"{what} {one!r} appears twice", "twice")


Name = Annotated[str, AfterValidator(plain_name)]
Text = Annotated[str, Field(max_length=200), AfterValidator(plain_text)]
# Squares of larger numbers come near the end of what numbers can hold.
LARGEST_TOLD = 1e50
Number = Annotated[float, Field(allow_inf_nan=False, strict=False, ge=-LARGEST_TOLD, le=LARGEST_TOLD)]


class Strict(BaseModel):
    """Nothing unknown, nothing converted, nothing changed afterwards."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Column(Strict):
    """One column of the table that all sites hold."""

    name: Annotated[Text, Field(min_length=1)]
    kind: Literal["number", "boolean", "category"] = "number"
    unit: Text = ""
    range: Annotated[tuple[Number, Number], Field(strict=False)] | None = None
    categories: Annotated[tuple[Text, ...], Field(strict=False, max_length=MOST_CATEGORIES), FailFast()] = ()
    step: Number | None = None  # the grid that centroids are rounded to
    fill: Number | bool | Text | None = None  # what stands for a missing value
    sensitive: bool = False  # it does not decide who is together, and is never told as all or none

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.kind != "number" and (self.range is not None or self.step is not None or self.unit):
            raise BadSettings(
                f"column {self.name!r} is not a number, so it has no unit, range or step", "column-not-number"
            )
        if self.range is not None and not self.range[0] < self.range[1]:
            raise BadSettings(
                f"column {self.name!r} needs a range of two numbers, the smaller one first", "column-range"
            )
        if self.step is not None and not self.step > 0.0:
            raise BadSettings(f"column {self.name!r} needs a step above 0", "column-step")
        if self.kind == "category" and (len(self.categories) < 2 or len(set(self.categories)) < len(self.categories)):
            raise BadSettings(f"column {self.name!r} needs at least two categories, all different", "column-categories")
        if self.kind != "category" and self.categories:
            raise BadSettings(f"column {self.name!r} has categories, but its kind is {self.kind!r}", "column-kind")
        return self

    @property
    def features(self) -> int:
        """How many numbers it becomes."""
        return len(self.categories) if self.kind == "category" else 1

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(f"{self.name}={value}" for value in self.categories) or (self.name,)

    @property
    def limits(self) -> tuple[float, float]:
        """Between which values a mean must lie."""
        if self.kind != "number":
            return (0.0, 1.0)
        return self.range or (-math.inf, math.inf)


class Terms(Strict):
    """Which federation, which round, and the columns in their order. In one process nobody needs to say."""

    federation: Name | Literal[""] = ""
    round: Annotated[int, Field(ge=0, le=10**9)] = 0
    columns: Annotated[tuple[Column, ...], Field(strict=False, max_length=MOST_FEATURES), FailFast()] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        refuse_alike("column", (column.name for column in self.columns), look_of_text)
        if self.n_features > MOST_FEATURES:
            raise BadSettings(
                f"the columns become {self.n_features} features; at most {MOST_FEATURES} are possible",
                "columns-too-wide",
            )
        return self

    @property
    def n_features(self) -> int:
        """How many numbers a row becomes."""
        return sum(column.features for column in self.columns)

    @property
    def features(self) -> tuple[Column, ...]:
        """The column of every feature."""
        return tuple(column for column in self.columns for _ in range(column.features))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(name for column in self.columns for name in column.feature_names)

    def layout(self, n_features: int) -> Layout:
        """Which features are numbers and which are levels of categories; where no column is named, all are numbers."""
        if not self.columns:
            return Layout.of_numbers(n_features)
        numbers: list[IntArray] = []
        categories: list[IntArray] = []
        first = 0
        for column in self.columns:
            own = np.arange(first, first + column.features)
            (numbers if column.kind == "number" else categories).append(own)
            first += column.features
        return Layout(np.concatenate([np.empty(0, dtype=np.int64), *numbers]), tuple(categories))

    def difference(self, other: "Terms", *, any_round: bool = False) -> str | None:
        """What `other` has otherwise, in words; nothing if they agree, up to the round if any will do."""
        if self.federation != other.federation:
            return f"it is of federation {other.federation!r}, not of {self.federation!r}"
        if self.round != other.round and not any_round:
            return f"it is of round {other.round}, not of round {self.round}"
        if len(self.columns) != len(other.columns):
            return f"it has {len(other.columns)} columns, not {len(self.columns)}"
        for number, (mine, others) in enumerate(zip(self.columns, other.columns, strict=True), start=1):
            for field in Column.model_fields:
                if getattr(mine, field) != getattr(others, field):
                    return (
                        f"column {number} ({mine.name!r}) has the {field} {repr(getattr(others, field))[:200]}, "
                        f"not {repr(getattr(mine, field))[:200]}"
                    )
        return None


UNNAMED = Terms()


def ranges_of(terms: Terms) -> tuple[FloatArray, FloatArray]:
    """The agreed ends of every feature."""
    if without := [column.name for column in terms.columns if math.inf in column.limits]:
        raise BadSettings(
            f"Scaling by ranges needs a range for every column; {without[0]!r} has none.", "range-missing"
        )
    if not terms.columns:
        raise BadSettings(
            "Scaling by ranges needs columns with ranges, and there are no columns; name some.", "ranges-unnamed"
        )
    low, high = np.array([column.limits for column in terms.features]).T
    return low, high


Settings = TypeVar("Settings", bound=Strict)


def settings_in(content: bytes, source: str, kind: type[Settings]) -> Settings:
    """Settings from their TOML, or a sentence that says which line to correct."""
    try:
        return kind.model_validate(tomllib.loads(content.decode()))
    except ValidationError as error:
        raise BadSettings(
            f"{source} is not as it should be: {first_complaint(error)}.", complaint_code(error, "settings-invalid")
        ) from error
    except UnicodeDecodeError as error:
        raise BadSettings(f"{source} is not written in UTF-8; save it as UTF-8.", "not-utf-8") from error
    except (ValueError, RecursionError) as error:
        raise BadSettings(f"{source} is not valid TOML: {shown(str(error))[:300]}.", "toml-invalid") from error


def read_settings(path: Path, kind: type[Settings], most: int) -> Settings:
    """Settings from a file of a site's own, of at most so many bytes."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise BadSettings(
            f"{path} cannot be read ({error.strerror}); correct it, or move it away.", "settings-unreadable"
        ) from error
    if len(content) > most:
        raise BadSettings(f"{path} has more than {most} bytes, which is the limit; make it shorter.", "settings-large")
    return settings_in(content, str(path), kind)


def first_complaint(error: ValidationError) -> str:
    """What pydantic has against it, as half a sentence that shows no more than it must."""
    complaint = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in complaint["loc"])
    what = "there is no such setting" if complaint["type"] == "extra_forbidden" else complaint["msg"]
    return shown(f"{place or 'it'}: {what.removeprefix('Value error, ')}")[:300]


def complaint_code(error: ValidationError, default: str) -> str:
    """The code of what is wrong, where the first complaint is one of ours."""
    return code_of(error.errors(include_url=False, include_input=False)[0].get("ctx", {}).get("error"), default)


def as_facts(model: BaseModel) -> dict[str, Any]:
    """As it stands in a message: plain values, without what was left at its default."""
    return model.model_dump(mode="json", exclude_defaults=True)
