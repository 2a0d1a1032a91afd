"""Held-out scores of the model and of other classifiers, by cross-validation, and curves of its held-out odds."""

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
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from melc.arrays import Floats
from melc.data.frames import rows_of
from melc.report.subject import Subject

HELD_OUT_MEASURES = ("balanced accuracy", "accuracy", "AUC", "log loss")
_CURVE_POINTS, _CALIBRATION_BINS = 48, 10
# Classes with curves and a row in the table of confusions.
_MOST_SHOWN_CLASSES = 8
_BOOSTING = "gradient boosting"
# With more features, gradient boosting is left out: it would take minutes.
_MOST_BOOSTED = 500
# A category of more levels is an ordinary number to gradient boosting.
_MOST_BOOSTED_LEVELS = 255
_LEAST_PROBABILITY = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class HeldOut:
    """Predictions of one model for every row of the sample, made without it, and its scores on each fold."""

    probabilities: Floats
    predicted: NDArray[Any]
    folds: list[tuple[float, ...]]


def other_classifiers(subject: Subject, seed: int) -> dict[str, Any]:
    """Return the other classifiers, of coded rows. They weigh the classes as the model does."""
    weight = "balanced" if subject.model.priors is None else None
    logistic = make_pipeline(_prepared(subject), LogisticRegression(class_weight=weight, max_iter=300))
    levels = {j: category.n_levels for j, category in subject.model.columns_.categories.items()}
    categorical = [j for j, n in levels.items() if n < _MOST_BOOSTED_LEVELS] or None
    boosting = HistGradientBoostingClassifier(class_weight=weight, random_state=seed, categorical_features=categorical)
    few = subject.coded.shape[1] <= _MOST_BOOSTED
    return {"logistic regression": logistic, **({_BOOSTING: boosting} if few else {})}


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


def scores_of(subject: Subject, n_folds: int, seed: int, step: Callable[[str], None]) -> dict[str, Any]:
    """Return held-out scores and curves as data of the page; why there are none, if a class has too few rows."""
    X, y = subject.sampled()
    coded, codes = subject.coded[subject.sample], subject.codes[subject.sample]
    counts = np.bincount(codes, minlength=len(subject.labels))
    n_folds = min(n_folds, int(counts.min()))
    if n_folds < 2:
        fewest = subject.labels[int(np.argmin(counts))]
        return {"reason": f"Class {fewest} has {counts.min()} rows, too few for cross-validation."}
    models = {type(subject.model).__name__: subject.estimator, **other_classifiers(subject, seed)}
    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))
    weights = class_weights(subject, counts)[codes]
    found = {}
    for name, model in models.items():
        step(f"cross-validation: {name}")
        rows = X if model is subject.estimator else coded
        rows = rows.toarray() if sparse.issparse(rows) and name == _BOOSTING else rows
        found[name] = _predict_folds(clone(model), rows, y, codes, weights, folds)
    own = found[type(subject.model).__name__]
    return {
        "text": _rows_scored(subject, n_folds),
        "measures": HELD_OUT_MEASURES,
        "n_folds": n_folds,
        "n_rows": len(y),
        "models": [{"name": name, "folds": each.folds} for name, each in found.items()],
        "curves": [curves for name, each in found.items() for curves in _roc_and_precision(name, each, codes, weights)],
        "calibration": _calibration(own.probabilities, codes, weights),
        "confusion": _confusion(own, subject, codes),
    }


def _rows_scored(subject: Subject, n_folds: int) -> str:
    """Return on which rows the scores are, and how the classes count in them."""
    n = len(subject.sample)
    rows = f"all {n:,} rows" if n == subject.n_rows else f"a random sample of {n:,} of the {subject.n_rows:,} rows"
    priors = subject.model.priors
    counting = {True: "as often as they occur", False: "equally" if priors is None else "by the priors of the model"}
    boosting = " Gradient boosting is left out, since it takes long with so many features."
    return (
        f"Cross-validation with {n_folds} folds of {rows}: each model is fitted anew without the fold that it is "
        f"scored on; mean ± standard deviation over the folds. In log loss and calibration the classes count "
        f"{counting[isinstance(priors, str)]}.{boosting if subject.coded.shape[1] > _MOST_BOOSTED else ''}"
    )


