"""A site's own rows as a page, for the site alone: what the clusters are like here, and in all sites together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.files import write_durably
from goldfc.message.columns import shown
from goldfc.names import NAMELESS, Names
from goldfc.report.features import Feature
from goldfc.report.model_page import Badge, TableCell, badges_of
from goldfc.report.own_rows import BINS, BINS_OF_A_BAR, OwnRow, OwnRows
from goldfc.report.page import sealed_page
from goldfc.report.profiles import LEAST_APART, Profiles, Trait, both_steps, most_special
from goldfc.site.label import predict_proba
from goldfc.site.labels import LabelCounts

# A picture: histogram above, quartiles below it, and the mean and spread of all sites' rows below these.
BAR_WIDTH, BAR_HEIGHT = 5, 20
BARS = BINS // BINS_OF_A_BAR
# Of fewer rows a mean says little.
FEWEST_FOR_MEAN = 10
# How many columns say what is special about a row; how many levels have a share.
MOST_WORDS, MOST_LEVELS = 3, 60
# So long may be what a row is called.
LONGEST_ID = 60
# A share that differs by so much from that of all sites has the full tint.
DIFFERENT_SHARE = 0.5


@dataclass(frozen=True)
class SiteCard:
    """A cluster at this site."""

    place: int
    badge: Badge
    rows: int
    share: float  # of the site's rows
    of_all: float  # of all sites' rows
    certainty: float | None
    far: int
    traits: tuple[tuple[Trait, str], ...]  # what sets it apart, and the mean of the site's own rows
    differs: str  # how the site's rows differ from all sites' rows in it
    typical: tuple[tuple[OwnRow, str], ...]


@dataclass(frozen=True)
class Strip:
    """One column in one cluster, drawn on the column's axis: in the units of the picture."""

    place: int
    badge: Badge
    rows: int
    bars: str  # a path
    box: tuple[float, ...]  # smallest, quarter, half, three quarters, largest
    federation: tuple[float, ...]  # a spread below the mean, the mean, a spread above
    quartiles: tuple[str, ...]
    mean: str
    of_all: str


@dataclass(frozen=True)
class ColumnPicture:
    """A column of numbers in all clusters."""

    feature: Feature
    axis: tuple[str, ...]
    strips: tuple[Strip, ...]


@dataclass(frozen=True)
class ToldRow:
    """A row in a list, and what there is to say of it."""

    row: OwnRow
    badge: Badge
    other: Badge | None
    words: str


def write_site_report(
    own: OwnRows, counts: LabelCounts, path: Path, names: Names = NAMELESS, *, id_name: str | None = None
) -> None:
    """Render the page and write it, for its owner alone; `id_name` is the column that tells rows apart."""
    badges = badges_of(own.model, names)
    html = sealed_page(
        "site.html",
        style="site.css",
        script="site.js",
        model=own.model,
        own=own,
        badges=badges,
        id_name=None if id_name is None else shown(id_name),
        labelled=int(own.rows.sum()),
        cards=list(site_cards(own, badges)),
        columns=list(column_pictures(own, badges)),
        picture=(BARS * BAR_WIDTH, BAR_HEIGHT),
        shares=list(share_lines(own)),
        numbers=sum(not one.is_share for one in own.profiles.features),
        levels=sum(one.is_share for one in own.profiles.features),
        far=[far_row(own, row, badges) for row in own.far.rows],
        unsure=list(unsure_rows(own, badges)),
        few=FEWEST_FOR_MEAN,
        without=[(shown(reason), counts.without[reason], numbers) for reason, numbers in own.without.items()],
        called_row=called,
    )
    write_durably(path, html.encode(errors="replace"), private=True)


def called(row: OwnRow) -> str:
    """What a row is called in the file, short and without signs that nobody sees."""
    text = shown(row.id)
    return text if len(text) <= LONGEST_ID else f"{text[: LONGEST_ID - 1]}\N{HORIZONTAL ELLIPSIS}"


