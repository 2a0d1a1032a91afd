"""What the columns of a table hold, learned from the training rows: scores of levels, and places of missing numbers.

Directions of several columns need numbers, so a level of a category has a *score*: the share of the second class among
its rows, both classes counting equally, minus one half, and shrunk by ten additional rows, five of each class:

``(a + 5) / (a + b + 10) − ½``, where a and b are the weights of the two classes at the level.

With more than two classes, the score is the projection of the level's class shares on the axis along which the shares
of the levels differ most. For one direction of all columns and two classes, scores are fitted together if levels have
enough rows (:mod:`melc.fit.level_scores`). If levels have few rows, the score of a training row is computed from the
rows of other folds: otherwise it would reveal the row's own class. Equal rows are in one fold; if a level has hardly
any others, all but one of them are counted, unless they seem to be copies. Rules with whole-number weights have whole
scores: 0 and 1 for two levels, otherwise in units of half a standard deviation. The place of missing numbers is the
number near which the classes are mixed as they are among the rows where it is missing.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.data.frames import Column, Label, LabelColumn
from melc.data.hashing import Hashes
from melc.fit.balance import DIGITS, FOLDS, Balance, EqualRows
from melc.fit.level_scores import enough_rows, joint_scores
from melc.model.columns import Category, Columns

# With fewer rows per level than this, the scores of training rows come from other folds.
_MANY_ROWS_PER_LEVEL = 30
# About the most rows of a class on which scores are fitted together.
_ROWS_REGRESSED = 20_000
# The most levels of a category; rarer ones are joined into one level.
_MOST_LEVELS = 1000
# A text column with fewer rows per label and more labels than this is likely to identify the rows.
_ROWS_OF_AN_IDENTIFIER, _LABELS_OF_AN_IDENTIFIER = 1.5, 20
# Bins of known numbers among which a place for missing ones is searched, and the penalty on the distance of a bin from
# the median, in units of the distance between the median and the upper quartile.
_BINS, _DISTANCE_PENALTY = 25, 0.01
# The unit of whole scores, in standard deviations of the scores.
_SCORE_UNIT = 0.5
# Other rows at a level are enough to score its rows if they have this share of its weight.
_ENOUGH_OTHERS = 0.5
# Sums of weights whose relative difference is below this are equal up to rounding; and digits that rounding leaves.
_ROUNDING, _SIZE_DIGITS = 1e-12, 12


@dataclass(frozen=True)
class Axis:
    """What a line of a single column is projected on: the levels of a category, or numbers of which some are missing.

    Missing numbers lie at ``missing_at``, which is above ``highest``, the largest number.
    """

    column: int
    n_levels: int = 0
    highest: float = 0.0
    missing_at: float = 0.0


@dataclass(frozen=True)
class Design:
    """The columns of the matrix that a fit works with: the quantities of all columns of a table, then the axes."""

    n_columns: int
    axes: tuple[Axis, ...] = ()

    def axis_along(self, direction: Floats) -> Axis | None:
        """Return the axis of the only column of a direction, shape (n_columns,), or None if it has no axis."""
        features = np.flatnonzero(direction)
        if len(features) > 1:
            return None
        return next((axis for axis in self.axes if axis.column == features[0]), None)

    def extended(self, direction: Floats) -> Floats:
        """Return a direction of shape (n_columns,) as a direction of the matrix, shape (n_columns + n_axes,)."""
        found = np.zeros(self.n_columns + len(self.axes))
        axis = self.axis_along(direction)
        if axis is None:
            found[: self.n_columns] = direction
        else:
            found[self.n_columns + self.axes.index(axis)] = direction[axis.column]
        return found


@dataclass(frozen=True)
class Learned:
    """What columns hold, and for each of them the codes and the quantities of the training rows, both of shape (n,).

    The ``hashes`` of the rows, shape (n,), follow from their contents, whatever the order of the classes.
    """

    columns: Columns
    codes: list[Floats]
    quantities: list[Floats]
    hashes: Hashes

    def design(self) -> Design:
        """Return the columns of :meth:`matrix`, with an axis for each category and each column with missing numbers."""
        categories = self.columns.categories.items()
        axes = [Axis(j, n_levels=category.n_levels) for j, category in categories if category.n_levels > 1]
        for j in self.columns.places:
            known = self.codes[j][~np.isnan(self.codes[j])]
            if len(known):
                lowest, highest = float(known.min()), float(known.max())
                axes.append(Axis(j, highest=highest, missing_at=highest + ((highest - lowest) or 1.0)))
        return Design(len(self.codes), tuple(axes))

    def matrix(self, design: Design) -> Floats:
        """Return the matrix of a design for the training rows, shape (n, n_columns + n_axes)."""
        d = len(self.codes)
        matrix = np.empty((len(self.codes[0]), d + len(design.axes)))
        for j, quantities in enumerate(self.quantities):
            matrix[:, j] = quantities
        for k, axis in enumerate(design.axes):
            codes = self.codes[axis.column]
            matrix[:, d + k] = codes if axis.n_levels else np.where(np.isnan(codes), axis.missing_at, codes)
        return matrix


def learn_columns(
    columns: Sequence[Column],
    names: Sequence[str],
    index: NDArray[np.integer],
    weights: Floats | None,
    n_classes: int,
    whole_scores: bool = False,
    one_direction: bool = False,
) -> Learned:
    """Return what the columns of training rows hold; ``index`` has the class number of each row, shape (n,).

    With ``whole_scores``, the scores of levels are whole numbers. If there will be ``one_direction`` of all columns,
    they are fitted together where there are rows enough.
    """
    balance = Balance(index, np.ones(len(index)) if weights is None else weights, n_classes)
    found = [_content(column, balance) for column in columns]
    _warn_of_columns(columns, found, names)
    codes = [codes for _, codes in found]
    contents = [codes if levels is None else _unreversed(codes.astype(np.int64), balance) for levels, codes in found]
    equal = EqualRows(contents, balance)
    categories, ranks, places, quantities = {}, {}, {}, list(codes)
    for j, (column, (levels, _)) in enumerate(zip(columns, found, strict=True)):
        if levels is not None:
            categories[j], quantities[j] = _scored(levels, codes[j], balance, equal)
            continue
        if isinstance(column, LabelColumn):
            ranks[j] = column.labels
        missing = np.isnan(codes[j])
        if missing.any():
            places[j] = _place_of_missing(codes[j], missing, balance)
            quantities[j] = np.where(missing, places[j], codes[j])
    if all(np.all(each == each[0]) for each in quantities):  # nothing but levels of few rows, all scored zero
        for j, category in categories.items():
            levels = category.levels, category.others
            categories[j], quantities[j] = _scored(levels, codes[j], balance, equal, screened=False)
    if one_direction and n_classes == 2:
        _score_together(categories, codes, quantities, balance, equal)
    if whole_scores:
        for j, category in categories.items():
            categories[j], quantities[j] = _with_whole_scores(category, quantities[j], balance)
    dates = tuple(j for j, column in enumerate(columns) if getattr(column, "is_date", False))
    return Learned(Columns(categories, ranks, dates, places), codes, quantities, equal.hashes)


# The levels of a category, None for missing values, and whether rare levels are joined into "others".
_Levels = tuple[tuple[Label | None, ...], bool]


def _content(column: Column, balance: Balance) -> tuple[_Levels | None, Floats]:
    """Return the levels of a category, or None for numbers, and the codes of the rows, shape (n,).

    Levels are sorted by their scores, so that neither their names nor their original order matters.
    """
    if not isinstance(column, LabelColumn):
        return None, column.values
    if column.ordered:
        return None, np.where(column.codes < 0, np.nan, column.codes)
    labels: list[Label | None] = [*column.labels, None]
    class_weights = balance.class_weights(column.codes % len(labels), len(labels))  # code −1, missing, becomes the last
    # Weights as they were given: which levels are frequent must not depend on the classes.
    totals = np.bincount(column.codes % len(labels), balance.given, len(labels))
    sizes = np.round(totals / totals.sum(), _SIZE_DIGITS)
    kept = _frequent(sizes, np.flatnonzero(totals))
    scores = _projected(balance.shares(class_weights), class_weights.sum(axis=1))
    order = sorted(kept, key=lambda k: (scores[k], sizes[k], str(type(labels[k])), str(labels[k])))
    others = len(kept) < int(np.count_nonzero(totals))
    number = np.full(len(labels), len(order), dtype=np.float64)
    number[order] = np.arange(len(order))
    return (tuple(labels[k] for k in order), others), number[column.codes]


def _frequent(sizes: Floats, present: NDArray[np.int64]) -> list[int]:
    """Return the levels that are present or, if there are too many, those of the largest sizes."""
    if len(present) > _MOST_LEVELS:
        least = np.sort(sizes[present])[-_MOST_LEVELS]
        present = present[sizes[present] > least]
    return [int(k) for k in present]


def _scored(
    levels: _Levels, numbers: Floats, balance: Balance, equal: EqualRows, screened: bool = True
) -> tuple[Category, Floats]:
    """Return a category with the scores of its levels, and the scores of the training rows, shape (n,).

    If it is ``screened`` and its levels have few rows, training rows are scored by the rows of other folds, or all
    scores are zero if the levels differ no more than by chance.
    """
    labels, others = levels
    size, codes = len(labels) + others, numbers.astype(np.int64)
    class_weights = balance.class_weights(codes, size)
    axis = _axis_of(balance.shares(class_weights), class_weights.sum(axis=1))
    scores = np.round(balance.shares(class_weights) @ axis, DIGITS)
    of_rows = scores[codes]
    if screened and size > 2 and balance.n_effective < _MANY_ROWS_PER_LEVEL * size:
        if _differ_by_chance(class_weights * (balance.n_effective / balance.total), balance.row_weights):
            scores, of_rows = np.zeros(size), np.zeros(len(codes))
        else:
            of_rows = _scores_from_other_rows(codes, len(labels), class_weights, axis, balance, equal)
    return Category(labels, scores, others), of_rows


def _scores_from_other_rows(
    codes: NDArray[np.int64], n_labels: int, class_weights: Floats, axis: Floats, balance: Balance, equal: EqualRows
) -> Floats:
    """Return the scores of rows, shape (n,), from the rows of other folds. The code ``n_labels`` is of joined levels.

    If these have less than half of the weight of a level, all equal rows but one are counted as well. Otherwise the
    rows of a level would have no score where every other column is constant within the levels. But copies of a row
    would reveal its class, so equal rows that are nearly all of one class are counted only if levels consist of them.
    """
    found, (first, groups_of_rows) = np.empty(len(codes)), equal.first_and_groups
    alone = np.bincount(codes[first], minlength=len(class_weights))[codes[first]] == 1  # in their level
    counts_equal = not equal.are_copies or equal.are_levels(alone, codes[first] < n_labels)
    for fold in range(FOLDS):
        own = equal.folds == fold
        inside = balance.class_weights(codes, len(class_weights), np.where(own, balance.weights, 0.0))
        levels, groups = codes[own], groups_of_rows[own]
        all_but_one = 1 - 1 / np.maximum(equal.sizes[groups], 1.0) if counts_equal else 0.0
        few_others = inside.sum(axis=1) > (1 - _ENOUGH_OTHERS + _ROUNDING) * class_weights.sum(axis=1)
        counted = (few_others[levels] * all_but_one)[:, None] * equal.class_weights[groups]
        others = np.maximum(class_weights[levels] - inside[levels] + counted, 0.0)
        found[own] = balance.shares(others) @ axis
    return np.round(found, DIGITS)


def _with_whole_scores(category: Category, of_rows: Floats, balance: Balance) -> tuple[Category, Floats]:
    """Return a category and the scores of the training rows, with all scores rounded to whole multiples of a unit."""
    shares = balance.given / balance.given.sum()
    deviation = np.sqrt(shares @ (of_rows - shares @ of_rows) ** 2)
    unit = float(np.ptp(category.scores) if category.n_levels == 2 else np.round(_SCORE_UNIT * deviation, DIGITS))
    if unit == 0:
        return category, of_rows
    # Two levels are rounded relative to the lower one: then they differ by one, even if they lie near ±½ unit.
    lowest = float(category.scores.min()) if category.n_levels == 2 else 0.0
    first = np.floor(lowest / unit + 0.5)
    scores, of_rows = (first + np.floor((each - lowest) / unit + 0.5) for each in (category.scores, of_rows))
    return replace(category, scores=scores), of_rows


def _axis_of(shares: Floats, totals: Floats) -> Floats:
    """Return the axis along which the shares of levels differ most, shape (n_classes,).

    It points towards the later classes, so that its sign is the same in resamples.
    """
    if shares.shape[1] == 2:
        return np.array([0.0, 1.0])
    _, _, axes = np.linalg.svd(np.sqrt(totals)[:, None] * shares, full_matrices=False)
    return np.asarray(axes[0] * (np.sign(axes[0] @ np.arange(shares.shape[1])) or 1.0))


def _projected(shares: Floats, totals: Floats) -> Floats:
    return np.asarray(shares @ _axis_of(shares, totals))


def _differ_by_chance(class_weights: Floats, row_weights: Floats) -> bool:
    """Return whether class shares differ between levels no more than they would by chance.

    The squared deviations from even shares are added up as they are, so that large levels count most. In a χ² test a
    thousand levels of few rows would outweigh those that tell something. The variance of the sum is that of independent
    Poisson numbers of rows; ``row_weights``, of shape (n_classes,), are the weights of a row.
    """
    sizes, n_classes = class_weights.sum(axis=1), class_weights.shape[1]
    squares = np.sum((class_weights - sizes[:, None] / n_classes) ** 2, axis=1) * n_classes / (n_classes - 1)
    expected = sizes * (1 - sizes / sizes.sum())
    variance = 2 * expected**2 / (n_classes - 1) + np.mean(row_weights**3) * sizes
    return float(np.sum(squares - expected)) < 2 * math.sqrt(float(variance.sum()))


def _score_together(
    categories: dict[int, Category],
    codes: list[Floats],
    quantities: list[Floats],
    balance: Balance,
    equal: EqualRows,
) -> None:
    """Replace scores of levels, in both dicts, by those that are fitted together, if there are rows enough."""
    scored = {j: category for j, category in categories.items() if category.scores.any()}
    numbers = [j for j in range(len(codes)) if j not in categories]
    n_levels = sum(category.n_levels for category in scored.values())
    if not scored or not enough_rows(n_levels, len(numbers), balance.n_effective):
        return
    rows, classes, weights = _rows_regressed(equal)
    levels = {j: codes[j][rows].astype(np.int64) for j in scored}
    others = np.column_stack([np.zeros((len(rows), 0)), *(quantities[j][rows] for j in numbers)])
    sizes = {j: category.n_levels for j, category in scored.items()}
    found = joint_scores(levels, sizes, others, classes.astype(np.float64), weights)
    for j, scores in found.items():
        categories[j] = replace(categories[j], scores=scores)
        quantities[j] = scores[codes[j].astype(np.int64)]


def _rows_regressed(equal: EqualRows) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return the numbers of different rows, some of each class, their classes, and their weights.

    Equal rows are counted once, with the sum of their weights, so that copies are weights. All rows of a small class
    are taken. The weights of both classes have the sums of all rows.
    """
    class_weights, (first, _) = equal.class_weights.copy(), equal.first_and_groups
    for weights in class_weights.T:
        total, step = weights.sum(), np.count_nonzero(weights) // _ROWS_REGRESSED + 1
        left_out = equal.numbers[first] % np.uint64(step) != 0
        if weights[~left_out].any():
            weights[left_out] = 0.0
        weights *= total / weights.sum()
    chosen, classes = np.nonzero(class_weights)
    return first[chosen], classes, class_weights[chosen, classes]


