"""Run the code in Markdown pages, and compare or write what it prints.

    python tools/pages.py docs/user_guide/reading.md ...

runs the blocks of each page one after the other, like the cells of a notebook, in a temporary folder, and writes what a
block prints into the block of text that follows it. The tests run all pages and compare. Of shell commands, those of
``melc`` are run.
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

_BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_CLOSE = 0.02  # other versions of the packages move the last digits


class Ran(NamedTuple):
    """A block that was run: where it begins in the page, its expected output, if any, and what it printed."""

    start: int
    expected: str | None
    printed: str


def run(text: str, call: Callable[[list[str]], str]) -> Iterator[Ran]:
    """Run the blocks of a page; ``call`` runs the arguments of a ``melc`` command and returns what it prints."""
    names: dict[str, Any] = {"__name__": "page"}
    for block in _BLOCK.finditer(text):
        language, code, expected = block.groups()
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as stdout:
                exec(compile(code, "page", "exec"), names)
            printed = stdout.getvalue()
        else:
            commands = [shlex.split(line, comments=True) for line in code.splitlines()]
            printed = "".join(call(words[1:]) for words in commands if words[:1] == ["melc"])
        yield Ran(block.start(), expected, printed)


def same(expected: str, printed: str) -> bool:
    """Whether two outputs are the same up to white space and the last digits of numbers.

    >>> same("z = 0.514  good", "z = 0.513 good"), same("2 thresholds", "3 thresholds")
    (True, False)
    """
    words = [_NUMBER.sub("#", text).split() for text in (expected, printed)]
    numbers = [[float(found) for found in _NUMBER.findall(text)] for text in (expected, printed)]
    near = (abs(a - b) <= _CLOSE * max(1.0, abs(a)) for a, b in zip(*numbers, strict=False))
    return words[0] == words[1] and all(near)


def _filled(text: str, call: Callable[[list[str]], str]) -> str:
    """Return the page with the outputs as they are now."""
    printed = {ran.start: ran.printed for ran in run(text, call)}

    def replaced(block: re.Match[str]) -> str:
        if block[3] is None:
            return block[0]
        return f"```{block[1]}\n{block[2]}```\n\n```text\n{printed[block.start()].rstrip()}\n```\n"

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
            filled = _filled(page.read_text(encoding="utf-8"), _call)
        page.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
