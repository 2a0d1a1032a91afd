"""The command line ``melc``. The commands are in :mod:`melc.cli.commands`."""

import os
import signal
import sys
import traceback

_INTERRUPTED = 130


def main() -> None:
    """Run ``melc``. If typer or rich is not installed, exit with the pip command that installs them."""
    _open_closed_streams()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # temporary files are removed on exit
    try:
        from melc.cli.commands import app

        app(prog_name="melc")
    except (KeyboardInterrupt, SystemExit) as end:
        # An interrupt before or after a command ends in typer, which exits with this code and says nothing.
        if isinstance(end, SystemExit) and end.code != _INTERRUPTED:
            raise
        print("melc: interrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED)
    except Exception as error:
        sys.exit(_said_of(error))
    finally:
        _discard_unwritable_output()


def _said_of(error: Exception) -> str:
    """Return what is printed of an error that a command has not reported itself: a line if it is known, or a traceback.

    A terminal would obey some characters of the names in it, which are therefore escaped.
    """
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] in ("typer", "rich"):
        return f"melc: the command line needs {error.name}: pip install 'melc[cli]'"
    if isinstance(error, OSError) and "--debug" not in sys.argv:  # the help or the version cannot be written
        return f"melc: {error.strerror}"
    from melc.cli.console import printable

    return printable("".join(traceback.format_exception(error)).rstrip())


def _open_closed_streams() -> None:
    """Open the standard streams that were closed, so that no other file gets their numbers, and is printed to.

    The input is then empty, the output refuses what is written, and messages go nowhere.
    """
    for name, access, mode in (("stdin", os.O_RDONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, access), mode))  # noqa: SIM115


def _discard_unwritable_output() -> None:
    """Discard output that cannot be written, as to a closed pipe: Python would try again when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
