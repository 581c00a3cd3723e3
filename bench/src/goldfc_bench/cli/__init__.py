"""The command line of the benchmark."""

from goldfc_bench.cli import attacks, data, experiments, fleet, plausible, private, rounds, shapes
from goldfc_bench.cli.shared import main

__all__ = ["attacks", "data", "experiments", "fleet", "main", "plausible", "private", "rounds", "shapes"]
