"""The smallest change of a row that changes its class."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.base import checked_projections
from melc.explain.parts import dense_rows
from melc.explain.search import ChangeSpace, shortest_changes
from melc.model.line import Line
from melc.model.names import class_index_of, column_width, feature_names_of, largest_first
from melc.model.units import fitted_model, nameless, without_search

# How far a change first goes beyond the threshold, in units of the rounding of the projection, and how often that is
# doubled where the row is still predicted as before.
_FIRST_STEP, _DOUBLINGS = 4.0, 40


@dataclass(frozen=True)
class Change:
    """The nearest rows of another class.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_features)
        The changed rows; where none was found, the rows themselves.
    changes : ndarray of shape (n_rows, n_features)
        The changed rows less the rows.
    standardised : ndarray of shape (n_rows, n_features)
        The changes in units of the standard deviations of the features.
    distance : ndarray of shape (n_rows,)
        The lengths of the standardised changes; infinite where none was found.
    labels : ndarray of shape (n_rows,)
        The predicted classes of the changed rows.
    found : ndarray of bool of shape (n_rows,)
        Whether a change was found.
    exact : bool
        Whether the changes are the smallest. Otherwise they come from a search, and a smaller one may exist.
    feature_names : list of str
        The names of the features.

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
        before, after = self.rows[row] - self.changes[row], self.rows[row]
        lines = [
            f"  {name:<{width}}  {before[j]:.6g} → {after[j]:.6g}" for name, j in zip(names, order[:most], strict=True)
        ]
        if len(order) > most:
            lines.append(f"  and {len(order) - most} other features less")
        return "\n".join([f"class {self.labels[row]} at a distance of {self.distance[row]:.3g}", *lines])


def nearest_change(model: Any, X: Any, *, features: Any = None, to: Any = None, feature_names: Any = None) -> Change:
    """Return the smallest change of each row that changes its predicted class.

    The length of a change is ``√Σ_j (change_j / s_j)²``, with the standard deviations s of the features
    (``feature_spread_``). Features on which the model does not depend, and those that are constant in the training
    rows, are not changed. The changed rows are predicted differently indeed: a change goes beyond the threshold by a
    few units of rounding.

    For a model with a single line, as every :class:`melc.MELC` of two classes is, the change is the smallest one: to
    the nearest threshold, in the direction ``v_j s_j²``. For several lines it is found by a search. It is a change of
    class in any case, but its length is only an upper bound for the smallest.

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline become part of the weights; of a search the best estimator is
        used.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        The rows, as ``predict`` takes them.
    features : list of str or int, default=None
        The features that may change, by name or index. By default all.
    to : default=None
        The class to reach. By default any other one. Rows that are of this class already do not change.
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
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 1.0], [5.0, 0.0]])
    >>> model = MELC(n_init=1, random_state=0).fit(X, ["low", "low", "high", "high"])
    >>> nearest_change(model, X[:1]).labels
    array(['high'], dtype='<U4')
    """
    estimator, model = nameless(without_search(model)), fitted_model(model)
    rows = dense_rows(model, X)
    names, model, before = feature_names_of(model, feature_names), nameless(model), estimator.predict(rows)
    spread = np.where(_may_change(names, features), model.feature_spread_, 0.0)
    goal = None if to is None else class_index_of(model.classes_, to, "to")
    waiting = np.ones(len(rows), dtype=bool) if goal is None else before != model.classes_[goal]
    exact = len(model.lines_) == 1
    steps = np.zeros(rows.shape)
    if waiting.any():
        z, codes = checked_projections(model, rows[waiting]), np.searchsorted(model.classes_, before[waiting])
        if exact:
            steps[waiting] = _to_nearest_interval(model.lines_[0], z[:, 0], codes, spread, goal)
        else:
            steps[waiting] = shortest_changes(ChangeSpace(model, spread), z, codes, goal) * spread
    changed, labels, found = _over_the_threshold(estimator, model, rows, before, steps, goal)
    changes = changed - rows
    standardised = np.divide(changes, spread, out=np.zeros_like(changes), where=spread > 0)
    distance = np.where(found, np.linalg.norm(standardised, axis=1), np.inf)
    return Change(changed, changes, standardised, distance, labels, found, exact, names)


