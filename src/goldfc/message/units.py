"""What would make a column fit the others': a factor, another zero, or nothing that is known."""

import math
import re
from dataclasses import dataclass

# A column's mean may be off from what a guess says by about one spread of the others, and the logarithm of its own
# spread by so much: sites see different clusters. A guess whose squares sum to more than FITS does not fit.
SPREADS_DIFFER, FITS = 0.7, 6.0
# A word of a column's name or unit speaks for a unit by so much.
SPEAKS_FOR = 2.0
# Further off it does not matter how far.
MOST_OFF = 100.0
# What is not known by name, but clear, must be so: mean and spread tell the same factor, up to this one.
SAME_FACTOR = 3.0


@dataclass(frozen=True)
class Conversion:
    """Two units: a value in one is `factor` times that in the other, plus `offset`."""

    factor: float
    what: str
    offset: float = 0.0

    @property
    def inverse(self) -> "Conversion":
        """The other way round."""
        return Conversion(1.0 / self.factor, self.what, -self.offset / self.factor)

    @property
    def text(self) -> str:
        """In words."""
        factor = f"{self.factor:.4g}" if self.factor >= 1.0 else f"1/{1.0 / self.factor:.4g}"
        parts = [f"a factor of {factor}"] if self.factor != 1.0 else []
        parts += [f"{self.offset:+.5g}"] if self.offset else []
        return f"{' and '.join(parts)} would fit{', as between ' if self.what else ''}{self.what}"


UNITS = (
    Conversion(1_000.0, "values with and without a mark of thousands"),
    *(Conversion(power, "") for power in (10.0, 100.0, 1e4, 1e5, 1e6, 1e9)),
    Conversion(38.67, "cholesterol (LDL, HDL) in mg/dL and mmol/L"),
    Conversion(18.02, "glucose in mg/dL and mmol/L"),
    Conversion(88.4, "creatinine in µmol/L and mg/dL, or triglycerides in mg/dL and mmol/L"),
    Conversion(7.501, "mmHg and kPa"),
    Conversion(4.184, "kJ and kcal"),
    Conversion(2.54, "cm and inches"),
    Conversion(30.48, "cm and feet"),
    Conversion(3.281, "feet and m"),
    Conversion(2.205, "pounds and kg"),
    Conversion(1.609, "km and miles"),
    Conversion(7.0, "days and weeks"),
    Conversion(12.0, "months and years"),
    Conversion(24.0, "hours and days"),
    Conversion(52.18, "weeks and years"),
    Conversion(365.2, "days and years"),
    Conversion(60.0, "minutes and hours, or seconds and minutes"),
    Conversion(3_600.0, "seconds and hours"),
    Conversion(1.8, "°F and °C", 32.0),
    Conversion(1.0, "K and °C", 273.15),
)
KNOWN = tuple(unit for one in UNITS for unit in (one, one.inverse))


@dataclass(frozen=True)
class Look:
    """A column's mean and spread, as one site or the others tell; a spread that nobody tells is nan."""

    mean: float
    spread: float


def likely(own: Look, others: Look, apart: float, about: str = "") -> Conversion | None:
    """What the site's unit may be to that of the others, whose means lie about so far apart; known ones first.

    Of those that fit, the name and the unit of the column may speak for one.
    """
    fitting = [(cost, unit) for unit in KNOWN if (cost := misfit(unit, own, others, apart)) <= FITS]
    if fitting:
        return min(fitting, key=lambda pair: pair[0] - SPEAKS_FOR * len(words(about) & words(pair[1].what)))[1]
    factor = own.mean / others.mean if others.mean else 0.0
    spreads = own.spread / others.spread if others.spread else math.nan
    if factor > 0.0 and (math.isnan(spreads) or 1.0 / SAME_FACTOR < spreads / factor < SAME_FACTOR):
        return Conversion(float(f"{factor:.3g}"), "")
    if 1.0 / SAME_FACTOR < spreads < SAME_FACTOR:
        return Conversion(1.0, "", float(f"{own.mean - others.mean:.3g}"))
    return None


def to_unit(column: str, unit: str, wanted: str) -> Conversion | None:
    """What makes a value in one unit one in another, if that is known by their names.

    Of what is measured in several ways, such as in mg/dL, the column's name must say what it is.
    """
    units = spelled(unit), spelled(wanted)
    for known in UNITS:
        for clause in known.what.split(", or "):
            what, _, pair = clause.rpartition(" in ")
            first, _, second = pair.lower().partition(" and ")
            if not what or words(what) & words(column):
                if units == (first, second):
                    return known.inverse
                if units == (second, first):
                    return known
    return None


# As people write units that are spelled out above.
SPELLINGS = {
    **dict.fromkeys(("lb", "lbs", "pound"), "pounds"),
    **dict.fromkeys(("inch", '"'), "inches"),
    **dict.fromkeys(("ft", "foot"), "feet"),
    **dict.fromkeys(("mi", "mile"), "miles"),
    **dict.fromkeys(("s", "sec", "second"), "seconds"),
    **dict.fromkeys(("min", "minute"), "minutes"),
    **dict.fromkeys(("h", "hr", "hrs", "hour"), "hours"),
    **dict.fromkeys(("d", "day"), "days"),
    **dict.fromkeys(("wk", "week"), "weeks"),
    **dict.fromkeys(("mo", "month"), "months"),
    **dict.fromkeys(("y", "yr", "yrs", "year"), "years"),
    **dict.fromkeys(("c", "\u00b0 c", "celsius"), "\u00b0c"),
    **dict.fromkeys(("f", "\u00b0 f", "fahrenheit"), "\u00b0f"),
    "umol/l": "\u00b5mol/l",
}


def spelled(unit: str) -> str:
    """A unit as it is spelled here."""
    bare = unit.strip().casefold().replace("\u03bc", "\u00b5")
    return SPELLINGS.get(bare, bare)


def words(text: str) -> set[str]:
    """Names and units in it."""
    return set(re.split(r"[^\w/°]+", text.lower())) - {"", "and", "or", "in"}


def misfit(unit: Conversion, own: Look, others: Look, apart: float) -> float:
    """How far off a guess is, squared, in what sites differ by anyway."""
    spread, apart = abs(unit.factor) * others.spread, abs(unit.factor) * apart
    off = abs(own.mean - unit.factor * others.mean - unit.offset)
    if (off and off >= MOST_OFF * apart) or (own.spread == 0.0) != (spread == 0.0):
        return math.inf
    wider = math.log(own.spread / spread) / SPREADS_DIFFER if own.spread > 0.0 and spread > 0.0 else 0.0
    return ((off / apart) if off else 0.0) ** 2 + wider**2


def short(value: float) -> str:
    """A number in few digits."""
    return f"{float(f'{value:.3g}'):g}"
