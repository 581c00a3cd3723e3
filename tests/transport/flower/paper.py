"""The paper's sites as a federation: their tables at eight sites."""

from pathlib import Path

from goldfc.agreement import Agreement
from goldfc.message.columns import Column
from goldfc.site.audit import WARNINGS
from goldfc_bench.cases import split_of
from sites import write_agreement, write_policy

CLUSTERS = {"EC": 8, "US": 4}
EIGHT = tuple(f"site-{number}" for number in range(8))


def agreement_of(dataset: str) -> Agreement:
    """On the columns of a data set."""
    width = split_of(f"{dataset}-raw", "paper").X.shape[1]
    return Agreement(federation="paper", columns=tuple(Column(name=f"x{number}") for number in range(width)))


def write_tables(folder: Path, dataset: str, what: Agreement) -> dict[str, Path]:
    """The rows of the paper's sites, as tables at sites."""
    tables = {}
    for name, rows in zip(EIGHT, split_of(f"{dataset}-raw", "paper").rows_per_site(), strict=True):
        data = folder / name / "data.csv"
        data.parent.mkdir(parents=True)
        write_agreement(data.parent, what)
        write_policy(data.parent, f"accept = {list(WARNINGS)}")
        lines = [",".join(column.name for column in what.columns)]
        lines += [",".join(map(repr, row)) for row in rows.tolist()]
        data.write_text("\n".join(lines) + "\n", encoding="utf-8")
        tables[name] = data
    return tables
