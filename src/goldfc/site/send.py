"""A site's side by file: summarise a table, look at what would leave, and label the rows when the model comes.

What a site allows is in its own `policy.toml` (policy.py); what stays there in a folder of its own (ledger.py).
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from threadpoolctl import threadpool_limits

from goldfc.agreement import FILE, Agreement, context_of
from goldfc.errors import AuditRefused, BadMessage, BadSettings
from goldfc.files import write_durably
from goldfc.message.envelope import PrivateKey, PublicKey, is_sealed, seal, unseal
from goldfc.message.levels import Private
from goldfc.message.message import canonical_json
from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.message.wire import decode, encode, naming
from goldfc.site.audit import Audit, audit
from goldfc.site.digests import Looked, people_in
from goldfc.site.ledger import SENT, SENT_AGAIN, Earlier, Ledger, LedgerFact, change_since
from goldfc.site.oddities import odd_values
from goldfc.site.policy import Policy, read_policy
from goldfc.site.privacy import Rules
from goldfc.site.rows import checked
from goldfc.site.seals import remember
from goldfc.site.summarize import as_many, tell, with_membership
from goldfc.site.table.table import Table


@dataclass(frozen=True)
class Draft:
    """A summary before it is written: what would leave, what stays, and what the audit found."""

    summary: Summary
    table: Looked  # what was summarised
    audit: Audit
    policy: Policy
    ledger: Ledger
    known: frozenset[str]  # digests of the messages that it was compared with
    question: str  # what was asked, in short
    notes: tuple[str, ...] = ()  # what else the user should know
    last_said: str | None = None  # the digest of the last round's message, if it said the very same

    @property
    def digest(self) -> str:
        """Of what would leave."""
        return self.summary.to_message().digest


def draft_summary(table: Table, site: str, agreement: Agreement, data: Path, policy: Policy | None = None) -> Draft:
    """Summarise and audit; nothing is written yet. If the table is on the disk, it must stay open until it is sent.

    The policy is the site's own: the one beside the data, if none is given.
    """
    policy = read_policy(data) if policy is None else policy
    task, ledger = policy.tightened(agreement), Ledger.of(data, policy)
    if isinstance(task.level, Private):
        raise BadSettings(
            "A private message is not drafted: it is paid for and sent (send_privately).", "draft-private"
        )
    rows = checked(table.rows, site, table.people)
    looked = Looked(rows, agreement.terms.feature_names, table.persons)
    known, limits = ledger.digests(), policy.limits(task.smallest)
    # Rows are gone through by two threads; those of the library for linear algebra would only be in their way.
    with threadpool_limits(limits=1):
        told = tell(rows, site, task, Rules(agreement.terms, agreement.withhold, policy.steps), limits)
        if told.membership is None:
            told = with_membership(told)
    told = as_many(told, table.stands_for)
    message = told.summary.to_message()
    agreement.read_summary(message)  # what the server would refuse is told here
    # An identical message tells nothing new, however often it leaves.
    earlier = [] if message.digest in known else ledger.earlier(looked)
    question = question_of(agreement)
    change = change_since(earlier, policy.days, question)
    found = audit(told, change=change, required=task.smallest, limits=limits)
    in_file = tuple((name, count, table.place_in_file(row)) for name, count, row in found.dominated)
    report = replace(found, dominated=in_file)
    last = last_said(told.summary, ledger)
    notes = (*odd_values(table), *same_rows_elsewhere(earlier, site), *nothing_new(last))
    said = None if last is None else last.digest
    return Draft(told.summary, looked, report, policy, ledger, known, question, notes, said)


def question_of(agreement: Agreement) -> str:
    """What a site is asked for, in short: other columns, or other settings, put other people together."""
    columns = sorted(canonical_json(column.model_dump(mode="json")) for column in agreement.columns)
    return hashlib.sha256(canonical_json([columns, agreement.task.to_message().digest]).encode()).hexdigest()


@dataclass(frozen=True)
class Said:
    """A message that left in an earlier round."""

    round: int
    digest: str


def last_said(summary: Summary, ledger: Ledger) -> Said | None:
    """The site's last message of an earlier round, if it said the very same."""
    terms, last = summary.terms, None
    for line in ledger.lines():
        ours = line["event"] == SENT and (line["site"], line["federation"]) == (summary.site, terms.federation)
        if ours and line["round"] < terms.round:
            last = Said(line["round"], line["digest"])
    if last is None:
        return None
    then = replace(summary, terms=terms.model_copy(update={"round": last.round}))
    return last if then.to_message().digest == last.digest else None


def nothing_new(last: Said | None) -> Iterator[str]:
    """A note where a server that remembers needs no other message."""
    if last is not None:
        yield f"Nothing is new since round {last.round}: a server that remembers its message needs no other."


