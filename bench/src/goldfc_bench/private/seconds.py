"""How long one site takes, noise included, beside the level `suppressed`."""

import time
from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from goldfc.message.columns import Column, Terms
from goldfc.message.levels import Level, Private, Suppressed
from goldfc.message.task import Task, rows_each
from goldfc.site.summarize import summarize

SIZES: tuple[int, ...] = (5_000, 1_000_000)
N_FEATURES, N_CLUSTERS, REACH = 20, 10, 20.0
LEVELS: tuple[Level, ...] = (Private(), Suppressed())


def seconds_of(size: int) -> Iterator[float]:
    """Of a processor, by level."""
    rng = np.random.default_rng(0)
    means = 3.0 * rng.standard_normal((N_CLUSTERS, N_FEATURES))
    rows = means[rng.integers(N_CLUSTERS, size=size)] + rng.standard_normal((size, N_FEATURES))
    terms = Terms(
        federation="time", columns=tuple(Column(name=f"x{n}", range=(-REACH, REACH)) for n in range(N_FEATURES))
    )
    with threadpool_limits(limits=1):
        for level in LEVELS:
            begin = time.process_time()
            summarize(rows, "a", Task(level=level, rows_each=rows_each(level.fewest)), terms=terms)
            yield time.process_time() - begin
