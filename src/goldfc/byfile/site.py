"""A site's side by file: summarise a table, look at what would leave, and label the rows when the model comes.

What stays at the site is in a folder `.goldfc` beside the data, for its owner alone: which row is in which
micro-cluster, and a ledger of every message that was made.
"""

import csv
import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from goldfc._types import FloatArray, IntArray
from goldfc.byfile.tables import Table
from goldfc.errors import AuditRefused, BadMessage, BadSettings
from goldfc.model import is_far, predict
from goldfc.protocol.agreement import FILE, Agreement
from goldfc.protocol.audit import Audit, Change, audit
from goldfc.protocol.client import Membership, label, summarize
from goldfc.protocol.envelope import Context, PrivateKey, PublicKey, is_sealed, seal, unseal
from goldfc.protocol.federation import generator
from goldfc.protocol.message import Model, Summary, canonical_json
from goldfc.protocol.rows import RowSource
from goldfc.protocol.wire import decode, encode, naming, sync_folder, write_durably

PRIVATE_FOLDER = ".goldfc"
LEDGER = "ledger.jsonl"
ROW_DIGEST_BYTES = 16
LABEL_COLUMNS = ("cluster", "certainty", "found_by", "far")


@dataclass(frozen=True)
class Draft:
    """A summary before it is written: what would leave, what stays, and what the audit found."""

    summary: Summary
    membership: Membership
    rows: NDArray[np.uint8]  # a digest of every row that was summarised
    audit: Audit
    notes: tuple[str, ...] = ()  # what else the user should know


