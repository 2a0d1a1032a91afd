"""Progress, notes and errors of the command line.

Results go to standard output, everything else to standard error. An error is a single line.
"""

import functools
import inspect
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from typer.core import TyperCommand, TyperGroup

from melc.model.names import QUOTED

# What `melc` was called with.
_arguments: ContextVar[list[str]] = ContextVar("arguments", default=[])  # noqa: B039
# Names of the values of options in the help, by type. True and false have none.
_VALUES: dict[Any, str] = {bool: "", int: "NUMBER", int | None: "NUMBER", float | None: "NUMBER"}
_VALUES |= {str: "TEXT", str | None: "TEXT", list[str] | None: "NAME", Path: "FILE", Path | None: "FILE"}
# Exit codes.
BAD_INPUT, INTERRUPTED = 1, 130
# Numbers in which warnings of the same kind may differ: decimal ones in a part of a command, any between its parts.
# Quoted names are matched first and kept.
_DECIMAL = re.compile(rf"(?P<name>{QUOTED})|\d+\.\d+(e[+-]\d+)?")
_NUMBER = re.compile(rf"(?P<name>{QUOTED})|\d+(\.\d+)?(e[+-]\d+)?")
# Warnings that Python does not show either, unless asked to.
_FOR_DEVELOPERS = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
# How matplotlib warns of a character that a font does not have, and what is said instead.
_MISSING_GLYPH = re.compile(r"Glyph \d+ \(.*\) missing from font.*", re.DOTALL)
_SAID_OF_GLYPHS = "The font of the picture lacks some of the characters; boxes stand for them."

# Characters that a terminal obeys instead of showing them: control characters but for line breaks and tabs, marks that
# reverse the direction of the text, separators of lines, and halves of characters.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

# Parameters in messages of the library, and the options that stand for them.
_WITH_SAME_NAME = ("max_iter", "max_rows", "n_init", "tol", "gamma", "priors", "shrinkage")
_CHOICES = ("shrinkage auto", "priors empirical", "gamma auto", "selection divergence", "selection likelihood")
_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _WITH_SAME_NAME}
_OPTIONS |= {'{}="{}"'.format(*choice.split()): f"--{choice}" for choice in _CHOICES}
_OPTIONS |= {
    "max_lines": "--lines",
    "n_resamples": "--resamples",
    "sample_weight": "--weights",
    "random_state": "--seed",
    "class_label": "--class",
}
_WORDS = "|".join(re.escape(word) for word in sorted(_OPTIONS, key=len, reverse=True))
_LISTS = r"(?<![\w-])priors=\[(?P<priors>[^\]]*)\]"
_PATTERN = re.compile(rf"{QUOTED}|{_LISTS}|(?<![\w-])(?:{_WORDS})(?!\w)")


def printable(text: str) -> str:
    """Return a text as it can be printed: characters that a terminal would obey are escaped, as in JSON.

    Names of columns and labels come from files, and could otherwise move the cursor or change the title of a window.

    Examples
    --------
    >>> print(printable("dose\\x1b[2J"))
    dose\\u001b[2J
    """
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def echo(text: str, err: bool = False) -> None:
    """Print a text that may contain names and labels from files."""
    typer.echo(printable(text), err=err)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with its errors turned into one line and an exit code, and its warnings into notes.

    With ``--debug`` errors are raised, so that the traceback is shown. Parameters whose type is a dataclass of
    :mod:`melc.cli.options` are replaced by its fields.
    """
    parameters = inspect.signature(command).parameters.values()
    groups: dict[str, Any] = {
        parameter.name: parameter.annotation for parameter in parameters if is_dataclass(parameter.annotation)
    }

    @functools.wraps(command)
    def run(debug: bool = False, **options: Any) -> None:
        for name, group in groups.items():
            options[name] = group(**{field.name: options.pop(field.name) for field in fields(group)})
        try:
            with Reporter(options.get("quiet", False)).warnings_as_notes():
                command(debug=debug, **options)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise typer.Exit(BAD_INPUT) from None  # the reader of standard output has closed it, as `head` does
        except Exception as error:
            if _follows_interrupt(error):
                raise typer.Exit(INTERRUPTED) from None
            if debug or not isinstance(error, (ValueError, OSError, ImportError, MemoryError)):
                raise
            print(printable(f"melc: {_message(error)}{_working_command(error)}"), file=sys.stderr)
            raise typer.Exit(BAD_INPUT) from None

    options = [option for parameter in parameters for option in _options_in(parameter)]
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return run


def _options_in(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    """Return the fields of a group of options as parameters, and any other parameter as it is."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    if is_dataclass(parameter.annotation):
        given = [(field.name, field.default, field.type) for field in fields(parameter.annotation)]
    else:
        given = [(parameter.name, parameter.default, parameter.annotation)]
    for name, _, annotation in given:
        _name_value(name, annotation)
    return [inspect.Parameter(name, keyword, default=default, annotation=kind) for name, default, kind in given]