def same_rows_elsewhere(earlier: Sequence[Earlier], site: str) -> Iterator[str]:
    """Notes on messages of the same rows under another site's name: fused together, rows would count twice."""
    same = {one.site for one in earlier if not (one.difference.came or one.difference.went)}
    for other in sorted(same - {site}):
        yield f"The same rows were summarised as site {other!r} before; hand over one of the two messages."


def send(
    draft: Draft,
    agreement: Agreement,
    data: Path,
    out: Path | None,
    *,
    key: PrivateKey | None,
    accept_risk: bool = False,
) -> bytes:
    """Write the message, if the audit allows it. What must be known later is on the disk before anything leaves.

    A message that left before is sent again as it was, byte by byte.
    """
    if draft.audit.failures and not accept_risk:
        what = "The message" if out is None else out.name
        reasons = "; ".join(finding.sentence for finding in draft.audit.failures)
        raise AuditRefused(f"{what} is not written: {reasons}. Bring more rows or fewer columns.", "audit-refused")
    ledger, to = draft.ledger, agreement.server.key or ""
    sealed_for_server(b"", draft.summary.site, agreement, key)
    with ledger.locked():
        message = ledger.message(draft.digest, to)
        if message is None:
            refuse_news(draft)
            message = sealed_for_server(encode(draft.summary.to_message()), draft.summary.site, agreement, key)
            facts = {"site": draft.summary.site, "data": data.name, "to": to, "question": draft.question}
            ledger.keep(draft.digest, message, draft.table, **facts)
            ledger.note(SENT, **facts_of(draft, data, message), accepted_risk=bool(draft.audit.failures))
        else:
            ledger.note(SENT_AGAIN, **facts_of(draft, data, message))
        ledger.forget(ledger.older_than(datetime.now(UTC) - timedelta(days=draft.policy.keep_days)), draft.policy)
        remember(data, agreement)
        if out is not None:
            write_durably(out, message)
    return message


def refuse_news(draft: Draft) -> None:
    """Refuse a message that was not compared with all that left before."""
    if draft.ledger.digests() - draft.known - {draft.digest}:
        raise AuditRefused(
            "Another message left this site while this one was made, so the two were not compared; make it again.",
            "not-compared",
        )


def facts_of(draft: Draft, data: Path, message: bytes) -> dict[str, LedgerFact]:
    """What the ledger says of a message."""
    terms = draft.summary.terms
    return {
        "data": data.name,
        "site": draft.summary.site,
        "federation": terms.federation,
        "round": terms.round,
        "rows": len(draft.table),
        "people": people_in(draft.table),
        "micro_clusters": len(draft.summary.centroids),
        "smallest": draft.summary.level.fewest,
        "warnings": sorted({finding.name for finding in draft.audit.warnings}),
        "policy": draft.policy.fingerprint,
        "digest": draft.digest,
        "sha256": hashlib.sha256(message).hexdigest(),
    }


def sealed_for_server(body: bytes, site: str, agreement: Agreement, key: PrivateKey | None) -> bytes:
    """The body in an envelope, if the federation has keys."""
    if agreement.server.key is None:
        return body
    if key is None:
        raise BadSettings(
            f"Messages of this federation are sealed ({FILE} has keys), so your private key is needed.",
            "site-key-missing",
        )
    if key.public != agreement.key_of(site):
        raise BadSettings(
            f"This is not the key of site {site!r} in {FILE}; give the private key that belongs to it.",
            "site-key-wrong",
        )
    return seal(body, context_of(agreement, site, "server"), key, PublicKey(agreement.server.key))


def open_model(message: bytes, source: str, agreement: Agreement | None, site: str, key: PrivateKey | None) -> Model:
    """The model, out of its envelope if it is in one, and checked."""
    with naming(source):
        if is_sealed(message):
            if agreement is None or agreement.server.key is None or key is None:
                raise BadSettings(
                    f"{source} is sealed: to open it takes {FILE} with the server's key, and your private key.",
                    "sealed-needs-key",
                )
            expected = context_of(agreement, site, "site")
            message = unseal(message, expected, PublicKey(agreement.server.key), key)
        elif agreement is not None and agreement.sealed:
            raise BadMessage(f"it is not in an envelope, but {FILE} has keys: it is not signed", "model-unsigned")
    decoded = decode(message, source)
    with naming(source):
        model = Model.from_message(decoded)
        if not model.terms.columns:
            raise BadMessage("it names no columns, so no table can be labelled with it", "model-nameless")
    # A model of an earlier round can label with the file of a later one; not the other way round.
    is_earlier = agreement is not None and model.terms.round < agreement.round
    if agreement is not None and (difference := agreement.terms.difference(model.terms, any_round=is_earlier)):
        raise BadMessage(
            f"{source} does not fit {FILE}: {difference}; ask for the one that does.", "model-of-other-terms"
        )
    return model
