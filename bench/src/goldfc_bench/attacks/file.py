"""The rows of the attacks in a file: they take long, and nobody wants to lose them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from goldfc_bench.attacks.run import Row, Work, all_rows
from goldfc_bench.digest import digest_of
from goldfc_bench.rows import RowFile


def file_of_rows(path: Path) -> RowFile[Row]:
    """Rows at a path."""
    return RowFile(path, Row.from_json)


def code_of_rows() -> str:
    """The digest of what makes them."""
    return digest_of("goldfc_bench.attacks.run")


def make_rows(
    work: Sequence[Work], n_targets: int, jobs: int, file: RowFile[Row], on_row: Callable[[], None]
) -> list[Row]:
    """Make the rows that are not yet in the file, or whose code has changed, and give all, in the order of the work."""
    code, there = code_of_rows(), file.read()
    made = {row.work: row for row in there if row.code == code or row.work not in set(work)}
    file.rewrite(made.values())
    missing = [one for one in work if one not in made]
    for row in all_rows(missing, n_targets, jobs):
        on_row()
        if row is not None:
            made[row.work] = replace(row, code=code)
            file.append(made[row.work])
    for _ in range(len(work) - len(missing)):
        on_row()
    return [made[one] for one in work if one in made]