def site_cards(own: OwnRows, badges: Sequence[Badge]) -> Iterator[SiteCard]:
    """All clusters, those that have no row here too."""
    profiles, means, mass = own.profiles, own.means, own.model.mass
    for place, badge in enumerate(badges):
        rows, traits = int(own.rows[place]), profiles.traits(place)
        features = [profiles.features.index(trait.feature) for trait in traits]
        is_told = rows >= FEWEST_FOR_MEAN
        yield SiteCard(
            place=place,
            badge=badge,
            rows=rows,
            share=rows / max(1, int(own.rows.sum())),
            of_all=float(mass[place] / mass.sum()),
            certainty=float(own.certainty[place] / rows) if rows else None,
            far=int(own.far_rows[place]),
            traits=tuple(
                (trait, trait.feature.text(means[place, f]) if rows else "")
                for trait, f in zip(traits, features, strict=True)
            ),
            differs=profiles.apart(means[place], profiles.means[place], profiles.steps[place]) if is_told else "",
            typical=tuple((row, values_in_words(profiles, row, features)) for row in own.typical[place].rows),
        )


def values_in_words(profiles: Profiles, row: OwnRow, features: Sequence[int]) -> str:
    """Some values of a row; of a category the level that it has."""
    return ", ".join(value_in_words(profiles, row, f) for f in held(profiles, row, features))


def held(profiles: Profiles, row: OwnRow, features: Sequence[int]) -> list[int]:
    """The same features, but of every category the level that the row has."""
    return list(dict.fromkeys(level_of(profiles, row, f) for f in features))


def level_of(profiles: Profiles, row: OwnRow, f: int) -> int:
    """Of a category the level that the row has; another feature is itself."""
    feature = profiles.features[f]
    if not feature.is_share or feature.name == feature.column:
        return f
    levels = [at for at, one in enumerate(profiles.features) if one.column == feature.column]
    return levels[int(row.values[levels].argmax())]


def value_in_words(profiles: Profiles, row: OwnRow, f: int) -> str:
    """One value of a row, with the name of its column."""
    feature = profiles.features[f]
    if not feature.is_share:
        return f"{feature.name} {number_text(row.values[f])} {feature.unit}".strip()
    if feature.name == feature.column:
        return f"{feature.name} {'yes' if row.values[f] > 0.0 else 'no'}"
    return feature.name


def number_text(value: float) -> str:
    """A value as it is in the file, or nearly."""
    return f"{value:.6g}".replace("-", "\N{MINUS SIGN}")


# --- columns ---


def column_pictures(own: OwnRows, badges: Sequence[Badge]) -> Iterator[ColumnPicture]:
    """Every column that is shown."""
    for column, f in enumerate(own.histograms.features.tolist()):
        feature, low, high = own.profiles.features[f], own.histograms.low[column], own.histograms.high[column]
        yield ColumnPicture(
            feature,
            tuple(feature.text(value) for value in (low, (low + high) / 2.0, high)),
            tuple(strip_of(own, badge, place, column) for place, badge in enumerate(badges) if own.rows[place]),
        )


def strip_of(own: OwnRows, badge: Badge, place: int, column: int) -> Strip:
    """One column in one cluster."""
    f, histograms = int(own.histograms.features[column]), own.histograms
    feature, mean, spread = own.profiles.features[f], own.profiles.means[place, f], own.profiles.spread[place, f]
    axis = histograms.low[column], histograms.high[column]
    quartiles = histograms.quartiles(place, column)
    return Strip(
        place,
        badge,
        int(own.rows[place]),
        bars_path(histograms.bars(place, column)),
        on_axis(quartiles, axis),
        on_axis(np.array([mean - spread, mean, mean + spread]), axis),
        tuple(feature.text(value) for value in quartiles),
        feature.text(own.means[place, f]),
        f"{feature.text(mean)} \N{PLUS-MINUS SIGN} {feature.text(spread)}",
    )


def on_axis(values: FloatArray, axis: tuple[float, float]) -> tuple[float, ...]:
    """Where values are in a picture; what lies beyond its ends is at them."""
    return tuple(np.interp(values, axis, (0.0, float(BARS * BAR_WIDTH))).round(1).tolist())