def _may_change(names: list[str], features: Any) -> NDArray[np.bool_]:
    """Whether each feature may change, shape (n_features,)."""
    if features is None:
        return np.ones(len(names), dtype=bool)
    if isinstance(features, str):
        raise ValueError(
            f"features must be a list of names or indices; found the text {features!r}: use [{features!r}]."
        )
    chosen = np.zeros(len(names), dtype=bool)
    for feature in features:
        if isinstance(feature, str):
            if feature not in names:
                raise ValueError(
                    f"features contains {feature!r}, which is no feature of the model; it has {names[:10]}."
                )
            chosen[names.index(feature)] = True
        elif not isinstance(feature, (int, np.integer)) or isinstance(feature, bool):
            raise ValueError(
                f"features contains {feature!r}, which is neither a name nor an index; pass a list such as [0, 2]."
            )
        elif not -len(names) <= feature < len(names):
            raise ValueError(f"features contains {feature!r}, but the model has {len(names)} features.")
        else:
            chosen[feature] = True
    return chosen


def _to_nearest_interval(line: Line, z: Floats, codes: NDArray[np.int64], spread: Floats, goal: int | None) -> Floats:
    """The smallest changes to an interval of another class, or of the class to reach, which rows are not yet of.

    ``z`` and ``codes`` are the projections and classes of the rows. The shape is (n_rows, n_features). A change is zero
    where there is no such interval.
    """
    v = line.direction
    # Squares of spreads may overflow; those of weight times spread, relative to the largest, cannot.
    pull = v * spread
    largest = np.abs(pull).max()
    if largest == 0:
        return np.zeros((len(z), len(v)))
    below, above = _nearest_edges(line, z, codes, goal)
    # From a threshold, the way into the interval that it does not belong to is short, but not zero.
    down, up = np.maximum(z - below, np.spacing(np.abs(z))), np.maximum(above - z, np.spacing(np.abs(z)))
    distance = np.where(up <= down, up, -down)
    distance = np.where(np.isfinite(distance), distance, 0.0)
    unit = pull / largest
    return np.asarray(distance[:, None] * (unit * spread) / (largest * float(unit @ unit)))


def _nearest_edges(line: Line, z: Floats, codes: NDArray[np.int64], goal: int | None) -> tuple[Floats, Floats]:
    """The nearest edge below and above each projection beyond which the line has another class, or that to reach.

    Both have shape (n_rows,), and are infinite where there is none.
    """
    own = np.searchsorted(line.thresholds, z, side="right")
    own -= (line.codes[own] != codes) & (own > 0)  # on a threshold that belongs to the interval below
    if goal is None:  # neighbouring intervals are of different classes
        upper, lower = own + 1, own - 1
    else:
        wanted = np.concatenate([[-1], np.flatnonzero(line.codes == goal), [len(line.codes)]])
        place = np.searchsorted(wanted, own)
        upper, lower = wanted[place], wanted[place - 1]
    # The lower edge of interval i is threshold i − 1, its upper edge threshold i.
    edges = np.concatenate([[-np.inf], line.thresholds, [np.inf]])
    return edges[lower + 1], edges[upper]


def _over_the_threshold(
    estimator: Any, model: Any, rows: Floats, before: NDArray[Any], steps: Floats, goal: int | None
) -> tuple[Floats, NDArray[Any], NDArray[np.bool_]]:
    """Change the rows by ``steps`` to the threshold, and beyond it by as little as changes the prediction.

    Return the changed rows, their labels, and whether a row has the class that is wanted. Others are left as they were.
    """
    changed, labels = rows.copy(), before.copy()
    found = np.zeros(len(rows), dtype=bool) if goal is None else before == model.classes_[goal]
    trying = np.flatnonzero(~found & np.any(steps != 0, axis=1))
    rounding = _rounding(model, rows, steps)
    for doubling in range(_DOUBLINGS):
        if not len(trying):
            break
        factors = 1 + _FIRST_STEP * 2.0**doubling * rounding[trying]
        changed[trying] = rows[trying] + steps[trying] * factors[:, None]
        labels[trying] = estimator.predict(changed[trying])
        done = labels[trying] != before[trying] if goal is None else labels[trying] == model.classes_[goal]
        found[trying[done]] = True
        trying = trying[~done]
    changed[trying], labels[trying] = rows[trying], before[trying]
    return changed, labels, found


def _rounding(model: Any, rows: Floats, steps: Floats) -> Floats:
    """The rounding error of the projections in units of the change of the projections by the steps, shape (n_rows,)."""
    directions = model.directions_.T
    size = (np.abs(rows) @ np.abs(directions)).max(axis=1)
    moved = np.abs(steps @ directions).max(axis=1)
    return np.asarray(np.finfo(np.float64).eps * (1 + size / np.where(moved > 0, moved, 1.0)))
