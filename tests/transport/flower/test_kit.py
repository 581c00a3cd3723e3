"""The deployment kit: keys and certificates that fit, scripts that are quiet, and nothing open that should not be."""

import datetime
import os
import pwd
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from goldfc.errors import BadSettings
from goldfc.transport.flower.kit import QUIET, write_kit
from sentences import refused
from sites import Keys, rows_of, write_agreement

NOBODY = pwd.getpwnam("nobody")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes root: who is not root runs nothing as somebody else")


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kit") / "kit"
    write_kit(folder, "wards", ["fl.example.org", "10.0.0.7"], ["north", "south"])
    return folder


def test_the_server_certificate_is_signed_for_its_names(kit: Path) -> None:
    ca = x509.load_pem_x509_certificate((kit / "ca" / "ca.crt").read_bytes())
    server = x509.load_pem_x509_certificate((kit / "server" / "server.crt").read_bytes())
    server.verify_directly_issued_by(ca)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["fl.example.org", "localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.7", "127.0.0.1"]
    assert server.not_valid_after_utc - server.not_valid_before_utc < datetime.timedelta(days=830)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(kit / "server" / "server.crt", kit / "server" / "server.key")


def test_every_node_has_a_key_of_its_own_that_the_operator_knows(kit: Path) -> None:
    seen = set()
    for node in ("north", "south"):
        private = load_ssh_private_key((kit / "nodes" / node / "node.key").read_bytes(), None)
        public = load_ssh_public_key((kit / "operator" / f"{node}.pub").read_bytes())
        assert isinstance(private, ec.EllipticCurvePrivateKey)
        assert isinstance(public, ec.EllipticCurvePublicKey)
        assert private.public_key() == public
        seen.add(public.public_numbers())
    assert len(seen) == 2


def test_private_keys_are_for_their_owner_and_each_folder_has_its_own_only(kit: Path) -> None:
    private = sorted(path.relative_to(kit).as_posix() for path in kit.rglob("*.key"))
    assert private == ["ca/ca.key", "nodes/north/node.key", "nodes/south/node.key", "server/server.key"]
    assert {path.stat().st_mode & 0o777 for path in kit.rglob("*.key")} == {0o600}


def test_scripts_are_quiet_and_can_be_run(kit: Path) -> None:
    scripts = sorted(kit.rglob("*.sh"))
    assert len(scripts) == 8
    for script in scripts:
        text, starts = script.read_text(encoding="utf-8"), script.name.startswith("start-")
        if script.name != "prepare.sh":
            assert all(f"export {variable}={value}\n" in text for variable, value in QUIET.items())
        assert script.stat().st_mode & 0o777 == (0o755 if starts else 0o700)
        subprocess.run([shutil.which("sh") or "sh", "-n", str(script)], check=True)  # noqa: S603 (only parsed)


def program(folder: Path, name: str, text: str) -> Path:
    """A program of ours in place of Flower's."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def started(script: Path, programs: Path) -> "subprocess.CompletedProcess[str]":
    """A script of the kit; as root, so that it has to become somebody else, if the tests are root's."""
    env = {"PATH": f"{programs}:/usr/sbin:/usr/bin:/bin", "GOLDFC_USER": "nobody"}
    return subprocess.run([script], env=env, capture_output=True, text=True, check=False)  # noqa: S603


@pytest.fixture
def place() -> Iterator[Path]:
    """Where other users can go, too."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_node_is_told_its_name_and_where_its_files_are(place: Path) -> None:
    write_kit(place / "kit", "wards", ["fl.example.org"], ["north"])
    program(place, "flower-supernode", 'printf "%s\\n" "$@"')
    folder = place / "kit" / "nodes" / "north"
    settings = {"data": "data.csv", "federation": "federation.toml", "labels": "labels/north.labels.csv"}
    config = 'site="north" ' + " ".join(f'{name}="{folder}/{path}"' for name, path in settings.items())
    told = started(folder / "start-supernode.sh", place).stdout.splitlines()
    assert told[1] == "fl.example.org:443"
    assert told[-1] == config
    (folder / "site.key").touch()
    assert started(folder / "start-supernode.sh", place).stdout.splitlines()[-1] == f'{config} key="{folder}/site.key"'


@as_root
def test_nothing_of_the_kit_runs_as_root(place: Path) -> None:
    write_kit(place / "kit", "wards", ["fl.example.org"], ["north"])
    (place / "secret").touch(mode=0o600)
    look = """
