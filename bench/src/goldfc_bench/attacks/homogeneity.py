"""What the people of a micro-cluster have in common, each of them has: claims about a sensitive column."""

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from goldfc.learning.mixture import squares_between
from goldfc.message.summary import Summary
from goldfc.site.summarize import summarize
from goldfc_bench.attacks.before import told_before
from goldfc_bench.attacks.run import TASK
from goldfc_bench.attacks.sites import Target, target_of, with_sensitive

# Claims are made where a micro-cluster has at least this share of one value.
SURE = 0.9
ROWS = 200


@dataclass(frozen=True)
class Claims:
    """About how many members claims are made, how often these are right, and how often without a message."""

    about: float
    right: float
    without: float


def claims_of(target: Target, summary: Summary) -> Claims:
    """The last column is the sensitive one. Without the message: a model of the attacker's own rows says it."""
    scale = target.others[:, :-1].std(axis=0)
    own = squares_between(target.inside[:, :-1] / scale, summary.centroids[:, :-1] / scale).argmin(axis=1)
    share, truth = summary.centroids[own, -1], target.inside[:, -1] > 0.5
    claimed = np.maximum(share, 1.0 - share) >= SURE
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(target.others[:, :-1], target.others[:, -1] > 0.5)
    said = model.predict(target.inside[:, :-1])
    if not claimed.any():
        return Claims(0.0, 0.0, 0.0)
    right = ((share > 0.5) == truth)[claimed]
    return Claims(float(claimed.mean()), float(right.mean()), float((said == truth)[claimed].mean()))


def claims_before_and_after(n_targets: int) -> tuple[dict[str, Claims], int]:
    """Means over targets, and how many rows each has."""
    table = with_sensitive()
    targets = [target for seed in range(n_targets) if (target := target_of(table, ROWS, seed)) is not None]
    before = [claims_of(target, told_before(target.inside, table.terms)) for target in targets]
    after = [claims_of(target, summarize(target.inside, "a", TASK, terms=table.terms)[0]) for target in targets]
    return {"before": mean_of(before), "after": mean_of(after)}, ROWS


def mean_of(claims: list[Claims]) -> Claims:
    """Over targets; how often claims are right by how many there are."""
    about = np.array([one.about for one in claims])
    weight = about if about.any() else np.ones(len(about))
    right, without = (
        float(np.average([getattr(one, name) for one in claims], weights=weight)) for name in ("right", "without")
    )
    return Claims(float(about.mean()), right, without)
