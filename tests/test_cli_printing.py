"""What is printed of names and labels from files: nothing that a terminal would obey."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from contextvars import Context

import numpy as np
import pytest

from cli_cases import call
from melc.cli import main
from melc.cli.commands import app
from melc.cli.console import Reporter, called_with, printable

TITLE, REVERSED = "\x1b]0;owned\x07", "\u202e"
TARGET = "\x9boutcome"
OBEYED = "\x1b\x07\x9b\u202e\u2028"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with a header and a label that a terminal would obey, and a model of it."""
    folder = tmp_path_factory.mktemp("escapes")
    rng = np.random.default_rng(0)
    with open(folder / "table.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow([f"dose{TITLE}", f"age{REVERSED}", TARGET])
        for dose, age in rng.normal(size=(80, 2)):
            table.writerow([dose, age, f"ill{TITLE}" if dose > 0 else f"well{REVERSED}"])
    done = call("fit", folder / "table.csv", "--target", TARGET, "-o", folder / "model.json")
    assert done.exit_code == 0, done.output
    return folder


def test_escapes_are_shown_and_not_sent():
    assert printable("a\x1b[2J\x9b\u202eb\n\tc") == "a\\u001b[2J\\u009b\\u202eb\n\tc"
    assert printable("żółć — naïve 你好 🙂") == "żółć — naïve 你好 🙂"


FIT = ["fit", "table.csv", "-o", "again.json", "--force", "--target"]


@pytest.mark.parametrize(
    "command",
    [
        [*FIT, TARGET],
        [*FIT, TARGET, "--json"],
        [*FIT, "none"],
        ["explain", "model.json"],
        ["explain", "model.json", "table.csv", "--rows", "2"],
        ["evaluate", "table.csv", "--model", "model.json"],
    ],
)
def test_commands_print_nothing_that_a_terminal_obeys(folder, command):
    done = call(*(folder / word if "." in word else word for word in command))
    assert done.exit_code == (1 if "none" in command else 0), done.output
    printed = done.stdout + done.stderr
    assert "\\u" in printed
    assert not set(OBEYED) & set(printed)
    if "--json" in command:
        assert f"ill{TITLE}" in str(json.loads(done.stdout)).encode().decode("unicode_escape")


def test_a_card_shows_what_a_terminal_would_obey_and_no_warning(folder, tmp_path):
    options = ["--target", TARGET, "--max-features", 1, "--cv", 2, "--title", f"5\xa0mg {TITLE}"]
    done = call("card", folder / "table.csv", *options, "-o", tmp_path / "card.svg")
    assert done.exit_code == 0, done.output
    assert done.stderr == f"Card written to {tmp_path / 'card.svg'}\n"
    assert "5\xa0mg \\x1b]0;owned" in (tmp_path / "card.svg").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("bash") is None, reason="the command is read by bash")
def test_a_shell_reads_the_names_in_a_command_to_copy():
    names = [f"id{TITLE}", f"it's {REVERSED}\\n", TARGET, "two\nlines", "$(echo)\x1b", "plain", "half\udcff"]
    command = Context().run(called_with, "fit", names)  # as if no command had been called before
    assert command == printable(command)
    shell = ["bash", "-c", f"melc() {{ printf '%s\\0' \"$@\"; }}\n{command}"]
    read = subprocess.run(shell, capture_output=True, check=True).stdout
    assert [os.fsdecode(name) for name in read.split(b"\0")] == ["fit", *names, ""]


def test_a_traceback_shows_escapes_and_does_not_send_them(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["melc", "explain", str(tmp_path / f"no{TITLE}.json"), "--debug"])
    with pytest.raises(SystemExit) as end:
        main()
    assert str(end.value.code).startswith("Traceback")
    assert "FileNotFoundError" in str(end.value.code)
    assert not set(OBEYED) & set(str(end.value.code))


def test_a_file_given_too_many_is_named_with_escapes():
    done = call("check", "table.csv", f"more{REVERSED}.csv")
    assert done.exit_code == 2
    assert "more\\u202e.csv" in done.stderr
    assert REVERSED not in done.stderr


class Screen(io.TextIOWrapper):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    "command",
    [
        ["predict", "model.json", "table.csv"],
        ["predict", "model.json", "table.csv", "--json", "--proba", "--keep", f"age{REVERSED}"],
        ["explain", "model.json", "--format", "sql"],
        ["explain", "model.json", "--format", "json"],
    ],
)
def test_what_goes_to_files_is_shown_on_a_terminal(folder, command, monkeypatch):
    """Pipes get the bytes as they are, a screen gets escapes."""
    arguments = [str(folder / word) if word in ("model.json", "table.csv") else word for word in command]
    piped = call(*arguments).stdout
    assert set(OBEYED) & set(piped)
    screen = Screen(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", screen)
    app([*arguments, "--quiet"], standalone_mode=False)
    assert screen.buffer.getvalue().decode() == printable(piped)
    if {"--json", "json"} & set(command):
        assert json.loads(screen.buffer.getvalue()) == json.loads(piped)


MARKUP = "[/a][red]:b:"


def test_a_file_name_in_a_progress_bar_is_no_markup(tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("COLUMNS", "300")
    (tmp_path / "runs[").mkdir()
    table = tmp_path / f"runs{MARKUP}.csv"
    table.write_text("age,outcome\n1,well\n2,ill\n")
    done = call("check", table)
    assert done.exit_code == 0, done.output
    assert f"reading {table}" in done.stderr


def test_a_name_in_a_note_is_no_markup(capsys):
    Reporter(quiet=False).note(f"column '{MARKUP}' is constant")
    assert capsys.readouterr().err == f"note: column '{MARKUP}' is constant\n"
