"""A site's side by file: summarise a table, look at what would leave, and label the rows when the model comes.

What a site allows is in its own `policy.toml` (policy.py); what stays there in a folder of its own (ledger.py).
"""

import csv
import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray
from goldfc.byfile.digests import Looked, people_in
from goldfc.byfile.ledger import Earlier, Fact, Ledger, change_since
from goldfc.byfile.memory import remember
from goldfc.byfile.policy import Policy, read_policy
from goldfc.byfile.stream import Streamed
from goldfc.byfile.tables import Table
from goldfc.errors import AuditRefused, BadMessage, BadSettings
from goldfc.protocol.agreement import FILE, Agreement
from goldfc.protocol.audit import Audit, audit
from goldfc.protocol.client import measured, tell
from goldfc.protocol.envelope import Context, PrivateKey, PublicKey, is_sealed, seal, unseal
from goldfc.protocol.label import is_far, label
from goldfc.protocol.message import Model, Summary
from goldfc.protocol.rows import as_source
from goldfc.protocol.wire import decode, encode, naming, write_durably, write_pieces_durably

# What spreadsheets take for the beginning of a formula, also after blanks, and in its wide form.
FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
SIGNED_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?")
LABEL_COLUMNS = ("cluster", "certainty", "far")


@dataclass(frozen=True)
class Draft:
    """A summary before it is written: what would leave, what stays, and what the audit found."""

    summary: Summary
    table: Looked  # what was summarised
    audit: Audit
    policy: Policy
    ledger: Ledger
    known: frozenset[str]  # digests of the messages that it was compared with
    notes: tuple[str, ...] = ()  # what else the user should know

    @property
    def digest(self) -> str:
        """Of what would leave."""
        return self.summary.to_message().digest


def draft_summary(
    table: Table | Streamed, client: str, agreement: Agreement, data: Path, policy: Policy | None = None
) -> Draft:
    """Summarise and audit; nothing is written yet. If the table is on the disk, it must stay open until it is sent.

    The policy is the site's own: the one beside the data, if none is given.
    """
    policy = read_policy(data) if policy is None else policy
    task, ledger = policy.tightened(agreement), Ledger.of(data, policy)
    looked = Looked(as_source(table.rows), agreement.terms.feature_names, table.persons)
    known = ledger.digests()

    limits, people = policy.limits(task.smallest), table.people
    told = tell(
        table.rows,
        client,
        task,
        withhold=agreement.withhold,
        terms=agreement.terms,
        people=people,
        steps=policy.steps,
        limits=limits,
    )
    if told.membership is None:
        told = measured(told, table.rows, people, policy.steps)
    message = told.summary.to_message()
    agreement.read_summary(message)  # what the server would refuse is told here
    # The very same message tells nothing new, however often it leaves.
    earlier = [] if message.digest in known else ledger.earlier(looked)
    change = change_since(earlier, policy.days)
    report = audit(table.rows, told, change=change, required=task.smallest, people=people, limits=limits)
    return Draft(told.summary, looked, report, policy, ledger, known, tuple(same_rows_elsewhere(earlier, client)))


def same_rows_elsewhere(earlier: Sequence[Earlier], client: str) -> Iterator[str]:
    """Notes on messages of the same rows under another site's name: fused together, rows would count twice."""
    same = {one.client for one in earlier if not (one.difference.came or one.difference.went)}
    for other in sorted(same - {client}):
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
        raise AuditRefused(
            f"{what} is not written: {reasons}. Bring more rows or fewer columns, or say --accept-risk if you may."
        )
    ledger, to = draft.ledger, agreement.server.key or ""
    sealed_for_server(b"", draft.summary.client, agreement, key)
    with ledger.locked():
        message = ledger.message(draft.digest, to)
        if message is None:
            refuse_news(draft)
            message = sealed_for_server(encode(draft.summary.to_message()), draft.summary.client, agreement, key)
            ledger.keep(draft.digest, message, draft.table, client=draft.summary.client, data=data.name, to=to)
            ledger.note("sent", **facts_of(draft, data, message), accepted_risk=bool(draft.audit.failures))
        else:
            ledger.note("sent again", **facts_of(draft, data, message))
        ledger.forget(ledger.older_than(datetime.now(UTC) - timedelta(days=draft.policy.keep_days)), draft.policy)
        remember(data, agreement)
        if out is not None:
            write_durably(out, message)
    return message


def refuse_news(draft: Draft) -> None:
    """Refuse a message that was not compared with all that left before."""
    if draft.ledger.digests() - draft.known - {draft.digest}:
        raise AuditRefused(
            "Another message left this site while this one was made, so the two were not compared; make it anew."
        )


def facts_of(draft: Draft, data: Path, message: bytes) -> dict[str, Fact]:
    """What the ledger says of a message."""
    terms = draft.summary.terms
    return {
        "data": data.name,
        "client": draft.summary.client,
        "federation": terms.federation,
        "round": terms.round,
        "rows": len(draft.table),
        "people": people_in(draft.table),
        "micro_clusters": len(draft.summary.centroids),
        "smallest": draft.summary.smallest,
        "warnings": sorted({finding.name for finding in draft.audit.warnings}),
        "policy": draft.policy.fingerprint,
        "digest": draft.digest,
        "sha256": hashlib.sha256(message).hexdigest(),
    }


