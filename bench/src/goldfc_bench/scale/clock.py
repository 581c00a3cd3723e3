"""Seconds, and turns: whatever else the machine does should hit all that are compared."""

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple, TypeVar

from goldfc_bench.scale.parts import Tick

Key = TypeVar("Key")


def seconds(work: Callable[[], object]) -> float:
    """How long a piece of work takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def in_turn(
    works: Mapping[Key, Callable[[], float]], repeats: int, patience: float, tick: Tick
) -> dict[Key, list[float]]:
    """What each work says it took, again and again in turn; what took longer than `patience` in sum has had enough.

    The turns of all works are the same ones: the first sample of each is of the first turn, and so on.
    """
    samples: dict[Key, list[float]] = {key: [] for key in works}
    for _ in range(repeats):
        for key, work in works.items():
            if sum(samples[key]) <= patience:
                samples[key].append(work())
            tick()
    return samples


class Pair(NamedTuple):
    """Medians of two works that took turns, and the median of their ratios."""

    seconds: float
    seconds_other: float
    ratio: float


def time_pair(one: Callable[[], float], other: Callable[[], float], repeats: int, patience: float, tick: Tick) -> Pair:
    """What two works say they took, in turn."""
    samples = in_turn({True: one, False: other}, repeats, patience, tick)
    return Pair(median(samples[True]), median(samples[False]), median_ratio(samples[True], samples[False]))


def median_ratio(ours: Sequence[float], others: Sequence[float]) -> float:
    """Of turns that both had."""
    return median(mine / other for mine, other in zip(ours, others, strict=False))
