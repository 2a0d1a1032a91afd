"""Fit a model to a table: select the columns, encode them, fit, and express the model in the units of the file."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.base import LineClassifier
from melc.fit.coordinates import check_scale
from melc.fit.validation import log_prior_ratios
from melc.model.names import QUOTED
from melc.model.units import in_units_of, nameless
from melc.tables.model import TableModel
from melc.tables.problem import AnyProblem, Problem, blocks_of, largest_of, mean_and_spread
from melc.tables.read import LIBSVM_TARGET
from melc.tables.source import TableError, arrow, writing_temporary_file

# The number of a class in a message, but not in a quoted name.
_CLASS = re.compile(rf"{QUOTED}|\b([Cc]lass) (\d+)\b")


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are used for. Columns that are not named here are features.

    ``positive`` is the class to separate from all others together. With ``impute`` missing values are filled.

    Examples
    --------
    >>> from melc.tables import Roles
    >>> Roles(target="outcome", drop=("id",)).weights is None
    True
    """

    target: str | None = None
    drop: tuple[str, ...] = ()
    weights: str | None = None
    positive: str | None = None
    impute: bool = False


def problem_of(table: Any, roles: Roles) -> tuple[Problem, str]:
    """Return the classification problem in a ``pyarrow.Table``, and the name of the target column.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from melc.tables import Roles, problem_of
    >>> table = pa.table({"size": [1.0, 2.0, 3.0], "outcome": ["well", "ill", "ill"]})
    >>> problem, target = problem_of(table, Roles(target="outcome"))
    >>> target, problem.class_counts
    ('outcome', {'ill': 2, 'well': 1})
    """
    target = check_roles(table.column_names, roles)
    excluded = {target, roles.weights, *roles.drop}
    columns = [name for name in table.column_names if name not in excluded]
    labels = against_rest(labels_of(table.column(target), target), roles.positive)
    weights = None if roles.weights is None else weights_of(table.column(roles.weights), roles.weights)
    return Problem(table, columns, labels, weights, roles.impute), target


def check_roles(names: list[str], roles: Roles) -> str:
    """Return the name of the target column; raise ``TableError`` if a column is missing."""
    target = LIBSVM_TARGET if roles.target is None and LIBSVM_TARGET in names else roles.target
    if target is None:
        raise TableError("No target column was given; name the column with the classes with --target.")
    for name in (target, roles.weights, *roles.drop):
        if name is not None and name not in names:
            raise TableError(f"There is no column {name!r}; the columns are {_listing(names)}.")
    return target


def _listing(names: list[str], most: int = 8) -> str:
    """Return the first names, and a hint if a single name looks like a line with another delimiter."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    hint = next((mark for mark in ";\t|" if mark in names[0]), None) if len(names) == 1 else None
    tail = f"; is the delimiter {hint!r}? Set it with --delimiter" if hint else ""
    return ", ".join(repr(name) for name in names[:most]) + more + tail


def labels_of(column: Any, name: str) -> NDArray[Any]:
    """Return the class labels in a column, shape (n_rows,): strings or integers."""
    if column.null_count:
        raise TableError(f"The target {name!r} is missing in {column.null_count} of {len(column)} rows; remove them.")
    if not arrow().types.is_floating(column.type):
        texts = column.combine_chunks().dictionary_encode() if hasattr(column, "chunks") else column.dictionary_encode()
        return np.array(texts.dictionary.to_pylist())[texts.indices.to_numpy(zero_copy_only=False)]
    numbers = column.to_numpy(zero_copy_only=False)
    broken = numbers[~(np.mod(numbers, 1) == 0)]
    if len(broken):
        raise TableError(
            f"The target {name!r} contains {broken[0]}; class labels must be text or integers. Choose another column "
            "with --target: melc predicts classes, not continuous values."
        )
    return np.asarray(numbers.astype(np.int64))


def against_rest(labels: NDArray[Any], positive: str | None) -> NDArray[Any]:
    """Return the labels with all classes but ``positive`` merged into "not <positive>", if there are more than two."""
    if positive is None:
        return labels
    texts = labels.astype(str)
    known = np.unique(texts)
    if positive not in known:
        raise TableError(f"--positive {positive} is not a class; the classes are {_listing(known.tolist())}.")
    return labels if len(known) == 2 else np.where(texts == positive, positive, f"not {positive}")


def weights_of(column: Any, name: str) -> Floats:
    """Return the sample weights in a column, shape (n_rows,)."""
    if not arrow().types.is_floating(column.type) or column.null_count:
        raise TableError(f"The weights in {name!r} must be numbers in every row; found text or missing values.")
    weights = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    wrong = weights[~(np.isfinite(weights) & (weights >= 0))]
    if len(wrong):
        raise TableError(f"The weights in {name!r} must be finite and not negative; found {wrong[0]}.")
    return weights


def fit_table(problem: AnyProblem, target: str, model: LineClassifier, *, standardize: bool = False) -> TableModel:
    """Fit a model to a table.

    With ``standardize`` the search uses standardised features. The returned model takes the features in the units of
    the file either way.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from melc import MELC
    >>> from melc.tables import Roles, fit_table, problem_of
    >>> size = np.arange(40.0)
    >>> table = pa.table({"size": size, "outcome": np.where(abs(size - 20) < 10, "well", "ill")})
    >>> fitted = fit_table(*problem_of(table, Roles(target="outcome")), MELC(random_state=0))
    >>> fitted.target, fitted.model.interval_classes_.tolist()
    ('outcome', ['ill', 'well', 'ill'])
    """
    encoding, X = problem.encoded
    if not standardize:
        return TableModel(_fitted(model, encoding.framed(X), problem), encoding, target)
    mean, spread = mean_and_spread(X)
    varies = spread > 1e-12 * largest_of(X)
    if varies.any():  # a model in units whose squares overflow could be fitted, but not written and read
        check_scale(np.where(varies, spread, np.inf), encoding.feature_names)
    scale = np.where(varies, spread, 1.0)  # constant features are left as they are
    model = _fitted(model, encoding.framed(_standardized(X, mean, scale)), problem)
    return TableModel(in_units_of(model, mean, scale), encoding, target)


def _fitted(model: LineClassifier, X: Any, problem: AnyProblem) -> LineClassifier:
    """Fit the model; with rows in a file to the numbers of the classes, since their labels take too much memory."""
    if isinstance(problem, Problem):
        return nameless(model.fit(X, problem.labels, sample_weight=problem.weights))
    classes = problem.classes
    log_prior_ratios(model.priors, classes, np.bincount(problem.codes).astype(float))  # if refused, by label
    with _naming(classes.tolist()):
        model.fit(X, problem.codes, sample_weight=problem.weights)
    model.classes_ = classes
    return nameless(model)


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


def _standardized(X: Floats, mean: Floats, scale: Floats) -> Floats:
    """Return (X − mean) / scale, in a file beside that of X if X is a mapped file."""
    if not isinstance(X, np.memmap):
        return (X - mean) / scale
    path = f"{X.filename}-standardized"
    with writing_temporary_file(), open(path, "wb") as stream:
        for block in blocks_of(X):
            stream.write(((block - mean) / scale).tobytes())
    return np.memmap(path, dtype=np.float64, mode="r", shape=X.shape)
