"""A result as lines for a terminal, and as a table for a spreadsheet."""

import csv
from collections.abc import Iterator
from io import StringIO
from typing import Any

from goldfc.report.describe import MOST_LISTED, Line
from goldfc.report.result import Result
from goldfc.site.labels import as_text

# What every line of the table says of its cluster, behind what it says of a column.
OF_THE_CLUSTER = ("share", "rows", "micro_clusters", "sites", "rule", "precision", "covered")


def list_clusters(result: Result) -> Iterator[tuple[str, list[Line]]]:
    """Every cluster, and what there is to say of it."""
    for place, line in enumerate(result.cluster_lines()):
        near = result.likenesses.nearest(place)
        size = f"{percent(line['share'])} of all" + ("" if line["rows"] is None else f", {line['rows']:,} rows")
        trust = f"{percent(line['precision'])} of what fits is of it, {percent(line['covered'])} of it fits"
        lines = [
            ("size", f"{size}; {line['micro_clusters']} micro-clusters of {line['sites']}"),
            ("what sets it apart", line["sets_apart"] or "nothing"),
            ("rule", f"{line['rule']} ({trust})"),
        ]
        if near is not None:
            apart = result.likenesses.between(place, near) or "little"
            lines.append(("most like", f"{result.titles[near]}; what tells it from that: {apart}"))
        yield f"Cluster {result.titles[place]}", lines


def percent(share: float) -> str:
    """A share as one would say it."""
    return f"{100.0 * share:.0f} %"


def list_contrast(result: Result, one: int, other: int) -> Iterator[Line]:
    """What tells two clusters apart, the most different column first."""
    features = {feature.name: feature for feature in result.likenesses.features}
    for line in list(result.contrast_lines(one, other))[:MOST_LISTED]:
        feature = features[line["column"]]
        means = f"{feature.text(line['first'])} against {feature.with_unit(line['second'])}"
        yield line["column"], f"{means}, {abs(line['apart']):.1f} spreads apart"


def csv_of(result: Result) -> bytes:
    """Every column in every cluster, with what there is to say of the cluster."""
    of_clusters = {line["cluster"]: line for line in result.cluster_lines()}
    lines = [
        line | {name: of_clusters[line["cluster"]][name] for name in OF_THE_CLUSTER} for line in result.profile_lines()
    ]
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(lines[0])
    writer.writerows([cell(value) for value in line.values()] for line in lines)
    return text.getvalue().encode()


def cell(value: Any) -> Any:
    """One that no spreadsheet takes for a formula; numbers with as many digits as they are worth."""
    if isinstance(value, str):
        return as_text(value)
    return f"{value:.6g}" if isinstance(value, float) else value


def is_csv_of_result(head: bytes) -> bool:
    """Whether a file that begins so is such a table."""
    return head.startswith(b"cluster,name,column,unit,mean,")
