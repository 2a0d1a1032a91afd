"""The part of each feature in the projections and in the log-odds of a row."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from melc.arrays import Floats
from melc.base import checked_projections
from melc.model.line import Line, LogOdds, log_odds_of
from melc.model.names import column_width, feature_names_of, largest_first
from melc.model.units import fitted_model

# Two projections are the same if they differ by less than this fraction of the parts that add up to the difference.
_SAME_PROJECTION = 1e-11


@dataclass(frozen=True)
class Explanation:
    """The parts of the features in the projections and log-odds of some rows, relative to a reference row.

    A model has n_lines lines. Its log-odds have n_columns columns: of two classes one, that of the second class; of
    more classes one for each, whose softmax are the probabilities. Of these only differences matter: a row is predicted
    as one class and not as another because of the difference of their columns.

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
        What the reference is, for texts and pictures.
    deviations : ndarray of shape (n_rows, n_features)
        The rows less the reference.
    coef : ndarray of shape (n_lines, n_features)
        The directions.
    projections : ndarray of shape (n_rows, n_lines)
        The projections of the rows.
    line_log_odds : ndarray of shape (n_rows, n_lines), or (n_rows, n_lines, n_classes)
        What each line adds to the log-odds, as ``model.line_log_odds`` returns it; the rest of them are the intercepts.
    log_odds : ndarray of shape (n_rows, n_columns)
        The log-odds of the rows, as ``decision_function`` returns them.
    base : ndarray of shape (n_columns,)
        The log-odds of the reference.
    log_odds_parts : ndarray of shape (n_rows, n_columns, n_features)
        The parts of the features in the log-odds: ``base + log_odds_parts.sum(axis=2)`` is ``log_odds``.
    thresholds : list of ndarray
        The thresholds of each line, ascending.
    intervals : ndarray of shape (n_rows, n_lines)
        The number of thresholds that are not above the projection: 0 for the leftmost interval.
    distance : ndarray of shape (n_rows, n_lines)
        The distance from the projection to the nearest threshold of the line; infinite if it has none.

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

    def column_of(self, row: int) -> int:
        """Return the column of the log-odds to explain a row by: of two classes the only one, else its class's own."""
        return 0 if len(self.base) == 1 else int(np.flatnonzero(self.classes == self.labels[row])[0])

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
        entries += [
            (f"{self.feature_names[j]} = {self.reference[j] + self.deviations[row, j]:.6g}", parts[j]) for j in shown
        ]
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
    the integral of the gradient along the straight path from r to x (*integrated gradients*). Those of several lines
    are added. So the parts add up to the difference from the reference, and none is larger than the deviation of its
    feature times the steepest slope between the two. With more than two classes, each class has curves and parts of its
    own.

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline become part of the weights; of a search the best estimator is
        used.
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        The rows, as ``predict`` takes them.
    reference : array-like of shape (n_features,), default=None
        The row that the parts are relative to. By default the mean of the training rows, ``feature_mean_``.
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
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 1.0], [5.0, 0.0]])
    >>> model = MELC(n_init=1, random_state=0).fit(X, ["low", "low", "high", "high"])
    >>> explanation = explain(model, X)
    >>> total = explanation.base + explanation.log_odds_parts.sum(axis=2)
    >>> bool(np.abs(total[:, 0] - model.decision_function(X)).max() < 1e-12)
    True
    """
    estimator, model = model, fitted_model(model)
    rows, names = dense_rows(model, X), feature_names_of(model, feature_names)
    known = model.feature_mean_ if reference is None else _checked_reference(reference, rows.shape[1])
    directions, formulas, deviations = model.directions_, log_odds_of(model), rows - known
    z, centre = checked_projections(model, X), (directions @ known)[None]
    adds, adds_there = _adds(model.lines_, z), _adds(model.lines_, centre)
    slopes = _slopes(model.lines_, deviations, adds - adds_there, centre)
    parts = np.einsum("ikc,kj,ij->icj", slopes, directions, deviations, optimize=True)
    intervals, distance = _places(model.lines_, z)
    return Explanation(
        labels=estimator.predict(X),
        classes=model.classes_,
        feature_names=names,
        reference=known,
        reference_name="mean of the training rows" if reference is None else "reference",
        deviations=deviations,
        coef=directions,
        projections=z,
        line_log_odds=adds[:, :, 0] if len(formulas) == 1 else adds,
        log_odds=_log_odds_of_rows(formulas, z),
        base=_log_odds_of_rows(formulas, centre)[0],
        log_odds_parts=parts,
        thresholds=[line.thresholds for line in model.lines_],
        intervals=intervals,
        distance=distance,
    )


def dense_rows(model: Any, X: Any) -> Floats:
    """Return X, checked against the fitted model, as a dense array of double precision, shape (n_rows, n_features)."""
    rows = validate_data(model, X, reset=False, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


def _checked_reference(reference: Any, n_features: int) -> Floats:
    row = np.asarray(reference, dtype=np.float64)
    if row.shape != (n_features,) or not np.isfinite(row).all():
        raise ValueError(
            f"reference must be one row of {n_features} finite numbers; found shape {row.shape}"
            + (" with NaN or infinity." if row.shape == (n_features,) else ".")
        )
    return row


def _adds(lines: list[Line], z: Floats) -> Floats:
    """What each line adds at projections z, of shape (n_rows, n_lines); shape (n_rows, n_lines, n_columns)."""
    return np.stack(
        [np.column_stack([curve.at(z[:, k]) for curve in line.curves]) for k, line in enumerate(lines)], axis=1
    )


def _log_odds_of_rows(formulas: list[LogOdds], z: Floats) -> Floats:
    """The log-odds at projections z on all lines, shape (n_rows, n_columns)."""
    return np.column_stack([each.at(z) for each in formulas])


def _slopes(lines: list[Line], deviations: Floats, gains: Floats, centre: Floats) -> Floats:
    """The mean slope of each curve from the reference to each row, shape (n_rows, n_lines, n_columns).

    ``gains``, of the same shape, is what each line adds more than at the reference, whose projections are ``centre``,
    of shape (1, n_lines).
    """
    directions = np.stack([line.direction for line in lines])
    steps = deviations @ directions.T
    apart = np.abs(steps) > _SAME_PROJECTION * (np.abs(deviations) @ np.abs(directions.T))
    limit = np.array([[float(curve.slope(centre[0, k])) for curve in line.curves] for k, line in enumerate(lines)])
    return np.where(apart[:, :, None], gains / np.where(apart, steps, 1.0)[:, :, None], limit)


def _places(lines: list[Line], z: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The interval of each projection along its line, and the distance to the nearest threshold."""
    intervals, distance = np.empty(z.shape, dtype=np.int64), np.empty(z.shape)
    for k, line in enumerate(lines):
        edges = np.concatenate([[-np.inf], line.thresholds, [np.inf]])
        intervals[:, k] = above = np.searchsorted(edges[1:-1], z[:, k], side="right")
        distance[:, k] = np.minimum(z[:, k] - edges[above], edges[above + 1] - z[:, k])
    return intervals, distance
