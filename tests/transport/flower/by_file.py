"""How a federation ends without a network."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from goldfc.agreement import Agreement
from goldfc.message.wire import encode
from goldfc.server.round import fuse_admitted
from goldfc.site.labels import header_text, labels_of, lines_text
from goldfc.site.send import draft_summary
from goldfc.site.table.readers import read_all
from goldfc.site.table.table import as_table


def in_one_process(
    tables: dict[str, Path], what: Agreement, n_clusters: int
) -> tuple[dict[str, bytes], bytes, dict[str, str]]:
    """Everybody's summary, the model and everybody's labels, without a network."""
    rows = {name: as_table(read_all(data), what.columns) for name, data in tables.items()}
    summaries = {name: draft_summary(rows[name], name, what, data).summary for name, data in tables.items()}
    model = fuse_admitted(list(summaries.values()), what, n_clusters).model
    labels = {
        name: header_text("row") + lines_text(next(labels_of(table, model)), model.fingerprint)
        for name, table in rows.items()
    }
    return {name: encode(one.to_message()) for name, one in summaries.items()}, encode(model.to_message()), labels


def by_file(
    folder: Path, out: Path, what: Agreement, names: Sequence[str], n_clusters: int
) -> tuple[bytes, dict[str, str]]:
    """The model and the labels of the same tables without Flower; the summaries must be those that came over it."""
    tables = {name: out / "again" / name / "data.csv" for name in names}
    for name, data in tables.items():
        data.parent.mkdir(parents=True)
        shutil.copy(folder / name / "data.csv", data)
    summaries, model, labels = in_one_process(tables, what, n_clusters)
    for name in names:
        assert summaries[name] == (out / "accepted" / f"{name}.summary").read_bytes()
    return model, labels
