"""Top-level names of the product that are defined more than once: one word for one idea. `python tools/names.py`."""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PRODUCT = ROOT / "src" / "goldfc"


def names_in(path: Path) -> Iterator[str]:
    """The functions, classes and constants of a module."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))


def main() -> None:
    """Every such name and where it is, and how many there are."""
    homes = defaultdict[str, set[str]](set)
    for path in sorted(PRODUCT.rglob("*.py")):
        for name in names_in(path):
            homes[name].add(path.relative_to(PRODUCT).as_posix())
    twice = {name: places for name, places in homes.items() if len(places) > 1 and not name.startswith("__")}
    for name, places in sorted(twice.items()):
        print(f"{name}: {', '.join(sorted(places))}")
    print(f"{len(twice)} of {len(homes)} names are defined more than once", file=sys.stderr)


if __name__ == "__main__":
    main()
