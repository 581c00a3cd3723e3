"""Rows are made once: what is in the file and was made by today's code is not made anew."""

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol, TypeVar

from goldfc._parallel import side_by_side
from goldfc_bench.private.federations import OFTEN, Federation
from goldfc_bench.private.run import NONE, PRIVATE
from goldfc_bench.private.run import Work as WorkOfRun
from goldfc_bench.rows import RowFile

# After so many draws there are more only of federations that are drawn often, without rivals and larger eps: of many
# rows even less, for it takes long.
DRAWS_OF_ALL, MOST_EPS, MOST_EPS_OF = 1, 2.0, {"8 x 50,000 rows": 0.5}


class Made(Protocol):
    """A row that knows what it is of, and by which code."""

    @property
    def work(self) -> Hashable:
        """What it is of."""
        ...

    @property
    def code(self) -> str:
        """The digest of what made it."""
        ...

    def to_json(self) -> str:
        """One line."""
        ...


Work = TypeVar("Work", bound=Hashable)
AnyRow = TypeVar("AnyRow", bound=Made)


def most_asked(work: Sequence[WorkOfRun], federations: Sequence[Federation]) -> list[WorkOfRun]:
    """All of the first draws, and of others what is asked for most."""
    often = {one.name for one in federations if one.draws == OFTEN}
    return [
        (name, seed, method, eps)
        for name, seed, method, eps in work
        if seed < DRAWS_OF_ALL
        or (name in often and method in {NONE, PRIVATE} and eps <= MOST_EPS_OF.get(name, MOST_EPS))
    ]


def make_rows(
    work: Sequence[Work],
    row_of: Callable[[Work], AnyRow | None],
    code: str,
    jobs: int,
    file: RowFile[AnyRow],
    on_row: Callable[[], None],
) -> list[AnyRow]:
    """All rows, in the order of the work, without those of what there is no row of."""
    made: dict[Hashable, AnyRow] = {row.work: row for row in file.read() if row.code == code}
    file.rewrite(made.values())
    missing = [one for one in work if one not in made]
    for _ in range(len(work) - len(missing)):
        on_row()
    for row in side_by_side(row_of, missing, jobs, prefer="processes"):
        on_row()
        if row is not None:
            made[row.work] = row
            file.append(row)
    return [made[one] for one in work if one in made]
