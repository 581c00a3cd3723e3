"""How long somebody waits for the first summary on a new machine: nothing is compiled yet."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from goldfc._types import FloatArray
from goldfc_bench.scale.clock import seconds, time_pair
from goldfc_bench.scale.parts import Section, Table, Target, Tick, in_seconds, spaced, times
from goldfc_bench.scale.plan import FEATURES, Plan

# At most so many times as long as importing scikit-learn's clustering.
LIMIT = 4.0
SUMMARIZE = (sys.executable, "-c", "from goldfc.cli import main; main()", "summarize", "data.csv", "-o", "site.summary")
IMPORT = (sys.executable, "-c", "import sklearn.cluster")
TEXT = """\
`goldfc summarize` of a small table, from the command to the message, in a folder and with a compiler's cache
(NUMBA_CACHE_DIR) of its own each time, as on a machine where it has never run; against `import sklearn.cluster` in a
new Python, which whoever clusters has to wait for."""


@dataclass(frozen=True)
class First:
    """Medians over the repeats."""

    rows: int
    features: int
    seconds_summarize: float
    seconds_import: float
    ratio: float


def steps(plan: Plan, repeats: int) -> int:  # noqa: ARG001
    """How often it ticks."""
    return 2 * repeats


def measure(plan: Plan, repeats: int, tick: Tick) -> Section:
    """Both in turn, each time in a new process."""
    rows = np.random.default_rng(0).normal(size=(plan.first, FEATURES))
    works = lambda: seconds_to_summarize(rows), lambda: seconds(lambda: run(IMPORT))
    return section(First(plan.first, FEATURES, *time_pair(*works, repeats, plan.patience, tick)))


def seconds_to_summarize(rows: FloatArray) -> float:
    """As a person would, where nothing has been compiled."""
    with TemporaryDirectory() as scratch:
        folder, header = Path(scratch), ",".join(f"x{number}" for number in range(rows.shape[1]))
        np.savetxt(folder / "data.csv", rows, fmt="%.6f", delimiter=",", header=header, comments="")
        return seconds(lambda: run(SUMMARIZE, folder))


def run(command: Sequence[str], folder: Path | None = None) -> None:
    """A command in a new process, which is to succeed."""
    env = os.environ if folder is None else {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}
    subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)  # noqa: S603 (our own commands)


def section(first: First) -> Section:
    """For the page."""
    what = f"first `goldfc summarize`, {spaced(first.rows)} x {first.features}"
    taken = in_seconds(first.seconds_summarize), in_seconds(first.seconds_import), times(first.ratio)
    columns = ("what", "seconds", "import sklearn.cluster", "ratio", "at most")
    target = Target(f"{what} / import sklearn.cluster", first.ratio, LIMIT)
    table = Table(columns, [(what, *taken, f"{LIMIT:g}")])
    return Section("first", "The first summary", TEXT, table, [target], [asdict(first)])
