"""Simpler private mechanisms, with the same noise, the same budget and the same fusion."""

from fractions import Fraction

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.k_means import nearest
from goldfc.message.columns import Terms, ranges_of
from goldfc.message.levels import Private
from goldfc.message.summary import Summary
from goldfc.site.private.budget import rho_of
from goldfc.site.private.curator import Curator, Touch
from goldfc.site.private.mechanism import cells_for

STEPS, VOTES, EACH = 5, 6, 7
# How far candidates are moved from one vote to the next, as a share of the range: at first, and in the end.
FIRST_MOVE, LAST_MOVE = 0.3, 0.02


def how_many(curator: Curator, level: Private) -> int:
    """As many cells as the level would have; the rivals are told the number of rows."""
    n_rows, n_features = curator.source.shape
    return int(min(100, max(4, cells_for(n_rows, n_features, rho_of(*level.budget)))))


def unit_rows(rows: FloatArray, terms: Terms) -> FloatArray:
    """Between -1 and 1, by the ranges."""
    low, high = ranges_of(terms)
    return np.asarray(np.clip(2.0 * (rows - low) / (high - low) - 1.0, -1.0, 1.0))


def told(site: str, centres: FloatArray, mass: FloatArray, terms: Terms, level: Private) -> Summary:
    """As a message."""
    low, high = ranges_of(terms)
    centroids = (np.clip(centres, -1.0, 1.0) + 1.0) / 2.0 * (high - low) + low
    return Summary(site, centroids, mass=np.maximum(np.rint(mass), 1.0).astype(np.int64), level=level, terms=terms)


def naive(curator: Curator, site: str, terms: Terms, level: Private, rng: np.random.Generator) -> Summary:
    """Lloyd's steps with noise from random places in the ranges (Blum and others 2005; diffprivlib's k-means)."""
    n_features, rho = len(terms.features), rho_of(*level.budget) / STEPS
    centres = rng.uniform(-1.0, 1.0, (how_many(curator, level), n_features))
    mass = np.ones(len(centres))
    for _ in range(STEPS):
        here = centres

        def step(rows: FloatArray, here: FloatArray = here) -> tuple[IntArray, FloatArray]:
            u = unit_rows(rows, terms)
            return nearest(u, here), np.hstack([np.ones((len(u), 1)), u])

        sums = curator.release("step", step, (len(centres), 1 + n_features), np.sqrt(1.0 + n_features), rho)
        mass = np.maximum(sums[:, 0], 1.0)
        centres = np.clip(sums[:, 1:] / mass[:, None], -1.0, 1.0)
    return told(site, centres, mass, terms, level)


def votes(curator: Curator, site: str, terms: Terms, level: Private, rng: np.random.Generator) -> Summary:
    """Evolving candidates that rows vote for (private evolution: Lin and others 2024); nothing else is measured."""
    n_features, rho = len(terms.features), rho_of(*level.budget) / VOTES
    count = how_many(curator, level)
    candidates = rng.uniform(-1.0, 1.0, (EACH * count, n_features))
    mass = np.ones(len(candidates))
    for move in np.geomspace(FIRST_MOVE, LAST_MOVE, VOTES):
        vote: Touch = voting(candidates, terms)
        mass = np.maximum(curator.release("votes", vote, (len(candidates), 1), 1.0, rho)[:, 0], 0.0)
        best = np.argsort(-mass)[:count]
        kept, mass = candidates[best], mass[best]
        children = np.repeat(kept, EACH - 1, axis=0)
        candidates = np.clip(np.vstack([kept, children + move * rng.standard_normal(children.shape)]), -1.0, 1.0)
    return told(site, kept, mass, terms, level)


def voting(candidates: FloatArray, terms: Terms) -> Touch:
    """Every row for the nearest candidate."""
    return lambda rows: (nearest(unit_rows(rows, terms), candidates), np.ones((len(rows), 1)))


RIVALS = {"naive k-means": naive, "votes alone": votes}
# What they are compared at.
RIVALS_AT = Fraction(1)
