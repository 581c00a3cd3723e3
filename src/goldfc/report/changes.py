"""What has changed since the model before, in words."""

from collections.abc import Iterator, Sequence

import numpy as np

from goldfc.message.descent import Change, Move
from goldfc.message.model import Model
from goldfc.report.features import Feature, features_of

# More names than these are not read.
MOST_NAMES = 8
NOTHING_CHANGED = "Nothing changed."


def change_sentences(model: Model) -> tuple[str, ...]:
    """All of it, a sentence each; a first model has none."""
    if model.descent is None:
        return ()
    told = [*who_came_and_left(model), *cluster_sentences(model)]
    return tuple(told or [NOTHING_CHANGED])


def who_came_and_left(model: Model) -> Iterator[str]:
    """Of the sites."""
    if model.descent is None:
        return
    for sites, verb in ((model.descent.joined, "joined"), (model.descent.left, "left")):
        if sites:
            yield f"{listed(sites)} {verb}."


def cluster_sentences(model: Model) -> list[str]:
    """Of the clusters."""
    changes = () if model.descent is None else model.descent.changes
    weight = np.bincount(model.micro_labels, minlength=len(model.centroids))
    features = features_of(model, weight)
    return [sentence_of(change, features) for change in changes]


def sentence_of(change: Change, features: Sequence[Feature]) -> str:
    """Of one change."""
    before, now = (clusters_named(ids) for ids in (change.before, change.now))
    then, today = (f"{100.0 * share:.3g} %" for share in (change.share_before, change.share_now))
    match change.what:
        case "emerged":
            return f"{now} emerged: {today} of all rows, at {listed(change.sites)}."
        case "disappeared":
            return f"{before} disappeared: it had {then} of all rows, at {listed(change.sites)}."
        case "split":
            return f"{before} split into {listed(change.now)}: it had {then} of all rows, and they have {today}."
        case "merged":
            return f"{before} merged into {listed(change.now)}: they had {then} of all rows, and it has {today}."
        case "moved":
            return f"{now} moved: {listed([move_words(move, features) for move in change.moves])}."
        case _:
            return f"{now} {change.what} from {then} of all rows to {today}."


def clusters_named(ids: Sequence[int]) -> str:
    """Clusters at the beginning of a sentence."""
    return f"Cluster{'s' if len(ids) > 1 else ''} {listed(ids)}"


def move_words(move: Move, features: Sequence[Feature]) -> str:
    """From where to where a mean has moved, in its own unit."""
    feature = features[move.feature]
    return f"{feature.name} from {feature.text(move.before)} to {feature.with_unit(move.now)}"


def listed(items: Sequence[object]) -> str:
    """Names or numbers as a sentence has them."""
    words = [str(item) for item in items]
    if len(words) > MOST_NAMES:
        words = [*words[: MOST_NAMES - 1], f"{len(words) - MOST_NAMES + 1} more"]
    return " and ".join([*([", ".join(words[:-1])] if words[1:] else []), *words[-1:]])
