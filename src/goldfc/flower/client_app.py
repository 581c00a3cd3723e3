"""Flower's ClientApp: a site summarises its own table, and labels it when the model comes.

What a site reads and writes is said by its own settings (`--node-config`), never by the server:

    data         its table
    client       its name in the federation
    federation   its own copy of federation.toml    [federation.toml beside the data]
    key          its private key, where messages are sealed
    labels       where labels go                    [NAME.labels.csv beside NAME.csv]
    accept-risk  true: send although the audit speaks against it

What it must know between the two messages stays on its own disk, in the folder `.goldfc` beside the data.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from goldfc.byfile.ondisk import private_folder
from goldfc.byfile.site import (
    LABEL_COLUMNS,
    draft_summary,
    labels_of,
    open_model,
    sealed_for_server,
    send,
    write_labels,
)
from goldfc.byfile.stream import Streamed, open_table
from goldfc.byfile.tables import Table
from goldfc.errors import BadMessage, BadSettings, GoldError
from goldfc.flower.records import (
    LABEL,
    SUMMARIZE,
    AboutRows,
    Answer,
    about_rows,
    fingerprint,
    named,
    read_question,
    word_for,
)
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
    accept_risk: bool

    def table(self, columns: tuple[Column, ...]) -> AbstractContextManager[Table | Streamed]:
        """Its rows, in memory or, if they are many, on the disk."""
        drop = self.agreement.missing == "drop"
        return open_table(self.data, columns, drop=drop, id_column=self.agreement.id_column)


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
        cause = error.__cause__ if isinstance(error, AboutRows) else error
        logger.error("goldfc: %s", cause, exc_info=None if isinstance(cause, GoldError) else cause)
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
    federation, key = settings.get("federation"), settings.get("key")
    site = Site(
        data=data,
        client=client,
        agreement=read_agreement(Path(str(federation)).expanduser() if federation else data.with_name(FILE)),
        key=PrivateKey.read(Path(str(key)).expanduser()) if key else None,
        labels=Path(str(settings.get("labels") or data.with_name(f"{data.stem}.labels.csv"))).expanduser(),
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
    with about_rows(), site.table(site.agreement.columns) as table:
        draft = draft_summary(table, site.client, site.agreement, site.data)
        copy = private_folder(site.data) / f"{site.client}.summary"
        sent = send(draft, site.agreement, site.data, copy, key=site.key, accept_risk=site.accept_risk)
    return Answer(site.client, sent)


def labelled(site: Site, message: Message) -> Answer:
    """Labels, on the site's own disk."""
    letter = read_question(message, "model")
    if not isinstance(letter, bytes):
        raise BadMessage("The server's message is none that goldfc sends.")
    model = open_model(letter, "the model", site.agreement, site.client, site.key)
    with about_rows(), site.table(model.terms.columns) as table:
        labels = write_labels(labels_of(table, model), site.labels, site.agreement.id_column or "row")
    logger.warning("goldfc: labels of %d rows are written.", labels.rows)
    return Answer(site.client)
