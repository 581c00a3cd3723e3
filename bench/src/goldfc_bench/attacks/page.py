"""The page: targets, every attack before and after, the audit beside the attacks, and the price."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from goldfc_bench.attacks.beyond import MESSAGES, MOST_MISSING, Beyond
from goldfc_bench.attacks.homogeneity import Claims
from goldfc_bench.attacks.price import Price
from goldfc_bench.attacks.run import LEVELS, Level, Row

PAGE = """# Attacks: what a message gives away

Made by `{command}`.

Real tables (those of scikit-learn, and the paper's sets in their own units), cut into a site, rows like its rows that
are not in it, and an attacker's own rows. The attacker reads the message that the site would send, knows how messages
are made, and has up to 3 000 rows of her own. *Before* is the level `suppressed` as it was: micro-clusters of five
rows, fine steps, a covariance whatever the rows. *After* is the default now. Means over {fewest} to {targets} targets,
more of small sites; a target counts as *refused* when the site has too few rows to send anything, or its own audit says
no. The attacks are in `bench/src/goldfc_bench/attacks/`, docs/privacy.md explains what they mean.

## Targets: {met} of {n_targets} met

{target_table}

## Was a row in it?

AUC of the best test (0.5 is chance), and in brackets the members found at 1 % false alarms: *before → after*. The best
of some forty statistics, and two classifiers of all of them, trained on shadow sites. The share of targets that were
refused stands behind it, if any was; a dash: the table has too few rows.

{membership_table}

## The audit beside the attacks

Of {n_audits} targets that were not refused: the AUC that the site's own audit shows is within .05 of that of the best
attack on such targets in {near:.0%}, and below it by more than .1 in {low:.0%}. In the mean it shows {audit_mean:.3f},
and the attacks have {attack_mean:.3f}.

## Everything else

Means over all tables that can be compared, *before → after*.

{others_table}

*Rows restored*: exactly, by lattice reduction, of tables of whole numbers with {lattice_rows} rows or fewer. *A column
of a member*: how much better it is guessed than that of somebody who is not in it, all others known, in standard
deviations. *The row that came* between two messages: how far off it is, median over columns, in standard deviations,
for somebody who knows how many rows there were, and how far off it is for somebody who has no message and guesses the
mean or the median of other rows (of categories, most levels are absent, which is easy to guess); a site's ledger
refuses the second message anyway. *One of two sites* against the other: AUC by the model less its own part; by default
a site takes part only with two others.

## With more than one message, or from inside

How well members are told from others (AUC of the classifier, means over targets) by an *outsider*, by an *insider* who
knows half of them and takes these out of the means before she looks for the rest, and by whoever has so many messages
of the same people, each without one to {missing} other columns, so that other people are together in each.

{beyond_table}

## What people have in common

Whether a tumour is malignant, as a sensitive column beside ten others, {claims_rows} rows. Claims are made about people
whose micro-cluster has at least 90 % of one value.

{claims_table}

## The price

ARI of all rows, number of clusters given, without the level and with it.

{price_table}

{price_note}
"""


@dataclass(frozen=True)
class Target:
    """What was asked for, what is, and whether that is enough."""

    what: str
    wanted: str
    figure: str
    met: bool


@dataclass(frozen=True)
class Results:
    """All that was found."""

    rows: Sequence[Row]
    claims: dict[str, Claims]
    claims_rows: int
    beyond: Sequence[Beyond]
    prices: Sequence[Price]  # of the paper's splits
    family_prices: Sequence[Price]

    def of(self, level: Level) -> list[Row]:
        """Those that were attacked."""
        return [row for row in self.rows if row.level == level and row.refused < row.targets]

    @property
    def differences(self) -> list[float]:
        """The audit less the best attack, for every target."""
        return [shown - row.auc for row in self.of("after") for shown in row.audit]


def as_markdown(results: Results, command: str) -> str:
    """The page."""
    targets = list(targets_of(results))
    after, differences = results.of("after"), np.array(results.differences)
    return PAGE.format(
        command=command,
        fewest=min((row.targets for row in results.rows), default=0),
        targets=max((row.targets for row in results.rows), default=0),
        met=sum(target.met for target in targets),
        n_targets=len(targets),
        target_table=table(
            ("", "wanted", "figure", ""), [(t.what, t.wanted, t.figure, "met" if t.met else "missed") for t in targets]
        ),
        membership_table=membership_table(results),
        n_audits=len(differences),
        near=float((np.abs(differences) <= 0.05).mean()),
        low=float((differences < -0.1).mean()),
        audit_mean=fmean(shown for row in after for shown in row.audit),
        attack_mean=fmean(row.auc for row in after for _ in row.audit),
        others_table=others_table(results),
        lattice_rows=100,
        missing=MOST_MISSING,
        beyond_table=beyond_table(results.beyond),
        claims_rows=results.claims_rows,
        claims_table=table(
            ("", "people with claims", "right", "right without a message"),
            [
                (name, f"{one.about:.0%}", f"{one.right:.0%}", f"{one.without:.0%}")
                for name, one in results.claims.items()
            ],
        ),
        price_table=price_table([*results.prices, *results.family_prices]),
        price_note=price_note(results),
    )


def targets_of(results: Results) -> Iterator[Target]:
    """What issue and users want."""
    after = results.of("after")
    aucs, worst = [row.auc for row in after], max(after, key=lambda row: row.auc)
    yield Target("rows restored", "0", str(sum(row.restored for row in after)), not any(row.restored for row in after))
    yield Target("best membership AUC, mean", "at most .65", f"{fmean(aucs):.3f}", fmean(aucs) <= 0.65)
    yield Target("its worst", "at most .72", f"{worst.auc:.3f} ({worst.table}, {worst.rows} rows)", worst.auc <= 0.72)
    found = fmean(row.found for row in after)
    yield Target("members found at 1 % false alarms, mean", "at most .05", f"{found:.3f}", found <= 0.05)
    better = fmean(row.attribute for row in after)
    yield Target("a column of members better known", "at most .05 SD", f"{better:.3f}", better <= 0.05)
    off = min(after, key=lambda row: row.new_row)
    figure = f"{off.new_row:.2f} ({off.table}, {off.rows} rows; {off.new_row_without:.2f} without any message)"
    enough = all(row.new_row >= min(0.35, row.new_row_without) for row in after)
    yield Target("the row that came, least error", "at least .35 SD, or as without a message", figure, enough)
    other = fmean(row.other_site for row in after)
    yield Target("one of two sites against the other, mean AUC", "at most .6", f"{other:.3f}", other <= 0.6)
    differences = np.array(results.differences)
    near, low = float((np.abs(differences) <= 0.05).mean()), float((differences < -0.1).mean())
    yield Target("audit within .05 of the best attack", "90 %", f"{near:.0%}", near >= 0.9)
    yield Target("audit below it by more than .1", "never", f"{low:.1%}", low == 0.0)
    for what, wanted, prices in (
        ("price on the ten splits", 0.03, results.prices),
        ("price on families, sites of 500 rows", 0.01, results.family_prices),
    ):
        if prices:
            cost, refused = mean_cost(prices)
            figure = f"{cost:.3f}" + (f", and {refused} families refused" if refused else "")
            yield Target(what, f"at most {wanted:g}", figure, cost <= wanted and not refused)


def membership_table(results: Results) -> str:
    """Tables down, numbers of rows across."""
    sizes = sorted({row.rows for row in results.rows})
    cells = {(row.table, row.rows, row.level): row for row in results.rows}
    names = dict.fromkeys((row.table, row.features) for row in results.rows)
    lines = [
        (
            f"{name} ({features})",
            *(cell(cells.get((name, size, "before")), cells.get((name, size, "after"))) for size in sizes),
        )
        for name, features in names
    ]
    return table(("table (features)", *(f"{size:,} rows" for size in sizes)), lines)


def cell(before: Row | None, after: Row | None) -> str:
    """Before and after."""
    if before is None or after is None:
        return "-"
    refused = f", {after.refused} of {after.targets} refused" if after.refused else ""
    now = "refused" if after.refused == after.targets else f"{after.auc:.2f} ({after.found:.2f}){refused}"
    return f"{before.auc:.2f} ({before.found:.2f}) → {now}"


def others_table(results: Results) -> str:
    """The other attacks, by the number of rows."""
    lines = []
    for size in sorted({row.rows for row in results.rows}):
        before, after = (others_of([row for row in results.of(level) if row.rows == size]) for level in LEVELS)
        lines.append((f"{size:,}", *(f"{one} → {two}" for one, two in zip(before, after, strict=True))))
    header = (
        "rows",
        "rows restored",
        "a column of a member",
        "the row that came",
        "without messages",
        "one of two sites",
    )
    return table(header, lines)


def others_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """Sum of rows restored, and means."""
    if not rows:
        return ("-",) * 5
    names = ("attribute", "new_row", "new_row_without", "other_site")
    means = (fmean(getattr(row, name) for row in rows) for name in names)
    return (str(sum(row.restored for row in rows)), *(f"{mean:.2f}" for mean in means))


def beyond_table(found: Sequence[Beyond]) -> str:
    """A line for each."""
    header = ("", "rows", "targets", "outsider", "insider", *(f"messages: {count}" for count in MESSAGES))
    lines = [
        (
            one.table,
            str(one.rows),
            str(one.targets),
            *(f"{auc:.2f}" for auc in (one.outsider, one.insider, *one.together)),
        )
        for one in found
    ]
    return table(header, lines)


def price_table(prices: Sequence[Price]) -> str:
    """A line for each."""
    lines = [
        (one.name, f"{one.without:.3f}", f"{one.with_level:.3f}", f"{one.cost:+.3f}", str(one.refused or ""))
        for one in prices
    ]
    return table(("", "without", "with", "cost", "sites refused"), lines)


def price_note(results: Results) -> str:
    """Means."""
    parts = [
        f"{name}: {mean_cost(prices)[0]:+.3f} in the mean of those that are not refused."
        for name, prices in (
            ("The paper's ten splits", results.prices),
            ("Families with sites of 500 rows", results.family_prices),
        )
        if prices
    ]
    return " ".join(parts)


def mean_cost(prices: Sequence[Price]) -> tuple[float, int]:
    """Of those that are not refused as a whole, and how many are."""
    costs = [price.cost for price in prices if not math.isnan(price.cost)]
    return fmean(costs), len(prices) - len(costs)


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """As Markdown."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *lines))
