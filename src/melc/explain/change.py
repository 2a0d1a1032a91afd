"""The smallest change of a row that changes its class."""

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.explain.allowed import allowed_changes
from melc.explain.numbers import Aim, move_within, standardised_changes
from melc.explain.parts import all_log_odds, dense_codes
from melc.explain.steps import move_table, try_combinations
from melc.model.columns import Columns
from melc.model.names import class_index_of, column_width, feature_names_of, largest_first
from melc.model.places import value_text
from melc.model.units import fitted_model, nameless, without_search


@dataclass(frozen=True)
class Change:
    """The nearest rows of another class.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_features)
        The changed rows; if no change was found, the row itself. Levels of categories are integer codes;
        ``as_columns`` returns the values.
    changes : ndarray of shape (n_rows, n_features)
        The changed rows minus the rows.
    standardised : ndarray of shape (n_rows, n_features)
        The changes in units of the standard deviations of the features. Another level of a category counts as 1.
    distance : ndarray of shape (n_rows,)
        The lengths of the standardised changes; infinite where none was found.
    labels : ndarray of shape (n_rows,)
        The predicted classes of the changed rows.
    found : ndarray of bool of shape (n_rows,)
        Whether a change was found. If not, no change exists; a warning names the rows for which this is uncertain.
    exact : bool
        Whether the changes are the smallest. Otherwise they come from a search, and a smaller one may exist.
    feature_names : list of str
        The names of the features.
    columns : Columns
        What the columns hold.
    before : ndarray of shape (n_rows, n_features)
        The rows as they were, coded.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> X, species = load_iris(return_X_y=True)
    >>> y = species == 1
    >>> model = MELC(n_init=2, random_state=0).fit(X, y)
    >>> from melc.explain import nearest_change
    >>> change = nearest_change(model, X[:3])
    >>> change.rows.shape, bool((change.labels != model.predict(X[:3])).all())
    ((3, 4), True)
    """

    rows: Floats = field(repr=False)
    changes: Floats = field(repr=False)
    standardised: Floats = field(repr=False)
    distance: Floats
    labels: NDArray[Any]
    found: NDArray[np.bool_]
    exact: bool
    feature_names: list[str] = field(repr=False)
    columns: Columns = field(repr=False)
    before: Floats = field(repr=False)

    def as_columns(self) -> dict[str, NDArray[Any]]:
        """Return the values of the changed rows by column: numbers, labels and dates, as a frame takes them."""
        return {name: self.columns.decoded(j, self.rows[:, j]) for j, name in enumerate(self.feature_names)}

    def summary(self, row: int = 0, *, most: int = 10) -> str:
        """Return the change of one row, counted from 0, as text.

        The ``most`` features that change by most standard deviations are listed, the largest change first.
        """
        if not self.found[row]:
            return "no change of these features was found that leads to another class"
        if self.distance[row] == 0:
            return f"class {self.labels[row]} already"
        order = largest_first(self.standardised[row])
        names = [self.feature_names[j] for j in order[:most]]
        width = column_width(names)
        lines = []
        for name, j in zip(names, order[:most], strict=True):
            before, after = (value_text(self.columns, int(j), float(each[row, j])) for each in (self.before, self.rows))
            lines.append(f"  {name:<{width}}  {before} → {after}")
        if len(order) > most:
            lines.append(f"  and {len(order) - most} other features less")
        return "\n".join([f"class {self.labels[row]} at a distance of {self.distance[row]:.3g}", *lines])


