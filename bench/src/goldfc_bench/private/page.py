"""The page: shares of the result without protection, rivals, and whether the plan was right."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

from goldfc.site.private.plan import BANDS
from goldfc_bench.attacks.page import table
from goldfc_bench.private.federations import Federation
from goldfc_bench.private.rivals import RIVALS, RIVALS_AT
from goldfc_bench.private.run import EPS, NONE, PRIVATE, Row

PAGE = """# The price of differential privacy

Made by `{command}`.

Eight Non-ICD sites each; ARI, means over {seeds} seeds (federations, noise and fusion). *Share*: of the ARI that the
same federation has without protection. Every row of a site is hidden by eps as told and delta 1e-5, in its one message.
Ranges reach a tenth beyond the rows; the number of clusters is given. The paper's splits are always the same rows.

## Shares

{shares}

## ARI

{aris}

## Other mechanisms, at eps {at}

The same exact noise, the same budget, the same fusion; they are told the number of rows, which ours must find out.

{rivals}

## What was planned, and what came

Micro-clusters for each cluster, as `goldfc plan` hopes for them from public facts, and the shares of the runs above.

{bands}

## Time

{seconds}
"""


@dataclass(frozen=True)
class Results:
    """All rows, to be asked for means."""

    rows: Sequence[Row]
    federations: Sequence[Federation]

    def ari(self, name: str, method: str, eps: float) -> float:
        """The mean over seeds."""
        return mean(row.ari for row in self.rows if (row.federation, row.method, row.eps) == (name, method, eps))

    def share(self, name: str, method: str, eps: float) -> float:
        """Of the mean without protection."""
        return self.ari(name, method, eps) / self.ari(name, NONE, 0.0)

    @property
    def names(self) -> list[str]:
        """Of all federations."""
        return [one.name for one in self.federations]


def as_markdown(rows: Sequence[Row], federations: Sequence[Federation], command: str) -> str:
    """The page."""
    results = Results(rows, federations)
    words = [f"eps {eps:g}" for eps in EPS]
    at = float(RIVALS_AT)
    shares = [[name, *(f"{results.share(name, PRIVATE, eps):.1%}" for eps in EPS)] for name in results.names]
    aris = [
        [name, f"{results.ari(name, NONE, 0.0):.3f}", *(f"{results.ari(name, PRIVATE, eps):.3f}" for eps in EPS)]
        for name in results.names
    ]
    rivals = [
        [name, *(f"{results.share(name, method, at):.1%}" for method in (PRIVATE, *RIVALS))] for name in results.names
    ]
    return PAGE.format(
        command=command,
        seeds=1 + max(row.seed for row in rows),
        shares=table(["federation", *words], shares),
        aris=table(["federation", "no protection", *words], aris),
        rivals=table(["federation", "goldfc", *RIVALS], rivals),
        at=f"{at:g}",
        bands=table(["for each cluster", "planned", "runs", "mean share", "from", "to"], list(band_lines(results))),
        seconds="\n".join(time_lines(results)),
    )


def band_lines(results: Results) -> Iterator[list[str]]:
    """Every band of the plan: the shares of its runs, by federation and eps."""
    most = float("inf")
    for least, words in BANDS:
        pairs = {
            (row.federation, row.eps) for row in results.rows if row.method == PRIVATE and least <= row.hoped < most
        }
        shares = sorted(results.share(name, PRIVATE, eps) for name, eps in pairs)
        if shares:
            span = [f"{mean(shares):.0%}", f"{shares[0]:.0%}", f"{shares[-1]:.0%}"]
            yield [f"from {least:g}", words, str(len(shares)), *span]
        most = least


def time_lines(results: Results) -> Iterator[str]:
    """Seconds of a site."""
    for name in results.names:
        times = [row.seconds / 8 for row in results.rows if (row.federation, row.method) == (name, PRIVATE)]
        plain = [row.seconds / 8 for row in results.rows if (row.federation, row.method) == (name, NONE)]
        yield f"- {name}: {mean(times):.2f} s a site, {mean(plain):.2f} s without protection"
