"""What both classifiers share: predictions from lines and intercepts, checks, and what notebooks show."""

import contextlib
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from melc._sklearn import (
    CallbackSupportMixin,
    FittedHTMLMixin,
    Interval,
    StrictParametersMixin,
    n_threads_for,
)
from melc.arrays import Floats
from melc.data.dask.collections import lazy_on_dask
from melc.data.products import project_on
from melc.data.source import Rows
from melc.fit.coordinates import UnitsError
from melc.fit.intake import check_no_infinity, coded_rows
from melc.model.columns import Columns
from melc.model.html import fitted_html
from melc.model.line import Line, log_odds_of

# Least and largest gamma: beyond these, squares of bandwidths leave the range of floats.
GAMMA_RANGE = 1e-15, 1e15
# What ``n_jobs`` may be: any integer but zero, or None.
N_JOBS = [Interval(Integral, None, -1, closed="right"), Interval(Integral, 1, None, closed="left"), None]

_ABOVE_HALF = float(np.nextafter(0.5, 1))


class LineClassifier(CallbackSupportMixin, FittedHTMLMixin, StrictParametersMixin, ClassifierMixin, BaseEstimator):
    """A classifier whose log-odds are an intercept and a sum of curves along lines.

    ``log-odds(x) = intercept + Σ g(x·v)``

    of the second of two classes, or of each of more classes, whose probabilities are then the softmax. A fit leaves
    ``classes_``, ``lines_``, ``intercepts_``, and the means and standard deviations of the features; all else follows
    from these.
    """

    classes_: NDArray[Any]
    columns_: Columns
    lines_: list[Line]
    intercepts_: Floats

    @property
    def directions_(self) -> Floats:
        """The directions of the lines, of length one; shape (n_lines, n_features)."""
        return np.stack([line.direction for line in self.lines_])

    @property
    def importances_(self) -> Floats:
        """How much each feature moves the log-odds on the training data, shape (n_features,)."""
        return np.asarray(np.sum([line.feature_importances for line in self.lines_], axis=0))

    @property
    def feature_importances_(self) -> Floats:
        """The importances of the features as parts of their sum, shape (n_features,)."""
        importances = self.importances_
        return np.asarray(importances / (importances.sum() or 1.0))

    @lazy_on_dask
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class label of each row, shape (n_samples,).

        With two classes, it is the second where the log-odds are above zero. With more, it is the class of the largest
        log-odds.
        """
        odds = self._log_odds(X)
        codes = (odds[:, 0] > 0).astype(int) if len(self.classes_) == 2 else np.argmax(odds, axis=1)
        return np.asarray(self.classes_[codes])

    @lazy_on_dask
    def decision_function(self, X: Any) -> Floats:
        """Return the log-odds of each row.

        With two classes, those of the second, shape (n_samples,). With more, those of each class, up to a constant
        of the row, shape (n_samples, n_classes): the probabilities are their softmax.
        """
        odds = self._log_odds(X)
        return odds[:, 0] if len(self.classes_) == 2 else odds

    @lazy_on_dask
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n_samples, n_classes)."""
        return probabilities(self._log_odds(X))

    @lazy_on_dask
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of ``predict_proba``, shape (n_samples, n_classes)."""
        odds = self._log_odds(X)
        if len(self.classes_) == 2:
            return np.column_stack([log_expit(-odds[:, 0]), log_expit(odds[:, 0])])
        return np.asarray(log_softmax(odds, axis=1))

    @lazy_on_dask
    def line_log_odds(self, X: Any) -> Floats:
        """Return what each line adds to the log-odds of each row.

        The shape is (n_samples, n_lines); with more than two classes (n_samples, n_lines, n_classes).
        """
        z = checked_projections(self, X)
        added = np.stack([[curve.at(z[:, k]) for curve in line.curves] for k, line in enumerate(self.lines_)]).T
        return added[:, 0, :] if len(self.classes_) == 2 else added.transpose(0, 2, 1)

    def _log_odds(self, X: Any) -> Floats:
        """The log-odds of each class, shape (n_samples, n_classes); of two classes, of the second alone."""
        z = checked_projections(self, X)
        return np.column_stack([each.at(z) for each in log_odds_of(self)])

    def _fitted_html(self) -> str:
        return fitted_html(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def parts_of(rows: Rows, n_classes: int) -> list[Rows]:
    """Return the rows that directions are searched for: as they are, or with each of more than two classes coded 1."""
    return [rows.against_rest(k) for k in range(n_classes)] if n_classes > 2 else [rows]


def checked_projections(model: Any, X: Any) -> Floats:
    """Check X and return its projections on the directions of a model, shape (n_rows, n_lines).

    A line that reads codes has those of its column (:mod:`melc.model.columns`), NaN where the value is missing. X is
    searched for NaN and infinity only if projections are not finite.
    """
    check_is_fitted(model, "lines_")
    return projections(model, coded_rows(model, X))


def projections(model: Any, coded: Any) -> Floats:
    """Return the projections of coded rows on the directions of a model, shape (n_rows, n_lines)."""
    n_threads = n_threads_for(model.n_jobs)
    if model.columns_.are_numbers and not model.columns_.places:
        z = project_on(coded, model.directions_, n_threads)
        if np.isfinite(z).all():
            return z
    check_no_infinity(coded)
    if sparse.issparse(coded):
        return np.nan_to_num(project_on(coded, model.directions_, n_threads))
    quantities = model.columns_.quantities(coded, model.feature_mean_)
    z = np.nan_to_num(project_on(quantities, model.directions_, n_threads))  # a projection may overflow
    for k, line in enumerate(model.lines_):
        if line.reads_codes:
            z[:, k] = coded[:, line.features[0]]
    return z


def probabilities(odds: Floats) -> Floats:
    """Return the probabilities of the classes, shape (n_rows, n_classes), from their log-odds.

    Of two classes ``odds`` has those of the second, shape (n_rows, 1); of more those of each, shape (n_rows,
    n_classes), and the probabilities are their softmax. The largest probability is that of the largest odds, also where
    rounding makes two equal.
    """
    if odds.shape[1] == 1:
        second = np.maximum(expit(odds[:, 0]), np.where(odds[:, 0] > 0, _ABOVE_HALF, 0.0))
        return np.column_stack([expit(-odds[:, 0]), second])
    proba = softmax(odds, axis=1)
    best, found = np.argmax(odds, axis=1), np.argmax(proba, axis=1)
    merged = np.flatnonzero(found != best)
    proba[merged, best[merged]] = np.nextafter(proba[merged, found[merged]], 1)
    return proba


@contextlib.contextmanager
def restored_on_error(model: Any) -> Iterator[None]:
    """Restore the fitted attributes of the model if the block raises an error; name the feature in a UnitsError."""
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    try:
        yield
    except BaseException as error:
        names = getattr(model, "feature_names_in_", None)
        for name in [name for name in vars(model) if name.endswith("_")]:
            delattr(model, name)
        model.__dict__.update(before)
        if isinstance(error, UnitsError) and names is not None:
            raise UnitsError(error.feature, error.deviation, names[error.feature]) from None
        raise
