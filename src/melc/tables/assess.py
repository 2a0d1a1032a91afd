"""Cross-validated scores of melc's models and other classifiers on a table."""

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, matthews_corrcoef, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.validation import has_fit_parameter

from melc.arrays import Floats
from melc.model.units import last_step, weights_of_fit
from melc.tables.training import Training

MEASURES = ("balanced accuracy", "MCC", "AUC")
# Texts of a column that have a feature of their own in other classifiers; the rarest of more have one together.
_MOST_TEXTS = 100
# Rows of every class that cross-validation needs.
_FEWEST_ROWS = 3


@dataclass(frozen=True)
class FoldScores:
    """Scores of one model on one fold, in the order of :data:`MEASURES`, and the time of its fit in seconds.

    ``confusion`` has a row for each true class and a column for each predicted one, with the weights of the rows.
    """

    model: str
    fold: int
    values: tuple[float, float, float]
    seconds: float
    confusion: Floats
    n_lines: int


def competitors(categorical: Collection[str] = ()) -> dict[str, Any]:
    """Return common classifiers to compare with; all but LDA weigh the classes equally.

    They see standardised numbers, the median where one is missing, and a feature for each text; so too for the numbers
    of ``categorical`` columns.
    """
    models = {
        "logistic regression": LogisticRegression(class_weight="balanced", max_iter=1000),
        "LDA": LinearDiscriminantAnalysis(),
        "linear SVM": LinearSVC(class_weight="balanced", max_iter=20_000),
        "RBF SVM": SVC(class_weight="balanced"),
    }
    return {name: make_pipeline(_encoder(categorical), model) for name, model in models.items()}


def _encoder(categorical: Collection[str]) -> ColumnTransformer:
    """Return the usual way to make features of a frame."""

    def is_text(column: Any) -> bool:
        return column.name in categorical or column.dtype.kind not in "iufM"

    numbers = make_pipeline(FunctionTransformer(_as_numbers), SimpleImputer(strategy="median"), StandardScaler())
    texts = make_pipeline(
        FunctionTransformer(lambda X: X.astype(str)),
        OneHotEncoder(handle_unknown="ignore", max_categories=_MOST_TEXTS, sparse_output=False),
    )
    return make_column_transformer(
        (numbers, lambda X: [name for name in X if not is_text(X[name])]),
        (texts, lambda X: [name for name in X if is_text(X[name])]),
    )


def _as_numbers(X: Any) -> Any:
    """Return a frame of numbers and dates with dates as numbers of days."""
    days = np.timedelta64(1, "D")
    return X.apply(lambda column: (column - np.datetime64(0, "s")) / days if column.dtype.kind == "M" else column)


def possible_folds(training: Training, wanted: int) -> int:
    """Return the number of folds: ``wanted``, but at most the rows of the smallest class; 0 if it has fewer than three.

    The rows outside of a fold, to which models are fitted, must have two of every class: of three rows, in three folds.
    """
    _, fewest = _smallest_class(training)
    if fewest <= _FEWEST_ROWS:
        return fewest if fewest == _FEWEST_ROWS else 0
    return min(wanted, fewest)


def _smallest_class(training: Training) -> tuple[Any, int]:
    """Return the class with the fewest rows, and their number."""
    return min(training.class_counts.items(), key=itemgetter(1))


def said_of_few_rows(training: Training) -> str:
    """Return why there are too few rows to cross-validate."""
    smallest, count = _smallest_class(training)
    rows = "row" if count == 1 else "rows"
    return f"class {smallest} has {count} {rows}; cross-validation needs at least {_FEWEST_ROWS} of every class"


def cross_validate(
    training: Training, models: dict[str, Any], *, n_folds: int = 5, seed: int = 0
) -> Iterator[FoldScores]:
    """Yield the scores of every model on every fold of a stratified cross-validation."""
    possible = possible_folds(training, n_folds)
    if not possible:
        raise ValueError(f"No cross-validation: {said_of_few_rows(training)}.")
    if possible != n_folds:
        smallest, count = _smallest_class(training)
        raise ValueError(
            f"Class {smallest} has {count} rows, too few for {n_folds} folds; use --cv {count} or more rows."
        )
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    for fold, parts in enumerate(splitter.split(training.codes, training.codes)):
        train, test = (training.rows(part) for part in parts)
        for name, model in models.items():
            fitted, start = clone(model), time.perf_counter()
            fitted.fit(train.X, train.labels, **_weights(fitted, train))
            seconds = time.perf_counter() - start
            predicted = fitted.predict(test.X)
            confusion = confusion_matrix(
                test.labels, predicted, labels=training.classes, sample_weight=test.weights
            ).astype(float)
            n_lines = len(getattr(fitted, "lines_", ()))
            yield FoldScores(name, fold, _scores(fitted, predicted, test), seconds, confusion, n_lines)


def _weights(model: Any, rows: Training) -> dict[str, Floats]:
    """Return the sample weights as an argument of ``fit``, if there are any and the model supports them."""
    if rows.weights is None or not has_fit_parameter(last_step(model), "sample_weight"):
        return {}
    return weights_of_fit(model, rows.weights)


def _scores(model: Any, predicted: NDArray[Any], rows: Training) -> tuple[float, float, float]:
    """Return the scores of a fitted model, in the order of :data:`MEASURES`."""
    return (
        float(balanced_accuracy_score(rows.labels, predicted, sample_weight=rows.weights)),
        float(matthews_corrcoef(rows.labels, predicted, sample_weight=rows.weights)),
        _auc(model, rows.X, rows.labels, rows.weights),
    )


def _auc(model: Any, X: Any, truth: NDArray[Any], weights: Floats | None) -> float:
    """Return the area under the ROC curve; with more than two classes the mean over each against the rest."""
    if len(model.classes_) == 2:
        return float(roc_auc_score(truth, model.decision_function(X), sample_weight=weights))
    scores = model.predict_proba(X) if hasattr(model, "predict_proba") else softmax(model.decision_function(X), axis=1)
    return float(roc_auc_score(truth, scores, multi_class="ovr", sample_weight=weights))


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation of each measure over the folds, and what else is known of them.

    That is the mean time of a fit in seconds, the confusion of all folds together, and the mean number of lines.
    """

    model: str
    means: tuple[float, ...]
    spreads: tuple[float, ...]
    seconds: float
    confusion: Floats
    n_lines: float


def summarise(scores: list[FoldScores]) -> list[Summary]:
    """Return one summary per model, in the order of their first score."""
    summaries = []
    for name in dict.fromkeys(score.model for score in scores):
        folds = [score for score in scores if score.model == name]
        values = np.array([fold.values for fold in folds])
        means, spreads = values.mean(axis=0).tolist(), values.std(axis=0).tolist()
        seconds, confusion = float(np.mean([fold.seconds for fold in folds])), sum(fold.confusion for fold in folds)
        n_lines = float(np.mean([fold.n_lines for fold in folds]))
        summaries.append(Summary(name, tuple(means), tuple(spreads), seconds, np.asarray(confusion), n_lines))
    return summaries
