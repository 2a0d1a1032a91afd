"""How the command line talks: results on standard output, everything else on standard error, errors in a line."""

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

DONE, BAD_INPUT, INTERRUPTED = 0, 1, 130


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose failures are one line and an exit code; the traceback only with ``--debug``."""

    @functools.wraps(command)
    def run(*arguments: Any, debug: bool = False, **options: Any) -> None:
        try:
            command(*arguments, debug=debug, **options)
            sys.stdout.flush()
        except KeyboardInterrupt:
            _leave("interrupted", INTERRUPTED)
        except BrokenPipeError:
            _leave_quietly()
        except (ValueError, OSError, ImportError, MemoryError) as error:
            if debug:
                raise
            _leave(_in_words(error), BAD_INPUT)

    return run


def _in_words(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split())


def _leave(message: str, code: int) -> None:
    print(f"melc: {message}", file=sys.stderr)
    raise typer.Exit(code)


def _leave_quietly() -> None:
    """Whoever read our output has gone. Nothing is left to say, also not when Python closes the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(BAD_INPUT)


class Reporter:
    """Progress and notes on standard error: moving on a terminal, plain lines elsewhere, nothing if quiet."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)

    def note(self, text: str) -> None:
        self.console.print(f"note: {text}", markup=False)

    @contextmanager
    def progress(self, what: str, total: int | None = None) -> Iterator[Callable[[], None]]:
        """A spinner, or a bar if there is a total; what it gives is to be called after each step."""
        counting = [MofNCompleteColumn()] if total else []
        columns = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), *counting, TimeElapsedColumn()]
        shown = not self.quiet and self.console.is_terminal
        with Progress(*columns, console=self.console, transient=True, disable=not shown) as progress:
            task = progress.add_task(what, total=total)
            yield lambda: progress.advance(task)

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Warnings of the model in plain words, each once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for text in dict.fromkeys(str(warning.message) for warning in caught):
            self.note(" ".join(text.split()))
