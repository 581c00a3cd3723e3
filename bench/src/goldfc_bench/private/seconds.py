"""How long `goldfc summarize` takes at one site, noise included; beside the level `suppressed` with its audit."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from threadpoolctl import threadpool_limits

from goldfc.agreement import Agreement
from goldfc.message.columns import Column
from goldfc.site.policy import Policy
from goldfc.site.private.send import Request, send_privately
from goldfc.site.send import draft_summary, send
from goldfc.site.table.table import open_table

SIZES: tuple[int, ...] = (5_000, 1_000_000)
N_FEATURES, N_CLUSTERS, REACH = 20, 10, 20.0
COLUMNS = tuple(Column(name=f"x{number}", range=(-REACH, REACH)) for number in range(N_FEATURES))


def seconds_of(size: int) -> Iterator[float]:
    """Of a processor, by level, of a table in Parquet."""
    with TemporaryDirectory() as folder, threadpool_limits(limits=1):
        data = Path(folder, "data.parquet")
        write_table(data, size)
        ways: dict[str, Callable[[Path, Agreement], object]] = {"private": privately, "suppressed": suppressed}
        for level, way in ways.items():
            begin = time.process_time()
            way(data, Agreement(federation="time", privacy=level, columns=COLUMNS))
            yield time.process_time() - begin


def write_table(path: Path, size: int) -> None:
    """Clusters that are well apart."""
    rng = np.random.default_rng(0)
    means = 3.0 * rng.standard_normal((N_CLUSTERS, N_FEATURES))
    rows = means[rng.integers(N_CLUSTERS, size=size)] + rng.standard_normal((size, N_FEATURES))
    parquet.write_table(pa.table({column.name: rows[:, n] for n, column in enumerate(COLUMNS)}), path)


def privately(data: Path, agreement: Agreement) -> None:
    """A message at the level `private`."""
    request = cast("Request", Request.of("a", agreement, Policy()))
    with open_table(data, COLUMNS, drop=True, refuse="columns", guess=False) as table:
        send_privately(request, table, data, Policy(), data.with_name("a.summary"), None)


def suppressed(data: Path, agreement: Agreement) -> None:
    """And at the level `suppressed`."""
    with open_table(data, COLUMNS) as table:
        draft = draft_summary(table, "b", agreement, data)
        send(draft, agreement, data, data.with_name("b.summary"), key=None, accept_risk=True)
