"""Tables from pipes, as other programs write them: what is read, and that signals are heard while nothing comes."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from cli_cases import PROGRAM, folder_with_model, patients
from melc.tables import source

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither such pipes nor such signals"),
]

# A part of a table, after which the writer stops.
STALLED = 2 * 2**20
PROMPT = 30  # seconds: bounded, although the machine is busy


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return folder_with_model(tmp_path_factory.mktemp("pipes"))


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_standard_input_of_the_process(folder, tmp_path, command):
    """The commands that read a table more than once copy it first."""
    output = ["--no-cv", "-o", tmp_path / "m.json"] if command == "fit" else ["--cv", "2"]
    arguments = [command, "-", "-t", "outcome", "--drop", "id", "--n-init", "1", *output]
    table = patients().to_csv(index=False)
    done = subprocess.run([*PROGRAM, *map(str, arguments)], input=table, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("command", "amount", "number"),
    [
        ("fit", 0, signal.SIGINT),
        ("fit", STALLED, signal.SIGTERM),
        ("predict", 0, signal.SIGTERM),
        ("predict", STALLED, signal.SIGINT),
    ],
)
def test_signals_end_a_command_that_waits_for_a_pipe(folder, tmp_path, command, amount, number):
    arguments = {
        "fit": ["fit", tmp_path / "pipe", "-t", "outcome", "--drop", "id", "-o", tmp_path / "m.json"],
        "predict": ["predict", folder / "model.json", tmp_path / "pipe", "-o", tmp_path / "p.csv"],
    }[command]
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)  # stays open, so that the pipe does not end
    with start(arguments, tmp_path) as child:
        try:
            feed(writer, amount)
            let_it_wait(child)
            child.send_signal(number)
            _, errors = child.communicate(timeout=PROMPT)
        finally:
            child.kill()
            os.close(writer)
    assert child.returncode == 128 + number
    assert errors.strip() == ("melc: interrupted" if number == signal.SIGINT else "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe"]  # no drafts, no temporary copies


@pytest.mark.parametrize("command", ["predict", "explain"])
def test_a_command_ends_while_the_file_is_read_ahead(folder, tmp_path, command):
    """Arrow reads ahead in a thread of its own, which must neither keep the program from ending nor abort it."""
    values, output, code = {"predict": ("faulty", "p.csv", 1), "explain": (1.0, "e.txt", 0)}[command]
    table = patients().assign(dose=values).to_csv(index=False).encode()
    content = table + table.split(b"\n", 1)[1] * (20 * STALLED // len(table))
    arguments = [command, folder / "model.json", "-", "-o", tmp_path / output]
    done = subprocess.run([*PROGRAM, *map(str, arguments)], input=content, capture_output=True, timeout=120)
    assert done.returncode == code, done.stderr
    assert done.stderr.count(b"\n") == 1  # the error, or what was written
    assert (tmp_path / output).exists() == (code == 0)


def start(arguments, temporary):
    """Start the program as from a terminal: a test run in the background may have been told to ignore interrupts."""
    return subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
        preexec_fn=restore_interrupts,
    )


def restore_interrupts():
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def feed(writer, amount):
    """Write the beginning of a table of about this many bytes; return when the reader has taken nearly all."""
    table = patients().to_csv(index=False).encode()
    header, rows = table.split(b"\n", 1)
    content = (header + b"\n" + rows * (amount // len(rows) + 1)) if amount else b""
    thread = threading.Thread(target=write_all, args=(writer, content), daemon=True)
    thread.start()
    thread.join(PROMPT)
    assert not thread.is_alive()


def write_all(writer, content):
    while content:
        content = content[os.write(writer, content) :]


def let_it_wait(child):
    """Let the program take what is in the pipe, and begin to wait."""
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(timeout=2)


def test_a_signal_that_does_not_end_a_read_is_heard_while_a_pipe_is_silent():
    """Here because another thread receives it; otherwise because it comes just before the read begins."""
    ends, done, closed = os.pipe(), threading.Event(), []

    def interrupt():
        time.sleep(0.2)  # until the read waits
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        if not done.wait(10):
            closed.append("without an answer")
        os.close(ends[1])

    def stop(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, stop)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with open(ends[0], "rb") as pipe, pytest.raises(KeyboardInterrupt):
            list(source._chunks(pipe))
    finally:
        done.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    assert closed == []
