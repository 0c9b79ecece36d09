"""`dprime` and `python -m dprime` are the command line."""

import sys


def main() -> None:
    """Run it; Ctrl-C ends it without a traceback, also while it loads."""
    try:
        from dprime.cli import main as call  # noqa: PLC0415  this takes a while

        call()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
