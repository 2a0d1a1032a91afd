"""Import of pyarrow. The only place where it is imported, so that the rest works without it."""

from typing import Any


def arrow() -> Any:
    """Return pyarrow with the submodules used here."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Tables need pyarrow: pip install 'melc[cli]'") from error
    return pyarrow