id -u; id -G; sed -n "s/^CapBnd:.0*//p; s/^NoNewPrivs:.//p" /proc/self/status
cat ../../../secret ../../secret 2> /dev/null && echo read; echo "$HOME"; umask"""
    for folder, name in (("nodes/north", "supernode"), ("server", "superlink")):
        program(place, f"flower-{name}", look)
        done = started(place / "kit" / folder / f"start-{name}.sh", place)
        user, groups, rights, gains, home, mask = done.stdout.splitlines()
        assert (user, groups) == (str(NOBODY.pw_uid), str(NOBODY.pw_gid))
        assert (rights, gains, mask) == ("", "1", "0077")
        assert Path(home).stat().st_uid == NOBODY.pw_uid
        shutil.rmtree(home)
    env = {"PATH": "/usr/sbin:/usr/bin:/bin", "GOLDFC_USER": "goldfc-of-nobody"}
    script = place / "kit" / "nodes" / "north" / "start-supernode.sh"
    done = subprocess.run([script], env=env, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 1
    assert "There is no user goldfc-of-nobody: run ./prepare.sh first." in done.stderr


UNTOUCHED = ("data.csv", "federation.toml", "node.key", "site.key", "start-supernode.sh", "new")
WORK = """
import os, sys
from pathlib import Path
from types import SimpleNamespace
from goldfc.transport.flower import site_app
from goldfc.transport.flower.records import fingerprint

def summarized(folder):
    settings = {"site": "north", "data": f"{folder}/data.csv", "federation": f"{folder}/federation.toml",
                "labels": f"{folder}/labels/north.labels.csv", "key": f"{folder}/site.key"}
    site = site_app.settings_of(settings)
    records = {"goldfc": {"agreement": fingerprint(site.agreement), "round": "1", "known": ""}}
    return site_app.summarize_own_rows(site, SimpleNamespace(content=SimpleNamespace(config_records=records)))

rehearsal, folder, uid, gid = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
summarized(rehearsal)  # all modules are loaded then: Python itself may lie where only root can read
os.setgroups([])
os.setgid(gid)
os.setuid(uid)
print(f"sent {len(summarized(folder).body)} bytes")
for path in sys.argv[5:]:
    try:
        (folder / path).open("ab")
    except PermissionError:
        print("cannot write", path)
"""


@as_root
def test_a_node_does_its_work_as_somebody_who_can_only_read_the_table(place: Path) -> None:
    keys = Keys.new()
    write_kit(place / "kit", "wards", ["fl.example.org"], ["north"])
    node = place / "kit" / "nodes" / "north"
    write_agreement(node, keys.agreement())
    rows = [",".join(map(repr, row)) for row in rows_of(1).tolist()]
    (node / "data.csv").write_text("\n".join(["age,pressure", *rows]) + "\n", encoding="utf-8")
    keys.sites["north"].write(node / "site.key")
    for folder in (place / "kit", place / "kit" / "nodes"):
        folder.chmod(0o755)
    shutil.copytree(node, place / "rehearsal")
    env = {"PATH": "/usr/sbin:/usr/bin:/bin", "GOLDFC_USER": "nobody"}
    subprocess.run([node / "prepare.sh"], env=env, check=True)  # noqa: S603
    assert [(node / name).stat().st_uid for name in (".", "data.csv", "federation.toml")] == [0, 0, 0]
    assert (node / "data.csv").stat().st_mode & 0o777 == 0o640
    assert (node / "site.key").stat().st_mode & 0o777 == 0o400
    done = subprocess.run(  # noqa: S603 (our own code)
        [sys.executable, "-c", WORK, place / "rehearsal", node, str(NOBODY.pw_uid), str(NOBODY.pw_gid), *UNTOUCHED],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    sent, *said = done.stdout.splitlines()
    assert re.fullmatch(r"sent \d{4,} bytes", sent)
    assert said == [f"cannot write {one}" for one in UNTOUCHED]
    assert len(list((node / ".goldfc").glob("*.message"))) == 1


MEASURED = """
import ctypes, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):  # PR_SET_MDWE: what MemoryDenyWriteExecute asks for, by Linux itself
    sys.exit(77)
