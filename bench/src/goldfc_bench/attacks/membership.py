"""Was a row in a message? Every statistic, and classifiers trained on shadow sites of other people's rows."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from goldfc._types import FloatArray, IntArray
from goldfc.message.summary import Summary
from goldfc.site.membership import Classifier, Trial, areas, train, try_out
from goldfc_bench.attacks.sites import Target, Told

# Shadow sites: rows of all together, and how many there are.
SHADOW_ROWS, FEWEST, MOST = 4_000, 4, 30
# Of the attacker's rows, a shadow site has no more than this share.
SHARE = 0.6


@dataclass(frozen=True)
class Attack:
    """What every test says of the rows of one target: scores that can be compared with those of other targets."""

    member: IntArray
    scores: dict[str, FloatArray]


def attack(target: Target, summary: Summary, again: Told, rng: np.random.Generator) -> Attack:
    """`again` makes the messages of shadow sites, as exact as the target's."""
    shadows = [shadow(target.others, len(target.inside), again, rng) for _ in range(n_shadows(target))]
    trial = try_out(target.inside, target.outside, target.others, summary)
    best = int(np.mean([areas(one) for one in shadows], axis=0).argmax())
    rules: dict[str, Callable[[FloatArray], FloatArray]] = {
        "the best statistic": lambda statistics: statistics[:, best],
        "all, linear": train(shadows),
        "all, trees": learn_trees(shadows),
    }
    return Attack(trial.member, {name: rule(trial.statistics) for name, rule in rules.items()})


def n_shadows(target: Target) -> int:
    """More of small ones."""
    return int(np.clip(SHADOW_ROWS // len(target.inside), FEWEST, MOST))


def shadow(others: FloatArray, n_rows: int, told: Told, rng: np.random.Generator) -> Trial:
    """A site of somebody else's rows, of which the attacker knows who is in it."""
    order = rng.permutation(len(others))
    n_inside = min(n_rows, int(SHARE * len(order)))
    rest = order[n_inside:]
    inside, outside, own = (np.ascontiguousarray(others[part]) for part in (order[:n_inside], rest[::2], rest[1::2]))
    return try_out(inside, outside, own, told(inside))


def learn_trees(trials: list[Trial]) -> Classifier:
    """All statistics in one, by boosted trees."""
    X, y = np.vstack([one.statistics for one in trials]), np.concatenate([one.member for one in trials])
    model = HistGradientBoostingClassifier(max_iter=60, max_depth=3, random_state=0).fit(X, y)
    return lambda statistics: np.asarray(model.predict_proba(statistics)[:, 1])
