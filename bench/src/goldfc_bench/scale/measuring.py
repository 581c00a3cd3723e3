"""The whole measurement, part by part, so that a caller can show each as it is done."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from goldfc_bench.scale import first, fusion, growth, learner, limits, memory, stages, two_jobs, whole
from goldfc_bench.scale.growth import Growth
from goldfc_bench.scale.parts import Section, Target, Tick
from goldfc_bench.scale.plan import Plan
from goldfc_bench.scale.whole import Race


@dataclass(frozen=True)
class Part:
    """One part: what it is, how often it ticks, and how it is done."""

    title: str
    steps: int
    measure: Callable[[Tick], Section]


class Measurable(Protocol):
    """A module that does one part by itself."""

    def steps(self, plan: Plan, repeats: int) -> int:
        """How often it ticks."""
        ...

    def measure(self, plan: Plan, repeats: int, tick: Tick) -> Section:
        """Do it."""
        ...


@dataclass
class Measuring:
    """All parts in their order; races and growths are kept for the picture, sections for the page."""

    plan: Plan
    repeats: int
    races: list[Race] = field(default_factory=list)
    growths: list[Growth] = field(default_factory=list)

    sections: list[Section] = field(default_factory=list)

    def parts(self) -> Iterator[Part]:
        """One by one. They use each other's figures: the order matters."""
        sizes = growth.steps(self.plan, self.repeats)
        yield Part("federations", sizes, self._whole)
        yield Part("growth", sizes, self._growth)
        yield self._part("wide rows and a fleet", limits)
        yield self._part("the first summary", first)
        yield self._part("two cores", two_jobs)
        yield self._part("stages", stages)
        yield self._part("fusion", fusion)
        yield self._part("memory", memory)
        yield self._part("the paper's learner", learner)

    def finish(self, part: Part, tick: Tick) -> Section:
        """Do a part; small plans are not judged."""
        section = part.measure(tick)
        self.sections.append(section if self.plan.judged else replace(section, targets=()))
        return section

    @property
    def targets(self) -> list[Target]:
        """Of all parts that are done."""
        return [target for section in self.sections for target in section.targets]

    def _part(self, title: str, module: Measurable) -> Part:
        steps = module.steps(self.plan, self.repeats)
        return Part(title, steps, lambda tick: module.measure(self.plan, self.repeats, tick))

    def _whole(self, tick: Tick) -> Section:
        self.races = whole.run_races(self.plan, self.repeats, tick)
        return whole.section(self.races, self.plan)

    def _growth(self, tick: Tick) -> Section:
        blocks = growth.measure_blocks(self.plan, self.repeats, tick)
        self.growths = [*growth.growth_of_races(self.races, self.plan), *blocks]
        return growth.section(self.growths)
