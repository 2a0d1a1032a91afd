"""Models of tables in files: reading, encoding of text columns, fitting, block-wise prediction, cross-validation.

The command line is a thin layer over these functions.
"""

from melc.tables.encoding import Encoding, learn_encoding
from melc.tables.fit import Roles, fit_table, problem_of
from melc.tables.model import TableModel, table_model_from_json
from melc.tables.read import read_blocks, read_table
from melc.tables.source import Source, TableError

__all__ = [
    "Encoding",
    "Roles",
    "Source",
    "TableError",
    "TableModel",
    "fit_table",
    "learn_encoding",
    "problem_of",
    "read_blocks",
    "read_table",
    "table_model_from_json",
]
