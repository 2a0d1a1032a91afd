"""A table, a model of it and calls of the command line, shared by the tests of melc.cli."""

import queue
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from melc.cli.commands import app

# The installed program if there is one, else the module.
_SCRIPT = Path(sys.executable).with_name("melc")
PROGRAM = [str(_SCRIPT)] if _SCRIPT.exists() else [sys.executable, "-m", "melc.cli"]


def patients(n=200, seed=0):
    """Return a table of numbers and text in which a medium dose makes patients well."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"p{k}" for k in range(n)],
            "dose": rng.normal(size=n),
            "age": rng.normal(50, 9, n).round(1),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    level = frame["dose"] + 0.6 * (frame["sex"] == "m")
    return frame.assign(outcome=np.where(np.abs(level) < 0.7, "well", "ill"))


def call(*arguments):
    """Run a command in this process, which saves the time of starting Python."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def fit_patients(folder, *options):
    """Run ``melc fit`` on the table in the folder."""
    return call("fit", folder / "patients.csv", "-t", "outcome", "--drop", "id", *options)


def assert_tells_of_lines(summary, model):
    """The summary of ``melc fit --json`` has all lines of a model of two classes; minor ones last."""
    assert sorted(line["number"] for line in summary["lines"]) == list(range(1, len(model.lines_) + 1))
    told = [(line["minor"], -line["importance"]) for line in summary["lines"]]
    assert told == sorted(told)
    for line in summary["lines"]:
        expected = model.lines_[line["number"] - 1]
        assert (line["found_for"], line["minor"], line["importance"]) == (None, expected.minor, expected.importance)
        assert sorted(f["weight"] for f in line["features"]) == sorted(expected.direction[expected.features])
        effects = [abs(f["effect"]) for f in line["features"]]
        assert effects == sorted(effects, reverse=True)
        assert line["thresholds"] == expected.thresholds.tolist()
        assert line["intervals"] == [("ill", "well")[code] for code in expected.codes]
        assert line["counts"] == expected.counts.tolist()
    importances = [feature["importance"] for feature in summary["strongest_features"]]
    assert importances == sorted(model.importances_, reverse=True)[:8]


def reading(pipe):
    """Read a named pipe in a thread; return the queue that will hold its content.

    If nothing is ever written to the pipe, the thread does not keep the tests from ending.
    """
    content: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=lambda: content.put(pipe.read_bytes()), daemon=True).start()
    return content


def folder_with_model(folder):
    """Write the table and a model of it, fitted by the command line, to a folder and return the folder."""
    patients().to_csv(folder / "patients.csv", index=False)
    fitted = fit_patients(folder, "--n-init", 2, "--no-cv", "-o", folder / "model.json")
    assert fitted.exit_code == 0, fitted.output
    return folder