import numpy as np
import goldfc.transport.flower.site_app
from goldfc import OneShot, Task, label, summarize, fuse
from goldfc.message.levels import Suppressed
way = OneShot(Task(rows_each=8, level=Suppressed(smallest=5)), starts=2)
rows = np.random.default_rng(0).normal(size=(400, 4))
sent = [summarize(rows[n::2], "ab"[n], way.task)[0] for n in range(2)]
label(rows, fuse(sent, 2, way, np.random.default_rng(0)))
"""


def test_a_nodes_work_needs_no_memory_that_is_both_written_and_run() -> None:
    done = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode == 77:
        pytest.skip("this kernel cannot refuse such memory (Linux 6.3 can)")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("folder", "unit"), [("nodes/north", "goldfc-supernode"), ("server", "goldfc-superlink")])
def test_a_unit_gives_away_little(kit: Path, folder: str, unit: str) -> None:
    text = (kit / folder / f"{unit}.service").read_text(encoding="utf-8").splitlines()
    writable = ("labels", ".goldfc") if unit == "goldfc-supernode" else ("state", "rounds")
    assert "ReadWritePaths=" + " ".join(f"/srv/goldfc/{one}" for one in writable) in text
    assert {"User=goldfc", "NoNewPrivileges=true", "ProtectSystem=strict", "ProtectHome=true"} < set(text)
    assert {"PrivateTmp=true", "CapabilityBoundingSet=", "ReadOnlyPaths=/srv/goldfc"} < set(text)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not on this machine")
@pytest.mark.parametrize(
    "unit", ["nodes/north/goldfc-supernode.service", "server/goldfc-superlink.service", "server/goldfc-round.service"]
)
def test_systemd_finds_a_unit_hardly_exposed(kit: Path, unit: str) -> None:
    command = [shutil.which("systemd-analyze") or "", "security", "--offline=true", "--no-pager", str(kit / unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    found = re.search(r"Overall exposure level for .*: ([0-9.]+)", done.stdout)
    if found is None:
        pytest.skip(f"systemd-analyze cannot tell here: {done.stderr.strip()[:200]}")
    assert float(found[1]) < 2.0, done.stdout


def test_a_name_with_dots_is_one_name(tmp_path: Path) -> None:
    write_kit(tmp_path / "kit", "wards.v1.2", ["fl.example.org"], ["north"])
    config = tomllib.loads((tmp_path / "kit" / "operator" / "config.toml").read_text(encoding="utf-8"))
    assert config["superlink"]["default"] == "wards.v1.2"
    assert config["superlink"]["wards.v1.2"]["address"] == "127.0.0.1:8000"


def test_the_operators_certificate_is_found_wherever_the_folder_is_put(place: Path) -> None:
    write_kit(place / "kit", "wards", ["fl.example.org"], ["north"])
    program(place, "flwr", 'cat "$FLWR_HOME/config.toml"')
    moved = (place / "kit" / "operator").rename(place / "moved")
    config = tomllib.loads(started(moved / "register-nodes.sh", place).stdout)
    assert config["superlink"]["wards"]["root-certificates"] == f"{moved}/ca.crt"


@pytest.mark.parametrize(
    "host",
    [
        "fl.example.org;",
        "a b",
        "",
        "x{}",
        "fl.example.org; return 200",
        "-a",
        "a..b",
        "\u0430.org",
        "a\n",
        "fe80::1%eth0",
    ],
)
def test_hosts_that_are_none_are_refused_before_anything_is_written(tmp_path: Path, host: str) -> None:
    for hosts in ([host], ["fl.example.org", host]):
        with pytest.raises(BadSettings) as caught:
            write_kit(tmp_path / "kit", "wards", hosts, ["north"])
        assert caught.value.code in {"host-invalid", "host-on-one-card"}
    assert not (tmp_path / "kit").exists()


def test_an_address_of_the_new_kind_is_written_as_urls_have_it(tmp_path: Path) -> None:
    write_kit(tmp_path / "kit", "wards", ["2001:db8::7"], ["north"])
    assert "server_name [2001:db8::7];" in (tmp_path / "kit" / "server" / "nginx.conf").read_text(encoding="utf-8")
    start = (tmp_path / "kit" / "nodes" / "north" / "start-supernode.sh").read_text(encoding="utf-8")
    assert "--superlink '[2001:db8::7]:443'" in start


@pytest.mark.parametrize("nodes", [["north", "north"], ["north", "North"]])
def test_nodes_that_look_alike_are_refused(tmp_path: Path, nodes: list[str]) -> None:
    with refused(BadSettings, "alike"):
        write_kit(tmp_path / "kit", "wards", ["fl.example.org"], nodes)
    assert not (tmp_path / "kit").exists()


def test_operator_calls_are_closed_to_the_network(kit: Path) -> None:
    start = (kit / "server" / "start-superlink.sh").read_text(encoding="utf-8")
    assert "--host 127.0.0.1" in start
    assert "--enable-supernode-auth" in start
    proxy = (kit / "server" / "nginx.conf").read_text(encoding="utf-8")
    assert "location /v1/fleet/ {" in proxy
    assert "location / { return 403; }" in proxy
    assert "control" not in proxy.replace("operator calls", "")


def test_keys_are_not_made_twice(kit: Path) -> None:
    with refused(BadSettings, "kit-exists"):
        write_kit(kit, "wards", ["fl.example.org"], ["north"])


def test_a_timer_starts_the_next_round_with_what_the_kit_has(kit: Path, tmp_path: Path) -> None:
    server, home = kit / "server", tmp_path / "home"
    timer = (server / "goldfc-round.timer").read_text(encoding="utf-8")
    assert "OnCalendar=monthly" in timer
    assert "Type=oneshot" in (server / "goldfc-round.service").read_text(encoding="utf-8")
    script = (server / "start-round.sh").read_text(encoding="utf-8")
    begin = script[: script.index("umask 077")].replace('cd "$(dirname "$0")"', f"cd {server}")
    home.mkdir()
    stand_in = tmp_path / "bin" / "goldfc"
    stand_in.parent.mkdir()
    stand_in.write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    stand_in.chmod(0o755)
    for key in ("", " --key server.goldfc.key"):
        if key:
            (server / "server.goldfc.key").touch()
        run = subprocess.run(  # noqa: S603
            ["/bin/sh", "-c", begin + 'exec "$@"'],
            env={"PATH": f"{stand_in.parent}:/usr/bin:/bin", "FLWR_HOME": str(home)},
            capture_output=True,
            text=True,
            check=True,
        )
        words = "federate federation.toml --connection here --next --expect 2 -o rounds"
        assert run.stdout == f"{words}{key}\n"
    told = tomllib.loads((home / "config.toml").read_text(encoding="utf-8"))
    assert told["superlink"]["here"]["root-certificates"] == str(server / "ca.crt")
    assert told["superlink"]["default"] == "here"
