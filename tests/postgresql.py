"""A PostgreSQL server of its own for tests: in a temporary folder, on loopback, gone afterwards."""

import csv
import io
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

_USER = "postgres"
_NULL = "\\N"


def _program(name):
    """Return the path of a program of PostgreSQL; Debian has those of the server outside the search path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name))
    path = os.pathsep.join([*(str(folder) for folder in reversed(folders)), os.environ["PATH"]])
    return shutil.which(name, path=path)


@contextmanager
def server():
    """Yield a function that runs a script of SQL and returns what it prints; skip the test without PostgreSQL."""
    initdb, pg_ctl, psql = (_program(name) for name in ("initdb", "pg_ctl", "psql"))
    if not (initdb and pg_ctl and psql):
        pytest.skip("PostgreSQL is not installed")
    # The server refuses to run as root.
    as_user = ["runuser", "-u", _USER, "--"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="melc-postgresql-") as folder:
        password, data = secrets.token_hex(), f"{folder}/data"
        Path(folder, "password").write_text(password)
        if as_user:
            for path in (folder, f"{folder}/password"):
                shutil.chown(path, _USER)
        _run([*as_user, initdb, "-D", data, "-U", _USER, "-A", "scram-sha-256", f"--pwfile={folder}/password"], folder)
        port = _free_port()
        options = f"-c listen_addresses=127.0.0.1 -p {port} -c unix_socket_directories= -c fsync=off -c jit=off"
        _run([*as_user, pg_ctl, "-D", data, "-l", f"{folder}/log", "-w", "-o", options, "start"], folder)
        connection = {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": _USER, "PGPASSWORD": password}
        try:
            yield lambda script: _run(
                [psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "postgres"], folder, script, connection
            )
        finally:
            _run([*as_user, pg_ctl, "-D", data, "-w", "-m", "immediate", "stop"], folder)


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _run(command, folder, script="", settings=None):
    environment = {**os.environ, "LC_ALL": "C.UTF-8", **(settings or {})}
    # The server keeps the files open that it is given, so a pipe would never end.
    with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
        done = subprocess.run(
            command, input=script, text=True, cwd=folder, env=environment, stdout=printed, stderr=subprocess.STDOUT
        )
        printed.seek(0)
        text = printed.read()
    assert done.returncode == 0, text
    return text


def run_on(run_script, query, frame, table="data", types=None, before=""):
    """Return the rows that PostgreSQL gives for a query on a table with the rows of the frame, in their order.

    ``types`` are those of the columns by name, ``before`` is SQL that is run first.
    """
    rows = frame.reset_index(drop=True).rename_axis("number of row").reset_index()
    quoted = ['"' + name.replace('"', '""') + '"' for name in [table, *rows.columns]]
    kinds = ["bigint" if kind.kind in "iu" else "double precision" for kind in rows.dtypes.astype(object)]
    kinds = [(types or {}).get(name, kind) for name, kind in zip(rows.columns, kinds, strict=True)]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(quoted[1:], kinds, strict=True))
    written = run_script(
        f"CREATE TEMPORARY TABLE {quoted[0]} ({columns});\n"
        f"COPY {quoted[0]} FROM STDIN (FORMAT csv, NULL '{_NULL}');\n"
        f"{rows.to_csv(index=False, header=False, na_rep=_NULL)}\\.\n"
        f"{before};\nCOPY ({query}) TO STDOUT (FORMAT csv, NULL '{_NULL}');\n"
    )
    found = [[_value(cell) for cell in row] for row in csv.reader(io.StringIO(written))]
    return [tuple(row[1:]) for row in sorted(found, key=lambda row: row[0])]


def _value(cell):
    """Return a cell of the result: NULL, a truth value, a number or a text."""
    known = {_NULL: None, "t": True, "f": False}
    if cell in known:
        return known[cell]
    try:
        return float(cell)
    except ValueError:
        return cell
