"""The classifier: validate, assemble, store. The formulas are in the packages that it calls."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from melc._sklearn import (
    CallbackSupportMixin,
    FittedHTMLMixin,
    Interval,
    StrictParametersMixin,
    StrOptions,
    fit_context,
    n_threads_for,
    with_callbacks,
)
from melc.arrays import Floats
from melc.data.dask.door import lazy_on_dask
from melc.data.products import project_on
from melc.fit.advice import warn_of
from melc.fit.coordinates import UnitsError
from melc.fit.intake import labelled_rows
from melc.fit.progress import Progress
from melc.fit.projection import Projection, Settings, learn_projections
from melc.fit.run import Result
from melc.fit.solvers import SOLVERS
from melc.fit.validation import log_prior_ratios
from melc.fit.width import choose_gamma
from melc.model.html import fitted_html
from melc.objective import METHODS

# Least and largest gamma: beyond these, squares of bandwidths leave the range of floats.
GAMMAS = 1e-15, 1e15
# Most starts and iterations: far more than any search needs. Memory is set aside for each.
_MOST = 1_000_000
# What ``n_jobs`` may be: zero threads are none.
N_JOBS = [Interval(Integral, None, -1, closed="right"), Interval(Integral, 1, None, closed="left"), None]


class MELC(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    CallbackSupportMixin,
    FittedHTMLMixin,
    StrictParametersMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Multithreshold Entropy Linear Classifier.

    The classifier finds the direction v that maximises the Cauchy-Schwarz divergence

    ``D(v) = log ∫f₋² + log ∫f₊² − 2 log ∫f₋ f₊``

    of the kernel densities f₋ and f₊ of the two classes projected on v. A row x is assigned to the class whose density
    is higher at ``v·x``, so the decision rule is a list of thresholds on one line. An interval between thresholds that
    contains no training row is joined with its neighbours. By default both classes count equally, however many rows
    they have (see ``priors``).

    With more than two classes, a direction is learned for each class against the rest. A row is assigned to the class
    with the highest odds.

    Parameters
    ----------
    gamma : float or "auto", default=1.0
        Factor on Silverman's bandwidth. Values below one make the densities follow the data more closely and give more
        thresholds; values above one make the densities smoother. At least 1e-15, at most 1e15. "auto" chooses among
        0.4, 0.65, 1, 1.5 and 2.5 by the log loss on three folds of up to 20,000 rows, which takes about four times as
        long as a fit, or more; see ``gamma_``.
    method : {"moments", "exact", "discard", "bin"}, default="moments"
        How the sums over pairs of points are computed. "moments" uses moment bins, in linear time and with a certified
        error. "exact" sums over all pairs. "discard" and "bin" are the paper's approximations: "discard" leaves out
        pairs that are far apart, "bin" replaces the points of each bin by their mean.
    eps : float, default=1e-6
        Accepted error. For "moments" it bounds the error of the divergence itself, whatever the scale of the data.
        For "discard" and "bin" it is the paper's absolute error on each information potential, for standardised
        features. "exact" ignores it.
    solver : {"lbfgs", "cg", "sphere"}, default="lbfgs"
        "lbfgs": L-BFGS. With method "moments" on dense rows, the starts are searched along the unit sphere on a smooth
        approximation of the divergence, and the best is polished with certified sums; otherwise it is SciPy's L-BFGS-B
        on the penalised objective. "cg": conjugate gradients on the penalised objective. "sphere": gradient ascent on
        the unit sphere.
    n_init : int, default=10
        Number of starting directions, up to 1,000,000. The first is the linear discriminant, the others are random.
    max_iter : int, default=200
        Maximum number of iterations of the solver from one start, up to 1,000,000.
    tol : float, default=1e-5
        A run has converged when no component of the gradient exceeds ``tol`` in absolute value. "lbfgs" and "sphere"
        also stop when the divergence no longer changes.
    priors : None, "empirical" or array-like of shape (n_classes,), default=None
        Prior probabilities of the classes, which add up to one. None: all equal, as in the paper. "empirical":
        proportional to the class weights in the training data. Priors change the decision (the thresholds, odds and
        probabilities), but not the directions.
    shrinkage : None, float in [0, 1] or "auto", default=None
        Intensity with which the class covariances are shrunk towards a multiple of the identity (for standardised
        features). It helps where a class hardly varies in some direction: few rows, many features, duplicate or
        integer features. "auto" uses Ledoit and Wolf's estimate for each class. None means no shrinkage, as in the
        paper. The variance of a class along v is never taken to be less than 1e-18 of that of all rows, which keeps
        the divergence finite; a warning says so if that limit was reached.
    selection : {"likelihood", "divergence"}, default="likelihood"
        How the direction is chosen among the optima that the starts lead to. "divergence": the one of the highest
        divergence, as in the paper. "likelihood": the one along which the classes are predicted best when every row is
        left out of its own density, less a penalty for directions with little variance; two directions of logistic
        regression (with more than 200 features, linear discriminants) take part as well. The highest divergence may be
        due to outliers, or to one of very many optima. With ``shrinkage`` the divergence chooses in either case.
    bandwidth : {"robust", "silverman", "pooled"} or float, default="robust"
        Width of the kernels of the class densities along the direction, before the factor gamma. "silverman":
        Silverman's, for each class its own, as in the paper. "robust": the same, but if the rows between the 10 % and
        the 90 % quantile of a class tell of a smaller standard deviation, that one counts, so that outliers do not
        widen the kernels of all rows. "pooled": the same for both classes, from the mean of their variances. A number:
        that width, in units of the projections. The divergence always has Silverman's.
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
        The directions, of length one. The mean projection of the second class is the higher one. With more than two
        classes, there is one direction for each class, along which its mean projection is higher than that of the rest.
    thresholds_ : ndarray of shape (n_thresholds,), or list of ndarray
        The projections at which the decision changes, in ascending order. With more than two classes, a list with one
        array for each class; the same holds for the other lists below.
    interval_classes_ : ndarray of shape (n_thresholds + 1,), or list of ndarray
        The label of each interval between thresholds, from left to right. With more than two classes, boolean: whether
        the interval belongs to the class rather than to the rest.
    decisions_ : list of melc.model.decision.Decision
        For each direction, the class densities and the intervals between thresholds. A list of one for two classes.
    divergence_ : float, or ndarray of shape (n_classes,)
        The Cauchy-Schwarz divergence reached.
    n_iter_ : int
        Number of iterations of the best run. With more than two classes, the maximum over the classes.
    result_ : melc.fit.run.Result, or list of Result
        The best run: its iterations, evaluations, exponentials, and why it ended.
    results_ : list of melc.fit.run.Result, or list of lists
        All runs, in the order of their starts. On large data these are runs on samples. The divergence of a run that
        did not win is that of the search, which is accurate to about 1e-4.
    feature_mean_ : ndarray of shape (n_features,)
        Weighted means of the features, from up to 10,000 rows: the reference of :func:`melc.explain.explain`.
    feature_spread_ : ndarray of shape (n_features,)
        Standard deviations of the features, from the same rows; zero for a constant feature. The contribution of a
        feature to the projection is its weight times this.
    gamma_ : float
        The gamma used: the parameter, or what "auto" chose.
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
        "gamma": [Interval(Real, *GAMMAS, closed="both"), StrOptions({"auto"})],
        "method": [StrOptions(set(METHODS))],
        "eps": [Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions(set(SOLVERS))],
        "n_init": [Interval(Integral, 1, _MOST, closed="both")],
        "max_iter": [Interval(Integral, 1, _MOST, closed="both")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "priors": [None, StrOptions({"empirical"}), "array-like"],
        "shrinkage": [None, StrOptions({"auto"}), Interval(Real, 0, 1, closed="both")],
        "selection": [StrOptions({"likelihood", "divergence"})],
        "bandwidth": [StrOptions({"robust", "silverman", "pooled"}), Interval(Real, 0, None, closed="neither")],
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
        with as_it_was_if_refused(self):
            given = X, y, sample_weight
            rows, classes, totals = labelled_rows(self, *given)
            ratios = log_prior_ratios(self.priors, classes, totals)
            known = self._known_directions(classes, rows.n_features)
            n_runs = len(ratios) * (self.n_init if known is None else 1)
            progress = Progress(self, n_runs, self.verbose, *given)
            parts = [rows.against_rest(k) for k in range(len(classes))] if len(classes) > 2 else [rows]
            rng, heard = check_random_state(self.random_state), _listener(progress, classes, len(parts))
            settings = self._settings()
            if self.gamma == "auto":
                settings = replace(settings, gamma=choose_gamma(parts, settings, rng))
            self._store(classes, learn_projections(parts, settings, ratios, rng, known, heard))
            self.gamma_ = settings.gamma
            progress.fit_ended()
        return self

    def _settings(self) -> Settings:
        return Settings(
            gamma=1.0 if isinstance(self.gamma, str) else self.gamma,
            method=self.method,
            eps=self.eps,
            solver=self.solver,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            shrinkage=self.shrinkage,
            selection=self.selection,
            bandwidth=self.bandwidth,
        )

    def _known_directions(self, classes: NDArray[Any], n_features: int) -> Floats | None:
        """Return ``coef_`` of the last fit if ``warm_start`` asks for it, otherwise None."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        if not np.array_equal(classes, self.classes_) or n_features != self.coef_.shape[1]:
            raise ValueError(
                f"warm_start=True goes on from the last fit, which had the classes {self.classes_.tolist()[:10]} and "
                f"{self.coef_.shape[1]} features, but these data have the classes {classes.tolist()[:10]} and "
                f"{n_features} features. Fit the same classes and features, or set warm_start=False."
            )
        return self.coef_

    def _store(self, classes: NDArray[Any], projections: list[Projection]) -> None:
        """Set the fitted attributes and give warnings. Of the training rows only projections are stored."""
        for name, value in _fitted_attributes(classes, projections).items():
            setattr(self, name, value)
        several = len(projections) > 1
        for label, projection in zip(classes.tolist(), projections, strict=False):
            warn_of(self, projection, f"Class {label!r} against the rest: " if several else "")

    @property
    def _n_features_out(self) -> int:
        return int(self.coef_.shape[0])

    @lazy_on_dask
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class label of each row, shape (n_samples,)."""
        z = checked_projections(self, X)
        if len(self.decisions_) == 1:
            return np.asarray(self.classes_[self.decisions_[0].classify(z[:, 0])])
        return np.asarray(self.classes_[np.argmax(self._log_odds(z), axis=1)])

    @lazy_on_dask
    def decision_function(self, X: Any) -> Floats:
        """Return the log odds of each row.

        With two classes, those of the second class, shape (n_samples,): positive where it is predicted. With more,
        those of each class against the rest, shape (n_samples, n_classes). They are the log ratio of the densities
        (plus that of the priors), made less extreme by a few pseudo-rows. Where the higher density is not that of the
        predicted class, which happens only where there are no training rows, they are close to zero (1e-15).
        """
        odds = self._log_odds(checked_projections(self, X))
        return odds[:, 0] if len(self.decisions_) == 1 else odds

    @lazy_on_dask
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n_samples, n_classes).

        Far away from the training data the probabilities of all classes become equal. With two classes they are also
        equal (up to 1e-15) where the higher density is not that of the predicted class.
        """
        return probabilities(self._log_odds(checked_projections(self, X)))

    @lazy_on_dask
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of ``predict_proba``, shape (n_samples, n_classes)."""
        return np.log(self.predict_proba(X))

    @lazy_on_dask
    def transform(self, X: Any) -> Floats:
        """Return the projections ``X @ coef_.T``, shape (n_samples, 1) or (n_samples, n_classes)."""
        return checked_projections(self, X)

    def _log_odds(self, z: Floats) -> Floats:
        return np.column_stack([decision.log_odds(z[:, k]) for k, decision in enumerate(self.decisions_)])

    def _fitted_html(self) -> str:
        return fitted_html(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _listener(progress: Progress, classes: NDArray[Any], n_parts: int) -> Callable[..., bool]:
    """Return a callback that reports each run to ``progress``.

    With a single projection, it also offers the fitted attributes of the best run so far.
    """

    def run_ended(run: Result, projection: Callable[[], Projection]) -> bool:
        def attributes() -> dict[str, Any]:
            return _fitted_attributes(classes, [projection()])

        return progress.run_ended(run, attributes if n_parts == 1 else None)

    return run_ended


def _fitted_attributes(classes: NDArray[Any], projections: list[Projection]) -> dict[str, Any]:
    """Return the fitted attributes by name: lists over the projections, or for two classes the single entry itself."""
    every: dict[str, list[Any]] = {
        "thresholds_": [p.decision.thresholds for p in projections],
        "interval_classes_": [p.decision.codes.astype(bool) for p in projections],
        "divergence_": [p.best.divergence for p in projections],
        "result_": [p.best for p in projections],
        "results_": [p.runs for p in projections],
    }
    if len(projections) == 1:
        shown: dict[str, Any] = {name: value[0] for name, value in every.items()}
        shown["interval_classes_"] = classes[projections[0].decision.codes]
    else:
        shown = {**every, "divergence_": np.array(every["divergence_"])}
    shown["classes_"] = classes
    shown["coef_"] = np.stack([p.direction for p in projections])
    shown["decisions_"] = [p.decision for p in projections]
    shown["feature_mean_"] = projections[0].mean
    shown["feature_spread_"] = projections[0].spread
    shown["n_iter_"] = max(1, *(p.best.n_iter for p in projections))
    return shown


def checked_projections(model: Any, X: Any) -> Floats:
    """Check X and return its projections on the directions of a model, shape (n_rows, n_directions).

    NaN and infinity in X show up in the projections, so X is searched for them only if these are not finite.
    """
    check_is_fitted(model, "coef_")
    checks = {"reset": False, "accept_sparse": ("csr", "csc"), "dtype": [np.float64, np.float32]}
    rows = validate_data(model, X, ensure_all_finite=False, **checks)
    z = project_on(rows, model.coef_, n_threads_for(model.n_jobs))
    if not np.isfinite(z).all():
        validate_data(model, X, **checks)
        z = np.nan_to_num(z)  # X is finite, but a projection overflowed
    return z


def probabilities(odds: Floats) -> Floats:
    """Return the probabilities of the classes, shape (n_rows, n_classes), from their log odds.

    Of two classes ``odds`` has those of the second, shape (n_rows, 1); of more those of each against the rest, shape
    (n_rows, n_classes). The largest probability is that of the largest odds, also where rounding makes two equal.
    """
    if odds.shape[1] == 1:
        return np.column_stack([expit(-odds[:, 0]), expit(odds[:, 0])])
    proba = expit(odds)
    proba /= proba.sum(axis=1, keepdims=True)
    best, found = np.argmax(odds, axis=1), np.argmax(proba, axis=1)
    merged = np.flatnonzero(found != best)
    proba[merged, best[merged]] = np.nextafter(proba[merged, found[merged]], 1)
    return proba


@contextlib.contextmanager
def as_it_was_if_refused(model: Any) -> Iterator[None]:
    """Restore the fitted attributes of the model if the block raises an error or is interrupted; name the feature."""
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
