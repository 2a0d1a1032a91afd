"""What the columns of a table are used for in a fit: the target, weights, and features."""

import difflib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.tables.csv_files import delimiter_hint
from melc.tables.frames import one_piece
from melc.tables.read import LIBSVM_TARGET
from melc.tables.source import TableError, arrow, listed

# Columns or classes that are named in an error.
_MOST_LISTED = 8


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are used for. Columns that are not named here are features.

    ``positive`` is the class to separate from all others together. ``categorical`` are columns of numbers that are
    codes. If ``keep_only`` names columns, all others are left out.

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
    categorical: tuple[str, ...] = ()
    keep_only: tuple[str, ...] = ()


def check_roles(names: list[str], roles: Roles) -> tuple[str, set[str]]:
    """Return the name of the target column and those to leave out; raise ``TableError`` if a column is missing."""
    target = LIBSVM_TARGET if roles.target is None and LIBSVM_TARGET in names else roles.target
    if target is None:
        raise TableError(
            f"No target column was given; name the column with the classes with --target. The columns are "
            f"{_listing(names)}."
        )
    drop, keep_only = _parted(names, roles.drop), _parted(names, roles.keep_only)
    for name in (target, roles.weights, *drop, *roles.categorical, *keep_only):
        if name is not None and name not in names:
            similar = _similar(name, names)
            meant = f"do you mean {similar!r}? Otherwise, " if similar else ""
            remedy = ["--target", similar] if similar and name == target else []
            raise TableError(f"There is no column {name!r}; {meant}the columns are {_listing(names)}.", remedy)
    others = set(names) - set(keep_only) if keep_only else set()
    return target, (others | set(drop)) - {target, roles.weights}


def _parted(names: list[str], given: tuple[str, ...]) -> list[str]:
    """Return names of columns, of which several may be given with commas between them."""
    return [part for text in given for part in ([text] if text in names else text.split(","))]


def _similar(name: str, names: list[str]) -> str | None:
    """Return the name that is written most like a wrong one, if one is much like it."""
    folded = {other.casefold().strip(): other for other in names}
    close = difflib.get_close_matches(name.casefold().strip(), folded, 1, 0.75)
    return folded[close[0]] if close else None


def _listing(names: list[str]) -> str:
    """Return the first names, and a hint if a single name looks like a line with another delimiter."""
    return listed(names, _MOST_LISTED if len(names) > _MOST_LISTED + 2 else len(names)) + delimiter_hint(names)


def labels_of(column: Any, name: str) -> NDArray[Any]:
    """Return the class labels in a column, shape (n_rows,): strings or integers."""
    if column.null_count:
        raise TableError(f"The target {name!r} is missing in {column.null_count} of {len(column)} rows; remove them.")
    if not arrow().types.is_floating(column.type):
        texts = one_piece(column).dictionary_encode()
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
        raise TableError(
            f"--positive {positive} is not a class; the classes are {listed(known.tolist(), _MOST_LISTED)}."
        )
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
