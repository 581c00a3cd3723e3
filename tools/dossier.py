"""The dossier of the walk-through, as a page of the documentation; writes it, or checks it with --check."""

import sys
from pathlib import Path

from goldfc.agreement import read_agreement
from goldfc.report.dossier import as_markdown

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "dossier-three-hospitals.md"
FEDERATION = ROOT / "examples" / "three-hospitals" / "federation.toml"


def page() -> str:
    """The page, as it should be; what is installed here is nobody else's."""
    return as_markdown(read_agreement(FEDERATION), to_source="../")


def main() -> int:
    """Write the page, or say that it is out of date."""
    if "--check" not in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == page():
        return 0
    print("docs/dossier-three-hospitals.md is out of date; run `make format`.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