def sealed_for_server(body: bytes, client: str, agreement: Agreement, key: PrivateKey | None) -> bytes:
    """The body in an envelope, if the federation has keys."""
    if agreement.server.key is None:
        return body
    if key is None:
        raise BadSettings(
            f"Messages of this federation are sealed: name your private key with --key ({FILE} has keys)."
        )
    if key.public != agreement.key_of(client):
        raise BadSettings(f"This is not the key of client {client!r} in {FILE}.")
    return seal(body, context_of(agreement, client, "server"), key, PublicKey(agreement.server.key))


def context_of(agreement: Agreement, client: str, to: str) -> Context:
    """What an envelope is for."""
    return Context(federation=agreement.federation, round=agreement.round, client=client, to=to)


def open_model(message: bytes, source: str, agreement: Agreement | None, client: str, key: PrivateKey | None) -> Model:
    """The model, out of its envelope if it is in one, and checked."""
    with naming(source):
        if is_sealed(message):
            if agreement is None or agreement.server.key is None or key is None:
                raise BadSettings(f"{source} is sealed: it takes {FILE} with the server's key, and --key to open it.")
            expected = context_of(agreement, client, "client")
            message = unseal(message, expected, PublicKey(agreement.server.key), key)
        elif agreement is not None and agreement.sealed:
            raise BadMessage(f"it is not in an envelope, but {FILE} has keys: whoever made it did not sign it")
    decoded = decode(message, source)
    with naming(source):
        model = Model.from_message(decoded)
        if not model.terms.columns:
            raise BadMessage("it names no columns, so that no table can be labelled by it")
    if agreement is not None and (difference := agreement.terms.difference(model.terms)):
        raise BadMessage(f"{source} does not fit {FILE}: {difference}; ask for the one that does.")
    return model


# --- labels ---


@dataclass(frozen=True)
class Labels:
    """For every row of the file: its cluster (-1: it has missing values), how sure that is, and whether it is far."""

    ids: tuple[str, ...]
    cluster: IntArray
    certainty: FloatArray  # not a number where there is no cluster
    far: NDArray[np.bool_]


def label_table(table: Table, model: Model) -> Labels:
    """The labels of a table in memory."""
    return spread_out(label_rows(table.rows, model), table.ids, table.kept)


def labels_of(table: Table | Streamed, model: Model) -> Iterator[Labels]:
    """The labels of a table, in parts if it is on the disk."""
    if isinstance(table, Table):
        yield label_table(table, model)
        return
    first = start = 0
    for ids in table.ids():
        kept = np.flatnonzero(table.missing[first : first + len(ids)] == 0)
        rows = table.rows.read(start, start + len(kept))
        yield spread_out(label_rows(rows, model), ids, kept)
        first, start = first + len(ids), start + len(kept)


def label_rows(rows: FloatArray, model: Model) -> Labels:
    """Labels of rows without missing values; the same for every row, whether it was summarised or not."""
    cluster, certainty = label(rows, model)
    return Labels((), cluster, certainty, is_far(model, rows))


@dataclass
class Tally:
    """What there is to say of all labels."""

    rows: int = 0
    far: int = 0
    without: int = 0
    clusters: set[int] = field(default_factory=set)

    def add(self, labels: Labels) -> None:
        """Some more."""
        there = labels.cluster >= 0
        self.rows += len(labels.ids)
        self.far += int(labels.far.sum())
        self.without += int((~there).sum())
        self.clusters |= set(labels.cluster[there].tolist())


def write_labels(parts: Iterable[Labels], out: Path, id_name: str) -> Tally:
    """As CSV: all or nothing, and for its owner alone."""
    tally = Tally()

    def pieces() -> Iterator[bytes]:
        yield header_text(id_name).encode()
        for labels in parts:
            tally.add(labels)
            yield lines_text(labels).encode()

    write_pieces_durably(out, pieces(), private=True)
    return tally


def header_text(id_name: str) -> str:
    """The first line."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerow([as_text(id_name), *LABEL_COLUMNS])
    return text.getvalue()


def as_text(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: what could begin one gets a ' in front, as OWASP advises.

    Numbers with a sign are left as they are.
    """
    return f"'{cell}" if FORMULA.match(cell) and not SIGNED_NUMBER.fullmatch(cell) else cell


def lines_text(labels: Labels) -> str:
    """A line for every row."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row, cluster, certainty, far in zip(labels.ids, labels.cluster, labels.certainty, labels.far, strict=True):
        sure = "" if math.isnan(certainty) else f"{certainty:.3f}"
        is_far = "" if cluster < 0 else "yes" if far else "no"
        writer.writerow([as_text(row), "" if cluster < 0 else cluster, sure, is_far])
    return text.getvalue()


def spread_out(labels: Labels, ids: tuple[str, ...], kept: IntArray) -> Labels:
    """Labels of the rows without missing values, at their places among all rows."""
    cluster, certainty = np.full(len(ids), -1, dtype=np.int64), np.full(len(ids), np.nan)
    far = np.zeros(len(ids), dtype=bool)
    cluster[kept], certainty[kept], far[kept] = labels.cluster, labels.certainty, labels.far
    return Labels(ids, cluster, certainty, far)
