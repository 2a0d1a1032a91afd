"""Nothing in a file is executed, no network connection is opened, and names are escaped in every output."""

import io
import json
import pickle
import sqlite3
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
import skops.io

from cli_cases import call
from melc import MELC
from melc.export import from_json, to_json, to_sql

SCRIPT = "<script>alert(1)</script>"
NAMES = [f"--> {SCRIPT}", '"; DROP TABLE data; --', "$x^", "a & b ]]>"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table whose column names and classes are injection attempts, and a model of it."""
    place = tmp_path_factory.mktemp("trust")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 4)), columns=NAMES)
    table["target"] = np.where(table[NAMES[0]] > 0, SCRIPT, "'; DROP TABLE data; --")
    table.to_csv(place / "table.csv", index=False)
    options = ("-t", "target", "--n-init", 1, "--no-cv", "-o", place / "model.json")
    done = call("fit", place / "table.csv", *options)
    assert done.exit_code == 0, done.output
    return place


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["html", "svg", "png"])
def test_pictures_show_names_as_names(folder, tmp_path, ending):
    picture = tmp_path / f"picture.{ending}"
    done = call("plot", folder / "model.json", folder / "table.csv", "-o", picture)
    assert done.exit_code == 0, done.output
    content = picture.read_bytes()
    assert b"<script" not in content
    if ending == "html":
        assert b"&lt;script&gt;alert(1)" in content


def test_a_query_quotes_names_and_labels(folder):
    written = call("explain", folder / "model.json", "--format", "sql").output
    with sqlite3.connect(":memory:") as data:
        pd.read_csv(folder / "table.csv").to_sql("data", data, index=False)
        labels = {row[0] for row in data.execute(f'SELECT "prediction" FROM ({written.rstrip().rstrip(";")})')}
        assert data.execute("SELECT count(*) FROM data").fetchone() == (80,)
    assert labels == {SCRIPT, "'; DROP TABLE data; --"}


def test_a_model_in_a_notebook_escapes_its_parameters():
    assert "<script>alert(1)" not in MELC(method=SCRIPT)._repr_html_()
    frame = pd.DataFrame([[0.0], [1.0], [4.0], [5.0]], columns=[SCRIPT])
    model = MELC(n_init=1, random_state=0, priors=[0.25, 0.75]).fit(frame, [0, 0, 1, 1])
    assert "<script>alert(1)" not in model._repr_html_()
    assert to_sql(model).count(f'r."{SCRIPT}"') == to_sql(model).count(SCRIPT) > 0


class Attack:
    def __reduce__(self):
        return print, ("unpickled",)


@pytest.mark.parametrize("command", ["predict", "explain", "plot", "evaluate"])
def test_a_file_that_is_no_json_is_refused_unread(command, folder, tmp_path):
    model = MELC(n_init=1, random_state=0).fit(np.arange(4.0)[:, None], [0, 0, 1, 1])
    for content in (pickle.dumps(Attack()), pickle.dumps(model), skops.io.dumps(model)):
        (tmp_path / "model.json").write_bytes(content)
        arguments = [tmp_path / "model.json", *([] if command == "explain" else [folder / "table.csv"])]
        if command == "plot":
            arguments += ["-o", tmp_path / "p.svg"]
        if command == "evaluate":
            arguments = [tmp_path / "model.json", "-t", "target"]  # a table is expected here
        done = call(command, *arguments)
        assert done.exit_code == 1, done.output
        assert "unpickled" not in done.output
        assert "Traceback" not in done.output


# Everything runs once before the guard is set, because numba loads compiled code from a pickled cache.
GUARDED = """
import sys
import warnings

import numpy as np
from typer.testing import CliRunner

import melc
from melc.cli.commands import app
from melc.export import from_json, to_json

warnings.simplefilter("ignore")


def everything():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = melc.MELC(n_init=1, random_state=0).fit(X, X[:, 0] > 0)
    from_json(to_json(model)).predict_proba(X)
    for arguments in {commands!r}:
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, (arguments, done.output, done.exception)


def guard(event, arguments):
    if event.startswith("socket.") or event in ("pickle.find_class", "urllib.Request", "os.system", "os.exec"):
        happened.append(event)
        raise RuntimeError(event)


happened = []
everything()
sys.addaudithook(guard)
everything()
assert not happened, happened
print("nothing happened")
"""


@pytest.mark.slow
def test_no_socket_is_opened_and_nothing_unpickled(folder, tmp_path):
    table, model = str(folder / "table.csv"), str(folder / "model.json")
    commands = [
        ["fit", table, "-t", "target", "--n-init", "1", "--no-cv", "--force", "-o", str(tmp_path / "again.json")],
        ["predict", model, table, "--force", "-o", str(tmp_path / "p.csv")],
        ["explain", model],
        ["explain", model, "--format", "sql"],
        ["plot", model, table, "--force", "-o", str(tmp_path / "p.svg")],
        ["evaluate", table, "-t", "target", "--n-init", "1"],
        ["datasets"],
    ]
    code = textwrap.dedent(GUARDED).format(commands=commands)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.strip().endswith("nothing happened"), done.stderr


def test_the_guard_hears_a_socket_and_a_pickle():
    for attempt in ("import socket; socket.create_connection(('127.0.0.1', 9))", "import pickle; pickle.loads(bad)"):
        code = GUARDED[GUARDED.index("def guard") : GUARDED.index("everything()\nsys")].replace("happened = []", "")
        bad = pickle.dumps(Attack())
        code = f"import sys\nhappened = []\nbad = {bad!r}\n{code}\nsys.addaudithook(guard)\n{attempt}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        assert "RuntimeError" in done.stderr


def test_a_model_file_is_bounded(folder):
    text = to_json(MELC(n_init=1, random_state=0).fit(np.arange(4.0)[:, None], [0, 0, 1, 1]))
    with pytest.raises(ValueError, match="exceed the limit of 100"):
        from_json(text, max_bytes=100)
    with pytest.raises(ValueError, match="nested too deeply"):
        from_json("[" * 200_000)
    document = json.loads(text)
    document["lines"][0]["knots"] = ["os.system('true')"]
    with pytest.raises(ValueError, match="expected a finite number"):
        from_json(json.dumps(document))


def test_a_file_is_read_up_to_its_limit_only(folder, monkeypatch):
    """An endless file is read up to the limit."""
    asked = []

    class Endless(io.BytesIO):
        def read(self, size=-1):
            asked.append(size)
            return b"[" * size

    monkeypatch.setattr("melc.export.document.MOST_BYTES", 1000)
    monkeypatch.setattr("builtins.open", lambda *_: Endless())
    from melc.cli.files import load_model

    with pytest.raises(ValueError, match="Not a melc model"):
        load_model("model.json")
    assert asked == [1001]


def test_parameters_of_every_kind_are_written_as_plain_data():
    X, y = np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1]
    given = {"gamma": np.float64(0.5), "priors": np.array([0.25, 0.75]), "random_state": np.random.RandomState(0)}
    model = MELC(n_init=1, **given).fit(X, y)
    written = json.loads(to_json(model))["parameters"]
    assert (written["gamma"], written["priors"], written["random_state"]) == (0.5, [0.25, 0.75], None)
    model.set_params(verbose=Attack())
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        to_json(model)


def test_labels_that_are_objects_are_not_written():
    model = MELC(n_init=1, random_state=0).fit(np.arange(4.0)[:, None], [0, 0, 1, 1])
    model.classes_ = np.array([Attack(), Attack()], dtype=object)
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        to_json(model)
