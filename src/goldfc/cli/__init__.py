"""The command line: the only place that knows click and rich."""

from goldfc.cli import begin, demo, inspect, kit, live, server, site
from goldfc.cli.shared import main

__all__ = ["begin", "demo", "inspect", "kit", "live", "main", "server", "site"]
