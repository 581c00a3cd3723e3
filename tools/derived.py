"""Pages that are made from something else: written, or with --check compared with what they should be."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def keep(page: Path, text: str) -> int:
    """Write a page, or say that it is out of date; the exit code."""
    if "--check" not in sys.argv:
        page.write_text(text, encoding="utf-8")
    elif page.read_text(encoding="utf-8") != text:
        print(f"{page.relative_to(ROOT)} is out of date; run `make format`.", file=sys.stderr)
        return 1
    return 0
