"""The command line ``melc``. The commands are in :mod:`melc.cli.commands`."""

import signal
import sys
from typing import Any


def main() -> None:
    """Run ``melc``. If typer or rich is not installed, exit with the pip command that installs them."""
    before = signal.signal(signal.SIGTERM, _exit_tidily)
    try:
        _run()
    finally:  # a program that calls this goes on with its own answer to signals
        signal.signal(signal.SIGTERM, before)


def _run() -> None:
    try:
        from melc.cli.commands import app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(f"melc: the command line needs {error.name}: pip install 'melc[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="melc")


def _exit_tidily(number: int, frame: Any) -> None:
    """Exit by an exception, so that drafts and temporary folders are removed on the way."""
    raise SystemExit(128 + number)
