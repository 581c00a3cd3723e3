"""All attacks on all tables, at every number of rows: the level as it was, and as it is."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from threadpoolctl import threadpool_limits

from goldfc._parallel import side_by_side
from goldfc._types import FloatArray
from goldfc.errors import BadRows
from goldfc.message.levels import with_fewest
from goldfc.message.summary import Summary
from goldfc.message.task import Task, rows_each
from goldfc.randomness import generator
from goldfc.site.audit import USUAL, membership_of
from goldfc.site.membership import Guess, guess_by_score
from goldfc.site.privacy import Rules
from goldfc.site.rows import Rows, checked
from goldfc.site.summarize import tell, told_alike
from goldfc_bench.attacks import attributes, differencing, membership, neighbours, reconstruction
from goldfc_bench.attacks.before import told_before
from goldfc_bench.attacks.sites import Table, Target, tables, target_of

Level = Literal["before", "after", "private"]
# The level `private` is attacked by a benchmark of its own.
LEVELS: tuple[Level, ...] = ("before", "after")
SIZES = (20, 40, 100, 300, 1_000, 3_000)
SMALLEST, PEOPLE = 5, 1_200
UNMEASURED = Guess(1.0, 1.0)
TASK = Task(level=with_fewest(SMALLEST), rows_each=rows_each(SMALLEST))


@dataclass(frozen=True)
class Row:
    """What came of all attacks on one table at one number of rows; means over the targets that were not refused."""

    table: str
    features: int
    rows: int
    level: Level
    targets: int
    refused: int  # by the site, because it has too few rows or its audit says no
    micro_clusters: float
    covariance: bool
    auc: float  # of the best test
    test: str
    found: float  # members at 1 % false alarms
    audit: tuple[float, ...]  # the AUC that the site's own audit shows, of every target
    restored: int  # rows
    attribute: float  # how much better a column of members is known, in standard deviations
    new_row: float  # how far off the row is that came between two messages
    new_row_without: float  # and without any message
    other_site: float  # the AUC of one of two sites against the other
    code: str = ""  # the digest of the code it was made with; "": nobody knows

    @property
    def work(self) -> "Work":
        """What it is of."""
        return self.table, self.rows, self.level

    def to_json(self) -> str:
        """One line."""
        return json.dumps(
            {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}
        )

    @classmethod
    def from_json(cls, line: str) -> "Row":
        """Read it back."""
        row = json.loads(line)
        return cls(**{**row, "audit": tuple(row["audit"])})


Work = tuple[str, int, Level]


def all_work(sizes: Sequence[int] = SIZES, names: Sequence[str] = ()) -> list[Work]:
    """Every table, number of rows and level."""
    chosen = [table.name for table in tables() if not names or table.name in names]
    return [(name, size, level) for name in chosen for size in sizes for level in LEVELS]


def all_rows(work: Sequence[Work], n_targets: int, jobs: int) -> Iterator[Row | None]:
    """A row for each; None where a table has too few rows."""
    return side_by_side(partial(row_of, n_targets=n_targets), work, jobs, prefer="processes")


def row_of(what: Work, n_targets: int) -> Row | None:
    """All attacks on a few targets."""
    name, size, level = what
    with threadpool_limits(limits=1):
        return row_of_targets(name, size, level, n_targets)


def row_of_targets(name: str, size: int, level: Level, n_targets: int) -> Row | None:
    """On one thread."""
    table = next(table for table in tables() if table.name == name)
    # More of small ones: there, who is inside by chance matters.
    count = n_targets if level == "before" else int(np.clip(PEOPLE // size, n_targets, 6 * n_targets))
    targets = [target_of(table, size, seed) for seed in range(count)]
    there = [target for target in targets if target is not None]
    if not there:
        return None
    attacked = [one for seed, target in enumerate(there) if (one := attacked_once(target, level, seed)) is not None]
    blank = blank_row(table, size, level, len(there), len(there) - len(attacked))
    return put_together(blank, attacked) if attacked else blank


def blank_row(table: Table, size: int, level: Level, targets: int, refused: int) -> Row:
    """Nothing was found."""
    return Row(
        table=table.name,
        features=table.rows.shape[1],
        rows=size,
        level=level,
        targets=targets,
        refused=refused,
        micro_clusters=0.0,
        covariance=False,
        auc=0.5,
        test="",
        found=0.0,
        audit=(),
        restored=0,
        attribute=0.0,
        new_row=0.0,
        new_row_without=0.0,
        other_site=0.5,
    )


@dataclass(frozen=True)
class Attacked:
    """What came of all attacks on one target."""

    summary: Summary
    membership: membership.Attack
    audit: float
    restored: int
    attribute: float
    new_row: differencing.Errors
    other_site: float


def attacked_once(target: Target, level: Level, seed: int) -> Attacked | None:
    """None if the site refuses."""
    try:
        sent = sent_before(target) if level == "before" else sent_now(target)
    except BadRows:
        return None
    if level == "after" and (sent.guess.auc > USUAL.most_auc or sent.guess.found > USUAL.most_tpr):
        return None
    return attacked(target, sent, seed)


def attacked(target: Target, sent: "Sent", seed: int) -> Attacked:
    """All attacks on a message."""
    rng, whole_numbers = generator(seed, "attack", target.table.name), reconstruction.whole_numbers(target.inside)
    return Attacked(
        sent.summary,
        membership.attack(target, sent.summary, sent.again, rng),
        sent.guess.auc,
        reconstruction.restore(sent.summary, target.inside.astype(np.int64)).rows if whole_numbers else 0,
        attributes.advantage(target, sent.summary),
        differencing.errors_of_new_row(target, sent.again),
        neighbours.auc_of_the_other(target, sent.again, rng),
    )


@dataclass(frozen=True)
class Sent:
    """A site's message, what its own audit says of it, and how other rows would be told as exactly."""

    summary: Summary
    guess: Guess
    again: Callable[[FloatArray], Summary]


