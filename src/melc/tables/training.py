"""Rows to learn from, in files of any size: small ones are read into memory, large ones of numbers mapped.

A large file is read twice: once to learn what its columns hold, and once to read its rows. If they are numbers and none
is missing, they are written to a file that is mapped, so that the table may be larger than memory. Columns with texts,
dates or missing values are read into memory, texts as numbers of categories.
"""

import os
import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.base import LineClassifier
from melc.fit.validation import log_prior_ratios
from melc.model.names import QUOTED
from melc.tables.csv_files import Kind
from melc.tables.frames import FrameRows, MappedRows, kinds_of
from melc.tables.inspection import contents_to_fit, described, surveys_of_file, surveys_of_table
from melc.tables.read import column_names, parquet_file, read_blocks, read_table
from melc.tables.roles import Roles, against_rest, check_roles, labels_of, weights_of
from melc.tables.source import NO_FILE, Source, TableError, arrow, as_plain_file, errors_of, opened

# Files up to this size, or Parquet files with up to this many bytes of numbers, are read into memory.
MAX_BYTES_IN_MEMORY = 256 * 2**20
# More classes than this are taken for a mistake in the choice of the target.
_MOST_CLASSES = 10_000
# A fit of texts, dates and missing values holds about so many copies of the table as numbers.
_COPIES_IN_A_FIT = 4
# The number of a class in a message, but not in a quoted name.
_CLASS = re.compile(rf"{QUOTED}|\b([Cc]lass) (\d+)\b")


@dataclass(frozen=True)
class Training:
    """Rows to learn from: a frame of features, the numbers of their classes, and their weights.

    ``codes``, shape (n_rows,), are the places of the labels in ``classes``. ``target`` is the column of the labels, and
    ``source`` the file, with how its numbers and dates are written. If the table ``is_large``, the labels of all rows
    take too much memory, and the frame may be in a mapped file.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from melc.tables import Training
    >>> sizes = pd.DataFrame({"size": [1.0, 5.0, 2.0]})
    >>> rows = Training(sizes, np.array(["ill", "well"]), np.array([0, 1, 0]), None, "outcome")
    >>> rows.labels.tolist(), rows.class_counts
    (['ill', 'well', 'ill'], {'ill': 2, 'well': 1})
    """

    X: Any
    classes: NDArray[Any]
    codes: NDArray[Any]
    weights: Floats | None
    target: str
    source: Source = NO_FILE
    is_large: bool = False

    @property
    def labels(self) -> NDArray[Any]:
        """The label of every row, shape (n_rows,)."""
        return np.asarray(self.classes[self.codes])

    @cached_property
    def class_counts(self) -> dict[Any, int]:
        """The number of rows of each class."""
        counts = np.bincount(self.codes, minlength=len(self.classes))
        return dict(zip(self.classes.tolist(), counts.tolist(), strict=True))

    def fitted(self, model: LineClassifier) -> LineClassifier:
        """Fit a model to the rows, and return it."""
        if not self.is_large:
            return model.fit(self.X, self.labels, sample_weight=self.weights)
        log_prior_ratios(model.priors, self.classes, np.bincount(self.codes).astype(float))  # if refused, by label
        with _naming(self.classes.tolist()):
            model.fit(self.X, self.codes, sample_weight=self.weights)
        model.classes_ = self.classes
        return model

    def rows(self, chosen: NDArray[np.int64]) -> "Training":
        """Return some of the rows, in memory."""
        weights = None if self.weights is None else self.weights[chosen]
        return replace(self, X=self.X.iloc[chosen], codes=self.codes[chosen], weights=weights, is_large=False)

    def sample(self, n_rows: int, seed: int) -> "Training":
        """Return a random sample of about ``n_rows`` rows, with the same shares of the classes."""
        rng = np.random.default_rng(seed)
        share = min(1.0, n_rows / len(self.codes))
        chosen = [_some(np.flatnonzero(self.codes == k), share, rng) for k in range(len(self.classes))]
        return self.rows(np.sort(np.concatenate(chosen)))


