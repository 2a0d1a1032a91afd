"""What may change in a row: which columns, within which bounds, to whole numbers only, or to certain values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.model.columns import Columns, level_name


@dataclass(frozen=True)
class Allowed:
    """The changes of coded rows that are allowed; all arrays have shape (n_features,).

    ``free`` are the columns that may change, and ``spread`` the units of the changes of numbers, zero for columns that
    stay as they are. Values stay between ``low`` and ``high``, both infinite where there is no bound, and are whole
    numbers where ``whole``. A value that lies outside its bounds may stay, or move towards them. ``levels`` are the
    codes that a column may change to.
    """

    free: NDArray[np.bool_]
    spread: Floats
    low: Floats
    high: Floats
    whole: NDArray[np.bool_]
    levels: Mapping[int, list[float]] = field(default_factory=dict)

    @property
    def bounded(self) -> bool:
        """Whether a column that may change has a bound."""
        return bool((np.isfinite(self.low) | np.isfinite(self.high))[self.spread > 0].any())

    def steps(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return the least and the largest change of rows, in units of the spread; both of the shape of the rows.

        Where a value is missing, and so does not change, they are numbers all the same.
        """
        units, rows = np.where(self.spread > 0, self.spread, 1.0), np.nan_to_num(rows)
        return np.minimum(self.low - rows, 0.0) / units, np.maximum(self.high - rows, 0.0) / units

    def within(self, changed: Floats, rows: Floats) -> Floats:
        """Return changed rows moved into the bounds, or back to what they were."""
        return np.clip(changed, np.minimum(self.low, rows), np.maximum(self.high, rows))

    def choices(self, columns: Columns) -> dict[int, list[float]]:
        """Return the codes that columns may change to: levels of the training rows, without missing and others."""
        every = {j: [float(k) for k in range(len(levels))] for j, levels in columns.ranks.items()}
        for j, category in columns.categories.items():
            every[j] = [float(k) for k, level in enumerate(category.levels) if level is not None]
        return {j: codes for j, codes in (every | dict(self.levels)).items() if self.free[j]}

    def without(self, columns: NDArray[np.bool_]) -> "Allowed":
        """Return the same with more columns that stay as they are."""
        return replace(self, spread=np.where(columns, 0.0, self.spread))


def allowed_changes(
    model: Any, names: Sequence[str], features: Any, fixed: Any, bounds: Any, integers: Any, levels: Any
) -> Allowed:
    """Return what may change in the rows of a model; see :func:`melc.explain.nearest_change` for the wishes."""
    columns, d = model.columns_, len(names)
    free = np.ones(d, dtype=bool) if features is None else _listed(names, features, "features")
    free &= ~_listed(names, [] if fixed is None else fixed, "fixed")
    free &= model.directions_.any(axis=0)  # what the model does not depend on need not change
    whole = _listed(names, [] if integers is None else integers, "integers")
    for i in np.flatnonzero(whole):
        _check_is_number(columns, int(i), names, "integers")
    low, high = np.full(d, -np.inf), np.full(d, np.inf)
    for j, pair in _by_column(names, bounds, "bounds").items():
        _check_is_number(columns, j, names, "bounds")
        low[j], high[j] = _bounds_of(pair, names[j], bool(whole[j]), j in columns.dates)
    codes = {}
    for j, wanted in _by_column(names, levels, "levels").items():
        codes[j] = _codes_of(columns, j, wanted, names[j])
        for code, value in zip(codes[j], wanted, strict=True):
            if not low[j] <= code <= high[j] or (whole[j] and code != math.floor(code)):
                raise ValueError(f"levels of {names[j]!r} contain {value!r}, which bounds or integers forbid.")
    low[whole], high[whole] = np.ceil(low[whole]), np.floor(high[whole])
    return Allowed(free, np.where(free, model.feature_spread_, 0.0), low, high, whole, codes)