def _unreversed(codes: NDArray[np.int64], balance: Balance) -> Floats:
    """Return the levels of rows, shape (n,), by their scores from the end at which the scores are less extreme.

    Exchanging two classes reverses the scores, and would otherwise change the numbers of the levels. Their names matter
    only where levels have equal scores and numbers of rows.
    """
    class_weights = balance.class_weights(codes, codes.max() + 1)
    scores = _projected(balance.shares(class_weights), class_weights.sum(axis=1))
    sizes = np.bincount(codes, balance.given) / balance.given.sum()
    sign = -1.0 if sizes @ scores**3 < -_ROUNDING else 1.0
    order = np.lexsort([np.arange(len(sizes)), np.round(sizes, DIGITS), np.round(sign * scores, DIGITS)])
    return np.asarray(np.argsort(order)[codes], dtype=np.float64)


def _place_of_missing(numbers: Floats, missing: NDArray[np.bool_], balance: Balance) -> float:
    """Return the number near which the classes are mixed as they are among the rows where the number is missing.

    Of equally good places, the one nearest to the median is taken. If all known numbers are equal, the place is 0, or 1
    if they are nearer to 0, so that the quantity tells where the number is missing.
    """
    if missing.all():
        return 0.0
    values, positions = np.unique(numbers[~missing], return_inverse=True)
    if len(values) == 1:
        return 1.0 if abs(values[0]) < 0.5 else 0.0
    below = np.cumsum(np.bincount(positions, balance.given[~missing]))  # the weight up to each value

    def quantiles(shares: Floats) -> NDArray[np.int64]:
        return np.minimum(np.searchsorted(below, shares * below[-1] * (1 - _ROUNDING)), len(values) - 1)

    # The upper ends of bins with about equal numbers of rows; a further group is for the missing numbers.
    ends = np.unique(quantiles(np.linspace(0, 1, _BINS + 1)[1:]))
    groups = np.full(len(numbers), len(ends))
    groups[~missing] = np.searchsorted(ends, positions)
    class_weights = balance.class_weights(groups, len(ends) + 1)
    shares = balance.shares(np.vstack([_smoothed(class_weights[:-1]), class_weights[-1:]]))
    upper = below[ends] / below[-1]
    middles = values[quantiles(0.5 * (upper + np.append(0.0, upper[:-1])))]
    typical, quartile = values[quantiles(np.array([0.5, 0.75]))]
    far = np.abs(middles - typical) / ((quartile - typical) or 1.0)
    distances = np.linalg.norm(shares[:-1] - shares[-1], axis=1) + _DISTANCE_PENALTY * far
    return float(middles[np.argmin(np.round(distances, DIGITS))])


