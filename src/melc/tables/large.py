"""Problems in files of any size: small ones are read into memory, large ones encoded into a memory-mapped file.

A large file is read twice: once to learn the kinds and categories of its columns, and once to encode its rows.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.tables.encoding import Encoding, column_of, encoding_of, refuse_missing
from melc.tables.fit import Roles, against_rest, check_roles, labels_of, problem_of, weights_of
from melc.tables.problem import AnyProblem, Problem, StoredProblem
from melc.tables.read import column_names, parquet_file, plain_columns, read_blocks, read_table, written_blocks
from melc.tables.source import Source, TableError, arrow, as_plain_file, errors_of, opened, writing_temporary_file
from melc.tables.survey import Survey

# Files up to this size, or Parquet files with up to this many bytes of numbers, are read into memory.
MAX_BYTES_IN_MEMORY = 256 * 2**20
# Features up to this size are kept in memory.
MAX_FEATURE_BYTES_IN_MEMORY = 2**30
# More classes than this are taken for a mistake in the choice of the target.
_MOST_CLASSES = 10_000
_BLOCK_ROWS = 65_536


@contextmanager
def open_problem(
    source: Source, roles: Roles, max_bytes: int = MAX_BYTES_IN_MEMORY
) -> Iterator[tuple[AnyProblem, str]]:
    """Yield the classification problem in a file of any size, and the name of the target column.

    Temporary files, for rows that would take much memory, are removed at the end of the block.
    """
    with tempfile.TemporaryDirectory(prefix="melc-") as name, as_plain_file(source, Path(name)) as plain:
        small = problem_of(read_table(plain), roles) if _size(plain) <= max_bytes else None
        yield small if small and _fits_in_memory(small[0]) else _stored_problem(plain, roles, Path(name))


def _fits_in_memory(problem: Problem) -> bool:
    """Whether the features take little memory, or no more than the table; texts of many categories take far more."""
    n_bytes = 8 * len(problem.labels) * len(problem.encoding.feature_names)
    return n_bytes <= max(MAX_FEATURE_BYTES_IN_MEMORY, problem.table.nbytes)


def _size(source: Source) -> int:
    """Return the size of a table in memory, roughly: that of its file, or of the values of a Parquet file as numbers.

    That of a libSVM file is zero, because these are always read into memory.
    """
    with errors_of(source), opened(source) as (stream, format):
        if format == "parquet":
            metadata = parquet_file(stream).metadata
            return 8 * int(metadata.num_rows) * int(metadata.num_columns)
        return 0 if format == "libsvm" else os.path.getsize(source.path)


def _stored_problem(source: Source, roles: Roles, folder: Path) -> tuple[StoredProblem, str]:
    target = check_roles(column_names(source), roles)
    surveys = _surveys(source, roles)
    used = [survey for name, survey in surveys.items() if name not in (target, roles.weights)]
    encoding = _encoding(used, roles.impute)
    kinds = {target: surveys[target].kind, **encoding.kinds}
    kinds |= {} if roles.weights is None else {roles.weights: surveys[roles.weights].kind}
    with writing_temporary_file(), _Rows(encoding, target, roles, folder) as rows:
        for block in read_blocks(source, kinds, len(encoding.feature_names)):
            rows.write(block)
    arrow().default_memory_pool().release_unused()
    X = np.memmap(folder / "rows", dtype=np.float64, mode="r+", shape=(rows.n_rows, len(encoding.feature_names)))
    if roles.impute:
        encoding = _filled(encoding, X)
    X.flush()
    classes, places = np.unique(against_rest(np.array(list(rows.numbers)), roles.positive), return_inverse=True)
    codes = places.astype(np.int8 if len(classes) < 128 else np.int16)[np.fromfile(folder / "codes", dtype=np.int16)]
    _refuse_single_class(target, classes)
    weights = None if roles.weights is None else np.fromfile(folder / "weights")
    rows_in_file = np.memmap(folder / "rows", dtype=np.float64, mode="r", shape=X.shape)
    return StoredProblem(encoding, rows_in_file, classes, codes, weights), target


def _refuse_single_class(target: str, classes: NDArray[Any]) -> None:
    if len(classes) == 1:
        raise TableError(f"The target {target!r} has one class only: {classes.tolist()[0]!r}; two or more are needed.")


def _surveys(source: Source, roles: Roles) -> dict[str, Survey]:
    """Read a file once, and return what its columns hold, except for those to drop."""
    surveys: dict[str, Survey] = {}
    for block, written in written_blocks(source, roles.drop):
        if not surveys:
            surveys = {name: Survey(name, written=written, decimal=source.decimal) for name in block.schema.names}
        for name, values in plain_columns(block).items():
            surveys[name].add(values)
    if not surveys or not next(iter(surveys.values())).n_rows:
        raise TableError(f"{source.name}: the file has a header but no rows.")
    return surveys


def _encoding(surveys: list[Survey], impute: bool) -> Encoding:
    """Return the encoding of the surveyed columns; with ``impute`` the numbers to fill in are not yet known."""
    if not surveys:
        raise TableError("No columns are left to use as features; leave out fewer with --drop.")
    empty = [survey.name for survey in surveys if survey.n_missing == survey.n_rows]
    if empty:
        raise TableError(f"The column {empty[0]!r} has no values; leave it out with --drop.")
    if not impute:
        refuse_missing({survey.name: survey.n_missing for survey in surveys}, surveys[0].n_rows)
    return encoding_of([column_of(survey, impute) for survey in surveys])


class _Rows:
    """Writes encoded rows, the numbers of their classes, and their weights, each to a file in a folder.

    Small arrays that stay in memory between large ones that do not would keep the memory of these from being reused.
    """

    def __init__(self, encoding: Encoding, target: str, roles: Roles, folder: Path) -> None:
        self._encoding, self._target, self._roles = encoding, target, roles
        self._files = [open(folder / name, "wb") for name in ("rows", "codes", "weights")]  # noqa: SIM115
        self.numbers: dict[Any, int] = {}  # of the classes, in the order in which they occur
        self.n_rows = 0

    def __enter__(self) -> "_Rows":
        return self

    def __exit__(self, *_: Any) -> None:
        for file in self._files:
            file.close()

    def write(self, block: Any) -> None:
        """Write the rows of a block."""
        rows, codes, weights = self._files
        rows.write(self._encoding.encode(block, missing_as_nan=self._roles.impute).X.data)
        codes.write(self._codes(block.column(self._target)).data)
        name = self._roles.weights
        if name is not None:
            weights.write(weights_of(block.column(name), name).data)
        self.n_rows += block.num_rows

    def _codes(self, column: Any) -> NDArray[np.int16]:
        """Return the numbers of the classes in a column. New classes get the next number."""
        classes, places = np.unique(labels_of(column, self._target), return_inverse=True)
        numbers = [self.numbers.setdefault(label, len(self.numbers)) for label in classes.tolist()]
        if len(self.numbers) > _MOST_CLASSES:
            raise TableError(
                f"The target {self._target!r} has more than {_MOST_CLASSES} different values; choose a column with "
                "classes with --target."
            )
        return np.array(numbers, dtype=np.int16)[places]


def _filled(encoding: Encoding, X: Any) -> Encoding:
    """Replace NaN in every column of numbers by the median of the others, and return the encoding that does so."""
    columns, place = [], 0
    for column in encoding.columns:
        if column.categories is None:
            median = float(np.nanmedian(X[:, place]))
            for a in range(0, len(X), _BLOCK_ROWS):
                part = X[a : a + _BLOCK_ROWS, place]
                part[np.isnan(part)] = median
            column = replace(column, fill=median)
        columns.append(column)
        place += len(column.feature_names)
    return Encoding(tuple(columns))