def draft_summary(table: Table, client: str, agreement: Agreement, data: Path) -> Draft:
    """Summarise and audit; nothing is written yet."""
    task, terms = agreement.way.task, agreement.terms

    def make(rows: FloatArray | RowSource) -> tuple[Summary, Membership]:
        rng = generator(agreement.seed, "client", client)
        return summarize(rows, client, task, rng, withhold=agreement.withhold, terms=terms)

    summary, membership = make(table.rows)
    agreement.read_summary(summary.to_message())  # what the server would refuse is told here
    digests = row_digests(table.rows)
    report = audit(
        table.rows,
        summary,
        membership.micro_clusters,
        # Half of the rows must be enough to be summarised.
        again=(lambda rows: make(rows)[0]) if len(table.rows) >= 4 * max(task.smallest, 2) else None,
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


def row_digests(rows: FloatArray) -> NDArray[np.uint8]:
    """A short number for every row, to recognise it by."""
    digests = b"".join(
        hashlib.blake2b(row.tobytes(), digest_size=ROW_DIGEST_BYTES).digest() for row in np.ascontiguousarray(rows)
    )
    return np.frombuffer(digests, np.uint8).reshape(-1, ROW_DIGEST_BYTES)


@dataclass(frozen=True)
class Kept:
    """What a site keeps of a message."""

    membership: Membership
    rows: NDArray[np.uint8]
    sent: str


def private_folder(data: Path) -> Path:
    """Where it is, made if need be."""
    folder = data.parent / PRIVATE_FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def keep_membership(draft: Draft, data: Path) -> None:
    """Write down which row is in which micro-cluster, under the digest of the message."""
    facts = {"client": draft.membership.client, "digest": draft.membership.digest, "data": data.name, "sent": now()}
    arrays: dict[str, NDArray[Any]] = {"micro_clusters": draft.membership.micro_clusters, "rows": draft.rows}
    content: bytes = save(arrays, metadata={"goldfc": canonical_json(facts)})
    write_durably(private_folder(data) / f"{draft.membership.digest}.membership", content, private=True)


def all_kept(data: Path) -> Iterator[Kept]:
    """What is kept of all messages that were made beside this data."""
    for path in sorted((data.parent / PRIVATE_FOLDER).glob("*.membership")):
        try:
            with safe_open(path, "numpy") as file:
                facts = json.loads(file.metadata()["goldfc"])
                membership = Membership(facts["client"], file.get_tensor("micro_clusters"), facts["digest"])
                yield Kept(membership, file.get_tensor("rows"), facts["sent"])
        except (SafetensorError, ValueError, KeyError, TypeError) as error:
            raise BadSettings(f"{PRIVATE_FOLDER}/{path.name} is damaged; remove it and summarise again.") from error


def smallest_change(data: Path, digests: NDArray[np.uint8]) -> Change | None:
    """The message of nearly the same rows that differs least from these; none if there is none with other rows."""
    changes = [
        Change(kept.sent, *difference)
        for kept in all_kept(data)
        if any(difference := row_difference(kept.rows, digests)) and difference[1] < len(kept.rows)
    ]
    return min(changes, key=lambda change: (change.added + change.removed, change.sent), default=None)


def same_rows_elsewhere(data: Path, client: str, digests: NDArray[np.uint8]) -> Iterator[str]:
    """Notes on messages of the same rows under another site's name: fused together, rows would count twice."""
    others = {kept.membership.client for kept in all_kept(data) if np.array_equal(kept.rows, digests)} - {client}
    for other in sorted(others):
        yield f"The same rows were summarised as site {other!r} before; hand over one of the two messages."


def row_difference(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> tuple[int, int]:
    """How many rows came and went."""
    old, old_counts = np.unique(before, axis=0, return_counts=True)
    new, new_counts = np.unique(after, axis=0, return_counts=True)
    counts = {row.tobytes(): -int(count) for row, count in zip(old, old_counts, strict=True)}
    for row, count in zip(new, new_counts, strict=True):
        counts[row.tobytes()] = counts.get(row.tobytes(), 0) + int(count)
    return sum(max(count, 0) for count in counts.values()), sum(max(-count, 0) for count in counts.values())


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


def label_table(table: Table, model: Model, data: Path) -> Labels:
    """Rows that were summarised get the label of their micro-cluster; others that of the nearest cluster."""
    digests = [row.tobytes() for row in row_digests(table.rows)]
    cluster, far = predict(model, table.rows), is_far(model, table.rows)
    certainty, known = np.full(len(cluster), np.nan), np.zeros(len(cluster), dtype=bool)
    for kept, places in best_known(model, data, digests):
        own, sure = label(kept.membership, model)
        known = places >= 0
        cluster[known], certainty[known] = own[places[known]], sure[places[known]]
    return spread_out(Labels(table.ids, cluster, certainty, known, far & ~known), table.kept)


def labels_text(labels: Labels, id_name: str) -> str:
    """As CSV."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([id_name, *LABEL_COLUMNS])
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


def best_known(model: Model, data: Path, digests: Sequence[bytes]) -> list[tuple[Kept, IntArray]]:
    """What is kept of the message that most of these rows are in, and where; nothing if the model knows none."""
    found = [
        (kept, places_of(digests, [row.tobytes() for row in kept.rows]))
        for kept in all_kept(data)
        if kept.membership.digest in model.digests
    ]
    found = [(kept, places) for kept, places in found if (places >= 0).any()]
    return [max(found, key=lambda one: (one[1] >= 0).sum())] if found else []


def places_of(digests: Sequence[bytes], known: Sequence[bytes]) -> IntArray:
    """Where each row was among those summarised: at the same place, or else anywhere; -1 if nowhere."""
    first = {digest: place for place, digest in reversed(list(enumerate(known)))}
    return np.array(
        [
            place if place < len(known) and known[place] == digest else first.get(digest, -1)
            for place, digest in enumerate(digests)
        ],
        dtype=np.int64,
    )


def spread_out(labels: Labels, kept: IntArray) -> Labels:
    """Labels of the rows that were learned from, at their places among all rows."""
    total = len(labels.ids)
    cluster, certainty = np.full(total, -1, dtype=np.int64), np.full(total, np.nan)
    summarised, far = np.zeros(total, dtype=bool), np.zeros(total, dtype=bool)
    cluster[kept], certainty[kept] = labels.cluster, labels.certainty
    summarised[kept], far[kept] = labels.summarised, labels.far
    return Labels(labels.ids, cluster, certainty, summarised, far)
