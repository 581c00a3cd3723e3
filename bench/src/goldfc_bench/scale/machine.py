"""What the machine can do at its best: copy memory, and multiply matrices, with one thread."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldfc_bench.scale.clock import seconds
from goldfc_bench.scale.plan import Plan


@dataclass(frozen=True)
class Machine:
    """Per second, the best of a few tries: bytes read and written by a copy, operations of a matrix product."""

    bandwidth: float
    flops_float64: float
    flops_float32: float

    @property
    def sentence(self) -> str:
        """For the page."""
        return (
            f"One thread of this machine copies {self.bandwidth / 1e9:.1f} GB a second (read and written), and does "
            f"{self.flops_float64 / 1e9:.0f} billion operations a second in a product of float64 matrices, "
            f"{self.flops_float32 / 1e9:.0f} in one of float32."
        )


def measure_machine(plan: Plan, tries: int = 5) -> Machine:
    """A large copy, and products that stay in the cache."""
    return Machine(
        bandwidth=copy_bandwidth(plan.copied, tries),
        flops_float64=flop_rate(plan.multiplied, np.float64, tries),
        flops_float32=flop_rate(plan.multiplied, np.float32, tries),
    )


def copy_bandwidth(numbers: int, tries: int) -> float:
    """Bytes a second, read and written."""
    source, target = np.ones(numbers), np.zeros(numbers)
    return 2.0 * source.nbytes / best_of(tries, lambda: np.copyto(target, source))


def flop_rate(side: int, kind: type[np.floating[Any]], tries: int) -> float:
    """Multiplications and additions a second."""
    one: NDArray[np.floating[Any]] = np.random.default_rng(0).normal(size=(side, side)).astype(kind)
    return 2.0 * side**3 / best_of(tries, lambda: one @ one)


def best_of(tries: int, work: Callable[[], object]) -> float:
    """The least seconds: what the machine can do when nobody is in the way."""
    return min(seconds(work) for _ in range(tries))
