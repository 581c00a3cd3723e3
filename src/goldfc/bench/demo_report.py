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
from goldfc.bench.demo import UNSURE, Demo, Site
from goldfc.bench.tree import Tree, draw_tree
from goldfc.learning.consensus import STARTS
from goldfc.learning.granularity import Levels
from goldfc.learning.proposal import Proposal

# Ten colours that most colour-blind people can tell apart (Paul Tol's "muted", and grey), and ten more as far from
# them. Colours alone would not do for so many clusters: wherever one is, the cluster's number is as well.
COLOURS = (
    "#332288", "#88ccee", "#44aa99", "#117733", "#999933", "#ddcc77", "#cc6677", "#882255", "#aa4499", "#8a8f98",
    "#e03c1f", "#1f6fe0", "#5fc21f", "#e57ae0", "#f0941f", "#663d14", "#8c9eff", "#e0147a", "#7a3df0", "#22303c",
)  # fmt: skip
DARK_INK, LIGHT_INK = "#1d2433", "#ffffff"

# Where the curve is in its drawing, which is 480 wide and ends at 300.
CURVE_LEFT, CURVE_RIGHT, CURVE_TOP, CURVE_BOTTOM = 46.0, 468.0, 20.0, 244.0
# Room for one number.
LABEL_WIDTH, LABEL_HEIGHT = 26.0, 19.0


@dataclass(frozen=True)
class Picture:
    """A micro-cluster: its centroid as an image, its size, the global cluster that it went to, and how surely."""

    image: str
    size: int
    cluster: int
    certainty: float

    @property
    def unsure(self) -> bool:
        """Whether it is to look so."""
        return self.certainty < UNSURE


@dataclass(frozen=True)
class Card:
    """A global cluster: its centroid as an image, who has rows in it, how sure that is, and what they truly are."""

    number: int
    image: str
    rows: int
    micro_clusters: int
    certainty: float  # mean by rows
    sites: tuple[bool, ...]
    majority: str
    share: float


@dataclass(frozen=True)
class Mark:
    """A candidate on the curve, and how high its number stands."""

    n_clusters: int
    x: float
    y: float
    label_y: float


@dataclass(frozen=True)
class Curve:
    """The evidence for every number of clusters, from 1 up to where there is less of it than at the beginning."""

    points: tuple[tuple[float, float], ...]
    marks: tuple[Mark, ...]  # the candidates, best first
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    true_x: float  # where the true number is
    last: int  # the largest number of clusters shown

    @property
    def top(self) -> float:
        """Where the drawing begins: above the highest number."""
        return min(mark.label_y for mark in self.marks) - LABEL_HEIGHT