def nearest_change(
    model: Any,
    X: Any,
    *,
    features: Any = None,
    fixed: Any = None,
    bounds: Any = None,
    integers: Any = None,
    levels: Any = None,
    to: Any = None,
    feature_names: Any = None,
) -> Change:
    """Return the smallest change of each row that changes its predicted class.

    The length of a change is ``√Σ_j (change_j / s_j)²``, with the standard deviations s of the features
    (``feature_spread_``). Another level of a category counts as one standard deviation. Categories, also ordered ones,
    change only to other levels, and missing numbers stay missing. Features on which the model does not depend, and
    features that are constant in the training rows, are not changed. Changed rows really get another prediction: they
    are moved beyond the threshold by a few units of rounding.

    For a model with a single line, such as every :class:`melc.MELC` of two classes, the result is the smallest change:
    to the nearest threshold, in the direction ``v_j s_j²``. This also holds with bounds, and if only one feature may
    change. For several lines and features, the change is found by a search. It always changes the class, but a smaller
    change may exist. If the search fails, a mixed-integer linear program decides whether a change exists.

    Categories, ordered categories, ``integers`` and ``levels`` change in steps. All combinations that might be shorter
    are tried, and the result is the smallest change, if there are at most 30,000 of them (2,000 if another feature may
    change as well or there is a single line, 64 if several other features are searched). Otherwise it is the best of
    many changes that are tried.

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline become part of the weights; for a search, the best estimator is
        used.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        The rows, as ``predict`` takes them.
    features : list of str or int, default=None
        The features that may change, by name or index. By default all.
    fixed : list of str or int, default=None
        Features that may not change, such as an age.
    bounds : dict of str or int to (float, float), default=None
        The smallest and largest values of features, None for no bound: ``{"age": (18, 99), "fare": (0, None)}``. A
        value outside its bounds may stay, or move towards them. Bounds of dates are dates.
    integers : list of str or int, default=None
        Features that may change only to whole numbers.
    levels : dict of str or int to list, default=None
        The values to which features may change: levels of a category, or numbers. For a column of 0 and 1, use
        ``{"smoker": [0, 1]}``.
    to : default=None
        The class to reach. By default any other class. Rows that are already predicted as this class do not change.
    feature_names : list of str, default=None
        Names of the features. By default those seen in ``fit``, or "x0", "x1", ...

    Returns
    -------
    change : Change

    Examples
    --------
    >>> import numpy as np
    >>> from melc import MELC
    >>> from melc.explain import nearest_change
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0], [4.0, 1.0], [5.0, 0.0], [6.0, 2.0]])
    >>> model = MELC(n_init=1, random_state=0).fit(X, 3 * ["low"] + 3 * ["high"])
    >>> nearest_change(model, X[:1]).labels
    array(['high'], dtype='<U4')
    """
    estimator, model = nameless(without_search(model)), fitted_model(model)
    rows, names = dense_codes(model, X), feature_names_of(model, feature_names)
    allowed, columns = allowed_changes(model, names, features, fixed, bounds, integers, levels), model.columns_
    goal = None if to is None else class_index_of(model.classes_, to, "to")
    if columns.are_numbers:
        aim = Aim(nameless(model), estimator.predict, goal)
    else:
        aim = Aim(model, lambda codes: model.classes_[all_log_odds(model, codes).argmax(axis=1)], goal)
    moved = (move_within if columns.are_numbers and not allowed.levels else move_table)(aim, rows, allowed)
    moved = try_combinations(aim, rows, allowed, moved)
    _warn_of_undecided(np.flatnonzero(~moved.found & ~moved.decided))
    changes = np.where(np.isnan(rows) & np.isnan(moved.rows), 0.0, moved.rows - rows)
    standardised = standardised_changes(columns, rows, moved.rows, model.feature_spread_)
    distance = np.where(moved.found, np.linalg.norm(standardised, axis=1), np.inf)
    return Change(
        moved.rows, changes, standardised, distance, moved.labels, moved.found, moved.exact, names, columns, rows
    )


def _warn_of_undecided(rows: NDArray[np.int64]) -> None:
    if len(rows):
        warnings.warn(
            f"For {len(rows)} rows no change of class was found, nor a proof that there is none; the first is row "
            f"{rows[0]}. Let fewer features change, or any class be reached.",
            stacklevel=3,
        )
