"""A fleet that is made: what every device measures, and what it sends."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from goldfc._types import FloatArray, IntArray
from goldfc.agreement import FILE, Agreement, read_agreement
from goldfc.message.summary import Summary
from goldfc.message.wire import encode
from goldfc.randomness import generator
from goldfc.server.one_shot import fusion_of
from goldfc.site.summarize import summarize

# Every gateway sees so many of the clusters, and each of its devices so many of these.
AT_A_GATEWAY, AT_A_DEVICE = 6, 3
# How far centres lie apart, in standard deviations of a cluster.
APART = 2.0


@dataclass(frozen=True)
class Fleet:
    """How large it is."""

    gateways: int = 100
    devices: int = 1_000  # behind each
    rows: int = 50
    columns: int = 6
    clusters: int = 10
    seed: int = 0

    @property
    def agreement(self) -> Agreement:
        """What all agree on; plain, because the audit of 100 000 devices takes the time of as many machines."""
        columns = [{"name": f"c{number}"} for number in range(self.columns)]
        limits = {"sites_behind": self.gateways * self.devices}
        return Agreement.model_validate(
            {"federation": "fleet", "privacy": "plain", "columns": columns, "limits": limits}
        )

    def write_agreement(self, folder: Path) -> None:
        """As its file."""
        what = self.agreement
        lines = [f'federation = "{what.federation}"', f'privacy = "{what.privacy}"']
        lines += ["[limits]", f"sites_behind = {what.limits.sites_behind}"]
        lines += [f'[[columns]]\nname = "{column.name}"' for column in what.columns]
        (folder / FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
        if read_agreement(folder / FILE) != what:
            raise AssertionError("the file must say what was agreed on")

    def table(self, gateway: int, device: int) -> tuple[FloatArray, IntArray]:
        """The rows of a device, and the truth."""
        centres = generator(self.seed, "centres").normal(scale=APART, size=(self.clusters, self.columns))
        region = generator(self.seed, "region", str(gateway)).permutation(self.clusters)[:AT_A_GATEWAY]
        rng = generator(self.seed, "device", str(gateway), str(device))
        truth = rng.choice(rng.permutation(region)[:AT_A_DEVICE], self.rows).astype(np.int64)
        return centres[truth] + rng.normal(size=(self.rows, self.columns)), truth

    def summary(self, gateway: int, device: int) -> Summary:
        """What a device sends."""
        what, name = self.agreement, f"device-{gateway:03}-{device:04}"
        return summarize(self.table(gateway, device)[0], name, fusion_of(what).task, terms=what.terms)[0]

    def region(self, gateway: int) -> list[bytes]:
        """The messages of all devices of a gateway."""
        return [encode(self.summary(gateway, device).to_message()) for device in range(self.devices)]

    def sample(self, every: int) -> tuple[FloatArray, IntArray]:
        """The rows of every so many devices, and the truth."""
        places = [divmod(number, self.devices) for number in range(0, self.gateways * self.devices, every)]
        rows, truth = zip(*(self.table(*place) for place in places), strict=True)
        return np.concatenate(rows), np.concatenate(truth)


def heavy(summary: Summary) -> Summary:
    """As if it had all the rows that anybody may have."""
    mass = np.full(len(summary.centroids), 10**6)
    moments = summary.moments and replace(
        summary.moments.weighing(mass.sum() / summary.moments.count), count=mass.sum()
    )
    return replace(summary, mass=mass, moments=moments)


def moved(summary: Summary) -> Summary:
    """All values beside everybody else's, but not so far that it would be left out."""
    if summary.moments is None:
        raise AssertionError("a device tells its moments")
    apart = 4.0 * summary.moments.scale
    return heavy(
        replace(
            summary,
            centroids=summary.centroids + apart,
            moments=replace(summary.moments, mean=summary.moments.mean + apart),
        )
    )


def wide(summary: Summary) -> Summary:
    """As if its rows lay far around their micro-centroids."""
    if summary.moments is None or summary.shape is None:
        raise AssertionError("a device tells its moments and its shape")
    squares = summary.moments.squares + 24.0 * summary.moments.count * np.diag(summary.shape)
    return heavy(replace(summary, shape=25.0 * summary.shape, moments=replace(summary.moments, squares=squares)))


HOSTILE = {"counts a million rows each": heavy, "and is moved": moved, "and spreads far": wide}
