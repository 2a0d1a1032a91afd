"""The classifier :class:`MELC`: checks the data, learns the directions, and stores the result."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state

from melc._sklearn import Interval, StrOptions, fit_context, with_callbacks
from melc.arrays import Floats
from melc.base import GAMMA_RANGE, N_JOBS, LineClassifier, checked_projections, parts_of, restored_on_error
from melc.data.dask.collections import lazy_on_dask
from melc.fit.advice import warn_of_projection, warn_of_rounding
from melc.fit.intake import Labelled, labelled_rows
from melc.fit.joint_fit import lines_along
from melc.fit.progress import Progress
from melc.fit.projection import Projection, choose_gamma, learn_projections
from melc.fit.search import Settings
from melc.fit.solvers import SOLVERS, Result
from melc.fit.validation import log_prior_ratios
from melc.model.line import LARGEST_WHOLE_WEIGHT
from melc.objective import METHODS

# Largest number of starts and of iterations, far more than any search needs. Memory is allocated for each.
_MOST = 1_000_000


class MELC(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LineClassifier):
    """Multithreshold Entropy Linear Classifier.

    The classifier searches for directions v that maximise the Cauchy-Schwarz divergence

    ``D(v) = log ∫f₋² + log ∫f₊² − 2 log ∫f₋ f₊``

    of the kernel densities f₋ and f₊ of the two classes projected onto v, and chooses one of the optima that it finds
    (see ``selection``). A row x is assigned to the class whose density is higher at ``v·x``, so the decision rule is a
    list of thresholds along one direction. An interval between thresholds is kept only if it contains training rows of
    its class and predicts its rows better than a coin toss; otherwise it is merged with its neighbours. By default both
    classes count equally, however many rows they have (see ``priors``).

    The fitted model is a curve: the log ratio of the densities along v, made less extreme by a few pseudo-rows. The
    log-odds of a row are the value of the curve at its projection, plus the log ratio of the priors.

    With more than two classes, a direction is learned for each class against the rest. Along every direction each class
    has a curve. All curves are fitted together as one penalised multinomial model. A row is assigned to the class whose
    curves have the largest sum, and the probabilities are the softmax of these sums.

    Parameters
    ----------
    gamma : float or "auto", default=1.0
        Factor by which Silverman's bandwidth is multiplied. Values below one make the densities follow the data more
        closely and give more thresholds; values above one make the densities smoother. At least 1e-15, at most 1e15.
        "auto" chooses among 0.4, 0.65, 1, 1.5 and 2.5 by the log loss in three-fold cross-validation on up to 20,000
        rows; ``gamma_`` is the value chosen. On the paper's data sets this took two to four times as long as a fit with
        the chosen gamma. With more than two classes, gamma affects only the search for directions; the smoothness of
        the curves is estimated from the data.
    method : {"moments", "exact", "discard", "bin"}, default="moments"
        How the sums over pairs of points are computed. "moments" uses moment bins, in linear time and with a certified
        error. "exact" sums over all pairs. "discard" and "bin" are the paper's approximations: "discard" leaves out
        pairs that are far apart, "bin" replaces the points of each bin by their mean.
    eps : float, default=1e-6
        Accepted error. For "moments" it bounds the error of the divergence itself, whatever the scale of the data.
        For "discard" and "bin" it is the paper's absolute error on each information potential, for standardised
        features. "exact" ignores it.
    solver : {"lbfgs", "cg", "sphere"}, default="lbfgs"
        "lbfgs": one of two algorithms, which ``result_.algorithm`` names. With method "moments", dense rows, up to
        2,000 features and no shrinkage it is L-BFGS along the unit sphere, on a smooth approximation of the divergence;
        the best run is polished with certified sums. Otherwise, and where that approximation is not good enough, it is
        SciPy's L-BFGS-B on the penalised objective. "cg": SciPy's conjugate gradients on the penalised objective.
        "sphere": gradient ascent on the unit sphere.
    n_init : int, default=10
        Number of starting directions, up to 1,000,000. The first is the linear discriminant, the others are random.
    max_iter : int, default=200
        Maximum number of iterations of the solver from one start, up to 1,000,000.
    tol : float, default=1e-5
        A run has converged when no component of the gradient exceeds ``tol`` in absolute value. "lbfgs" and "sphere"
        also stop when the divergence no longer changes.
    priors : None, "balanced", "empirical", dict or array-like of shape (n_classes,), default=None
        Prior probabilities of the classes, which add up to one: ``{"ill": 0.1, "well": 0.9}``, or a list in the order
        of the labels. None or "balanced": all equal, as in the paper. "empirical": proportional to the class weights in
        the training data. The log ratio of the priors is added to the log-odds: it moves thresholds and probabilities,
        but changes neither the directions nor the order of the rows.
    shrinkage : None, float in [0, 1] or "auto", default=None
        Intensity with which the class covariances are shrunk towards a multiple of the identity (for standardised
        features). It helps where a class hardly varies in some direction: few rows, many features, duplicate or
        integer features. "auto" uses Ledoit and Wolf's estimate for each class. None means no shrinkage, as in the
        paper. The variance of a class along v is never taken to be less than 1e-18 of that of all rows, which keeps
        the divergence finite; a warning says so if that limit was reached.
    selection : {"likelihood", "divergence"}, default="likelihood"
        How the direction is chosen among the optima reached from the starts. "divergence": the highest divergence, as
        in the paper. "likelihood": the highest likelihood of the labels, with each row left out of its own density,
        minus a penalty for directions with little variance. In this case two directions of logistic regression (with
        more than 200 features, linear discriminants) are candidates as well. The highest divergence is often due to
        outliers, or to chance if there are very many optima. With ``shrinkage``, the divergence is used in either case.
    bandwidth : {"robust", "silverman", "pooled"} or float, default="robust"
        Bandwidth of the class densities along the direction, before multiplication by gamma. "silverman": Silverman's
        rule, separately for each class, as in the paper. "robust": the same, but if the rows between the 10 % and the
        90 % quantile of a class imply a smaller standard deviation, it is used instead, so that outliers do not widen
        all kernels; with ``max_features`` or ``whole_weights``, "pooled" is used if it makes the labels clearly more
        likely. "pooled": the same bandwidth for both classes, from the mean of their variances. A number: that
        bandwidth, in units of the projections. The divergence always uses Silverman's rule.
    max_features : int, default=None
        Largest number of features in a direction. If it is smaller than the number of features, a different search is
        used: features are added one by one, and then exchanged until no exchange of one feature for another improves
        the direction according to ``selection``, on up to 2,000 rows. With "likelihood", the linear discriminant of as
        many features is used unless the likelihood of the searched direction is higher by 1 / (number of rows) for each
        of its weights. A category counts as one feature.
    whole_weights : int, default=None
        If given, the weights are whole numbers from −``whole_weights`` to ``whole_weights``, for features in round
        units: 1, 2 or 5 times a power of ten, near the standard deviation (or above it, if the weight would otherwise
        be rounded to zero). Levels of categories have whole scores. The units are in ``lines_[k].units``, the whole
        numbers in ``lines_[k].whole_weights``; :func:`melc.export.export_text` with ``style="card"`` writes the rule as
        an index card. At most 100.
    categorical_features : array-like of str, int or bool, or None, default=None
        Columns of numbers that are to be treated as categories: their names or indices, or a boolean for each column.
        Text, boolean and categorical columns are always categories.
    warm_start : bool, default=False
        Whether to start from the directions of the last fit instead of ``n_init`` new ones.
    n_jobs : int, default=None
        Number of threads used for large data. None means the number OpenMP would use: all cores, unless
        OMP_NUM_THREADS, threadpoolctl or joblib set another number. -1 means all cores. The result does not depend on
        the number of threads.
    random_state : int, RandomState instance or None, default=None
        Seed of the random starts. They are the same for every method and solver.
    verbose : int, default=0
        If positive, print one line for each run. For a progress bar see ``set_callbacks`` (scikit-learn 1.9 and later).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The directions, unit vectors in which the feature that contributes most has a positive weight. With more than
        two classes, there is one direction for each class.
    thresholds_ : ndarray of shape (n_thresholds,), or list of ndarray
        The projections at which the prediction changes, in ascending order. With more than two classes, a list with one
        array for each direction: the projections at which another curve becomes the highest.
    interval_classes_ : ndarray of shape (n_thresholds + 1,), or list of ndarray
        The label of each interval between thresholds, from left to right. With more than two classes, a list with one
        array for each direction: the class whose curve is highest in each interval.
    lines_ : list of melc.model.line.Line
        For each direction, the curves along it, the numbers of training rows in its intervals, and the class densities
        for plots. With two classes, the list has one element.
    intercepts_ : ndarray of shape (1,) or (n_classes,)
        Log ratio of the priors. With more than two classes, a fitted constant for each class, plus the log prior.
    importances_, feature_importances_ : ndarray of shape (n_features,)
        How much each feature changes the log-odds on the training data, and the same divided by the sum.
    divergence_ : float, or ndarray of shape (n_classes,)
        The Cauchy-Schwarz divergence reached.
    n_iter_ : int
        Number of iterations of the best run. With more than two classes, the maximum over the classes.
    result_ : melc.fit.solvers.Result, or list of Result
        The best run: its algorithm, the numbers of iterations, evaluations and exponentials, and why it stopped.
    results_ : list of melc.fit.solvers.Result, or list of lists
        All runs, in the order of their starts. On large data these are runs on samples. The divergence of a run other
        than the best is accurate to about 1e-4.
    feature_mean_ : ndarray of shape (n_features,)
        Weighted means of the features, from up to 10,000 rows: the reference of :func:`melc.explain.explain`.
    feature_spread_ : ndarray of shape (n_features,)
        Standard deviations of the features, from the same rows; zero for a constant feature. The contribution of a
        feature to the projection is its weight times this.
    gamma_ : float
        The gamma used: the parameter, or the value chosen by "auto".
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features seen during fit. Defined only when X has feature names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from melc import MELC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = np.where(np.abs(X[:, 0] + X[:, 1]) > 1, "outside", "inside")
    >>> model = MELC(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.interval_classes_
    array(['outside', 'inside', 'outside'], dtype='<U7')
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "gamma": [Interval(Real, *GAMMA_RANGE, closed="both"), StrOptions({"auto"})],
        "method": [StrOptions(set(METHODS))],
        "eps": [Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions(set(SOLVERS))],
        "n_init": [Interval(Integral, 1, _MOST, closed="both")],
        "max_iter": [Interval(Integral, 1, _MOST, closed="both")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "priors": [None, StrOptions({"balanced", "empirical"}), "array-like", dict],
        "shrinkage": [None, StrOptions({"auto"}), Interval(Real, 0, 1, closed="both")],
        "selection": [StrOptions({"likelihood", "divergence"})],
        "bandwidth": [StrOptions({"robust", "silverman", "pooled"}), Interval(Real, 0, None, closed="neither")],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "whole_weights": [Interval(Integral, 1, LARGEST_WHOLE_WEIGHT, closed="both"), None],
        "categorical_features": ["array-like", None],
        "warm_start": ["boolean"],
        "n_jobs": N_JOBS,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    _doc_link_module = "melc"
    _doc_link_template = "https://arxiv.org/abs/1504.04739"

    def __init__(
        self,
        *,
        gamma: float | str = 1.0,
        method: str = "moments",
        eps: float = 1e-6,
        solver: str = "lbfgs",
        n_init: int = 10,
        max_iter: int = 200,
        tol: float = 1e-5,
        priors: Any = None,
        shrinkage: float | str | None = None,
        selection: str = "likelihood",
        bandwidth: float | str = "robust",
        max_features: int | None = None,
        whole_weights: int | None = None,
        categorical_features: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.gamma = gamma
        self.method = method
        self.eps = eps
        self.solver = solver
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.priors = priors
        self.shrinkage = shrinkage
        self.selection = selection
        self.bandwidth = bandwidth
        self.max_features = max_features
        self.whole_weights = whole_weights
        self.categorical_features = categorical_features
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "MELC":
        """Learn the directions and the thresholds.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training data. May be a memory map. May also be a Dask array or dataframe, which is then not gathered in one
            process unless it is small; y and sample_weight must then be Dask collections too.
        y : array-like of shape (n_samples,)
            Class labels, at least two different ones.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. A row of weight k counts as k copies of it, a row of weight zero is ignored. So weights
            should add up to about the number of rows; a warning says so if they are far from it. The samples of large
            data are drawn by weight and by what the rows contain, so that neither the order of the rows nor copies
            instead of weights change them.

        Returns
        -------
        self : MELC
            Fitted estimator.
        """
        with restored_on_error(self):
            given = X, y, sample_weight
            data = labelled_rows(self, *given)
            rows, classes = data.rows, data.classes
            log_priors = log_prior_ratios(self.priors, classes, data.totals)
            known = self._known_directions(classes, rows.n_features)
            simple = self.max_features is not None or self.whole_weights is not None  # then a class has a single run
            n_runs = len(log_priors) * (self.n_init if known is None and not simple else 1)
            progress = Progress(self, n_runs, self.verbose, *given)
            parts, rng = parts_of(rows, len(classes)), check_random_state(self.random_state)
            settings = Settings(**{field.name: getattr(self, field.name) for field in fields(Settings)})
            if self.gamma == "auto":
                settings = replace(settings, gamma=choose_gamma(parts, settings, rng))
            several = len(parts) > 1

            def run_ended(run: Result, projection: Callable[[], Projection]) -> bool:
                def so_far() -> dict[str, Any]:
                    best = projection()
                    return _fitted_attributes(data, [best.line], log_priors, settings, [best])

                return progress.run_ended(run, None if several else so_far)

            intercept = None if several else float(log_priors[0])
            coded = np.isin(np.arange(rows.n_features), [*data.columns.categories, *data.columns.ranks])
            found = learn_projections(parts, settings, intercept, rng, known, run_ended, coded)
            lines, intercepts = [projection.line for projection in found], log_priors
            if several:
                directions = np.stack([projection.direction for projection in found])
                with closing(rows):
                    lines, intercepts = lines_along(rows, directions, found[0].spread, log_priors, rng)
                lines = [replace(line, units=each.units) for line, each in zip(lines, found, strict=True)]
            self.__dict__.update(_fitted_attributes(data, lines, intercepts, settings, found))
            for label, projection in zip(classes.tolist(), found, strict=False):
                warn_of_projection(self, projection, f"Class {label!r} against the rest: " if several else "")
            warn_of_rounding(self, found[0].steps)
            progress.fit_ended()
        return self

    def _known_directions(self, classes: NDArray[Any], n_features: int) -> Floats | None:
        """Return ``coef_`` of the last fit if ``warm_start`` asks for it, otherwise None."""
        if not self.warm_start or not hasattr(self, "lines_"):
            return None
        if not np.array_equal(classes, self.classes_) or n_features != self.coef_.shape[1]:
            raise ValueError(
                f"warm_start=True goes on from the last fit, which had the classes {self.classes_.tolist()[:10]} and "
                f"{self.coef_.shape[1]} features, but these data have the classes {classes.tolist()[:10]} and "
                f"{n_features} features. Fit the same classes and features, or set warm_start=False."
            )
        return self.coef_

    @property
    def coef_(self) -> Floats:
        """The directions, shape (1, n_features) or (n_classes, n_features)."""
        return self.directions_

    @property
    def thresholds_(self) -> Any:
        """The projections at which the decision changes; of more than two classes, a list with those of each line.

        A line of more than two classes changes sides where the curve of another class becomes the highest.
        """
        found = [line.thresholds for line in self.lines_]
        return found if len(self.classes_) > 2 else found[0]

    @property
    def interval_classes_(self) -> Any:
        """The label of each interval between thresholds; of more than two classes, a list with those of each line."""
        found = [self.classes_[line.codes] for line in self.lines_]
        return found if len(self.classes_) > 2 else found[0]

    @property
    def _n_features_out(self) -> int:
        return len(self.lines_)

    @lazy_on_dask
    def transform(self, X: Any) -> Floats:
        """Return the projections ``X @ coef_.T``, shape (n_samples, 1) or (n_samples, n_classes)."""
        return checked_projections(self, X)


def _fitted_attributes(
    data: Labelled, lines: list[Any], intercepts: Floats, settings: Settings, projections: list[Projection]
) -> dict[str, Any]:
    """Return the fitted attributes by name."""
    several, first = len(projections) > 1, projections[0]
    return {
        "classes_": data.classes,
        "columns_": data.columns,
        "lines_": lines,
        "intercepts_": intercepts,
        "divergence_": np.array([p.best.divergence for p in projections]) if several else first.best.divergence,
        "result_": [p.best for p in projections] if several else first.best,
        "results_": [p.runs for p in projections] if several else first.runs,
        "gamma_": settings.gamma,
        "feature_mean_": first.mean,
        "feature_spread_": first.spread,
        "n_iter_": max(1, *(p.best.n_iter for p in projections)),
    }
