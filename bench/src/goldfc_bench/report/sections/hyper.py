"""Experiment 7: GOLD over learning rates and first candidates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from goldfc._types import FloatArray
from goldfc_bench.methods.gold import Gold
from goldfc_bench.report.figures import Heat, draw_heat
from goldfc_bench.report.parts import Drawing, Entry, Heading, Panels, Part, Table, Text, entries
from goldfc_bench.report.tables import (
    EXTERNAL,
    UNDEFINED,
    by_dataset,
    datasets_of,
    failure_tables,
    grouped,
    number,
    score_of,
)
from goldfc_bench.run import Run

WHAT = (
    "Federated scores, mean over the seeds, for every learning rate and every number of first candidates (a fraction "
    "of the rows). Darker is better; within an index, the same step of colour is the same difference on all data sets. "
    "The frame is GOLD's default."
)


def hyper(runs: Sequence[Run]) -> Iterator[Part]:
    """A heat map per index and data set, and the default beside best and worst."""
    surfaces = {index: [surface_of(runs, dataset, index) for dataset in datasets_of(runs)] for index in EXTERNAL}
    yield Text(WHAT)
    for index, own in surfaces.items():
        yield Heading(index)
        span = max(surface.span for surface in own)
        yield Panels([_panel(surface, span) for surface in own])
    yield hyper_table([own[place] for place in range(len(datasets_of(runs))) for own in surfaces.values()])
    yield from failure_tables("hyper", runs, by_dataset)


@dataclass(frozen=True)
class Surface:
    """The mean of an index over a grid of two settings."""

    dataset: str
    index: str
    rates: list[float]
    fractions: list[float]
    means: FloatArray  # rates x fractions

    @property
    def span(self) -> float:
        """From the worst to the best; something even where all are the same."""
        return max(float(np.nanmax(self.means) - np.nanmin(self.means)), 0.01)

    @property
    def at_default(self) -> float:
        """The mean at the default; nan if it is not on the grid."""
        rate, fraction = default()
        if rate not in self.rates or fraction not in self.fractions:
            return np.nan
        return float(self.means[self.rates.index(rate), self.fractions.index(fraction)])


def default() -> tuple[float, float]:
    """GOLD's learning rate and fraction of first candidates."""
    return Gold().learning_rate, Gold().initial_fraction


def surface_of(runs: Sequence[Run], dataset: str, index: str) -> Surface:
    """One data set and index; nan where there are no runs."""
    own = [run for run in runs if run.dataset == dataset]
    groups = grouped(own, lambda run: (run.settings["learning_rate"], run.settings["initial_fraction"]))
    rates, fractions = sorted({rate for rate, _ in groups}), sorted({fraction for _, fraction in groups})
    means = [[score_of(groups.get((rate, f), []), "federated", index).mean for f in fractions] for rate in rates]
    return Surface(dataset, index, rates, fractions, np.array(means))


def _panel(surface: Surface, span: float) -> Drawing:
    heat = Heat(surface.means, surface.rates, surface.fractions, default(), span)
    shows = f"{surface.index} on {surface.dataset} over learning rates and first candidates"
    return Drawing(f"hyper-{surface.index}-{surface.dataset}", shows, draw_heat(surface.dataset, heat))


def hyper_table(surfaces: Sequence[Surface]) -> Table:
    """The default beside the best and the worst of the grid."""
    return Table(
        name="hyper",
        title="GOLD's default beside the best and the worst of the grid (learning rate, fraction)",
        columns=["", "index", "default", "its rank", "best", "median", "worst"],
        rows=[_row(surface) for surface in surfaces],
        folded=True,
    )


def _row(surface: Surface) -> list[Entry]:
    means = surface.means[np.isfinite(surface.means)]
    better = np.count_nonzero(means > surface.at_default)
    return entries(
        surface.dataset,
        surface.index,
        number(surface.at_default),
        f"{1 + better} of {len(means)}" if np.isfinite(surface.at_default) else UNDEFINED,
        _setting(surface, int(np.nanargmax(surface.means))),
        number(float(np.median(means))),
        _setting(surface, int(np.nanargmin(surface.means))),
    )


def _setting(surface: Surface, place: int) -> str:
    row, column = np.unravel_index(place, surface.means.shape)
    return f"{number(surface.means[row, column])} ({surface.rates[row]:g}, {surface.fractions[column]:g})"
