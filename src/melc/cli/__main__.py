"""Run the command line with ``python -m melc.cli``."""

from melc.cli import main

main()
