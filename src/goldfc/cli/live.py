"""The live federation: one command that has Flower run a round, and says what happens. It only starts processes."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from goldfc.cli.shared import A_FILE, AFTER_OPTION, K_OPTION, main, say
from goldfc.files import OWN_GROUP, end_group

if TYPE_CHECKING:
    from goldfc.agreement import Agreement
    from goldfc.server.round import Round
    from goldfc.transport.flower.job import Job, Status

# Flower starts and ends a run in a few seconds; it gets so many before we give up on it.
OVERHEAD = 60.0
MOST_SECONDS_PER_COMMAND = 60.0
MOST_SECONDS_TO_END = 20.0
MOST_FAILURES = 3
LOOK, ASK_FLOWER = 0.2, 5.0
# Flower's program takes seconds to start, so it is asked so seldom that four fifths of the time are left to the round.
SELDOM = 4.0
SIMULATION_LOG = "simulation.log"
TABLES = {".csv", ".tsv", ".tab", ".parquet"}
APP = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "goldfc-round"
version = "1.0.0"
license = "Apache-2.0"
description = "One round of goldfc: the program is in the goldfc that every site has installed."
dependencies = []
[tool.hatch.build.targets.wheel]
packages = ["."]
[tool.flwr.app]
publisher = "goldfc"
[tool.flwr.app.components]
serverapp = "goldfc.transport.flower.server_app:app"
clientapp = "goldfc.transport.flower.site_app:app"
[tool.flwr.app.config]
job = ""
round = ""
"""


@main.command()
@click.argument("federation", type=A_FILE)
@click.option("--connection", help="The SuperLink, by its name in Flower's config.toml.")
@click.option("--simulate", type=click.IntRange(1), metavar="N", help="No SuperLink: N virtual sites, on this machine.")
@click.option("--data", type=A_FILE, help="With --simulate: a folder of tables, one per site, which is named after it.")
@click.option("-o", "--out", type=A_FILE, required=True, help="A folder for the model and who took part.")
@click.option("--expect", type=click.IntRange(1), help="How many sites to wait for.  [default: all that are listed]")
@click.option("--join", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True, metavar="SECONDS")
@click.option("--answer", type=click.FloatRange(0, min_open=True), default=600.0, show_default=True, metavar="SECONDS")
@K_OPTION
@AFTER_OPTION
@click.option("--next", "as_next", is_flag=True, help="OUT is a folder of rounds: run the next one, after the last.")
@click.option("--key", "key_file", type=A_FILE, help="The server's private key, where messages are sealed.")
def federate(  # noqa: PLR0913, PLR0917 (one argument per option)
    federation: Path,
    connection: str | None,
    simulate: int | None,
    data: Path | None,
    out: Path,
    expect: int | None,
    join: float,
    answer: float,
    clusters: int | None,
    after: Path | None,
    as_next: bool,
    key_file: Path | None,
) -> None:
    """Run a live round of FEDERATION over Flower, on the SuperLink's machine.

    Sites get --join seconds to join and --answer seconds for each of their two answers. Who is silent, refuses or
    sends what cannot be used is left out and named; with fewer sites than least_sites in FEDERATION it fails.
    """
    from goldfc.agreement import read_agreement
    from goldfc.transport.flower.job import STATUS, Job
    from goldfc.transport.flower.series import next_place

    if (connection is None) == (simulate is None) or (simulate is None) != (data is None):
        raise click.UsageError("Name either a --connection, or --simulate N and the folder of its --data.")
    if as_next and after:
        raise click.UsageError("--next finds the last model by itself; leave out --after.")
    tables = tables_in(data, simulate) if data is not None and simulate is not None else ()
    place = next_place(out, read_agreement(federation).round) if as_next else None
    if place is not None:
        out, after = place.folder, place.after
        say(f"Round {place.number}" + (f", after {after}." if after else ", the first."))
    job = Job(
        federation=str(federation.absolute()),
        out=str(out.absolute()),
        key=absolute(key_file),
        clusters=clusters,
        number=None if place is None else place.number,
        after=absolute(after),
        kept=None if place is None else absolute(place.kept),
        expect=expect or simulate or how_many_are_listed(federation),
        join=join,
        answer=answer,
        tables=tables,
    )
    agreement, _ = job.load()  # what does not fit is told before anybody is asked
    job.before(agreement)
    flwr = flower_program()
    out.mkdir(parents=True, exist_ok=True)
    job.write(job.file)  # from here on, no other round writes to the folder
    (out / STATUS).unlink(missing_ok=True)
    with started(flwr, connection, job) if connection else simulated(job.file) as run:
        status = follow(run, out / STATUS, job)
        await_end(run)
    show_end(status, job, agreement)


def absolute(path: Path | None) -> str | None:
    """As it can be told to another process."""
    return None if path is None else str(path.absolute())


def tables_in(folder: Path, count: int) -> tuple[str, ...]:
    """The first so many tables of a folder."""
    from goldfc.errors import BadSettings

    found = [path for path in sorted(folder.glob("*")) if path.suffix in TABLES and not path.stem.endswith(".labels")]
    if len(found) < count:
        raise BadSettings(f"{folder} has {len(found)} tables, and {count} sites are to be simulated.", "tables-too-few")
    return tuple(str(path.absolute()) for path in found[:count])


