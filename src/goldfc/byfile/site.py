"""A site's side by file: summarise a table, look at what would leave, and label the rows when the model comes.

What stays at the site is in a folder `.goldfc` beside the data, for its owner alone: which row is in which
micro-cluster, and a ledger of every message that was made.
"""

import csv
import hashlib
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goldfc._types import FloatArray, IntArray, RowLabels
from goldfc.byfile.digests import (
    Digests,
    Kept,
    open_kept,
    places_of,
    row_difference,
    row_digests,
    same_digests,
    write_kept,
)
from goldfc.byfile.ondisk import PRIVATE_FOLDER, private_folder
from goldfc.byfile.stream import Streamed
from goldfc.byfile.tables import Table
from goldfc.errors import AuditRefused, BadMessage, BadSettings
from goldfc.protocol.label import is_far, predict
from goldfc.protocol.agreement import FILE, Agreement
from goldfc.protocol.audit import Audit, Change, audit
from goldfc.protocol.client import Membership, label, summarize
from goldfc.protocol.envelope import Context, PrivateKey, PublicKey, is_sealed, seal, unseal
from goldfc.protocol.federation import generator
from goldfc.protocol.finding import WHEN_MANY, Blocks
from goldfc.protocol.message import Model, Summary, canonical_json
from goldfc.protocol.rows import RowSource
from goldfc.protocol.wire import decode, encode, naming, sync_folder, write_durably, write_pieces_durably

LEDGER = "ledger.jsonl"
LABEL_COLUMNS = ("cluster", "certainty", "found_by", "far")


@dataclass(frozen=True)
class Draft:
    """A summary before it is written: what would leave, what stays, and what the audit found."""

    summary: Summary
    membership: Membership
    rows: Digests  # a digest of every row that was summarised
    audit: Audit
    notes: tuple[str, ...] = ()  # what else the user should know


def draft_summary(table: Table | Streamed, client: str, agreement: Agreement, data: Path) -> Draft:
    """Summarise and audit; nothing is written yet. If the table is on the disk, it must stay open until it is sent."""
    task, terms = agreement.way.task, agreement.terms
    # The result does not hang on how many cores there are.
    blocks = Blocks(n_jobs=-1) if isinstance(table, Streamed) else WHEN_MANY

    def make(rows: FloatArray | RowSource) -> tuple[Summary, Membership]:
        rng = generator(agreement.seed, "client", client)
        return summarize(rows, client, task, rng, withhold=agreement.withhold, terms=terms, blocks=blocks)

    summary, membership = make(table.rows)
    agreement.read_summary(summary.to_message())  # what the server would refuse is told here
    digests = table.digests if isinstance(table, Streamed) else row_digests(table.rows)
    report = audit(
        table.rows,
        summary,
        membership.micro_clusters,
        # Half of the rows must be enough to be summarised.
        again=(lambda rows: make(rows)[0]) if len(digests) >= 4 * max(task.smallest, 2) else None,
        change=smallest_change(data, digests),
        required=task.smallest,
    )
    return Draft(summary, membership, digests, report, tuple(same_rows_elsewhere(data, client, digests)))


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
    keep_membership(draft, data)
    write_ledger(draft, data, message, accept_risk=bool(draft.audit.failures))
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
    if agreement is not None and (difference := agreement.terms.difference(model.terms)):
        raise BadMessage(f"{source} does not fit {FILE}: {difference}; ask for the one that does.")
    return model


# --- what stays at the site ---


def keep_membership(draft: Draft, data: Path) -> None:
    """Write down which row is in which micro-cluster, under the digest of the message."""
    facts = {"client": draft.membership.client, "digest": draft.membership.digest, "data": data.name, "sent": now()}
    path = private_folder(data) / f"{draft.membership.digest}.membership"
    write_kept(path, draft.membership, draft.rows, facts)


