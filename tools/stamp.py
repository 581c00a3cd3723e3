"""Keeps rows current over a change of code that changes no results: `tools/stamp.py --since REVISION --because "..."`.

Rows are current by a digest of the code that they were made with (goldfc_bench.digest). Those that were current by the
code of a revision get the digest of the code as it is now; rows that were not, or have none, stay as they are. What was
done and why is noted in benchmarks/stamps.md. Whether results are the same is yours to show, before.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from goldfc_bench.attacks.file import code_of_rows
from goldfc_bench.methods import METHODS, VARIANTS
from goldfc_bench.private import attacks as private_attacks
from goldfc_bench.private import run as private
from goldfc_bench.private.rivals import RIVALS
from goldfc_bench.run import code_of
from goldfc_bench.shapes import run as shapes

ROOT = Path(__file__).parent.parent
NOTES = ROOT / "benchmarks" / "stamps.md"
# Whose rows are told by their folder; all others are runs.
FOLDERS = ("attacks", "private", "shapes")
# How rows of the benchmark of privacy are made.
WAYS = (private.NONE, private.PRIVATE, *RIVALS)

# By what the rows are of, and by method.
Codes = Mapping[str, Mapping[str, str]]


def codes_now() -> Codes:
    """The digests of the code as it is."""
    return {
        "attacks": {"": code_of_rows()},
        "private": {"": private_attacks.code_of_rows(), **dict.fromkeys(WAYS, private.code_of_rows())},
        "shapes": {name: shapes.code_of(name) for name in shapes.ALL},
        "runs": {name: code_of(name) for name in METHODS | VARIANTS},
    }


def codes_of(revision: str) -> Codes:
    """The digests of the code at a revision, worked out by that code."""
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, capture_output=True).stdout  # noqa: S603, S607 (a developer's)
    with TemporaryDirectory() as folder, tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
        path = os.pathsep.join(str(Path(folder, source)) for source in ("src", "bench/src"))
        command = [sys.executable, str(Path(folder, "tools", "stamp.py")), "--show"]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True)  # noqa: S603 (our own)
    codes: Codes = json.loads(done.stdout)
    return codes


def stamped(lines: list[str], before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Rows that were current with the new digest, and the others as they are."""
    for line in lines:
        row: dict[str, Any] = json.loads(line)
        method = row.get("method", "")
        code = row.get("code")
        yield json.dumps({**row, "code": now[method]}) if code and code == before.get(method) else line


def stamp(path: Path, before: Codes, now: Codes) -> int:
    """Stamp the rows of a file; the answer is how many have changed."""
    kind = path.parent.name if path.parent.name in FOLDERS else "runs"
    lines = path.read_text(encoding="utf-8").splitlines()
    after = list(stamped(lines, before[kind], now[kind]))
    path.write_text("".join(f"{line}\n" for line in after), encoding="utf-8")
    return sum(one != other for one, other in zip(lines, after, strict=True))


def main() -> None:
    """Stamp all committed rows, and note it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--since", help="the revision by whose code the rows are current")
    parser.add_argument("--because", help="how it is known that results are the same")
    parser.add_argument("--show", action="store_true", help="only show the digests of the code")
    options = parser.parse_args()
    if options.show:
        print(json.dumps(codes_now()))
        return
    if not (options.since and options.because):
        parser.error("--since and --because are needed")
    before, now = codes_of(options.since), codes_now()
    counts = {path: stamp(path, before, now) for path in sorted((ROOT / "benchmarks").rglob("*.jsonl"))}
    with NOTES.open("a", encoding="utf-8") as notes:
        print(f"- {sum(counts.values()):,} rows that were current at {options.since}: {options.because}", file=notes)
    for path, count in counts.items():
        print(f"{path.relative_to(ROOT)}: {count:,} rows stamped")


if __name__ == "__main__":
    main()
