"""Predictions of the model and of other classifiers for rows that they were not fitted to, by cross-validation."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from melc.arrays import Floats
from melc.data.frames import rows_of
from melc.model.units import weights_of_fit
from melc.report.subject import Subject

LOGISTIC, BOOSTING = "logistic regression", "gradient boosting"
# Folds, unless the user says how many.
_USUAL_FOLDS = 5
# Rows of every class that cross-validation needs, so that two are left to fit to.
_FEWEST_ROWS = 3
# With more features every fit takes long: there are two folds, the search has few starts, and no gradient boosting.
MANY_FEATURES, _FEW_FOLDS, _FEW_STARTS = 500, 2, 2
# A category of more levels is an ordinary number to gradient boosting.
_MOST_BOOSTED_LEVELS = 255
# Values between which gradient boosting tells, of each column.
_MOST_BINS = 255
# Probabilities below it count as it.
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Predictions:
    """Held-out predictions of one model: probabilities, shape (n_rows, n_classes), and numbers of classes (n_rows,)."""

    probabilities: Floats
    codes: NDArray[np.int64]


@dataclass(frozen=True)
class HeldOut:
    """Held-out predictions of each model for the rows of the sample, the model itself first.

    ``codes`` are the true classes, and ``weights`` say how much rows count, one on average; both have shape (n_rows,).
    ``folds`` are the indices of the rows of each fold. ``reason`` says why there are no predictions, if a class has too
    few rows.
    """

    codes: NDArray[np.int64]
    weights: Floats
    folds: list[NDArray[np.int64]]
    models: dict[str, Predictions]
    reason: str = ""

    @property
    def own(self) -> Predictions:
        """The predictions of the model itself."""
        return next(iter(self.models.values()))


def held_out(subject: Subject, n_folds: int | None, seed: int, step: Callable[[str], None]) -> HeldOut:
    """Fit each model to all folds but one, and predict that one, for each fold."""
    codes, weights = subject.codes[subject.sample].astype(np.int64), subject.sample_weights
    counts = np.bincount(codes, minlength=len(subject.labels))
    many = subject.coded.shape[1] > MANY_FEATURES
    n_folds = min(n_folds or (_FEW_FOLDS if many else _USUAL_FOLDS), int(counts.min()))
    if counts.min() == _FEWEST_ROWS:  # of three rows in two folds, one would be left to fit to
        n_folds = _FEWEST_ROWS
    if counts.min() < _FEWEST_ROWS:
        fewest = subject.labels[int(np.argmin(counts))]
        count = "1 row" if counts.min() == 1 else f"{counts.min()} rows"
        reason = f"Class {fewest} has {count}, too few for cross-validation, so nothing is known about new rows."
        return HeldOut(codes, weights, [], {}, reason)
    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(codes, codes))
    models, given = {}, None if subject.weights is None else subject.weights[subject.sample]
    for name, model in {type(subject.model).__name__: _own(subject, many), **_others(subject, seed, many)}.items():
        step(f"cross-validation: {name}")
        rows, labels = (subject.coded[subject.sample], codes) if name in (LOGISTIC, BOOSTING) else subject.sampled()
        rows = in_bins(rows.toarray() if sparse.issparse(rows) else rows) if name == BOOSTING else rows
        models[name] = _predicted(model, rows, labels, given, folds)
    return HeldOut(codes, weights, [test for _, test in folds], models)


def _own(subject: Subject, many: bool) -> Any:
    """Return the model to be fitted anew."""
    estimator = clone(subject.estimator)
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if many and getattr(last, "n_init", 0) > _FEW_STARTS:
        last.set_params(n_init=_FEW_STARTS)
    return estimator


def _others(subject: Subject, seed: int, many: bool) -> dict[str, Any]:
    """Return the other classifiers, of coded rows. Classes count for them as they do for the model."""
    weight = dict(enumerate(subject.class_weights.tolist()))
    logistic = make_pipeline(_prepared(subject), LogisticRegression(class_weight=weight, max_iter=300))
    levels = {j: category.n_levels for j, category in subject.model.columns_.categories.items()}
    categorical = [j for j, n in levels.items() if n < _MOST_BOOSTED_LEVELS] or None
    boosting = HistGradientBoostingClassifier(class_weight=weight, random_state=seed, categorical_features=categorical)
    return {LOGISTIC: logistic} | ({} if many else {BOOSTING: boosting})


def _prepared(subject: Subject) -> Any:
    """Return what logistic regression needs before it: a column for each level, medians for missing numbers, scales."""
    categories = list(subject.model.columns_.categories)
    if sparse.issparse(subject.coded):
        return MaxAbsScaler()
    if not categories and not subject.has_missing:
        return StandardScaler()
    numbers = [j for j in range(subject.coded.shape[1]) if j not in categories]
    filled = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer(
        [("numbers", make_pipeline(filled, StandardScaler()), numbers), ("levels", levels, categories)]
    )


def in_bins(X: Floats) -> Floats:
    """Return rows with the number of its bin in place of each value of the columns that have more values than bins.

    Gradient boosting sorts values into such bins itself, but takes minutes for that if classes have weights.
    """
    binned = np.array(X, dtype=np.float64)
    shares = np.linspace(0, 1, _MOST_BINS + 1)[1:-1]
    for column in binned.T:
        there = ~np.isnan(column)
        if len(np.unique(column[there])) > _MOST_BINS:
            edges = np.quantile(column[there], shares, method="averaged_inverted_cdf")
            column[there] = np.searchsorted(edges, column[there])
    return binned


def _predicted(model: Any, X: Any, y: NDArray[Any], weights: Floats | None, folds: list[Any]) -> Predictions:
    classes = np.unique(y)
    probabilities, predicted = np.empty((len(y), len(classes))), np.empty(len(y), dtype=np.int64)
    # Threads that wait for each other cost more than they save on a sample, by far if the machine is busy.
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        # What a fold lacks in rows or iterations shows in its scores.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        for train, test in folds:
            weighted = {} if weights is None else weights_of_fit(model, weights[train])
            model.fit(rows_of(X, train), y[train], **weighted)
            rows = rows_of(X, test)
            probabilities[test] = model.predict_proba(rows)
            predicted[test] = np.searchsorted(classes, model.predict(rows))
    return Predictions(probabilities, predicted)
