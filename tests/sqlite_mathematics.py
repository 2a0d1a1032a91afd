"""A mark that skips tests if SQLite was built without exp and ln."""

import sqlite3

import pytest


def _has_mathematics():
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("SELECT exp(1), ln(2)")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True


needs_sqlite_mathematics = pytest.mark.skipif(
    not _has_mathematics(), reason="this SQLite was built without its mathematical functions"
)
