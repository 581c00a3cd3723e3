"""Wheels and source distributions, each installed in a clean environment and used; how large a site's is.

It takes minutes and a package index, so it is no test of every day: `make release-check`.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "installing.md"
SITES = ("north", "south", "west")
# What each extra is for, shown by a few lines.
PARTS = {
    "excel": "from goldfc.site.table import readers; import python_calamine",
    "paper": "from goldfc import GOLD; GOLD(2, random_state=0).fit([[n % 7, n // 7] for n in range(60)])",
    "flower": "import goldfc.transport.flower.server_app",
    "plot": "from goldfc import OneShotClustering as C; C(2).fit([[n % 7, n // 7] for n in range(60)]).plot_map()",
    "ray": "import ray",
}
# How much an installation may grow before somebody should look.
MORE = 1.1


def run(command: Sequence[str | Path], folder: Path = ROOT) -> None:
    """Do it, or stop here."""
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], cwd=folder, check=True)  # noqa: S603 (our own commands)


def build(home: Path, out: Path) -> dict[str, Path]:
    """The wheel and the source distribution of a project."""
    run([sys.executable, "-m", "hatchling", "build", "-d", out], home)
    return {path.suffix: path for path in out.iterdir()}


def environment(folder: Path, *what: str) -> Path:
    """A new environment with that in it; its programs."""
    run([sys.executable, "-m", "venv", folder])
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    run([programs / "python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", *what])
    return programs


def use_files(goldfc: Path, folder: Path) -> None:
    """Three sites, from tables to labels and a dossier, as the README has it."""
    python = goldfc.with_name("python")
    for name in ("make_data.py", "federation.toml"):
        (folder / name).write_bytes((ROOT / "examples" / "three-hospitals" / name).read_bytes())
    run([python, "make_data.py"], folder)
    for site in SITES:
        run([goldfc, "summarize", f"{site}/{site}.csv", "-o", f"{site}.summary"], folder)
    run([goldfc, "fuse", *(f"{site}.summary" for site in SITES), "-o", "global.model"], folder)
    for site in SITES:
        run([goldfc, "label", f"{site}/{site}.csv", "--model", "global.model", "-o", f"{site}.labels.csv"], folder)
    run([goldfc, "report", "global.model"], folder)
    run([goldfc, "dossier", "--sbom", "sbom.json"], folder)


def check_size(folder: Path) -> None:
    """No larger than the documentation says, or hardly."""
    size = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20
    told = re.search(r"\| as pip installs it \| (\d+) \|", PAGE.read_text(encoding="utf-8"))
    print(f"A site's environment has {size:.0f} MB.")
    if told is None or size > MORE * int(told[1]):
        sys.exit(f"{PAGE.name} says less: correct it, or find out what has grown.")


def main() -> None:
    """All of it, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        product, bench = build(ROOT, folder / "product"), build(ROOT / "bench", folder / "bench")
        work = folder / "work"
        work.mkdir()
        use_files(environment(folder / "site", str(product[".whl"])) / "goldfc", work)
        check_size(folder / "site")
        for extra, lines in PARTS.items():
            run([environment(folder / extra, f"{product['.whl']}[{extra}]") / "python", "-c", lines], work)
        sources = environment(
            folder / "sources", str(product[".gz"]), "--find-links", str(product[".whl"].parent), str(bench[".gz"])
        )
        run([sources / "goldfc-bench", "--version"], work)


if __name__ == "__main__":
    main()
