"""Two sites: one subtracts its own part from the model, and looks at what is left, which is the other's."""

from dataclasses import replace
from warnings import catch_warnings, simplefilter

import numpy as np

from goldfc._types import FloatArray
from goldfc.learning.moments import Moments
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.randomness import generator
from goldfc.server.fusions import fuse
from goldfc.server.one_shot import OneShot
from goldfc.site.membership import areas, guess_by_score, train, try_out
from goldfc_bench.attacks.membership import learn_trees, shadow
from goldfc_bench.attacks.sites import Target, Told

N_CLUSTERS, N_SHADOWS = 3, 8


def auc_of_the_other(target: Target, told: Told, rng: np.random.Generator) -> float:
    """How well the members of one site are told by the other, who has the model and its own message."""
    mine = target.others[: len(target.others) // 2]
    own, rest = told(mine), target.others[len(mine) :]

    def left(rows: FloatArray) -> Summary:
        return what_is_left(model_of(told(rows), own), own)

    shadows = [shadow(rest, len(target.inside), left, rng) for _ in range(N_SHADOWS)]
    trial = try_out(target.inside, target.outside, rest, left(target.inside))
    best = int(np.mean([areas(one) for one in shadows], axis=0).argmax())
    rules = (train(shadows), learn_trees(shadows))
    return max(float(areas(trial)[best]), *(guess_by_score(rule(trial.statistics), trial.member).auc for rule in rules))


def model_of(other: Summary, own: Summary) -> Model:
    """What both get back."""
    pair = [replace(other, site="other"), replace(own, site="own")]
    with catch_warnings():
        simplefilter("ignore")  # fewer clusters than asked for do not matter here
        return fuse(pair, N_CLUSTERS, OneShot(kinds=("shared",), starts=2), generator(0, "server"))


def what_is_left(model: Model, own: Summary) -> Summary:
    """The other site as it follows from the model: a mean and variances, and the clusters of both."""
    if model.moments is None or own.moments is None:
        return Summary("other", model.centroids, mass=np.maximum(1, model.mass).astype(np.int64))
    count = max(1.0, model.moments.count - own.moments.count)
    mean = (model.moments.mean * model.moments.count - own.moments.mean * own.moments.count) / count
    apart = (own.moments.mean - mean) ** 2 * (own.moments.count * count / model.moments.count)
    squares = np.maximum(model.moments.squares - own.moments.squares - apart, 0.0)
    points = np.vstack([mean, model.centroids])
    mass = np.concatenate([[count], np.maximum(1.0, model.mass)]).astype(np.int64)
    found = object.__new__(Summary)  # no honest site would send it, so it is not checked
    for name, value in {
        "site": "other",
        "centroids": points,
        "mass": mass,
        "shape": None,
        "moments": Moments(count, mean, squares),
        "smallest": 1,
        "terms": own.terms,
    }.items():
        object.__setattr__(found, name, value)
    return found