def _smoothed(class_weights: Floats) -> Floats:
    """Return the weights of the classes in bins, with half of both neighbouring bins added; (n_bins, n_classes)."""
    padded = np.pad(class_weights, ((1, 1), (0, 0)))
    return np.asarray(class_weights + 0.5 * (padded[:-2] + padded[2:]))


def _warn_of_columns(
    columns: Sequence[Column], found: list[tuple[_Levels | None, Floats]], names: Sequence[str]
) -> None:
    """Warn of text columns whose values are nearly unique, and of columns that are constant."""
    for column, (_, codes), name in zip(columns, found, names, strict=True):
        if isinstance(column, LabelColumn) and _is_identifier(column):
            warnings.warn(
                f"Column {name!r} has {len(column.labels)} different texts in {np.sum(column.codes >= 0)} rows. If it "
                "identifies the rows, drop it; if it holds numbers or dates, convert it.",
                stacklevel=2,
            )
        elif np.all(codes == codes[0]) or np.isnan(codes).all():
            warnings.warn(f"Column {name!r} is constant and carries no information.", stacklevel=2)


def _is_identifier(column: LabelColumn) -> bool:
    few_rows = np.count_nonzero(column.codes >= 0) < _ROWS_OF_AN_IDENTIFIER * len(column.labels)
    return not column.ordered and len(column.labels) > _LABELS_OF_AN_IDENTIFIER and bool(few_rows)
