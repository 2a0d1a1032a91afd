"""The additive classifier: a few lines, each with a curve, whose values add up to the log-odds."""

from contextlib import closing
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state

from melc._sklearn import Interval, StrOptions, check_no_masks, fit_context, with_callbacks
from melc.base import GAMMA_RANGE, N_JOBS, LineClassifier, restored_on_error
from melc.data.dask.collections import is_lazy
from melc.fit.advice import warn_of_equal_rows, warn_of_rounding
from melc.fit.intake import labelled_rows
from melc.fit.progress import Progress
from melc.fit.pursuit import Plan, pursue
from melc.fit.validation import check_monotone_columns, in_numbers_of_rows, log_prior_ratios, monotone_signs


class AdditiveMELC(LineClassifier):
    """Additive Multithreshold Entropy Linear Classifier: a few readable lines instead of one.

    The log-odds of a row x are a sum of curves along directions,

    ``log-odds(x) = intercept + g₁(x·v₁) + g₂(x·v₂) + …``

    A direction v together with its curve g is called a line. Most directions use only one or two features, so that each
    line can be plotted and read; some may use all features. Lines are added one at a time. After each addition, all
    curves are refitted together, as one penalised logistic model in which every curve has its own smoothness, estimated
    from the data. A line is kept if it raises the leave-one-out log-likelihood by more than that of about one row. By
    default all classes count equally, however many rows they have (see ``priors``).

    As in :class:`melc.MELC`, the first direction may be one of the largest Cauchy-Schwarz divergence, and directions
    are compared by the densities of the classes along them. The curves maximise a penalised likelihood; they are not
    ratios of densities.

    With more than two classes, each class has a curve along every line, and the probabilities are the softmax of the
    sums. Candidate lines are those that separate one class from the others.

    Parameters
    ----------
    max_lines : int, default=16
        Largest number of lines. Fewer are used if more do not raise the likelihood enough.
    features_per_line : {1, 2} or None, default=2
        Largest number of features of a line. None means that every line uses all features.
    full_lines : {"auto", "first", "never"}, default="auto"
        Which lines may use all features nevertheless: any line, only the first, or none. They do so if this raises the
        likelihood by more than that many weights would by chance.
    other_features : bool, default=False
        Whether to add a minor line for each feature without a line of its own: a curve that is shrunk by an amount
        estimated from the data. Texts, plots and reports hide minor lines. At most 100 features get one, the most
        informative ones.
    categorical_features : array-like of str, int or bool, or None, default=None
        Columns of numbers that are to be treated as categories: their names or indices, or a boolean for each column.
        Text, boolean and categorical columns are always categories.
    monotone : dict, list or None, default=None
        Features along which the log-odds of the second class must not decrease ("increasing") or not increase
        ("decreasing"): a dict by name or index, or a list with an entry for each feature, None for no constraint. Such
        a feature is not combined with others. Only for two classes.
    gamma : float, default=1.0
        Factor for the smoothness of the curves. Larger values make the curves smoother: 2 has the effect of doubling
        the bandwidth of a density.
    priors : None, "balanced", "empirical", dict or array-like of shape (n_classes,), default=None
        Prior probabilities of the classes: ``{"ill": 0.1, "well": 0.9}``, or a list in the order of the labels. None or
        "balanced": all equal. "empirical": proportional to the class weights in the training data. Priors change the
        intercepts, but not the lines.
    n_jobs : int, default=None
        Number of threads used for large data. None means the number OpenMP would use, -1 all cores. The result does not
        depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples of large data, and of the search of the first line.
    verbose : int, default=0
        If positive, print a message for each line found.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    lines_ : list of melc.model.line.Line
        The lines, in the order in which they were found; minor ones last. ``errors`` of a line are the standard errors
        of its curves.
    directions_ : ndarray of shape (n_lines, n_features)
        The directions of the lines, unit vectors in which the feature that contributes most has a positive weight. They
        are not named ``coef_``, because the model is not linear.
    importances_, feature_importances_ : ndarray of shape (n_features,)
        How much each feature changes the log-odds on the training data, and the same divided by the sum. The importance
        of a line is divided among its features in proportion to weight times standard deviation.
    intercepts_ : ndarray of shape (1,) or (n_classes,)
        Constant of the log-odds, which includes the log ratio of the priors.
    feature_mean_ : ndarray of shape (n_features,)
        Weighted means of the features, from up to 10,000 rows.
    feature_spread_ : ndarray of shape (n_features,)
        Standard deviations of the features, from the same rows; zero for a constant feature.
    n_iter_ : int
        Number of lines.
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
        "other_features": ["boolean"],
        "categorical_features": ["array-like", None],
        "monotone": [dict, "array-like", None],
        "gamma": [Interval(Real, *GAMMA_RANGE, closed="both")],
        "priors": [None, StrOptions({"balanced", "empirical"}), "array-like", dict],
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
        other_features: bool = False,
        categorical_features: Any = None,
        monotone: Any = None,
        gamma: float = 1.0,
        priors: Any = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_lines = max_lines
        self.features_per_line = features_per_line
        self.full_lines = full_lines
        self.other_features = other_features
        self.categorical_features = categorical_features
        self.monotone = monotone
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
            Training data. May be a memory map. May also be a Dask array or dataframe: directions are then found on a
            sample, and the curves fitted to all rows; y and sample_weight must be Dask collections too.
        y : array-like of shape (n_samples,)
            Class labels, at least two different ones.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. Whole numbers are numbers of copies, after division by their greatest common divisor.
            Of fractions only the ratios matter: they say how much rows matter relative to each other or, if all are
            whole multiples of the smallest and no more than ten times as large on average, how many copies there are.
            In Dask collections a row of weight k always counts as k rows. Rows of weight zero are ignored.

        Returns
        -------
        self : AdditiveMELC
            Fitted estimator.
        """
        with restored_on_error(self):
            data = labelled_rows(self, X, y, _in_numbers_of_rows(sample_weight), with_axes=True)
            classes, n_features = data.classes, data.design.n_columns
            log_priors = log_prior_ratios(self.priors, classes, data.totals)
            signs = monotone_signs(self.monotone, n_features, getattr(self, "feature_names_in_", None), classes)
            check_monotone_columns(signs, data.columns.categories, getattr(self, "feature_names_in_", None))
            plan = Plan(
                self.max_lines,
                self.features_per_line,
                self.full_lines,
                float(self.gamma),
                self.other_features,
                signs,
            )
            progress = Progress(self, self.max_lines, self.verbose, X, y, sample_weight)
            rng = check_random_state(self.random_state)
            with closing(data.rows):
                found = pursue(data, plan, log_priors, rng, progress.line_ended)
            self.classes_, self.lines_, self.intercepts_ = classes, found.lines, found.intercepts
            self.columns_ = data.columns
            self.n_iter_ = len(found.lines)
            self.feature_mean_, self.feature_spread_ = found.mean, found.spread
            warn_of_equal_rows(classes, data.rows.counts)
            warn_of_rounding(self, found.steps)
            progress.fit_ended()
        return self


def _in_numbers_of_rows(sample_weight: Any) -> Any:
    """Return weights in memory in their unit; others, and what is no array of weights, as they are."""
    if sample_weight is None or isinstance(sample_weight, Real) or is_lazy(sample_weight):
        return sample_weight
    check_no_masks(sample_weight=sample_weight)
    weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    usable = weights.ndim == 1 and weights.min() >= 0 and weights.any()
    return in_numbers_of_rows(weights) if usable else weights
