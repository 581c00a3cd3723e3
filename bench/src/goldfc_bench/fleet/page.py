"""The page of fleets."""

from collections.abc import Sequence

from goldfc_bench.fleet.hostile import Harm
from goldfc_bench.fleet.made import Fleet
from goldfc_bench.fleet.tiers import CORES, EVERY, Tiers
from goldfc_bench.stream import Used

PAGE = """# Fleets behind gateways

Made by `{command}`. The load of the {cores} cores was {load:.1f} when it began; where other work is done
meanwhile, seconds of the processor, which are told beside those that went by, say more. Memory is the most that a
process held, of which some 200 MB are Python and its libraries.

## {sites:,} devices behind {gateways} gateways

Each device has {rows} rows of {columns} columns: {clusters} Gaussian clusters, of which a region has 6 and a device 3
(level plain). Devices and gateways are simulated on {cores} cores, `goldfc fuse` and `goldfc merge` are commands. All
summaries at once is one server that hears every device; whether columns look odd, which takes the square of the number
of sites, is not asked there. Labels are those of the rows of every {every}th device.

| | seconds | of the processor | peak memory |
|---|---|---|---|
{costs}

With both cores to themselves, devices, gateways and server take half of their seconds of the processor: {alone:.0f}.

ARI between the labels by way of gateways and those of all summaries at once: **{ari:.4f}**. ARI with the truth:
{truth:.4f} by way of gateways, {truth_at_once:.4f} at once.

## Hostile devices

{hostile_fleets} fleets of {hostile_devices:,} devices behind {hostile_gateways} gateways; ARI of all rows with the
truth, the mean. A hostile device tells as many rows as it may; a device counts no more than the median one
(`mass_cap`), wherever it is.

| hostile devices | what they do | at gateways | at a server |
|---|---|---|---|
{harm}

The most that the labels lose against no hostile device: {lost_gateways:.4f} at gateways, {lost_server:.4f} at a
server.
"""


def as_markdown(tiers: Tiers, harm: Sequence[Harm], fleets: Sequence[Fleet], command: str, load: float) -> str:
    """The page."""
    fleet, base = tiers.fleet, [one for one in harm if one.plan == "none"]
    return PAGE.format(
        command=command,
        cores=CORES,
        load=load,
        sites=fleet.gateways * fleet.devices,
        gateways=fleet.gateways,
        rows=fleet.rows,
        columns=fleet.columns,
        clusters=fleet.clusters,
        every=EVERY,
        costs="\n".join(cost_lines(tiers)),
        alone=processor_seconds(tiers) / CORES,
        ari=tiers.ari,
        truth=tiers.ari_truth,
        truth_at_once=tiers.ari_truth_at_once,
        hostile_fleets=len(fleets),
        hostile_devices=fleets[0].gateways * fleets[0].devices,
        hostile_gateways=fleets[0].gateways,
        harm="\n".join(f"| {one.plan} | {one.attack} | {one.at_gateways:.4f} | {one.at_server:.4f} |" for one in harm),
        lost_gateways=base[0].at_gateways - min(one.at_gateways for one in harm),
        lost_server=base[0].at_server - min(one.at_server for one in harm),
    )


def processor_seconds(tiers: Tiers) -> float:
    """Of devices, gateways and server."""
    return tiers.device_seconds + tiers.gateway_seconds + tiers.server.cpu_seconds


def cost_lines(tiers: Tiers) -> list[str]:
    """Who took what."""
    all_of_them, total = processor_seconds(tiers), tiers.seconds + tiers.server.seconds
    both = all_of_them - tiers.server.cpu_seconds
    return [
        f"| all devices | | {tiers.device_seconds:.0f} | |",
        f"| all gateways | | {tiers.gateway_seconds:.0f} | |",
        f"| both, side by side | {tiers.seconds:.0f} | {both:.0f} | |",
        f"| one gateway, as a command | {of(tiers.gateway)} |",
        f"| the server | {of(tiers.server)} |",
        f"| devices, gateways and server | **{total:.0f}** | {all_of_them:.0f} | |",
        f"| all summaries at once | {of(tiers.at_once)} |",
    ]


def of(used: Used) -> str:
    """Three cells."""
    return f"{used.seconds:.1f} | {used.cpu_seconds:.1f} | {used.peak_megabytes:.0f} MB"
