"""Everything works where there is no network at all but the machine's own."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="goldfc[flower] is not installed")


ROOT = Path(__file__).parents[3]
LOOPBACK_ONLY = ["unshare", "--net", "sh", "-c"]


def has_namespaces() -> bool:
    """Whether this user may make a network of her own."""
    try:
        done = subprocess.run([*LOOPBACK_ONLY, "ip link set lo up"], capture_output=True, timeout=20, check=False)  # noqa: S603
    except OSError:
        return False
    return done.returncode == 0


@pytest.mark.skipif(not has_namespaces(), reason="network namespaces are not to be had here")
def test_a_whole_round_needs_no_network_but_loopback(tmp_path: Path) -> None:
    file = Path(__file__).with_name("test_processes.py")
    test = f"{file}::test_a_round_with_honest_and_other_nodes_is_that_of_the_honest_by_file"
    options = f"-q -n0 -p no:cacheprovider --basetemp {shlex.quote(str(tmp_path / 'inside'))}"
    command = f"ip link set lo up && exec {shlex.quote(sys.executable)} -m pytest {options} {test}"
    done = subprocess.run([*LOOPBACK_ONLY, command], cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
