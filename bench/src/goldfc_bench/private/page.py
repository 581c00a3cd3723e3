"""The page: shares of the result without protection, rivals, whether the plan was right, attacks, time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist, fmean

from goldfc.message.levels import Private
from goldfc.site.private.budget import rho_of
from goldfc.site.private.plan import BANDS, Plan
from goldfc_bench.attacks.page import table
from goldfc_bench.attacks.run import Row as AttackRow
from goldfc_bench.private.attacks import EPS as EPS_OF_ATTACKS
from goldfc_bench.private.federations import HELD_OUT, N_SITES, Federation
from goldfc_bench.private.making import DRAWS_OF_ALL
from goldfc_bench.private.rivals import RIVALS, RIVALS_AT
from goldfc_bench.private.run import EPS, NONE, PRIVATE, Row

# Hopeless is what is less; and without an ARI of so much there is no result to keep.
HALF, NO_RESULT = 0.5, 0.05

PAGE = """# The price of differential privacy

Made by `{command}`.

Eight Non-ICD sites each; ARI, means over the draws that stand behind the name (of federations, noise and fusion; the
paper's splits are always the same rows); rivals and eps 4 and 8, and 50,000 rows above eps .5, have {all_draws} draw.
*Share*: of the ARI that the same draws have without protection, if that is {no_result:g} at least. Every row of a site
is hidden by eps as told and delta 1e-5, in its one message. Ranges reach a tenth beyond the rows; the number of
clusters is given.

## Shares

{shares}

## ARI

{aris}

## Other mechanisms, at eps {at}

The same exact noise, the same budget, the same fusion; they are told the number of rows, which ours must find out.

{rivals}

## What was planned, and what came

Micro-clusters of a site, or for each cluster if these are fewer, as `goldfc plan` hopes for them from public facts; and
the shares above, of every federation at every eps.
What the plan says was read off all federations but those that are held out: of these it knows nothing. *Right*: at
least the share that is planned, or, where it is hopeless, less than half.

{bands}

## Attacks, at eps {eps_of_attacks:g}

All of the [attack benchmark](../attacks/README.md), on its tables: means over tables and targets. Whoever knows all
other rows, and guesses as well as can be, has an AUC of {one:.3f} by one such message and of {two:.3f} by two.

{attacks}

*AUC*: was a row in it, by the best of all tests, and in brackets at the worst table; *found*: members at 1 % false
alarms. *Restored*: rows. *A column* of a member: how much better it is guessed than that of somebody who is not in it,
in standard deviations. *The row that came* between two messages: how far off its guess is, in standard deviations, and
without any message. *The other site*: AUC of its members for one of two sites.

## Time

Seconds of a processor, noise included.

{seconds}
"""


@dataclass(frozen=True)
class Results:
    """All rows, to be asked for means."""

    rows: Sequence[Row]
    federations: Sequence[Federation]

    @cached_property
    def by_way(self) -> dict[tuple[str, str, float], list[Row]]:
        """The rows of every federation, method and eps."""
        found: dict[tuple[str, str, float], list[Row]] = {}
        for row in self.rows:
            found.setdefault((row.federation, row.method, row.eps), []).append(row)
        return found

    def ari(self, name: str, method: str, eps: float) -> float:
        """The mean over draws."""
        return fmean(row.ari for row in self.by_way[name, method, eps])

    def share(self, name: str, method: str, eps: float) -> float:
        """Of the mean without protection, over the same draws."""
        drawn = {row.seed for row in self.by_way[name, method, eps]}
        without = fmean(row.ari for row in self.by_way[name, NONE, 0.0] if row.seed in drawn)
        return self.ari(name, method, eps) / without

    def has_result(self, name: str) -> bool:
        """Whether there is anything to keep."""
        return self.ari(name, NONE, 0.0) >= NO_RESULT

    def told(self, name: str, method: str, eps: float) -> str:
        """The share, if it is one of anything."""
        return f"{self.share(name, method, eps):.1%}" if self.has_result(name) else "-"

    def hoped(self, name: str, eps: float) -> Plan:
        """What `goldfc plan` says of sites of the mean size."""
        row = self.by_way[name, PRIVATE, eps][0]
        return Plan(row.features, row.rows, N_SITES, row.clusters, Private(eps=eps))

    @property
    def names(self) -> list[str]:
        """Of all federations."""
        return [one.name for one in self.federations]

    def called(self, name: str) -> str:
        """With the number of draws."""
        return f"{name} ({len(self.by_way[name, NONE, 0.0])})"


def as_markdown(
    results: Results, attacks: Sequence[AttackRow], seconds: Sequence[tuple[int, Sequence[float]]], command: str
) -> str:
    """The page."""
    words, at = [f"eps {eps:g}" for eps in EPS], float(RIVALS_AT)
    shares = [[results.called(name), *(results.told(name, PRIVATE, eps) for eps in EPS)] for name in results.names]
    aris = [
        [name, f"{results.ari(name, NONE, 0.0):.3f}", *(f"{results.ari(name, PRIVATE, eps):.3f}" for eps in EPS)]
        for name in results.names
    ]
    rivals = [[name, *(results.told(name, method, at) for method in (PRIVATE, *RIVALS))] for name in results.names]
    rho = float(rho_of(*Private(eps=EPS_OF_ATTACKS).budget))
    return PAGE.format(
        command=command,
        shares=table(["federation", *words], shares),
        aris=table(["federation", "no protection", *words], aris),
        rivals=table(["federation", "goldfc", *RIVALS], rivals),
        at=f"{at:g}",
        bands=table(["micro-clusters", "planned", "of", "right", "mean", "from", "to"], list(band_lines(results))),
        no_result=NO_RESULT,
        all_draws=DRAWS_OF_ALL,
        eps_of_attacks=EPS_OF_ATTACKS,
        # Gaussian noise of rho moves a mean by the root of 2 rho deviations at the most.
        one=NormalDist().cdf(rho**0.5),
        two=NormalDist().cdf((2.0 * rho) ** 0.5),
        attacks=table(
            ["rows", "tables", "AUC", "found", "restored", "a column", "the row that came", "the other site"],
            list(attack_lines(attacks)),
        ),
        seconds=table(["", "private", "suppressed, or no protection"], list(time_lines(results, seconds))),
    )


def band_lines(results: Results) -> Iterator[list[str]]:
    """Every band of the plan: the shares of federations at every eps, and how many of them are within it."""
    held_out = {one.name for one in HELD_OUT}
    names = [name for name in results.names if results.has_result(name)]
    for band in BANDS:
        pairs = [(name, eps) for name in names for eps in EPS if results.hoped(name, eps).band == band]
        for which in ("others", "held out"):
            shares = [
                results.share(name, PRIVATE, eps) for name, eps in pairs if (name in held_out) == (which == "held out")
            ]
            if shares:
                right = sum(share >= band.low if band.low else share < HALF for share in shares)
                span = [f"{fmean(shares):.0%}", f"{min(shares):.0%}", f"{max(shares):.0%}"]
                yield [f"{band.least:g}", band.words, which, f"{right} of {len(shares)}", *span]


def attack_lines(rows: Sequence[AttackRow]) -> Iterator[list[str]]:
    """Means over tables, by the number of rows."""
    for size in [*sorted({row.rows for row in rows}), 0]:
        own = [row for row in rows if size in {row.rows, 0}]
        if own:
            yield [
                f"{size:,}" if size else "all",
                str(len(own)),
                f"{fmean(row.auc for row in own):.3f} ({max(row.auc for row in own):.3f})",
                f"{fmean(row.found for row in own):.1%}",
                str(sum(row.restored for row in own)),
                f"{fmean(row.attribute for row in own):.3f}",
                f"{fmean(row.new_row for row in own):.2f}; {fmean(row.new_row_without for row in own):.2f} without",
                f"{fmean(row.other_site for row in own):.3f}",
            ]


def time_lines(results: Results, seconds: Sequence[tuple[int, Sequence[float]]]) -> Iterator[list[str]]:
    """One site by file, against `suppressed`; and a site of every federation, against no protection."""
    for size, (private, suppressed) in seconds:
        yield [f"`goldfc summarize`, {size:,} rows of 20 numbers", f"{private:.2f}", f"{suppressed:.2f}"]
    for name in results.names:
        private, none = (
            fmean(row.seconds for row in results.rows if (row.federation, row.method) == (name, method)) / N_SITES
            for method in (PRIVATE, NONE)
        )
        yield [f"{name}, a site", f"{private:.2f}", f"{none:.2f}"]
