"""The port through which every message passes, the in-process federation behind it, and what crosses."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from goldfc._parallel import shares_memory, side_by_side
from goldfc.errors import BadMessage
from goldfc.message.message import Message


class Participant(Protocol):
    """A site as the port sees it."""

    @property
    def name(self) -> str:
        """Unique in the federation."""
        ...

    def answer(self, message: Message) -> Message | None:
        """The answer, or nothing if nothing is to leave the site."""
        ...


@dataclass(frozen=True)
class Crossing:
    """One message on its way."""

    site: str
    upward: bool
    kind: str
    nbytes: int


@dataclass
class Traffic:
    """Every message that crossed, in order."""

    crossings: list[Crossing] = field(default_factory=list)

    def record(self, site: str, message: Message, *, upward: bool) -> None:
        """Write down one crossing."""
        self.crossings.append(Crossing(site, upward, message.kind, message.nbytes))

    @property
    def uplinks(self) -> int:
        """Messages from sites."""
        return sum(crossing.upward for crossing in self.crossings)

    @property
    def downlinks(self) -> int:
        """Messages to sites."""
        return len(self.crossings) - self.uplinks

    @property
    def bytes_up(self) -> int:
        """Bytes from sites."""
        return sum(crossing.nbytes for crossing in self.crossings if crossing.upward)

    @property
    def bytes_down(self) -> int:
        """Bytes to sites."""
        return sum(crossing.nbytes for crossing in self.crossings if not crossing.upward)


class LocalPort:
    """A federation in one place: sites are objects, and answer side by side in threads.

    If `joblib.parallel_config` says so, they answer in other processes or on other machines, their rows included: that
    is for simulations, where all rows are one's own. `traffic` holds every message that crossed, with its size.

    Parameters
    ----------
    participants
        The sites, each with a name of its own.
    n_jobs
        How many answer at the same time; None: one after the other, or what `joblib.parallel_config` says.
    on_answer
        Called with a site's name whenever one is done: for a progress bar.
    """

    def __init__(
        self,
        participants: Iterable[Participant],
        *,
        n_jobs: int | None = None,
        on_answer: Callable[[str], None] | None = None,
    ) -> None:
        everyone = list(participants)
        self._participants = {participant.name: participant for participant in everyone}
        if len(self._participants) < len(everyone):
            raise BadMessage("Two sites have the same name; every site needs one of its own.", "sites-same-name")
        self._n_jobs = n_jobs
        self._on_answer = on_answer
        self.traffic = Traffic()

    def ask(self, message: Message, sites: Sequence[str] | None = None) -> dict[str, Message]:
        """Send a message to some sites, or to all; the answers of those that have one, by site name."""
        names = sorted(self._participants) if sites is None else list(sites)
        if unknown := [name for name in names if name not in self._participants]:
            raise BadMessage(f"There is no site {unknown[0]!r} in this federation.", "site-unknown")
        answers = self._ask_each(names, message)
        for name, answer in zip(names, answers, strict=True):
            self.traffic.record(name, message, upward=False)
            if answer is not None:
                self.traffic.record(name, answer, upward=True)
        return {name: answer for name, answer in zip(names, answers, strict=True) if answer is not None}

    def _ask_each(self, names: list[str], message: Message) -> list[Message | None]:
        if shares_memory():
            return list(side_by_side(lambda name: self._ask_one(name, message), names, self._n_jobs))
        questions = [(self._participants[name], message) for name in names]
        told = side_by_side(answer_elsewhere, questions, self._n_jobs)
        return [self._remember(name, *news) for name, news in zip(names, told, strict=True)]

    def _ask_one(self, name: str, message: Message) -> Message | None:
        return self._remember(name, self._participants[name].answer(message), {})

    def _remember(self, name: str, answer: Message | None, changes: dict[str, Any]) -> Message | None:
        vars(self._participants[name]).update(changes)
        if self._on_answer is not None:
            self._on_answer(name)
        return answer


def answer_elsewhere(question: tuple[Participant, Message]) -> tuple[Message | None, dict[str, Any]]:
    """The answer of a copy of a site in another process, and what it remembers; not its rows, which are at home."""
    participant, message = question
    before = dict(vars(participant))
    answer = participant.answer(message)
    return answer, {name: value for name, value in vars(participant).items() if not is_same(value, before.get(name))}


def is_same(value: object, before: object) -> bool:
    """Whether something is what it was; only arrays and sources of rows are surely not changed in place."""
    return value is before and (isinstance(value, np.ndarray) or hasattr(value, "read"))
