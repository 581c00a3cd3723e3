"""The deployment kit of a live federation."""

from pathlib import Path

import click

from goldfc.cli.shared import console, main

OF_A_SITE = (
    "for this site: add federation.toml and data.csv (and site.key, if sealed), prepare.sh once as root, then "
    "start-supernode.sh"
)


@main.command("flower-kit")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--name", required=True, help="The federation's name, such as wards.")
@click.option(
    "--host", "hosts", multiple=True, required=True, help="How nodes call the server; more names, more of these."
)
@click.option("--node", "nodes", multiple=True, required=True, help="A site's name; one of these for each site.")
@click.option("--port", type=click.IntRange(1, 65535), default=443, show_default=True, help="Where nodes call it.")
def flower_kit(folder: Path, name: str, hosts: tuple[str, ...], nodes: tuple[str, ...], port: int) -> None:
    """Write certificates, keys, start scripts and units for a live federation on Flower into FOLDER."""
    from goldfc.errors import BadSettings, code_of
    from goldfc.message.columns import plain_name
    from goldfc.transport.flower.kit import write_kit

    for one in (name, *nodes):
        try:
            plain_name(one)
        except ValueError as error:
            raise BadSettings(f"The name {one!r} {error}.", code_of(error, "name-invalid")) from error
    write_kit(folder, name, hosts, nodes, port)
    for part, what in (
        ("ca", "signs certificates: keep it offline"),
        (
            "server",
            "for the machine with the SuperLink: prepare.sh once, start-superlink.sh, and nginx.conf to let nodes in",
        ),
        ("operator", "for whoever starts rounds: register-nodes.sh once, then goldfc federate"),
        *((f"nodes/{node}", OF_A_SITE) for node in nodes),
    ):
        console.print(f"{folder / part}  {what}", highlight=False, soft_wrap=True)
    console.print("docs/flower.md says what each step protects.", highlight=False)
