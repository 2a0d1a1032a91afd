"""Progress, notes and errors of the command line.

Results go to standard output, everything else to standard error. An error is a single line.
"""

import functools
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from melc.cli.language import in_options
from melc.model.names import QUOTED

# Exit codes.
BAD_INPUT, INTERRUPTED = 1, 130
# Numbers in which warnings of the same kind differ, such as the divergences of folds; in a name they are no numbers.
_DECIMAL = re.compile(rf"(?P<name>{QUOTED})|\d+\.\d+(e[+-]\d+)?")


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with its errors turned into one line and an exit code.

    With ``--debug`` errors are raised, so that the traceback is shown.
    """

    @functools.wraps(command)
    def run(*arguments: Any, debug: bool = False, **options: Any) -> None:
        try:
            command(*arguments, debug=debug, **options)
            sys.stdout.flush()
        except KeyboardInterrupt:
            _exit("interrupted", INTERRUPTED)
        except BrokenPipeError:
            _exit_after_closed_pipe()
        except Exception as error:
            if _follows_interrupt(error):
                _exit("interrupted", INTERRUPTED)
            if debug or not isinstance(error, (ValueError, OSError, ImportError, MemoryError)):
                raise
            _exit(_message(error), BAD_INPUT)

    return run


def _follows_interrupt(error: BaseException | None) -> bool:
    """Whether an error was raised while an interrupt was handled: an interrupted import may end in any error."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _message(error: BaseException) -> str:
    """Return the message of an error on one line."""
    if isinstance(error, MemoryError):
        return "not enough memory; use fewer rows or columns"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return in_options(" ".join(str(error).split()))


def _exit(message: str, code: int) -> None:
    print(f"melc: {message}", file=sys.stderr)
    raise typer.Exit(code)


def _exit_after_closed_pipe() -> None:
    """Exit without a message when the reader of standard output has closed it, as ``head`` does."""
    # Python flushes standard output once more when it exits; to the null device that cannot fail.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(BAD_INPUT)


class Reporter:
    """Writes notes, and on a terminal a progress bar, to standard error; nothing if ``quiet``."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """Print a line that starts with "note:"."""
        self.console.print(f"note: {text}", markup=False)

    def note_unseen(self, counts: dict[str, int]) -> None:
        """Print a note for each text column with values that the model does not know."""
        for name, count in counts.items():
            self.note(
                f"column {name!r}: {count} values do not occur in the training data; "
                "they are treated as the most frequent training value"
            )

    @contextmanager
    def progress(self, what: str, total: int | None = None) -> Iterator[Callable[[], None]]:
        """Show a progress bar, which counts up to ``total`` if given; yield the function to call after each step."""
        counting = [MofNCompleteColumn()] if total else []
        columns = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), *counting, TimeElapsedColumn()]
        shown = not self.quiet and self.console.is_terminal
        with Progress(*columns, console=self.console, transient=True, disable=not shown) as progress:
            task = progress.add_task(what, total=total)
            yield lambda: progress.advance(task)

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Print the warnings of this block as notes: of those that differ in decimal numbers alone, the first."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        alike: dict[str, list[str]] = {}
        for text in dict.fromkeys(str(warning.message) for warning in caught):
            alike.setdefault(_DECIMAL.sub(lambda found: found["name"] or "", text), []).append(text)
        for first, *others in alike.values():
            count = f" ({len(others) + 1} such notes with other numbers; this is the first.)" if others else ""
            self.note(in_options(" ".join(first.split())) + count)
