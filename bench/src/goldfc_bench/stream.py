"""Tables larger than memory: how much memory and time `goldfc summarize` takes for files of several gigabytes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray
from goldfc.agreement import FILE
from goldfc.files import PRIVATE_FOLDER
from goldfc.message.columns import Column
from goldfc.message.summary import Summary
from goldfc.message.wire import decode
from goldfc.site.init import agreement_text

FEATURES, CLUSTERS, ROWS_AT_A_TIME = 20, 30, 10_000
# Every value as a sign, three digits, a point and five digits, so that files of numbers are soon written.
DIGITS, DECIMALS = 8, 5


# Files of up to so many megabytes are also read by pyarrow, as a whole, in turn with goldfc.
MOST_READ, TURNS = 2_000.0, 3
READ = """
import sys, time
from pyarrow import csv
for _ in range(3):
    start, cpu = time.perf_counter(), time.process_time()
    csv.read_csv(sys.argv[1])
    print(time.perf_counter() - start, time.process_time() - cpu)
"""
# A process counts as its own peak what its parent held when it began, so the parent is a small one.
LAUNCH = """
import json, os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
seconds = time.perf_counter() - start
print(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6]))
sys.exit(os.waitstatus_to_exitcode(status))
"""


@dataclass(frozen=True)
class Used:
    """What a command took."""

    seconds: float
    cpu_seconds: float
    peak_megabytes: float


@dataclass(frozen=True)
class Measurement:
    """One file."""

    megabytes: float
    rows: int
    used: Used
    micro_clusters: int
    read: tuple[float, float] | None  # by pyarrow alone: seconds, and those of the processors

    @property
    def beside_reading(self) -> str:
        """How long it takes to read it, and how many times that this is."""
        if self.read is None:
            return "- | -"
        seconds, cpu = self.read
        times, cpu_times = self.used.seconds / seconds, self.used.cpu_seconds / cpu
        return f"{seconds:.2f} s ({cpu:.2f} s) | {times:.1f} ({cpu_times:.1f})"


def measure(folder: Path, megabytes: float) -> Measurement:
    """Write a file, summarise it as a person would, and remove it; of several turns, the median."""
    data, out = folder / "data.csv", folder / "site.summary"
    rows = write_table(data, megabytes)
    columns = [Column(name=f"column{number}") for number in range(FEATURES)]
    (folder / FILE).write_text(agreement_text("stream", columns, None), encoding="utf-8")
    size = data.stat().st_size / 1e6
    words = ["-c", "from goldfc.cli import main; main()", "summarize", str(data), "-o", str(out)]
    used, read = list[Used](), list[tuple[float, float]]()
    for _ in range(TURNS if size <= MOST_READ else 1):
        if size <= MOST_READ:
            read += seconds_to_read(data)
        used.append(used_by([sys.executable, *words], folder))
        shutil.rmtree(folder / PRIVATE_FOLDER)
    data.unlink()
    summary = Summary.from_message(decode(out.read_bytes()))
    middle = sorted(used, key=lambda one: one.seconds)[len(used) // 2]
    both = (median(wall for wall, _ in read), median(cpu for _, cpu in read)) if read else None
    return Measurement(size, rows, middle, len(summary.centroids), both)


def seconds_to_read(data: Path) -> list[tuple[float, float]]:
    """By pyarrow, in a process of its own: the calls alone, without starting Python; and seconds of the processors."""
    command = [sys.executable, "-c", READ, str(data)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)  # noqa: S603 (our own command)
    numbers = [float(number) for number in done.stdout.split()]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def used_by(command: Sequence[str], folder: Path) -> Used:
    """Run it, and say what it took, from start to end."""
    words = [sys.executable, "-c", LAUNCH, *command]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # modules are compiled once, as where it is installed
    done = subprocess.run(words, cwd=folder, env=env, stdout=subprocess.PIPE, check=True)  # noqa: S603 (our own command)
    return Used(*json.loads(done.stdout))


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
which some 200 MB are Python and its libraries. The time is that of the whole command: starting Python, reading,
learning, the audit, and writing what stays at the site; CPU time is told beside the time that went by, because other
work may have been done on the {cores} cores (load when it began: {load:.1f}).

Files of up to {most:g} GB are summarised {turns} times, in turn with `pyarrow.csv.read_csv`, which reads the whole file
into memory and does nothing else: the calls alone, three in a process. The medians are told, in brackets those of CPU
time. The file is in the system's cache all along.

| file | rows | peak memory | time | CPU time | file per second | pyarrow reads it in | times that | micro-clusters |
|---|---|---|---|---|---|---|---|---|
{lines}
"""


def as_markdown(measurements: Sequence[Measurement], command: str, load: float) -> str:
    """The page."""
    lines = [
        f"| {one.megabytes / 1000:.2f} GB | {one.rows:,} "
        f"| {one.used.peak_megabytes:.0f} MB | {one.used.seconds:.1f} s "
        f"| {one.used.cpu_seconds:.1f} s | {one.megabytes / one.used.seconds:.0f} MB "
        f"| {one.beside_reading} | {one.micro_clusters} |"
        for one in measurements
    ]
    return PAGE.format(
        command=command,
        features=FEATURES,
        clusters=CLUSTERS,
        cores=os.cpu_count(),
        load=load,
        most=MOST_READ / 1000.0,
        turns=TURNS,
        lines="\n".join(lines),
    )
