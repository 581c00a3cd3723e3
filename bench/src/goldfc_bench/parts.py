"""Rows that come in parts, against all rows at once: what is found, and how much memory it takes."""

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from goldfc._types import FloatArray, IntArray
from goldfc.agreement import FILE
from goldfc.files import PRIVATE_FOLDER
from goldfc.message.columns import Column
from goldfc.message.summary import Summary
from goldfc.message.task import Task
from goldfc.message.wire import decode
from goldfc.server.one_shot import OneShot
from goldfc.site.init import agreement_text
from goldfc.site.label import predict
from goldfc.site.summarize import summarize
from goldfc_bench.stream import CLUSTERS, FEATURES, ROWS_AT_A_TIME, Used, as_text, mixture, used_by

COMMAND = [sys.executable, "-c", "from goldfc.cli import main; main()", "summarize"]
LIMITS = (5_000, 10_000, 20_000, 50_000, 100_000)
SEPARATE, TOUCHING = "apart", "touching"


@dataclass(frozen=True)
class InParts:
    """What was measured by files."""

    parts: int
    rows: int
    each: tuple[Used, ...]  # one by one
    one: Used  # one part as a table of its own
    whole: Used  # all rows as a table
    ari: float  # between the labels by the message of the parts and by that of the table
    kept_megabytes: float


def measure_parts(parts: int, blocks_each: int, folder: Path, tick: Callable[[], None]) -> InParts:
    """As a person would: one file after the other is added, and with the last one a message is made."""
    columns = [Column(name=f"column{number}") for number in range(FEATURES)]
    (folder / FILE).write_text(agreement_text("parts", columns, None), encoding="utf-8")
    rows = list(islice(mixture(), parts * blocks_each))
    each, out = list[Used](), folder / "site.summary"
    for number in range(parts):
        write_csv(folder / "part.csv", rows[number * blocks_each : (number + 1) * blocks_each])
        last = ["-o", str(out)] if number + 1 == parts else ["--site", "site"]
        each.append(used_by([*COMMAND, "--add", str(folder / "part.csv"), *last], folder))
        tick()
    told = summary_in(out)
    kept = sum(path.stat().st_size for path in (folder / PRIVATE_FOLDER).glob("*.reservoir"))
    shutil.rmtree(folder / PRIVATE_FOLDER)
    one = used_by([*COMMAND, str(folder / "part.csv"), "-o", str(out)], folder)
    shutil.rmtree(folder / PRIVATE_FOLDER)
    write_csv(folder / "whole.csv", rows)
    whole = used_by([*COMMAND, str(folder / "whole.csv"), "-o", str(out)], folder)
    shutil.rmtree(folder / PRIVATE_FOLDER)
    labels = [labelled(one, rows[0], CLUSTERS) for one in (told, summary_in(out))]
    ari = float(adjusted_rand_score(*labels))
    return InParts(parts, len(rows) * ROWS_AT_A_TIME, tuple(each), one, whole, ari, kept / 1e6)


def write_csv(path: Path, blocks: list[FloatArray]) -> None:
    """As a file."""
    with path.open("wb") as file:
        file.write(",".join(f"column{number}" for number in range(FEATURES)).encode() + b"\n")
        file.writelines(map(as_text, blocks))


def summary_in(path: Path) -> Summary:
    """Read back."""
    return Summary.from_message(decode(path.read_bytes()))


def labelled(summary: Summary, rows: FloatArray, clusters: int) -> IntArray:
    """By a model of this summary alone."""
    return predict(OneShot().fuse([summary], clusters, np.random.default_rng(0)), rows)


@dataclass(frozen=True)
class Limited:
    """With a reservoir of so many rows: ARI with the truth, the mean over draws."""

    kept: int
    megabytes: float
    ari: dict[str, float]


def measure_limits(rows: int, draws: int, tick: Callable[[], None]) -> list[Limited]:
    """A sample of many rows against all of them (the last one), in clusters that lie apart, and that touch."""
    limits, found = (*(limit for limit in LIMITS if limit < rows), rows), dict[tuple[str, int], list[float]]()
    for name, apart in ((SEPARATE, 3.0), (TOUCHING, 1.0)):
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            truth = rng.integers(CLUSTERS, size=rows)
            table = rng.normal(scale=apart, size=(CLUSTERS, FEATURES))[truth] + rng.normal(size=(rows, FEATURES))
            for limit in limits:
                places = np.sort(rng.choice(rows, limit, replace=False))
                told, _ = summarize(table[places], "site", Task(), stands_for=None if limit == rows else rows)
                score = adjusted_rand_score(truth, labelled(told, table, CLUSTERS))
                found.setdefault((name, limit), []).append(float(score))
                tick()
    return [
        Limited(
            limit, 8e-6 * limit * FEATURES, {name: float(np.mean(found[name, limit])) for name in (SEPARATE, TOUCHING)}
        )
        for limit in limits
    ]


# --- the page ---

PAGE = """# Rows that come in parts

Made by `{command}`. Other work was done on the cores meanwhile (load when it began: {load:.1f}), so seconds of the
processor are told beside those that went by. Memory is the most that a process held, of which some 150 MB are Python
and its libraries.

## Memory

{parts} files of {rows_each:,} rows with {features} columns ({mixed} clusters) are added one by one by
`goldfc summarize --add`, each in a process of its own; with the last one a message is made. ARI between the labels by
this message and those by the message of all {all_rows:,} rows at once: **{parts_ari:.4f}**. What the site keeps has
{kept:.1f} MB.

| | peak memory | seconds | of the processor |
|---|---|---|---|
{memories}

## How many rows must be kept

ARI with the truth of {limit_rows:,} rows in {features} columns, the mean over {draws}
draws; the last line is the table of all rows. The learner looks at 20,000 rows of a large table, so more are hardly
better. 50,000 are kept.

| rows kept | memory | clusters apart | clusters that touch |
|---|---|---|---|
{limits}
"""


def as_markdown(parts: InParts, limits: Sequence[Limited], draws: int, command: str, load: float) -> str:
    """The page."""
    lines = [
        f"| {one.kept:,} | {one.megabytes:.1f} MB | {one.ari[SEPARATE]:.4f} | {one.ari[TOUCHING]:.4f} |"
        for one in limits
    ]
    return PAGE.format(
        command=command,
        load=load,
        parts=parts.parts,
        rows_each=parts.rows // parts.parts,
        all_rows=parts.rows,
        features=FEATURES,
        mixed=CLUSTERS,
        parts_ari=parts.ari,
        kept=parts.kept_megabytes,
        memories="\n".join(memory_lines(parts)),
        limit_rows=limits[-1].kept,
        draws=draws,
        limits="\n".join(lines),
    )


def memory_lines(parts: InParts) -> list[str]:
    """Of adding, and of tables."""
    named = {
        "the first part is added": parts.each[0],
        "the last but one": parts.each[-2],
        "the last one, and the message": parts.each[-1],
        "one part, summarised as a table": parts.one,
        "all rows, summarised as a table": parts.whole,
    }
    most = max(one.peak_megabytes for one in parts.each)
    lines = [
        f"| {name} | {used.peak_megabytes:.0f} MB | {used.seconds:.1f} | {used.cpu_seconds:.1f} |"
        for name, used in named.items()
    ]
    return [*lines, f"| the most of all {parts.parts} | {most:.0f} MB | | |"]
