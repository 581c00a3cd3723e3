"""The port of a live federation: questions go out over Flower's grid, answers come back until the deadline."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from flwr.app import Message as Parcel

from goldfc.byfile.folder import check_enough, read_summary
from goldfc.byfile.site import context_of
from goldfc.errors import BadMessage
from goldfc.flower.exchange import Exchange
from goldfc.flower.job import Status
from goldfc.flower.records import LABEL, SENTENCES, SUMMARIZE, Answer, fingerprint, packed
from goldfc.protocol.agreement import Agreement, far_out
from goldfc.protocol.envelope import PrivateKey, seal
from goldfc.protocol.message import Message, Model, Summary, Task
from goldfc.protocol.wire import encode

# Of Flower's own errors. Its texts are not repeated: they may hold what a program said of a site's data.
FLOWER_ERRORS = {
    1: "its goldfc could not be loaded; is goldfc[flower] installed there?",
    2: SENTENCES["other"],
    3: "the message did not reach it, or ran out of time",
    4: "its answer was lost, or ran out of time",
    5: "it went away",
    7: "it could not use the app that it was sent",
    8: "its program crashed",
}


@dataclass(frozen=True)
class Hands:
    """What is to be done with what comes: before anything is spoken of, it is kept."""

    keep: Callable[[Summary, bytes], None]  # a summary that was accepted, and its body
    deliver: Callable[[Model, Mapping[str, bytes]], None]  # the model, and what is sent to each client
    tell: Callable[[Status], None]  # how things stand


@dataclass
class GridPort:
    """`ask` over Flower. Who is silent or sends what cannot be used is left out, and named in `status`.

    Clients whose values are implausibly far out are left out as in a federation by files.
    """

    exchange: Exchange
    agreement: Agreement
    key: PrivateKey | None
    hands: Hands
    status: Status = field(init=False)
    _nodes: dict[str, int] = field(default_factory=dict, init=False)  # of every client that is in
    _summaries: dict[str, Summary] = field(default_factory=dict, init=False)
    _bodies: dict[str, bytes] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Nobody is there yet."""
        self.status = Status(expected=self.exchange.patience.expect)

    def ask(self, message: Message, clients: Sequence[str] | None = None) -> dict[str, Message]:
        """The summaries for a task; for a model nothing, once the clients have labelled their rows."""
        if message.kind == Task.KIND:
            return self._collect(clients)
        self._hand_out(Model.from_message(message), clients)
        return {}

    def say(self, **changes: object) -> None:
        """How things stand now."""
        self.status = self.status.model_copy(update=changes)
        self.hands.tell(self.status)

    # --- one message up ---

    def _collect(self, clients: Sequence[str] | None) -> dict[str, Message]:
        nodes = self._gather()
        check_enough(len(nodes), self.agreement)
        self.say(state="summarizing", joined=len(nodes))
        question = packed(agreement=fingerprint(self.agreement))
        waiting = set(nodes)
        for node, reply in self.exchange.ask(SUMMARIZE, dict.fromkeys(nodes, question)):
            waiting.discard(node)
            self._take_in(node, reply)
        self.say(
            state="fusing",
            silent=tuple(f"node {node}" for node in sorted(waiting)),
            missing=tuple(name for name in self.agreement.names if name not in self._summaries),
            left_out=far_out([self._summaries[client] for client in sorted(self._summaries)]),
        )
        usable = {client: self._summaries[client].to_message() for client in self.status.took_part}
        check_enough(len(usable), self.agreement)
        return {client: message for client, message in usable.items() if clients is None or client in clients}

    def _gather(self) -> list[int]:
        """All nodes, once as many have joined as are expected; or those that have by the deadline."""
        nodes: list[int] = []
        for nodes in self.exchange.joined():
            if len(nodes) != self.status.joined:
                self.say(joined=len(nodes))
        return nodes

    def _take_in(self, node: int, reply: Parcel | None) -> None:
        """Accept an answer, or say why not."""
        who = f"node {node}"
        try:
            answer = answer_in(reply)
            who = f"{answer.client} (node {node})" if answer.client else who
            if answer.refusal:
                raise BadMessage(SENTENCES[answer.refusal])
            summary, body = read_summary(answer.body, f"the answer of {who}", self.agreement, self.key)
            self._accept(node, summary, body)
        except BadMessage as error:
            self.say(refused={**self.status.refused, who: str(error)})

    def _accept(self, node: int, summary: Summary, body: bytes) -> None:
        client = summary.client
        if client in self._bodies and self._bodies[client] == body:
            raise BadMessage(f"the very same summary of {client!r} came from another node before, and counts once")
        if client in self._bodies:
            raise BadMessage(
                f"client {client!r} has sent another summary before, from another node; the first one is kept. Ask "
                "which is right"
            )
        self.hands.keep(summary, body)
        self._nodes[client], self._summaries[client], self._bodies[client] = node, summary, body
        self.say(accepted=tuple(sorted(self._summaries)))

    # --- one message down ---

    def _hand_out(self, model: Model, clients: Sequence[str] | None) -> None:
        chosen = [client for client in model.clients if clients is None or client in clients]
        letters = {client: self._letter(encode(model.to_message()), client) for client in chosen}
        self.hands.deliver(model, letters)
        self.say(state="labelling", unlabelled=dict.fromkeys(chosen, "it has not answered in time"))
        owners = {self._nodes[client]: client for client in chosen}
        questions = {node: packed(model=letters[client]) for node, client in owners.items()}
        for node, reply in self.exchange.ask(LABEL, questions):
            self._note_labelled(owners[node], reply)
        self.say(state="done")

    def _note_labelled(self, client: str, reply: Parcel | None) -> None:
        unlabelled = {**self.status.unlabelled}
        try:
            if refusal := answer_in(reply).refusal:
                raise BadMessage(SENTENCES[refusal])
        except BadMessage as error:
            self.say(unlabelled={**unlabelled, client: str(error)})
        else:
            del unlabelled[client]
            self.say(unlabelled=unlabelled, labelled=tuple(sorted({*self.status.labelled, client})))

    def _letter(self, body: bytes, client: str) -> bytes:
        """The model as one client gets it: in an envelope, if the federation has keys."""
        if self.key is None:
            return body
        return seal(body, context_of(self.agreement, client, "client"), self.key, self.agreement.key_of(client))


def answer_in(reply: Parcel | None) -> Answer:
    """What a node says, or that it says nothing of use."""
    if reply is None:
        raise BadMessage("its answer cannot be read")
    if reply.has_error():
        raise BadMessage(FLOWER_ERRORS.get(reply.error.code, SENTENCES["other"]))
    return Answer.from_message(reply)
