"""The part of each feature in the projections and in the log-odds of a row."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from melc.arrays import Floats
from melc.base import projections
from melc.data.frames import is_frame
from melc.fit.intake import check_no_infinity, coded_rows
from melc.model.columns import Columns
from melc.model.line import Line, log_odds_of
from melc.model.names import column_width, feature_names_of, largest_first
from melc.model.places import value_text
from melc.model.units import fitted_model, nameless

# Two projections are the same if they differ by less than this fraction of the parts that add up to the difference.
_SAME_PROJECTION = 1e-11


@dataclass(frozen=True)
class Explanation:
    """The parts of the features in the projections and log-odds of some rows, relative to a reference row.

    The model has n_lines lines. Its log-odds have n_columns columns. With two classes there is one column, for the
    second class. With more there is one for each class, and the probabilities are their softmax, so only the
    differences between columns matter.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,)
        The predicted classes.
    classes : ndarray of shape (n_classes,)
        The class labels of the model.
    feature_names : list of str
        The names of the features.
    reference : ndarray of shape (n_features,)
        The row that the parts are relative to.
    reference_name : str
        A description of the reference, for texts and plots.
    deviations : ndarray of shape (n_rows, n_features)
        The rows minus the reference. A level of a category is represented by its score.
    codes : ndarray of shape (n_rows, n_features)
        The rows as a model codes them: numbers, days of dates, and numbers of levels.
    columns : Columns
        What the columns hold.
    coef : ndarray of shape (n_lines, n_features)
        The directions; zero for lines of levels or missing values, which have parts only in the log-odds.
    projections : ndarray of shape (n_rows, n_lines)
        The projections of the rows; NaN where the value of the line is missing.
    line_log_odds : ndarray of shape (n_rows, n_lines), or (n_rows, n_lines, n_classes)
        What each line adds to the log-odds, as returned by ``model.line_log_odds``; the intercepts are not included.
    log_odds : ndarray of shape (n_rows, n_columns)
        The log-odds of the rows, as ``decision_function`` returns them.
    base : ndarray of shape (n_columns,)
        The log-odds of the reference.
    log_odds_parts : ndarray of shape (n_rows, n_columns, n_features)
        The parts of the features in the log-odds: ``base + log_odds_parts.sum(axis=2)`` is ``log_odds``.
    thresholds : list of ndarray
        The thresholds of each line, ascending.
    intervals : ndarray of shape (n_rows, n_lines)
        The number of the interval that contains the projection, 0 for the leftmost one. For the line of a category, the
        number of the level. −1 if the value is missing or the level is unknown.
    distance : ndarray of shape (n_rows, n_lines)
        The distance from the projection to the nearest threshold of the line; infinite if it has none, and for levels
        and missing values.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> X, species = load_iris(return_X_y=True)
    >>> y = species == 1
    >>> model = MELC(n_init=2, random_state=0).fit(X, y)
    >>> from melc.explain import explain
    >>> found = explain(model, X)
    >>> found.log_odds_parts.shape
    (150, 1, 4)
    """

    labels: NDArray[Any]
    classes: NDArray[Any]
    feature_names: list[str] = field(repr=False)
    reference: Floats = field(repr=False)
    reference_name: str = field(repr=False)
    deviations: Floats = field(repr=False)
    codes: Floats = field(repr=False)
    columns: Columns = field(repr=False)
    coef: Floats = field(repr=False)
    projections: Floats = field(repr=False)
    line_log_odds: Floats = field(repr=False)
    log_odds: Floats
    base: Floats
    log_odds_parts: Floats = field(repr=False)
    thresholds: list[Floats] = field(repr=False)
    intervals: NDArray[np.int64] = field(repr=False)
    distance: Floats = field(repr=False)

    @property
    def base_projections(self) -> Floats:
        """The projections of the reference, shape (n_lines,)."""
        return self.coef @ self.reference

    @property
    def projection_parts(self) -> Floats:
        """The parts of the features in the projections, shape (n_rows, n_lines, n_features).

        ``base_projections + projection_parts.sum(axis=2)`` is ``projections``.
        """
        return self.coef * self.deviations[:, None, :]

    def value(self, row: int, feature: int) -> str:
        """Return the value of a feature in a row as text: a number, a date, a level, or "(missing)"."""
        return value_text(self.columns, feature, float(self.codes[row, feature]))

    def column_of(self, row: int) -> int:
        """Return the column of the log-odds to explain a row by: of two classes the only one, else its class's own."""
        return 0 if len(self.base) == 1 else int(self.log_odds[row].argmax())

    def summary(self, row: int = 0, *, most: int = 10) -> str:
        """Return the parts of the features in the log-odds of one row, counted from 0, as text.

        Of more than two classes they are the log-odds of the predicted class. The ``most`` largest parts are listed,
        the largest first, and then the sum of the others.
        """
        column = self.column_of(row)
        parts = self.log_odds_parts[row, column]
        order = largest_first(parts)
        shown, rest = order[:most], order[most:]
        entries = [(self.reference_name, self.base[column])]
        entries += [(f"{self.feature_names[j]} = {self.value(row, j)}", parts[j]) for j in shown]
        if len(rest):
            entries.append((f"{len(rest)} other features", parts[rest].sum()))
        entries.append(("log-odds", self.log_odds[row, column]))
        width = column_width(text for text, _ in entries)
        who = self.classes[1] if len(self.base) == 1 else self.classes[column]
        head = f"class {self.labels[row]}; parts of the features in the log-odds of class {who}"
        return "\n".join([head, *(f"  {text:<{width}}  {value:+.4f}" for text, value in entries)])


