"""The page, and the same figures for machines."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from goldfc_bench.scale.parts import Section, Table, Target

LIBRARIES = ("goldfc", "numpy", "scipy", "scikit-learn", "numba")
BUSY = 0.5
PAGE = """# Speed, growth and memory

Made by `{command}` (`make bench-speed`), which takes some minutes.

What a federation costs: how fast its parts are, each against the best alternative; how time grows with rows and
features; how much memory it takes; where the time goes, and how far that is from what the machine could do. Data are
synthetic, so that they can be of any size. Everything that is compared was run in turn in the same process, with one
thread each, after compilation. Turns: {repeats}, fewer of what takes long; the medians are shown. Mind the ratios more
than the seconds: those are of one machine on one day.

Measured with {libraries}, on {cores}.
{load}
{targets}

![Seconds against rows and features](growth.svg)

{sections}
All figures of this page, and every single run of the federations, are in `figures.json` beside it.
"""
COLUMNS = ("what", "figure", "at most", "")


@dataclass(frozen=True)
class Circumstances:
    """How the measurement was made."""

    command: str
    repeats: int
    load: float  # programs that wanted to run when it began; nan where the system does not tell

    @classmethod
    def now(cls, command: str, repeats: int) -> "Circumstances":
        """At the beginning."""
        return cls(command, repeats, os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan"))

    @property
    def load_sentence(self) -> str:
        """A warning, if others were at work."""
        if not self.load > BUSY:
            return ""
        return (
            f"\nOther programs were at work when it began (a load of {self.load:.1f}): seconds are too high, and "
            "ratios are rough.\n"
        )


def target_table(targets: Sequence[Target]) -> Table:
    """All of them, with their verdicts."""
    return Table(COLUMNS, [target.cells for target in targets])


def targets_as_markdown(targets: Sequence[Target]) -> list[str]:
    """How many are met, and all of them; tiny sizes have none."""
    if not targets:
        return ["These are tiny sizes, for a look at the form: no figure here means anything."]
    met = sum(target.verdict == "met" for target in targets)
    return [f"## Targets: {met} of {len(targets)} met", "", *target_table(targets).as_markdown()]


def as_markdown(sections: Sequence[Section], how: Circumstances) -> str:
    """The page for a repository."""
    cores = os.cpu_count() or 1
    return PAGE.format(
        command=how.command,
        repeats=how.repeats,
        libraries=", ".join(f"{name} {version(name)}" for name in LIBRARIES),
        cores="a machine with one core" if cores == 1 else f"a machine with {cores} cores",
        load=how.load_sentence,
        targets="\n".join(targets_as_markdown([target for one in sections for target in one.targets])),
        sections="\n".join(section_as_markdown(one) for one in sections),
    )


def section_as_markdown(one: Section) -> str:
    """Heading, text, table."""
    return "\n".join([f"## {one.title}", "", one.text, "", *one.table.as_markdown(), ""])


def as_json(sections: Sequence[Section], how: Circumstances) -> str:
    """For machines."""
    content = {
        "command": how.command,
        "repeats": how.repeats,
        "load": how.load,
        "versions": {name: version(name) for name in LIBRARIES},
        "targets": [{**vars(target), "verdict": target.verdict} for one in sections for target in one.targets],
        "figures": {one.key: one.figures for one in sections},
    }
    return json.dumps(without_nan(content), indent=1) + "\n"


def without_nan(value: Any) -> Any:
    """JSON has no nan; six digits are plenty."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return value
