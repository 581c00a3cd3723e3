"""A model as a page: one file that loads nothing from anywhere, for those who have to make sense of the clusters."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.files import write_durably
from goldfc.message.columns import shown
from goldfc.message.levels import MULTIPLE
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.names import LONGEST_NAME, LONGEST_NOTE, NAMELESS, Names, ids_of
from goldfc.report.changes import change_sentences
from goldfc.report.columns_by_site import ColumnsBySite
from goldfc.report.confusion import confusion
from goldfc.report.describe import describe_summary, shown_of_clusters
from goldfc.report.drawings import draw_curve, draw_levels, paint
from goldfc.report.features import Feature
from goldfc.report.page import sealed_page
from goldfc.report.profiles import Profiles, Trait
from goldfc.report.stops import Stop, stops
from goldfc.report.terrain import HEIGHT, WIDTH, Terrain
from goldfc.server.influence import LEAST_SITES, LeftOut, check_fused

MOST_FEATURES_SHOWN = 300
# In the table of all features, what is so many standard deviations from the mean has the full tint, and an arrow.
FULL_TINT, ARROW = 2.0, 1.0
TINTS = 9
# Below this agreement the clusters may be others the next time.
LOW_AGREEMENT = 0.6
# Of more sites nobody reads what left them; `goldfc inspect` says it of each.
MOST_SITES_TOLD = 50
# Of what is told of a summary on the page, all but this, which is said elsewhere.
SAID_ELSEWHERE = ("what", "federation", "columns")


@dataclass(frozen=True)
class Badge:
    """How a cluster is shown wherever it is: by its number, its colour, and what people call it."""

    id: int
    paint: int
    name: str
    note: str


@dataclass(frozen=True)
class Card:
    """A global cluster."""

    badge: Badge
    micro_clusters: int
    share: float  # of all rows; where these are not known, of all micro-clusters
    rows: int | None
    certainty: float | None  # none where nothing is in it
    sites: tuple[str, ...]
    traits: tuple[Trait, ...]
    nearest: Badge | None
    apart: str  # what tells it from the nearest one


@dataclass(frozen=True)
class TableCell:
    """Of the table of features: a centroid's value, and how far it lies from the mean of all."""

    text: str
    spread: str
    z: float

    @property
    def tint(self) -> str:
        """The class of its colour: above the mean or below; always light enough for what is written on it."""
        step = round(TINTS * min(abs(self.z) / FULL_TINT, 1.0))
        return f"{'up' if self.z > 0.0 else 'down'}{step}" if step else ""

    @property
    def arrow(self) -> str:
        """For those who see no colours."""
        if abs(self.z) < ARROW:
            return ""
        return "\N{UPWARDS ARROW}" if self.z > 0.0 else "\N{DOWNWARDS ARROW}"


@dataclass(frozen=True)
class Support:
    """Micro-clusters of every site (down) in every cluster (across), and rows where the site tells its masses."""

    sites: tuple[str, ...]
    micro: IntArray
    rows: tuple[IntArray | None, ...]

    @classmethod
    def of(cls, model: Model, summaries: Sequence[Summary]) -> Self:
        """Count them."""
        n_clusters = len(model.centroids)
        masses = {summary.site: summary.mass for summary in summaries if summary.mass is not None}
        labels = {site: model.labels_of(site) for site in model.sites}
        return cls(
            sites=model.sites,
            micro=np.array([np.bincount(labels[site], minlength=n_clusters) for site in model.sites]),
            rows=tuple(
                by_cluster(labels[site], masses[site], n_clusters) if site in masses else None for site in model.sites
            ),
        )

    @property
    def all_rows(self) -> IntArray | None:
        """Rows in every cluster, if all sites tell."""
        told = [rows for rows in self.rows if rows is not None]
        return np.sum(told, axis=0) if len(told) == len(self.rows) else None

    @property
    def weight(self) -> IntArray:
        """How much every cluster counts: its rows, or its micro-clusters."""
        return self.micro.sum(axis=0) if self.all_rows is None else self.all_rows

    @property
    def lines(self) -> Iterator[tuple[str, list[tuple[int, int | None, float]]]]:
        """Every site and its cells: micro-clusters, rows, and how much of all that it has that is."""
        for site, micro, rows in zip(self.sites, self.micro.tolist(), self.rows, strict=True):
            known = [None] * len(micro) if rows is None else rows.tolist()
            counts = micro if rows is None else known
            yield site, [(*pair, count / sum(counts)) for *pair, count in zip(micro, known, counts, strict=True)]

    def sites_of(self, cluster: int) -> tuple[str, ...]:
        """Who has something in it."""
        return tuple(site for site, count in zip(self.sites, self.micro[:, cluster], strict=True) if count)


