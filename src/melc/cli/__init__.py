"""The command line ``melc``. The commands are in :mod:`melc.cli.commands`."""

import contextlib
import os
import signal
import sys
from typing import Any, NoReturn

# Exit codes after SIGINT and SIGTERM.
_AFTER_SIGNALS = (128 + signal.SIGINT, 128 + signal.SIGTERM)


def main() -> None:
    """Run ``melc``. If typer or rich is not installed, exit with the pip command that installs them."""
    before = signal.signal(signal.SIGTERM, _exit_tidily)
    try:
        _run()
    except SystemExit as ending:
        if ending.code in _AFTER_SIGNALS:
            _leave(ending.code)
        raise
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


def _leave(code: int) -> NoReturn:
    """End the process at once: threads of Arrow that still read would abort it when Python takes itself down."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _exit_tidily(number: int, frame: Any) -> None:
    """Exit by an exception, so that drafts and temporary folders are removed on the way."""
    raise SystemExit(128 + number)
