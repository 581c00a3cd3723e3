"""What it takes to run a live federation safely: certificates, node keys, start scripts and units, one folder each.

Nobody needs more than her own folder: `server/` is for the machine with the SuperLink, `nodes/NAME/` for each site,
`operator/` for whoever starts rounds. `ca/` signs certificates and belongs on a stick in a drawer.
"""

import datetime
import ipaddress
import json
import re
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
from goldfc.files import write_durably
from goldfc.message.columns import alike, look_of_name, shown

# Where the SuperLink listens, on its own machine only, and where the proxy in front of it lets nodes in.
PORT, PUBLIC_PORT = 8000, 443
# Whom programs of the kit run as, unless GOLDFC_USER says otherwise: somebody who owns nothing but a few folders.
USER = "goldfc"
# In a node's folder, and in the server's: all that can be written to. The second one of a node is beside its table.
OF_NODE, OF_SERVER = ("labels", ".goldfc"), ("state", "rounds")
HOST = re.compile(
    r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*", re.IGNORECASE
)
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
            certificate_of(subject, subject, key.public_key(), now, DAYS_OF_CA)
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
            certificate_of(subject, self.certificate.subject, key, now, DAYS_OF_SERVER)
            .add_extension(x509.SubjectAlternativeName([host_name(host) for host in hosts]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA384())
        )


