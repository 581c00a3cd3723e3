"""The command line: the only place that knows click and rich."""

from goldfc.cli import demo, federation, kit, live
from goldfc.cli.shared import main

__all__ = ["demo", "federation", "kit", "live", "main"]
