"""Errors of the command line are one line with an exit code; also its help and version."""

import errno
import json
import re
import sys

import pandas as pd
import pytest

from cli_cases import call, folder_with_model, patients
from melc.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return folder_with_model(tmp_path_factory.mktemp("cli"))


COMMANDS = ("fit", "check", "predict", "explain", "plot", "report", "evaluate", "card", "demo", "datasets", "reproduce")
BAD_INPUT = {
    "no such file": (["predict", "MODEL", "nowhere.csv"], "nowhere.csv: No such file"),
    "no such model": (["predict", "nowhere.json", "DATA"], "nowhere.json: No such file"),
    "a model that is none": (["explain", "DATA"], "Not a melc model"),
    "folder as data": (["predict", "MODEL", "."], "Is a directory"),
    "missing target": (["fit", "DATA", "-t", "nope", "-o", "NEW"], "no column 'nope'"),
    "no target": (["fit", "DATA", "-o", "NEW"], "--target"),
    "wrong delimiter": (["fit", "DATA", "-t", "outcome", "--delimiter", ";", "-o", "NEW"], "no column 'outcome'"),
    "identifier column": (["fit", "MANY", "-t", "outcome", "-o", "NEW"], "'id' has 1200 different texts in 1200 rows"),
    "code that is no column": (
        ["fit", "DATA", "-t", "outcome", "--categorical", "zip", "-o", "NEW"],
        "There is no column 'zip'; the columns are 'id', 'dose'",
    ),
    "one class": (["fit", "ONE", "-t", "outcome", "-o", "NEW"], "one class only"),
    "output in no folder": (
        ["fit", "DATA", "-t", "outcome", "-o", "no/such/folder/m.json"],
        "no/such/folder does not exist",
    ),
    "output below a file": (["fit", "DATA", "-t", "outcome", "-o", "HEADER/m.json"], "is a file, not a folder"),
    "output is a loop of links": (["fit", "DATA", "-t", "outcome", "-o", "LOOP"], "leads back to itself"),
    "output is a folder": (["fit", "DATA", "-t", "outcome", "--force", "-o", "."], "is a folder"),
    "output is nothing": (["fit", "DATA", "-t", "outcome", "-o", ""], "is a folder"),
    "header only": (["predict", "MODEL", "HEADER"], "no rows"),
    "empty": (["fit", "EMPTY", "-t", "outcome", "-o", "NEW"], "the file is empty"),
    "newer model": (["explain", "NEWER"], "Upgrade melc"),
    "missing column": (["predict", "MODEL", "ONE"], "'sex'"),
    "class that is none": (
        ["plot", "MODEL", "--class", "dead", "-o", "NEW.png"],
        "--class dead is not a class",
    ),
    "units whose squares overflow": (
        ["fit", "FAR", "-t", "outcome", "-o", "NEW"],
        "Feature 'gross' has a standard dev",
    ),
    "such units, in folds": (["evaluate", "FAR", "-t", "outcome"], "Feature 'gross' has a standard deviation"),
    "priors without their sum": (
        ["fit", "DATA", "-t", "outcome", "--drop", "id", "--priors", "1,2", "-o", "NEW"],
        "--priors 1.0,2.0 add up to 3, but the probabilities of the classes must add up to one. Divide them by their "
        "sum: --priors 0.333333333,0.666666667.",
    ),
    "a class the picture does not know": (
        ["plot", "MODEL", "OTHER", "-o", "NEW.png"],
        "The target 'outcome' contains 'dead', which is not a class of the model",
    ),
    "too many folds": (["evaluate", "DATA", "-t", "outcome", "--drop", "id", "--cv", "150"], "too few for 150 folds"),
}

WRONG_USE = {
    "unknown option": ["fit", "DATA", "--bogus"],
    "unknown command": ["guess"],
    "no output": ["fit", "DATA", "-t", "outcome"],
    "unknown method": ["fit", "DATA", "-t", "outcome", "--method", "magic", "-o", "NEW"],
    "senseless shrinkage": ["fit", "DATA", "-t", "outcome", "--shrinkage", "much", "-o", "NEW"],
    "no number": ["fit", "DATA", "-t", "outcome", "--gamma", "wide", "-o", "NEW"],
    "seed beyond the range": ["fit", "DATA", "-t", "outcome", "--seed", str(2**32), "-o", "NEW"],
    "long delimiter": ["fit", "DATA", "-t", "outcome", "--delimiter", "ab", "-o", "NEW"],
}