def _some(rows: NDArray[np.int64], share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a random share of some rows; of few rows, at least five, or all."""
    return rng.choice(rows, min(len(rows), max(5, round(share * len(rows)))), replace=False, shuffle=False)


@contextmanager
def _naming(classes: list[Any]) -> Iterator[None]:
    """Replace numbers of classes by labels in the warnings and errors of this block."""

    def named(text: object) -> str:
        return _CLASS.sub(lambda found: f"{found[1]} {classes[int(found[2])]!r}" if found[1] else found[0], str(text))

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    except ValueError as error:
        raise ValueError(named(error)) from None
    for warning in caught:
        warnings.warn(named(warning.message), warning.category, stacklevel=3)


# Opening


@contextmanager
def open_training(source: Source, roles: Roles, max_bytes: int = MAX_BYTES_IN_MEMORY) -> Iterator[Training]:
    """Yield the rows to learn from in a file of any size.

    Temporary files are removed at the end of the block.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from melc.tables import Roles, Source, open_training
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "t.csv"
    ...     _ = path.write_text("size,colour,outcome\\n1,red,well\\n2,,ill\\n")
    ...     with open_training(Source(str(path)), Roles(target="outcome")) as rows:
    ...         rows.X["colour"].tolist(), rows.labels.tolist()
    (['red', nan], ['well', 'ill'])
    """
    with tempfile.TemporaryDirectory(prefix="melc-") as name, as_plain_file(source, Path(name)) as plain:
        yield _opened(plain, roles, max_bytes, Path(name))


def _opened(source: Source, roles: Roles, max_bytes: int, folder: Path) -> Training:
    """Return the rows; if the table cannot be read, raise an error that tells of what else is wrong with it."""
    try:
        return _in_memory(source, roles) if size_of(source) <= max_bytes else _large(source, roles, folder)
    except TableError as error:
        mended = _mended(source, roles, error.remedy)
        if mended is None:
            raise
        raise _with_further_faults(error, *mended, max_bytes, folder) from None


def _mended(source: Source, roles: Roles, remedy: Sequence[str]) -> tuple[Source, Roles] | None:
    """Return a source that is read, or roles, as a remedy says; None if it concerns columns that can be read."""
    given = dict(zip(remedy[::2], remedy[1::2], strict=True))
    if given.keys() == {"--target"}:
        return source, replace(roles, target=given["--target"])
    if given.keys() == {"--encoding"} and source.encoding != given["--encoding"]:
        return replace(source, encoding=given["--encoding"]), roles
    if given.keys() == {"--skip-rows"} and not source.skip_rows:
        return replace(source, skip_rows=int(given["--skip-rows"])), roles
    return None


def _with_further_faults(error: TableError, source: Source, roles: Roles, max_bytes: int, folder: Path) -> TableError:
    """Return an error with the faults that are left when its remedy is applied."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _opened(source, roles, max_bytes, folder)
    except TableError as further:
        remedy = [*error.remedy, *further.remedy] if further.remedy else []
        return TableError(f"{error}\nBesides: {further}", remedy)
    return error


def size_of(source: Source) -> int:
    """Return the size of a table in memory, roughly: that of its file, or of the values of a Parquet file as numbers.

    That of a libSVM file is zero, because these are always read into memory.
    """
    with errors_of(source), opened(source) as (stream, format):
        if format == "parquet":
            metadata = parquet_file(stream).metadata
            return 8 * int(metadata.num_rows) * int(metadata.num_columns)
        return 0 if format == "libsvm" else os.path.getsize(source.path)


def _in_memory(source: Source, roles: Roles) -> Training:
    table = read_table(source)
    target, drop = check_roles(table.column_names, roles)
    features = surveys_of_table(table, source, {target, roles.weights or target, *drop})
    source = described(source, features)
    contents = contents_to_fit(features)
    # Arrow has taken points between thousands for decimal points.
    written = {name: kind for name, kind in kinds_of(contents, source).items() if features[name].is_unusual}
    rows = FrameRows(contents, source)
    return _Labels(target, roles, source).read([_with_texts(table, source, written)], rows).training(rows.frame())


def _with_texts(table: Any, source: Source, kinds: Mapping[str, Kind]) -> Any:
    """Return a table with the columns that are to be read as texts, and were read as numbers, as texts."""
    numbers = [n for n, kind in kinds.items() if kind == "text" and arrow().types.is_floating(table.column(n).type)]
    if not numbers:
        return table
    texts = arrow().concat_tables(read_blocks(source, dict.fromkeys(numbers, "text")))
    for name in numbers:
        table = table.set_column(table.column_names.index(name), name, texts.column(name))
    return table


def _large(source: Source, roles: Roles, folder: Path) -> Training:
    target, drop = check_roles(column_names(source), roles)
    surveys = surveys_of_file(source, drop)
    others = [name for name in (target, roles.weights) if name is not None]
    features = {name: survey for name, survey in surveys.items() if name not in others}
    source = described(source, features)
    contents = contents_to_fit(features)
    plain = not any(surveys[name].n_missing or name in roles.categorical for name in contents)
    are_numbers = plain and set(contents.values()) == {"number"}
    if not are_numbers:
        _refuse_too_large(surveys[target].n_rows, len(contents))
    kinds = kinds_of(contents, source) | {name: surveys[name].kind for name in others}
    rows = MappedRows(list(contents), folder, source) if are_numbers else FrameRows(contents, source)
    labels = _Labels(target, roles, source).read(read_blocks(source, kinds), rows)
    return replace(labels.training(rows.frame()), is_large=True)


def _refuse_too_large(n_rows: int, n_columns: int) -> None:
    """Raise ``TableError`` if a table with texts, dates or missing values cannot be in memory."""
    needed, there = 8 * _COPIES_IN_A_FIT * n_rows * n_columns, _memory()
    if there is not None and needed > there:
        raise TableError(
            f"With texts, dates or missing values, {n_rows:,} rows of {n_columns} columns need about "
            f"{needed / 1e9:.1f} GB of memory, and this machine has {there / 1e9:.1f} GB. Fit a sample of the rows, or "
            "fewer columns; tables of numbers without missing values may have any size."
        )


def _memory() -> int | None:
    """Return the memory of the machine in bytes, if the system tells it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


# Classes


class _Labels:
    """Collects the classes and weights of blocks of rows.

    They are appended to one piece of memory each: small arrays that stay between the large ones of blocks, which do
    not, would keep the memory of these from being reused.
    """

    def __init__(self, target: str, roles: Roles, source: Source) -> None:
        self._target, self._roles, self._source = target, roles, source
        self._n_without = 0  # rows whose class is missing
        self._numbers: dict[Any, int] = {}  # of the classes, in the order in which they occur
        self._codes, self._weights = bytearray(), bytearray()

    def read(self, blocks: Iterable[Any], rows: FrameRows | MappedRows) -> "_Labels":
        """Add all blocks, and their features to ``rows``; but not the rows whose class is missing."""
        for block in blocks:
            n_missing = block.column(self._target).null_count
            if n_missing:
                self._n_without += n_missing
                block = block.filter(arrow().compute.is_valid(block.column(self._target)))
            rows.add(block)
            self._codes += self._codes_in(block.column(self._target)).data
            if self._roles.weights is not None:
                self._weights += weights_of(block.column(self._roles.weights), self._roles.weights).data
        return self

    def _codes_in(self, column: Any) -> NDArray[np.int16]:
        """Return the numbers of the classes in a column. New classes get the next number."""
        classes, places = np.unique(labels_of(column, self._target), return_inverse=True)
        numbers = [self._numbers.setdefault(label, len(self._numbers)) for label in classes.tolist()]
        if len(self._numbers) > _MOST_CLASSES:
            raise TableError(
                f"The target {self._target!r} has more than {_MOST_CLASSES} different values; choose a column with "
                "classes with --target."
            )
        return np.array(numbers, dtype=np.int16)[places]

    def training(self, X: Any) -> Training:
        """Return the rows with these features."""
        if self._n_without:
            rows, are = ("row has", "is") if self._n_without == 1 else ("rows have", "are")
            warnings.warn(
                f"{self._n_without} {rows} no value in the target {self._target!r}, and {are} left out", stacklevel=2
            )
        if not self._numbers:
            raise TableError(f"The target {self._target!r} has no values; choose another column with --target.")
        labels = against_rest(np.array(list(self._numbers)), self._roles.positive)
        classes, places = np.unique(labels, return_inverse=True)
        if len(classes) == 1:
            only = classes.tolist()[0]
            raise TableError(f"The target {self._target!r} has one class only: {only!r}; two or more are needed.")
        codes = places.astype(np.int8 if len(classes) < 128 else np.int16)[np.frombuffer(self._codes, dtype=np.int16)]
        weights = None if self._roles.weights is None else np.frombuffer(self._weights)
        return Training(X, classes, codes, weights, self._target, self._source)
