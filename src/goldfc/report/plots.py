"""Plots of a result, for notebooks; each draws into given axes, or into new ones."""

import math
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from goldfc.errors import BadSettings
from goldfc.names import ids_of
from goldfc.report.drawings import BORDER, TREE_WIDTH, colour, draw_curve, draw_levels, ink
from goldfc.report.result import Result
from goldfc.report.terrain import HEIGHT, WIDTH, Terrain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY, LINE, GOLDEN = "#5b6577", "#c3c9d3", "#b7791f"
# A plot of so many columns and clusters can still be read; of more the columns that differ most, the largest clusters.
COLUMNS_PLOTTED, CLUSTERS_PLOTTED = 24, 24
# Titles of more letters, were all as long as the longest, stand upright.
MOST_LETTERS, INCHES_OF_A_LETTER = 70, 0.08
# In deviations; what is further has the same colour.
FULL_COLOUR = 2.5
# A longer title would cover what is beside it.
LONGEST_TITLE = 24


def axes_for(ax: "Axes | None", width: float, height: float) -> "Axes":
    """Those that are given, or new ones of so many inches."""
    try:
        # Only who draws needs it.
        import matplotlib.pyplot as plt  # noqa: PLC0415
    except ImportError as error:
        raise BadSettings("Plots need matplotlib; install goldfc[plot].", "no-matplotlib") from error
    return plt.subplots(figsize=(width, height), layout="constrained")[1] if ax is None else ax


def label_text(text: str) -> str:
    """A text in which no sign begins a formula, and not too long."""
    short = text if len(text) <= LONGEST_TITLE else f"{text[: LONGEST_TITLE - 1]}\N{HORIZONTAL ELLIPSIS}"
    return short.replace("\\", "\N{SET MINUS}").replace("$", r"\$")


def without_frame(ax: "Axes") -> None:
    """No box and no ticks."""
    ax.set_frame_on(False)
    ax.tick_params(length=0)


def titles_below(ax: "Axes", titles: Mapping[float, str]) -> None:
    """What clusters are called, by their places."""
    ax.set_xticks(list(titles), list(titles.values()), rotation=90 if room_for(titles.values()) else 0)


def room_for(titles: Collection[str]) -> float:
    """How many inches titles take that must stand upright; none if they need not."""
    longest = max(map(len, titles))
    return INCHES_OF_A_LETTER * longest if len(titles) * longest > MOST_LETTERS else 0.0


def plot_map(result: Result, ax: "Axes | None" = None) -> "Axes":
    """Discs as large as masses are, in the colours of clusters, with their numbers where most of their mass is."""
    terrain = Terrain.of(result.model, result.summaries, result.likenesses)
    points, places, ids = terrain.points, terrain.places, ids_of(result.model)
    ax = axes_for(ax, 7.0, 7.0 * HEIGHT / WIDTH)
    paints = [colour(ids[label]) for label in points.labels.tolist()]
    ax.scatter(places[:, 0], places[:, 1], s=terrain.radii**2, c=paints, alpha=0.65, linewidths=0.5, edgecolors="white")
    for place, badge in enumerate(result.badges):
        own = points.labels == place
        if own.any():
            x, y = np.average(places[own], axis=0, weights=points.mass[own]).tolist()
            chip = {"boxstyle": "round,pad=0.25", "facecolor": colour(badge.id), "edgecolor": "white"}
            paint, number = ink(badge.id), str(badge.id)
            ax.annotate(number, (x, y), ha="center", va="center", color=paint, fontsize=9, bbox=chip)
    for badge, title in zip(result.badges, result.titles, strict=True):
        if badge.name:
            ax.scatter([], [], c=colour(badge.id), label=label_text(title))
    if any(badge.name for badge in result.badges):
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=4, fontsize=9, frameon=False)
    ax.set(xlim=(0.0, WIDTH), ylim=(HEIGHT, 0.0), xticks=[], yticks=[], aspect="equal")
    without_frame(ax)
    ax.set_title(f"{len(points.mass)} {points.what}s: far apart is much different", fontsize=10, color=GREY)
    return ax


