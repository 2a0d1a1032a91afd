"""The command line ``melc``. The commands are in :mod:`melc.cli.commands`."""

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

# Seconds after which a signal is answered again, if the first answer was lost.
_AGAIN = 1.0


def main() -> None:
    """Run ``melc``. If typer or rich is not installed, exit with the pip command that installs them."""
    _open_closed_streams()
    try:
        with _signals_answered():
            _run()
    except SystemExit as ending:
        if isinstance(ending.code, int):
            _leave(ending.code)
        raise


def _open_closed_streams() -> None:
    """Open the standard streams that were closed, so that no file gets their numbers, and what prints there.

    The input is then empty, the output refuses what is written, and messages go nowhere.
    """
    for name, access, mode in (("stdin", os.O_RDONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, access), mode))  # noqa: SIM115


def _run() -> None:
    try:
        from melc.cli.commands import app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(f"melc: the command line needs {error.name}: pip install 'melc[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)
    try:
        app(prog_name="melc")
    except OSError as error:  # not of a command: the help or the version cannot be written
        if "--debug" in sys.argv:
            raise
        print(f"melc: {error.strerror}", file=sys.stderr)
        sys.exit(1)


def _leave(code: int) -> NoReturn:
    """End the process as Python does, but without taking the interpreter down.

    Arrow may still be reading ahead in its threads, if not all of a table was needed. They would abort the process, or
    keep it waiting, for ever if nothing more comes through a pipe.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # lets the processes of joblib end
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


@contextlib.contextmanager
def _signals_answered() -> Iterator[None]:
    """Answer SIGINT and SIGTERM by exceptions, so that drafts and temporary folders are removed on the way.

    Python drops an exception that is raised in some places, such as the callbacks with which an import ends. So it is
    raised again every second, until one is on its way up, and nothing is printed about those that were dropped.
    """
    first, about_dropped = signal.SIGTERM, sys.unraisablehook

    def answer(number: int, frame: Any) -> NoReturn:
        nonlocal first
        first = signal.Signals(number)
        if hasattr(signal, "setitimer"):  # Windows has none
            signal.setitimer(signal.ITIMER_REAL, _AGAIN, _AGAIN)
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    def answer_again(number: int, frame: Any) -> None:
        if not isinstance(sys.exception(), (KeyboardInterrupt, SystemExit)):
            answer(first, frame)

    def unless_answer(dropped: Any) -> None:
        if not issubclass(dropped.exc_type, (KeyboardInterrupt, SystemExit)):
            about_dropped(dropped)

    answers: dict[signal.Signals, Callable[[int, Any], None]] = {signal.SIGINT: answer, signal.SIGTERM: answer}
    if hasattr(signal, "setitimer"):
        answers[signal.SIGALRM] = answer_again
    before = {number: signal.signal(number, handler) for number, handler in answers.items()}
    sys.unraisablehook = unless_answer
    try:
        yield
    finally:  # a program that calls this goes on with its own answers
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = about_dropped
