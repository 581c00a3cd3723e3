"""Gateways by files: up through them, and down again."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from goldfc import Model
from goldfc.agreement import Agreement
from goldfc.cli import main
from goldfc.message.envelope import PrivateKey
from goldfc.message.wire import decode
from sites import Keys, agreement, bodies, rows_of, summary_of, write_agreement

REGIONS = ("coast", "hills", "plain")
DEVICES = tuple(f"meter-{number}" for number in range(4))
OURS = {"privacy": "plain", "limits": {"sites_behind": 10}}


def run(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, [str(word) for word in words])
    return result.exit_code, " ".join(result.output.split())


def test_a_fleet_goes_up_and_the_model_comes_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    top, above = tmp_path / "top", Keys.new(REGIONS)
    (top / "inbox").mkdir(parents=True)
    write_agreement(top, above.agreement(**OURS))
    for region in REGIONS:
        devices = Keys(above.sites[region], {name: PrivateKey.new() for name in DEVICES})
        below = make_region(tmp_path / region, devices)
        above.sites[region].write(tmp_path / f"{region}.key", None)
        keyed = ("--key", f"{region}.key", "--federation", "top/federation.toml")
        code, output = run("merge", *sorted((tmp_path / region / "inbox").iterdir()), "-o", f"{region}.summary", *keyed)
        assert code == 0, output
        assert f"of 4 sites as '{region}'" in output
        assert b"meter" not in Path(f"{region}.summary").read_bytes()
        Path(f"{region}.summary").rename(top / "inbox" / f"{region}.summary")
        for name in DEVICES:
            devices.sites[name].write(tmp_path / region / f"{name}.key", None)
        assert below.sealed
    above.server.write(tmp_path / "top.key", None)
    code, output = run("collect", "top", "--close", "-k", "3", "--key", "top.key")
    assert code == 0, output
    assert "of 3 sites" in output
    write_rows(tmp_path / "coast" / "data.csv")
    keyed = ("--key", "coast.key", "--federation", "top/federation.toml")
    assert run("relay", "top/sealed/coast.model", "coast", *keyed)[0] == 0
    label = ("label", "coast/data.csv", "--model", "coast/sealed/meter-1.model", "-o", "coast/labels.csv")
    code, output = run(*label, "--key", "coast/meter-1.key")
    assert code == 0, output
    assert "in 2 clusters" in output
    # What is sealed for one device is not for another.
    assert run(*label, "--key", "coast/meter-2.key")[0] == 3


def make_region(folder: Path, devices: Keys) -> Agreement:
    """The folder of a gateway, with the sealed messages of its devices."""
    (folder / "inbox").mkdir(parents=True)
    below = devices.agreement(**OURS)
    write_agreement(folder, below)
    for number, (name, body) in enumerate(bodies(below, DEVICES).items()):
        assert summary_of(number, name, below)[0].site == name
        (folder / "inbox" / f"{name}.summary").write_bytes(devices.sealed(body, name, below))
    return below


def write_rows(path: Path) -> None:
    """A table of a device."""
    lines = [f"{age:.2f},{pressure:.2f}" for age, pressure in rows_of(1)]
    path.write_text("\n".join(["age,pressure", *lines]) + "\n", encoding="utf-8")


def test_without_keys_a_gateway_hands_on_the_very_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    what = agreement(**OURS)
    for region in REGIONS:
        (tmp_path / region).mkdir()
        write_agreement(tmp_path / region, what)
        for name, body in bodies(what, DEVICES).items():
            (tmp_path / region / f"{name}.summary").write_bytes(body)
        assert run("merge", *sorted((tmp_path / region).glob("*.summary")), "-o", f"{region}.summary")[0] == 0
    write_agreement(tmp_path, what)
    assert "it stands for 4 sites" in run("inspect", "coast.summary")[1]
    assert run("fuse", *(f"{region}.summary" for region in REGIONS), "-o", "global.model")[0] == 0
    assert run("relay", "global.model", "coast")[0] == 0
    assert Path("coast/global.model").read_bytes() == Path("global.model").read_bytes()
    assert Model.from_message(decode(Path("global.model").read_bytes())).sites == REGIONS


def test_what_no_server_would_take_no_gateway_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_agreement(tmp_path, what := agreement(**OURS))
    for name, body in bodies(what, DEVICES).items():
        Path(f"{name}.summary").write_bytes(body)
    names = [f"{name}.summary" for name in DEVICES]
    code, output = run("merge", *names[:2], "-o", "coast.summary")
    assert code == 4
    assert "at least 3 are agreed on" in output
    (tmp_path / "other").mkdir()
    write_agreement(tmp_path / "other", agreement(**OURS, federation="mills"))
    code, output = run("merge", *names, "-o", "coast.summary", "--federation", "other/federation.toml")
    assert code == 3
    assert "does not fit federation.toml" in output
    Path(names[0]).write_bytes(b"no message")
    assert run("merge", *names, "-o", "coast.summary")[0] == 3
    assert not Path("coast.summary").exists()
