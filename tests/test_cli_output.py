"""Where the commands write to: files, standard output, pipes and devices; and what is left when they are stopped."""

import json
import os
import signal
import subprocess
import time

import pytest

from cli_cases import PROGRAM, call, fit_patients, folder_with_model, reading
from melc.export import from_json


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return folder_with_model(tmp_path_factory.mktemp("cli"))


def start(*arguments, **options):
    command = [*PROGRAM, *(str(argument) for argument in arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


class TestPipesAndDevices:
    @pytest.mark.parametrize("force", [[], ["--force"]])
    def test_predictions_go_through_a_pipe(self, folder, tmp_path, force):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        read = reading(pipe)
        done = call("predict", folder / "model.json", folder / "patients.csv", "-o", pipe, *force)
        assert done.exit_code == 0, done.output
        assert pipe.is_fifo()
        expected = call("predict", folder / "model.json", folder / "patients.csv").stdout
        assert read.get(timeout=10).decode() == expected

    def test_a_picture_goes_through_a_pipe(self, folder, tmp_path):
        pipe = tmp_path / "pipe.png"
        os.mkfifo(pipe)
        read = reading(pipe)
        done = call("plot", folder / "model.json", "-o", pipe)
        assert done.exit_code == 0, done.output
        assert read.get(timeout=10).startswith(b"\x89PNG")

    def test_a_link_into_a_missing_folder_is_refused_before_any_work(self, folder, tmp_path):
        link = tmp_path / "model.json"
        link.symlink_to(tmp_path / "missing" / "model.json")
        done = fit_patients(folder, "-o", link)
        assert done.exit_code == 1
        assert f"the folder {tmp_path / 'missing'} does not exist; create it first" in done.stderr


class TestStandardOutput:
    def test_model(self, folder):
        done = fit_patients(folder, "--n-init", 2, "--no-cv", "-o", "-")
        assert done.exit_code == 0, done.output
        assert from_json(done.stdout).feature_names_in_.tolist() == ["dose", "age", "sex"]
        assert done.stdout.endswith("}\n")
        assert "Model written to standard output" in done.stderr

    def test_model_and_its_summary_as_json_do_not_mix(self, folder):
        done = fit_patients(folder, "--json", "-o", "-")
        assert (done.exit_code, done.stdout) == (1, "")
        assert "would mix" in done.stderr

    def test_predictions_rule_and_picture(self, folder):
        explicit = call("predict", folder / "model.json", folder / "patients.csv", "-o", "-")
        assert explicit.stdout == call("predict", folder / "model.json", folder / "patients.csv").stdout
        assert json.loads(call("explain", folder / "model.json", "--format", "json", "-o", "-").stdout)
        assert call("plot", folder / "model.json", "-o", "-").stdout_bytes.startswith(b"\x89PNG")


# In short steps: a signal that comes just before a sleep begins is heard after it.
WAIT = "for _ in range(600): time.sleep(0.1)"


@pytest.mark.slow
class TestStopped:
    def test_termination_leaves_no_draft(self, folder, tmp_path):
        data = tmp_path / "data"
        os.mkfifo(data)
        (tmp_path / "out").mkdir()
        process = start("predict", folder / "model.json", data, "-o", tmp_path / "out" / "p.csv")
        with open(data, "wb") as stream:
            stream.write(b"dose,age")
            stream.flush()
            wait_until(lambda: list((tmp_path / "out").iterdir()))  # the draft
            process.send_signal(signal.SIGTERM)
            _, complaint = process.communicate(timeout=60)
        assert list((tmp_path / "out").iterdir()) == []
        assert (process.returncode, complaint) == (128 + signal.SIGTERM, b"")

    @pytest.mark.parametrize("imported", ["sklearn", "numba", "typer", "pyarrow"])
    def test_interrupt_during_imports_is_no_traceback(self, folder, tmp_path, imported):
        interrupt_import(folder, tmp_path, imported, WAIT)

    def test_interrupt_that_an_import_turns_into_an_error_is_no_error(self, folder, tmp_path):
        """Some modules say that they cannot be imported, whatever the cause."""
        lines = ["try:", f"    {WAIT}", "except BaseException:", "    raise ImportError('broken') from None"]
        interrupt_import(folder, tmp_path, "sklearn", *lines)


def interrupt_import(folder, tmp_path, imported, *lines):
    """Interrupt a command in an import, and check that it says no more than that it was interrupted.

    A module of that name, found first, tells when it is being imported and then runs the lines.
    """
    told = tmp_path / "told"
    tell = ["import pathlib, time", f"pathlib.Path({str(told)!r}).touch()"]
    (tmp_path / f"{imported}.py").write_text("\n".join([*tell, *lines]))
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, others)])}
    process = start("predict", folder / "model.json", folder / "patients.csv", env=environment)
    wait_until(told.exists)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert complaint in (b"", b"melc: interrupted\n")


def wait_until(happened, seconds=60):
    """Wait until a function returns something true."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
