"""What is released: one version everywhere, and in every distribution what belongs there and nothing else."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
# In bytes, packed; there is a reason where something grows beyond it.
MOST_BYTES = {"goldfc": 600_000, "goldfc_bench": 400_000}


def test_the_version_is_the_same_everywhere() -> None:
    bench = tomllib.loads((ROOT / "bench" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert bench["version"] == VERSION
    assert f"goldfc[paper]=={VERSION}" in bench["dependencies"]
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert newest is not None
    assert newest[1] == VERSION


def test_the_oldest_versions_that_are_tested_are_those_that_are_allowed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *project["optional-dependencies"]["excel"],
        *project["optional-dependencies"]["paper"],
    ]
    allowed = {name: least for line in wanted for name, least in re.findall(r"^([\w-]+)>=([\d.]+)", line)}
    lines = (ROOT / "minimum.txt").read_text(encoding="utf-8").splitlines()[1:]
    tested = {name.lower(): version for name, version in (line.split("==") for line in lines)}
    assert set(tested) == set(allowed)
    assert all(re.fullmatch(rf"{re.escape(allowed[name])}(\.0)*", version) for name, version in tested.items())


@pytest.fixture(scope="module", params=sorted(MOST_BYTES))
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Path]]:
    """A distribution in both forms."""
    out, name = tmp_path_factory.mktemp("dist"), str(request.param)
    home = ROOT if name == "goldfc" else ROOT / "bench"
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    subprocess.run(command, cwd=home, check=True, capture_output=True)  # noqa: S603 (our own command)
    return name, {path.suffix: path for path in out.iterdir()}


def contents(path: Path) -> list[str]:
    """Names in it."""
    if path.suffix == ".whl":
        return zipfile.ZipFile(path).namelist()
    with tarfile.open(path) as archive:
        return [member.name.partition("/")[2] for member in archive if member.isfile()]


def test_a_wheel_has_the_package_its_types_and_its_licence(built: tuple[str, dict[str, Path]]) -> None:
    name, paths = built
    told = contents(paths[".whl"])
    info = f"{name}-{VERSION}.dist-info"
    assert {f"{name}/py.typed", f"{name}/__init__.py", f"{info}/licenses/LICENSE", f"{info}/entry_points.txt"} <= set(
        told
    )
    assert {path.split("/")[0] for path in told} == {name, info}


def test_a_wheel_has_all_of_the_package(built: tuple[str, dict[str, Path]]) -> None:
    name, paths = built
    source = ROOT / ("src" if name == "goldfc" else "bench/src")
    files = (path for path in (source / name).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert {path.relative_to(source).as_posix() for path in files} <= set(contents(paths[".whl"]))


def test_a_source_distribution_can_be_built_from_and_has_no_results(built: tuple[str, dict[str, Path]]) -> None:
    name, paths = built
    told = set(contents(paths[".gz"]))
    assert {"LICENSE", "README.md", "pyproject.toml", f"src/{name}/py.typed"} <= told
    assert not [path for path in told if path.startswith(("benchmarks/", "tests/", "docs/")) or path.endswith(".jsonl")]


def test_distributions_are_small_and_carry_the_same_licence(built: tuple[str, dict[str, Path]]) -> None:
    name, paths = built
    assert max(path.stat().st_size for path in paths.values()) < MOST_BYTES[name]
    assert (ROOT / "bench" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
