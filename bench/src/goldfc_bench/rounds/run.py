"""A row for every scene and way: how many rows kept their id, what was named rightly, and how good the labels are."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
from threadpoolctl import threadpool_limits

from goldfc import Summary, fuse, label, summarize
from goldfc._parallel import side_by_side
from goldfc._types import FloatArray, IntArray
from goldfc.errors import BadRows
from goldfc.randomness import generator
from goldfc_bench.digest import digest_of
from goldfc_bench.rounds.scenes import NEAR, Revealed, bit_by_bit, drifting
from goldfc_bench.rounds.ways import FUSION, WAYS, Step, Way
from goldfc_bench.rows import RowFile
from goldfc_bench.score import ari

# River learns row by row; it does so on these alone.
STREAMED, STREAMS = 4, ("DBSTREAM", "CluStream")
Work = tuple[str, str]


@dataclass(frozen=True)
class Row:
    """A scene in one way."""

    group: str  # "mixture", "near" or "set"
    name: str
    way: str
    rounds: int = 0  # after the first
    calm: int = 0  # rows in whose surroundings nothing changed
    kept: int = 0  # those of them that kept their id
    quiet: int = 0  # rounds in which nothing happened
    disturbed: int = 0  # those of them that changed the ids that there are
    planted: Mapping[str, int] = field(default_factory=dict)
    named: Mapping[str, int] = field(default_factory=dict)  # those of them that were named, and nothing else was
    ari: tuple[float, ...] = ()  # of every round
    ari_of_fresh: tuple[float, ...] = ()  # fused from scratch
    calm_anew: int = 0  # calm rows of rounds in which clusters were found anew
    kept_anew: int = 0  # and those of them that kept their id
    code: str = ""  # the digest of the code it was made with

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> "Row":
        """Read it back."""
        row = json.loads(line)
        return cls(**{**row, **{name: tuple(row[name]) for name in ("ari", "ari_of_fresh")}})

    @property
    def work(self) -> Work:
        """What it is of."""
        return self.group, self.name


def all_work(draws: int, sets: Sequence[str]) -> list[Work]:
    """Mixtures, half as many whose clusters are nearer, and sets."""
    mixtures = [
        (group, str(draw)) for group, count in (("mixture", draws), ("near", draws // 2)) for draw in range(count)
    ]
    return [*mixtures, *(("set", name) for name in sets)]


def scene_of(group: str, name: str) -> Iterator[Revealed]:
    """Round by round."""
    if group == "set":
        return bit_by_bit(name)
    return drifting(int(name), NEAR) if group == "near" else drifting(int(name))


def rows_of(work: Work) -> list[Row]:
    """A row for every way; all see the same rounds."""
    group, name = work
    names = [way for way in WAYS if way not in STREAMS or (group == "mixture" and int(name) < STREAMED)]
    ways, rows = {way: WAYS[way]() for way in names}, {way: Row(group, name, way) for way in names}
    with threadpool_limits(limits=1):
        for number, revealed in enumerate(scene_of(group, name)):
            rows = one_round(rows, ways, revealed, first=number == 0)
    return list(rows.values())


def one_round(rows: Mapping[str, Row], ways: Mapping[str, Way], revealed: Revealed, *, first: bool) -> dict[str, Row]:
    """All ways go one round further."""
    summaries = list(sent(revealed.rows))
    fresh = fuse(summaries, None, FUSION, generator(0, "server"))
    points, n_clusters = revealed.all_rows, len(np.unique(revealed.truth))
    best = ari(revealed.truth, label(points, fresh)[0])
    steps = {name: way.step(summaries, points, fresh, n_clusters) for name, way in ways.items()}
    if first:
        return dict(rows)
    return {name: counted(rows[name], steps[name], revealed, best) for name in rows}


def sent(rows: Mapping[str, FloatArray]) -> Iterator[Summary]:
    """What sites send that have enough rows."""
    for site, own in rows.items():
        try:
            yield summarize(own, site, FUSION.task)[0]
        except BadRows:
            continue


def counted(row: Row, step: Step, revealed: Revealed, best: float) -> Row:
    """One round more."""
    planted, named = Counter(row.planted), Counter(row.named)
    if revealed.planted:
        planted[revealed.planted] += 1
        named[revealed.planted] += step.said == (revealed.planted,)
    calm, kept = int(revealed.calm.sum()), int((step.before == step.now)[revealed.calm].sum())
    return replace(
        row,
        rounds=row.rounds + 1,
        calm=row.calm + calm,
        kept=row.kept + kept,
        calm_anew=row.calm_anew + step.anew * calm,
        kept_anew=row.kept_anew + step.anew * kept,
        quiet=row.quiet + revealed.is_quiet,
        disturbed=row.disturbed + (revealed.is_quiet and ids_in(step.before) != ids_in(step.now)),
        planted=dict(planted),
        named=dict(named),
        ari=(*row.ari, round(ari(revealed.truth, step.now), 4)),
        ari_of_fresh=(*row.ari_of_fresh, round(best, 4)),
    )


def ids_in(labels: IntArray) -> set[int]:
    """All that there are."""
    return set(labels.tolist())


def make_rows(work: Sequence[Work], jobs: int, file: RowFile[Row], on_row: Callable[[], None]) -> list[Row]:
    """Make the rows that are not yet in the file, or whose code has changed, and give all, in the order of the work."""
    code = digest_of("goldfc_bench.rounds.run")
    made = [row for row in file.read() if row.code == code]
    file.rewrite(made)
    missing = [one for one in work if one not in {row.work for row in made}]
    for rows in side_by_side(rows_of, missing, jobs, prefer="processes"):
        new = [replace(row, code=code) for row in rows]
        file.append(*new)
        made += new
        on_row()
    return [row for one in work for row in made if row.work == one]