def certificate_of(
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


def checked_host(host: str) -> str:
    """A name or an address, as addresses and a proxy's configuration have them; refused if it is neither."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if HOST.fullmatch(host):
            return host
        raise BadSettings(
            f"{shown(host)[:100]!r} is not the name of a host: it must be letters, digits, '-' and '.', or an IP "
            "address.",
            "host-invalid",
        ) from None
    if getattr(address, "scope_id", None):
        raise BadSettings(
            f"{shown(host)[:100]!r} is an address on one network card only; name one without '%'.", "host-on-one-card"
        )
    return f"[{address}]" if address.version == 6 else str(address)


def check_nodes(nodes: Sequence[str]) -> None:
    """Refuse two nodes that people, or file systems, would take for each other."""
    if pair := alike(nodes, look_of_name):
        raise BadSettings(f"Nodes {pair[0]!r} and {pair[1]!r} are the same or look alike; rename one of them.", "alike")


def write_kit(
    folder: Path, name: str, hosts: Sequence[str], nodes: Sequence[str], public_port: int = PUBLIC_PORT
) -> None:
    """All folders. The first of the hosts is how nodes call the server."""
    if folder.exists():
        raise BadSettings(f"{folder} exists already, and keys are not made twice; name another folder.", "kit-exists")
    check_nodes(nodes)
    public, *_ = [checked_host(host) for host in hosts]
    authority = Authority.new(name, now := datetime.datetime.now(datetime.UTC))
    ca = authority.certificate.public_bytes(Encoding.PEM)
    for part in ("ca", "server", "operator", *(f"nodes/{node}" for node in nodes)):
        (folder / part).mkdir(parents=True, mode=0o700)
        write_durably(folder / part / "ca.crt", ca)
    write_durably(folder / "ca" / "ca.key", private_pem(authority.key), private=True)
    write_server(folder / "server", authority, [*hosts, "localhost", "127.0.0.1"], nodes, public_port, now)
    for node in nodes:
        write_node(folder / "nodes" / node, node, f"{public}:{public_port}")
        write_durably(folder / "operator" / f"{node}.pub", (folder / "nodes" / node / "node.pub").read_bytes())
    write_operator(folder / "operator", name, nodes)


def write_server(
    folder: Path,
    authority: Authority,
    hosts: Sequence[str],
    nodes: Sequence[str],
    public_port: int,
    now: datetime.datetime,
) -> None:
    """For the machine with the SuperLink: it listens on the machine itself only, and a proxy lets nodes in."""
    key = ec.generate_private_key(ec.SECP384R1())
    certificate = authority.sign_server(key.public_key(), list(dict.fromkeys(hosts)), now)
    write_durably(folder / "server.key", private_pem(key), private=True)
    write_durably(folder / "server.crt", certificate.public_bytes(Encoding.PEM))
    arguments = [
        "flower-superlink", "--host", "127.0.0.1", "--port", str(PORT), "--ssl-ca-certfile", "ca.crt",
        "--ssl-certfile", "server.crt", "--ssl-keyfile", "server.key", "--enable-supernode-auth",
        "--database", "state/superlink.db",
    ]  # fmt: skip
    write_start(folder, "start-superlink.sh", arguments)
    write_unit(folder, "goldfc-superlink.service", "goldfc SuperLink", "start-superlink.sh", OF_SERVER)
    write_rounds(folder, nodes)
    write_prepare(folder, OF_SERVER, ("server.key", "server.goldfc.key"), ("federation.toml",))
    write_durably(folder / "nginx.conf", proxy_text(checked_host(hosts[0]), public_port).encode())


def write_rounds(folder: Path, nodes: Sequence[str]) -> None:
    """For rounds on a schedule: a timer, and what it starts. The next round goes on after the last."""
    config = connection_text("here", "%s").replace("\n", "\\n")
    start = f"""printf '{config}' "$PWD/ca.crt" > "$FLWR_HOME/config.toml"
[ -e server.goldfc.key ] && set -- --key server.goldfc.key
exec goldfc federate federation.toml --connection here --next --expect {len(nodes)} -o rounds "$@\""""
    write_start(folder, "start-round.sh", ["sh", "-c", start, "sh"])
    write_unit(folder, "goldfc-round.service", "goldfc round", "start-round.sh", OF_SERVER, ONCE)
    timer = """\
[Unit]
Description=goldfc rounds

[Timer]
# When: see `systemd.time`. What was missed while the machine was off is made up for.
OnCalendar=monthly
Persistent=true

[Install]
WantedBy=timers.target
"""
    write_durably(folder / "goldfc-round.timer", timer.encode())


def connection_text(name: str, ca: str) -> str:
    """Flower's own settings: where the SuperLink is, and by which certificate it is known."""
    return f"""\
[superlink]
default = {json.dumps(name)}

[superlink.{json.dumps(name)}]
address = "127.0.0.1:{PORT}"
root-certificates = "{ca}"
"""


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
    paths = {"data": "data.csv", "federation": "federation.toml", "labels": f"labels/{node}.labels.csv"}
    settings = " ".join([f'site=\\"{node}\\"', *(f'{name}=\\"$PWD/{path}\\"' for name, path in paths.items())])
    write_start(folder, "start-supernode.sh", arguments, f' --node-config "{settings}$key"', KEY_OF_A_SITE)
    write_unit(folder, "goldfc-supernode.service", f"goldfc SuperNode of {node}", "start-supernode.sh", OF_NODE)
    write_prepare(folder, OF_NODE, ("node.key", "site.key"), ("data.csv", "federation.toml"))


def write_operator(folder: Path, name: str, nodes: Sequence[str]) -> None:
    """For whoever starts rounds, on the machine with the SuperLink."""
    config = connection_text(name, json.dumps(str(folder.absolute() / "ca.crt"))[1:-1])
    write_durably(folder / "config.toml", config.encode())
    lines = [f"flwr supernode register {shlex.quote(f'{node}.pub')} {shlex.quote(name)}" for node in nodes]
    start = '#!/bin/sh\nset -e\ncd "$(dirname "$0")"\nexport FLWR_HOME="$PWD"\n'
    # Flower wants a whole path, and the folder may have been moved.
    here = 'sed -i "s|^root-certificates = .*|root-certificates = \\"$PWD/ca.crt\\"|" config.toml\n'
    write_script(folder / "register-nodes.sh", start + exports() + here + "\n".join(lines) + "\n")


# Where messages are sealed.
KEY_OF_A_SITE = """key=
[ -e site.key ] && key=" key=\\"$PWD/site.key\\""
"""
# Whoever starts it as root, as many do at first, has it run as somebody else with no rights to gain any. What Flower
# unpacks goes to a folder of its own, and no home is needed.
UNPRIVILEGED = f"""umask 077
FLWR_HOME=$(mktemp -d) || exit 1
export FLWR_HOME HOME="$FLWR_HOME"
if [ "$(id -u)" = 0 ]; then
  user=${{GOLDFC_USER:-{USER}}}
  id -u "$user" > /dev/null 2>&1 || {{ echo "There is no user $user: run ./prepare.sh first." >&2; exit 1; }}
  chown "$user" "$FLWR_HOME"
  set -- setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups --no-new-privs --bounding-set=-all \\
    --inh-caps=-all -- "$@"
fi
exec "$@"
"""


def write_start(folder: Path, name: str, arguments: Sequence[str], more: str = "", before: str = "") -> None:
    """A script that starts something in its own folder, quietly and never as root; `more` is for the shell to read."""
    start = '#!/bin/sh\ncd "$(dirname "$0")" || exit 1\n'
    write_script(
        folder / name, f"{start}{exports()}{before}set -- {shlex.join(arguments)}{more}\n{UNPRIVILEGED}", 0o755
    )


def write_prepare(folder: Path, writable: Sequence[str], keys: Sequence[str], readable: Sequence[str] = ()) -> None:
    """A script for root, to be run where the folder is to stay: whom it runs as, and what that user may do there."""
    some = " ".join(shlex.quote(name) for name in readable)
    text = f"""\
#!/bin/sh
# Run once as root, and again whenever a file here is replaced. The folder stays root's: programs can read what they
# need, and write to {" and ".join(writable)} only.
set -e
cd "$(dirname "$0")"
user=${{GOLDFC_USER:-{USER}}}
id -u "$user" > /dev/null 2>&1 || useradd --system --no-create-home --home-dir / --shell /usr/sbin/nologin "$user"
group=$(id -g "$user")
chown "root:$group" . && chmod 0750 .
mkdir -p {" ".join(writable)}
for one in {" ".join(writable)}; do
  [ ! -L "$one" ] && chown -R -P "$user:$group" "$one" && chmod 0700 "$one"
done
for one in ca.crt {some} *.crt *.sh; do
  if [ -e "$one" ] && [ ! -L "$one" ]; then chown "root:$group" "$one"; chmod u=rwX,g=rX,o= "$one"; fi
done
for one in {" ".join(keys)}; do
  if [ -e "$one" ] && [ ! -L "$one" ]; then chown "$user:$group" "$one"; chmod 0400 "$one"; fi
done
"""
    write_script(folder / "prepare.sh", text)


def exports() -> str:
    """No telemetry, no updates, no installations."""
    return "".join(f"export {variable}={value}\n" for variable, value in QUIET.items())


def write_script(path: Path, text: str, mode: int = 0o700) -> None:
    """A file that can be run, by its owner or by others as well."""
    write_durably(path, text.encode(), private=True)
    path.chmod(mode)


# A program that a node runs may be a stranger's. It gets the network, the processor, and the paths below.
SANDBOX = """\
NoNewPrivileges=true
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=true
PrivateTmp=true
PrivateDevices=true
DevicePolicy=closed
PrivateUsers=true
PrivateIPC=true
KeyringMode=private
ProtectProc=invisible
ProtectClock=true
ProtectHostname=true
ProtectKernelLogs=true
ProtectKernelModules=true
ProtectKernelTunables=true
ProtectControlGroups=true
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=true
RestrictRealtime=true
RestrictSUIDSGID=true
LockPersonality=true
MemoryDenyWriteExecute=true
RemoveIPC=true
UMask=0077
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
"""


# What runs all the time is started again if it fails; what runs once is not.
ALWAYS, ONCE = "Restart=on-failure\nRestartSec=5", "Type=oneshot"


def write_unit(folder: Path, name: str, title: str, script: str, writable: Sequence[str], runs: str = ALWAYS) -> None:
    """A systemd unit; the folder is to be filled in where it is installed."""
    text = f"""\
[Unit]
Description={title}
After=network-online.target
Wants=network-online.target

[Service]
# Put this folder to /srv/goldfc and run its prepare.sh, or change all paths. Programs that are installed in a home
# cannot be seen from here: install goldfc elsewhere, such as in /opt/goldfc, and say so in PATH.
User={USER}
Environment=PATH=/opt/goldfc/bin:/usr/local/bin:/usr/bin:/bin
WorkingDirectory=/srv/goldfc
ExecStart=/srv/goldfc/{script}
{runs}
ReadOnlyPaths=/srv/goldfc
ReadWritePaths={" ".join(f"/srv/goldfc/{one}" for one in writable)}
# A node needs one server only. With its address here, nothing else can be reached, names excepted:
# IPAddressDeny=any
# IPAddressAllow=localhost 192.0.2.1
{SANDBOX}
[Install]
WantedBy=multi-user.target
"""
    write_durably(folder / name, text.encode())


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as a file has it."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
