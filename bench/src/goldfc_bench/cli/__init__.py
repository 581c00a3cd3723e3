"""The command line of the benchmark."""

from goldfc_bench.cli import attacks, data, experiments, plausible, private, rounds, shapes
from goldfc_bench.cli.shared import main

__all__ = ["attacks", "data", "experiments", "main", "plausible", "private", "rounds", "shapes"]
