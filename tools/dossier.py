"""The dossier of the walk-through, as a page of the documentation; writes it, or checks it with --check."""

import sys

from tools.derived import ROOT, keep

from goldfc.agreement import read_agreement
from goldfc.report.dossier import as_markdown

PAGE = ROOT / "docs" / "dossier-three-hospitals.md"
FEDERATION = ROOT / "examples" / "three-hospitals" / "federation.toml"


def page() -> str:
    """The page, as it should be; what is installed here is nobody else's."""
    return as_markdown(read_agreement(FEDERATION), to_source="../")


if __name__ == "__main__":
    sys.exit(keep(PAGE, page()))