def _name_value(name: str, annotation: Any) -> None:
    """Name an argument or the value of an option for the help, in place of a type of Python."""
    for info in get_args(annotation)[1:]:
        if isinstance(info, typer.models.ArgumentInfo):
            info.metavar = name.upper()
        elif info.metavar is None:
            info.metavar = _VALUES.get(get_args(annotation)[0], "WORD")


def _follows_interrupt(error: BaseException | None) -> bool:
    """Whether an error was raised while an interrupt was handled: an interrupted import may end in any error."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _message(error: BaseException) -> str:
    """Return the message of an error: one line, or a line for each of several faults."""
    if isinstance(error, MemoryError):
        return "not enough memory; use fewer rows or columns"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return in_options("\n".join(" ".join(line.split()) for line in str(error).splitlines()))


def _working_command(error: BaseException) -> str:
    """Return the command with the options that mend an error, if they are known, as a further line."""
    remedy = getattr(error, "remedy", ())
    return f"\nThis command works: {called_with(_arguments.get()[0], remedy)}" if remedy and _arguments.get() else ""


def called_with(command: str, more: Sequence[str]) -> str:
    """Return the command line that was called with another command and more options."""
    return " ".join(map(_shell_word, ["melc", command, *_arguments.get()[1:], *more]))


def _shell_word(word: str) -> str:
    """Return a word as it is typed in a shell; characters that a terminal would obey as in bash and zsh.

    Examples
    --------
    >>> print(_shell_word("blood sugar"), _shell_word("dose\\x1b[2J"))
    'blood sugar' $'dose\\x1b[2J'
    """
    if not _OBEYED.search(word):
        return shlex.quote(word)
    text = re.sub(r"[\\']", r"\\\g<0>", word)
    text = _OBEYED.sub(lambda found: "".join(f"\\x{byte:02x}" for byte in os.fsencode(found[0])), text)
    return f"$'{text}'"


def _without_types(parameters: Sequence[Any]) -> Any:
    """Return the parameters of a command for its help, which names no types of Python for arguments and switches."""
    for parameter in parameters:
        if parameter.param_type_name == "argument" or parameter.metavar is None:
            parameter.display_type_rich = lambda ctx: None
    return parameters


class Command(TyperCommand):
    """A command of ``melc``."""

    def get_params(self, ctx: Any) -> Any:
        return _without_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if hasattr(error, "message"):  # of wrong use: it may name a file that was given too many
                error.message = printable(error.message)
            raise


class Commands(TyperGroup):
    """The commands of ``melc``, which remember the arguments they were called with."""

    def get_params(self, ctx: Any) -> Any:
        return _without_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _arguments.set(list(args))
        return super().parse_args(ctx, args)


def in_options(message: str) -> str:
    """Return a message with the parameters of the models replaced by options.

    Examples
    --------
    >>> in_options("Class 'tol' hardly varies. Raise max_iter (now 200) or tol (now 1e-05).")
    "Class 'tol' hardly varies. Raise --max-iter (now 200) or --tol (now 1e-05)."
    """
    return _PATTERN.sub(_in_options, message)


def _in_options(found: re.Match[str]) -> str:
    """Return the option for a parameter; names of columns and other quoted values stay as they are."""
    if found["priors"] is not None:
        return f"--priors {found['priors'].replace(' ', '')}"
    return _OPTIONS.get(found[0], found[0])


class Reporter:
    """Writes notes, if ``noting``, and on a terminal a progress bar to standard error; nothing if ``quiet``."""

    def __init__(self, quiet: bool, *, noting: bool = True) -> None:
        self.quiet, self.noting = quiet, noting
        # Names and labels are printed as they are: [b] is no markup, :b: no picture, and numbers have no colours.
        as_written: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
        self.console = Console(stderr=True, quiet=quiet, soft_wrap=True, **as_written)
        self._noted: set[str] = set()

    def note(self, text: str) -> None:
        """Print a line that starts with "note:"."""
        if self.noting:
            self.console.print(printable(f"note: {text}"))

    def wrote(self, what: str, path: Path) -> None:
        """Print where something was written, if that is a file."""
        if not self.quiet and str(path) != "-":
            echo(f"{what} written to {path}", err=True)

    def note_unseen(self, counts: dict[str, int]) -> None:
        """Print a note for each category with values that the model does not know."""
        for name, count in counts.items():
            self.note(
                f"column {name!r}: {count} values do not occur in the training data; they say nothing about the class"
            )

    @contextmanager
    def progress(self, what: str, total: int | None = None) -> Iterator[Callable[[], None]]:
        """Show a progress bar, which counts up to ``total`` if given; yield the function to call after each step.

        Warnings of the block become notes.
        """
        counting = [MofNCompleteColumn()] if total else []
        described = TextColumn("{task.description}", markup=False)
        columns = [SpinnerColumn(), described, BarColumn(), *counting, TimeElapsedColumn()]
        shown = not self.quiet and self.console.is_terminal
        with Progress(*columns, console=self.console, transient=True, disable=not shown) as progress:
            task = progress.add_task(printable(what), total=total)
            with self.warnings_as_notes():
                yield lambda: progress.advance(task)

    @contextmanager
    def reading(self, data: str, rows: AbstractContextManager[Any]) -> Iterator[Any]:
        """Show a progress bar while ``rows`` reads a table; yield what it has read until the end of the block."""
        with ExitStack() as stack:
            with self.progress(f"reading {data}"):
                table = stack.enter_context(rows)
            yield table

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Print the warnings of this block as notes: of those that differ in decimal numbers alone, the first.

        What an earlier block has noted is not repeated with other numbers, as a fold of cross-validation would. If the
        block ends in an error, the notes come before it, since they may explain it; those on overflow are left out.
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for category in _FOR_DEVELOPERS:
                warnings.simplefilter("ignore", category)
            try:
                yield
            except BaseException:
                self._note_all([each for each in caught if issubclass(each.category, UserWarning)])
                raise
        self._note_all(caught)

    def _note_all(self, caught: list[warnings.WarningMessage]) -> None:
        alike: dict[str, list[str]] = {}
        for text in dict.fromkeys(_MISSING_GLYPH.sub(_SAID_OF_GLYPHS, str(warning.message)) for warning in caught):
            if _without(_NUMBER, text) not in self._noted:
                alike.setdefault(_without(_DECIMAL, text), []).append(text)
        for first, *others in alike.values():
            count = f" ({len(others) + 1} such notes with other numbers; this is the first.)" if others else ""
            self.note(in_options(" ".join(first.split())) + count)
        self._noted |= {_without(_NUMBER, text) for text in alike}


def _without(numbers: re.Pattern[str], text: str) -> str:
    """Return a text without numbers, except in quoted names."""
    return numbers.sub(lambda found: found["name"] or "", text)
