"""Flower's ClientApp: a site summarises its own table, and labels it when the model comes.

What a site reads and writes is said by its own settings (`--node-config`), never by the server:

    data         its table
    site       its name in the federation
    federation   its own copy of federation.toml    [federation.toml beside the data]
    key          its private key, where messages are sealed
    labels       where labels go                    [NAME.labels.csv beside NAME.csv]
    policy       its policy                         [policy.toml beside the data]
    accept-risk  true: send although the audit speaks against it

The model stays beside the labels as it came, SITE.model, so that `goldfc label --report` can make a page of the rows.
What it must know between the two messages stays on its own disk, in its ledger (`.goldfc` beside the data). Nobody sits
in front of a node, so what is a warning by file is a refusal here, unless the site's policy accepts it by name.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from goldfc.agreement import FILE, Agreement, read_agreement
from goldfc.errors import AuditRefused, BadMessage, BadSettings, GoldError
from goldfc.files import write_durably
from goldfc.message.columns import Column
from goldfc.message.envelope import PrivateKey
from goldfc.site.labels import holds_labels, labels_of, write_labels
from goldfc.site.ledger import Ledger, age_of
from goldfc.site.policy import Policy, read_policy
from goldfc.site.private.send import Budget, Request, send_privately, stored
from goldfc.site.send import Draft, draft_summary, open_model, sealed_for_server, send
from goldfc.site.table.table import Refused, Table, open_table
from goldfc.transport.flower.records import (
    LABEL,
    SUMMARIZE,
    UNCHANGED,
    Answer,
    fingerprint,
    named_site,
    read_question,
    read_round,
    word_for,
)

logger = logging.getLogger("goldfc.flower")
app = ClientApp()


@dataclass(frozen=True)
class NodeSettings:
    """What a site's own settings say."""

    data: Path
    site: str
    agreement: Agreement
    key: PrivateKey | None
    labels: Path
    policy: Policy
    accept_risk: bool

    @property
    def ledger(self) -> Ledger:
        """What stays there."""
        return Ledger.of(self.data, self.policy)

    def table(
        self, columns: tuple[Column, ...], person: str | None = None, *, refuse: Refused = "values"
    ) -> AbstractContextManager[Table]:
        """Its rows, in memory or, if they are many, on the disk."""
        drop, id_column = self.agreement.missing == "drop", self.agreement.id_column
        return open_table(self.data, columns, drop=drop, refuse=refuse, id_column=id_column, person_column=person)

    def private_table(self, person: str | None) -> AbstractContextManager[Table]:
        """The same for a private message: every row is read by itself, and none is refused."""
        columns, ids = self.agreement.columns, self.agreement.id_column
        each = partial(open_table, self.data, columns, drop=True, refuse="columns", guess=False)
        return each(id_column=ids, person_column=person)


@app.query(SUMMARIZE)
def answer_task(message: Message, context: Context) -> Message:
    """The site's summary, if its audit allows it."""
    return guarded(message, context, summarize_own_rows)


@app.query(LABEL)
def answer_model(message: Message, context: Context) -> Message:
    """Nothing but that the labels are on the site's own disk."""
    return guarded(message, context, label_own_rows)


def guarded(message: Message, context: Context, work: Callable[[NodeSettings, Message], Answer]) -> Message:
    """The answer; or, whatever goes wrong, a refusal in a known word. What it was stays in the site's own log."""
    try:
        answer = work(asked(settings_of(context.node_config), message), message)
    except Exception as error:
        logger.error("goldfc: %s", error, exc_info=None if isinstance(error, GoldError) else error)
        answer = Answer(named_site(str(context.node_config.get("site", ""))), refusal=word_for(error))
    return Message(answer.to_records(), reply_to=message)


def asked(node: NodeSettings, message: Message) -> NodeSettings:
    """The node in the round that it is asked for."""
    return replace(node, agreement=node.agreement.in_round(read_round(message)))


def settings_of(settings: Mapping[str, object]) -> NodeSettings:
    """What a site's own settings say, checked."""
    if missing := [name for name in ("data", "site") if not settings.get(name)]:
        raise BadSettings(
            f'This node does not know its {missing[0]}; its settings must have it: {missing[0]}="...".',
            "node-setting-missing",
        )
    site, data = str(settings["site"]), Path(str(settings["data"])).expanduser()
    if not named_site(site):
        raise BadSettings(
            f"{site!r} cannot be the name of a site: letters, digits, '.', '_' or '-', at most 64.", "node-site-invalid"
        )
    federation, key, policy = (settings.get(name) for name in ("federation", "key", "policy"))
    node = NodeSettings(
        data=data,
        site=site,
        agreement=read_agreement(Path(str(federation)).expanduser() if federation else data.with_name(FILE)),
        key=PrivateKey.read(Path(str(key)).expanduser()) if key else None,
        labels=Path(str(settings.get("labels") or data.with_name(f"{data.stem}.labels.csv"))).expanduser(),
        policy=read_policy(data, Path(str(policy)).expanduser() if policy else None),
        accept_risk=settings.get("accept-risk") is True,
    )
    check_labels_go_there(node)
    return node


