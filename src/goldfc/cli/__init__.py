"""The command line: the only place that knows click and rich."""

from goldfc.cli import attacks, experiments, federation, kit, live, shapes
from goldfc.cli.shared import main

__all__ = ["attacks", "experiments", "federation", "kit", "live", "main", "shapes"]
