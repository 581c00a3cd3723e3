"""Flower's ServerApp: the server program of every federation, `run_round`, over Flower's grid."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from goldfc.errors import GoldError
from goldfc.flower.exchange import Exchange, Patience
from goldfc.flower.job import ACCEPTED, MODEL, SEALED, STATUS, Job, Status, Trouble
from goldfc.flower.port import GridPort, Hands
from goldfc.protocol.federation import generator
from goldfc.protocol.message import Model, Summary
from goldfc.protocol.server import Round, run_round
from goldfc.protocol.wire import encode, write_durably

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """One round, as the job file says that the run's settings name."""
    job = Job.read(Path(str(context.run_config["job"])))
    # The file may be of a later round already; then this run finds out before it writes anything.
    run_job(grid, job.model_copy(update={"round": str(context.run_config["round"])}))


def run_job(grid: Grid, job: Job) -> Round:
    """One round; how it stands is in the status file all along, also when it fails."""
    keeper, status = Keeper(job), Status(expected=job.expect)

    def tell(news: Status) -> None:
        nonlocal status
        status = news
        keeper.tell(news)

    try:
        tell(status)
        return run_live(grid, job, Hands(keeper.keep, keeper.deliver, tell))
    except Exception as error:
        tell(status.model_copy(update={"state": "failed", "trouble": trouble_of(error)}))
        raise


def trouble_of(error: Exception) -> Trouble:
    """What a person is told; the log has the rest."""
    if isinstance(error, GoldError):
        return Trouble(kind=type(error).__name__, sentence=str(error))
    return Trouble(
        kind="GoldError", sentence=f"The server's program failed ({type(error).__name__}): `flwr log` shows it."
    )


def run_live(grid: Grid, job: Job, hands: Hands) -> Round:
    """One round with the nodes of a grid."""
    agreement, key = job.load()
    exchange = Exchange(grid, Patience(job.expect, job.join, job.answer))
    port = GridPort(exchange, agreement, key, hands)
    return run_round(port, job.clusters, agreement.way, generator(agreement.seed, "server"))


@dataclass(frozen=True)
class Keeper:
    """Where the server keeps what came, what it made and how things stand, while the folder is this round's."""

    job: Job

    @property
    def private(self) -> bool:
        """Whether messages are sealed."""
        return self.job.key is not None

    def tell(self, news: Status) -> None:
        """How things stand."""
        news.model_copy(update={"round": self.job.round}).write(self._place(STATUS))

    def keep(self, summary: Summary, body: bytes) -> None:
        """A summary, before it is spoken of."""
        write_durably(self._place(ACCEPTED, f"{summary.client}.summary"), body, private=self.private)

    def deliver(self, model: Model, letters: Mapping[str, bytes]) -> None:
        """The model, before it is sent; where it is sealed, also as each client gets it."""
        if self.private:
            for client, letter in letters.items():
                write_durably(self._place(SEALED, f"{client}.model"), letter)
        write_durably(self._place(MODEL), encode(model.to_message()), private=self.private)

    def _place(self, *parts: str) -> Path:
        """Where to write something now: asked before every write, for another round may begin at any time."""
        self.job.check_current()
        path = Path(self.job.out, *parts)
        path.parent.mkdir(exist_ok=True)
        return path
