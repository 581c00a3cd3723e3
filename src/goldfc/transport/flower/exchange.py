"""Questions to nodes and their answers, over Flower's grid."""

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from flwr.app import Message as Parcel
from flwr.app import RecordDict
from flwr.serverapp import Grid

# Seconds between two looks. Flower's own wait is 3 s. Each costs the SuperLink something, so where nothing comes there
# is ever more time between two.
SHORTEST, LONGER, LONGEST = 0.2, 1.2, 2.0
# An answer that cannot be fetched so many times is no answer; once may be the network.
MOST_TRIES = 5
# How much longer than we wait Flower keeps a message.
GRACE = 30.0
logger = logging.getLogger("goldfc.flower")


@dataclass(frozen=True)
class Patience:
    """How many nodes to wait for, and how long, in seconds: for them to join, and for each of their answers."""

    expect: int
    join: float
    answer: float


def looks(seconds: float) -> Iterator[bool]:
    """Whether it is too late, look by look: only at the last one. Between two is a pause, longer every time."""
    deadline, pause = time.monotonic() + seconds, SHORTEST
    while (left := deadline - time.monotonic()) > 0.0:
        yield False
        time.sleep(min(pause, left))
        pause = min(LONGER * pause, LONGEST)
    yield True


@dataclass(frozen=True)
class Exchange:
    """A grid, and how long to wait for it."""

    grid: Grid
    patience: Patience

    def joined(self) -> Iterator[list[int]]:
        """The nodes that are there, again and again, until as many are as are expected, or it is too late."""
        for _ in looks(self.patience.join):
            # Partial while nodes register.
            nodes = sorted(set(self.grid.get_node_ids()))
            yield nodes
            if len(nodes) >= self.patience.expect:
                return

    def ask(self, action: str, questions: Mapping[int, RecordDict]) -> Iterator[tuple[int, Parcel | None]]:
        """Every node with its answer, as they come, until all are in or it is too late; None: it cannot be read."""
        pending, tries = self._push(action, questions), Counter[int]()
        for late in looks(self.patience.answer):
            for sent, node in list(pending.items()):
                found = self._pull(sent)
                tries[node] += found is None
                if found or tries[node] >= (1 if late else MOST_TRIES):
                    del pending[sent]
                    yield node, found[0] if found else None
            if not pending:
                return

    def _push(self, action: str, questions: Mapping[int, RecordDict]) -> dict[str, int]:
        """Which node every message went to, by the message's id."""
        ttl = self.patience.answer + GRACE
        parcels = [Parcel(content, node, f"query.{action}", ttl=ttl) for node, content in questions.items()]
        sent = self.grid.push_messages(parcels)
        # Flower says None for one that it would not take: that node stays silent.
        return {identity: node for identity, node in zip(sent, questions, strict=True) if identity}

    def _pull(self, sent: str) -> Sequence[Parcel] | None:
        """The answer to a message, if it is there; None if there is one that Flower cannot read, or no network."""
        try:
            # One at a time: one that cannot be read shall not take others with it.
            found = list(self.grid.pull_messages([sent]))
        except Exception:
            logger.warning("An answer could not be fetched.", exc_info=True)
            return None
        # An error of Flower's own comes from the server's id, so an answer is known by what it replies to.
        return [reply for reply in found if reply.metadata.reply_to_message_id == sent]
