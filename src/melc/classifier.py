"""The classifier: validate, assemble, store. Formulas live in the rooms below."""

import contextlib
import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import _threadpool_controller_decorator
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from melc.density import decide, estimate_density
from melc.evaluation import VARIANCE_FLOOR
from melc.kernels import is_floored, kernel_variances, total_variance
from melc.objective import METHODS, Objective
from melc.optimize import SOLVERS, Result
from melc.pairwise import spread_of
from melc.rows import Rows
from melc.search import Problem, search
from melc.starts import feature_scale, starting_directions


class MELC(ClassifierMixin, BaseEstimator):
    """Multithreshold Entropy Linear Classifier.

    One direction v is sought along which the kernel densities of the two classes differ most, in the sense
    of the Cauchy-Schwarz divergence. A point belongs to the class whose density is higher at its projection,
    so the rule is a list of thresholds on one line. Classes count equally, however many rows they have.

    Parameters
    ----------
    gamma : float, default=1.0
        Factor on Silverman's bandwidth: below one the densities follow the data more closely and more
        thresholds appear, above one they are smoother.
    method : {"moments", "exact", "discard", "bin"}, default="moments"
        How the sums over pairs are computed: by moment bins, in linear time with a certified error; over all pairs;
        and the paper's two approximations: without pairs that are far apart (sort and discard), and with points
        replaced by the means of bins.
    eps : float, default=1e-6
        Accepted error. For "moments" it bounds the error of the divergence itself, whatever the scale of the data.
        For "discard" and "bin" it is the paper's: absolute, on each information potential, and so in the units of
        the data. "exact" ignores it.
    solver : {"lbfgs", "cg", "sphere"}, default="lbfgs"
        L-BFGS-B or conjugate gradients on the penalised objective, or gradient ascent on the sphere.
    n_init : int, default=10
        Number of starts: the linear discriminant, and random directions for the rest.
    max_iter : int, default=200
        Most iterations of the solver from one start.
    tol : float, default=1e-5
        A run has converged when no component of the gradient is larger.
    n_jobs : int, default=None
        Threads for large data. None: as many as OpenMP would use, that is all cores unless OMP_NUM_THREADS,
        threadpoolctl or joblib say otherwise; -1: all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the random starts; they are the same for every method and solver.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels.
    coef_ : ndarray of shape (1, n_features)
        The direction, of length one, along which the second class lies higher on average.
    thresholds_ : ndarray
        Where along the projection the decision changes, in ascending order.
    interval_classes_ : ndarray of shape (len(thresholds_) + 1,)
        The label of every interval between thresholds, from left to right.
    decisions_ : list of melc.density.Decision
        The class densities along each projection (one for two classes) and the intervals between thresholds.
    divergence_ : float
        The Cauchy-Schwarz divergence reached.
    n_iter_ : int
        Iterations of the best run.
    result_ : melc.optimize.Result
        The best run: iterations, evaluations, exponentials, how it ended.
    results_ : list of melc.optimize.Result
        All runs, in the order of their starts.

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
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "method": [StrOptions(set(METHODS))],
        "eps": [Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions(set(SOLVERS))],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        gamma: float = 1.0,
        method: str = "moments",
        eps: float = 1e-6,
        solver: str = "lbfgs",
        n_init: int = 10,
        max_iter: int = 200,
        tol: float = 1e-5,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.gamma = gamma
        self.method = method
        self.eps = eps
        self.solver = solver
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "MELC":
        """Find the direction and the thresholds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two different labels.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of k counts as k copies of the row, a weight of zero as none.
        """
        rows = self._validated_rows(X, y, sample_weight)
        rng = check_random_state(self.random_state)
        sample = rows.sample(_SAMPLE_ROWS, rng)
        scale = feature_scale(sample)
        starts = starting_directions(sample, self.n_init, scale, rng)
        with contextlib.closing(rows):
            best, self.results_ = _search(rows, self._problem(scale), starts, rng)
            self._store(best, rows)
        return self

    def _problem(self, scale: NDArray[np.float64]) -> Problem:
        # The paper's ε is tied to the units of the data: its methods search in those units.
        smooth = self.method in ("moments", "exact")

        def objective(rows: Rows, gamma: float) -> Objective:
            return Objective(rows, gamma=gamma, method=self.method, eps=self.eps, scale=scale if smooth else None)

        return Problem(objective, self.gamma, self.solver, self.max_iter, self.tol, smooth)

    def _validated_rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Checked input as rows with class codes; sets ``classes_``."""
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        check_classification_targets(y)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            X, y, weights = _drop_weightless(X, y, weights)
        self.classes_, codes = np.unique(y, return_inverse=True)
        _check_classes(self.classes_, codes, weights)
        _check_varies(X)
        return Rows(X, codes.astype(np.int8), weights, _openmp_effective_n_threads(self.n_jobs))

    def _store(self, best: Result, rows: Rows) -> None:
        """Everything that prediction needs, and no row of the data."""
        z = rows.project(best.direction)
        members = [np.flatnonzero(rows.codes == c) for c in (0, 1)]
        weights = [rows.weights_of(m) for m in members]
        points = [z[m] for m in members]
        spread = spread_of(points, weights)
        sign = _sign(best.direction, spread.mean_y - spread.mean_x, total_variance(spread))
        points = [sign * side for side in points]
        variances = kernel_variances(spread, self.gamma, VARIANCE_FLOOR)
        first, second = (estimate_density(points[c], weights[c], variances[c]) for c in (0, 1))
        decision = decide((first, second)).counted(points, weights)
        self.decisions_ = [decision]
        self.coef_ = sign * best.direction[None, :]
        self.thresholds_ = decision.thresholds
        self.interval_classes_ = self.classes_[decision.codes]
        self.divergence_ = best.divergence
        self.result_ = best
        self.n_iter_ = max(1, best.n_iter)
        self._warn(best, is_floored(spread, VARIANCE_FLOOR))

    def _warn(self, best: Result, floored: bool) -> None:
        if best.n_iter >= self.max_iter and not best.converged:
            warnings.warn(
                f"The best of {self.n_init} runs {best.reason} (D = {best.divergence:.6g}). Raise max_iter "
                f"(now {self.max_iter}) or tol (now {self.tol:g}), or standardise the features.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if floored:
            warnings.warn(
                "A class does not vary along the direction found, so its density is a spike and the "
                f"divergence ({best.divergence:.6g}) is set by a floor on its variance. There may be more "
                "features than the rows can support: remove constant or duplicate ones, or reduce their number.",
                UserWarning,
                stacklevel=4,
            )

    def _project(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return np.asarray(X @ self.coef_[0], dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of every row: its projection, and a search among the thresholds."""
        z = self._project(X)
        return np.asarray(self.classes_[self.decisions_[0].classify(z)])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Log ratio of the two densities at every row: positive where the second class is higher."""
        z = self._project(X)
        return self.decisions_[0].log_ratio(z)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of either class, both equally likely beforehand."""
        z = self._project(X)
        second = self.decisions_[0].probability(z)
        return np.column_stack([1 - second, second])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


# Solvers work on vectors of a few numbers, where threads of BLAS cost far more than they save.
_search = _threadpool_controller_decorator(limits=1, user_api="blas")(search)

# Rows that scales and starts are estimated from.
_SAMPLE_ROWS = 20_000


def _drop_weightless(X: Any, y: Any, weights: NDArray[np.float64]) -> tuple[Any, Any, NDArray[np.float64]]:
    kept = weights > 0
    if kept.all():
        return X, y, weights
    return X[kept], y[kept], weights[kept]


def _check_classes(classes: NDArray[Any], codes: NDArray[np.int64], weights: NDArray[np.float64] | None) -> None:
    if len(classes) == 1:
        raise ValueError(
            f"MELC separates two classes, but y holds one class only: {classes[0]!r}. "
            "Rows of a second class are needed."
        )
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: y holds "
            f"{len(classes)} classes. Wrap the model in sklearn.multiclass.OneVsRestClassifier."
        )
    counts = np.bincount(codes)
    if weights is not None:  # a row of weight two is two rows
        counts = np.maximum(counts, np.bincount(codes, weights))
    if counts.min() < 2:
        label = classes[np.argmin(counts)]
        raise ValueError(
            f"Class {label!r} has 1 row; the width of its density needs at least 2. "
            "Add rows of that class or remove it."
        )


def _check_varies(X: Any) -> None:
    if not np.any(X[0] != X):
        raise ValueError(
            f"None of the {X.shape[1]} features varies over the {X.shape[0]} rows, so no direction tells the "
            "classes apart. Check how X was read."
        )


def _sign(direction: NDArray[np.float64], difference: float, variance: float) -> float:
    """Turns v so that the second class lies higher on average; where the means agree, so that the largest
    component of v is positive."""
    if abs(difference) > 1e-9 * np.sqrt(variance):
        return float(np.sign(difference))
    return float(np.sign(direction[np.argmax(np.abs(direction))]))
