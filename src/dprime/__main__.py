"""`python -m dprime` is the command line."""

from dprime.cli import main

main()
