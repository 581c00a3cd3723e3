"""Tables as laboratories have them, Non-ICD sites that hold their rows, and one fault at one site."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.message.columns import Column, Terms
from goldfc.randomness import generator
from goldfc_bench.families import FAMILIES, comparable, sites_of

N_SITES = 8
MOST_ROWS = 150  # of a site
FEWEST_ROWS = 20
EACH = 3  # faults of every federation, one at a time
# Standardised values beyond would be no realistic measurements.
LONGEST = 5.0
# Of a column that is moved, in standard deviations of all rows.
LEAST_MOVE, MOST_MOVE = 8.0, 50.0
BASES = ("round", "stretched alike", "own covariances", "own sizes", "masses 1 to 90", "noise features", "mixed units")


@dataclass(frozen=True)
class Measure:
    """A column: its middle and spread; where it is skewed, the spread is that of its logarithm."""

    name: str
    unit: str
    middle: float
    spread: float
    skewed: bool = False
    whole: bool = False

    def of(self, z: FloatArray) -> FloatArray:
        """Standardised values in this unit, none below zero."""
        values = self.middle * np.exp(self.spread * z) if self.skewed else self.middle + self.spread * z
        return np.asarray(np.round(np.maximum(values, 0.0), 0 if self.whole else 3), dtype=np.float64)


MEASURES = (
    Measure("ldl", "mmol/L", 3.3, 0.28, skewed=True),
    Measure("glucose", "mmol/L", 5.8, 0.25, skewed=True),
    Measure("creatinine", "µmol/L", 85.0, 0.30, skewed=True),
    Measure("income", "EUR", 3_250.0, 0.45, skewed=True, whole=True),
    Measure("steps", "a day", 6_500.0, 0.40, skewed=True, whole=True),
    Measure("temperature", "°C", 36.9, 0.6),
    Measure("age", "years", 55.0, 15.0),
    Measure("systolic", "mmHg", 130.0, 18.0),
    Measure("triglycerides", "mmol/L", 1.6, 0.5, skewed=True),
    Measure("crp", "mg/L", 4.0, 1.0, skewed=True),
)


@dataclass(frozen=True)
class Drawn:
    """A federation: its columns, and the rows of every site that has enough of them."""

    measures: tuple[Measure, ...]
    sites: Mapping[str, FloatArray]

    @property
    def terms(self) -> Terms:
        """As they were agreed on."""
        return Terms(columns=tuple(Column(name=one.name, unit=one.unit) for one in self.measures))

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return [one.name for one in self.measures]


@dataclass(frozen=True)
class Fault:
    """What goes wrong in one of some columns of a site: new values for old ones, by luck."""

    name: str
    columns: tuple[str, ...]
    strike: Callable[[FloatArray, float, np.random.Generator], FloatArray]  # with the spread over all sites
    factor: float | None = None  # which one should be named


def times(values: FloatArray, _spread: float, _rng: np.random.Generator, *, factor: float) -> FloatArray:
    """In other units."""
    return np.round(values * factor, 3)


def in_thousands(values: FloatArray, _spread: float, _rng: np.random.Generator) -> FloatArray:
    """3.250 for 3250, and 950 as before: as a program reads what people have written."""
    return np.where(values >= 1_000.0, values / 1_000.0, values)


def some_in_thousands(values: FloatArray, _spread: float, rng: np.random.Generator) -> FloatArray:
    """The same, in the rows that came from one of two programs."""
    there = rng.random(len(values)) < rng.uniform(0.1, 0.6)
    return np.where(there, in_thousands(values, 0.0, rng), values)


def moved(values: FloatArray, spread: float, rng: np.random.Generator) -> FloatArray:
    """All by the same, up or down."""
    by = spread * np.exp(rng.uniform(np.log(LEAST_MOVE), np.log(MOST_MOVE))) * rng.choice([-1.0, 1.0])
    return np.asarray(values + by)


def in_kelvin(values: FloatArray, _spread: float, _rng: np.random.Generator) -> FloatArray:
    """For degrees Celsius."""
    return values + 273.15


def the_same(values: FloatArray, _spread: float, rng: np.random.Generator) -> FloatArray:
    """One value for all: 0, or that of a row."""
    return np.full(len(values), rng.choice([0.0, rng.choice(values)]))


ALL = tuple(one.name for one in MEASURES)
FAULTS = (
    Fault("mg/dL for mmol/L (38.67)", ("ldl",), partial(times, factor=38.67), 38.67),
    Fault("mg/dL for mmol/L (18.02)", ("glucose",), partial(times, factor=18.02), 18.02),
    Fault("mg/dL for µmol/L (1/88.4)", ("creatinine",), partial(times, factor=1.0 / 88.4), 1.0 / 88.4),
    Fault("a thousandth", ("income", "steps"), partial(times, factor=0.001), 0.001),
    Fault("3.250 for 3250", ("income", "steps"), in_thousands),
    Fault("3.250 for 3250 in some rows", ("income", "steps"), some_in_thousands),
    Fault("moved", ALL, moved),
    Fault("K for °C", ("temperature",), in_kelvin),
    Fault("constant", ALL, the_same),
)


@dataclass(frozen=True)
class Struck:
    """One column of one site with a fault."""

    fault: Fault
    site: str
    column: str
    rows: FloatArray  # all of the site's


def struck_in(number: int) -> Struck:
    """Of the federation that it is of, what one of its sites has instead; the same for the same number."""
    drawn, rng = federation_of(number // EACH), generator(number, "fault")
    fault, column = fault_of(number)
    site, place = str(rng.choice(list(drawn.sites))), drawn.names.index(column)
    rows = drawn.sites[site].copy()
    rows[:, place] = fault.strike(rows[:, place], float(np.vstack(list(drawn.sites.values()))[:, place].std()), rng)
    return Struck(fault, site, column, rows)


def fault_of(number: int) -> tuple[Fault, str]:
    """In turn, and in which column."""
    fault = FAULTS[number % len(FAULTS)]
    return fault, str(generator(number, "column").choice(fault.columns))


@lru_cache(maxsize=1)
def federation_of(draw: int) -> Drawn:
    """Sites of a family, its numbers as columns of a laboratory; among them those that get a fault."""
    base, rng = BASES[draw % len(BASES)], generator(draw, "plausible")
    family = next(one for one in FAMILIES if one.name == base)
    table = family.draw(generator(draw, "family", base))
    z = np.clip(comparable(table)[:, : len(MEASURES)], -LONGEST, LONGEST)
    needed = {fault_of(number)[1] for number in range(EACH * draw, EACH * (draw + 1))}
    measures = with_columns(needed, z.shape[1], rng)
    values = np.column_stack([one.of(z[:, place]) for place, one in enumerate(measures)])
    held = [few_of(rows, rng) for rows in sites_of(table, N_SITES, generator(draw, "sites", base))]
    return Drawn(measures, {f"s{place}": values[rows] for place, rows in enumerate(held) if len(rows) >= FEWEST_ROWS})


def with_columns(names: set[str], count: int, rng: np.random.Generator) -> tuple[Measure, ...]:
    """So many measures in any order, among them these."""
    order = [MEASURES[place] for place in rng.permutation(len(MEASURES))]
    chosen = sorted(order, key=lambda one: one.name not in names)[:count]
    return tuple(chosen[place] for place in rng.permutation(len(chosen)))


def few_of(rows: IntArray, rng: np.random.Generator) -> IntArray:
    """At most so many of a site's rows."""
    return np.sort(rng.permutation(rows)[:MOST_ROWS])
