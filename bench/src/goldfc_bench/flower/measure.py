"""What the network costs: a round on Flower's simulation engine against the same round in one process."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from goldfc.agreement import Agreement, parse_agreement
from goldfc.message.columns import Column
from goldfc.message.wire import encode
from goldfc.server.round import fuse_admitted
from goldfc.site.audit import WARNINGS
from goldfc.site.init import agreement_text
from goldfc.site.labels import labels_of
from goldfc.site.policy import POLICY
from goldfc.site.send import draft_summary, send
from goldfc.site.table.readers import read_all
from goldfc.site.table.table import as_table
from goldfc.transport.flower.job import Job, Status
from goldfc.transport.flower.simulate import simulate_round

CLUSTERS = 5


def measure(folder: Path, n_nodes: int, n_rows: int = 100) -> Iterator[str]:
    """A line of the table: both times, and whether the models are the same."""
    agreement = write_sites(folder, n_nodes, n_rows)
    begin = time.perf_counter()
    alone = in_one_process(folder, agreement)
    middle = time.perf_counter()
    tables = tuple(map(str, sorted((folder / "tables").glob("*.csv"))))
    out = folder / "out"
    out.mkdir()
    job = Job(
        federation=str(folder / "federation.toml"),
        out=str(out),
        clusters=CLUSTERS,
        expect=n_nodes,
        answer=1800.0,
        tables=tables,
    )
    job.write(job.file)
    simulate_round(job)
    end = time.perf_counter()
    status = Status.read(out / "status.json")
    same = (out / "global.model").read_bytes() == alone
    yield (
        f"| {n_nodes} | {middle - begin:.1f} s | {end - middle:.1f} s | {1000.0 * (end - middle) / n_nodes:.0f} ms "
        f"| {len(status.took_part)} took part, {len(status.labelled)} labelled | {'the same' if same else 'ANOTHER'} |"
    )


def write_sites(folder: Path, n_nodes: int, n_rows: int) -> Agreement:
    """Tables of rows in five clusters, of which every site has two."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CLUSTERS, 4)) * 8.0
    columns = [Column(name=f"x{number}") for number in range(4)]
    (folder / "tables").mkdir(parents=True)
    text = agreement_text("measured", columns, None)
    (folder / "federation.toml").write_text(text, encoding="utf-8")
    # Made-up rows have nothing to hide: that members can be guessed is no reason to stay away.
    (folder / "tables" / POLICY).write_text(f"accept = {list(WARNINGS)}\n", encoding="utf-8")
    for number in range(n_nodes):
        kind = rng.choice(CLUSTERS, 2, replace=False)[rng.integers(0, 2, n_rows)]
        rows = centres[kind] + rng.normal(size=(n_rows, 4))
        lines = [",".join(column.name for column in columns), *(",".join(map(repr, row)) for row in rows.tolist())]
        path = folder / "tables" / f"site-{number:04}.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return parse_agreement(text, "federation.toml")


def in_one_process(folder: Path, agreement: Agreement) -> bytes:
    """The same work without a network: read, summarise, audit, fuse, label."""
    drafts = []
    tables = {path: as_table(read_all(path), agreement.columns) for path in sorted((folder / "tables").glob("*.csv"))}
    for path, table in tables.items():
        place = folder / "alone" / path.stem / "data.csv"
        place.parent.mkdir(parents=True)
        drafts.append(draft_summary(table, path.stem, agreement, place))
        send(drafts[-1], agreement, place, None, key=None, accept_risk=True)
    model = fuse_admitted([draft.summary for draft in drafts], agreement, CLUSTERS).model
    for table in tables.values():
        list(labels_of(table, model))
    return encode(model.to_message())