def write_report(demo: Demo, path: Path) -> None:
    """Render the page and write it."""
    environment = Environment(
        loader=PackageLoader("goldfc.bench"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals |= {"colour": colour, "ink": ink}
    all_cards = list(cards(demo))
    html = environment.get_template("demo.html").render(
        demo=demo,
        sites=[(site, list(pictures(demo, site))) for site in demo.sites],
        cards=all_cards,
        cards_by_class=[[card for card in all_cards if card.majority == name] for name in demo.dataset.class_names],
        curve=draw_curve(demo.proposal, demo.dataset.n_clusters),
        tree=draw_levels(demo),
        unsure=UNSURE,
        starts=STARTS,
        mixtures=STARTS * len(demo.model.levels.n_clusters),
        n_features=demo.dataset.X.shape[1],
        micro_clusters=len(demo.model.micro_labels),
        row_bytes=demo.rows * demo.dataset.X.shape[1] * 8,
        version=goldfc.__version__,
    )
    path.write_text(html, encoding="utf-8")


def colour(cluster: int) -> str:
    """The colour of a global cluster."""
    return COLOURS[cluster % len(COLOURS)]


def ink(cluster: int) -> str:
    """A colour for its number that can be read on it."""
    red, green, blue = bytes.fromhex(colour(cluster)[1:])
    return DARK_INK if 0.299 * red + 0.587 * green + 0.114 * blue > 140.0 else LIGHT_INK


def pictures(demo: Demo, site: Site) -> Iterator[Picture]:
    """A site's micro-clusters, those of one global cluster side by side, large ones first."""
    images = as_images(demo, site.centroids)
    for number in np.lexsort((-site.sizes, site.micro_labels)):
        yield Picture(
            image=images[number],
            size=int(site.sizes[number]),
            cluster=int(site.micro_labels[number]),
            certainty=float(site.micro_certainty[number]),
        )


def cards(demo: Demo) -> Iterator[Card]:
    """The global clusters."""
    images = as_images(demo, demo.model.centroids)
    sizes = np.concatenate([site.sizes for site in demo.sites])
    certainty = np.concatenate([site.micro_certainty for site in demo.sites])
    labels = np.concatenate([site.micro_labels for site in demo.sites])
    for number, truth in enumerate(demo.truth_by_cluster):
        yield Card(
            number=number,
            image=images[number],
            rows=int(truth.sum()),
            micro_clusters=int((labels == number).sum()),
            certainty=float(np.average(certainty[labels == number], weights=sizes[labels == number])),
            sites=tuple(bool((site.micro_labels == number).any()) for site in demo.sites),
            majority=demo.dataset.class_names[truth.argmax()],
            share=float(truth.max() / truth.sum()),
        )


def draw_levels(demo: Demo) -> Tree:
    """The best mixture of every granularity, and last the global clusters that all mixtures agree on."""
    levels, fused = demo.model.levels, demo.model.micro_labels
    lines = Levels(np.column_stack([levels.labels, fused]), (*levels.n_clusters, len(demo.model.centroids)))
    return draw_tree(lines, fused)


def draw_curve(proposal: Proposal, true_number: int) -> Curve:
    """Place the curve, the candidates and the ticks."""
    tried = np.array(proposal.n_clusters)
    evidence = np.array(proposal.evidence)
    # Far to the right it falls so deep that the peaks would be flat.
    lowest = evidence[tried <= max(proposal.best, true_number)].min()
    last = int(tried[evidence >= lowest].max())
    shown = tried <= last
    axis = (1.0, float(max(last, true_number)))
    heights = (float(evidence[shown].min()), float(evidence[shown].max()))
    x = np.interp(tried[shown], axis, (CURVE_LEFT, CURVE_RIGHT))
    y = np.interp(evidence[shown], heights, (CURVE_BOTTOM, CURVE_TOP))
    places = {int(k): (float(a), float(b)) for k, a, b in zip(tried, x, y, strict=False)}
    return Curve(
        points=tuple(places.values()),
        marks=place_marks({candidate.n_clusters: places[candidate.n_clusters] for candidate in proposal.candidates}),
        x_ticks=((CURVE_LEFT, "1"), *ticks(axis, (CURVE_LEFT, CURVE_RIGHT), whole=True)),
        y_ticks=ticks(heights, (CURVE_BOTTOM, CURVE_TOP)),
        true_x=float(np.interp(true_number, axis, (CURVE_LEFT, CURVE_RIGHT))),
        last=last,
    )


def place_marks(places: dict[int, tuple[float, float]]) -> tuple[Mark, ...]:
    """A number above every candidate, lifted until it covers no other."""
    marks: list[Mark] = []
    for n_clusters, (x, y) in places.items():
        label_y = y - 12.0
        near = [mark.label_y for mark in marks if abs(mark.x - x) < LABEL_WIDTH]
        while covered := [other for other in near if abs(other - label_y) < LABEL_HEIGHT]:
            label_y = min(covered) - LABEL_HEIGHT
        marks.append(Mark(n_clusters, x, y, label_y))
    return tuple(marks)


def ticks(
    values: tuple[float, float], places: tuple[float, float], *, whole: bool = False
) -> tuple[tuple[float, str], ...]:
    """A few round values on an axis, as places and texts."""
    # Slow to import, and needed only for a report.
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    round_values = MaxNLocator(6, integer=whole, steps=(1, 2, 5, 10)).tick_values(*values)
    inside = [value for value in round_values if values[0] <= value <= values[1]]
    return tuple((float(np.interp(value, values, places)), f"{value:g}") for value in inside)


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
