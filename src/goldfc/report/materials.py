"""What an installation is made of: versions and licences for people, and the bill of materials for programs."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any

ROOT = "goldfc"
# What people install for their own use; the other extras are for who works on goldfc.
EXTRAS = frozenset({"excel", "flower", "paper", "plot", "ray"})
REQUIREMENT = re.compile(r"([\w.-]+)\s*(?:\[([^]]*)\])?")
FOR_AN_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)""")
NOT_TOLD = "not told"
# Longer ones are the whole text of a licence.
LONGEST_LICENCE = 60


@dataclass(frozen=True)
class Component:
    """One distribution that is installed."""

    name: str
    version: str
    licence: str
    is_spdx: bool  # whether the licence is told in the words of SPDX
    needs: tuple[str, ...] = ()  # of the other components

    @property
    def url(self) -> str:
        """What lists of known weaknesses call it."""
        return f"pkg:pypi/{self.name}@{self.version}"


def installed() -> tuple[Component, ...]:
    """What is installed of goldfc and all that it needs: itself first, the others by name."""
    wanted: dict[str, frozenset[str]] = {}
    waiting = [(ROOT, EXTRAS)]
    while waiting:
        name, extras = waiting.pop()
        if extras <= wanted.get(name, frozenset()) and name in wanted:
            continue
        if (own := found(name)) is not None:
            wanted[name] = extras | wanted.get(name, frozenset())
            waiting += needs_of(own, wanted[name])
    by_name = sorted(wanted, key=lambda name: (name != ROOT, name))
    return tuple(
        component(name, sorted({need for need, _ in needs_of(distribution(name), wanted[name])} & set(wanted)))
        for name in by_name
    )


def found(name: str) -> Distribution | None:
    """A distribution; none where another platform needs it, or an extra that is not installed."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def needs_of(own: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """What a distribution with these extras asks for, on some platform, each with extras of its own."""
    for line in own.requires or ():
        told, _, condition = line.partition(";")
        for_extras = set(FOR_AN_EXTRA.findall(condition))
        if (match := REQUIREMENT.match(told)) and (not for_extras or for_extras & extras):
            yield normal(match[1]), frozenset(re.findall(r"[\w-]+", match[2] or ""))


def normal(name: str) -> str:
    """One name for all ways to write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def component(name: str, needs: Sequence[str]) -> Component:
    """With what its metadata tell."""
    told = distribution(name).metadata
    expression, text = (next(iter(told.get_all(key) or ()), None) for key in ("License-Expression", "License"))
    licence, is_spdx = licence_in(expression, text, told.get_all("Classifier") or ())
    return Component(name, told["Version"], licence, is_spdx, tuple(needs))


def licence_in(expression: str | None, text: str | None, classifiers: Sequence[str]) -> tuple[str, bool]:
    """The licence, and whether it is told in the words of SPDX; older metadata have it in one of two other places."""
    if expression:
        return expression, True
    names = [line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License :: ")]
    if text and "\n" not in text and len(text) <= LONGEST_LICENCE:
        names.append(text)
    return (names or [NOT_TOLD])[0], False


def bill_of_materials(components: Sequence[Component]) -> bytes:
    """In JSON, as CycloneDX 1.6 has it; the first component is what the others are for."""
    root, *others = components
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": told_of(root, "application")},
        "components": [told_of(one, "library") for one in others],
        "dependencies": [{"ref": one.url, "dependsOn": urls_of(one.needs, components)} for one in components],
    }
    return (json.dumps(bill, indent=2) + "\n").encode()


def is_bill(head: bytes) -> bool:
    """Whether a file looks like one."""
    return b'"bomFormat": "CycloneDX"' in head


def told_of(one: Component, kind: str) -> dict[str, Any]:
    """One component."""
    licence: dict[str, Any] = {"expression": one.licence} if one.is_spdx else {"license": {"name": one.licence}}
    return {
        "type": kind,
        "bom-ref": one.url,
        "name": one.name,
        "version": one.version,
        "purl": one.url,
        "licenses": [licence],
    }


def urls_of(names: Sequence[str], components: Sequence[Component]) -> list[str]:
    """What these components are called."""
    return [one.url for one in components if one.name in names]
