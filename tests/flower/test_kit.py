"""The deployment kit: keys and certificates that fit, scripts that are quiet, and nothing open that should not be."""

import datetime
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from goldfc.errors import BadSettings
from goldfc.flower.kit import QUIET, write_kit


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
    assert len(scripts) == 4
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        assert all(f"export {variable}={value}\n" in text for variable, value in QUIET.items())
        assert script.stat().st_mode & 0o777 == 0o700
        subprocess.run([shutil.which("sh") or "sh", "-n", str(script)], check=True)  # noqa: S603 (only parsed)


def test_a_node_is_told_its_name_and_where_its_files_are(kit: Path, tmp_path: Path) -> None:
    program = tmp_path / "flower-supernode"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    folder = kit / "nodes" / "north"
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    told = subprocess.run([folder / "start-supernode.sh"], env=env, capture_output=True, text=True, check=True).stdout  # noqa: S603
    assert told.splitlines()[1] == "fl.example.org:443"
    assert told.splitlines()[-1] == (f'client="north" data="{folder}/data.csv" federation="{folder}/federation.toml"')


def test_operator_calls_are_closed_to_the_network(kit: Path) -> None:
    start = (kit / "server" / "start-superlink.sh").read_text(encoding="utf-8")
    assert "--host 127.0.0.1" in start
    assert "--enable-supernode-auth" in start
    proxy = (kit / "server" / "nginx.conf").read_text(encoding="utf-8")
    assert "location /v1/fleet/ {" in proxy
    assert "location / { return 403; }" in proxy
    assert "control" not in proxy.replace("operator calls", "")


def test_keys_are_not_made_twice(kit: Path) -> None:
    with pytest.raises(BadSettings, match="is there already; keys are not made twice"):
        write_kit(kit, "wards", ["fl.example.org"], ["north"])
