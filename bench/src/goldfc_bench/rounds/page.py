"""The page: what was wanted, what came out, and how others do."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from goldfc_bench.attacks.page import table
from goldfc_bench.rounds.growth import Growth
from goldfc_bench.rounds.run import Row
from goldfc_bench.rounds.scenes import APART, DRIFT, LEAST_SHARE, N_SITES, NEAR, NEIGHBOURS, PLANTED, ROUNDS, ROWS_EACH
from goldfc_bench.rounds.ways import BEST, WAYS

PAGE = """# Rounds that remember

Made by `{command}`.

*Mixtures*: {mixtures} drawn ones of 4 to 10 Gaussian clusters in 2, 4 or 8 columns, means at least {apart:g} standard
deviations apart, revealed over {rounds} rounds; and {nears} with at least {near_apart:g}. Each of {sites} sites is
there in nine rounds of ten, with {rows} new rows. All means drift by {drift:g} standard deviations a round; every other
round something is planted: a cluster emerges, disappears, splits (in two that end as far apart) or two merge (into what
nobody can tell apart). Those that disappear, split or merge have at least {least:.0%} of the rows. Nothing changed
around a row whose true cluster is not concerned.

*Sets*: the paper's ten at the paper's eight sites, whose rows come in {rounds} parts, added up; sites join in the first
rounds, and one leaves in the last. Nothing changed around a row if its {near} nearest rows are the same as before.

The number of clusters is proposed in every round. A row *kept its id* if the model before and the one now give it the
same label. An event is *named* if it is what is said to have happened to clusters, and nothing else is, size and place
apart. *From scratch* is the fusion of the same summaries without a model before. ARI is with the truth.

## Targets: {met} of {n_targets} met

{targets}

## Ways

{ways}

Nearest old centroid and Hungarian matching carry the ids of old centroids over to a fusion from scratch; so does the
best matching of rows, which has the rows of all sites and lets as many of them as can be keep their id. DBSTREAM and
CluStream (river) see pooled rows, one by one, on the first {streamed} mixtures; CluStream is told the true number.

## What was planted

{planted}

## Sets

{sets}

*Going on*: in rounds after which the clusters before go on. *Anew*: in those in which clusters are found from scratch,
because there are half as many rows again as when they last were, or because their gaps are no longer clear. *Best*: if
every round were fused from scratch, and ids given by the best matching of rows.

## Many rounds

{n_rounds} rounds of eight sites in one folder, all sites with other rows every time: take in, close, fuse.

