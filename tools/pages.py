"""Run the code in Markdown pages, and compare or write what it prints.

    python tools/pages.py docs/user_guide/reading.md ...

runs the blocks of each page one after the other, like the cells of a notebook, in a temporary folder, and writes what a
block prints into the block of text that follows it, and the figures that it draws to the files of the pictures that
follow it. The tests run all pages, compare what they print, and count the figures. Of shell commands, those of ``melc``
are run.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

_BLOCK = re.compile(
    r"^```(python|bash)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?((?:\n!\[[^\]]*\]\([^)]*\)\n)*)",
    re.MULTILINE | re.DOTALL,
)
_PICTURE = re.compile(r"\]\(([^)]*)\)")
_DOTS_PER_INCH = 100
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_CLOSE = 0.02  # other versions of the packages move the last digits


class Ran(NamedTuple):
    """A block that was run: where it begins in the page, its expected output, if any, and what it printed.

    ``pictures`` are the files of the pictures that follow it, and ``figures`` those that it drew.
    """

    start: int
    expected: str | None
    printed: str
    pictures: list[str]
    figures: list[Any]


def run(text: str, call: Callable[[list[str]], str]) -> Iterator[Ran]:
    """Run the blocks of a page; ``call`` runs the arguments of a ``melc`` command and returns what it prints."""
    names: dict[str, Any] = {"__name__": "page"}
    for block in _BLOCK.finditer(text):
        language, code, expected, pictures = block.groups()
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as stdout:
                exec(compile(code, "page", "exec"), names)
            printed = stdout.getvalue()
        else:
            commands = [shlex.split(line, comments=True) for line in code.splitlines()]
            printed = "".join(call(words[1:]) for words in commands if words[:1] == ["melc"])
        with _new_figures() as figures:
            yield Ran(block.start(), expected, printed, _PICTURE.findall(pictures), figures)


@contextlib.contextmanager
def _new_figures() -> Iterator[list[Any]]:
    """The figures that are open, which are closed afterwards."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    yield [pyplot.figure(number) for number in pyplot.get_fignums()] if pyplot else []
    if pyplot:
        pyplot.close("all")


def same(expected: str, printed: str) -> bool:
    """Whether two outputs are the same up to white space and the last digits of numbers.

    >>> same("z = 0.514  good", "z = 0.513 good"), same("2 thresholds", "3 thresholds")
    (True, False)
    """
    words = [_NUMBER.sub("#", text).split() for text in (expected, printed)]
    numbers = [[float(found) for found in _NUMBER.findall(text)] for text in (expected, printed)]
    near = (abs(a - b) <= _CLOSE * max(1.0, abs(a)) for a, b in zip(*numbers, strict=False))
    return words[0] == words[1] and all(near)


def _filled(page: Path, call: Callable[[list[str]], str]) -> str:
    """Return the text of a page with the outputs as they are now, and draw its pictures."""
    text, printed = page.read_text(encoding="utf-8"), {}
    for ran in run(text, call):
        printed[ran.start] = ran.printed
        for picture, figure in zip(ran.pictures, ran.figures, strict=True) if ran.pictures else ():
            figure.savefig(page.parent / picture, dpi=_DOTS_PER_INCH, bbox_inches="tight")

    def replaced(block: re.Match[str]) -> str:
        if block[3] is None:
            return block[0]
        return f"```{block[1]}\n{block[2]}```\n\n```text\n{printed[block.start()].rstrip()}\n```\n{block[4]}"

    return _BLOCK.sub(replaced, text)


def _call(arguments: list[str]) -> str:
    from typer.testing import CliRunner

    from melc.cli.commands import app

    done = CliRunner().invoke(app, arguments)
    if done.exit_code:
        raise SystemExit(f"melc {shlex.join(arguments)}: {done.output}")
    return done.output


def main(pages: list[Path]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    for page in [page.absolute() for page in pages]:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            filled = _filled(page, _call)
        page.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
