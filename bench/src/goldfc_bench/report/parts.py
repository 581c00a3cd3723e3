"""What a report is made of before it is a page: texts, tables and drawings, in sections.

Texts know two signs of Markdown, `code` and **bold**; both pages are made from the same parts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

Mark = Literal["", "best", "second", "differs"]


@dataclass(frozen=True)
class Entry:
    """One entry of a table: what it says, a second line, and how it stands out."""

    text: str
    below: str = ""
    mark: Mark = ""


@dataclass(frozen=True)
class Table:
    """Rows of entries under columns; the first column says what a row is about."""

    kind: ClassVar[str] = "table"
    name: str  # of its file
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    foot: Sequence[Sequence[Entry]] = ()
    folded: bool = False  # only its title is seen until somebody asks for more


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True)
class Heading:
    """The title of a part of a section."""

    kind: ClassVar[str] = "heading"
    text: str
    anchor: str = ""  # where the table of contents leads, if it does
    level: int = 3


@dataclass(frozen=True)
class Lines:
    """A list, folded under its title."""

    kind: ClassVar[str] = "lines"
    title: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Drawing:
    """A figure: the name of its file, what it shows in words, and itself."""

    name: str
    shows: str
    svg: str


@dataclass(frozen=True)
class Panels:
    """Drawings side by side, as many as there is room for."""

    kind: ClassVar[str] = "panels"
    drawings: Sequence[Drawing]
    wide: bool = False  # one that has to be scrolled on a phone


Part = Table | Text | Heading | Lines | Panels


@dataclass(frozen=True)
class Section:
    """An experiment."""

    name: str
    title: str
    parts: Sequence[Part]


def tables_of(sections: Sequence[Section]) -> Iterator[Table]:
    """All tables."""
    return (part for section in sections for part in section.parts if isinstance(part, Table))


def drawings_of(sections: Sequence[Section]) -> Iterator[Drawing]:
    """All drawings."""
    panels = (part for section in sections for part in section.parts if isinstance(part, Panels))
    return (drawing for part in panels for drawing in part.drawings)


def entries(*texts: object) -> list[Entry]:
    """A row that just says something."""
    return [Entry(str(text)) for text in texts]
