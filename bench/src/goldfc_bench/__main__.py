"""`python -m goldfc_bench` is the command line."""

from goldfc_bench.cli import main

main(prog_name="goldfc-bench")