def how_many_are_listed(federation: Path) -> int:
    """All sites of the federation file."""
    from goldfc.agreement import read_agreement

    count = len(read_agreement(federation).sites)
    if not count:
        raise click.UsageError(f"{federation.name} lists no sites, so say with --expect how many to wait for.")
    return count


# --- Flower's own program ---


class Run(Protocol):
    """A run of Flower's."""

    def state(self) -> str:
        """Such as running, finished:completed or finished:failed."""
        ...

    def stop(self) -> None:
        """End it, if it has not ended."""
        ...


@dataclass(frozen=True)
class LinkRun:
    """A run on a SuperLink."""

    flwr: str
    connection: str
    identity: str

    def state(self) -> str:
        """What the SuperLink says."""
        told = ask_flower(self.flwr, "list", self.connection, "--run-id", self.identity)
        return str(told["runs"][0]["status"])

    def stop(self) -> None:
        """Have the SuperLink end it; if that is gone, so is the run."""
        with suppress(subprocess.TimeoutExpired):
            command = [self.flwr, "stop", self.identity, self.connection]
            subprocess.run(command, env=quiet(), capture_output=True, timeout=MOST_SECONDS_PER_COMMAND, check=False)  # noqa: S603


@dataclass(frozen=True)
class SimulatedRun:
    """A run on the simulation engine: a process of ours."""

    process: "subprocess.Popen[bytes]"

    def state(self) -> str:
        """Whether it runs."""
        return "running" if self.process.poll() is None else "finished"

    def stop(self) -> None:
        """End it and its children: first asked, then made to."""
        for force in (False, True):
            end_group(self.process, force=force)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(MOST_SECONDS_TO_END)


def flower_program() -> str:
    """Where `flwr` is: beside this Python, or anywhere."""
    from goldfc.errors import BadSettings

    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    found = shutil.which("flwr", path=path)
    if found is None:
        raise BadSettings("Flower is not here; install goldfc[flower].", "flower-missing")
    return found


def quiet() -> dict[str, str]:
    """This process's environment, with what keeps Flower offline."""
    from goldfc.transport.flower.kit import QUIET

    return {**os.environ, **QUIET}


