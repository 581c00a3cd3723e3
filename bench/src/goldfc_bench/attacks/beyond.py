"""Whoever has more than a message and rows of others: an insider, and who has many messages of the same people."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.mixture import squares_between
from goldfc.message.summary import Summary
from goldfc.randomness import generator
from goldfc.site.membership import Trial, guess_by_score, train, try_out
from goldfc_bench.attacks.membership import shadow
from goldfc_bench.attacks.run import sent_now
from goldfc_bench.attacks.sites import Target, Told, tables, target_of

# Tables, and rows of a site.
CASES = (("diabetes", 40), ("diabetes", 100), ("LE", 40), ("LE", 100), ("EC", 100))
TARGETS, SHADOWS, MESSAGES = 6, 12, (1, 4, 12)
# No message is without more columns than this.
MOST_MISSING = 3
# What is left of a micro-cluster without those who are known is at least this share.
LEFT = 0.25


@dataclass(frozen=True)
class Beyond:
    """AUC on one table, means over targets."""

    table: str
    rows: int
    targets: int
    outsider: float
    insider: float
    together: tuple[float, ...]  # of so many messages


def beyond(case: tuple[str, int], targets: int) -> Beyond | None:
    """All of this on a few targets; None if the table is not there."""
    name, size = case
    table = next((table for table in tables() if table.name == name), None)
    if table is None:
        return None
    there = [target for seed in range(targets) if (target := target_of(table, size, seed)) is not None]
    told = [(target, sent_now(target).again, generator(seed, "beyond")) for seed, target in enumerate(there)]
    return Beyond(
        name,
        size,
        len(there),
        float(np.mean([auc_of_unknown(target, again, rng) for target, again, rng in told])),
        float(np.mean([auc_of_unknown(target, partial(without_known, again), rng) for target, again, rng in told])),
        tuple(np.mean([aucs_together(target, rng) for target, _, rng in told], axis=0).tolist()),
    )


def auc_of_unknown(target: Target, told: Told, rng: np.random.Generator) -> float:
    """How well the second half of the members is told from others."""
    trials = [shadow(target.others, len(target.inside), told, rng) for _ in range(SHADOWS)]
    rule = train([second_half(one) for one in trials])
    trial = second_half(try_out(target.inside, target.outside, target.others, told(target.inside)))
    return guess_by_score(rule(trial.statistics), trial.member).auc


def second_half(trial: Trial) -> Trial:
    """Without the first half of the members."""
    known = int(trial.member.sum()) // 2
    return Trial(trial.statistics[known:], trial.member[known:])


def without_known(told: Told, rows: FloatArray) -> Summary:
    """A message of rows, the first half of which an insider takes out of the nearest means."""
    whole, known, scale = told(rows), rows[: len(rows) // 2], rows.std(axis=0)
    mass = np.full(len(whole.centroids), len(rows) / len(whole.centroids)) if whole.mass is None else whole.mass
    unit = np.where(scale > 0.0, scale, np.inf)
    own = squares_between(known / unit, whole.centroids / unit).argmin(axis=1)
    each = np.bincount(own, minlength=len(mass))
    total = np.zeros_like(whole.centroids)
    np.add.at(total, own, known)
    left = np.maximum(mass - each, LEFT * mass)
    share = (mass - left) / np.maximum(each, 1)
    means = (whole.centroids * mass[:, None] - total * share[:, None]) / left[:, None]
    return Summary("known", means, mass=np.maximum(1, left).astype(np.int64))


def aucs_together(target: Target, rng: np.random.Generator) -> list[float]:
    """By the sum of what the classifiers of so many messages say, each of them without other columns."""
    scores, n_features = np.zeros(len(target.inside) + len(target.outside)), target.inside.shape[1]
    found = []
    for number in range(max(MESSAGES)):
        some = without_columns(target, rng.permutation(n_features)[: number and 1 + number % MOST_MISSING])
        sent = sent_now(some)
        rule = train([shadow(some.others, len(some.inside), sent.again, rng) for _ in range(SHADOWS)])
        trial = try_out(some.inside, some.outside, some.others, sent.summary)
        scores += rule(trial.statistics)
        found.append(guess_by_score(scores, trial.member).auc)
    return [found[count - 1] for count in MESSAGES]


def without_columns(target: Target, missing: IntArray) -> Target:
    """The same with fewer columns."""
    inside, outside, others = (
        np.ascontiguousarray(np.delete(rows, missing, axis=1))
        for rows in (target.inside, target.outside, target.others)
    )
    return replace(target, inside=inside, outside=outside, others=others)