def explain(model: Any, X: Any, *, reference: Any = None, feature_names: Any = None) -> Explanation:
    """Return the part of each feature in the projections and in the log-odds of each row.

    The part of feature j in a projection z = v·x is ``v_j (x_j − r_j)``, with the reference r. Along a line, the
    log-odds are a curve g of z, and the part of the feature in them is ``v_j (x_j − r_j) (g(z) − g(z_r)) / (z − z_r)``:
    the integral of the gradient along the straight path from r to x (*integrated gradients*). The parts of several
    lines are added. So the parts add up to the difference from the reference, and none is larger than the change of the
    projection due to its feature, times the steepest slope of the curve between the two. With more than two classes,
    each class has its own curves and parts.

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline become part of the weights; for a search, the best estimator is
        used.
    X : {array-like, sparse matrix, frame} of shape (n_rows, n_features)
        The rows, as ``predict`` takes them.
    reference : array-like of shape (n_features,), or frame of one row, default=None
        The row that the parts are relative to; values may be missing. By default the mean of the training rows,
        ``feature_mean_``; a category is then compared with the average of its levels.
    feature_names : list of str, default=None
        Names of the features. By default those seen in ``fit``, or "x0", "x1", ...

    Returns
    -------
    explanation : Explanation

    Examples
    --------
    >>> import numpy as np
    >>> from melc import MELC
    >>> from melc.explain import explain
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0], [4.0, 1.0], [5.0, 0.0], [6.0, 2.0]])
    >>> model = MELC(n_init=1, random_state=0).fit(X, 3 * ["low"] + 3 * ["high"])
    >>> explanation = explain(model, X)
    >>> total = explanation.base + explanation.log_odds_parts.sum(axis=2)
    >>> bool(np.abs(total[:, 0] - model.decision_function(X)).max() < 1e-12)
    True
    """
    estimator, model = model, fitted_model(model)
    codes, names = dense_codes(model, X), feature_names_of(model, feature_names)
    columns, lines, several = model.columns_, model.lines_, len(model.classes_) > 2
    known, known_codes = _reference_of(model, reference)
    deviations = columns.quantities(codes, model.feature_mean_) - known
    directions = np.stack([np.zeros(len(known)) if line.reads_codes else line.direction for line in lines])
    z, centre = projections(model, codes), projections(model, known_codes)
    adds, adds_there = _adds(lines, z), _adds(lines, centre)
    if reference is None:  # levels are compared with their average, which the curves are centred at
        adds_there[:, [bool(line.levels) for line in lines]] = 0.0
    gains = adds - adds_there
    slopes = _slopes(lines, directions, deviations, gains, centre)
    parts = np.einsum("ikc,kj,ij->icj", slopes, directions, deviations, optimize=True)
    for k, line in enumerate(lines):
        if line.reads_codes:
            parts[:, :, line.features[0]] += gains[:, k]
    intervals, distance = _places(lines, z)
    return Explanation(
        labels=estimator.predict(X),
        classes=model.classes_,
        feature_names=names,
        reference=known,
        reference_name="mean of the training rows" if reference is None else "reference",
        deviations=deviations,
        codes=codes,
        columns=columns,
        coef=directions,
        projections=z,
        line_log_odds=adds if several else adds[:, :, 0],
        log_odds=_log_odds_at(model, z),
        base=model.intercepts_ + adds_there[0].sum(axis=0),
        log_odds_parts=parts,
        thresholds=[line.thresholds for line in lines],
        intervals=intervals,
        distance=distance,
    )