def class_weights(subject: Subject, counts: NDArray[np.int64]) -> Floats:
    """Return the weight of a row of each class such that the classes count as the priors of the model say."""
    if isinstance(subject.model.priors, str):
        return np.ones(len(counts))
    return subject.priors * counts.sum() / counts


def _predict_folds(
    model: Any, X: Any, y: NDArray[Any], codes: NDArray[Any], weights: Floats, folds: list[Any]
) -> HeldOut:
    """Fit on all folds but one, and predict that one, for each fold."""
    probabilities, predicted = np.empty((len(y), codes.max() + 1)), np.empty_like(y)
    values = []
    for train, test in folds:
        with warnings.catch_warnings():
            # What a fold lacks in rows or iterations shows in its scores.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UserWarning)
            # Threads that wait for each other cost more than they save on a sample, by far if the machine is busy.
            with threadpool_limits(limits=1):
                model.fit(rows_of(X, train), y[train])
        held_out = rows_of(X, test)
        probabilities[test], predicted[test] = model.predict_proba(held_out), model.predict(held_out)
        values.append(_fold_scores(probabilities[test], predicted[test], y[test], codes[test], weights[test]))
    return HeldOut(probabilities, predicted, values)


def _fold_scores(
    probabilities: Floats, predicted: NDArray[Any], y: NDArray[Any], codes: NDArray[Any], weights: Floats
) -> tuple[float, ...]:
    proba = np.clip(probabilities, _LEAST_PROBABILITY, 1)
    proba /= proba.sum(axis=1, keepdims=True)
    labels = np.arange(proba.shape[1])
    ranking = {"y_score": probabilities[:, 1]} if len(labels) == 2 else {"y_score": proba, "multi_class": "ovr"}
    return (
        float(balanced_accuracy_score(y, predicted)),
        float(np.mean(y == predicted)),
        float(roc_auc_score(codes, **ranking)),
        float(log_loss(codes, proba, sample_weight=weights, labels=labels)),
    )


def _roc_and_precision(name: str, found: HeldOut, codes: NDArray[Any], weights: Floats) -> list[dict[str, Any]]:
    """Return the ROC and the precision-recall curve of a model: for the second of two classes, or for each of more."""
    n_classes = found.probabilities.shape[1]
    shown = [1] if n_classes == 2 else np.argsort(-np.bincount(codes), kind="stable")[:_MOST_SHOWN_CLASSES].tolist()
    return [_curve(name, k, found.probabilities[:, k], codes == k) for k in sorted(shown)]


def _curve(name: str, class_index: int, score: Floats, truth: NDArray[np.bool_]) -> dict[str, Any]:
    false, true, _ = roc_curve(truth, score)
    precision, recall, _ = precision_recall_curve(truth, score)
    return {
        "model": name,
        "class_index": class_index,
        "roc": _thinned(false, true),
        "precision_recall": _thinned(recall[::-1], precision[::-1]),
        "share": float(np.mean(truth)),
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


def _confusion(found: HeldOut, subject: Subject, codes: NDArray[Any]) -> dict[str, Any]:
    """Return the held-out rows of each class by their prediction, for the classes with the most rows."""
    n = len(subject.labels)
    predicted = np.searchsorted(subject.model.classes_, found.predicted)
    table = np.bincount(codes * n + predicted, minlength=n * n).reshape(n, n)
    shown = np.sort(np.argsort(-table.sum(axis=1), kind="stable")[:_MOST_SHOWN_CLASSES])
    return {"classes": shown.tolist(), "counts": table[np.ix_(shown, shown)].tolist(), "n_classes": n}