def _listed(names: Sequence[str], features: Any, argument: str) -> NDArray[np.bool_]:
    """Return whether each feature is in a list of names and indices, shape (n_features,)."""
    if isinstance(features, str):
        raise ValueError(
            f"{argument} must be a list of names or indices; found the text {features!r}: use [{features!r}]."
        )
    chosen = np.zeros(len(names), dtype=bool)
    for feature in features:
        chosen[_index_of(names, feature, argument)] = True
    return chosen


def _by_column(names: Sequence[str], wishes: Any, argument: str) -> dict[int, Any]:
    """Return a dict with names or indices as one with indices."""
    if wishes is None:
        return {}
    if not isinstance(wishes, Mapping):
        raise ValueError(f"{argument} must be a dict with the names or indices of features; found {wishes!r}.")
    return {_index_of(names, feature, argument): wish for feature, wish in wishes.items()}


def _index_of(names: Sequence[str], feature: Any, argument: str) -> int:
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(
                f"{argument} contains {feature!r}, which is no feature of the model; it has {list(names[:10])}."
            )
        return names.index(feature)
    if not isinstance(feature, (int, np.integer)) or isinstance(feature, bool):
        raise ValueError(
            f"{argument} contains {feature!r}, which is neither a name nor an index; use names, or indices such as 0."
        )
    if not -len(names) <= feature < len(names):
        raise ValueError(f"{argument} contains {feature!r}, but the model has {len(names)} features.")
    return int(feature) % len(names)


def _check_is_number(columns: Columns, j: int, names: Sequence[str], argument: str) -> None:
    if j in columns.categories or j in columns.ranks:
        raise ValueError(
            f"{argument} contains {names[j]!r}, which is a category; say with levels={{{names[j]!r}: [...]}} which "
            "levels it may change to."
        )


def _bounds_of(pair: Any, name: str, whole: bool, date: bool) -> tuple[float, float]:
    """Return the least and the largest value from a pair, in which None stands for no bound."""
    if isinstance(pair, str) or not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
        raise ValueError(f"bounds of {name!r} must be a pair (least, largest), with None for no bound; found {pair!r}.")
    none = -math.inf, math.inf
    low, high = (end if value is None else _number(value, name, date) for value, end in zip(pair, none, strict=True))
    if not low <= high:
        raise ValueError(f"bounds of {name!r} must be ascending; found {pair!r}.")
    if whole and math.isfinite(low) and math.isfinite(high) and math.ceil(low) > math.floor(high):
        raise ValueError(f"bounds of {name!r} contain no whole number; found {pair!r}.")
    return low, high


def _number(value: Any, name: str, date: bool) -> float:
    try:
        number = _days(value) if date else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        raise ValueError(f"{name!r} takes {'dates' if date else 'numbers'}; found {value!r}.")
    return number


def _codes_of(columns: Columns, j: int, wanted: Any, name: str) -> list[float]:
    """Return the codes of the values that a column may change to."""
    if isinstance(wanted, str) or not isinstance(wanted, Sequence | np.ndarray | set | frozenset):
        raise ValueError(f"levels of {name!r} must be a list of values; found {wanted!r}: use [{wanted!r}].")
    if j not in columns.categories and j not in columns.ranks:
        numbers = [_number(value, name, j in columns.dates) for value in wanted]
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"levels of {name!r} must be finite; found {wanted!r}.")
        return numbers
    known = list(columns.ranks[j] if j in columns.ranks else columns.categories[j].levels)
    for value in wanted:
        if value is None or value not in known:
            shown = [level_name(level) for level in known if level is not None][:10]
            raise ValueError(f"levels of {name!r} contain {value!r}, which is no level that was seen; it has {shown}.")
    return [float(known.index(value)) for value in wanted]


def _days(date: Any) -> float:
    """Return a date, or its text, as a number of days since 1970; NaN for a number, which has no unit."""
    if isinstance(date, int | float | np.number):
        return math.nan
    time = np.datetime64(date, "us")
    return math.nan if np.isnat(time) else float(time.astype(np.int64)) / 86_400_000_000