def dense_codes(model: Any, X: Any) -> Floats:
    """Return X, checked against the fitted model, as coded rows (:mod:`melc.model.columns`), shape (n_rows, d)."""
    check_is_fitted(model, "lines_")
    codes = coded_rows(model, X)
    check_no_infinity(codes)
    return np.asarray(codes.toarray() if hasattr(codes, "toarray") else codes, dtype=np.float64)


def _reference_of(model: Any, reference: Any) -> tuple[Floats, Floats]:
    """Return the quantities of the reference, shape (d,), and the row coded, shape (1, d).

    By default it is the mean of the training rows; a category then has no level.
    """
    if reference is None:
        codes = np.array(model.feature_mean_, dtype=np.float64)
        codes[list(model.columns_.categories)] = np.nan
        return model.feature_mean_, codes[None]
    if model.columns_.are_numbers and not is_frame(reference):
        model, reference = nameless(model), _one_row(reference, model.n_features_in_)
    n_rows = len(reference) if hasattr(reference, "__len__") else None
    if n_rows != 1:
        found = type(reference).__name__ if n_rows is None else f"{n_rows} rows"
        raise ValueError(f"reference must be a table of one row; found {found}.")
    codes = dense_codes(model, reference)
    return model.columns_.quantities(codes, model.feature_mean_)[0], codes


def _one_row(reference: Any, n_features: int) -> Floats:
    """Return numbers, in which some may be missing, as a matrix of one row."""
    try:
        row = np.asarray(reference.toarray() if sparse.issparse(reference) else reference, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"reference={reference!r:.100} must be one row of {n_features} numbers.") from None
    if row.shape not in ((n_features,), (1, n_features)) or np.isinf(row).any():
        raise ValueError(
            f"reference must be one row of {n_features} numbers; found shape {row.shape}"
            + (" with infinity." if np.isinf(row).any() else ".")
        )
    return row.reshape(1, -1)


def _adds(lines: list[Line], z: Floats) -> Floats:
    """What each line adds at projections z, of shape (n_rows, n_lines); shape (n_rows, n_lines, n_columns)."""
    return np.stack(
        [np.column_stack([curve.at(z[:, k]) for curve in line.curves]) for k, line in enumerate(lines)], axis=1
    )


def _log_odds_at(model: Any, z: Floats) -> Floats:
    """The log-odds at projections z on all lines, shape (n_rows, n_columns)."""
    return np.column_stack([each.at(z) for each in log_odds_of(model)])


def all_log_odds(model: Any, codes: Floats) -> Floats:
    """Return the log-odds of all classes for coded rows, shape (n, n_classes); of two, those of the first are zero."""
    odds = _log_odds_at(model, projections(model, codes))
    return odds if odds.shape[1] > 1 else np.column_stack([np.zeros(len(odds)), odds])


def _slopes(lines: list[Line], directions: Floats, deviations: Floats, gains: Floats, centre: Floats) -> Floats:
    """The mean slope of each curve from the reference to each row, shape (n_rows, n_lines, n_columns).

    ``gains``, of the same shape, is what each line adds more than at the reference, whose projections are ``centre``,
    of shape (1, n_lines).
    """
    steps = deviations @ directions.T
    apart = np.abs(steps) > _SAME_PROJECTION * (np.abs(deviations) @ np.abs(directions.T))
    limit = np.array([[float(curve.slope(centre[0, k])) for curve in line.curves] for k, line in enumerate(lines)])
    return np.where(apart[:, :, None], gains / np.where(apart, steps, 1.0)[:, :, None], limit)


def _places(lines: list[Line], z: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The interval of each projection along its line, and the distance to the nearest threshold."""
    intervals, distance = np.empty(z.shape, dtype=np.int64), np.empty(z.shape)
    for k, line in enumerate(lines):
        missing = np.isnan(z[:, k])
        places = np.where(missing, 0.0, z[:, k])
        if line.levels:
            intervals[:, k], distance[:, k] = places, np.inf
        else:
            edges = np.concatenate([[-np.inf], line.thresholds, [np.inf]])
            intervals[:, k] = above = np.searchsorted(edges[1:-1], places, side="right")
            distance[:, k] = np.minimum(places - edges[above], edges[above + 1] - places)
        intervals[missing, k], distance[missing, k] = -1, np.inf
    return intervals, distance
