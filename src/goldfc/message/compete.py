"""The task of the paper's sites: nothing but how to compete."""

from dataclasses import asdict, dataclass

from goldfc.learning.paper.competition import Learning
from goldfc.message.message import Message


@dataclass(frozen=True)
class Compete:
    """Learn by competition (FCPL), and send centroids."""

    learning: Learning

    KIND = "compete"

    def to_message(self) -> Message:
        """As it travels."""
        return Message(self.KIND, facts=asdict(self.learning))

    @classmethod
    def from_message(cls, message: Message) -> "Compete":
        """Read it back; settings out of range are refused as they are anywhere else."""
        with message.read_as(cls.KIND):
            return cls(Learning(**message.facts))