def plot_evidence(result: Result, ax: "Axes | None" = None) -> "Axes":
    """The curve, with the candidates marked, and, filled, the number that was taken."""
    proposal = result.model.proposal
    if proposal is None:
        raise BadSettings(
            "There is no evidence to plot: numbers of clusters were not weighed for this model; give no n_clusters.",
            "no-proposal",
        )
    ax, curve = axes_for(ax, 6.0, 3.4), draw_curve(proposal)
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    shown = {k: value for k, value in zip(proposal.n_clusters, proposal.evidence, strict=True) if k <= curve.last}
    ax.plot(list(shown), list(shown.values()), color=GREY, marker=".", markersize=5, linewidth=1.5)
    taken = len(result.model.centroids)
    for number in sorted({*(mark.n_clusters for mark in curve.marks), taken} & set(shown)):
        style = "full" if number == taken else "none"
        ax.plot(number, shown[number], "o", color=GOLDEN, markersize=9, fillstyle=style)
        ax.annotate(
            str(number), (number, shown[number]), (0, 9), textcoords="offset points", ha="center", weight="bold"
        )
    ax.margins(y=0.18)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="number of clusters tried", ylabel="how clear the gaps are" if proposal.of_gaps else "evidence")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_levels(result: Result, ax: "Axes | None" = None) -> "Axes":
    """A line of discs for every level, the global clusters last, and where the micro-clusters of each go."""
    tree = draw_levels(result.model.levels, result.model.micro_labels, ids_of(result.model))
    last = [node for node in tree.nodes if node.y == tree.rows[-1][0]]
    titles = dict(zip(ids_of(result.model), map(label_text, result.titles), strict=True))
    below = {node.x: titles[node.cluster] for node in last}
    ax = axes_for(ax, 7.0, 7.0 * tree.height / tree.width + room_for(below.values()))
    from matplotlib.patches import PathPatch  # noqa: PLC0415
    from matplotlib.path import Path  # noqa: PLC0415

    for branch in tree.branches:
        corners = np.array(re.findall(r"-?[\d.]+", branch.path), dtype=np.float64).reshape(-1, 2)
        path = Path(corners, [Path.MOVETO, *[Path.CURVE4] * 3])
        paint = colour(branch.cluster) if branch.main else LINE
        ax.add_patch(PathPatch(path, facecolor="none", edgecolor=paint, linewidth=0.7 * branch.width, alpha=0.75))
    x, y, radii = np.array([(node.x, node.y, node.radius) for node in tree.nodes]).T
    ax.scatter(x, y, s=radii**2, c=[colour(node.cluster) for node in tree.nodes], edgecolors="white", zorder=3)
    titles_below(ax, below)
    finer = [f"{count} clusters" for _, count in tree.rows[:-1]]
    ax.set_yticks([height for height, _ in tree.rows], [*finer, "taken"])
    ax.set(xlim=(0.0, TREE_WIDTH), ylim=(tree.height - BORDER / 4.0, 0.0))
    without_frame(ax)
    return ax


def plot_profiles(result: Result, ax: "Axes | None" = None) -> "Axes":
    """Means as text in their units, coloured by how far they are from all: blue below, red above."""
    told = result.likenesses
    shown = np.sort(np.argsort(-np.abs(told.z).max(axis=0), kind="stable")[:COLUMNS_PLOTTED])
    places = np.sort(np.argsort(-result.model.mass, kind="stable")[:CLUSTERS_PLOTTED]).tolist()
    z, features = told.z[np.ix_(places, shown)].T, [told.features[f] for f in shown.tolist()]
    titles = [label_text(result.titles[place]) for place in places]
    ax = axes_for(ax, 2.4 + 0.8 * len(places), 0.9 + 0.34 * len(features) + room_for(titles))
    image = ax.imshow(z, cmap="RdBu_r", vmin=-FULL_COLOUR, vmax=FULL_COLOUR, aspect="auto")
    for row, feature in enumerate(features):
        for across, value in enumerate(told.means[places, shown[row]].tolist()):
            paint = "white" if abs(z[row, across]) > 0.65 * FULL_COLOUR else "black"
            ax.text(across, row, feature.text(value), ha="center", va="center", fontsize=8, color=paint)
    units = [f"{feature.name} ({feature.unit})" if feature.unit else feature.name for feature in features]
    titles_below(ax, dict(enumerate(titles)))
    ax.set_yticks(range(len(features)), [label_text(unit) for unit in units])
    without_frame(ax)
    colours = ax.figure.colorbar(image, ax=ax, shrink=min(1.0, 3.0 / math.sqrt(len(features))), aspect=15)
    colours.set_label("deviations from all", fontsize=8, color=GREY)
    colours.outline.set_visible(False)
    return ax
