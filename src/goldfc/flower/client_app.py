"""Flower's ClientApp: a site summarises its own table, and labels it when the model comes.

What a site reads and writes is said by its own settings (`--node-config`), never by the server:

    data         its table
    client       its name in the federation
    federation   its own copy of federation.toml    [federation.toml beside the data]
    key          its private key, where messages are sealed
    labels       where labels go                    [NAME.labels.csv beside NAME.csv]
    policy       its policy                         [policy.toml beside the data]
    accept-risk  true: send although the audit speaks against it

What it must know between the two messages stays on its own disk, in its ledger (`.goldfc` beside the data). Nobody sits
in front of a node, so what is a warning by file is a refusal here, unless the site's policy accepts it by name.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from goldfc.byfile.ledger import Ledger, age_of
from goldfc.byfile.policy import Policy, read_policy
from goldfc.byfile.site import (
    LABEL_COLUMNS,
    Draft,
    draft_summary,
    labels_of,
    open_model,
    sealed_for_server,
    send,
    write_labels,
)
from goldfc.byfile.stream import Streamed, open_table
from goldfc.byfile.tables import Table
from goldfc.errors import AuditRefused, BadMessage, BadSettings, GoldError
from goldfc.flower.records import LABEL, SUMMARIZE, Answer, fingerprint, named, read_question, word_for
from goldfc.protocol.agreement import FILE, Agreement, read_agreement
from goldfc.protocol.envelope import PrivateKey
from goldfc.protocol.terms import Column

logger = logging.getLogger("goldfc.flower")
app = ClientApp()


@dataclass(frozen=True)
class Site:
    """What a site's own settings say."""

    data: Path
    client: str
    agreement: Agreement
    key: PrivateKey | None
    labels: Path
    policy: Policy
    accept_risk: bool

    @property
    def ledger(self) -> Ledger:
        """What stays there."""
        return Ledger.of(self.data, self.policy)

    def table(self, columns: tuple[Column, ...], person: str | None = None) -> AbstractContextManager[Table | Streamed]:
        """Its rows, in memory or, if they are many, on the disk."""
        drop, id_column = self.agreement.missing == "drop", self.agreement.id_column
        return open_table(self.data, columns, drop=drop, id_column=id_column, person_column=person)


@app.query(SUMMARIZE)
def answer_task(message: Message, context: Context) -> Message:
    """The site's summary, if its audit allows it."""
    return guarded(message, context, summarized)


@app.query(LABEL)
def answer_model(message: Message, context: Context) -> Message:
    """Nothing but that the labels are on the site's own disk."""
    return guarded(message, context, labelled)


def guarded(message: Message, context: Context, work: Callable[[Site, Message], Answer]) -> Message:
    """The answer; or, whatever goes wrong, a refusal in a known word. What it was stays in the site's own log."""
    try:
        answer = work(site_of(context.node_config), message)
    except Exception as error:
        logger.error("goldfc: %s", error, exc_info=None if isinstance(error, GoldError) else error)
        answer = Answer(named(str(context.node_config.get("client", ""))), refusal=word_for(error))
    return Message(answer.to_records(), reply_to=message)


def site_of(settings: Mapping[str, object]) -> Site:
    """What a site's own settings say, checked."""
    if missing := [name for name in ("data", "client") if not settings.get(name)]:
        raise BadSettings(
            f"This node does not know its {missing[0]}: name it with --node-config '{missing[0]}=\"...\"'."
        )
    client, data = str(settings["client"]), Path(str(settings["data"])).expanduser()
    if not named(client):
        raise BadSettings(f"{client!r} cannot be the name of a client: letters, digits, '.', '_' or '-', at most 64.")
    federation, key, policy = (settings.get(name) for name in ("federation", "key", "policy"))
    site = Site(
        data=data,
        client=client,
        agreement=read_agreement(Path(str(federation)).expanduser() if federation else data.with_name(FILE)),
        key=PrivateKey.read(Path(str(key)).expanduser()) if key else None,
        labels=Path(str(settings.get("labels") or data.with_name(f"{data.stem}.labels.csv"))).expanduser(),
        policy=read_policy(data, Path(str(policy)).expanduser() if policy else None),
        accept_risk=settings.get("accept-risk") is True,
    )
    check_labels_go_there(site)
    return site


