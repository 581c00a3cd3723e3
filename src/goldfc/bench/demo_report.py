"""The demo as a page: one file that loads nothing from anywhere."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from jinja2 import Environment, PackageLoader

import goldfc
from goldfc._types import FloatArray
from goldfc.bench.datasets import load
from goldfc.bench.demo import Demo, Site
from goldfc.bench.tree import draw_tree

# Ten colours that most colour-blind people can tell apart (Paul Tol's "muted", and grey); numbers say the same.
COLOURS = (
    "#332288", "#88ccee", "#44aa99", "#117733", "#999933", "#ddcc77", "#cc6677", "#882255", "#aa4499", "#8a8f98",
)  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """A micro-cluster: its centroid as an image, its size, and the global cluster that it went to."""

    image: str
    size: int
    cluster: int


@dataclass(frozen=True)
class Card:
    """A global cluster: its centroid as an image, who has rows in it, and what they truly are."""

    number: int
    image: str
    rows: int
    micro_clusters: int
    sites: tuple[bool, ...]
    majority: str
    share: float


def write_report(demo: Demo, path: Path) -> None:
    """Render the page and write it."""
    environment = Environment(
        loader=PackageLoader("goldfc.bench"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    html = environment.get_template("demo.html").render(
        demo=demo,
        sites=[(site, list(pictures(demo, site))) for site in demo.sites],
        cards=list(cards(demo)),
        tree=draw_tree(demo.model.levels, demo.model.micro_labels),
        colours=COLOURS,
        micro_clusters=len(demo.model.micro_labels),
        row_bytes=demo.rows * demo.dataset.X.shape[1] * 8,
        version=goldfc.__version__,
    )
    path.write_text(html, encoding="utf-8")


def pictures(demo: Demo, site: Site) -> Iterator[Picture]:
    """A site's micro-clusters, those of one global cluster side by side, large ones first."""
    images = as_images(demo, site.centroids)
    for number in np.lexsort((-site.sizes, site.micro_labels)):
        yield Picture(images[number], int(site.sizes[number]), int(site.micro_labels[number]))


def cards(demo: Demo) -> Iterator[Card]:
    """The global clusters."""
    images = as_images(demo, demo.model.centroids)
    for number, truth in enumerate(demo.truth_by_cluster):
        yield Card(
            number=number,
            image=images[number],
            rows=int(truth.sum()),
            micro_clusters=int((demo.model.micro_labels == number).sum()),
            sites=tuple(bool((site.micro_labels == number).any()) for site in demo.sites),
            majority=demo.dataset.class_names[truth.argmax()],
            share=float(truth.max() / truth.sum()),
        )


def as_images(demo: Demo, centroids: FloatArray) -> list[str]:
    """Centroids of standardised digits, back in grey values, as addresses that hold the picture itself."""
    raw = load(demo.dataset.name, standardize=False).X
    side = round(np.sqrt(raw.shape[1]))
    pixels = centroids * raw.std(axis=0) + raw.mean(axis=0)
    return [png_address(image.reshape(side, side), raw.max()) for image in pixels]


def png_address(pixels: FloatArray, darkest: float) -> str:
    """A grey picture as a data address."""
    # Slow to import, and needed only for a report.
    from matplotlib.image import imsave  # noqa: PLC0415

    buffer = BytesIO()
    imsave(buffer, pixels, cmap="gray_r", vmin=0.0, vmax=darkest, format="png")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
