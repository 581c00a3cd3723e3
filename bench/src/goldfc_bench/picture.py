"""Experiment 8: the whole process of GOLD as a picture. US at three Non-ICD sites, in two dimensions."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from goldfc.demo.data import sites_of
from goldfc.learning.paper.competition import Learning
from goldfc.randomness import generator
from goldfc.server.gold import Gold
from goldfc.server.round import run_round
from goldfc.site.gold import GoldSite
from goldfc.transport.local import LocalPort
from goldfc_bench.cases import dataset_of, split_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DATASET = "US"
SPLIT = "non-icd-3-0"
Points = list[list[float]]

# Four clusters, told apart by colour-blind people too (Okabe and Ito).
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#444444")


@dataclass(frozen=True)
class Panel:
    """Points in the plane with the group of each, and centroids with the group of each."""

    title: str
    points: Points
    groups: list[int]
    centroids: Points
    centroid_groups: list[int]


def make_picture(seed: int) -> list[Panel]:
    """Truth, what each site finds, what the server makes of it; the plane has the two main axes of all rows."""
    complete, split = dataset_of(DATASET), split_of(DATASET, SPLIT)
    axes = np.linalg.svd(complete.X - complete.X.mean(axis=0), full_matrices=False)[2][:2].T
    sites = sites_of(GoldSite, split, seed)
    result = run_round(LocalPort(sites), complete.n_clusters, Gold(Learning()), generator(seed, "server"))
    panels = [Panel("all rows, by true class", (complete.X @ axes).tolist(), complete.y.tolist(), [], [])]
    summaries = {summary.site: summary for summary in result.summaries}
    for site, rows in zip(sites, split.rows_per_site(), strict=True):
        summary = summaries[site.name]
        count = len(summary.centroids)
        panels.append(
            Panel(
                title=f"site {site.name}: {len(rows)} rows, {count} micro-clusters",
                points=(rows @ axes).tolist(),
                groups=site.micro_clusters.tolist(),
                centroids=(summary.centroids @ axes).tolist(),
                centroid_groups=list(range(count)),
            )
        )
    sent = np.vstack([summary.centroids for summary in result.summaries])
    panels.append(
        Panel(
            title=f"server: {len(sent)} micro-centroids, {len(result.model.centroids)} clusters",
            points=(sent @ axes).tolist(),
            groups=result.model.micro_labels.tolist(),
            centroids=(result.model.centroids @ axes).tolist(),
            centroid_groups=list(range(len(result.model.centroids))),
        )
    )
    return panels


def save(panels: Sequence[Panel], path: Path) -> None:
    """Keep what the picture is drawn from."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rounded = [
        {**vars(panel), "points": _rounded(panel.points), "centroids": _rounded(panel.centroids)} for panel in panels
    ]
    path.write_text(json.dumps(rounded) + "\n", encoding="utf-8")


def read(path: Path) -> list[Panel]:
    """Take it up again."""
    return [Panel(**panel) for panel in json.loads(path.read_text(encoding="utf-8"))]


def draw(panels: Sequence[Panel]) -> "Figure":
    """All panels side by side, on the same plane."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import, and needed only for a picture)

    figure = Figure(figsize=(13.0, 3.4), layout="constrained")
    grid: Any = figure.subplots(1, len(panels), sharex=True, sharey=True)
    for axes, panel in zip(grid, panels, strict=True):
        _draw_panel(axes, panel)
    return figure


def _draw_panel(axes: "Axes", panel: Panel) -> None:
    points = np.array(panel.points)
    axes.scatter(points[:, 0], points[:, 1], s=14, c=_colours(panel.groups), alpha=0.75, linewidths=0)
    if panel.centroids:
        centroids = np.array(panel.centroids)
        axes.scatter(
            centroids[:, 0], centroids[:, 1], s=70, c=_colours(panel.centroid_groups), marker="X", edgecolors="black"
        )
    axes.set_title(panel.title, fontsize=9)
    axes.set_xticks([])
    axes.set_yticks([])


def _colours(groups: Sequence[int]) -> list[str]:
    return [COLOURS[group % len(COLOURS)] for group in groups]


def _rounded(points: Points) -> Points:
    return [[round(value, 4) for value in point] for point in points]
