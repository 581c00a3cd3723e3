"""Figures: lines over something, scores per level, heat maps. One small picture per panel, read as well on a phone.

A method has the same colour and marker everywhere, and its name stands at the end of its line.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from goldfc._types import FloatArray

BoolArray = NDArray[np.bool_]
# Matplotlib is slow to import, and needed only for a report.
if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, LINE, GOLDEN = "#1d2433", "#5b6577", "#dfe3ea", "#b7791f"
# Inches. On a phone a panel is some 300 pixels wide, and a point is about a pixel.
WIDTH, HEIGHT = 4.3, 3.4
LEFT, RIGHT, BOTTOM, TOP = 0.52, 1.42, 0.5, 0.34
FONT = 10.0  # points
LABEL_GAP = 1.32 * FONT / 72  # inches from one name to the next
LABEL_SPACE = 0.2  # inches from the axes to the names


@dataclass(frozen=True)
class Style:
    """How a line is drawn."""

    colour: str
    marker: str
    dashed: bool = False
    thick: bool = False


# Paul Tol's colours, which most colour-blind people can tell apart; relatives are of one family, and markers differ.
STYLES: dict[str, Style] = {
    "k-Fed": Style("#332288", "o"),
    "FFCM-avg1": Style("#88ccee", "s"),
    "FFCM-avg2": Style("#4477aa", "D"),
    "OSFSC-SSC": Style("#44aa99", "^"),
    "OSFSC-TSC": Style("#117733", "v"),
    "FedSC": Style("#cc6677", "P"),
    "NN-FC": Style("#882255", "X"),
    "AFCL": Style("#aa4499", "<"),
    "GOLD": Style(GOLDEN, "o", thick=True),
    "OneShot": Style("#cc3311", "*", thick=True),
    "pooled k-means": Style("#1d2433", "h", dashed=True),
    "coreset k-means": Style("#8a8f98", "p", dashed=True),
    "Purity": Style("#332288", "o"),
    "ARI": Style("#cc6677", "s"),
    "NMI": Style("#44aa99", "^"),
    "ACC": Style(GOLDEN, "D"),
}
ANYBODY_ELSE = Style("#999933", "*")


@dataclass(frozen=True)
class Curve:
    """One line: whose, where, and at which points all runs ended; the other points are hollow."""

    name: str
    x: FloatArray
    y: FloatArray
    ended: BoolArray

    @property
    def style(self) -> Style:
        """The one that this name has everywhere."""
        return STYLES.get(self.name, ANYBODY_ELSE)

    def only(self, which: BoolArray) -> "Curve":
        """Some of its points."""
        return replace(self, x=self.x[which], y=self.y[which], ended=self.ended[which])


# --- lines ---


def draw_lines(title: str, curves: Sequence[Curve], x_title: str) -> str:
    """One line a method, its name at the end."""
    with clean_style():
        figure, axes = new_panel(title)
        axes.set_xlabel(x_title)
        for curve in curves:
            draw_line(axes, curve)
            draw_markers(axes, curve)
        scale_axes(axes)
        name_lines(axes, curves)
        return as_svg(figure)


def draw_times(title: str, curves: Sequence[Curve], x_title: str, logarithmic: str = "y") -> str:
    """As above on logarithmic axes, and lines go through the runs that ended; the others would have taken longer."""
    with clean_style():
        figure, axes = new_panel(title)
        axes.set_xlabel(x_title)
        for curve in curves:
            draw_line(axes, curve.only(curve.ended))
            draw_markers(axes, curve)
        scale_axes(axes, logarithmic)
        name_lines(axes, curves)
        return as_svg(figure)


def draw_line(axes: "Axes", curve: Curve) -> None:
    """Thick or thin, solid or dashed."""
    style = curve.style
    axes.plot(
        curve.x,
        curve.y,
        color=style.colour,
        linewidth=3.0 if style.thick else 1.3,
        linestyle=(0, (3.5, 1.8)) if style.dashed else "-",
        zorder=4 if style.thick else 3,
    )


def draw_markers(axes: "Axes", curve: Curve) -> None:
    """Filled where all runs ended."""
    style = curve.style
    for part, face in ((curve.only(curve.ended), style.colour), (curve.only(~curve.ended), "white")):
        axes.plot(
            part.x,
            part.y,
            style.marker,
            color=style.colour,
            markerfacecolor=face,
            markersize=5.5 if style.thick else 4.2,
            markeredgewidth=0.9,
            zorder=4 if style.thick else 3,
        )


def name_lines(axes: "Axes", curves: Sequence[Curve]) -> None:
    """Names beside the axes, each as near to the end of its line as the others allow, and a thread to it."""
    ends = [(float(curve.x[-1]), float(curve.y[-1])) for curve in curves]
    axes.autoscale_view()  # otherwise it waits until it draws, and places are not yet what they will be
    width, height = inches_of(axes)
    places = axes.transAxes.inverted().transform(axes.transData.transform(ends))
    names_at = spread(places[:, 1], LABEL_GAP / height, -0.1, 1.0)
    for curve, (x, y), name_at in zip(curves, places, names_at, strict=True):
        style, edge = curve.style, 1 + LABEL_SPACE / width
        axes.plot(
            [x, 1.01, edge - 0.03], [y, y, name_at], color=style.colour, linewidth=0.7, alpha=0.7, **_beside(axes)
        )
        axes.plot([edge], [name_at], style.marker, color=style.colour, markersize=4.5, **_beside(axes))
        axes.text(
            edge + 0.08 / width,
            name_at,
            curve.name,
            transform=axes.transAxes,
            verticalalignment="center_baseline",
            fontweight="bold" if style.thick else "normal",
        )


def _beside(axes: "Axes") -> dict[str, Any]:
    return {"transform": axes.transAxes, "clip_on": False, "scalex": False, "scaley": False}


def spread(wanted: FloatArray, gap: float, low: float, high: float) -> FloatArray:
    """Heights at least a gap apart and within bounds, in sum of squares as near to the wanted ones as can be.

    With h_i = z_i + i gap for the sorted ones, "a gap apart" is "z does not fall": an isotonic regression.
    """
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(wanted))
    rising = isotonic_regression(wanted[order] - steps).x
    heights = np.empty(len(wanted))
    heights[order] = np.clip(rising, low, max(low, high - steps[-1])) + steps
    return heights


# --- levels ---


def draw_levels(title: str, curves: Sequence[Curve], clusters: Mapping[int, float]) -> str:
    """Indices over the number of levels used, and below it how many clusters each level has."""
    with clean_style():
        figure, axes = new_panel(title, below=0.95)
        for curve in curves:
            draw_line(axes, curve)
            draw_markers(axes, curve)
        scale_axes(axes)
        draw_clusters(figure, axes, clusters)
        name_lines(axes, curves)
        return as_svg(figure)


def draw_clusters(figure: "Figure", axes: "Axes", clusters: Mapping[int, float]) -> None:
    """Bars under the axes, with their numbers."""
    bars = axes_at(figure, LEFT, RIGHT, BOTTOM, 0.65)
    bars.bar(list(clusters), list(clusters.values()), width=0.6, color="#c3c9d3")
    for level, count in clusters.items():
        bars.annotate(
            f"{count:.0f}", (level, count), (0, 1.5), textcoords="offset points", ha="center", fontsize=FONT - 1
        )
    bars.set_ylim(0, 1.45 * max(clusters.values()))
    bars.set_yticks([])
    bars.spines["left"].set_visible(False)
    bars.set_xticks(list(clusters))
    bars.set_xlabel("levels used")
    bars.text(1.04, 0.3, "clusters of the\nlast one added", transform=bars.transAxes, color=SOFT, fontsize=FONT - 1)
    bars.grid(visible=False)
    for one in (axes, bars):
        one.set_xlim(min(clusters) - 0.5, max(clusters) + 0.5)
    axes.set_xticks(list(clusters), [""] * len(clusters))


def draw_left_out(title: str, curves: Sequence[Curve], whole: Mapping[str, float]) -> str:
    """Indices without each level; the dashed lines are with all of them."""
    with clean_style():
        figure, axes = new_panel(title)
        axes.set_xlabel("level left out, 1 is the finest")
        for curve in curves:
            draw_markers(axes, curve)
            axes.axhline(whole[curve.name], color=curve.style.colour, linewidth=1.1, linestyle=(0, (3.5, 1.8)))
        levels = [int(level) for level in curves[0].x]
        axes.set_xlim(min(levels) - 0.5, max(levels) + 0.5)
        scale_axes(axes)
        axes.set_xticks(levels)
        lines = [replace(c, x=np.array([levels[-1] + 0.5]), y=np.array([whole[c.name]])) for c in curves]
        name_lines(axes, lines)
        return as_svg(figure)


# --- heat maps ---


@dataclass(frozen=True)
class Heat:
    """Means over two settings, and which of them is the default."""

    means: FloatArray
    rows: Sequence[float]
    columns: Sequence[float]
    default: tuple[float, float]
    span: float  # what lies between the lightest and the darkest colour


def draw_heat(title: str, heat: Heat) -> str:
    """Means as colours and as numbers, the default in a frame."""
    with clean_style():
        figure, axes = new_panel(title, left=0.76, right=0.1)
        draw_cells(axes, heat)
        axes.set_xticks(np.arange(len(heat.columns)) + 0.5, [f"{value:g}" for value in heat.columns])
        axes.set_yticks(np.arange(len(heat.rows)) + 0.5, [f"{value:g}" for value in heat.rows])
        axes.set_xlabel("first candidates / rows")
        axes.set_ylabel("learning rate", labelpad=1)
        axes.grid(visible=False)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        frame_default(axes, heat)
        return as_svg(figure)


def draw_cells(axes: "Axes", heat: Heat) -> None:
    """Darker is better."""
    middle = (np.nanmin(heat.means) + np.nanmax(heat.means)) / 2
    low, high = middle - heat.span / 2, middle + heat.span / 2
    axes.pcolormesh(heat.means, cmap="Blues", vmin=low, vmax=high, edgecolors="white", linewidth=1.0)
    for (row, column), value in np.ndenumerate(heat.means):
        if np.isfinite(value):
            axes.text(
                column + 0.5,
                row + 0.5,
                f"{value:.2f}".replace("0.", ".", 1),
                fontsize=FONT - 1.5,
                ha="center",
                va="center_baseline",
                color="white" if value > middle + 0.2 * heat.span else INK,
            )


def frame_default(axes: "Axes", heat: Heat) -> None:
    """A frame around the default, if it is on the grid."""
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    rate, fraction = heat.default
    if rate in heat.rows and fraction in heat.columns:
        corner = (heat.columns.index(fraction), heat.rows.index(rate))
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="#cc3311", linewidth=2.2, clip_on=False, zorder=5))


# --- the panel ---


@contextmanager
def clean_style() -> Iterator[None]:
    """Matplotlib's settings for the time being: quiet axes, few colours."""
    from matplotlib import rc_context  # noqa: PLC0415

    with rc_context(
        {
            "font.family": ["sans-serif"],
            "font.sans-serif": ["DejaVu Sans"],
            "font.size": FONT,
            "text.color": INK,
            "axes.labelcolor": SOFT,
            "axes.edgecolor": "#b6bdc9",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": FONT + 1,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.titlepad": 6,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": LINE,
            "grid.linewidth": 0.7,
            "xtick.color": SOFT,
            "ytick.color": SOFT,
            "xtick.major.size": 2.5,
            "ytick.major.size": 0,
        }
    ):
        yield


