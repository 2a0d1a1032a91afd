"""Cross-validation of the model and of other classifiers: predictions for rows that they have not seen, and scores."""

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
from sklearn.metrics import balanced_accuracy_score, log_loss, precision_recall_curve, roc_auc_score, roc_curve
from sklearn.model_selection import StratifiedKFold, validation_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from melc.arrays import Floats
from melc.data.frames import rows_of
from melc.model.units import last_step, name_for_last_step, weights_of_fit
from melc.report.subject import Subject, dense

LOGISTIC, BOOSTING = "logistic regression", "gradient boosting"
# Folds, unless the user says how many.
_USUAL_FOLDS = 5
# Rows of every class that cross-validation needs, so that two are left to fit to.
_FEWEST_ROWS = 3
# With many features there are two folds, the search has few starts, and no gradient boosting.
_FEW_FOLDS, _FEW_STARTS = 2, 2
# A category of more levels is an ordinary number to gradient boosting.
_MOST_BOOSTED_LEVELS = 255
# Values between which gradient boosting tells, of each column.
_MOST_BINS = 255
# Probabilities below it count as it.
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)
# Scores of every model and fold, points of a curve, and bins of the calibration.
_MEASURES = ("balanced accuracy", "accuracy", "AUC", "log loss")
_CURVE_POINTS, _CALIBRATION_BINS = 48, 10
# Rows and folds for the accuracy with each number of features, fewer than for scores: each number takes a fit.
_MOST_ROWS_OF_PATH, _FOLDS_OF_PATH = 1_000, 3
# Numbers of features beyond that of the model, and the most.
_BEYOND, _MOST_NUMBERS = 2, 12


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

    def accuracies(self, predictions: Predictions) -> Floats:
        """Return the share of the rows of each class that are predicted correctly, shape (n_classes,)."""
        right = np.bincount(self.codes, self.weights * (predictions.codes == self.codes))
        return np.asarray(right / np.bincount(self.codes, self.weights))


def held_out(subject: Subject, n_folds: int | None, seed: int, step: Callable[[str], None]) -> HeldOut:
    """Fit each model to all folds but one, and predict that one, for each fold."""
    codes, weights = subject.codes[subject.sample].astype(np.int64), subject.relative_weights[subject.sample]
    counts = np.bincount(codes, minlength=len(subject.labels))
    n_folds = min(n_folds or (_FEW_FOLDS if subject.has_many_features else _USUAL_FOLDS), int(counts.min()))
    if counts.min() == _FEWEST_ROWS:  # of three rows in two folds, one would be left to fit to
        n_folds = _FEWEST_ROWS
    if counts.min() < _FEWEST_ROWS:
        fewest = subject.labels[int(np.argmin(counts))]
        count = "1 row" if counts.min() == 1 else f"{counts.min()} rows"
        reason = f"Class {fewest} has {count}, too few for cross-validation, so nothing is known about new rows."
        return HeldOut(codes, weights, [], {}, reason)
    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(codes, codes))
    (X, labels, given), coded = subject.sampled(), subject.coded[subject.sample]
    models, own = {}, type(subject.model).__name__
    for name, model in {own: _own(subject), **_others(subject, seed)}.items():
        step(f"cross-validation: {name}")
        if name == own:
            models[name] = _predicted(model, X, labels, given, folds)
        else:
            models[name] = _predicted(model, in_bins(dense(coded)) if name == BOOSTING else coded, codes, given, folds)
    return HeldOut(codes, weights, [test for _, test in folds], models)


def _own(subject: Subject) -> Any:
    """Return the model to be fitted anew."""
    estimator = clone(subject.estimator)
    if subject.has_many_features and getattr(last_step(estimator), "n_init", 0) > _FEW_STARTS:
        last_step(estimator).set_params(n_init=_FEW_STARTS)
    return estimator


def _others(subject: Subject, seed: int) -> dict[str, Any]:
    """Return the other classifiers, of coded rows. Classes count for them as they do for the model."""
    weight = dict(enumerate(subject.class_weights.tolist()))
    logistic = make_pipeline(_prepared(subject), LogisticRegression(class_weight=weight, max_iter=300))
    levels = {j: category.n_levels for j, category in subject.model.columns_.categories.items()}
    categorical = [j for j, n in levels.items() if n < _MOST_BOOSTED_LEVELS] or None
    boosting = HistGradientBoostingClassifier(class_weight=weight, random_state=seed, categorical_features=categorical)
    return {LOGISTIC: logistic} | ({} if subject.has_many_features else {BOOSTING: boosting})


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


# Scores and curves


def scores_of(subject: Subject, found: HeldOut) -> dict[str, Any]:
    """Return held-out scores and curves as data of the page; why there are none, if a class has too few rows."""
    if found.reason:
        return {"reason": found.reason}
    shown = [1] if len(subject.labels) == 2 else subject.shown_classes
    balanced = subject.class_weights[found.codes] * found.weights
    return {
        "text": _rows_scored(subject, len(found.folds)),
        "measures": _MEASURES,
        "models": [
            {"name": name, "folds": [_fold_scores(each, found, balanced, test) for test in found.folds]}
            for name, each in found.models.items()
        ],
        "curves": [_curve(name, k, each, found) for name, each in found.models.items() for k in shown],
        "calibration": _calibration(found.own.probabilities, found.codes, balanced),
    }


def _rows_scored(subject: Subject, n_folds: int) -> str:
    """Return on which rows the scores are, and how the classes count in them."""
    n = len(subject.sample)
    rows = f"all {n:,} rows" if n == subject.n_rows else f"a random sample of {n:,} of the {subject.n_rows:,} rows"
    equal = np.allclose(subject.priors, 1 / len(subject.labels))
    counting = "equally, as in the fit" if equal else "by the priors of the model"
    many = (
        " With so many features, the model is searched from fewer starts in the folds, and gradient boosting is left "
        "out."
    )
    return (
        f"Cross-validation with {n_folds} folds of {rows}: each model is fitted anew without the fold that it is "
        f"scored on; mean ± standard deviation over the folds. In log loss and calibration the classes count "
        f"{counting}.{many if subject.has_many_features else ''}"
    )


