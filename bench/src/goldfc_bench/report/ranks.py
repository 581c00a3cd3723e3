"""Who is better: best and second, mean ranks, and whether a difference could be chance.

All of it on a matrix of means, a row per data set and a column per method, higher is better. A mean that is not defined
(the silhouette of a single cluster) is the lowest of all.
"""

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata, wilcoxon

from goldfc._types import FloatArray
from goldfc_bench.report.parts import Mark

DECIMALS = 3  # what looks equal in a table is equal
SIGNIFICANT = 0.05
# With five differences, all of one sign, p is 2 / 2**5 = 0.0625: no test could be passed.
FEWEST_DATASETS = 6


def best_and_second(values: Sequence[float]) -> list[Mark]:
    """The highest value and the next one; equal values share the mark."""
    rounded = [round(value, DECIMALS) for value in values]
    heights = sorted({value for value in rounded if np.isfinite(value)}, reverse=True)
    names: dict[float, Mark] = dict(zip(heights, ("best", "second"), strict=False))
    return [names.get(value, "") for value in rounded]


def mean_ranks(means: FloatArray) -> FloatArray:
    """The mean over the data sets of each method's rank, 1 for the highest; equal ones share the average."""
    defined = np.where(np.isfinite(means), np.round(means, DECIMALS), -np.inf)
    return np.asarray(rankdata(-defined, axis=1).mean(axis=0))


def sign_against(gold: FloatArray, other: FloatArray) -> str:
    """Wilcoxon's signed-rank test over the data sets: "+" if GOLD is significantly better, "-" if worse, else "="."""
    both = np.isfinite(gold) & np.isfinite(other)
    differences = gold[both] - other[both]
    differences = differences[differences != 0.0]
    if len(differences) < FEWEST_DATASETS or wilcoxon(differences).pvalue >= SIGNIFICANT:
        return "="
    ranks = rankdata(np.abs(differences))
    return "+" if ranks[differences > 0].sum() > ranks[differences < 0].sum() else "-"


def growth_exponent(sizes: FloatArray, seconds: FloatArray) -> float:
    """The b of seconds = a * size**b, by least squares on logarithms; nan where there is a single size."""
    if len(np.unique(sizes)) < 2:
        return np.nan
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
