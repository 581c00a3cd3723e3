"""A fleet behind gateways, and the same without: what it costs, and what comes out."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from goldfc.message.model import Model
from goldfc.message.summary import Summary
from goldfc.message.wire import decode, encode
from goldfc.randomness import generator
from goldfc.server.admit import read_summary
from goldfc.server.fusions import fuse
from goldfc.server.merge import merge_admitted
from goldfc.server.one_shot import fusion_of
from goldfc.site.label import predict
from goldfc_bench.fleet.made import Fleet
from goldfc_bench.stream import Used, used_by

# What is labelled to compare models: the rows of every so many devices.
EVERY = 20
LABELS = "at-once.npy"
CORES = 2
COMMAND = "from goldfc.cli import main; main()"
AT_ONCE = "from goldfc_bench.fleet.tiers import *; fuse_at_once({fleet!r}, {folder!r})"


@dataclass(frozen=True)
class Tiers:
    """What was measured."""

    fleet: Fleet
    seconds: float  # of devices and gateways, on all cores
    device_seconds: float  # of the processor, all devices
    gateway_seconds: float  # of the processor, all gateways
    gateway: Used  # one of them, as a command
    server: Used
    at_once: Used
    ari: float  # between both models
    ari_truth: float
    ari_truth_at_once: float


def measure_tiers(fleet: Fleet, folder: Path, tick: Callable[[], None]) -> Tiers:
    """Devices and gateways side by side, then the server; and beside it one that hears every device."""
    fleet.write_agreement(folder)
    start = time.perf_counter()
    device_seconds = gateway_seconds = 0.0
    with ProcessPoolExecutor(CORES, mp_context=get_context("spawn")) as pool:
        for of_devices, of_gateway in pool.map(partial(work_region, fleet, folder), range(fleet.gateways)):
            device_seconds, gateway_seconds = device_seconds + of_devices, gateway_seconds + of_gateway
            tick()
    seconds = time.perf_counter() - start
    regions = sorted(map(str, folder.glob("region-*.summary")))
    options = ["-k", str(fleet.clusters), "-o", str(folder / "global.model")]
    server = used_by([sys.executable, "-c", COMMAND, "fuse", *regions, *options], folder)
    own = write_one_region(fleet, folder / "one")
    gateway = used_by([sys.executable, "-c", COMMAND, "merge", *own, "-o", str(folder / "one" / "it.summary")], folder)
    at_once = used_by([sys.executable, "-c", AT_ONCE.format(fleet=fleet, folder=str(folder))], folder)
    rows, truth = fleet.sample(EVERY)
    one = predict(Model.from_message(decode((folder / "global.model").read_bytes())), rows)
    other = np.load(folder / LABELS)
    scores = [adjusted_rand_score(*pair) for pair in ((one, other), (truth, one), (truth, other))]
    return Tiers(fleet, seconds, device_seconds, gateway_seconds, gateway, server, at_once, *scores)


def work_region(fleet: Fleet, folder: Path, number: int) -> tuple[float, float]:
    """The devices of a gateway, and then the gateway: seconds of the processor of each."""
    start = time.process_time()
    messages = fleet.region(number)
    between = time.process_time()
    what, name = fleet.agreement, f"region-{number:03}"
    found = [read_summary(message, name, what, None)[0] for message in messages]
    merged = merge_admitted(found, what, what, name)
    (folder / f"{name}.summary").write_bytes(encode(merged.summary.to_message()))
    end = time.process_time()
    (folder / f"{name}.devices").write_bytes(b"".join(messages))
    (folder / f"{name}.sizes").write_text(json.dumps([len(one) for one in messages]), encoding="utf-8")
    return between - start, end - between


def write_one_region(fleet: Fleet, folder: Path) -> list[str]:
    """The messages of a gateway as files."""
    folder.mkdir()
    fleet.write_agreement(folder)
    for number, message in enumerate(messages_in(folder.parent, "region-000")):
        (folder / f"{number:04}.summary").write_bytes(message)
    return sorted(map(str, folder.glob("*.summary")))


def messages_in(folder: Path, name: str) -> Iterator[bytes]:
    """What the devices of a gateway sent."""
    content = (folder / f"{name}.devices").read_bytes()
    sizes = json.loads((folder / f"{name}.sizes").read_text(encoding="utf-8"))
    for begin, end in pairwise(accumulate(sizes, initial=0)):
        yield content[begin:end]


def fuse_at_once(fleet: Fleet, folder: str) -> None:
    """One server that hears every device, and the labels of its model.

    Whether columns look odd takes the square of the number of sites, and is not asked.
    """
    place, what = Path(folder), fleet.agreement
    names = [f"region-{number:03}" for number in range(fleet.gateways)]
    found = [Summary.from_message(decode(one)) for name in names for one in messages_in(place, name)]
    model = fuse(found, fleet.clusters, fusion_of(what), generator(what.seed, "server"))
    np.save(place / LABELS, predict(model, fleet.sample(EVERY)[0]))
