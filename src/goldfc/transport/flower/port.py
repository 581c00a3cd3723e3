"""The nodes of a live federation: questions go out over Flower's grid, answers come back until the deadline."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from flwr.app import Message as Parcel
from flwr.app import RecordDict

from goldfc.agreement import Agreement
from goldfc.errors import BadMessage
from goldfc.message.envelope import PrivateKey
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.server.admit import check_enough, read_summary
from goldfc.server.deliver import letters_of
from goldfc.transport.flower.exchange import Exchange
from goldfc.transport.flower.job import Keeper, Status
from goldfc.transport.flower.records import LABEL, SENTENCES, SUMMARIZE, UNCHANGED, Answer, fingerprint, packed

NOTHING_KNOWN = "it says that it has nothing new, but nothing of it is known"
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


@dataclass
class Nodes:
    """All nodes of a grid. Who is silent or sends what cannot be used is left out, and named in `status`.

    Of whom nothing new can be used the last summary counts, if one is `remembered` of an earlier round. Before
    anything is spoken of, it is kept.
    """

    exchange: Exchange
    agreement: Agreement
    key: PrivateKey | None
    keeper: Keeper
    remembered: Mapping[str, tuple[Summary, bytes]] = field(default_factory=dict)
    status: Status = field(init=False)
    _nodes: dict[str, int] = field(default_factory=dict, init=False)  # of every site that is in
    _summaries: dict[str, Summary] = field(default_factory=dict, init=False)
    _bodies: dict[str, bytes] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Nobody is there yet."""
        self.status = Status(expected=self.exchange.patience.expect)

    def say(self, **changes: object) -> None:
        """How things stand now."""
        self.status = self.status.model_copy(update=changes)
        self.keeper.tell(self.status)

    # --- one message up ---

    def collect(self) -> list[Summary]:
        """The summaries of all who send one that can be used, and those that are remembered of others."""
        nodes = self._gather()
        check_enough(len(nodes) + len(self.remembered), self.agreement)
        self.say(state="summarizing", joined=len(nodes))
        known = " ".join(sorted(summary.to_message().digest for summary, _ in self.remembered.values()))
        question = self._packed(agreement=fingerprint(self.agreement), known=known)
        waiting = set(nodes)
        for node, reply in self.exchange.ask(SUMMARIZE, dict.fromkeys(nodes, question)):
            waiting.discard(node)
            self._take_in(node, reply)
        self._recall()
        self.say(
            state="fusing",
            silent=tuple(f"node {node}" for node in sorted(waiting)),
            missing=tuple(name for name in self.agreement.names if name not in self._summaries),
        )
        check_enough(len(self._summaries), self.agreement)
        return [self._summaries[site] for site in sorted(self._summaries)]

    def _packed(self, **facts: str | bytes) -> RecordDict:
        """A question of this round."""
        return packed(round=str(self.agreement.round), **facts)

    def _recall(self) -> None:
        """Keep what is remembered of those who sent nothing new: the next round knows no more than this one."""
        old = {site: found for site, found in self.remembered.items() if site not in self._summaries}
        for site, (summary, body) in old.items():
            self.keeper.keep(summary, body)
            self._summaries[site] = summary
        self.say(remembered=tuple(sorted(old)))

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
            who = f"{answer.site} (node {node})" if answer.site else who
            if answer.refusal == UNCHANGED and answer.site in self.remembered:
                self._nodes.setdefault(answer.site, node)
                self.say(unchanged=tuple(sorted({*self.status.unchanged, answer.site})))
                return
            if answer.refusal:
                raise BadMessage(SENTENCES.get(answer.refusal, NOTHING_KNOWN), "node-refused")
            summary, body = read_summary(answer.body, f"the answer of {who}", self.agreement, self.key)
            self._accept(node, summary, body)
        except BadMessage as error:
            self.say(refused={**self.status.refused, who: str(error)})

    def _accept(self, node: int, summary: Summary, body: bytes) -> None:
        site = summary.site
        if site in self._bodies and self._bodies[site] == body:
            raise BadMessage(
                f"an identical summary of {site!r} came from another node before, and counts once", "summary-again"
            )
        if site in self._bodies:
            raise BadMessage(
                f"site {site!r} has sent another summary before, from another node; the first one is kept. Ask "
                "which is right",
                "summary-changed",
            )
        self.keeper.keep(summary, body)
        self._nodes[site], self._summaries[site], self._bodies[site] = node, summary, body
        self.say(accepted=tuple(sorted(self._summaries)))

    # --- one message down ---

    def hand_out(self, model: Model) -> None:
        """The model goes to all whose summaries are in it and who are there, and these label their rows."""
        letters = letters_of(model, self.agreement, self.key)
        self.keeper.deliver(model, letters)
        waiting = dict.fromkeys(model.sites, "it has not answered in time")
        self.say(state="labelling", model=model.fingerprint, unlabelled=waiting)
        owners = {self._nodes[site]: site for site in model.sites if site in self._nodes}
        questions = {node: self._packed(model=letters[site]) for node, site in owners.items()}
        for node, reply in self.exchange.ask(LABEL, questions):
            self._note_labelled(owners[node], reply)
        self.say(state="done")

    def _note_labelled(self, site: str, reply: Parcel | None) -> None:
        unlabelled = {**self.status.unlabelled}
        try:
            if refusal := answer_in(reply).refusal:
                raise BadMessage(SENTENCES.get(refusal, NOTHING_KNOWN), "node-refused")
        except BadMessage as error:
            self.say(unlabelled={**unlabelled, site: str(error)})
        else:
            del unlabelled[site]
            self.say(unlabelled=unlabelled, labelled=tuple(sorted({*self.status.labelled, site})))


def answer_in(reply: Parcel | None) -> Answer:
    """What a node says, or that it says nothing of use."""
    if reply is None:
        raise BadMessage("its answer cannot be read", "answer-unreadable")
    if reply.has_error():
        raise BadMessage(FLOWER_ERRORS.get(reply.error.code, SENTENCES["other"]), "node-failed")
    return Answer.from_message(reply)
