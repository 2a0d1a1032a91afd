"""The additive classifier: a few lines, each with a curve, whose values add up to the log-odds."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state

from melc._sklearn import (
    CallbackSupportMixin,
    FittedHTMLMixin,
    Interval,
    StrictParametersMixin,
    StrOptions,
    fit_context,
    with_callbacks,
)
from melc.arrays import Floats
from melc.classifier import GAMMAS, N_JOBS, as_it_was_if_refused, checked_projections, probabilities
from melc.data.dask.door import lazy_on_dask
from melc.fit.intake import labelled_rows
from melc.fit.progress import Progress
from melc.fit.pursuit import Plan, pursue
from melc.fit.validation import log_prior_ratios
from melc.model.html import fitted_html
from melc.model.line import Line


class AdditiveMELC(CallbackSupportMixin, FittedHTMLMixin, StrictParametersMixin, ClassifierMixin, BaseEstimator):
    """Additive Multithreshold Entropy Linear Classifier: a few readable lines instead of one.

    The log-odds of a row x are a sum of curves along directions,

    ``log-odds(x) = g₁(x·v₁) + g₂(x·v₂) + … + log prior ratio``.

    Most directions use one or two features only, so that each line can be drawn and read; some may use all of them. A
    curve is the log ratio of the two class densities along its direction, as in :class:`melc.MELC`, of what the lines
    before it leave unexplained. It has thresholds of its own, where it changes from speaking for one class to speaking
    for the other.

    Lines are added one after the other, each the one that raises the likelihood most when every row is left out of its
    own curve. Directions of two features are found by trying angles in the plane of promising pairs; those of all
    features are linear ones and, for the first line, those of largest divergence, which :class:`melc.MELC` finds. Both
    classes count equally, however many rows they have (see ``priors``).

    With more than two classes, lines are learned for each class against the rest.

    Parameters
    ----------
    max_lines : int, default=16
        Most lines, for each class against the rest if there are more than two classes. Fewer are used when further
        lines would not raise the likelihood by more than one row in the number of rows.
    features_per_line : {1, 2} or None, default=2
        Most features of a line. None means that every line uses all features.
    full_lines : {"auto", "first", "never"}, default="auto"
        Which lines may use all features instead, where that raises the likelihood by more than the number of weights
        would by chance.
    gamma : float, default=1.0
        Factor on the bandwidth of the curves. Larger values make smoother curves.
    priors : None, "empirical" or array-like of shape (n_classes,), default=None
        Prior probabilities of the classes. None: all equal. "empirical": proportional to the class weights in the
        training data. Priors change the decision, but not the lines.
    n_jobs : int, default=None
        Number of threads used for large data. None means the number OpenMP would use, -1 all cores. The result does not
        depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples of large data, and of the search of the first line.
    verbose : int, default=0
        If positive, print a line of text for each line found.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    lines_ : list of melc.model.line.Line
        The lines, those of each class together, in the order in which they were found.
    coef_ : ndarray of shape (n_lines, n_features)
        The directions of the lines, of length one.
    importances_ : ndarray of shape (n_features,)
        How much each feature moves the log-odds on the training data: the importances of the lines, each divided among
        its features in proportion to weight times spread.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Log ratio of the priors.
    feature_mean_ : ndarray of shape (n_features,)
        Weighted means of the features, from up to 10,000 rows.
    feature_spread_ : ndarray of shape (n_features,)
        Standard deviations of the features, from the same rows; zero for a constant feature.
    n_iter_ : int
        Number of lines; with more than two classes, the most of any class.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features seen during fit. Defined only when X has feature names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from melc import AdditiveMELC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 4))
    >>> y = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 > 1.4, "outside", "inside")
    >>> model = AdditiveMELC(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "max_lines": [Interval(Integral, 1, None, closed="left")],
        "features_per_line": [Interval(Integral, 1, 2, closed="both"), None],
        "full_lines": [StrOptions({"auto", "first", "never"})],
        "gamma": [Interval(Real, *GAMMAS, closed="both")],
        "priors": [None, StrOptions({"empirical"}), "array-like"],
        "n_jobs": N_JOBS,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        max_lines: int = 16,
        features_per_line: int | None = 2,
        full_lines: str = "auto",
        gamma: float = 1.0,
        priors: Any = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_lines = max_lines
        self.features_per_line = features_per_line
        self.full_lines = full_lines
        self.gamma = gamma
        self.priors = priors
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "AdditiveMELC":
        """Learn the lines.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training data. May be a memory map. May also be a Dask array or dataframe, of which a sample of 200,000 rows
            is brought into memory; y and sample_weight must then be Dask collections too.
        y : array-like of shape (n_samples,)
            Class labels, at least two different ones.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. A row of weight k counts as k copies of it, a row of weight zero is ignored.

        Returns
        -------
        self : AdditiveMELC
            Fitted estimator.
        """
        with as_it_was_if_refused(self):
            rows, classes, totals = labelled_rows(self, X, y, sample_weight)
            intercept = np.asarray(log_prior_ratios(self.priors, classes, totals))
            several = len(classes) > 2
            parts = [(k, rows.against_rest(k)) for k in range(len(classes))] if several else [(1, rows)]
            progress = Progress(self, len(parts) * self.max_lines, self.verbose, X, y, sample_weight)
            plan = Plan(self.max_lines, self.features_per_line, self.full_lines, float(self.gamma))
            found = pursue(parts, plan, check_random_state(self.random_state), progress.line_ended)
            self._store(classes, intercept, found.lines)
            self.feature_mean_, self.feature_spread_ = found.mean, found.spread
            progress.fit_ended()
        return self

    def _store(self, classes: NDArray[Any], intercept: Floats, found: list[list[Line]]) -> None:
        self.classes_ = classes
        self.intercept_ = intercept
        self.lines_ = [line for lines in found for line in lines]
        self.coef_ = np.stack([line.coef for line in self.lines_])
        self.importances_ = np.sum([line.feature_importances for line in self.lines_], axis=0)
        self.n_iter_ = max(len(lines) for lines in found)

    @lazy_on_dask
    def line_log_odds(self, X: Any) -> Floats:
        """Return what each line adds to the log-odds of each row, shape (n_samples, n_lines)."""
        z = checked_projections(self, X)
        return np.column_stack([line.at(z[:, k]) for k, line in enumerate(self.lines_)])

    @lazy_on_dask
    def decision_function(self, X: Any) -> Floats:
        """Return the log-odds of each row.

        With two classes, those of the second, shape (n_samples,). With more, those of each class against the rest,
        shape (n_samples, n_classes).
        """
        odds = self._log_odds(X)
        return odds[:, 0] if len(self.classes_) == 2 else odds

    def _log_odds(self, X: Any) -> Floats:
        """The log-odds of each class against the rest, shape (n_samples, n_classes); of two classes, of the second."""
        adds = self.line_log_odds(X)
        shown = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        parts = [adds[:, [line.class_index == k for line in self.lines_]].sum(axis=1) for k in shown]
        return np.column_stack(parts) + self.intercept_

    @lazy_on_dask
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class label of each row, shape (n_samples,)."""
        odds = self._log_odds(X)
        codes = (odds[:, 0] > 0).astype(int) if len(self.classes_) == 2 else np.argmax(odds, axis=1)
        return np.asarray(self.classes_[codes])

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
        return np.asarray(log_softmax(log_expit(odds), axis=1))

    def _fitted_html(self) -> str:
        return fitted_html(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
