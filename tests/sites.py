"""A small federation by files, and rows that are counted, for tests."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goldfc import Summary, summarize
from goldfc._types import FloatArray, RowLabels
from goldfc.agreement import Agreement, ListedSite, Server, context_of, read_agreement
from goldfc.message.columns import Column
from goldfc.message.envelope import PrivateKey, seal
from goldfc.message.wire import encode
from goldfc.server.one_shot import fusion_of
from goldfc.site.table.table import Table

COLUMNS = (Column(name="age", unit="years", range=(0.0, 120.0)), Column(name="pressure", unit="mmHg"))
NAMES = ("east", "north", "south", "west")


class Counted:
    """Rows that are not an array: copies of what is asked for, and how many rows were."""

    def __init__(self, rows: FloatArray) -> None:
        self._rows = rows
        self.shape = rows.shape[0], rows.shape[1]
        self.rows_read = 0

    def read(self, start: int, stop: int) -> FloatArray:
        """A copy of a block."""
        self.rows_read += stop - start
        return self._rows[start:stop].copy()

    def take(self, places: NDArray[np.integer]) -> FloatArray:
        """A copy of some rows."""
        self.rows_read += len(places)
        return np.asarray(self._rows[places])


def rows_of(site: int, n_rows: int = 120) -> FloatArray:
    """Rows of a site: two of three kinds."""
    rng = np.random.default_rng(site)
    kind = rng.choice([site % 3, (site + 1) % 3], n_rows)
    centres = np.array([[30.0, 110.0], [60.0, 150.0], [80.0, 120.0]])
    return np.asarray(centres[kind] + rng.normal(size=(n_rows, 2)) * [3.0, 5.0])


def rows_in(table: Table) -> FloatArray:
    """All rows of a table, wherever they are."""
    return table.rows.read(0, table.rows.shape[0])


def agreement(**changes: object) -> Agreement:
    """What these sites agreed on."""
    return Agreement.model_validate({"federation": "wards", "round": 3, "columns": COLUMNS, **changes})


def write_policy(folder: Path, *lines: str) -> Path:
    """A site's policy, line by line."""
    path = folder / "policy.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_agreement(folder: Path, what: Agreement) -> None:
    """As its file; only what these tests change is written."""
    lines = [f'federation = "{what.federation}"', f"round = {what.round}", f'privacy = "{what.privacy}"']
    if what.repeats:
        lines.append("repeats = true")
    if what.deadline is not None:
        lines.append(f"deadline = {what.deadline.isoformat()}")
    lines += [
        "[limits]",
        f"least_sites = {what.limits.least_sites}",
        f"most_micro_clusters = {what.limits.most_micro_clusters}",
        f"sites_behind = {what.limits.sites_behind}",
    ]
    if what.server.key:
        lines += ["[server]", f'key = "{what.server.key}"']
    for site in what.sites:
        lines += ["[[sites]]", f'name = "{site.name}"'] + ([f'key = "{site.key}"'] if site.key else [])
    for column in what.columns:
        lines += ["[[columns]]", f'name = "{column.name}"', f'kind = "{column.kind}"', f'unit = "{column.unit}"']
        lines += [f"categories = {list(column.categories)}"] if column.categories else []
        lines += [f"range = [{column.range[0]}, {column.range[1]}]"] if column.range else []
    (folder / "federation.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert read_agreement(folder / "federation.toml") == what


@cache
def summary_of(number: int, name: str, what: Agreement) -> tuple[Summary, RowLabels]:
    """What a site sends, and what it keeps to itself; made once, since a site looks at it like an attacker."""
    return summarize(rows_of(number), name, fusion_of(what).task, terms=what.terms)


def bodies(what: Agreement, names: tuple[str, ...] = NAMES) -> dict[str, bytes]:
    """The messages of some sites, not sealed."""
    return {name: encode(summary_of(number, name, what)[0].to_message()) for number, name in enumerate(names)}


@dataclass(frozen=True)
class Keys:
    """Everybody's."""

    server: PrivateKey
    sites: dict[str, PrivateKey]

    @classmethod
    def new(cls, names: tuple[str, ...] = NAMES) -> "Keys":
        """Keys that nobody has."""
        return cls(PrivateKey.new(), {name: PrivateKey.new() for name in names})

    def agreement(self, **changes: object) -> Agreement:
        """What these sites agreed on, with everybody's public key."""
        sites = tuple(ListedSite(name=name, key=key.public.text) for name, key in self.sites.items())
        return agreement(server=Server(key=self.server.public.text), sites=sites, **changes)

    def sealed(self, body: bytes, name: str, what: Agreement, sender: PrivateKey | None = None) -> bytes:
        """A message to the server."""
        context = context_of(what, name, "server")
        return seal(body, context, sender or self.sites[name], self.server.public)
