"""`python -m goldfc` is the command line."""

from goldfc.cli import main

main(prog_name="goldfc")
