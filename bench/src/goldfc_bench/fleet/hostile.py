"""Hostile devices, at a gateway and at a server that hears every device."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import adjusted_rand_score

from goldfc.message.summary import Summary
from goldfc.server.merge import merge_admitted
from goldfc.server.round import fuse_admitted
from goldfc.site.label import predict
from goldfc_bench.fleet.made import HOSTILE, Fleet

# How many are hostile, and whether they are all at one gateway.
PLANS = {"none": (0, False), "one": (1, True), "ten, at ten gateways": (10, False), "ten, at one gateway": (10, True)}


@dataclass(frozen=True)
class Harm:
    """What hostile devices do to the labels of all: ARI with the truth, the mean over fleets."""

    attack: str
    plan: str
    at_gateways: float
    at_server: float


def measure_harm(fleets: Sequence[Fleet], attacks: Sequence[str], tick: Callable[[], None]) -> Iterator[Harm]:
    """Some attacks by all plans."""
    drawn = [
        [fleet.summary(*divmod(n, fleet.devices)) for n in range(fleet.gateways * fleet.devices)] for fleet in fleets
    ]
    for attack in attacks:
        for plan, (count, together) in PLANS.items():
            scores = []
            for fleet, honest in zip(fleets, drawn, strict=True):
                those = {n if together else (n % fleet.gateways) * fleet.devices for n in range(count)}
                sent = [HOSTILE[attack](one) if n in those else one for n, one in enumerate(honest)]
                scores.append([score(fleet, some) for some in (by_region(fleet, sent), sent)])
                tick()
            yield Harm(attack, plan, *np.mean(scores, axis=0).tolist())


def by_region(fleet: Fleet, sent: Sequence[Summary]) -> list[Summary]:
    """What the gateways make of it."""
    what, each = fleet.agreement, fleet.devices
    parts = [sent[first : first + each] for first in range(0, len(sent), each)]
    return [merge_admitted(part, what, what, f"region-{n:03}").summary for n, part in enumerate(parts)]


def score(fleet: Fleet, sent: Sequence[Summary]) -> float:
    """ARI of all rows with the truth."""
    rows, truth = fleet.sample(1)
    model = fuse_admitted(sent, fleet.agreement, fleet.clusters).model
    return float(adjusted_rand_score(truth, predict(model, rows)))
