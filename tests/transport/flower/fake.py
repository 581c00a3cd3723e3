"""A grid without a network: nodes are functions, in this process."""
# ruff: noqa: D102 (Flower says what its methods do)

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, cast

from flwr.app import ConfigRecord, Context, Error, Message, RecordDict, UserConfig
from flwr.serverapp import Grid

from goldfc.agreement import Agreement
from goldfc.transport.flower.records import fingerprint, packed
from goldfc.transport.flower.site_app import app

# What a node does with a message: it answers, is silent (None), or raises.
Node = Callable[[Message], Message | None]


@dataclass
class FakeGrid(Grid):
    """As Flower's own, but nodes answer at once. `joined` says, look by look, how many have joined."""

    nodes: dict[int, Node]
    joined: list[int] = field(default_factory=list)
    refuses_to_push: frozenset[int] = frozenset()
    sent: dict[str, Message] = field(default_factory=dict)
    replies: list[Message] = field(default_factory=list)

    def get_node_ids(self) -> Iterable[int]:
        count = self.joined.pop(0) if self.joined else len(self.nodes)
        return list(self.nodes)[:count]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        return [self._push(message) for message in messages]

    def _push(self, message: Message) -> str:
        if message.metadata.dst_node_id in self.refuses_to_push:
            return cast(str, None)  # as Flower does, whatever it says
        identity = f"message-{len(self.sent)}"
        message.metadata.__dict__["_message_id"] = identity
        self.sent[identity] = message
        return identity

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        found = [self.answer(self.sent[identity]) for identity in message_ids]
        self.replies += [reply for reply in found if reply is not None]
        return [reply for reply in found if reply is not None]

    def answer(self, message: Message) -> Message | None:
        return self.nodes[message.metadata.dst_node_id](message)

    @property
    def crossed(self) -> bytes:
        """Every byte that left a node."""
        return b"".join(
            (repr(reply.error) if reply.has_error() else repr(dict(reply.content))).encode() for reply in self.replies
        )

    # The rest of the interface is not used.

    def set_run(self, run: object) -> NoReturn:
        raise NotImplementedError

    @property
    def run(self) -> NoReturn:
        raise NotImplementedError

    def create_message(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> NoReturn:
        raise NotImplementedError


def question_of(what: Agreement, known: str = "") -> RecordDict:
    """What a server asks for."""
    return packed(agreement=fingerprint(what), round=str(what.round), known=known)


def real(**settings: str | Path | bool) -> Node:
    """A node that runs our ClientApp with its own settings."""
    config: UserConfig = {
        name.replace("_", "-"): str(value) if isinstance(value, Path) else value for name, value in settings.items()
    }
    return lambda message: app(message, Context(1, 7, config, RecordDict(), {}))


def error(code: int, reason: str) -> Node:
    """A node in whose place the SuperLink, or Flower on the node, answers with an error."""
    return lambda message: Message(Error(code, reason), reply_to=message)


def records(**content: object) -> Node:
    """A node that says what it wants."""
    record = ConfigRecord(cast(Any, content))
    return lambda message: Message(RecordDict({"goldfc": record}), reply_to=message)


def silent(_: Message) -> None:
    """A node that never answers."""
