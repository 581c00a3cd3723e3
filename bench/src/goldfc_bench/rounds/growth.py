"""Whether rounds take more time or memory the more there were before: a server's folder over many of them."""

import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from threadpoolctl import threadpool_limits

from goldfc import summarize
from goldfc._types import FloatArray
from goldfc.agreement import Agreement
from goldfc.message.columns import Column
from goldfc.message.summary import Summary
from goldfc.message.wire import encode
from goldfc.randomness import generator
from goldfc.server.deliver import MODEL
from goldfc.server.folder import Folder
from goldfc.server.one_shot import fusion_of
from goldfc_bench.scale.memory import peak_of_process

SITES, WIDTH, ROWS, CLUSTERS, DRAWS = 8, 4, 200, 5, 5
COLUMNS = Agreement(federation="growth", columns=tuple(Column(name=f"c{place}") for place in range(WIDTH)))
AGREEMENT = """federation = "growth"
round = {number}
""" + "".join(f'[[columns]]\nname = "c{place}"\n' for place in range(WIDTH))


@dataclass(frozen=True)
class Growth:
    """Of every round its seconds and the size of its model; and how far memory rose in the first and the last ones."""

    seconds: tuple[float, ...]
    model_bytes: tuple[int, ...]
    peak_of_first: float
    peak_of_last: float

    @property
    def slower(self) -> float:
        """The median time of the last tenth against that of the second tenth."""
        tenth = max(1, len(self.seconds) // 10)
        return float(np.median(self.seconds[-tenth:]) / np.median(self.seconds[tenth : 2 * tenth]))

    @property
    def larger(self) -> float:
        """The largest model of the last half against the largest of the first half."""
        half = len(self.model_bytes) // 2
        return max(self.model_bytes[half:]) / max(self.model_bytes[:half])


def grow(rounds: int) -> Growth:
    """So many rounds of eight sites in one folder, all with other rows every time."""
    seconds, sizes, peaks = [], [], []
    with TemporaryDirectory() as scratch, threadpool_limits(limits=1):
        path = Path(scratch)
        for number in range(1, rounds + 1):
            put_in(path, number)
            began = time.process_time()
            if number in (2, rounds):
                peaks.append(peak_of_process(lambda: run(path))[1])
            else:
                run(path)
            seconds.append(time.process_time() - began)
            sizes.append((path / MODEL).stat().st_size)
    return Growth(tuple(seconds), tuple(sizes), peaks[0], peaks[-1])


def put_in(path: Path, number: int) -> None:
    """What the sites send in a round."""
    (path / "federation.toml").write_text(AGREEMENT.format(number=number), encoding="utf-8")
    (path / "inbox").mkdir(exist_ok=True)
    terms = COLUMNS.terms.model_copy(update={"round": number})
    for site in range(SITES):
        summary = replace(summary_of(number % DRAWS, site), terms=terms)
        (path / "inbox" / f"s{site}.summary").write_bytes(encode(summary.to_message()))


@lru_cache(maxsize=DRAWS * SITES)
def summary_of(draw: int, site: int) -> Summary:
    """Of one of some draws, which take turns."""
    return summarize(rows_of(draw, site), f"s{site}", fusion_of(COLUMNS).task, terms=COLUMNS.terms)[0]


def rows_of(draw: int, site: int) -> FloatArray:
    """Of the same clusters in every draw."""
    rng = generator(0, "growth", str(draw), str(site))
    centres = generator(0, "growth").uniform(-10.0, 10.0, size=(CLUSTERS, WIDTH))
    return np.asarray(centres[rng.integers(CLUSTERS, size=ROWS)] + rng.normal(size=(ROWS, WIDTH)))


def run(path: Path) -> None:
    """A round at the server."""
    folder = Folder(path)
    for _ in folder.take_in():
        pass
    folder.close()
    folder.fuse(None)