def write_model_report(
    model: Model,
    path: Path,
    summaries: Sequence[Summary] = (),
    *,
    left_out: Sequence[LeftOut] = (),
    expected: Sequence[str] = (),
    refused: Mapping[str, str] = {},
    names: Names = NAMELESS,
) -> None:
    """Render the page and write it, for its owner alone.

    With the `summaries` that were fused it tells rows as well. `left_out` are the results without each site,
    `expected` are all who might have taken part, `refused` says of whom nothing was taken, and why, and `names` are
    what people call the clusters.
    """
    check_fused(model, summaries)
    html = sealed_page(
        "model.html",
        model=model,
        summaries=summaries,
        maybe_one=one_fits_as_well(model),
        low_agreement=model.agreement < LOW_AGREEMENT,
        curve=draw_curve(model.proposal) if model.proposal and len(model.proposal.n_clusters) > 1 else None,
        shown=shown_of_clusters(model),
        tree=draw_levels(model.levels, model.micro_labels, ids_of(model)),
        changes=change_sentences(model),
        rounds=sites_by_round(summaries),
        by_site=ColumnsBySite.of(summaries),
        confused=confusion(model),
        promises=promises_of(summaries),
        sent=[(summary.site, what_left(summary)) for summary in summaries[:MOST_SITES_TOLD]],
        multiple=MULTIPLE,
        left_out=sorted(left_out, key=lambda without: without.agreement),
        least_sites=LEAST_SITES,
        missing=[name for name in expected if name not in model.sites and name not in refused],
        refused={shown(name): shown(reason) for name, reason in refused.items()},
        **of_clusters(model, summaries, names),
    )
    write_durably(path, html.encode(errors="replace"), private=True)


def sites_by_round(summaries: Sequence[Summary]) -> dict[int, list[str]]:
    """Of which round everybody's summary is, the latest first."""
    rounds = sorted({summary.terms.round for summary in summaries}, reverse=True)
    return {number: [one.site for one in summaries if one.terms.round == number] for number in rounds}


def promises_of(summaries: Sequence[Summary]) -> dict[str, list[str]]:
    """What the messages promise, and which sites' do."""
    found: dict[str, list[str]] = {}
    for summary in summaries:
        found.setdefault(summary.level.promise, []).append(summary.site)
    return found


def of_clusters(model: Model, summaries: Sequence[Summary], names: Names) -> dict[str, Any]:
    """What is shown of every cluster: cards, tables, the map and its slider, and what the script works with."""
    support, badges = Support.of(model, summaries), badges_of(model, names)
    profiles = Profiles.of(model, support.weight)
    terrain = Terrain.of(model, summaries, profiles)
    all_stops = stops(model, terrain, profiles, ids_of(model), candidates_of(model))
    shown_features = most_different(profiles)
    return {
        "badges": badges,
        "support": support,
        "cards": list(cards(support, model, profiles, badges)),
        "alone": [badges[cluster].id for cluster in np.flatnonzero(support.micro.sum(axis=0) == 1)],
        "table": feature_table(profiles, shown_features),
        "n_features": len(profiles.features),
        "what": terrain.points.what,
        "discs": list(discs(terrain, badges)),
        "map_size": (WIDTH, HEIGHT),
        "stops": all_stops,
        "taken": [stop.origin for stop in all_stops].index("taken"),
        "longest": (LONGEST_NAME, LONGEST_NOTE),
        "data": as_data(data_of(model, names, profiles, all_stops, shown_features)),
    }


def what_left(summary: Summary) -> list[tuple[str, str]]:
    """All that a site sent, in words."""
    return [line for line in describe_summary(summary) if line[0] not in SAID_ELSEWHERE]


