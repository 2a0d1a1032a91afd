"""The additive classifier: a few lines, each with a curve, whose values add up to the log-odds."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from melc._sklearn import Interval, StrOptions, fit_context, with_callbacks
from melc.base import GAMMAS, N_JOBS, LineClassifier, parts_of, restored_on_error
from melc.fit.intake import labelled_rows
from melc.fit.progress import Progress
from melc.fit.pursuit import Plan, pursue
from melc.fit.validation import log_prior_ratios


class AdditiveMELC(LineClassifier):
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
    directions_ : ndarray of shape (n_lines, n_features)
        The directions of the lines, of length one, with a positive weight of the feature that contributes most. They
        are not named ``coef_``: the model is not linear.
    importances_, feature_importances_ : ndarray of shape (n_features,)
        How much each feature moves the log-odds on the training data, and the same as parts of the sum. The importance
        of a line is divided among its features in proportion to weight times spread.
    intercepts_ : ndarray of shape (1,) or (n_classes,)
        Log ratio of the priors, of each class against the rest.
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
        with restored_on_error(self):
            rows, classes, totals = labelled_rows(self, X, y, sample_weight)
            intercepts = np.asarray(log_prior_ratios(self.priors, classes, totals))
            parts = parts_of(rows, len(classes))
            progress = Progress(self, len(parts) * self.max_lines, self.verbose, X, y, sample_weight)
            plan = Plan(self.max_lines, self.features_per_line, self.full_lines, float(self.gamma))
            rng = check_random_state(self.random_state)
            found = pursue(parts, plan, intercepts, rng, progress.line_ended)
            self.classes_, self.intercepts_ = classes, intercepts
            self.lines_ = [line for lines in found.lines for line in lines]
            self.n_iter_ = max(len(lines) for lines in found.lines)
            self.feature_mean_, self.feature_spread_ = found.mean, found.spread
            progress.fit_ended()
        return self