def check_labels_go_there(site: Site) -> None:
    """Refuse to write over what is no labels of ours; told before anything leaves."""
    if site.labels.exists():
        with site.labels.open("rb") as file:
            if not file.readline(10_000).rstrip().endswith(",".join(LABEL_COLUMNS).encode()):
                raise BadSettings(f"{site.labels} is there, and holds no labels; move it, or name another file.")


def summarized(site: Site, message: Message) -> Answer:
    """The one message that leaves."""
    if read_question(message, "agreement") != fingerprint(site.agreement):
        raise BadMessage(f"The server's {FILE} is another one than this site's; give all the same.")
    sealed_for_server(b"", site.client, site.agreement, site.key)  # a wrong key is told before any work
    site.policy.check(site.agreement)
    person = site.policy.person_column(site.agreement)
    with withholding(site), site.table(site.agreement.columns, person) as table:
        draft = draft_summary(table, site.client, site.agreement, site.data, site.policy)
        for finding in (*draft.audit.failures, *draft.audit.warnings):
            logger.warning("goldfc: %s: %s.", finding.name, finding.sentence)
        refuse_unaccepted(site, draft)
        refuse_haste(site, draft)
        return Answer(
            site.client, send(draft, site.agreement, site.data, None, key=site.key, accept_risk=site.accept_risk)
        )


@contextmanager
def withholding(site: Site) -> Iterator[None]:
    """Whatever goes wrong with rows is one and the same refusal; what it was stays in the site's own ledger and log."""
    try:
        yield
    except Exception as error:
        logger.error("goldfc: %s", error, exc_info=None if isinstance(error, GoldError) else error)
        terms, kind = site.agreement.terms, type(error).__name__
        facts = {"client": site.client, "federation": terms.federation, "policy": site.policy.fingerprint}
        with suppress(OSError):  # a disk that is full, or a folder that is gone, is in the log
            site.ledger.note("refused", **facts, round=terms.round, error=kind, data=site.data.name)
        raise AuditRefused("The answer is withheld; the lines above say why.") from error


def refuse_unaccepted(site: Site, draft: Draft) -> None:
    """Nobody is there to read a warning, so the site must have accepted it before."""
    names = {finding.name for finding in draft.audit.warnings} - set(site.policy.accept)
    if names and not site.accept_risk:
        raise AuditRefused(
            f"The audit warns ({', '.join(sorted(names))}); see to what it says, or accept it by name in the policy "
            f"(accept = {sorted(names)})."
        )


def refuse_haste(site: Site, draft: Draft) -> None:
    """Something new only now and then; what was sent before may be sent again."""
    ledger, least = draft.ledger, site.policy.least_seconds
    last = None if draft.digest in ledger.digests() else ledger.last_sent(site.client)
    if last is not None and age_of(last).total_seconds() < least:
        raise AuditRefused(f"The last new message left at {last}, less than {least:g} seconds ago; ask again later.")


def labelled(site: Site, message: Message) -> Answer:
    """Labels, on the site's own disk."""
    letter = read_question(message, "model")
    if not isinstance(letter, bytes):
        raise BadMessage("The server's message is none that goldfc sends.")
    model = open_model(letter, "the model", site.agreement, site.client, site.key)
    with withholding(site), site.table(model.terms.columns) as table:
        labels = write_labels(labels_of(table, model), site.labels, site.agreement.id_column or "row")
    logger.warning("goldfc: labels of %d rows are written.", labels.rows)
    return Answer(site.client)
