"""A result as tables, for those who work in Python, with what people call the clusters; and what is in a file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from goldfc._types import IntArray
from goldfc.errors import BadSettings
from goldfc.message.columns import complaint_code, first_complaint
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.message.wire import decode, naming, read_message
from goldfc.names import NAMELESS, Called, Names, names_beside, read_names
from goldfc.report.describe import listed
from goldfc.report.model_page import Support, write_model_report
from goldfc.report.profiles import Profiles, both_steps
from goldfc.report.rules import ClusterRule, rules

# Whose frame it is, where several are installed.
LIBRARIES = ("pandas", "polars")
# A model tells the masses of clusters in rows if these are all rows, up to rounding.
NEARLY_ALL_ROWS = 0.05

Record = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """A model to be looked at; with the summaries that it was made from it tells more."""

    model: Model
    summaries: tuple[Summary, ...] = ()
    names: Names = NAMELESS

    @cached_property
    def support(self) -> Support:
        """Whose the clusters are."""
        return Support.of(self.model, self.summaries)

    @cached_property
    def likenesses(self) -> Profiles:
        """What the clusters are like."""
        return Profiles.of(self.model, self.support.weight)

    @cached_property
    def rules(self) -> list[ClusterRule]:
        """A rule for every cluster."""
        return rules(self.model, self.likenesses)

    @cached_property
    def badges(self) -> tuple[Called, ...]:
        """What every cluster is called."""
        return self.names.in_model(self.model)

    @cached_property
    def titles(self) -> list[str]:
        """The number of every cluster, and its name if it has one."""
        return [f"{badge.id} {badge.name}".strip() for badge in self.badges]

    @property
    def rows(self) -> IntArray | None:
        """Rows in every cluster: as the sites tell, or about as many as the model tells, where it does."""
        mass, moments = self.model.mass, self.model.moments
        if self.support.all_rows is not None:
            return self.support.all_rows
        told = moments is not None and abs(mass.sum() - moments.count) <= NEARLY_ALL_ROWS * moments.count
        return mass.round().astype(np.int64) if told else None

    # --- tables ---

    def clusters(self) -> Any:
        """A line for every cluster."""
        return as_frame(list(self.cluster_lines()))

    def profiles(self) -> Any:
        """A line for every column in every cluster."""
        return as_frame(list(self.profile_lines()))

    def contrast(self, one: int | str, other: int | str) -> Any:
        """A line for every column, the most different one first."""
        return as_frame(list(self.contrast_lines(self.place_of(one), self.place_of(other))))

    def cluster_lines(self) -> Iterator[Record]:
        """The size of every cluster, whose it is, what sets it apart, and its rule."""
        for place, (badge, rule) in enumerate(zip(self.badges, self.rules, strict=True)):
            yield {
                "cluster": badge.id,
                "name": badge.name,
                "share": float(self.model.mass[place] / self.model.mass.sum()),
                "rows": None if self.rows is None else int(self.rows[place]),
                "micro_clusters": int(self.support.micro[:, place].sum()),
                "sites": listed(self.support.sites_of(place)),
                "sets_apart": "; ".join(
                    f"{trait.feature.name} {trait.text} ({trait.words})" for trait in self.likenesses.traits(place)
                ),
                "rule": rule.text,
                "precision": rule.precision,
                "covered": rule.covered,
            }

    def profile_lines(self) -> Iterator[Record]:
        """Every column in every cluster: its mean and spread, the mean of all, and how far that is, in deviations."""
        told = self.likenesses
        for place, badge in enumerate(self.badges):
            for f, feature in enumerate(told.features):
                yield {
                    "cluster": badge.id,
                    "name": badge.name,
                    "column": feature.name,
                    "unit": "share" if feature.is_share else feature.unit,
                    "mean": float(told.means[place, f]),
                    "spread": float(told.spread[place, f]),
                    "all": feature.mean,
                    "deviations": float(told.z[place, f]),
                }

    def contrast_lines(self, one: int, other: int) -> Iterator[Record]:
        """Every column in two clusters, and how many spreads the first is above the second."""
        told = self.likenesses
        apart = (told.z[one] - told.z[other]) / both_steps(told.steps[one], told.steps[other])
        for f in np.argsort(-np.abs(apart), kind="stable").tolist():
            feature = told.features[f]
            yield {
                "column": feature.name,
                "unit": "share" if feature.is_share else feature.unit,
                "first": float(told.means[one, f]),
                "second": float(told.means[other, f]),
                "first_spread": float(told.spread[one, f]),
                "second_spread": float(told.spread[other, f]),
                "apart": float(apart[f]),
            }

    def place_of(self, cluster: int | str) -> int:
        """Where a cluster stands in the model, by its number or its name."""
        for place, badge in enumerate(self.badges):
            if str(cluster) in {str(badge.id), badge.name}:
                return place
        raise BadSettings(f"There is no cluster {cluster!r}; there are {listed(self.titles)}.", "cluster-unknown")

    def report(self, path: str | PathLike[str]) -> None:
        """The page."""
        write_model_report(self.model, Path(path), self.summaries, names=self.names)


def as_frame(lines: list[Record]) -> Any:
    """Of whichever library is there; the lines where none is."""
    for library in LIBRARIES:
        try:
            return import_module(library).DataFrame(lines)
        except ImportError:
            pass
    return lines


def names_from(names: Names | Mapping[int, str] | str | PathLike[str], model: Model) -> Names:
    """From what somebody typed, or from a file."""
    if isinstance(names, Names):
        return names
    return as_typed(names) if isinstance(names, Mapping) else read_names(Path(names), model)


def as_typed(names: Mapping[int, str]) -> Names:
    """Checked as those in a file are."""
    try:
        return Names(clusters=tuple(Called(id=int(number), name=name) for number, name in names.items()))
    except ValidationError as error:
        raise BadSettings(
            f"One of these names is not as it should be: {first_complaint(error)}.",
            complaint_code(error, "settings-invalid"),
        ) from error


def load(path: str | PathLike[str]) -> Model | Summary:
    """The model or the summary in a file, whichever it is; a model with the names in names.toml beside it.

    Parameters
    ----------
    path
        A message, such as global.model or north.summary; one that is sealed must be opened by `goldfc label` or
        `goldfc inspect` with the receiver's key.

    Returns
    -------
    Model or Summary
        What it prints says what it is.
    """
    file = Path(path)
    message = decode(read_message(file), file.name)
    with naming(file.name):
        if message.kind == Summary.KIND:
            return Summary.from_message(message)
        model = Model.from_message(message)
    return model.called(names_beside(file, model))
