"""Measure the cells that have no record yet, on several processes."""

import time
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from benchmarks.measure import one_thread
from benchmarks.quality import records
from benchmarks.quality.models import MODELS, Model
from benchmarks.quality.records import Cell, Record
from benchmarks.quality.sets import SETS, Data
from melc.paper.datasets import DataSetError


def at_hand(names: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the data sets that can be loaded, and for the others why not."""
    loaded, missing = [], {}
    for name in names:
        try:
            _load(name)
            loaded.append(name)
        except DataSetError as error:
            missing[name] = str(error)
    return loaded, missing


def run(cells: list[Cell], path: Path, n_jobs: int = 2, tell: Callable[[str], None] = print) -> list[str]:
    """Measure every cell without a record and append its record to the file. Return what failed, one line each."""
    done = records.read(path)
    todo = [cell for cell in cells if cell.key not in done]
    failed = []
    for number, (cell, outcome) in enumerate(_outcomes(todo, n_jobs), 1):
        name = f"{cell.model} on {cell.data_set}, repeat {cell.repeat}"
        if isinstance(outcome, Record):
            records.append(outcome, path)
            result = f"{np.mean(outcome.balanced_accuracy):.3f}, {np.median(outcome.seconds):.2f} s a fit"
        else:
            failed.append(f"{name}: {outcome}")
            result = f"FAILED: {outcome}"
        tell(f"{number:>4} of {len(todo)}  {name}: {result}")
    return failed


def _outcomes(todo: list[Cell], n_jobs: int) -> Iterator[tuple[Cell, Record | str]]:
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    yield from parallel(delayed(_attempt)(cell) for cell in todo)


def _attempt(cell: Cell) -> tuple[Cell, Record | str]:
    """Measure a cell; a model that fails is reported and does not stop the others."""
    try:
        return cell, measure(cell)
    except Exception as error:
        return cell, f"{type(error).__name__}: {error}"


def measure(cell: Cell) -> Record:
    """Fit and score the folds of one cell, on one thread, so that processor times can be compared."""
    X, y = _load(cell.data_set)
    folds = StratifiedKFold(cell.n_folds, shuffle=True, random_state=cell.repeat).split(X, y)
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = [_score(MODELS[cell.model], cell.repeat, X, y, train, test) for train, test in folds]
    accuracies, losses, seconds, lines = (list(each) for each in zip(*scores, strict=True))
    return Record(cell, accuracies, losses, seconds, None if None in lines else lines)


def _score(model: Model, seed: int, X: Any, y: Any, train: Any, test: Any) -> tuple[float, float, float, int | None]:
    """Return balanced accuracy and log loss on the test rows, processor seconds of the fit, and the number of lines."""
    scaler = StandardScaler().fit(X[train])
    X_train, X_test, y_train, y_test = scaler.transform(X[train]), scaler.transform(X[test]), y[train], y[test]
    estimator = model.make(len(np.unique(y)), seed)
    weights = {"sample_weight": compute_sample_weight("balanced", y_train)} if model.weighted else {}
    start = time.process_time()
    estimator.fit(X_train, y_train, **weights)
    taken = time.process_time() - start
    accuracy = balanced_accuracy_score(y_test, estimator.predict(X_test))
    loss = balanced_log_loss(y_test, estimator.predict_proba(X_test), estimator.classes_)
    lines = len(estimator.lines_) if hasattr(estimator, "lines_") else None
    return float(accuracy), loss, taken, lines


def balanced_log_loss(y: np.ndarray, proba: np.ndarray, classes: np.ndarray) -> float:
    """Return the mean of −log p of the true class within each class, averaged over the classes."""
    return float(log_loss(y, proba, sample_weight=compute_sample_weight("balanced", y), labels=classes))


@lru_cache(maxsize=4)
def _load(name: str) -> Data:
    return SETS[name].load()
