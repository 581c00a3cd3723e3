"""Each message is written once: a frozen dataclass whose fields say how they travel.

A field is an array, a fact, or a group of these that is there as a whole or not at all. What it takes to write a
message, to read it back and to refuse a stranger's follows from them; nothing else names them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from goldfc.errors import BadMessage
from goldfc.message.message import Message

TRAVELS = "travels"


@dataclass(frozen=True)
class Array:
    """Numbers in a table of so many dimensions, or of any of these."""

    dimensions: tuple[int, ...]
    name: str = ""  # as it travels, where that is not the name of the field
    whole: bool = False  # labels: whole numbers from 0 on


@dataclass(frozen=True)
class Fact:
    """A plain value: what a stranger's must be like (for pydantic), and how JSON has it."""

    kind: Any
    name: str = ""
    read: Callable[[Any], Any] = lambda value: value
    write: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True)
class Group:
    """Several parts that make one value: all of them are there, or none."""

    make: Callable[..., Any]
    parts: Mapping[str, Array | Fact]


def array(*dimensions: int, name: str = "", whole: bool = False, default: Any = MISSING) -> Any:
    """A field that is an array."""
    return field(default=default, metadata={TRAVELS: Array(dimensions, name, whole)})


def fact(kind: Any, name: str = "", default: Any = MISSING, **ways: Callable[[Any], Any]) -> Any:
    """A field that is a fact."""
    return field(default=default, metadata={TRAVELS: Fact(kind, name, **ways)})


def facts(kind: Any, name: str = "", default: Any = MISSING) -> Any:
    """A field that is a tuple of facts; JSON has lists."""
    return fact(kind, name, default, read=tuple, write=list)


def group(make: Callable[..., Any], default: Any = MISSING, **parts: Array | Fact) -> Any:
    """A field that is a group; its parts have the names that `make` calls them by."""
    return field(default=default, metadata={TRAVELS: Group(make, parts)})


class Content:
    """What a message of one kind says; its subclasses are dataclasses, and every field is one of the above."""

    KIND: ClassVar[str]

    def to_message(self) -> Message:
        """As it travels; what is at its default is left out."""
        arrays: dict[str, NDArray[Any]] = {}
        facts: dict[str, Any] = {}
        for name, part, default in schema_of(type(self)):
            value = getattr(self, name)
            if value is default or (isinstance(part, Fact) and value == default):
                continue
            parts = part.parts if isinstance(part, Group) else {name: part}
            for own, one in parts.items():
                told = getattr(value, own) if isinstance(part, Group) else value
                if isinstance(one, Array):
                    arrays[one.name or own] = told
                else:
                    facts[one.name or own] = one.write(told)
        return Message(self.KIND, arrays, facts)

    @classmethod
    def from_message(cls, message: Message) -> Self:
        """Read it back."""
        with message.read_as(cls.KIND):
            values = {name: value_in(message, name, part) for name, part, _ in schema_of(cls)}
            for name, part, default in schema_of(cls):
                if values[name] is MISSING and default is MISSING:
                    told = name if isinstance(part, Group) else part.name or name
                    raise BadMessage(f"A message of kind {cls.KIND!r} must hold {told!r}.", "field-missing")
            return cls(**{name: value for name, value in values.items() if value is not MISSING})


Schema = tuple[tuple[str, Array | Fact | Group, Any], ...]


def schema_of(content: type) -> Schema:
    """Every field: its name, how it travels, and its default."""
    return tuple((one.name, one.metadata[TRAVELS], one.default) for one in fields(content))


def leaves_of(content: type) -> Iterator[tuple[str, Array | Fact, Any]]:
    """Every array and fact by the name that it travels under; the default of what need not be there."""
    for name, part, default in schema_of(content):
        if isinstance(part, Group):
            yield from ((one.name or own, one, None) for own, one in part.parts.items())
        else:
            yield part.name or name, part, default


def value_in(message: Message, name: str, part: Array | Fact | Group) -> Any:
    """The value of a field; missing if the message leaves it at its default."""
    if not isinstance(part, Group):
        return part_in(message, name, part)
    values = {own: part_in(message, own, one) for own, one in part.parts.items()}
    absent = [own for own, value in values.items() if value is MISSING]
    if 0 < len(absent) < len(values):
        named = [one.name or own for own, one in part.parts.items()]
        raise BadMessage(
            f"A {message.kind} must hold all of {', '.join(named[:-1])} and {named[-1]}, or none of them.",
            "group-incomplete",
        )
    return MISSING if absent else part.make(**values)


def part_in(message: Message, name: str, part: Array | Fact) -> Any:
    """An array or a fact."""
    name = part.name or name
    if isinstance(part, Fact):
        return part.read(message.facts[name]) if name in message.facts else MISSING
    if name not in message.arrays:
        return MISSING
    values = message.arrays[name]
    return whole_numbers(values, message.kind) if part.whole else values


def whole_numbers(values: NDArray[Any], kind: str) -> NDArray[np.int64]:
    """Labels, whatever kind of numbers they travelled as; -0 would be another way to write 0."""
    if not (~np.signbit(values) & (values < 2**31) & (values == np.floor(values))).all():
        raise BadMessage(f"The {kind} holds labels that are not whole numbers from 0 on.", "labels-not-whole")
    return values.astype(np.int64)
