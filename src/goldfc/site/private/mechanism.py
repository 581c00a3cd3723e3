"""Private micro-clusters: moments, votes, a few steps of k-means, and how rows lie around their centroids."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from goldfc._types import FloatArray
from goldfc.learning.k_means import k_means
from goldfc.site.private.curator import Curator


# research knobs
@dataclass(frozen=True)
class Knobs:
    cells: float = 0.32
    first: int = 7
    votes: int = 3
    shares: tuple = (0.08, 0.30, 0.55, 0.07)
    lloyd: tuple = (1, 2, 3)
    clip: float = 0.92
    start_clip: float = 0.8
    drop: float = 1.5
    mutate: float = 0.5
    most: int = 100
    scat: float = 2.0


GRID, FURTHEST = 1024, 8.0


@dataclass(frozen=True)
class Private:
    centroids: FloatArray
    mass: FloatArray
    error: FloatArray  # variance of each centroid, per coordinate, in z units
    within: FloatArray  # mean square |r|^2 per cell / d ... rms
    scatter: FloatArray | None
    scale: FloatArray
    centre: FloatArray
    n: float


def cells_for(n_rows: float, n_features: int, rho: Fraction) -> float:
    """So many cells that each is told well enough."""
    return Knobs.cells * n_rows * (float(rho) / n_features) ** 0.5


def find_private(cur: Curator, low: FloatArray, high: FloatArray, rho: Fraction, k: Knobs, rng) -> Private:
    d = len(low)
    shares = [Fraction(s).limit_denominator(1000) * rho for s in k.shares]

    # moments
    def moments(rows):
        u = np.clip(2.0 * (rows - low) / (high - low) - 1.0, -1.0, 1.0)
        return np.zeros(len(rows), int), np.hstack([np.full((len(rows), 1), np.sqrt(d) / 2), u, u * u - 0.5])

    bound = np.sqrt(1.5 * d)
    s = cur.release("moments", moments, (1, 2 * d + 1), bound, shares[0])[0]
    noise = bound / float(2 * shares[0]) ** 0.5
    n = max(s[0] / (np.sqrt(d) / 2), 1.0)
    mean = np.clip(s[1 : d + 1] / n, -1, 1)
    var = np.maximum(s[d + 1 :] / n + 0.5 - mean**2, 1e-6)
    usual = np.median(var)
    # shrink towards usual in log by reliability
    err = (noise / n) ** 2
    w = 1 / (1 + err / np.maximum(usual**2 * 0.25, 1e-12))
    var = np.maximum(w * var + (1 - w) * usual, usual * 0.05)
    scale_u = np.sqrt(var)

    def unit(rows):
        u = np.clip(2.0 * (rows - low) / (high - low) - 1.0, -1.0, 1.0)
        return np.rint(np.clip((u - mean) / scale_u, -FURTHEST, FURTHEST) * GRID)

    def nearest(z, cand):
        return np.argmin((cand**2).sum(1) - 2 * (z @ cand.T), axis=1)

    grid = lambda c: np.rint(np.clip(c, -FURTHEST, FURTHEST) * GRID)
    m = int(min(k.most, max(4, k.cells * n * (float(rho) / d) ** 0.5)))
    # votes
    cand = rng.standard_normal((k.first * m, d))
    each = shares[1] / max(k.votes, 1)
    spread = np.sqrt(d) * 1.0
    for t in range(k.votes):
        c = grid(cand)

        def vote(rows):
            return nearest(unit(rows), c), np.ones((len(rows), 1))

        v = cur.release("votes", vote, (len(c), 1), 1.0, each)[:, 0]
        order = np.argsort(-v)
        cum = np.cumsum(np.maximum(v[order], 0))
        keep = order[: max(1, int(np.searchsorted(cum, n)) + 1)]
        keep = keep[v[keep] > 0]
        pts, wts = c[keep] / GRID, v[keep]
        if len(pts) > m:
            _, cen = k_means(pts, m, rng, wts)
        else:
            cen = pts
        if t < k.votes - 1:
            # mutate: voted points, and around them
            reps = max(1, (k.first // 2 * m) // len(pts))
            more = np.repeat(pts, reps, axis=0)
            cand = np.vstack([cen, more + k.mutate ** (t + 1) * rng.standard_normal(more.shape)])
    # lloyd
    R = k.start_clip * np.sqrt(d)
    tot = sum(k.lloyd)
    cen_now = cen
    mass = None
    for t, part in enumerate(k.lloyd):
        cen_now = fill(cen_now, mass, m, None if mass is None else sq, rng)
        c, r_max = grid(cen_now), R

        def step(rows):
            z = unit(rows)
            own = nearest(z, c)
            r = (z - c[own]) / GRID
            length = np.sqrt((r * r).sum(1))
            q = r * (np.minimum(1.0, r_max / np.maximum(length, 1e-300)) / r_max)[:, None]
            sq = (q * q).sum(1)
            return own, np.hstack([np.full((len(r), 1), 0.5), q, (sq[:, None] - 0.5) / 2])

        rho_t = shares[2] * Fraction(part, tot)
        b = np.sqrt(1.3125)
        sums = cur.release("step", step, (len(c), d + 2), b, rho_t)
        sd = b / float(2 * rho_t) ** 0.5
        mass = sums[:, 0] * 2
        sq = np.maximum((sums[:, -1] * 2 + 0.5 * mass), 0) * R**2  # sum |r|^2
        keep = mass > k.drop * 2 * sd
        if not keep.any():
            keep[np.argmax(mass)] = True
        safe = np.maximum(mass, 1.0)
        cen_now = (c / GRID + sums[:, 1 : d + 1] / safe[:, None] * R)[keep]
        err = (sd * R / safe[keep]) ** 2
        mass, sq = np.maximum(mass[keep], 1), sq[keep]
        rms = np.sqrt(sq.sum() / mass.sum())
        R = max(k.clip * rms, 0.05) if k.clip else R
    scatter = None
    if k.shares[3] > 0:
        c, r_s = grid(cen_now), k.scat * rms
        iu = np.triu_indices(d)
        f = np.where(iu[0] == iu[1], 1.0, np.sqrt(2))

        def scat(rows):
            z = unit(rows)
            own = nearest(z, c)
            r = (z - c[own]) / GRID
            length = np.sqrt((r * r).sum(1))
            q = r * np.minimum(1.0, r_s / np.maximum(length, 1e-300))[:, None] / r_s
            return np.zeros(len(r), int), q[:, iu[0]] * q[:, iu[1]] * f

        t = cur.release("scatter", scat, (1, len(f)), 1.0, shares[3])[0] / f * r_s**2 / mass.sum()
        scatter = np.zeros((d, d))
        scatter[iu] = t
        scatter = scatter + scatter.T - np.diag(np.diag(scatter))
    width = (high - low) / 2
    return Private(cen_now, mass, err, sq / mass / d, scatter, scale_u * width, (mean + 1) * width + low, n)


def fill(cen, mass, m, sq, rng):
    """Split those with most squares until m again."""
    if mass is None or len(cen) >= m:
        return cen
    cen, sq, mass = list(cen), list(sq), list(mass)
    d = len(cen[0])
    while len(cen) < m:
        j = int(np.argmax(sq))
        rms = np.sqrt(max(sq[j], 0) / mass[j] / d)
        s = rng.choice([-1, 1], d) * rms * 0.5
        c = cen[j]
        cen[j] = c - s
        cen.append(c + s)
        sq[j] /= 2.5
        sq.append(sq[j])
        mass[j] /= 2
        mass.append(mass[j])
    return np.array(cen)
