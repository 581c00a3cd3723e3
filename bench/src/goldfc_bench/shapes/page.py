"""The page: targets, one line for every family, and how honest certainty is."""

from collections.abc import Iterator
from statistics import fmean

from goldfc_bench.scale.parts import Table
from goldfc_bench.shapes.ours import ALONE, DEFAULT, ONE_SITE, PROPOSED
from goldfc_bench.shapes.results import Results, mean, short
from goldfc_bench.shapes.rivals import AT_SITES, MIXED_MIXTURE, POOLED
from goldfc_bench.shapes.sites import N_SITES

PAGE = """# Families of data: what users bring

Made by `{command}`.

{families} families, {draws} each, {sites} Non-ICD sites; the families are described in
`bench/src/goldfc_bench/families.py`, the methods in `bench/src/goldfc_bench/shapes/`. All figures are adjusted Rand
indices (ARI: 1 perfect, 0 chance) of the rows that the sites hold, background noise not counted, and means over draws.
Everybody is given the number of clusters where nothing else is said. All but the default and its kinds get
features of variance one and categories as zeros and ones.
*Pooled* algorithms have the rows of all sites in one place, each once.

![ARI of the default, of its best kind alone, of pooled k-means and of the best pooled algorithm](shapes.svg)

## Targets: {met} of {n_targets} met

{targets}

The best pooled algorithm is compared on the families that it has a figure for. The best kind is that with the best mean
over draws. The price of federation is the default with the rows of all sites at one, minus the default at {sites}; it
is negative where {sites} sites may send more micro-clusters than one. Ratios are of means.

## By family

{families_table}

A dash: not for such data, or not done in time; `rows.jsonl` has the reason. In bold: the best on pooled rows, and the
default where it is as good.

## The default, more closely

{default_table}

*Believed*: the kind of clusters that the judge chose, and in how many draws. *Lost*: the ARI of the best kind alone
minus that of the default. *Number proposed*: what the default found in each draw when nobody told it, and its ARI.
Seconds are those of the default on one thread, other work on the machine included.

## Certainty

Rows of all families by the certainty that the default has of their label, and how many are right when clusters are
matched to classes one to one.

{certainty_table}

## What did not run to its end

{failures}
"""


def as_markdown(results: Results, command: str) -> str:
    """The page."""
    targets = results.targets()
    draws = len({row.draw for row in results.rows})
    return PAGE.format(
        command=command,
        families=len(results.families),
        draws="1 draw" if draws == 1 else f"{draws} draws",
        sites=N_SITES,
        met=sum(target.met is True for target in targets),
        n_targets=len(targets),
        targets="\n".join(target_table(results).as_markdown()),
        families_table="\n".join(family_table(results).as_markdown()),
        default_table="\n".join(default_table(results).as_markdown()),
        certainty_table="\n".join(certainty_table(results).as_markdown()),
        failures="\n".join(failures(results)) or "Everything did.",
    )


def target_table(results: Results) -> Table:
    """All of them, with their verdicts."""
    return Table(("target", "wanted", "figure", "verdict"), [target.cells for target in results.targets()])


def family_table(results: Results) -> Table:
    """Families down, methods across; the best pooled figure in bold, as is the default where it is not below that."""
    methods = (DEFAULT, *ALONE, *AT_SITES, *POOLED, *((MIXED_MIXTURE,) if results.mixed else ()))
    lines = []
    for name in results.names:
        best = results.best_pooled(name)[1]
        cells = [marked(results.ari(name, method), best, method) for method in methods]
        lines.append([name, *cells])
    lines.append(["**mean**", *(short(mean(results.of(method)), 3) for method in methods)])
    return Table(("family", *methods), lines)


def marked(figure: float, best: float, method: str) -> str:
    """In bold if it is the best pooled figure, or the default's and as good."""
    of_interest = method in (DEFAULT, MIXED_MIXTURE, *POOLED)
    return f"**{short(figure)}**" if of_interest and figure >= best else short(figure)


def default_table(results: Results) -> Table:
    """The judge, the number, the price, certainty and seconds."""
    columns = (
        *("family", "default", "believed", "best kind alone", "lost", "number proposed", "its ARI", "one site"),
        *("price", "calibration error", "seconds"),
    )
    return Table(columns, [*default_lines(results), mean_line(results)])


def default_lines(results: Results) -> Iterator[list[str]]:
    """One for every family."""
    for name in results.names:
        kind, best = results.best_kind(name)
        found = [row.clusters for row in results.rows_of(name, PROPOSED)]
        true = sorted({row.true_clusters for row in results.rows_of(name, DEFAULT)})
        yield [
            name,
            short(results.ari(name, DEFAULT)),
            results.judged(name),
            f"{short(best)} ({kind.removesuffix(' alone')})",
            short(results.loss(name)),
            f"{', '.join(map(str, found))} (of {' to '.join(map(str, sorted({true[0], true[-1]})))})",
            short(results.ari(name, PROPOSED)),
            short(results.ari(name, ONE_SITE)),
            short(results.price(name)),
            short(results.calibration_error([name])),
            f"{seconds_of(results, name):.2f}",
        ]


def mean_line(results: Results) -> list[str]:
    """Over all families."""
    names = results.names
    exact = [row.clusters == row.true_clusters for name in names for row in results.rows_of(name, PROPOSED)]
    return [
        "**mean**",
        short(mean(results.of(DEFAULT)), 3),
        "",
        short(fmean(results.best_kind(name)[1] for name in names), 3),
        short(fmean(results.loss(name) for name in names), 3),
        f"exact in {sum(exact)} of {len(exact)}",
        short(mean(results.of(PROPOSED)), 3),
        short(mean(results.of(ONE_SITE)), 3),
        short(fmean(results.price(name) for name in names), 3),
        short(results.calibration_error(), 3),
        f"{fmean(seconds_of(results, name) for name in names):.2f}",
    ]


def seconds_of(results: Results, family: str) -> float:
    """Of the default, in the mean."""
    return fmean(row.seconds for row in results.rows_of(family, DEFAULT))


def certainty_table(results: Results) -> Table:
    """Tenth by tenth."""
    lines = [
        [
            f"{short(tenth / 10, 1)} to {short((tenth + 1) / 10, 1)}",
            f"{rows:.0f}",
            short(sure / rows),
            short(right / rows),
        ]
        for tenth, (rows, sure, right) in enumerate(results.bins())
        if rows
    ]
    return Table(("certainty", "rows", "mean certainty", "right"), lines)


def failures(results: Results) -> Iterator[str]:
    """One line for what failed on a family, and why."""
    told = set[tuple[str, str, str]]()
    for row in results.rows:
        what = (row.method, row.family, row.reason)
        if row.status not in ("done", "skipped") and what not in told:
            told.add(what)
            score = "no figure" if row.ari is None else f"counted as {row.ari:g}"
            yield f"- {row.method} on {row.family}, {row.status}: {row.reason} ({score})"
