"""The families as a picture: one line for each, and dots for what the default and others reach."""

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from goldfc_bench.report.figures import FONT, INK, LINE, SOFT, as_svg, clean_style
from goldfc_bench.shapes.ours import DEFAULT
from goldfc_bench.shapes.results import Results
from goldfc_bench.shapes.rivals import K_MEANS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEADINGS = {
    "convex": "convex clusters",
    "many": "many clusters",
    "wide": "many features",
    "curved": "curved clusters",
    "rough": "rough data",
    "mixed": "mixed tables",
}
# Inches.
WIDTH, STEP, LEFT, RIGHT, TOP, BOTTOM = 8.6, 0.245, 2.15, 0.25, 0.62, 0.5
# From the back to the front.
DOTS: dict[str, dict[str, Any]] = {
    "best pooled algorithm": {"marker": "D", "color": "#44aa99", "markersize": 7.0, "alpha": 0.9},
    "pooled k-means": {"marker": "|", "color": INK, "markersize": 11.0, "markeredgewidth": 2.0},
    "best of its kinds alone": {
        **{"marker": "o", "color": "#cc3311", "markersize": 10.0},
        **{"markerfacecolor": "none", "markeredgewidth": 1.2},
    },
    "default, eight sites": {"marker": "o", "color": "#cc3311", "markersize": 5.5},
}


def draw_families(results: Results) -> str:
    """The whole picture."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    places = lines_of(results)
    height = TOP + BOTTOM + STEP * (max(places.values()) + 1)
    with clean_style():
        figure = Figure(figsize=(WIDTH, height))
        axes = figure.add_axes(
            (LEFT / WIDTH, BOTTOM / height, (WIDTH - LEFT - RIGHT) / WIDTH, 1 - (TOP + BOTTOM) / height)
        )
        draw_dots(axes, results, places)
        set_axes(axes, places)
        name_dots(figure, axes)
        return as_svg(figure)


def lines_of(results: Results) -> dict[str, int]:
    """Which line a family or a heading is on, from above."""
    order = sorted(results.families, key=lambda family: list(HEADINGS).index(family.kind))
    titles = []
    for kind, families in groupby(order, key=lambda family: family.kind):
        titles += [HEADINGS[kind], *(family.name for family in families)]
    return {title: number for number, title in enumerate(titles)}


def figures_of(results: Results, family: str) -> dict[str, float]:
    """What the dots show."""
    return {
        "best pooled algorithm": results.best_pooled(family)[1],
        "pooled k-means": results.ari(family, K_MEANS),
        "best of its kinds alone": results.best_kind(family)[1],
        "default, eight sites": results.ari(family, DEFAULT),
    }


def draw_dots(axes: "Axes", results: Results, places: dict[str, int]) -> None:
    """All dots of a kind at a time; a bar from the default to the best pooled algorithm."""
    figures = {name: figures_of(results, name) for name in results.names}
    for name, own in figures.items():
        ends = (own["default, eight sites"], own["best pooled algorithm"])
        axes.plot(ends, [places[name]] * 2, color="#c3c9d3", linewidth=2.2, zorder=2, solid_capstyle="butt")
    for depth, (title, style) in enumerate(DOTS.items()):
        x = np.array([own[title] for own in figures.values()])
        y = [places[name] for name in figures]
        axes.plot(x, y, linestyle="none", label=title, zorder=3 + depth, clip_on=False, **style)


def set_axes(axes: "Axes", places: dict[str, int]) -> None:
    """Names at the left, a thin line for every family, headings in bold."""
    axes.set_xlim(-0.03, 1.02)
    axes.set_ylim(max(places.values()) + 0.6, -0.6)
    axes.set_yticks(list(places.values()), list(places))
    for title, label in zip(places, axes.get_yticklabels(), strict=True):
        heading = title in HEADINGS.values()
        label.set(color=SOFT if heading else INK, fontweight="bold" if heading else "normal", fontsize=FONT - heading)
    axes.grid(visible=False, axis="y")
    axes.hlines(
        [at for title, at in places.items() if title not in HEADINGS.values()], -0.03, 1.02, LINE, linewidth=0.7
    )
    axes.spines["left"].set_visible(False)
    axes.set_xticks(np.linspace(0.0, 1.0, 6))
    axes.set_xlabel("adjusted Rand index, number of clusters given")


def name_dots(figure: "Figure", axes: "Axes") -> None:
    """Above everything, the default first."""
    dots, names = axes.get_legend_handles_labels()
    figure.legend(
        dots[::-1], names[::-1], loc="upper center", ncols=len(names), frameon=False, fontsize=FONT, columnspacing=1.4
    )
