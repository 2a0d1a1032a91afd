"""The one door to pyarrow."""

from typing import Any


def arrow() -> Any:
    """The library with the parts that we use."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Tables need pyarrow: pip install 'melc[cli]'") from error
    return pyarrow
