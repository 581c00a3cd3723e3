"""Experiment 6: seconds against rows and against features, and how fast they grow."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from goldfc_bench.report.figures import Curve, draw_times
from goldfc_bench.report.parts import Drawing, Entry, Heading, Panels, Part, Table, Text, entries
from goldfc_bench.report.ranks import growth_exponent
from goldfc_bench.report.tables import (
    UNDEFINED,
    curves_of,
    failure_tables,
    figure_of,
    grouped,
    in_order,
    number,
    ranges,
    seconds_of,
)
from goldfc_bench.run import Run

WHAT = (
    "Seconds at all sites, one after the other, and at the server, on one core, compiled beforehand; both axes are "
    "logarithmic, so that a power of the size is a straight line. Hollow and not joined: the run did not end."
)
EXPONENT = (
    "The exponent b of seconds = a · size^b, by least squares on the logarithms of all runs that ended; 1 is linear. "
    "What takes the same time at every size makes it smaller, and so does a limit that large sizes do not meet."
)
Growths = Mapping[str, Sequence[Curve]]


def seconds(runs: Sequence[Run]) -> Iterator[Part]:
    """Two panels, the exponents, and what did not end."""
    yield Text(WHAT)
    growths = growth_curves(runs)
    tried = growth_curves([run for run in runs if run.was_tried])
    yield Panels([_panel(symbol, curves) for symbol, curves in tried.items()])
    yield Heading("How fast seconds grow")
    yield Text(EXPONENT)
    yield growth_table(growths)
    yield from failure_tables("time", runs, lambda bad: _where(bad, runs))


def growth_curves(runs: Sequence[Run]) -> Growths:
    """Seconds by method, against each size that varies."""
    return {
        symbol: curves_of(own, size, lambda group: figure_of(map(seconds_of, group)).mean)
        for symbol, size, other in (("N", rows_of, features_of), ("d", features_of, rows_of))
        if (own := varying(runs, size, other))
    }


def rows_of(run: Run) -> int:
    """N of a synthetic set called SD-<N>x<d>."""
    return _shape(run)[0]


def features_of(run: Run) -> int:
    """Its d."""
    return _shape(run)[1]


def _shape(run: Run) -> tuple[int, int]:
    match = re.fullmatch(r"SD-(\d+)x(\d+)", run.dataset)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def varying(runs: Sequence[Run], size: Callable[[Run], int], other: Callable[[Run], int]) -> list[Run]:
    """The runs in which one size varies while the other stays."""
    groups = grouped(runs, other).values()
    return [run for group in groups if len({size(run) for run in group}) > 1 for run in group]


def _where(bad: Sequence[Run], runs: Sequence[Run]) -> str:
    texts = []
    for features, own in grouped(bad, features_of).items():
        every = [rows_of(run) for run in runs if features_of(run) == features]
        texts.append(f"{ranges(map(rows_of, own), every)} rows of {features:,} features")
    return "; ".join(texts)


def _panel(symbol: str, curves: Sequence[Curve]) -> Drawing:
    name = {"N": "rows", "d": "features"}[symbol]
    svg = draw_times(f"Seconds against {name}", curves, f"{name} {symbol}", logarithmic="xy")
    return Drawing(f"time-{name}", f"Seconds against the number of {name}, one line a method", svg)


def growth_table(growths: Growths) -> Table:
    """For each size that varies: the exponent, how many runs ended, and the largest of them."""
    by_method = {symbol: {curve.name: curve for curve in curves} for symbol, curves in growths.items()}
    methods = in_order(name for curves in by_method.values() for name in curves)
    titles = ("exponent in {}", "ended", "largest {} that ended")
    return Table(
        name="time-growth",
        title="Exponents",
        columns=["", *(title.format(symbol) for symbol in growths for title in titles)],
        rows=[
            [Entry(method), *(entry for curves in by_method.values() for entry in _growth(curves.get(method)))]
            for method in methods
        ],
    )


def _growth(curve: Curve | None) -> list[Entry]:
    if curve is None:
        return entries(UNDEFINED, UNDEFINED, UNDEFINED)
    ended = curve.only(curve.ended)
    exponent = number(growth_exponent(ended.x, ended.y), ".2f")
    largest = f"{ended.x[-1]:,.0f} in {ended.y[-1]:.2f} s" if len(ended.x) else UNDEFINED
    return entries(exponent, f"{np.count_nonzero(curve.ended)} of {len(curve.x)}", largest)
