"""The features of a model, as people call them, and what they are like in all rows."""

import math
from dataclasses import dataclass

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.learning.micro_clusters import diagonal_of
from goldfc.learning.moments import scale_of
from goldfc.message.columns import Terms
from goldfc.message.model import Model


@dataclass(frozen=True)
class Feature:
    """One number of a row, as people call it."""

    column: str
    name: str
    unit: str
    is_share: bool  # of yes and no, and of categories, a centroid is a share
    mean: float
    deviation: float

    def text(self, value: float) -> str:
        """A value as one would say it: no more digits than the spread makes worth reading."""
        if self.is_share:
            return f"{round(100.0 * value) + 0:d} %"
        text = f"{self.rounded(value):,.{self.decimals}f}" if self._is_plain(value) else f"{value:.4g}"
        return text.replace("-", "\N{MINUS SIGN}")

    @property
    def decimals(self) -> int:
        """How many are worth reading."""
        return max(0, 1 - math.floor(math.log10(self.deviation)))

    def rounded(self, value: float) -> float:
        """The number that its text says; 0 has no sign."""
        return round(value, self.decimals) + 0.0 if self._is_plain(value) else float(f"{value:.4g}")

    def _is_plain(self, value: float) -> bool:
        return self.decimals <= 6 and abs(value) < 1e9

    def with_unit(self, value: float) -> str:
        """The same with its unit."""
        return f"{self.text(value)} {self.unit}".strip()


def features_of(model: Model, weight: IntArray) -> list[Feature]:
    """All features with their names and what they are like in all rows."""
    return features_in(model.terms, *overall(model, weight))


def features_in(terms: Terms, mean: FloatArray, deviation: FloatArray) -> list[Feature]:
    """The features of some columns, which need not have names."""
    names = [
        (column.name, name, column.unit, column.kind != "number")
        for column in terms.columns
        for name in column.feature_names
    ] or [(f"column {number}",) * 2 + ("", False) for number in range(1, len(mean) + 1)]
    return [
        Feature(*named, mean=float(m), deviation=float(d)) for named, m, d in zip(names, mean, deviation, strict=True)
    ]


def overall(model: Model, weight: IntArray) -> tuple[FloatArray, FloatArray]:
    """The mean and the standard deviation of all rows: as the sites told them, or as centroids and covariance do."""
    if model.moments is not None:
        return model.moments.mean, model.moments.scale
    mean = np.average(model.centroids, axis=0, weights=weight)
    variance = np.average((model.centroids - mean) ** 2, axis=0, weights=weight)
    numbers, inside = model.layout.numbers, diagonal_of(model.covariance)
    variance[numbers] += (np.average(inside, axis=0, weights=weight) if inside.ndim == 2 else inside)[: len(numbers)]
    # A row has a level or not.
    share = np.clip(mean, 0.0, 1.0)
    for levels in model.layout.categories:
        variance[levels] = share[levels] * (1.0 - share[levels])
    return mean, scale_of(variance, np.abs(mean))[0]
