"""The demo as a page: one file that loads nothing from anywhere."""

import base64
import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray
from goldfc.demo.data import bundled
from goldfc.demo.run import UNSURE, Demo, SiteResult
from goldfc.learning.judge import KINDS
from goldfc.learning.mixture import MOST_FOR_OWN
from goldfc.names import ids_of
from goldfc.report.drawings import draw_curve, draw_levels
from goldfc.report.page import sealed_page

# What each kind of cluster is like, in words.
WORDS = {
    "shared": "all of one form, round or stretched",
    "own": "each of its own form, round or stretched",
    "linked": "of any form, with clear gaps between them",
}


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
class DigitCard:
    """A global cluster: its centroid as an image, who has rows in it, how sure they are, and what they truly are."""

    number: int
    image: str
    rows: int
    micro_clusters: int
    certainty: float  # in the mean over its rows; nan where there are none
    sites: tuple[bool, ...]
    majority: str
    share: float  # nan where there are no rows


def write_report(demo: Demo, path: Path) -> None:
    """Render the page and write it."""
    model, all_cards = demo.model, list(digit_cards(demo))
    html = sealed_page(
        "demo.html",
        "goldfc.demo",
        style="demo.css",
        script=None,
        more="; img-src data:",
        demo=demo,
        sites=[(site, list(pictures(demo, site))) for site in demo.sites],
        cards=all_cards,
        cards_by_class=[[card for card in all_cards if card.majority == name] for name in demo.dataset.class_names],
        curve=draw_curve(demo.proposal, demo.dataset.n_clusters),
        tree=draw_levels(model.levels, model.micro_labels, ids_of(model)),
        kinds=[(kind, WORDS[kind]) for kind in KINDS],
        most_for_own=MOST_FOR_OWN,
        unsure=UNSURE,
        n_features=demo.dataset.X.shape[1],
        micro_clusters=len(model.micro_labels),
        row_bytes=demo.rows * demo.dataset.X.shape[1] * 8,
    )
    path.write_text(html, encoding="utf-8")


def pictures(demo: Demo, site: SiteResult) -> Iterator[Picture]:
    """A site's micro-clusters, those of one global cluster side by side, large ones first."""
    images = as_images(demo, site.centroids)
    for number in np.lexsort((-site.sizes, site.micro_labels)):
        yield Picture(
            image=images[number],
            size=int(site.sizes[number]),
            cluster=int(site.micro_labels[number]),
            certainty=float(site.micro_certainty[number]),
        )


def digit_cards(demo: Demo) -> Iterator[DigitCard]:
    """The global clusters."""
    images = as_images(demo, demo.model.centroids)
    for number, truth in enumerate(demo.truth_by_cluster):
        rows = int(truth.sum())
        yield DigitCard(
            number=number,
            image=images[number],
            rows=rows,
            micro_clusters=int((demo.model.micro_labels == number).sum()),
            certainty=float(demo.certainty_by_cluster[number]),
            sites=tuple(bool(site.clusters[number]) for site in demo.sites),
            majority=demo.dataset.class_names[truth.argmax()] if rows else "",
            share=float(truth.max() / rows) if rows else math.nan,
        )


def as_images(demo: Demo, centroids: FloatArray) -> list[str]:
    """Centroids of standardised digits, back in grey values, as addresses that hold the picture itself."""
    raw = bundled(demo.dataset.name).X
    side = round(np.sqrt(raw.shape[1]))
    pixels = centroids * raw.std(axis=0) + raw.mean(axis=0)
    return [png_address(image.reshape(side, side), raw.max()) for image in pixels]


def png_address(pixels: FloatArray, darkest: float) -> str:
    """A grey picture as a data address; 0 is white, `darkest` black."""
    grey = np.rint(255.0 * (1.0 - np.clip(pixels / darkest, 0.0, 1.0))).astype(np.uint8)
    return "data:image/png;base64," + base64.b64encode(png(grey)).decode()


def png(grey: NDArray[np.uint8]) -> bytes:
    """A PNG file of one byte per pixel."""
    height, width = grey.shape
    unfiltered = np.hstack([np.zeros((height, 1), dtype=np.uint8), grey])  # the format has a byte before every line
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(unfiltered.tobytes())), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