@pytest.fixture(scope="module")
def stand_ins(folder):
    """Return the files named in the tables of errors."""
    document = json.loads((folder / "model.json").read_text())
    (folder / "newer.json").write_text(json.dumps(document | {"version": 99}))
    (folder / "empty.csv").touch()
    (folder / "loop.json").symlink_to(folder / "loop.json")
    (folder / "header.csv").write_text("id,dose,age,sex\n")
    pd.DataFrame({"dose": [1, 2, 3], "age": [4, 5, 7], "outcome": "same"}).to_csv(folder / "one.csv", index=False)
    patients(1200).to_csv(folder / "many.csv", index=False)
    patients().rename(columns={"age": "gross"}).drop(columns="id").assign(
        gross=lambda frame: 1e200 * frame["gross"]
    ).to_csv(folder / "far.csv", index=False)
    patients().replace({"outcome": {"ill": "dead"}}).to_csv(folder / "other.csv", index=False)
    names = {"MODEL": "model.json", "DATA": "patients.csv", "NEWER": "newer.json", "EMPTY": "empty.csv"}
    names |= {"HEADER": "header.csv", "ONE": "one.csv", "MANY": "many.csv", "NEW": "new", "NEW.png": "new.png"}
    names |= {"HEADER/m.json": "header.csv/m.json", "LOOP": "loop.json", "FAR": "far.csv", "OTHER": "other.csv"}
    return {role: folder / name for role, name in names.items()}


class TestFaults:
    @pytest.mark.parametrize("name", BAD_INPUT)
    def test_bad_input_is_one_line_and_exit_code_one(self, stand_ins, name):
        arguments, message = BAD_INPUT[name]
        before = sorted(stand_ins["DATA"].parent.iterdir())
        done = call(*(stand_ins.get(argument, argument) for argument in arguments))
        assert done.exit_code == 1, done.output
        assert message in done.stderr
        assert done.stderr.startswith("melc: ")
        assert len(done.stderr.strip().partition("\nThis command works: ")[0].splitlines()) == 1
        assert done.stdout == ""
        assert sorted(stand_ins["DATA"].parent.iterdir()) == before

    @pytest.mark.parametrize("name", WRONG_USE)
    def test_wrong_use_is_exit_code_two(self, stand_ins, name):
        done = call(*(stand_ins.get(argument, argument) for argument in WRONG_USE[name]))
        assert done.exit_code == 2, done.output
        assert "Traceback" not in done.output

    def test_no_permission_to_write(self, stand_ins, monkeypatch):
        def refuse(*_, **__):
            raise PermissionError(errno.EACCES, "Permission denied", "out")

        monkeypatch.setattr("tempfile.mkstemp", refuse)
        done = call("predict", stand_ins["MODEL"], stand_ins["DATA"], "-o", stand_ins["NEW"])
        assert (done.exit_code, done.stderr) == (1, "melc: out: Permission denied\n")

    def test_debug_shows_where(self, stand_ins):
        done = call("fit", stand_ins["EMPTY"], "-t", "outcome", "-o", stand_ins["NEW"], "--debug")
        assert isinstance(done.exception, ValueError)

    def test_every_command_has_help_with_an_example(self):
        listing = call("--help").stdout
        for command in COMMANDS:
            assert command in listing
            text = call(command, "--help").stdout
            assert f"melc {command}" in text.split("Example:")[1]

    @pytest.mark.parametrize("command", [None, *COMMANDS])
    def test_the_help_names_no_types_of_python(self, command):
        text = call(*filter(None, [command]), "--help").stdout
        assert not re.search(r"<\w|\(dynamic\)|default: (\(|-|cv|found)", text), text

    def test_data_sets_of_the_paper(self):
        pytest.importorskip("melc.paper", reason="the paper's evaluation is not part of this checkout")
        listed = json.loads(call("datasets", "--json").stdout)
        assert len(listed) == 10
        assert {"name", "rows", "features", "classes", "source", "at_hand", "where"} == set(listed[0])
        assert "splice" in call("datasets").stdout

    def test_version(self):
        from melc import __version__

        assert call("--version").stdout == f"melc {__version__}\n"

    def test_without_typer_the_error_has_the_remedy(self, monkeypatch):
        monkeypatch.delitem(sys.modules, "melc.cli.commands")
        monkeypatch.setitem(sys.modules, "typer", None)
        with pytest.raises(SystemExit, match=r"needs typer: pip install 'melc\[cli\]'"):
            main()


def test_a_folder_that_cannot_be_written_to_is_an_error_before_any_work(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    result = call("fit", folder / "nowhere.csv", "-t", "outcome", "-o", tmp_path / "model.json")
    assert result.exit_code == 1
    assert "cannot be written to" in result.stderr