{growth}
"""


def as_markdown(rows: Sequence[Row], growth: Growth, command: str) -> str:
    """The page."""
    targets = list(targets_of(rows, growth))
    ours = [row for row in rows if row.way == "ours"]
    return PAGE.format(
        command=command,
        mixtures=sum(row.group == "mixture" for row in ours),
        apart=APART,
        nears=sum(row.group == "near" for row in ours),
        near_apart=NEAR,
        rounds=ROUNDS,
        sites=N_SITES,
        rows=ROWS_EACH,
        drift=DRIFT,
        least=LEAST_SHARE,
        near=NEIGHBOURS,
        met=sum(met for *_, met in targets),
        n_targets=len(targets),
        targets=table(("", "wanted", "figure", ""), [(*three, "met" if met else "missed") for *three, met in targets]),
        ways=table(
            (
                "",
                *(f"{what}: {figure}" for what in GROUPS.values() for figure in ("kept", "quiet, ids changed", "ARI")),
            ),
            [line_of_way(way, [row for row in rows if row.way == way]) for way in WAYS],
        ),
        streamed=sum(row.way == "DBSTREAM" for row in rows),
        planted=table(("", "planted", "named", "nearer: planted", "named"), list(lines_of_planted(ours))),
        sets=table(
            ("", "rows with the same surroundings", "kept their id", "going on", "anew", "best", "ARI", "from scratch"),
            [line_of_set(row, best) for row, best in zip(of_sets(rows, "ours"), of_sets(rows, BEST), strict=True)],
        ),
        n_rounds=len(growth.seconds),
        growth=table(("", "first rounds", "last rounds"), list(lines_of_growth(growth))),
    )


GROUPS = {"mixture": "mixtures", "near": "nearer ones", "set": "sets"}


def targets_of(rows: Sequence[Row], growth: Growth) -> Iterator[tuple[str, str, str, bool]]:
    """What was wanted, and what came out."""
    ours = [row for row in rows if row.way == "ours"]
    for group, what in GROUPS.items():
        own = [row for row in ours if row.group == group]
        if calm := sum(row.calm for row in own):
            kept = sum(row.kept for row in own) / calm
            yield f"rows with the same surroundings that kept their id, {what}", "99 %", f"{kept:.2%}", kept >= 0.99
        if own:
            worse = better_by(own)
            yield f"ARI less that from scratch, {what}", "-.01 or more", f"{worse:+.4f}", worse >= -0.01
        planted, named = totals(own)
        if planted:
            share = sum(named.values()) / sum(planted.values())
            yield f"planted events that are named, {what}", "95 %", f"{share:.1%}", share >= 0.95
        if quiet := sum(row.quiet for row in own):
            disturbed = sum(row.disturbed for row in own)
            yield f"quiet rounds that change an id, {what}", "0", f"{disturbed} of {quiet}", not disturbed
    yield "time of the last rounds against the first", "1.2 or less", f"{growth.slower:.2f}", growth.slower <= 1.2
    yield "size of the last models against the first", "1.05 or less", f"{growth.larger:.2f}", growth.larger <= 1.05


def better_by(rows: Sequence[Row]) -> float:
    """By how much the ARI is above that from scratch, in the mean."""
    return mean([one - other for row in rows for one, other in zip(row.ari, row.ari_of_fresh, strict=True)])


def totals(rows: Sequence[Row]) -> tuple[Counter[str], Counter[str]]:
    """What was planted, and what was named."""
    planted, named = Counter[str](), Counter[str]()
    for row in rows:
        planted.update(row.planted)
        named.update(row.named)
    return planted, named


def lines_of_planted(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """One for each kind."""
    counts = [count for group in ("mixture", "near") for count in totals([row for row in rows if row.group == group])]
    for what in PLANTED:
        yield what, *(str(count[what]) for count in counts)


def line_of_way(way: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """In the mean over rows and rounds."""
    groups = [[row for row in rows if row.group == group] for group in GROUPS]
    return way, *(figure for own in groups for figure in (kept(own), disturbed_in(own), ari_of(own)))


def disturbed_in(rows: Sequence[Row]) -> str:
    """Quiet rounds in which ids changed, of how many."""
    quiet = sum(row.quiet for row in rows)
    return f"{sum(row.disturbed for row in rows)} of {quiet}" if quiet else "-"


def of_sets(rows: Sequence[Row], way: str) -> list[Row]:
    """Of a way, set by set."""
    return [row for row in rows if row.group == "set" and row.way == way]


def line_of_set(row: Row, best: Row) -> tuple[str, ...]:
    """Of ours, and what matching could do at best."""
    goes_on = share_of(row.kept - row.kept_anew, row.calm - row.calm_anew)
    shares = kept([row]), goes_on, share_of(row.kept_anew, row.calm_anew), kept([best])
    return row.name, str(row.calm), *shares, f"{mean(row.ari):.3f}", f"{mean(row.ari_of_fresh):.3f}"


def lines_of_growth(growth: Growth) -> Iterator[tuple[str, ...]]:
    """Time, models and memory."""
    tenth = max(1, len(growth.seconds) // 10)
    first, last = (np.median(part) for part in (growth.seconds[tenth : 2 * tenth], growth.seconds[-tenth:]))
    yield "seconds of computing in a round, in the median of a tenth of them", f"{first:.2f}", f"{last:.2f}"
    half = len(growth.model_bytes) // 2
    sizes = growth.model_bytes[:half], growth.model_bytes[half:]
    yield "bytes of the largest model, in either half", *(f"{max(part):,}" for part in sizes)
    megabytes = (f"{peak / 1e6:.0f}" for peak in (growth.peak_of_first, growth.peak_of_last))
    yield "MB that the process held at most, in the second and the last round", *megabytes


def kept(rows: Sequence[Row]) -> str:
    """Of the rows in whose surroundings nothing changed."""
    return share_of(sum(row.kept for row in rows), sum(row.calm for row in rows))


def share_of(some: int, of: int) -> str:
    """In per cent."""
    return f"{100.0 * some / of:.2f} %" if of else "-"


def ari_of(rows: Sequence[Row]) -> str:
    """In the mean over all rounds."""
    return f"{mean([one for row in rows for one in row.ari]):.3f}" if rows else "-"


def mean(values: Sequence[float]) -> float:
    """Of some numbers."""
    return float(np.mean(values))
