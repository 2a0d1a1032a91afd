"""Held-out scores of the model and of other classifiers, with ROC, precision-recall and calibration curves."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score, log_loss, precision_recall_curve, roc_auc_score, roc_curve

from melc.arrays import Floats
from melc.report.heldout import LEAST_PROBABILITY, MANY_FEATURES, HeldOut, Predictions
from melc.report.subject import Subject

HELD_OUT_MEASURES = ("balanced accuracy", "accuracy", "AUC", "log loss")
_CURVE_POINTS, _CALIBRATION_BINS = 48, 10
# Classes with curves.
_MOST_SHOWN_CLASSES = 8


def scores_of(subject: Subject, found: HeldOut) -> dict[str, Any]:
    """Return held-out scores and curves as data of the page; why there are none, if a class has too few rows."""
    if found.reason:
        return {"reason": found.reason}
    balanced = subject.class_weights[found.codes] * found.weights
    return {
        "text": _rows_scored(subject, len(found.folds)),
        "measures": HELD_OUT_MEASURES,
        "models": [
            {"name": name, "folds": [_fold_scores(each, found, balanced, test) for test in found.folds]}
            for name, each in found.models.items()
        ],
        "curves": [curve for name, each in found.models.items() for curve in _roc_and_precision(name, each, found)],
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
        f"{counting}.{many if subject.coded.shape[1] > MANY_FEATURES else ''}"
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


def _roc_and_precision(name: str, predictions: Predictions, found: HeldOut) -> list[dict[str, Any]]:
    """Return the ROC and the precision-recall curve of a model: for the second of two classes, or for each of more."""
    counts = np.bincount(found.codes)
    shown = [1] if len(counts) == 2 else np.argsort(-counts, kind="stable")[:_MOST_SHOWN_CLASSES].tolist()
    scores = predictions.probabilities
    return [_curve(name, k, scores[:, k], found.codes == k, found.weights) for k in sorted(shown)]


def _curve(name: str, class_index: int, score: Floats, truth: NDArray[np.bool_], weights: Floats) -> dict[str, Any]:
    false, true, _ = roc_curve(truth, score, sample_weight=weights)
    precision, recall, _ = precision_recall_curve(truth, score, sample_weight=weights)
    return {
        "model": name,
        "class_index": class_index,
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
