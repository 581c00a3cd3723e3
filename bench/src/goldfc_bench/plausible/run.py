"""A row for every federation: what is said of it while all are honest, and when one site has a fault."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache

import numpy as np
from threadpoolctl import threadpool_limits

from goldfc._parallel import side_by_side
from goldfc._types import FloatArray
from goldfc.errors import BadRows
from goldfc.message.columns import UNNAMED, Terms
from goldfc.message.levels import with_fewest
from goldfc.message.summary import Summary
from goldfc.message.task import Task, rows_each
from goldfc.server.plausible import Looks, Odd, implausible, odd_columns
from goldfc.site.outliers import outliers
from goldfc.site.summarize import summarize
from goldfc_bench.cases import split_of
from goldfc_bench.digest import digest_of
from goldfc_bench.families import FAMILIES
from goldfc_bench.plausible.faults import EACH, Struck, federation_of, struck_in
from goldfc_bench.rows import RowFile
from goldfc_bench.shapes.sites import draw_sites

# As the federation file has it unless told otherwise.
SMALLEST = 5
TASK = Task(level=with_fewest(SMALLEST), rows_each=rows_each(SMALLEST))
# Families with more features take long, and say no more.
MOST_FEATURES = 100
# How far a column is moved, in standard deviations of all rows, and by which factors it is multiplied.
MOVES = (2.0, 4.0, 6.0, 8.0, 12.0, 20.0)
FACTORS = (0.01, 0.05, 0.1, 0.2, 0.5, 2.0, 5.0, 10.0, 20.0, 100.0)

Sites = Mapping[str, FloatArray]


@dataclass(frozen=True)
class Row:
    """A federation: what was said of whom while all were honest, and with a fault, if it has one."""

    group: str  # "split", "family" or "fault"
    name: str
    sites: int  # that send something
    refused: int  # that have too few rows, or an audit that says no
    by_server: tuple[str, ...]  # false alarms
    by_site: tuple[str, ...]
    thrown_out: int  # honest sites, where implausible ones are refused
    found_by_server: bool = False
    found_by_site: bool = False
    also: tuple[str, ...] = ()  # what is said of other columns or sites beside the fault
    sentence: str = ""
    factor_named: bool | None = None
    moves: Mapping[str, bool] = field(default_factory=dict)  # whether so much of a move is found in an honest one
    factors: Mapping[str, bool] = field(default_factory=dict)
    code: str = ""  # the digest of the code it was made with

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> "Row":
        """Read it back."""
        row = json.loads(line)
        return cls(**{**row, **{name: tuple(row[name]) for name in ("by_server", "by_site", "also")}})

    @property
    def work(self) -> "Work":
        """What it is of."""
        return self.group, self.name

    @property
    def is_first(self) -> bool:
        """Of those that are the same federation before the fault."""
        return self.group != "fault" or int(self.name) % EACH == 0

    @property
    def found(self) -> bool:
        """By anybody."""
        return self.found_by_server or self.found_by_site

    @property
    def alarm(self) -> bool:
        """Whether anything was said while all were honest."""
        return bool(self.by_server or self.by_site)


Work = tuple[str, str]


def all_work(n_faults: int, splits: Sequence[str], families: Sequence[str]) -> list[Work]:
    """Federations with a fault each, the paper's splits, and families of generated ones."""
    return [
        *(("fault", str(number)) for number in range(n_faults)),
        *(("split", name) for name in splits),
        *(("family", name) for name in families),
    ]


def narrow_families() -> list[str]:
    """Those with numbers, and not too many."""
    return [family.name for family in FAMILIES if family.kind not in {"wide"}]


def all_rows(work: Sequence[Work], jobs: int) -> Iterator[Row]:
    """A row for each."""
    return side_by_side(row_of, work, jobs, prefer="processes")


def row_of(work: Work) -> Row:
    """On one thread."""
    group, name = work
    with threadpool_limits(limits=1):
        if group == "fault":
            return row_with_fault(name)
        return honest_row(group, name, sites_of_split(name) if group == "split" else sites_of_family(name))


def sites_of_split(name: str) -> Sites:
    """The paper's sites, in the units in which things were measured."""
    return {f"s{place}": rows for place, rows in enumerate(split_of(f"{name}-raw", "paper").rows_per_site())}


def sites_of_family(name: str) -> Sites:
    """The numbers of a draw."""
    sites, _ = draw_sites(next(family for family in FAMILIES if family.name == name), 0)
    numbers = [column for column in range(sites.X.shape[1]) if column not in sites.categorical]
    return {f"s{place}": sites.X[sites.site == place][:, numbers] for place in range(sites.site.max() + 1)}


def honest_row(group: str, name: str, sites: Sites, terms: Terms = UNNAMED) -> Row:
    """All that is said of honest sites is a false alarm."""
    return judged(group, name, sites, [one for one in map_sent(sites, terms) if one is not None])