def bars_path(counts: IntArray) -> str:
    """Bars as one line around them; the highest is as high as there is room, and none that has a row is invisible."""
    heights = np.where(counts > 0, np.maximum(1, np.rint(BAR_HEIGHT * counts / counts.max())), 0).astype(int)
    return f"M0,{BAR_HEIGHT}{''.join(f'V{BAR_HEIGHT - one}h{BAR_WIDTH}' for one in heights)}V{BAR_HEIGHT}Z"


def share_lines(own: OwnRows) -> Iterator[tuple[Feature, list[tuple[TableCell, str]]]]:
    """Yes and no, and the levels of categories: the share in every cluster here, and in all sites together."""
    features = np.array([at for at, one in enumerate(own.profiles.features) if one.is_share], dtype=np.int64)
    chosen = np.sort(own.profiles.most_different_first(features)[:MOST_LEVELS])
    for f in chosen.tolist():
        feature = own.profiles.features[f]
        pairs = zip(own.means[:, f].tolist(), own.profiles.means[:, f].tolist(), strict=True)
        yield feature, [(share_cell(feature, here, there), feature.text(there)) for here, there in pairs]


def share_cell(feature: Feature, here: float, there: float) -> TableCell:
    """A share of this site's rows, tinted by how it differs from that of all sites."""
    if np.isnan(here):
        return TableCell("", "", 0.0)
    return TableCell(feature.text(here), "", 2.0 * (here - there) / DIFFERENT_SHARE)


# --- rows ---


def far_row(own: OwnRows, row: OwnRow, badges: Sequence[Badge]) -> ToldRow:
    """A row that is far from every cluster, and in what it is unlike the one that is nearest to it."""
    profiles, centre = own.profiles, centre_near(own, row)
    distance = np.abs(profiles.unit(row.values) - profiles.unit(centre)) / profiles.steps[row.place]
    chosen = held(profiles, row, most_telling(profiles, distance))
    words = (f"{value_in_words(profiles, row, f)} ({profiles.features[f].text(centre[f])} there)" for f in chosen)
    return ToldRow(row, badges[row.place], None, ", ".join(words))


def centre_near(own: OwnRows, row: OwnRow) -> FloatArray:
    """The mean of a row's cluster; of clusters that are not convex the nearest prototype."""
    prototypes = own.model.prototypes
    if prototypes is None:
        return np.asarray(own.profiles.means[row.place])
    points = prototypes.points[prototypes.labels == row.place]
    apart = (own.profiles.unit(points) - own.profiles.unit(row.values)) / own.profiles.steps[row.place]
    return np.asarray(points[(apart**2).sum(axis=1).argmin()])


def unsure_rows(own: OwnRows, badges: Sequence[Badge]) -> Iterator[ToldRow]:
    """Rows that another cluster could nearly as well have, and what would tell."""
    rows = own.unsure.rows
    likely = predict_proba(own.model, np.array([row.values for row in rows]).reshape(-1, len(own.profiles.features)))
    for row, line in zip(rows, likely, strict=True):
        line[row.place] = 0.0
        other = int(line.argmax())
        yield ToldRow(row, badges[row.place], badges[other], between_words(own.profiles, row, other, badges))


def between_words(profiles: Profiles, row: OwnRow, other: int, badges: Sequence[Badge]) -> str:
    """A row's values in what tells two clusters apart, and their means."""
    steps = both_steps(profiles.steps[row.place], profiles.steps[other])
    distance = np.abs(profiles.z[row.place] - profiles.z[other]) / steps
    words = []
    for f in held(profiles, row, most_telling(profiles, distance)):
        means = [f"{profiles.features[f].text(profiles.means[at, f])} in {badges[at].id}" for at in (row.place, other)]
        words.append(f"{value_in_words(profiles, row, f)} ({', '.join(means)})")
    return ", ".join(words)


def most_telling(profiles: Profiles, distance: FloatArray) -> list[int]:
    """The few features in which a distance is largest, what says the same thing once."""
    return [f for f, _ in most_special(distance, profiles.alike, least=LEAST_APART)[:MOST_WORDS]]
