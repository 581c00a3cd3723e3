"""A model as a page: one file that loads nothing from anywhere, for those who have to make sense of the clusters."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.files import write_durably
from goldfc.message.levels import MULTIPLE
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.report.changes import change_sentences
from goldfc.report.columns_by_site import ColumnsBySite
from goldfc.report.describe import shown_of_clusters
from goldfc.report.drawings import draw_curve, draw_levels, templates
from goldfc.report.features import Feature, features_of
from goldfc.server.influence import LEAST_SITES, LeftOut, check_fused

# How many columns a card shows, if they are so many standard deviations from the mean, and how many features the table.
MOST_TRAITS = 5
LEAST_TRAIT = 0.2
MOST_FEATURES_SHOWN = 300
# No bar is longer than this many standard deviations; its number still says how many there are.
LONGEST_BAR = 3.0
# In the table of all features, what is so many standard deviations from the mean has the full tint, and an arrow.
FULL_TINT, ARROW = 2.0, 1.0


@dataclass(frozen=True)
class Trait:
    """What is special about a cluster: one feature, and how far it lies from the mean of all, in deviations."""

    feature: Feature
    value: float
    z: float
    longest: float  # the length of the longest bar

    @property
    def left(self) -> float:
        """Where its bar begins, in per cent; the mean of all is in the middle."""
        return 50.0 - (self.width if self.z < 0.0 else 0.0)

    @property
    def width(self) -> float:
        """How long its bar is, in per cent."""
        return 50.0 * min(abs(self.z) / self.longest, 1.0)


@dataclass(frozen=True)
class Card:
    """A global cluster."""

    number: int  # its id
    micro_clusters: int
    share: float  # of all rows; where these are not known, of all micro-clusters
    rows: int | None
    certainty: float | None  # none where nothing is in it
    sites: tuple[str, ...]
    traits: tuple[Trait, ...]


@dataclass(frozen=True)
class Cell:
    """Of the table of features: a centroid's value, and how far it lies from the mean of all."""

    text: str
    z: float

    @property
    def tint(self) -> str:
        """Orange above the mean, blue below; always light enough for dark letters."""
        paint = "183, 121, 31" if self.z > 0.0 else "31, 78, 140"
        return f"rgba({paint}, {0.45 * min(abs(self.z) / FULL_TINT, 1.0):.2f})"

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
        """Every site and its cells: micro-clusters, rows, and how much that is of the most it has in any cluster."""
        for site, micro, rows in zip(self.sites, self.micro.tolist(), self.rows, strict=True):
            known = [None] * len(micro) if rows is None else rows.tolist()
            counts = micro if rows is None else known
            yield site, [(*pair, count / max(counts)) for *pair, count in zip(micro, known, counts, strict=True)]

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
) -> None:
    """Render the page and write it, for its owner alone.

    With the `summaries` that were fused it tells rows as well. `left_out` are the results without each site,
    `expected` are all who might have taken part, and `refused` says of whom nothing was taken, and why.
    """
    check_fused(model, summaries)
    support = Support.of(model, summaries)
    features = features_of(model, support.weight)
    distances = z_scores(model, features)
    html = (
        templates()
        .get_template("model.html")
        .render(
            model=model,
            support=support,
            cards=list(cards(model, support, features, distances)),
            table=table_of(model, features, distances),
            n_features=len(features),
            maybe_one=one_fits_as_well(model),
            curve=draw_curve(model.proposal) if model.proposal and len(model.proposal.n_clusters) > 1 else None,
            shown=shown_of_clusters(model),
            tree=draw_levels(model.levels, model.micro_labels, len(model.centroids)),
            ids=model.ids.tolist(),
            changes=change_sentences(model),
            rounds=sites_by_round(summaries),
            by_site=ColumnsBySite.of(summaries),
            summaries=summaries,
            promises=promises_of(summaries),
            multiple=MULTIPLE,
            left_out=sorted(left_out, key=lambda without: without.agreement),
            least_sites=LEAST_SITES,
            missing=[name for name in expected if name not in model.sites and name not in refused],
            refused=refused,
            alone=model.ids[support.micro.sum(axis=0) == 1].tolist(),
        )
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


def one_fits_as_well(model: Model) -> bool:
    """Whether the evidence speaks for a single cluster at least as much as for so many."""
    if model.proposal is None:
        return False
    evidence = dict(zip(model.proposal.n_clusters, model.proposal.evidence, strict=True))
    return len(model.centroids) > 1 and evidence.get(1, -math.inf) >= evidence.get(len(model.centroids), math.inf)


def by_cluster(labels: IntArray, mass: IntArray, n_clusters: int) -> IntArray:
    """Rows in every cluster."""
    return np.bincount(labels, weights=mass, minlength=n_clusters).astype(np.int64)


def z_scores(model: Model, features: Sequence[Feature]) -> FloatArray:
    """How far every centroid lies from the mean of all rows, in standard deviations."""
    mean, deviation = np.array([(feature.mean, feature.deviation) for feature in features]).T
    return np.asarray((model.centroids - mean) / deviation)


def cards(model: Model, support: Support, features: Sequence[Feature], distances: FloatArray) -> Iterator[Card]:
    """The global clusters."""
    longest = min(LONGEST_BAR, max(1.0, float(np.abs(distances).max())))
    share = support.weight / support.weight.sum()
    for number, (centroid, z) in enumerate(zip(model.centroids, distances, strict=True)):
        members = model.micro_labels == number
        yield Card(
            number=int(model.ids[number]),
            micro_clusters=int(members.sum()),
            share=float(share[number]),
            rows=None if support.all_rows is None else int(support.all_rows[number]),
            certainty=float(model.micro_certainty[members].mean()) if members.any() else None,
            sites=support.sites_of(number),
            traits=tuple(
                Trait(features[f], float(centroid[f]), float(z[f]), longest) for f in most_special(features, z)
            ),
        )


def most_special(features: Sequence[Feature], z: FloatArray) -> list[int]:
    """The features furthest from the mean of all, one of each column; of two as far, what there is more of."""
    chosen: dict[str, int] = {}
    for number in np.lexsort((-z, -np.round(np.abs(z), 6))):
        if abs(z[number]) >= LEAST_TRAIT:
            chosen.setdefault(features[number].column, int(number))
    return list(chosen.values())[:MOST_TRAITS]


def table_of(model: Model, features: Sequence[Feature], distances: FloatArray) -> list[tuple[Feature, list[Cell]]]:
    """Every feature (down) in every cluster (across); of too many those that differ most, in their order."""
    shown = np.sort(np.argsort(-np.abs(distances).max(axis=0), kind="stable")[:MOST_FEATURES_SHOWN])
    return [
        (
            features[f],
            [
                Cell(features[f].text(value), float(z))
                for value, z in zip(model.centroids[:, f], distances[:, f], strict=True)
            ],
        )
        for f in shown
    ]