def judged(group: str, name: str, sites: Sites, sent: Sequence[Summary]) -> Row:
    """What the server says of these messages, and every site of its own rows."""
    odd = odd_columns(Looks.of(sent)) if sent else []
    return Row(
        group=group,
        name=name,
        sites=len(sent),
        refused=len(sites) - len(sent),
        by_server=tuple(one.sentence for one in odd),
        by_site=tuple(said for site, rows in sites.items() for said in said_at(site, rows)),
        thrown_out=len(implausible(odd)),
    )


def map_sent(sites: Sites, terms: Terms) -> Iterator[Summary | None]:
    """The message of every site."""
    return (sent(site, rows, terms) for site, rows in sites.items())


def sent(site: str, rows: FloatArray, terms: Terms) -> Summary | None:
    """As it is sent by default; nothing by a site with too few rows."""
    try:
        return summarize(rows, site, TASK, terms=terms)[0]
    except BadRows:
        return None


def said_at(site: str, rows: FloatArray, names: Sequence[str] = ()) -> Iterator[str]:
    """What a site says of its own columns. That one is constant there is so, and no alarm."""
    names = names or [str(column) for column in range(rows.shape[1])]
    for one in outliers(rows, names):
        if one.kind != "constant":
            yield f"{site} {one.column}: {one.count} values, such as {one.value:.4g}, {one.suspicion}"


def row_with_fault(name: str) -> Row:
    """A federation before and after."""
    drawn, struck = federation_of(int(name) // EACH), struck_in(int(name))
    before, honest = before_fault(int(name) // EACH)
    message = sent(struck.site, struck.rows, drawn.terms)
    others = [one for one in honest if one.site != struck.site]
    odd = odd_columns(Looks.of([*others, message] if message else others))
    hits = [one for one in odd if is_named(one, struck)]
    own = [one for one in outliers(struck.rows, drawn.names) if one.kind != "constant"]
    moves, factors = degrees(Looks.of(honest), np.random.default_rng(int(name)))
    return replace(
        before,
        name=name,
        found_by_server=bool(hits),
        found_by_site=any(one.column == struck.column for one in own),
        also=tuple(one.sentence for one in odd if not is_named(one, struck)),
        sentence=hits[0].sentence if hits else "",
        factor_named=names_factor(struck, hits),
        moves=moves,
        factors=factors,
    )


@lru_cache(maxsize=1)
def before_fault(draw: int) -> tuple[Row, list[Summary]]:
    """What is said while all are honest, and their messages."""
    drawn = federation_of(draw)
    honest = [one for one in map_sent(drawn.sites, drawn.terms) if one is not None]
    return judged("fault", "", drawn.sites, honest), honest


def is_named(odd: Odd, struck: Struck) -> bool:
    """Whether site and column are those of the fault."""
    return (odd.site, odd.column) == (struck.site, struck.column)


def names_factor(struck: Struck, hits: Sequence[Odd]) -> bool | None:
    """Whether the factor of the fault is the one that would fit; None where it has none, or was not found."""
    if struck.fault.factor is None or not hits:
        return None
    return f"a factor of {factor_text(struck.fault.factor)} " in hits[0].sentence


def factor_text(factor: float) -> str:
    """As sentences have it."""
    return f"{factor:.4g}" if factor >= 1.0 else f"1/{1.0 / factor:.4g}"


def degrees(told: Looks, rng: np.random.Generator) -> tuple[dict[str, bool], dict[str, bool]]:
    """How small a fault may be: the same message, with one column moved or multiplied by more and more."""
    site, column = int(rng.integers(len(told.sites))), int(rng.integers(len(told.columns)))
    spread = float(np.hypot(np.nanmean(told.spreads[:, column]), told.means[:, column].std()))
    moves = {f"{by:g}": is_found(told, site, column, by=by * spread) for by in MOVES}
    factors = {f"{factor:g}": is_found(told, site, column, factor=factor) for factor in FACTORS}
    return moves, factors


def is_found(told: Looks, site: int, column: int, *, factor: float = 1.0, by: float = 0.0) -> bool:
    """Whether the server names a column of a site when it is changed."""
    means, spreads = told.means.copy(), told.spreads.copy()
    means[site, column] = factor * means[site, column] + by
    spreads[site, column] *= factor
    found = odd_columns(replace(told, means=means, spreads=spreads))
    return any((one.site, one.column) == (told.sites[site], told.columns[column]) for one in found)


def make_rows(work: Sequence[Work], jobs: int, file: RowFile[Row], on_row: Callable[[], None]) -> list[Row]:
    """Make the rows that are not yet in the file, or whose code has changed, and give all, in the order of the work."""
    code = digest_of("goldfc_bench.plausible.run")
    made = {row.work: row for row in file.read() if row.code == code}
    file.rewrite(made.values())
    for row in all_rows([one for one in work if one not in made], jobs):
        made[row.work] = replace(row, code=code)
        file.append(made[row.work])
        on_row()
    return [made[one] for one in work]
