"""The paper's evaluation: data sets, protocol, records, tables, figures, report.

`reproduce` runs the evaluation and writes the report. `melc.paper.datasets` loads the ten data sets.
"""

from melc.paper.datasets import DataSet, DataSetError, list_datasets, load

__all__ = ["DataSet", "DataSetError", "list_datasets", "load", "reproduce"]


def __getattr__(name: str) -> object:
    # Imported on first use, because it needs pandas and matplotlib; the data sets do not.
    if name == "reproduce":
        from melc.paper.pipeline import reproduce

        return reproduce
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
