"""Experiment 8: the whole process as a picture."""

from collections.abc import Iterator
from pathlib import Path

from goldfc_bench.picture import draw, read
from goldfc_bench.report.figures import as_svg
from goldfc_bench.report.parts import Drawing, Panels, Part, Text

WHAT = (
    "One run of GOLD at three sites, in the plane of the two main axes of all rows: what is true, what each site "
    "finds, and what the server makes of it. Crosses are centroids: of micro-clusters at the sites, of the final "
    "clusters at the server."
)


def picture(path: Path) -> Iterator[Part]:
    """One wide drawing."""
    yield Text("Made by `goldfc-bench picture`.")
    yield Text(WHAT)
    panels = read(path)
    shows = "; ".join(panel.title for panel in panels)
    yield Panels([Drawing("picture", shows, as_svg(draw(panels)))], wide=True)