def new_panel(title: str, left: float = LEFT, right: float = RIGHT, below: float = 0.0) -> "tuple[Figure, Axes]":
    """An empty panel with room for names at the right, and for something more below."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(WIDTH, HEIGHT))
    axes = axes_at(figure, left, right, BOTTOM + below, HEIGHT - TOP - BOTTOM - below)
    axes.set_title(title)
    return figure, axes


def axes_at(figure: "Figure", left: float, right: float, bottom: float, height: float) -> "Axes":
    """Axes by inches."""
    return figure.add_axes((left / WIDTH, bottom / HEIGHT, (WIDTH - left - right) / WIDTH, height / HEIGHT))


def inches_of(axes: "Axes") -> tuple[float, float]:
    """Width and height of the axes."""
    box = axes.get_position()
    return box.width * WIDTH, box.height * HEIGHT


def scale_axes(axes: "Axes", logarithmic: str = "") -> None:
    """Few ticks, with plain numbers; `logarithmic` names the axes that are."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator  # noqa: PLC0415

    axes.margins(0.04, 0.05)
    for name, axis, set_scale in (("x", axes.xaxis, axes.set_xscale), ("y", axes.yaxis, axes.set_yscale)):
        if name in logarithmic:
            set_scale("log")
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if name == "x" else (1.0,)))
            axis.set_minor_locator(NullLocator())
        else:
            axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))


def plain(value: float) -> str:
    """10k instead of 10000."""
    return f"{value / 1000:g}k" if abs(value) >= 10_000 else f"{value:g}"


def as_svg(figure: "Figure") -> str:
    """The figure in letters: text stays text, and the same rows give the same file."""
    from matplotlib import rc_context  # noqa: PLC0415

    buffer = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "goldfc"}):
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return slim(buffer.getvalue())


def slim(svg: str) -> str:
    """The same picture in a third of the letters: two decimals, no names for groups, no turns by nothing."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r" id=\"[A-Za-z0-9.]+_\d+\"| transform=\"rotate\(-?0 [^)]*\)\"", "", svg)
    svg = re.sub(r" (?:d|x|y)=\"[^\"]+\"", lambda place: re.sub(r"(\.\d\d)\d+", r"\1", place[0]), svg)
    return re.sub(r"\s*\n\s*", " ", svg).replace("> <", "><") + "\n"