def _fold_scores(
    predictions: Predictions, found: HeldOut, balanced: Floats, test: NDArray[np.int64]
) -> tuple[float, ...]:
    """Return the measures on one fold; ``balanced`` are the weights of the rows with those of the classes."""
    codes, weights, probabilities = found.codes[test], found.weights[test], predictions.probabilities[test]
    proba = np.clip(probabilities, LEAST_PROBABILITY, 1)
    proba /= proba.sum(axis=1, keepdims=True)
    labels, predicted = np.arange(proba.shape[1]), predictions.codes[test]
    ranking = {"y_score": probabilities[:, 1]} if len(labels) == 2 else {"y_score": proba, "multi_class": "ovr"}
    return (
        float(balanced_accuracy_score(codes, predicted, sample_weight=weights)),
        float(np.average(codes == predicted, weights=weights)),
        float(roc_auc_score(codes, sample_weight=weights, **ranking)),
        float(log_loss(codes, proba, sample_weight=balanced[test], labels=labels)),
    )


def _curve(name: str, k: int, predictions: Predictions, found: HeldOut) -> dict[str, Any]:
    """Return the ROC and the precision-recall curve of a model for a class."""
    score, truth, weights = predictions.probabilities[:, k], found.codes == k, found.weights
    false, true, _ = roc_curve(truth, score, sample_weight=weights)
    precision, recall, _ = precision_recall_curve(truth, score, sample_weight=weights)
    return {
        "model": name,
        "class_index": k,
        "roc": _thinned(false, true),
        "precision_recall": _thinned(recall[::-1], precision[::-1]),
        "share": float(np.average(truth, weights=weights)),
    }


def _thinned(x: Floats, y: Floats) -> list[list[float]]:
    """Return some points of a curve, evenly spaced along it, with four decimals."""
    length = np.concatenate([[0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    wanted = np.searchsorted(length, np.linspace(0, length[-1], _CURVE_POINTS))
    kept = np.unique(np.clip(wanted, 0, len(x) - 1))
    return [x[kept].round(4).tolist(), y[kept].round(4).tolist()]


def _calibration(probabilities: Floats, codes: NDArray[Any], weights: Floats) -> list[list[float]]:
    """Return, for bins of the predicted probability, its mean, the share of rows of the class, and the number of rows.

    Of more than two classes, all pairs of a row and a class are put together.
    """
    if probabilities.shape[1] == 2:
        predicted, true, mass = probabilities[:, 1], codes == 1, weights
    else:
        predicted = probabilities.ravel()
        true = (codes[:, None] == np.arange(probabilities.shape[1])).ravel()
        mass = np.repeat(weights, probabilities.shape[1])
    bins = np.minimum((predicted * _CALIBRATION_BINS).astype(int), _CALIBRATION_BINS - 1)
    rows = []
    for b in np.unique(bins):
        inside = bins == b
        total = mass[inside].sum()
        mean, share = predicted[inside] @ mass[inside] / total, true[inside] @ mass[inside] / total
        rows.append([round(float(mean), 4), round(float(share), 4), int(inside.sum())])
    return rows


# Accuracy by the number of features


def path_of(subject: Subject, seed: int) -> dict[str, Any] | None:
    """Return the mean balanced accuracy with each number of features, and with all; None if the model has no limit."""
    given, n_features = getattr(subject.model, "max_features", None), subject.model.n_features_in_
    limit = min(given or 0, n_features)  # none is zero
    if not 0 < limit <= _MOST_NUMBERS or subject.has_many_features:
        return None
    X, labels, _ = subject.sampled()
    chosen = np.random.default_rng(seed).permutation(len(labels))[:_MOST_ROWS_OF_PATH]
    labels = np.asarray(labels)[chosen]
    if np.unique(labels, return_counts=True)[1].min() < _FOLDS_OF_PATH:
        return None
    numbers = list(range(1, min(limit + _BEYOND, n_features) + 1))
    folds = StratifiedKFold(_FOLDS_OF_PATH, shuffle=True, random_state=seed)
    options = {
        "param_name": name_for_last_step(subject.estimator, "max_features"),
        "cv": folds,
        "scoring": "balanced_accuracy",
    }
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # what a fold lacks shows in its scores
        estimator = clone(subject.estimator)
        _, scores = validation_curve(estimator, rows_of(X, chosen), labels, param_range=[*numbers, None], **options)
    means = scores.mean(axis=1).tolist()
    return {
        "numbers": numbers,
        "means": means[:-1],
        "errors": (scores.std(axis=1) / np.sqrt(_FOLDS_OF_PATH)).tolist()[:-1],
        "all": means[-1],
        "text": _path_text(dict(zip(numbers, means, strict=False)), limit, means[-1], len(labels)),
    }


def _path_text(means: dict[int, float], limit: int, whole: float, n_rows: int) -> str:
    """Return in words what a feature more or less would change."""
    parts = [f"With at most {limit} feature{'s' if limit > 1 else ''} the balanced accuracy is {means[limit]:.1%}"]
    if limit > 1:
        parts.append(f"with one less {means[limit - 1]:.1%}")
    if limit + 1 in means:
        parts.append(f"with one more {means[limit + 1]:.1%}")
    parts.append(f"with all features {whole:.1%}")
    return f"{', '.join(parts)} (held out, {_FOLDS_OF_PATH} folds of {n_rows:,} rows)."
