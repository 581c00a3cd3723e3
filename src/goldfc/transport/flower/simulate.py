"""A live round on Flower's simulation engine (Ray): every site is a virtual node of this machine.

`python -m goldfc.transport.flower.simulate JOB` is what `goldfc federate --simulate` starts. Tables are copied, so
that what a site keeps and its labels are in the folder of the result, and nothing is written beside the tables.
"""

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from flwr.app import Context, Message, UserConfig
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from goldfc.site.policy import policy_beside
from goldfc.transport.flower.job import SITES, Job
from goldfc.transport.flower.records import LABEL, SUMMARIZE
from goldfc.transport.flower.server_app import run_job
from goldfc.transport.flower.site_app import answer_model, answer_task

Handler = Callable[[Message, Context], Message]


def simulate_round(job: Job) -> None:
    """One round, with a virtual node for every table."""
    # One processor each: as many work at a time as there are.
    resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    sites = settle(job)
    run_simulation(serving(job), playing(sites), len(sites), backend_config=resources)  # type: ignore[arg-type]


def settle(job: Job) -> list[UserConfig]:
    """Every site with a folder of its own, and its settings."""
    sites: list[UserConfig] = []
    for table in map(Path, job.tables):
        folder = Path(job.out) / SITES / table.stem
        folder.mkdir(parents=True, exist_ok=True)
        data = folder / f"data{table.suffix}"
        shutil.copyfile(table, data)
        sites.append(
            {
                "data": str(data),
                "site": table.stem,
                "federation": job.federation,
                "labels": str(folder / "labels.csv"),
                **({"policy": str(policy_beside(table))} if policy_beside(table).exists() else {}),
            }
        )
    return sites


def serving(job: Job) -> ServerApp:
    """The ServerApp of one job."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, _: Context) -> None:
        run_job(grid, job)

    return app


def playing(sites: Sequence[UserConfig]) -> ClientApp:
    """A ClientApp that is whichever site the engine wants it to be."""
    app = ClientApp()
    app.query(SUMMARIZE)(as_site(answer_task, sites))
    app.query(LABEL)(as_site(answer_model, sites))
    return app


def as_site(handler: Handler, sites: Sequence[UserConfig]) -> Handler:
    """What a node does, with the settings of the site that the engine wants it to be."""

    def handle(message: Message, context: Context) -> Message:
        # The engine needs its own settings of the node again, so they stay as they are.
        settings = sites[int(context.node_config["partition-id"])]
        return handler(message, replace(context, node_config=settings))

    return handle


if __name__ == "__main__":
    simulate_round(Job.read(Path(sys.argv[1])))
