"""A federation of real Flower processes on this machine, for tests."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from goldfc.flower.kit import QUIET
from goldfc.protocol.agreement import Agreement
from sites import rows_of, write_agreement

BIN = Path(sys.executable).parent
CONNECTION = "here"


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


@dataclass
class Loopback:
    """A SuperLink and its SuperNodes; each is the head of a process group, so that none of its children stays."""

    folder: Path
    port: int = field(default_factory=free_port)
    link_options: tuple[str, ...] = ("--insecure",)
    node_options: tuple[str, ...] = ("--insecure",)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def home(self) -> Path:
        """Flower's own folder, of the SuperLink."""
        return self.folder / "flwr"

    @property
    def env(self) -> dict[str, str]:
        """What all of its processes know."""
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, **QUIET, "FLWR_HOME": str(self.home), "PATH": path, "OMP_NUM_THREADS": "1"}

    def start(self, program: str, *options: str, home: Path | None = None, log: str) -> subprocess.Popen[bytes]:
        """One process, with its log in a file."""
        env = {**self.env, **({"FLWR_HOME": str(home)} if home else {})}
        with (self.folder / f"{log}.log").open("wb") as file:
            process = subprocess.Popen(  # noqa: S603 (our own)
                [str(BIN / program), *options], stdout=file, stderr=file, start_new_session=True, env=env
            )
        self.processes.append(process)
        return process

    def start_link(self, connection: str = "insecure = true") -> None:
        """The SuperLink, and the connection to it."""
        self.home.mkdir(parents=True)
        config = f'[superlink]\ndefault = "{CONNECTION}"\n[superlink.{CONNECTION}]\naddress = "127.0.0.1:{self.port}"\n'
        (self.home / "config.toml").write_text(f"{config}{connection}\n", encoding="utf-8")
        options = ("--host", "127.0.0.1", "--port", str(self.port))
        self.start("flower-superlink", *self.link_options, *options, log="superlink")
        self.await_link()

    def await_link(self, seconds: float = 30.0) -> None:
        """Until it listens."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise TimeoutError((self.folder / "superlink.log").read_text(encoding="utf-8", errors="replace"))

    def start_node(self, name: str, settings: Mapping[str, str], options: tuple[str, ...] = ()) -> None:
        """A SuperNode with a home of its own."""
        config = " ".join(f'{key}="{value}"' for key, value in settings.items())
        ports = ("--superlink", f"127.0.0.1:{self.port}", "--port", str(free_port()))
        home = self.home / name
        chosen = (*self.node_options, *options, *ports, "--node-config", config)
        self.start("flower-supernode", *chosen, home=home, log=name)

    def signal(self, number: int, which: subprocess.Popen[bytes]) -> None:
        """To a process and its children."""
        try:
            os.killpg(which.pid, number)
        except ProcessLookupError:
            return

    def stop(self) -> None:
        """End everything: first asked, then made to."""
        for process in reversed(self.processes):
            self.signal(signal.SIGTERM, process)
        deadline = time.monotonic() + 5.0
        while time.monotonic() < deadline and any(process.poll() is None for process in self.processes):
            time.sleep(0.1)
        for process in self.processes:
            self.signal(signal.SIGKILL, process)
            process.wait(10.0)

    def left_behind(self) -> list[str]:
        """Processes of this federation that still run, whoever started them: they know its home."""
        return [line for pid, line in commands() if knows(pid, str(self.home))]


def commands() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue


def knows(pid: int, text: str) -> bool:
    try:
        return f"FLWR_HOME={text}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


@contextmanager
def running(folder: Path, **options: object) -> Iterator[Loopback]:
    """A federation that is over when the test is."""
    here = Loopback(folder, **options)  # type: ignore[arg-type]
    try:
        yield here
    finally:
        here.stop()


def write_site(folder: Path, number: int, what: Agreement, n_rows: int = 120) -> Path:
    """A site's folder: its table and its copy of the federation file."""
    folder.mkdir(parents=True)
    write_agreement(folder, what)
    data = folder / "data.csv"
    lines = [",".join(column.name for column in what.columns)]
    lines += [",".join(repr(float(value)) for value in row) for row in rows_of(number, n_rows)]
    data.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return data
