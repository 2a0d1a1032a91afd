"""Cross-validated scores of melc's models and other classifiers on a table."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, matthews_corrcoef, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.validation import has_fit_parameter

from melc.arrays import Floats
from melc.tables.problem import AnyProblem

MEASURES = ("balanced accuracy", "MCC", "AUC")


@dataclass(frozen=True)
class FoldScores:
    """Scores of one model on one fold, in the order of :data:`MEASURES`, and the time of its fit in seconds."""

    model: str
    fold: int
    values: tuple[float, float, float]
    seconds: float


def competitors() -> dict[str, Any]:
    """Return common classifiers to compare with, on standardised features; all but LDA weigh the classes equally."""
    return {
        "logistic regression": _scaled(LogisticRegression(class_weight="balanced", max_iter=1000)),
        "LDA": _scaled(LinearDiscriminantAnalysis()),
        "linear SVM": _scaled(LinearSVC(class_weight="balanced", max_iter=20_000)),
        "RBF SVM": _scaled(SVC(class_weight="balanced")),
    }


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def possible_folds(problem: AnyProblem, wanted: int) -> int:
    """Return the number of folds: ``wanted``, but at most the number of rows of the smallest class."""
    return min(wanted, *problem.class_counts.values())


def cross_validate(
    problem: AnyProblem, models: dict[str, Any], *, n_folds: int = 5, seed: int = 0
) -> Iterator[FoldScores]:
    """Yield the scores of every model on every fold of a stratified cross-validation.

    The encoding of the columns is learned on the training part of each fold.
    """
    n_possible = possible_folds(problem, n_folds)
    if n_possible < n_folds:
        smallest = min(problem.class_counts, key=problem.class_counts.__getitem__)
        raise ValueError(
            f"Class {smallest} has {n_possible} rows, too few for {n_folds} folds; "
            f"use fewer folds (--cv {max(2, n_possible)}) or more rows."
        )
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    for fold, (train, test) in enumerate(splitter.split(problem.labels, problem.labels)):
        encoding, *features = problem.fold(train, test)
        X_train, X_test = (encoding.framed(X) for X in features)
        for name, model in models.items():
            yield _score(name, fold, clone(model), problem, (X_train, train), (X_test, test))


def _score(
    name: str,
    fold: int,
    model: Any,
    problem: AnyProblem,
    training: tuple[Any, NDArray[np.int64]],
    testing: tuple[Any, NDArray[np.int64]],
) -> FoldScores:
    """Fit and score a model on one fold; ``training`` and ``testing`` are (features, indices of the rows)."""
    (X_train, train), (X_test, test) = training, testing
    start = time.perf_counter()
    _fit(model, X_train, problem.labels[train], None if problem.weights is None else problem.weights[train])
    seconds = time.perf_counter() - start
    weights = None if problem.weights is None else problem.weights[test]
    truth, found = problem.labels[test], model.predict(X_test)
    values = (
        float(balanced_accuracy_score(truth, found, sample_weight=weights)),
        float(matthews_corrcoef(truth, found, sample_weight=weights)),
        _auc(model, X_test, truth, weights),
    )
    return FoldScores(name, fold, values, seconds)


def _fit(model: Any, X: Any, y: NDArray[Any], weights: Floats | None) -> None:
    """Fit the model, with sample weights if it supports them."""
    if weights is None:
        model.fit(X, y)
    elif not hasattr(model, "steps"):
        model.fit(X, y, sample_weight=weights)
    elif has_fit_parameter(model[-1], "sample_weight"):
        model.fit(X, y, **{f"{model.steps[-1][0]}__sample_weight": weights})
    else:
        model.fit(X, y)


def _auc(model: Any, X: Any, truth: NDArray[Any], weights: Floats | None) -> float:
    """Return the area under the ROC curve; with more than two classes the mean over each against the rest."""
    if len(model.classes_) == 2:
        return float(roc_auc_score(truth, model.decision_function(X), sample_weight=weights))
    scores = model.predict_proba(X) if hasattr(model, "predict_proba") else softmax(model.decision_function(X), axis=1)
    return float(roc_auc_score(truth, scores, multi_class="ovr", sample_weight=weights))


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation of each measure over the folds, and the mean time of a fit in seconds."""

    model: str
    means: tuple[float, ...]
    spreads: tuple[float, ...]
    seconds: float


def summarise(scores: list[FoldScores]) -> list[Summary]:
    """Return one summary per model, in the order of their first score."""
    names = list(dict.fromkeys(score.model for score in scores))
    return [_summary(name, [score for score in scores if score.model == name]) for name in names]


def _summary(name: str, scores: list[FoldScores]) -> Summary:
    values = np.array([score.values for score in scores])
    return Summary(
        name,
        tuple(values.mean(axis=0).tolist()),
        tuple(values.std(axis=0).tolist()),
        float(np.mean([score.seconds for score in scores])),
    )
