"""The page: faults found and named, false alarms, and how small a fault may be."""

from collections.abc import Iterator, Sequence

from goldfc_bench.attacks.page import table
from goldfc_bench.plausible.faults import EACH, FAULTS, LEAST_MOVE, MOST_MOVE, MOST_ROWS
from goldfc_bench.plausible.run import FACTORS, MOVES, Row

PAGE = """# Plausible columns

Made by `{command}`.

Federations of eight Non-ICD sites: families of generated clusters as columns of a laboratory (LDL in mmol/L, income in
EUR, temperature in °C), at most {rows} rows a site. One column of one site has a fault; {each} federations, with a
fault each, are the same before it. Every site sends the message that it would really send, at the level `suppressed`,
and looks at its own columns (`goldfc.site.outliers`); the server compares the columns of all
(`goldfc.server.plausible`). A fault is found where site *and* column are named. *Moved* is by {least:g} to {most:g}
standard deviations of all rows. That a column is constant counts only where the server says so: at the site it is no
alarm.

## Targets: {met} of {n_targets} met

{targets}

## Faults

{faults}

*Said besides*: federations in which another column or site is named along with the fault.

## False alarms

Everybody is honest. Of the federations above before their fault, the paper's ten splits in the units in which they were
measured, and one draw of each family of generated data with less than a hundred columns.

These figures are not of data that nobody had seen: the rule for constants that are told in steps was made after an
alarm on the split YE, one of ten.

{alarms}

{sentences}

## How small a fault may be

One column, anywhere, of an honest message changed: how often the server names site and column.

{moves}

{factors}

A change that sites which see different clusters could have by chance is not found, and is not meant to be.
"""


def as_markdown(rows: Sequence[Row], command: str) -> str:
    """The page."""
    targets = list(targets_of(rows))
    struck = [row for row in rows if row.group == "fault"]
    honest = [row for row in rows if row.is_first]
    said = [f"- {row.group} {row.name}: {one}" for row in honest for one in (*row.by_server, *row.by_site)]
    return PAGE.format(
        command=command,
        rows=MOST_ROWS,
        each=EACH,
        least=LEAST_MOVE,
        most=MOST_MOVE,
        met=sum(met for *_, met in targets),
        n_targets=len(targets),
        targets=table(("", "wanted", "figure", ""), [(*three, "met" if met else "missed") for *three, met in targets]),
        faults=table(
            ("fault", "federations", "found", "by the server", "by the site", "factor named", "said besides"),
            list(lines_of_faults(struck)),
        ),
        alarms=table(
            (
                "",
                "federations",
                "with an alarm",
                "by the server",
                "by a site",
                "honest sites refused",
                "sites too small",
            ),
            [line_of_alarms(title, [row for row in honest if row.group == group]) for group, title in GROUPS.items()],
        ),
        sentences="\n".join(said) or "- none",
        moves=table(
            ("moved by standard deviations", *(f"{by:g}" for by in MOVES)),
            [("found", *(share([row.moves[f"{by:g}"] for row in struck]) for by in MOVES))],
        ),
        factors=table(
            ("multiplied by", *(f"{factor:g}" for factor in FACTORS)),
            [("found", *(share([row.factors[f"{factor:g}"] for row in struck]) for factor in FACTORS))],
        ),
    )


GROUPS = {"fault": "columns of a laboratory", "split": "the paper's splits", "family": "families"}


def targets_of(rows: Sequence[Row]) -> Iterator[tuple[str, str, str, bool]]:
    """What was wanted, and what came out."""
    struck = [row for row in rows if row.group == "fault"]
    found = [row.found for row in struck]
    yield "faults found, site and column named", "95 %", share(found), sum(found) >= 0.95 * len(found)
    for group, title in GROUPS.items():
        alarms = [row.alarm for row in rows if row.group == group and row.is_first]
        yield f"false alarms, {title}", "at most 5 %", share(alarms), sum(alarms) <= 0.05 * len(alarms)
    out = sum(row.thrown_out for row in rows if row.is_first)
    yield "honest sites that would be refused", "0", str(out), not out


def lines_of_faults(struck: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """One line for each kind, and one for all."""
    for place, fault in enumerate(FAULTS):
        yield line_of_fault(fault.name, [row for row in struck if int(row.name) % len(FAULTS) == place])
    yield line_of_fault("all", struck)


def line_of_fault(name: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """Of some federations."""
    factors = [row.factor_named for row in rows if row.factor_named is not None]
    columns = ([row.found for row in rows], [row.found_by_server for row in rows], [row.found_by_site for row in rows])
    return name, str(len(rows)), *map(share, columns), share(factors), str(sum(bool(row.also) for row in rows))


def line_of_alarms(title: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """Of some federations while all are honest."""
    columns = ([row.alarm for row in rows], [bool(row.by_server) for row in rows], [bool(row.by_site) for row in rows])
    counts = (sum(row.thrown_out for row in rows), sum(row.refused for row in rows))
    return title, str(len(rows)), *(str(sum(column)) for column in columns), *map(str, counts)


def share(yes: Sequence[bool]) -> str:
    """In per cent."""
    return f"{100.0 * sum(yes) / len(yes):.0f} %" if yes else "-"