def check_labels_go_there(node: NodeSettings) -> None:
    """Refuse to write over what is no labels of ours; told before anything leaves."""
    if node.labels.exists():
        with node.labels.open("rb") as file:
            if not holds_labels(file.read(10_000)):
                raise BadSettings(
                    f"{node.labels} exists, and does not hold labels; move it, or name another file.",
                    "labels-file-foreign",
                )


def summarize_own_rows(node: NodeSettings, message: Message) -> Answer:
    """The one message that leaves."""
    if read_question(message, "agreement") != fingerprint(node.agreement):
        raise BadMessage(f"The server's {FILE} differs from this site's; give the same file to all.", "other-agreement")
    sealed_for_server(b"", node.site, node.agreement, node.key)  # a wrong key is told before any work
    node.policy.check(node.agreement)
    person = node.policy.person_column(node.agreement)
    if request := Request.of(node.site, node.agreement, node.policy):
        if stored(request, node.ledger) is None:
            Budget.of(node.ledger, node.policy).check(request)
        with withholding(node), node.private_table(person) as table:
            return Answer(node.site, send_privately(request, table, node.data, node.policy, None, node.key).message)
    with withholding(node), node.table(node.agreement.columns, person) as table:
        draft = draft_summary(table, node.site, node.agreement, node.data, node.policy)
        if draft.last_said in known_to_server(message):
            return Answer(node.site, refusal=UNCHANGED)
        for finding in (*draft.audit.failures, *draft.audit.warnings):
            logger.warning("goldfc: %s: %s.", finding.name, finding.sentence)
        refuse_unaccepted(node, draft)
        refuse_haste(node, draft)
        return Answer(
            node.site, send(draft, node.agreement, node.data, None, key=node.key, accept_risk=node.accept_risk)
        )


def known_to_server(message: Message) -> frozenset[str]:
    """The digests of the summaries that the server has of earlier rounds."""
    return frozenset(str(read_question(message, "known")).split())


@contextmanager
def withholding(node: NodeSettings) -> Iterator[None]:
    """Whatever goes wrong with rows is one and the same refusal; what it was stays in the site's own ledger and log."""
    try:
        yield
    except Exception as error:
        logger.error("goldfc: %s", error, exc_info=None if isinstance(error, GoldError) else error)
        terms, kind = node.agreement.terms, type(error).__name__
        facts = {"site": node.site, "federation": terms.federation, "policy": node.policy.fingerprint}
        with suppress(OSError):  # a disk that is full, or a folder that is gone, is in the log
            node.ledger.note("refused", **facts, round=terms.round, error=kind, data=node.data.name)
        raise AuditRefused("The answer is withheld; the lines above say why.", "withheld") from error


def refuse_unaccepted(node: NodeSettings, draft: Draft) -> None:
    """Nobody is there to read a warning, so the site must have accepted it before."""
    names = {finding.name for finding in draft.audit.warnings} - set(node.policy.accept)
    if names and not node.accept_risk:
        raise AuditRefused(
            f"The audit warns ({', '.join(sorted(names))}); do what it says, or accept it by name in the policy "
            f"(accept = {sorted(names)}).",
            "audit-warns",
        )


def refuse_haste(node: NodeSettings, draft: Draft) -> None:
    """Something new only now and then; what was sent before may be sent again."""
    ledger, least = draft.ledger, node.policy.least_seconds
    last = None if draft.digest in ledger.digests() else ledger.last_sent(node.site)
    if last is not None and age_of(last).total_seconds() < least:
        raise AuditRefused(
            f"The last new message left at {last}, less than {least:g} seconds ago; ask again later.", "too-soon"
        )


def label_own_rows(node: NodeSettings, message: Message) -> Answer:
    """Labels, on the site's own disk."""
    letter = read_question(message, "model")
    if not isinstance(letter, bytes):
        raise BadMessage("The server's message is not one that goldfc sends.", "question-invalid")
    model = open_model(letter, "the model", node.agreement, node.site, node.key)
    with withholding(node), node.table(model.terms.columns, refuse="columns") as table:
        name = node.agreement.id_column or "row"
        labels = write_labels(labels_of(table, model), node.labels, name, model.fingerprint)
    write_durably(node.labels.with_name(f"{node.site}.model"), letter, private=True)
    logger.warning("goldfc: labels of %d rows are written.", labels.rows - labels.without.total())
    for reason, count in labels.without.items():
        logger.warning("goldfc: %d rows have no label: %s.", count, reason)
    return Answer(node.site)
