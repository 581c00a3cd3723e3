"""Privacy levels as all sides know them: what a site promises, and what others may rely on.

A level is one class here, with a line in `LEVELS`; what a site does for it has a line in `goldfc.site.summarize`.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field

from goldfc.message.columns import Strict

# Numbers of rows are told in multiples of this.
MULTIPLE = 5


class Level(Strict):
    """A level; its fields are its settings, which have the same names in federation.toml."""

    @classmethod
    def agreed(cls, settings: Mapping[str, Any]) -> Self:
        """With the settings that were agreed on."""
        return cls(**{name: settings[name] for name in cls.model_fields})

    @property
    def name(self) -> str:
        """What it is called in federation.toml and in messages."""
        return next(name for name, level in LEVELS.items() if level is type(self))

    @property
    def fewest(self) -> int:
        """No micro-cluster has fewer rows."""
        return 1

    @property
    def tells_moments(self) -> bool:
        """Whether moments of columns go along where sites learn in scales of their own."""
        return True

    @property
    def promise(self) -> str:
        """What it means, in words."""
        raise NotImplementedError

    def missing_in(self, told: "Level") -> str | None:
        """What a summary of another level lacks, in words, where this one was agreed on; None if nothing."""
        return None if isinstance(told, type(self)) else f"its level is {told.name!r}, not {self.name!r}"

    def to_fact(self) -> dict[str, Any]:
        """As it travels."""
        return {"name": self.name, **self.model_dump(mode="json")}


class Plain(Level):
    """Nothing is hidden: for one's own data, and for research."""

    @property
    def promise(self) -> str:
        """What it means, in words."""
        return "plain: a micro-cluster may be a single row, and its mean that row"

    def missing_in(self, told: Level) -> str | None:  # noqa: ARG002 (whatever is stricter will do)
        """Nothing."""
        return None


class Suppressed(Level):
    """No small groups, and nothing more exact than the rows behind it can bear."""

    smallest: Annotated[int, Field(ge=2, le=10_000)] = 5

    @property
    def fewest(self) -> int:
        """No micro-cluster has fewer rows."""
        return self.smallest

    @property
    def promise(self) -> str:
        """What it means, in words."""
        return (
            f"suppressed: no micro-cluster of fewer than {self.smallest} rows, means rounded to a grid, numbers of "
            f"rows to multiples of {MULTIPLE}"
        )

    def missing_in(self, told: Level) -> str | None:
        """Smaller micro-clusters than agreed; whatever is private will do."""
        if isinstance(told, Private):
            return None
        if isinstance(told, Suppressed) and told.smallest < self.smallest:
            return f"micro-clusters from {told.smallest} rows on, not from {self.smallest}"
        return super().missing_in(told)


class Private(Level):
    """Differential privacy: a message is hardly less likely without any row, or any person, than with."""

    eps: Annotated[float, Field(ge=0.05, le=64.0)] = 1.0
    delta: Annotated[float, Field(ge=1e-12, le=1e-3)] = 1e-5
    most_rows: Annotated[int, Field(ge=1, le=1_000)] = 1  # of one person; more do not count

    @property
    def tells_moments(self) -> bool:
        """Nothing beside the micro-clusters."""
        return False

    @property
    def whose(self) -> str:
        """What the promise is about."""
        return "any row" if self.most_rows == 1 else f"any person with up to {self.most_rows} rows"

    @property
    def promise(self) -> str:
        """What it means, in words."""
        return (
            f"private: ({self.eps:g}, {self.delta:g})-differential privacy for {self.whose} of this site, in "
            f"this message: nothing that anybody learns from it is more than {self.times:.3g} times as likely as it "
            f"would be without them, except with a probability of {self.delta:g}"
        )

    @property
    def times(self) -> float:
        """How many times as likely."""
        return math.exp(self.eps)

    @property
    def budget(self) -> tuple[Fraction, Fraction]:
        """Eps and delta, exactly as they are written."""
        return Fraction(repr(self.eps)), Fraction(repr(self.delta))

    def missing_in(self, told: Level) -> str | None:
        """A weaker promise."""
        if isinstance(told, Private):
            weaker = told.eps > self.eps or told.delta > self.delta or told.most_rows < self.most_rows
            return f"({told.eps:g}, {told.delta:g}) for {told.whose}" if weaker else None
        return super().missing_in(told)


PLAIN = Plain()
LEVELS: dict[str, type[Level]] = {"plain": Plain, "suppressed": Suppressed, "private": Private}


def level_of(fact: Mapping[str, Any]) -> Level:
    """The level that a fact tells."""
    settings = dict(fact)
    if (name := settings.pop("name", None)) not in LEVELS:
        raise ValueError(f"there is no privacy level {str(name)[:40]!r}, but {', '.join(sorted(LEVELS))}")
    return LEVELS[name].model_validate(settings)


def with_fewest(smallest: int) -> Level:
    """The level in which no micro-cluster has fewer rows than that."""
    return PLAIN if smallest == 1 else Suppressed(smallest=int(smallest))


def weakest(levels: Sequence[Level]) -> Level:
    """What all of these promise."""
    private = [level for level in levels if isinstance(level, Private)]
    if len(private) < len(levels):
        return with_fewest(min(level.fewest for level in levels if not isinstance(level, Private)))
    eps, delta = (max(getattr(level, name) for level in private) for name in ("eps", "delta"))
    return Private(eps=eps, delta=delta, most_rows=min(level.most_rows for level in private))


def a_level(fact: dict[str, Any]) -> dict[str, Any]:
    """A fact from a stranger, if it tells a level, with all its settings: each has one way to be written."""
    if level_of(fact).to_fact() != fact:
        raise ValueError("a privacy level must be told with all its settings")
    return fact


LevelFact = Annotated[dict[str, Any], AfterValidator(a_level)]
