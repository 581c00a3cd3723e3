"""The default in its variants, and each kind of cluster alone."""

from functools import partial

import numpy as np

from goldfc._encoding import encoding_of
from goldfc._types import FloatArray
from goldfc.estimators import OneShotClustering
from goldfc.learning.judge import KINDS, Kind
from goldfc.randomness import generator
from goldfc.server.one_shot import OneShot
from goldfc.server.round import run_round
from goldfc.site.participant import Site
from goldfc.transport.local import LocalPort
from goldfc_bench.errors import NotForThis
from goldfc_bench.shapes.sites import Method, Outcome, Sites

DEFAULT, PROPOSED, ONE_SITE = "default", "default, number proposed", "default, one site"


def default(sites: Sites, seed: int, *, number_given: bool = True, one_site: bool = False) -> Outcome:
    """What users get; the rows of all sites may be at one."""
    model = OneShotClustering(
        sites.n_clusters if number_given else None, categorical=sites.categorical, random_state=seed
    )
    model.fit(sites.X, groups=np.zeros_like(sites.site) if one_site else sites.site)
    return Outcome(model.labels_, model.certainty_, {"kind": model.kind_, "why": model.why_})


def only(sites: Sites, seed: int, *, kinds: tuple[Kind, ...]) -> Outcome:
    """The default, restricted to some kinds of clusters; the number is given."""
    encoding = encoding_of(sites.X, sites.categorical)
    rows = encoding.encode(sites.X, as_numbers)
    members = [Site(str(number), rows[sites.site == number], terms=encoding.terms) for number in np.unique(sites.site)]
    result = run_round(LocalPort(members), sites.n_clusters, OneShot(kinds=kinds), generator(seed, "server"))
    labels, certainty = ([getattr(site, name) for site in members] for name in ("labels", "certainty"))
    return Outcome(np.concatenate(labels), np.concatenate(certainty), {"kind": result.model.kind})


def alone(sites: Sites, seed: int, *, kind: Kind) -> Outcome:
    """One kind of cluster, whatever the judge would say."""
    if kind == "linked" and sites.categorical:
        raise NotForThis("categories have no gaps")
    outcome = only(sites, seed, kinds=(kind,))
    if kind == "own" and outcome.details["kind"] == "shared":
        raise NotForThis("with so many features, covariances of single clusters would be guesses")
    return outcome


def as_numbers(table: object) -> FloatArray:
    """The check of a table that is known to be in order."""
    return np.asarray(table, dtype=np.float64)


def name_alone(kind: Kind) -> str:
    """What the method is called that knows one kind of cluster."""
    return f"{kind} alone"


ALONE = tuple(name_alone(kind) for kind in KINDS)
OURS: dict[str, Method] = {
    DEFAULT: default,
    PROPOSED: partial(default, number_given=False),
    ONE_SITE: partial(default, one_site=True),
    **{name_alone(kind): partial(alone, kind=kind) for kind in KINDS},
}
