"""Tables in files: reading, what their columns hold, and models on rows of files of any size.

The command line is a thin layer over these functions.
"""

from melc.tables.read import read_blocks, read_table
from melc.tables.roles import Roles
from melc.tables.source import Source, TableError
from melc.tables.training import Training, open_training

__all__ = ["Roles", "Source", "TableError", "Training", "open_training", "read_blocks", "read_table"]