def ask_flower(flwr: str, *words: str) -> dict[str, Any]:
    """What Flower's program says, as JSON; its exit code alone says little."""
    from goldfc.errors import GoldError

    command = [flwr, *words, "--format", "json"]
    try:
        done = subprocess.run(  # noqa: S603 (found above, or by the test)
            command, env=quiet(), capture_output=True, text=True, timeout=MOST_SECONDS_PER_COMMAND, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise GoldError(
            f"`flwr {words[0]}` did not end within {MOST_SECONDS_PER_COMMAND:.0f} s.", "flower-endless"
        ) from error
    told = json_in(done.stdout)
    if told is None or not told.get("success"):
        reason = (told or {}).get("error-message") or done.stderr or done.stdout
        raise GoldError(f"`flwr {words[0]}` failed: {' '.join(str(reason).split())[:500]}", "flower-failed")
    return told


def json_in(text: str) -> dict[str, Any] | None:
    """The first JSON object in a text."""
    decoder = json.JSONDecoder()
    for place in (place for place, sign in enumerate(text) if sign == "{"):
        try:
            value, _ = decoder.raw_decode(text[place:])
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    return None


@contextmanager
def started(flwr: str, connection: str, job: "Job") -> Iterator[Run]:
    """A run of our app; it is stopped if we do not get to its end."""
    with tempfile.TemporaryDirectory() as folder:
        app = Path(folder) / "goldfc-round"
        app.mkdir()
        (app / "pyproject.toml").write_text(APP, encoding="utf-8")
        settings = Path(folder) / "settings.toml"
        facts = {"job": str(job.file), "round": job.round}
        settings.write_text("".join(f"{name} = {json.dumps(fact)}\n" for name, fact in facts.items()), encoding="utf-8")
        told = ask_flower(flwr, "run", str(app), connection, "--run-config", str(settings))
    run = LinkRun(flwr, connection, str(told["run-id"]))
    try:
        yield run
    except BaseException:
        run.stop()
        raise


@contextmanager
def simulated(job: Path) -> Iterator[Run]:
    """A run on the simulation engine; whatever happens, it has ended afterwards."""
    command = [sys.executable, "-m", "goldfc.transport.flower.simulate", str(job.absolute())]
    with job.with_name(SIMULATION_LOG).open("wb") as log:
        process = subprocess.Popen(command, env=quiet(), stdout=log, stderr=log, **OWN_GROUP)  # noqa: S603
    run = SimulatedRun(process)
    try:
        yield run
    finally:
        run.stop()


# --- what a person sees ---


def follow(run: Run, file: Path, job: "Job") -> "Status":
    """Say what happens until it is over."""
    from goldfc.errors import GoldError
    from goldfc.transport.flower.job import Status

    say(f"Waiting for {job.expect} sites to join, {job.join:g} s at the most.")
    most = job.join + 2 * job.answer + OVERHEAD
    deadline, before, patient = time.monotonic() + most, None, Patient(run)
    while True:
        status = status_in(file, job)
        if status is not None and status != before:
            for line in news(before or Status(expected=job.expect), status):
                say(line)
            before = status
        if status is not None and status.is_over:
            return status
        if time.monotonic() >= deadline:
            raise GoldError(f"The round did not end within {most:.0f} s, and was stopped.", "round-endless")
        if patient.is_to_be_asked and patient.has_ended() and not ((last := status_in(file, job)) and last.is_over):
            raise GoldError(
                "Flower ended the run before the round was over; its log says why (`flwr log`, or simulation.log).",
                "run-cut-off",
            )
        time.sleep(LOOK)


def status_in(file: Path, job: "Job") -> "Status | None":
    """How the round stands; None if nothing is said of it yet, but perhaps of an older one that was in the folder."""
    from goldfc.transport.flower.job import Status

    status = Status.read(file) if file.is_file() else None
    return status if status is not None and status.round == job.round else None


@dataclass
class Patient:
    """Asks Flower about a run; that it cannot be asked once or twice may be the network."""

    run: Run
    failures: int = 0
    ask_again: float = field(default_factory=lambda: time.monotonic() + ASK_FLOWER)

    @property
    def is_to_be_asked(self) -> bool:
        """Whether it is time."""
        return time.monotonic() >= self.ask_again

    def has_ended(self) -> bool:
        """Whether Flower says so."""
        from goldfc.errors import GoldError

        begin = time.monotonic()
        try:
            ended = self.run.state().startswith("finished")
        except GoldError:
            self.ask_again = time.monotonic() + ASK_FLOWER
            self.failures += 1
            if self.failures >= MOST_FAILURES:
                raise
            return False
        self.failures, taken = 0, time.monotonic() - begin
        self.ask_again = time.monotonic() + max(ASK_FLOWER, SELDOM * taken)
        return ended


def await_end(run: Run) -> None:
    """Leave nothing running: Flower ends a run a little after its program. The result is there in any case."""
    from goldfc.errors import GoldError

    deadline = time.monotonic() + MOST_SECONDS_TO_END
    with suppress(GoldError):
        while not run.state().startswith("finished") and time.monotonic() < deadline:
            time.sleep(LOOK)


def news(before: "Status", now: "Status") -> Iterator[str]:
    """What happened in between."""
    if now.joined != before.joined:
        yield f"Joined: {now.joined} of {now.expected}."
    yield from (f"Answered: {site}." for site in added(before.accepted, now.accepted))
    yield from (f"Nothing new: {site}." for site in added(before.unchanged, now.unchanged))
    if old := [site for site in added(before.remembered, now.remembered) if site not in now.unchanged]:
        yield f"Their last summaries count: {', '.join(old)}."
    yield from (f"Refused: {who}: {now.refused[who]}." for who in added(before.refused, now.refused))
    yield from (f"Silent: {who}." for who in added(before.silent, now.silent))
    if new := added(before.missing, now.missing):
        yield f"Missing of those that are listed: {', '.join(new)}."
    yield from (f"Left out: {who}: {now.left_out[who]}" for who in added(before.left_out, now.left_out))
    yield from (f"Odd: {sentence}" for sentence in added(before.odd, now.odd))
    yield from (f"Labelled: {site}." for site in added(before.labelled, now.labelled))


def added(before: Sequence[str] | Mapping[str, str], now: Sequence[str] | Mapping[str, str]) -> list[str]:
    """Who is new."""
    return [who for who in now if who not in before]


def show_end(status: "Status", job: "Job", agreement: "Agreement") -> None:
    """The result as `collect` shows it, or the error that the server's program ended with."""
    from goldfc import errors
    from goldfc.cli.server import present

    if status.trouble is not None:
        kind = getattr(errors, status.trouble.kind, errors.GoldError)
        raise kind(status.trouble.sentence)
    for site, why in status.unlabelled.items():
        say(f"Not labelled: {site}: {why}. It can label by file, with the model.")
    say(f"Took part: {', '.join(status.took_part)}.")
    refused = {**status.refused, **dict.fromkeys(status.silent, "it did not answer in time")}
    present(
        round_in(status, job, agreement),
        Path(job.out),
        agreement,
        refused,
        None if job.after is None else Path(job.after),
    )


def round_in(status: "Status", job: "Job", agreement: "Agreement") -> "Round":
    """The round that is over, from what it left in its folder."""
    from goldfc.message.wire import decode, read_message
    from goldfc.server.deliver import MODEL, read_model
    from goldfc.server.round import Round
    from goldfc.transport.flower.job import ACCEPTED

    model = read_model(Path(job.out, MODEL))
    paths = [Path(job.out, ACCEPTED, f"{site}.summary") for site in model.sites]
    bodies = [decode(read_message(path), path.name) for path in paths]
    summaries = tuple(agreement.read_summary(body, or_earlier=True) for body in bodies)
    return Round(summaries, model, status.left_out, status.odd)
