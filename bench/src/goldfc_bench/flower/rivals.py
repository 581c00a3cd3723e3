"""The methods of the benchmark, over Flower: proof that the port carries more than one message each way.

For experiments only: what these methods send is neither suppressed nor sealed. A site's program may be a new process
for every message, so what it has been told so far is in Flower's `Context.state`, which never leaves the node; before
it answers, it goes through all of that again. Nothing is lost by that, since its randomness begins anew, too.

Settings of a node: `site`, `rows` (a .npy file with its rows), `labels` (where its labels go, as .npy). Of a run:
`method`, `clusters`, `seed`, `expect`, `out` (where the server puts the global centroids).
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from flwr.app import ConfigRecord, Context, RecordDict, UserConfig
from flwr.app import Message as Parcel
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save

from goldfc._types import IntArray
from goldfc.errors import BadMessage
from goldfc.message.message import Message, canonical_json
from goldfc.message.wire import MOST_BYTES_OF_A_MESSAGE, parse_json
from goldfc.randomness import generator, site_generator
from goldfc.transport.flower.exchange import Exchange, Patience
from goldfc.transport.flower.records import RECORD, packed
from goldfc.transport.flower.simulate import as_site
from goldfc_bench.methods import method_named

ASK, NAME, FINISH = "ask", "name", "finish"
JOIN_SECONDS, ANSWER_SECONDS = 120.0, 600.0
KINDS = {"F64": "<f8", "I64": "<i8", "F32": "<f4", "I32": "<i4", "BOOL": "?"}

site_app = ClientApp()
server_app = ServerApp()


# --- any message as bytes ---


def to_bytes(message: Message) -> bytes:
    """A message of any kind, with arrays of numbers."""
    facts = canonical_json({"kind": message.kind, "facts": dict(message.facts)})
    arrays = {name: np.ascontiguousarray(array) for name, array in message.arrays.items()}
    body: bytes = save(arrays, metadata={"goldfc": facts})
    return body


def from_bytes(body: bytes) -> Message:
    """Read it back."""
    length = int.from_bytes(body[:8], "little")
    if len(body) > MOST_BYTES_OF_A_MESSAGE or len(body) < 8 + length:
        raise BadMessage("A message is cut off, or too large.")
    header = parse_json(parse_json(body[8 : 8 + length])["__metadata__"]["goldfc"].encode())
    try:
        tensors = deserialize(body)  # type: ignore[no-untyped-call]
        arrays = {
            name: np.frombuffer(facts["data"], KINDS[facts["dtype"]]).reshape(facts["shape"]) for name, facts in tensors
        }
    except (SafetensorError, KeyError, ValueError) as error:
        raise BadMessage("A message has arrays that cannot be read.") from error
    return Message(header["kind"], arrays, header["facts"])


# --- at a node ---


@site_app.query(NAME)
def answer_name(parcel: Parcel, context: Context) -> Parcel:
    """Who it is; and a new run begins."""
    context.state[RECORD] = ConfigRecord({"heard": list[bytes]()})
    return Parcel(packed(site=str(context.node_config["site"])), reply_to=parcel)


@site_app.query(ASK)
def answer_question(parcel: Parcel, context: Context) -> Parcel:
    """Whatever the method's site says."""
    record = parcel.content.config_records[RECORD]
    heard = [*heard_by(context), bytes_in(record, "body")]
    *_, answer = replayed(heard, str(record["method"]), number_in(record, "seed"), context)[1]
    context.state[RECORD] = ConfigRecord({"heard": heard})
    return Parcel(packed(body=b"" if answer is None else to_bytes(answer)), reply_to=parcel)


@site_app.query(FINISH)
def answer_finish(parcel: Parcel, context: Context) -> Parcel:
    """Labels go to the node's own disk."""
    record = parcel.content.config_records[RECORD]
    labels, _ = replayed(heard_by(context), str(record["method"]), number_in(record, "seed"), context)
    np.save(Path(str(context.node_config["labels"])), labels)
    return Parcel(packed(body=b""), reply_to=parcel)


def heard_by(context: Context) -> list[bytes]:
    """What this node was told in this run."""
    heard = context.state.config_records[RECORD]["heard"]
    if not isinstance(heard, list):
        raise BadMessage("What this node remembers cannot be read.")
    return [bytes(one) for one in heard if isinstance(one, bytes)]