def sent_before(target: Target) -> Sent:
    """With the level as it was."""
    again = partial(told_before, terms=target.table.terms)
    guess = membership_of(Rows.of(target.inside), lambda rows: again(rows.source.read(0, rows.shape[0])))
    return Sent(again(target.inside), guess or UNMEASURED, again)


def sent_now(target: Target) -> Sent:
    """With the level as it is."""
    told = tell(checked(target.inside, "a"), "a", TASK, Rules(target.table.terms))
    return Sent(told.summary, told.membership or UNMEASURED, lambda rows: told_alike(Rows.of(rows), told))


def guesses(one: Attacked, test: str) -> Guess:
    """How well a test told the members of one target."""
    return guess_by_score(one.membership.scores[test], one.membership.member)


def put_together(blank: Row, attacked: Sequence[Attacked]) -> Row:
    """Means over targets; members at few false alarms are found with all targets together."""
    tests = attacked[0].membership.scores
    auc = {test: float(np.mean([guesses(one, test).auc for one in attacked])) for test in tests}
    best = max(auc, key=lambda test: auc[test])
    member = np.concatenate([one.membership.member for one in attacked])
    # A statistic has another scale at every target; probabilities can be compared.
    comparable = [np.concatenate([one.membership.scores[test] for one in attacked]) for test in list(tests)[1:]]
    found = max(guess_by_score(scores, member).found for scores in comparable)
    return replace(
        blank,
        micro_clusters=float(np.mean([len(one.summary.centroids) for one in attacked])),
        covariance=attacked[0].summary.shape is not None,
        auc=auc[best],
        test=best,
        found=found,
        audit=tuple(round(one.audit, 4) for one in attacked),
        restored=sum(one.restored for one in attacked),
        attribute=float(np.mean([one.attribute for one in attacked])),
        new_row=float(np.mean([one.new_row.told for one in attacked])),
        new_row_without=float(np.mean([one.new_row.untold for one in attacked])),
        other_site=float(np.mean([one.other_site for one in attacked])),
    )
