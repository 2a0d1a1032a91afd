"""The columns of a model: what each holds, and how a row of a table becomes numbers.

A row is *coded* by one number for each column: numbers and dates as they are, NaN where they are missing; an ordered
category by its rank; any other category by the number of its level. A line of a single column reads these codes. A line
of several columns needs quantities: it reads the score of a level, and a place for a missing number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.data.frames import MICROSECONDS_PER_DAY, MISSING, Column, Label, LabelColumn, NumberColumn


@dataclass(frozen=True)
class Category:
    """The levels of a category and their scores, of shape (n_levels,); a level of None is a missing value.

    With ``others``, a further level, the last, stands for all levels that are not listed. Without, these have the score
    zero, so that they change nothing.
    """

    levels: tuple[Label | None, ...]
    scores: Floats = field(repr=False)
    others: bool = False

    @property
    def n_levels(self) -> int:
        return len(self.levels) + self.others

    @property
    def names(self) -> list[str]:
        """The levels as they are shown."""
        return [level_name(level) for level in self.levels] + ["(others)"] * self.others

    def coded(self, column: LabelColumn) -> Floats:
        """Return the numbers of the levels of a column, shape (n,); NaN where the level is not known."""
        known = {level: float(number) for number, level in enumerate(self.levels)}
        unknown = float(len(self.levels)) if self.others else np.nan
        numbers = [known.get(label, unknown) for label in column.labels]
        return np.array([*numbers, known.get(None, unknown)])[column.codes]  # code −1, missing, takes the last

    def scores_of(self, codes: Floats) -> Floats:
        """Return the scores of coded values, shape (n,)."""
        return np.append(self.scores, 0.0)[np.where(np.isnan(codes), len(self.scores), codes).astype(np.int64)]


@dataclass(frozen=True)
class Columns:
    """What the columns of a model hold, by their index; unlisted columns are numbers, none missing in the fit.

    ``ranks`` are the levels of ordered categories, lowest first. ``places`` are the values that stand for missing ones
    in lines of several columns.
    """

    categories: Mapping[int, Category] = field(default_factory=dict)
    ranks: Mapping[int, tuple[Label, ...]] = field(default_factory=dict)
    dates: tuple[int, ...] = ()
    places: Mapping[int, float] = field(default_factory=dict)

    @property
    def are_numbers(self) -> bool:
        """Whether all columns are numbers."""
        return not (self.categories or self.ranks or self.dates)

    def coded(self, columns: Sequence[Column], names: Sequence[str]) -> Floats:
        """Return coded rows, shape (n, d), of a table that is read as the training data were."""
        coded = [self._coded_column(j, column, names[j]) for j, column in enumerate(columns)]
        return np.column_stack(coded)

    def _coded_column(self, j: int, column: Column, name: str) -> Floats:
        if j in self.categories:
            return self.categories[j].coded(_as_labels(column, self.categories[j].levels, name))
        if j in self.ranks:
            rank = {level: float(number) for number, level in enumerate(self.ranks[j])}
            column = _as_labels(column, self.ranks[j], name)
            return np.array([*(rank.get(label, np.nan) for label in column.labels), np.nan])[column.codes]
        if isinstance(column, LabelColumn):
            return _numbers_of_labels(column, name, "dates" if j in self.dates else "numbers")
        if j in self.dates and not column.is_date and not np.isnan(column.values).all():
            raise ValueError(f"Column {name!r} held dates in the fit, but now holds numbers. Convert it to dates.")
        return column.values

    def decoded(self, j: int, codes: Floats) -> NDArray[Any]:
        """Return the values of a column from its codes, shape (n,): numbers, dates, or labels, None if missing.

        A level that is not known is "(unknown)", in a category of texts.
        """
        if j in self.dates:
            times = (np.nan_to_num(codes) * MICROSECONDS_PER_DAY).round().astype("datetime64[us]")
            return np.where(np.isnan(codes), np.datetime64("NaT"), times)
        if j not in self.categories and j not in self.ranks:
            return codes
        labels: list[Any] = list(self.ranks[j] if j in self.ranks else self.categories[j].levels)
        texts = j in self.categories and any(isinstance(label, str) for label in labels)
        labels += ["(unknown)" if texts else None] * 2  # of others, and of what is not known
        return np.array([labels[-1 if np.isnan(code) else int(code)] for code in codes], dtype=object)

    def with_whole_microseconds(self, coded: Floats, steps: Floats) -> Floats:
        """Return coded rows with dates as they are written, rounded in the direction of the steps that led there."""
        found = coded.copy()
        for j in self.dates:
            times = np.sign(steps[:, j]) * np.ceil(np.sign(steps[:, j]) * coded[:, j] * MICROSECONDS_PER_DAY)
            found[:, j] = np.where(steps[:, j] != 0, times / MICROSECONDS_PER_DAY, coded[:, j])
        return found

    def quantities(self, coded: Floats, means: Floats) -> Floats:
        """Return the numbers that lines of several columns read, shape (n, d); ``means`` are those of the columns.

        In a column without missing values in the fit, a missing number is replaced by the mean.
        """
        found = coded.copy()
        for j in range(coded.shape[1]):
            if j in self.categories:
                found[:, j] = self.categories[j].scores_of(coded[:, j])
            else:
                found[np.isnan(coded[:, j]), j] = self.places.get(j, means[j])
        return found

    def moved(self, mean: Floats, scale: Floats, n_features: int) -> "Columns":
        """Return the columns of a model of (X − mean) / scale as columns of a model of X."""
        mean, scale = (np.broadcast_to(each, n_features) for each in (mean, scale))
        return replace(self, places={j: float(place * scale[j] + mean[j]) for j, place in self.places.items()})


def level_name(level: Label | None) -> str:
    """Return a level as it is shown."""
    return "(missing)" if level is None else str(level)


def _as_labels(column: Column, levels: Sequence[Label | None], name: str) -> LabelColumn:
    """Return a column as labels; raise an error if it holds numbers where the fit had texts, or the reverse."""
    if isinstance(column, NumberColumn):
        known, codes = np.unique(column.values, return_inverse=True)
        column = LabelColumn(np.where(np.isnan(column.values), MISSING, codes), tuple(known[~np.isnan(known)].tolist()))
    had_texts = {isinstance(level, str) for level in levels if level is not None}
    has_texts = {isinstance(label, str) for label in column.labels}
    if len(had_texts) == len(has_texts) == 1 and had_texts != has_texts:
        was, found = ("texts", "numbers") if True in had_texts else ("numbers", "texts")
        raise ValueError(
            f"Column {name!r} held {was} in the fit, such as {next(x for x in levels if x is not None)!r}, but now "
            f"holds {found}, such as {column.labels[0]!r}. Read it as the training data were."
        )
    return column


def _numbers_of_labels(column: LabelColumn, name: str, was: str) -> Floats:
    """Return the values of labels that are numbers or truth values."""
    texts = [label for label in column.labels if isinstance(label, str)]
    if texts:
        raise ValueError(
            f"Column {name!r} held {was} in the fit, but now holds texts, such as {texts[0]!r}. Convert it to {was}."
        )
    return np.array([*map(float, column.labels), np.nan])[column.codes]


def check_finite(columns: Sequence[Column], names: Sequence[str]) -> None:
    """Raise an error if a column of numbers holds infinity."""
    for column, name in zip(columns, names, strict=True):
        if isinstance(column, NumberColumn) and np.isinf(column.values).any():
            row = int(np.flatnonzero(np.isinf(column.values))[0])
            raise ValueError(
                f"Input X contains infinity: column {name!r} holds {column.values[row]} in row {row}. Replace it by a "
                "number, or by NaN if it is missing."
            )
