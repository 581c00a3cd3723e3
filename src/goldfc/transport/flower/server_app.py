"""Flower's ServerApp: the server program of every federation, `run_round`, over Flower's grid."""

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from goldfc.errors import GoldError
from goldfc.server.round import Round, fuse_admitted
from goldfc.transport.flower.exchange import Exchange, Patience
from goldfc.transport.flower.job import Job, Keeper, Trouble
from goldfc.transport.flower.port import Nodes

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """One round, as the job file says that the run's settings name."""
    job = Job.read(Path(str(context.run_config["job"])))
    # The file may be of a later round already; then this run finds out before it writes anything.
    run_job(grid, job.model_copy(update={"round": str(context.run_config["round"])}))


def run_job(grid: Grid, job: Job) -> Round:
    """One round; how it stands is in the status file all along, also when it fails."""
    keeper = Keeper(job)
    try:
        return run_live(grid, job, keeper)
    except Exception as error:
        keeper.tell(keeper.last.model_copy(update={"state": "failed", "trouble": trouble_of(error)}))
        raise


def trouble_of(error: Exception) -> Trouble:
    """What a person is told; the log has the rest."""
    if isinstance(error, GoldError):
        return Trouble(kind=type(error).__name__, sentence=str(error))
    return Trouble(
        kind="GoldError", sentence=f"The server's program failed ({type(error).__name__}): `flwr log` shows it."
    )


def run_live(grid: Grid, job: Job, keeper: Keeper) -> Round:
    """One round with the nodes of a grid."""
    agreement, key = job.load()
    exchange, before = Exchange(grid, Patience(job.expect, job.join, job.answer)), job.before(agreement)
    nodes = Nodes(exchange, agreement, key, keeper, job.remembered(agreement))
    result = fuse_admitted(
        nodes.collect(), agreement, job.clusters, lambda left_out, odd: nodes.say(left_out=left_out, odd=odd), before
    )
    nodes.hand_out(result.model)
    return result