def replayed(heard: Sequence[bytes], method: str, seed: int, context: Context) -> tuple[IntArray, list[Message | None]]:
    """The site's program, from the beginning: its labels, if it has any yet, and all its answers."""
    name = str(context.node_config["site"])
    rows = np.load(Path(str(context.node_config["rows"])), allow_pickle=False)
    site = method_named(method, {}).site(name, rows, site_generator(seed, name))
    answers = [site.answer(from_bytes(body)) for body in heard]
    try:
        return site.labels, answers
    except BadMessage:
        return np.empty(0, dtype=np.int64), answers


def bytes_in(record: Mapping[str, object], name: str) -> bytes:
    """A value that must be bytes."""
    value = record[name]
    if not isinstance(value, bytes):
        raise BadMessage(f"{name} must be bytes.")
    return value


def number_in(record: Mapping[str, object], name: str) -> int:
    """A value that must be a whole number."""
    value = record[name]
    if not isinstance(value, int):
        raise BadMessage(f"{name} must be a whole number.")
    return value


# --- at the server ---


@dataclass
class RivalsPort:
    """`ask` for any method, over Flower; everybody must answer."""

    exchange: Exchange
    method: str
    seed: int
    nodes: dict[str, int] = field(default_factory=dict)

    def meet(self) -> None:
        """Learn who is there."""
        *_, found = self.exchange.joined()
        if len(found) < self.exchange.patience.expect:
            raise BadMessage(f"{len(found)} nodes have joined, and {self.exchange.patience.expect} are expected.")
        replies = self._all(NAME, dict.fromkeys(found, packed()))
        self.nodes = {str(record["site"]): node for node, record in replies.items()}

    def ask(self, message: Message, sites: Sequence[str] | None = None) -> dict[str, Message]:
        """Send a message to some sites, or to all; the answers of those that have one, by site name."""
        names = sorted(self.nodes) if sites is None else list(sites)
        replies = self._all(ASK, {self.nodes[name]: self._packed(to_bytes(message)) for name in names})
        bodies = {name: bytes_in(replies[self.nodes[name]], "body") for name in names}
        return {name: from_bytes(body) for name, body in bodies.items() if body}

    def finish(self) -> None:
        """Have everybody write down the labels."""
        self._all(FINISH, dict.fromkeys(self.nodes.values(), self._packed(b"")))

    def _packed(self, body: bytes) -> RecordDict:
        return RecordDict({RECORD: ConfigRecord({"body": body, "method": self.method, "seed": self.seed})})

    def _all(self, action: str, questions: Mapping[int, RecordDict]) -> dict[int, ConfigRecord]:
        """The answers of all; one that is missing ends it."""
        answers = {}
        for node, reply in self.exchange.ask(action, questions):
            if reply is None or reply.has_error():
                raise BadMessage(f"node {node} has no answer to {action!r}.")
            answers[node] = reply.content.config_records[RECORD]
        if silent := set(questions) - set(answers):
            raise BadMessage(f"node {min(silent)} did not answer in time.")
        return answers


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    """One run of a method, as the run's settings say."""
    run = context.run_config
    serve(grid, str(run["method"]), int(run["clusters"]), int(run["seed"]), int(run["expect"]), Path(str(run["out"])))


def serve(grid: Grid, method: str, clusters: int, seed: int, expect: int, out: Path) -> None:
    """The method's own server program."""
    port = RivalsPort(Exchange(grid, Patience(expect, JOIN_SECONDS, ANSWER_SECONDS)), method, seed)
    port.meet()
    answer = method_named(method, {}).serve(port, clusters, generator(seed, "server"))
    port.finish()
    np.save(out, answer.centroids)


def simulate(folder: Path, method: str, clusters: int, seed: int) -> None:
    """A run on Flower's simulation engine; every `rows-NAME.npy` in the folder is a node, labels go beside it."""
    names = sorted(path.stem.removeprefix("rows-") for path in folder.glob("rows-*.npy"))
    sites: list[UserConfig] = [
        {"site": name, "rows": str(folder / f"rows-{name}.npy"), "labels": str(folder / f"labels-{name}.npy")}
        for name in names
    ]
    server, nodes = ServerApp(), ClientApp()

    @server.main()
    def run(grid: Grid, _: Context) -> None:
        serve(grid, method, clusters, seed, len(sites), folder / "centroids.npy")

    for action, handler in ((NAME, answer_name), (ASK, answer_question), (FINISH, answer_finish)):
        nodes.query(action)(as_site(handler, sites))
    run_simulation(server, nodes, len(sites))


if __name__ == "__main__":
    simulate(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
