"""Tables larger than memory: how much memory and time `goldfc summarize` takes for files of several gigabytes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray
from goldfc.message.summary import Summary
from goldfc.message.wire import decode

FEATURES, CLUSTERS, ROWS_AT_A_TIME = 20, 30, 10_000
# Every value as a sign, three digits, a point and five digits, so that files of numbers are soon written.
DIGITS, DECIMALS = 8, 5


@dataclass(frozen=True)
class Measurement:
    """One file."""

    megabytes: float
    rows: int
    seconds: float
    cpu_seconds: float
    peak_megabytes: float
    micro_clusters: int


def measure(folder: Path, megabytes: float) -> Measurement:
    """Write a file, summarise it as a person would, and remove it."""
    data, out = folder / "data.csv", folder / "site.summary"
    rows = write_table(data, megabytes)
    size = data.stat().st_size / 1e6
    command = [sys.executable, "-c", "from goldfc.cli import main; main()", "summarize", str(data), "-o", str(out)]
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)  # noqa: S603 (our own command)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    data.unlink()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    summary = Summary.from_message(decode(out.read_bytes()))
    return Measurement(
        size, rows, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6, len(summary.centroids)
    )


def write_table(path: Path, megabytes: float) -> int:
    """A CSV file of about that size; returns its rows."""
    rows = 0
    with path.open("wb") as file:
        file.write(",".join(f"column{number}" for number in range(FEATURES)).encode() + b"\n")
        for block in mixture():
            file.write(as_text(block))
            rows += len(block)
            if file.tell() >= megabytes * 1e6:
                return rows
    return rows


def mixture() -> Iterator[FloatArray]:
    """Rows of some clusters, without end."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=30.0, size=(CLUSTERS, FEATURES))
    while True:
        own = rng.integers(CLUSTERS, size=ROWS_AT_A_TIME)
        yield centres[own] + rng.normal(scale=5.0, size=(ROWS_AT_A_TIME, FEATURES))


def as_text(rows: FloatArray) -> bytes:
    """Rows as lines of decimals."""
    whole = np.abs(np.round(rows * 10**DECIMALS)).astype(np.int64)
    signs: NDArray[np.uint8] = np.empty((*rows.shape, DIGITS + 3), dtype=np.uint8)
    signs[..., 0] = np.where(rows < 0.0, ord("-"), ord("0"))
    point = 1 + DIGITS - DECIMALS
    signs[..., point], signs[..., -1] = ord("."), ord(",")
    signs[:, -1, -1] = ord("\n")
    for place in reversed([place for place in range(1, DIGITS + 2) if place != point]):
        whole, digit = np.divmod(whole, 10)
        signs[..., place] = digit + ord("0")
    return signs.tobytes()


PAGE = """# Data larger than memory

Made by `{command}`: a CSV file of {features} columns of numbers ({clusters} Gaussian clusters) is generated, summarised
by `goldfc summarize` in a process of its own, and removed. Memory is the most that this process held (resident set), of
which ~250 MB are Python and its libraries. The time includes learning, the audit, and writing what stays at the site;
CPU time is told beside the time that went by, because other work may have been done on the {cores} cores.

| file | rows | peak memory | time | CPU time | file per second of time | micro-clusters |
|---|---|---|---|---|---|---|
{lines}
"""


def as_markdown(measurements: Sequence[Measurement], command: str) -> str:
    """The page."""
    lines = [
        f"| {one.megabytes / 1000:.2f} GB | {one.rows:,} | {one.peak_megabytes:.0f} MB | {one.seconds:.0f} s "
        f"| {one.cpu_seconds:.0f} s | {one.megabytes / one.seconds:.1f} MB | {one.micro_clusters} |"
        for one in measurements
    ]
    return PAGE.format(
        command=command, features=FEATURES, clusters=CLUSTERS, cores=os.cpu_count(), lines="\n".join(lines)
    )
