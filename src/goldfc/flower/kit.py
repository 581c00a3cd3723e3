"""What it takes to run a live federation safely: certificates, node keys, start scripts and units, one folder each.

Nobody needs more than her own folder: `server/` is for the machine with the SuperLink, `nodes/NAME/` for each site,
`operator/` for whoever starts rounds. `ca/` signs certificates and belongs on a stick in a drawer.
"""

import datetime
import ipaddress
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from goldfc.errors import BadSettings
from goldfc.protocol.wire import write_durably

# Where the SuperLink listens, on its own machine only, and where the proxy in front of it lets nodes in.
PORT, PUBLIC_PORT = 8000, 443
DAYS_OF_CA, DAYS_OF_SERVER = 3650, 825
# No telemetry, no look for updates, and nothing installed from a network while a round runs.
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}


@dataclass(frozen=True)
class Authority:
    """Who signs certificates."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def new(cls, name: str, now: datetime.datetime) -> "Authority":
        """One that nobody knows yet."""
        key = ec.generate_private_key(ec.SECP384R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} federation CA")])
        certificate = (
            named(subject, subject, key.public_key(), now, DAYS_OF_CA)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage(signs=True), critical=True)
            .sign(key, hashes.SHA384())
        )
        return cls(key, certificate)

    def sign_server(
        self, key: ec.EllipticCurvePublicKey, hosts: Sequence[str], now: datetime.datetime
    ) -> x509.Certificate:
        """A certificate for a server that is called like these."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
        return (
            named(subject, self.certificate.subject, key, now, DAYS_OF_SERVER)
            .add_extension(x509.SubjectAlternativeName([host_name(host) for host in hosts]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA384())
        )


def named(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    """The beginning of a certificate."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def usage(*, signs: bool) -> x509.KeyUsage:
    """What a key may be used for."""
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def host_name(host: str) -> x509.GeneralName:
    """A name or an address, as certificates have them."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def write_kit(
    folder: Path, name: str, hosts: Sequence[str], nodes: Sequence[str], public_port: int = PUBLIC_PORT
) -> None:
    """All folders. The first of the hosts is how nodes call the server."""
    if folder.exists():
        raise BadSettings(f"{folder} is there already; keys are not made twice. Name another folder.")
    authority = Authority.new(name, now := datetime.datetime.now(datetime.UTC))
    ca = authority.certificate.public_bytes(Encoding.PEM)
    for part in ("ca", "server", "operator", *(f"nodes/{node}" for node in nodes)):
        (folder / part).mkdir(parents=True, mode=0o700)
        write_durably(folder / part / "ca.crt", ca)
    write_durably(folder / "ca" / "ca.key", private_pem(authority.key), private=True)
    write_server(folder / "server", authority, [*hosts, "localhost", "127.0.0.1"], public_port, now)
    for node in nodes:
        write_node(folder / "nodes" / node, node, f"{hosts[0]}:{public_port}")
        write_durably(folder / "operator" / f"{node}.pub", (folder / "nodes" / node / "node.pub").read_bytes())
    write_operator(folder / "operator", name, nodes)


def write_server(
    folder: Path, authority: Authority, hosts: Sequence[str], public_port: int, now: datetime.datetime
) -> None:
    """For the machine with the SuperLink: it listens on the machine itself only, and a proxy lets nodes in."""
    key = ec.generate_private_key(ec.SECP384R1())
    certificate = authority.sign_server(key.public_key(), list(dict.fromkeys(hosts)), now)
    write_durably(folder / "server.key", private_pem(key), private=True)
    write_durably(folder / "server.crt", certificate.public_bytes(Encoding.PEM))
    arguments = [
        "flower-superlink", "--host", "127.0.0.1", "--port", str(PORT), "--ssl-ca-certfile", "ca.crt",
        "--ssl-certfile", "server.crt", "--ssl-keyfile", "server.key", "--enable-supernode-auth",
        "--database", "superlink.db",
    ]  # fmt: skip
    write_start(folder, "start-superlink.sh", arguments)
    write_unit(folder, "goldfc-superlink.service", "goldfc SuperLink", "start-superlink.sh")
    write_durably(folder / "nginx.conf", proxy_text(hosts[0], public_port).encode())


def proxy_text(host: str, public_port: int) -> str:
    """A proxy that passes on what nodes need, and nothing that an operator could do."""
    return f"""\
# The SuperLink's operator calls have no login: whoever reaches them can run code on every node. It listens on this
# machine only; this proxy (inside nginx's http block) lets nodes reach /v1/fleet/, and nothing else.
server {{
    listen {public_port} ssl;
    server_name {host};
    ssl_certificate     server.crt;
    ssl_certificate_key server.key;
    client_max_body_size 64m;
    location /v1/fleet/ {{
        proxy_pass https://127.0.0.1:{PORT};
        proxy_http_version 1.1;
        proxy_ssl_trusted_certificate ca.crt;
        proxy_ssl_verify on;
        proxy_ssl_name localhost;
        proxy_read_timeout 120s;
    }}
    location / {{ return 403; }}
}}
"""


def write_node(folder: Path, node: str, server: str) -> None:
    """For a site: its key, and how to start."""
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    write_durably(folder / "node.key", private, private=True)
    write_durably(folder / "node.pub", public + f" {node}\n".encode())
    arguments = [
        "flower-supernode", "--superlink", server, "--root-certificates", "ca.crt",
        "--auth-supernode-private-key", "node.key",
    ]  # fmt: skip
    # Whole paths: the program that works on a message may be started elsewhere.
    settings = f'client=\\"{node}\\" data=\\"$PWD/data.csv\\" federation=\\"$PWD/federation.toml\\"'
    write_start(folder, "start-supernode.sh", arguments, f' --node-config "{settings}"')
    write_unit(folder, "goldfc-supernode.service", f"goldfc SuperNode of {node}", "start-supernode.sh")


def write_operator(folder: Path, name: str, nodes: Sequence[str]) -> None:
    """For whoever starts rounds, on the machine with the SuperLink."""
    config = f"""\
[superlink]
default = "{name}"

[superlink.{name}]
address = "127.0.0.1:{PORT}"
root-certificates = "ca.crt"
"""
    write_durably(folder / "config.toml", config.encode())
    lines = [f"flwr supernode register {shlex.quote(f'{node}.pub')} {shlex.quote(name)}" for node in nodes]
    text = "#!/bin/sh\nset -e\n" + 'cd "$(dirname "$0")"\nexport FLWR_HOME="$PWD"\n' + exports() + "\n".join(lines)
    write_script(folder / "register-nodes.sh", text + "\n")


def write_start(folder: Path, name: str, arguments: Sequence[str], more: str = "") -> None:
    """A script that starts something in its own folder, quietly; `more` is for the shell to read."""
    text = "#!/bin/sh\n" + 'cd "$(dirname "$0")" || exit 1\n' + exports() + f"exec {shlex.join(arguments)}{more}\n"
    write_script(folder / name, text)


def exports() -> str:
    """No telemetry, no updates, no installations."""
    return "".join(f"export {variable}={value}\n" for variable, value in QUIET.items())


def write_script(path: Path, text: str) -> None:
    """A file that can be run by its owner."""
    write_durably(path, text.encode(), private=True)
    path.chmod(0o700)


def write_unit(folder: Path, name: str, title: str, script: str) -> None:
    """A systemd unit; the folder is to be filled in where it is installed."""
    text = f"""\
[Unit]
Description={title}
After=network-online.target
Wants=network-online.target

[Service]
# Put this folder to /srv/goldfc, or change the two paths.
WorkingDirectory=/srv/goldfc
ExecStart=/srv/goldfc/{script}
Restart=on-failure
RestartSec=5
NoNewPrivileges=true
PrivateTmp=true
ProtectSystem=strict
ReadWritePaths=/srv/goldfc

[Install]
WantedBy=multi-user.target
"""
    write_durably(folder / name, text.encode())


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as a file has it."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
