"""A federation of real Flower processes on this machine, for tests.

Nothing waits for a fixed time, but until something has happened: the machine may have other work.
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from goldfc.agreement import Agreement
from goldfc.site.policy import Policy
from goldfc.transport.flower.kit import QUIET
from sites import rows_of, write_agreement, write_policy

BIN = Path(sys.executable).parent
GOLDFC = (sys.executable, "-c", "import goldfc.cli.live; from goldfc.cli import main; main()")
# Several at once, since Flower's program takes seconds to start.
REGISTER = """
import sys
from flwr.cli.app import app
for key in sys.argv[2:]:
    app(["supernode", "register", key, sys.argv[1]], standalone_mode=False)
"""
CONNECTION = "here"
# Ray has its workers give way to everybody else, so that on a busy machine they hardly get on.
RAY = {"RAY_worker_niceness": "0"}
# When to give up on what should happen within seconds.
MOST_SECONDS = 300.0
# A network that ends with the process that made it, and has nothing but loopback in it.
NETWORK = "network"
OWN_NETWORK = ("unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep infinity")
LISTENING = "0A"  # as the kernel's tables of connections have it


def until(condition: Callable[[], object], seconds: float = MOST_SECONDS, look: float = 0.1) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"This has not happened within {seconds:.0f} s."
        time.sleep(look)


def free_port() -> int:
    """One that nobody has, and that the kernel does not give to anybody who connects somewhere meanwhile."""
    while True:
        with socket.socket() as server, suppress(OSError):
            server.bind(("127.0.0.1", 10_000 + secrets.randbelow(20_000)))
            return int(server.getsockname()[1])


def has_namespaces() -> bool:
    """Whether this user may make a network of her own."""
    try:
        command = ["unshare", "--net", "ip", "link", "set", "lo", "up"]
        done = subprocess.run(command, capture_output=True, timeout=20, check=False)  # noqa: S603 (our own)
    except OSError:
        return False
    return done.returncode == 0


@dataclass
class Loopback:
    """A SuperLink and its SuperNodes; each is the head of a process group, so that none of its children stays."""

    folder: Path
    port: int = field(default_factory=free_port)
    link_options: tuple[str, ...] = ("--insecure",)
    node_options: tuple[str, ...] = ("--insecure",)
    offline: bool = False
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    slowness: float = 0.0  # how many seconds the SuperLink took to start

    @property
    def home(self) -> Path:
        """Flower's own folder, of the SuperLink."""
        return self.folder / "flwr"

    @property
    def env(self) -> dict[str, str]:
        """What all of its processes know."""
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        more = {"FLWR_HOME": str(self.home), "PATH": path, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        return {**os.environ, **QUIET, **more}

    @property
    def inside(self) -> tuple[str, ...]:
        """What has a command run in the network of this federation."""
        return ("nsenter", f"--net=/proc/{self.processes[NETWORK].pid}/ns/net") if NETWORK in self.processes else ()

    # --- processes that go on ---

    def start(self, name: str, *command: str, home: Path | None = None) -> subprocess.Popen[bytes]:
        """One process, with its log in a file."""
        command = (*self.inside, *command)
        env = {**self.env, **({"FLWR_HOME": str(home)} if home else {})}
        with self.log(name).open("wb") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True, env=env)  # noqa: S603
        self.processes[name] = process
        return process

    def log(self, name: str) -> Path:
        """What a process writes."""
        return self.folder / f"{name}.log"

    def said(self, name: str) -> str:
        """What a process has written so far."""
        return self.log(name).read_text(encoding="utf-8", errors="replace")

    def start_link(self, connection: str = "insecure = true") -> None:
        """The SuperLink, and the connection to it; with another port if somebody was faster."""
        self.home.mkdir(parents=True)
        if self.offline:
            self.start(NETWORK, *OWN_NETWORK)
            until(lambda: self.said(NETWORK) == "up\n")
        for port in (self.port, free_port(), free_port()):
            self.port = port
            config = f'[superlink]\ndefault = "{CONNECTION}"\n[superlink.{CONNECTION}]\naddress = "127.0.0.1:{port}"\n'
            (self.home / "config.toml").write_text(f"{config}{connection}\n", encoding="utf-8")
            if self.launch_link("superlink"):
                return
        raise AssertionError(self.said("superlink"))

    def launch_link(self, name: str) -> bool:
        """Whether the SuperLink came to listen where it should."""
        options = ("--host", "127.0.0.1", "--port", str(self.port))
        link, begin = self.start(name, str(BIN / "flower-superlink"), *self.link_options, *options), time.monotonic()
        until(lambda: self.listens() or link.poll() is not None)
        self.slowness = time.monotonic() - begin
        return link.poll() is None

    def listens(self) -> bool:
        """Whether somebody listens at the SuperLink's port."""
        network = Path("/proc") / (str(self.processes[NETWORK].pid) if self.offline else "self") / "net"
        lines = [line.split() for name in ("tcp", "tcp6") for line in (network / name).read_text().splitlines()]
        return any(line[1].endswith(f":{self.port:04X}") and line[3] == LISTENING for line in lines)

    def start_node(self, name: str, settings: Mapping[str, str], *options: str) -> None:
        """A SuperNode with a home of its own."""
        config = " ".join(f'{key}="{value}"' for key, value in settings.items())
        ports = ("--superlink", f"127.0.0.1:{self.port}", "--port", str(free_port()))
        chosen = (*self.node_options, *options, *ports, "--node-config", config)
        self.start(name, str(BIN / "flower-supernode"), *chosen, home=self.home / name)

    # --- commands that end ---

    def register(self, *keys: Path) -> None:
        """Make the keys of nodes known to the SuperLink."""
        done = self.run(sys.executable, "-c", REGISTER, CONNECTION, *map(str, keys))
        assert done.returncode == 0, done.stdout + done.stderr

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """One of them."""
        command = (*self.inside, *command)
        return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=900, check=False)  # noqa: S603

    def interfaces(self, *names: str) -> set[str]:
        """Over what some processes, which must still run, can reach anybody."""
        tables = [Path(f"/proc/{self.processes[name].pid}/net/dev").read_text().splitlines()[2:] for name in names]
        return {line.split(":")[0].strip() for table in tables for line in table}

    # --- the end ---

    def kill(self, name: str) -> None:
        """A process and its children, at once."""
        process = self.processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def kill_server(self, name: str) -> None:
        """The SuperLink and the programs that it has started, as when the machine loses power."""
        self.kill(name)
        for pid, _ in commands_of(f"{self.home}\0", "flower-superexec", "flwr-serverapp"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """End everything: first asked, then made to."""
        for process in reversed(self.processes.values()):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        with suppress(AssertionError):
            until(lambda: all(process.poll() is not None for process in self.processes.values()), 10.0)
        for name in list(self.processes):
            self.kill(name)

    def left_behind(self, *programs: str) -> list[tuple[int, str]]:
        """Processes of this federation that still run, whoever started them."""
        return list(commands_of(str(self.home), *programs))


def commands_of(home: str, *programs: str) -> Iterator[tuple[int, str]]:
    """The processes whose home in Flower begins so, and what they run; only some programs, if any are named."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            wanted = command and (not programs or any(program in command for program in programs))
            if wanted and f"FLWR_HOME={home}".encode() in (entry / "environ").read_bytes():
                yield int(entry.name), command


@contextmanager
def running(folder: Path, **options: object) -> Iterator[Loopback]:
    """A federation that is over when the test is, with no process left."""
    here = Loopback(folder, **options)  # type: ignore[arg-type]
    try:
        yield here
    finally:
        here.stop()
        try:
            until(lambda: not here.left_behind(), 60.0)
        finally:
            for pid, _ in here.left_behind():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def write_site(folder: Path, number: int, what: Agreement, n_rows: int = 120) -> Path:
    """A site's folder: its table, its copy of the federation file, and a policy if the default would refuse that."""
    folder.mkdir(parents=True)
    write_agreement(folder, what)
    if what.limits.least_sites < Policy().least_sites:
        write_policy(folder, f"least_sites = {what.limits.least_sites}")
    data = folder / "data.csv"
    lines = [",".join(column.name for column in what.columns)]
    lines += [",".join(repr(float(value)) for value in row) for row in rows_of(number, n_rows)]
    data.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return data
