"""The growth as a picture: seconds against rows, and against features, on logarithmic axes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from goldfc_bench.report.figures import (
    FONT,
    INK,
    SOFT,
    STYLES,
    Style,
    as_svg,
    clean_style,
    scale_axes,
)
from goldfc_bench.scale.growth import BLOCKS, Growth
from goldfc_bench.scale.parts import short
from goldfc_bench.scale.plan import FEATURES, ROWS, SITES
from goldfc_bench.scale.whole import CORESET, K_FED, OURS, POOLED, Race

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES: dict[str, Style] = {
    OURS: STYLES["OneShot"],
    BLOCKS: Style("#b7791f", "o", thick=True),
    K_FED: STYLES["k-Fed"],
    CORESET: STYLES["coreset k-means"],
    POOLED: STYLES["pooled k-means"],
}
TITLES = {OURS: f"OneShot, {SITES} sites", BLOCKS: "GOLD in blocks, 1 site"}


def draw_growth(races: Sequence[Race], growths: Sequence[Growth]) -> str:
    """Two panels, and the names of the lines below them."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    with clean_style():
        figure = Figure(figsize=(8.6, 4.3))
        panels = {
            "rows": figure.add_axes((0.07, 0.26, 0.5, 0.63)),
            "features": figure.add_axes((0.66, 0.26, 0.32, 0.63)),
        }
        for along, axes in panels.items():
            draw_panel(axes, along, races, growths)
        name_lines(figure, panels["rows"])
        return as_svg(figure)


def draw_panel(axes: "Axes", along: str, races: Sequence[Race], growths: Sequence[Growth]) -> None:
    """Lines, a slope to compare them with, and titles."""
    for name, style in LINES.items():
        x, y = points_of(name, along, races, growths)
        axes.plot(
            x,
            y,
            style.marker,
            linestyle=(0, (3.5, 1.8)) if style.dashed else "-",
            color=style.colour,
            linewidth=2.4 if style.thick else 1.3,
            markersize=6.0 if style.thick else 4.5,
            label=TITLES.get(name, name),
        )
    scale_axes(axes, "xy")
    draw_slope(axes)
    sizes = points_of(OURS, along, races, growths)[0]
    axes.set_xticks(sizes, [short(size) for size in sizes])
    axes.set_title(f"Seconds against {along}")
    axes.set_xlabel(f"rows ({FEATURES} features)" if along == "rows" else f"features ({ROWS} rows)")


def points_of(
    name: str, along: str, races: Sequence[Race], growths: Sequence[Growth]
) -> tuple[list[float], list[float]]:
    """Sizes and seconds of one line; only where it was run."""
    if name == BLOCKS:
        own = [growth for growth in growths if (growth.what, growth.along) == (BLOCKS, along)]
        return [size for one in own for size in one.sizes], [taken for one in own for taken in one.seconds]
    chosen = [race for race in races if race.samples.get(name) and is_along(race, along)]
    return [getattr(race.size, along) for race in chosen], [race.seconds(name) for race in chosen]


def is_along(race: Race, along: str) -> bool:
    """Whether this is one of the sizes where rows grow, or features."""
    return race.size.features == FEATURES if along == "rows" else race.size.rows == ROWS


def draw_slope(axes: "Axes") -> None:
    """A thin line that grows as its size does, below all others."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    start = low / 2.0
    axes.plot([left, right], [start, start * right / left], color=SOFT, linewidth=0.9, linestyle=":", zorder=1)
    axes.set_xlim(left, right)
    axes.set_ylim(start, high)
    at = left * (right / left) ** 0.6
    where = (at, start * at / left)
    axes.annotate("linear", where, (6, -3), textcoords="offset points", va="top", color=SOFT, fontsize=FONT - 1)


def name_lines(figure: "Figure", axes: "Axes") -> None:
    """Below the panels, in the order of the list."""
    lines, names = axes.get_legend_handles_labels()
    figure.legend(lines, names, loc="lower center", ncols=3, frameon=False, labelcolor=INK, fontsize=FONT)