def all_kept(data: Path) -> Iterator[Kept]:
    """What is kept of all messages that were made beside this data; each can be read until the next one comes."""
    for path in sorted((data.parent / PRIVATE_FOLDER).glob("*.membership")):
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
    handle = os.open(folder / LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
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
    """For every row of the file: its cluster (-1: it has missing values), how sure that is, and how it was found."""

    ids: tuple[str, ...]
    cluster: IntArray
    certainty: FloatArray  # not a number where it is not known
    summarised: NDArray[np.bool_]
    far: NDArray[np.bool_]


@dataclass(frozen=True)
class Known:
    """What is kept of the message that most rows of a table are in, and where each row is in it (-1: it is not)."""

    membership: Membership
    places: RowLabels


def label_table(table: Table, model: Model, data: Path) -> Labels:
    """Rows that were summarised get the label of their micro-cluster; others that of the nearest cluster."""
    known = best_known(model, data, row_digests(table.rows))
    return spread_out(label_rows(table.rows, 0, model, known), table.ids, table.kept)


def labels_of(table: Table | Streamed, model: Model, data: Path) -> Iterator[Labels]:
    """The labels of a table, in parts if it is on the disk."""
    if isinstance(table, Table):
        yield label_table(table, model, data)
        return
    known, first, start = best_known(model, data, table.digests), 0, 0
    for ids in table.ids():
        kept = np.flatnonzero(table.missing[first : first + len(ids)] == 0)
        rows = table.rows.read(start, start + len(kept))
        yield spread_out(label_rows(rows, start, model, known), ids, kept)
        first, start = first + len(ids), start + len(kept)


def label_rows(rows: FloatArray, start: int, model: Model, known: Known | None) -> Labels:
    """Labels of rows without missing values, the first of which stands at `start` among those."""
    if not len(rows):
        return Labels((), np.empty(0, np.int64), np.empty(0), np.empty(0, bool), np.empty(0, bool))
    cluster, far = predict(model, rows), is_far(model, rows)
    certainty, summarised = np.full(len(cluster), np.nan), np.zeros(len(cluster), dtype=bool)
    if known is not None:
        places = known.places[start : start + len(rows)]
        summarised = places >= 0
    if known is not None and summarised.any():
        whole = known.membership
        own = Membership(whole.client, whole.micro_clusters[places[summarised]], whole.digest)
        cluster[summarised], certainty[summarised] = label(own, model)
    return Labels((), cluster, certainty, summarised, far & ~summarised)


@dataclass
class Tally:
    """What there is to say of all labels."""

    rows: int = 0
    summarised: int = 0
    others: int = 0  # with a cluster, but not summarised
    far: int = 0
    without: int = 0
    clusters: set[int] = field(default_factory=set)

    def add(self, labels: Labels) -> None:
        """Some more."""
        there = labels.cluster >= 0
        self.rows += len(labels.ids)
        self.summarised += int(labels.summarised.sum())
        self.others += int((~labels.summarised & there).sum())
        self.far += int(labels.far.sum())
        self.without += int((~there).sum())
        self.clusters |= set(labels.cluster[there].tolist())


def write_labels(parts: Iterable[Labels], out: Path, id_name: str) -> Tally:
    """As CSV: all or nothing."""
    tally = Tally()

    def pieces() -> Iterator[bytes]:
        yield header_text(id_name).encode()
        for labels in parts:
            tally.add(labels)
            yield lines_text(labels).encode()

    write_pieces_durably(out, pieces())
    return tally


def labels_text(labels: Labels, id_name: str) -> str:
    """As CSV."""
    return header_text(id_name) + lines_text(labels)


def header_text(id_name: str) -> str:
    """The first line."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerow([id_name, *LABEL_COLUMNS])
    return text.getvalue()


def lines_text(labels: Labels) -> str:
    """A line for every row."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row, cluster, certainty, summarised, far in zip(
        labels.ids, labels.cluster, labels.certainty, labels.summarised, labels.far, strict=True
    ):
        found_by = "none" if cluster < 0 else "micro-cluster" if summarised else "nearest"
        sure = "" if math.isnan(certainty) else f"{certainty:.3f}"
        is_far = "" if cluster < 0 else "yes" if far else "no"
        writer.writerow([row, "" if cluster < 0 else cluster, sure, found_by, is_far])
    return text.getvalue()


def has_sent(data: Path) -> bool:
    """Whether any message was made beside this data."""
    return any(True for _ in all_kept(data))


def best_known(model: Model, data: Path, digests: Digests) -> Known | None:
    """What is kept of the message that most of these rows are in, and where; nothing if the model knows none."""
    best, most = None, 0
    for kept in all_kept(data):
        if kept.digest in model.digests:
            places = places_of(digests, kept.rows)
            count = int((places >= 0).sum())
            if count > most:
                best, most = Known(kept.membership(), places), count
    return best


def spread_out(labels: Labels, ids: tuple[str, ...], kept: IntArray) -> Labels:
    """Labels of the rows without missing values, at their places among all rows."""
    cluster, certainty = np.full(len(ids), -1, dtype=np.int64), np.full(len(ids), np.nan)
    summarised, far = np.zeros(len(ids), dtype=bool), np.zeros(len(ids), dtype=bool)
    cluster[kept], certainty[kept] = labels.cluster, labels.certainty
    summarised[kept], far[kept] = labels.summarised, labels.far
    return Labels(ids, cluster, certainty, summarised, far)
