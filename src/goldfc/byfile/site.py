"""A site's side by file: summarise a table, look at what would leave, and label the rows when the model comes.

What stays at the site is in a folder `.goldfc` beside the data, for its owner alone: a digest of every row that was
summarised, and a ledger of every message that was made.
"""

import csv
import hashlib
import math
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.byfile.digests import Digests, Kept, open_kept, row_difference, row_digests, same_digests, write_kept
from goldfc.byfile.memory import remember
from goldfc.byfile.ondisk import PRIVATE_FOLDER, check_private, private_folder
from goldfc.byfile.stream import Streamed
from goldfc.byfile.tables import Table
from goldfc.errors import AuditRefused, BadMessage, BadSettings
from goldfc.protocol.agreement import FILE, Agreement
from goldfc.protocol.audit import Audit, Change, audit
from goldfc.protocol.client import summarize
from goldfc.protocol.envelope import Context, PrivateKey, PublicKey, is_sealed, seal, unseal
from goldfc.protocol.label import is_far, label
from goldfc.protocol.message import Model, Summary, canonical_json
from goldfc.protocol.rows import RowSource
from goldfc.protocol.wire import decode, encode, naming, sync_folder, write_durably, write_pieces_durably

LEDGER = "ledger.jsonl"
# What spreadsheets take for the beginning of a formula, also after blanks, and in its wide form.
FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
SIGNED_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?")
LABEL_COLUMNS = ("cluster", "certainty", "far")


@dataclass(frozen=True)
class Draft:
    """A summary before it is written: what would leave, what stays, and what the audit found."""

    summary: Summary
    rows: Digests  # a digest of every row that was summarised
    audit: Audit
    notes: tuple[str, ...] = ()  # what else the user should know


def draft_summary(table: Table | Streamed, client: str, agreement: Agreement, data: Path) -> Draft:
    """Summarise and audit; nothing is written yet. If the table is on the disk, it must stay open until it is sent."""
    task, terms = agreement.way.task, agreement.terms

    def make(rows: FloatArray | RowSource) -> tuple[Summary, RowLabels]:
        return summarize(rows, client, task, withhold=agreement.withhold, terms=terms)

    summary, micro_clusters = make(table.rows)
    agreement.read_summary(summary.to_message())  # what the server would refuse is told here
    digests = table.digests if isinstance(table, Streamed) else row_digests(table.rows)
    report = audit(
        table.rows,
        summary,
        micro_clusters,
        # Half of the rows must be enough to be summarised.
        again=(lambda rows: make(rows)[0]) if len(digests) >= 4 * max(task.smallest, 2) else None,
        change=smallest_change(data, digests),
        required=task.smallest,
    )
    return Draft(summary, digests, report, tuple(same_rows_elsewhere(data, client, digests)))


def send(
    draft: Draft, agreement: Agreement, data: Path, out: Path, *, key: PrivateKey | None, accept_risk: bool = False
) -> bytes:
    """Write the message, if the audit allows it. What must be known later is on the disk before anything leaves."""
    if draft.audit.failures and not accept_risk:
        raise AuditRefused(
            f"{out.name} is not written: {'; '.join(draft.audit.failures)}. Bring more rows or fewer columns, or say "
            "--accept-risk if you may."
        )
    message = sealed_for_server(encode(draft.summary.to_message()), draft.summary.client, agreement, key)
    keep_digests(draft, data)
    write_ledger(draft, data, message, accept_risk=bool(draft.audit.failures))
    remember(data, agreement)
    write_durably(out, message)
    return message


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


# --- what stays at the site ---


def keep_digests(draft: Draft, data: Path) -> None:
    """Write down which rows were summarised, under the digest of the message."""
    digest = draft.summary.to_message().digest
    facts = {"client": draft.summary.client, "digest": digest, "data": data.name, "sent": now()}
    write_kept(private_folder(data) / f"{digest}.rows", draft.rows, facts)


def all_kept(data: Path) -> Iterator[Kept]:
    """What is kept of all messages that were made beside this data; each can be read until the next one comes."""
    check_private(data.parent / PRIVATE_FOLDER)
    for path in sorted((data.parent / PRIVATE_FOLDER).glob("*.rows")):
        with open_kept(path) as kept:
            yield kept


def smallest_change(data: Path, digests: Digests) -> Change | None:
    """The message of nearly the same rows that differs least from these; none if there is none with other rows."""
    changes = [
        Change(kept.sent, *difference)
        for kept in all_kept(data)
        if any(difference := row_difference(kept.rows, digests)) and difference[1] < len(kept.rows)
    ]
    return min(changes, key=lambda change: (change.added + change.removed, change.sent), default=None)


def same_rows_elsewhere(data: Path, client: str, digests: Digests) -> Iterator[str]:
    """Notes on messages of the same rows under another site's name: fused together, rows would count twice."""
    others = {kept.client for kept in all_kept(data) if same_digests(kept.rows, digests)} - {client}
    for other in sorted(others):
        yield f"The same rows were summarised as site {other!r} before; hand over one of the two messages."


def write_ledger(draft: Draft, data: Path, message: bytes, *, accept_risk: bool) -> None:
    """One more line on what left, from which data."""
    terms = draft.summary.terms
    line = {
        "time": now(),
        "data": data.name,
        "client": draft.summary.client,
        "federation": terms.federation,
        "round": terms.round,
        "rows": len(draft.rows),
        "micro_clusters": len(draft.summary.centroids),
        "smallest": draft.summary.smallest,
        "sha256": hashlib.sha256(message).hexdigest(),
        "accepted_risk": accept_risk,
    }
    folder = private_folder(data)
    handle = os.open(folder / LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "ab") as file:
        file.write(canonical_json(line).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    sync_folder(folder)


def now() -> str:
    """The time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


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