def badges_of(model: Model, names: Names) -> list[Badge]:
    """How every cluster is shown."""
    return [Badge(one.id, paint(one.id), one.name, one.note) for one in names.in_model(model)]


def candidates_of(model: Model) -> list[int]:
    """The numbers of clusters that something speaks for."""
    return [] if model.proposal is None else [one.n_clusters for one in model.proposal.candidates]


def one_fits_as_well(model: Model) -> bool:
    """Whether the evidence speaks for a single cluster at least as much as for so many."""
    if model.proposal is None:
        return False
    evidence = dict(zip(model.proposal.n_clusters, model.proposal.evidence, strict=True))
    return len(model.centroids) > 1 and evidence.get(1, -math.inf) >= evidence.get(len(model.centroids), math.inf)


def by_cluster(labels: IntArray, mass: IntArray, n_clusters: int) -> IntArray:
    """Rows in every cluster."""
    return np.bincount(labels, weights=mass, minlength=n_clusters).astype(np.int64)


def cards(support: Support, model: Model, profiles: Profiles, badges: Sequence[Badge]) -> Iterator[Card]:
    """The global clusters."""
    share = support.weight / support.weight.sum()
    for number, badge in enumerate(badges):
        members = model.micro_labels == number
        near = profiles.nearest(number)
        yield Card(
            badge=badge,
            micro_clusters=int(members.sum()),
            share=float(share[number]),
            rows=None if support.all_rows is None else int(support.all_rows[number]),
            certainty=float(model.micro_certainty[members].mean()) if members.any() else None,
            sites=support.sites_of(number),
            traits=profiles.traits(number),
            nearest=None if near is None else badges[near],
            apart="" if near is None else profiles.between(number, near),
        )


def most_different(profiles: Profiles) -> IntArray:
    """The features that are shown: all, or of too many those that differ most, in their order."""
    return np.sort(profiles.most_different_first(np.arange(len(profiles.features)))[:MOST_FEATURES_SHOWN])


def feature_table(profiles: Profiles, shown_features: IntArray) -> list[tuple[Feature, list[TableCell]]]:
    """Every feature (down) in every cluster (across)."""
    return [(profiles.features[f], list(cells_of(profiles, f))) for f in shown_features.tolist()]


def cells_of(profiles: Profiles, f: int) -> Iterator[TableCell]:
    """One feature in every cluster."""
    feature = profiles.features[f]
    for value, spread, z in zip(profiles.means[:, f], profiles.spread[:, f], profiles.z[:, f], strict=True):
        yield TableCell(feature.text(value), "" if feature.is_share else feature.text(spread), float(z))


def discs(terrain: Terrain, badges: Sequence[Badge]) -> Iterator[tuple[float, float, float, Badge, str]]:
    """Everything on the map: where, how large, of which cluster, and what it is."""
    points = terrain.points
    for place, radius, label, title in zip(terrain.places, terrain.radii, points.labels, points.titles, strict=True):
        yield float(place[0]), float(place[1]), float(radius), badges[label], title


def data_of(
    model: Model, names: Names, profiles: Profiles, all_stops: Sequence[Stop], shown_features: IntArray
) -> dict[str, Any]:
    """What the page's script works with."""
    ids = ids_of(model)
    return {
        "model": model.fingerprint,
        "others": [one.model_dump() for one in names.clusters if one.id not in ids],
        "z": rounded(profiles.z[:, shown_features]),
        "spread": rounded(profiles.steps[:, shown_features]),
        "alike": [np.flatnonzero(row).tolist() for row in profiles.alike[np.ix_(shown_features, shown_features)]],
        "stops": [stop_data(stop, ids) for stop in all_stops],
    }


def stop_data(stop: Stop, ids: Sequence[int]) -> dict[str, Any]:
    """One position of the slider: the group of every point, what groups are called, and whose colour they have."""
    return {
        "count": stop.n_groups,
        "groups": stop.groups.tolist(),
        "names": stop.names,
        "paints": [paint(ids[place]) for place in stop.of],
        "sentence": stop.sentence,
    }


def rounded(values: FloatArray) -> list[list[float]]:
    """As many digits as a comparison is worth."""
    return [[float(f"{value:.4g}") for value in row] for row in values.tolist()]


def as_data(content: Any) -> str:
    """JSON that may stand in a page: no sign of it begins or ends anything there."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
