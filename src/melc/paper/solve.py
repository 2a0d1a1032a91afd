"""Solve cells: fit on the training fold and score on the test fold; all cells that have no record yet, in parallel.

Every worker writes the record of a cell as soon as it is finished. If the run is interrupted, by Ctrl-C or ``kill -9``,
only the cells in progress are lost, and the next run continues from there.

The folds and starting directions are the same for every method, solver, γ and ε. The other classifiers weigh the
classes equally, as MELC does. The hyperparameters of the two support vector machines and of logistic regression are
chosen by balanced accuracy in an inner cross-validation on the training fold.
"""

import os
import platform
import threading
import time
import zlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import melc
from melc.data.memory import MemoryRows
from melc.fit.density import estimate_density
from melc.fit.solvers import maximise
from melc.objective import Objective
from melc.objective.base import NO_SHRINKAGE, kernel_variances, spread_of
from melc.paper import datasets, records
from melc.paper.protocol import BaselineCell, Cell, MelcCell
from melc.paper.records import Record, Run

LINEAR_COSTS = (0.01, 0.1, 1.0, 10.0)
RBF_COSTS = (0.1, 1.0, 10.0, 100.0)
WIDTHS = (0.001, 0.01, 0.1, 1.0, 10.0)
INNER_FOLDS = 3


@dataclass(frozen=True)
class Split:
    """Training and test data of one fold.

    ``X_train`` and ``X_test`` have shape (n_rows, n_features), ``y_train`` and ``y_test`` shape (n_rows,). Classes are
    coded 0 and 1, in the order of the labels.
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@lru_cache(maxsize=64)
def split(data_set: str, fold: int, n_folds: int, seed: int) -> Split:
    """Return fold number `fold` of a stratified cross-validation; it depends on the arguments only.

    >>> split("heart", 0, 5, 0).X_test.shape
    (54, 13)
    """
    data = datasets.load(data_set)
    codes = np.unique(data.y, return_inverse=True)[1]
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(data.X, codes)
    train, test = list(folds)[fold]
    return Split(data.X[train], codes[train], data.X[test], codes[test])


def starts(data_set: str, fold: int, seed: int, n_starts: int, n_features: int) -> np.ndarray:
    """Return random unit vectors, shape (n_starts, n_features). The first k are the same for every n_starts ≥ k.

    >>> starts("heart", 0, 0, 2, 13).shape
    (2, 13)
    """
    generator = np.random.default_rng([seed, zlib.crc32(data_set.encode()), fold])
    directions = generator.standard_normal((n_starts, n_features))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def solve(cell: Cell) -> Record:
    """Return the record of a cell, which contains all settings.

    It runs in one thread: the matrices are too small to gain from BLAS threads, and times are comparable.
    """
    began = time.perf_counter()
    runs: tuple[Run, ...] = ()
    best = None
    with threadpool_limits(1):
        if isinstance(cell, BaselineCell):
            accuracy = _baseline_accuracy(cell)
        else:
            runs, best, accuracy = _melc_accuracy(cell)
    return Record(cell, accuracy, runs, best, time.perf_counter() - began, _versions_used())


def _baseline_accuracy(cell: BaselineCell) -> float:
    """Return the balanced accuracy of a baseline on the test fold."""
    fold = split(cell.data_set, cell.fold, cell.n_folds, cell.seed)
    model = _baseline(cell.model, cell.seed).fit(fold.X_train, fold.y_train)
    return float(balanced_accuracy_score(fold.y_test, model.predict(fold.X_test)))


def _baseline(name: str, seed: int) -> Any:
    """Return an unfitted classifier, given its name in `melc.paper.protocol.BASELINES`."""
    if name == "LDA":
        return LinearDiscriminantAnalysis(priors=np.array([0.5, 0.5]))
    tuned = {
        "logistic regression": (LogisticRegression(class_weight="balanced", max_iter=5000), {"C": LINEAR_COSTS}),
        "linear SVM": (SVC(kernel="linear", class_weight="balanced"), {"C": LINEAR_COSTS}),
        "RBF SVM": (SVC(kernel="rbf", class_weight="balanced"), {"C": RBF_COSTS, "gamma": WIDTHS}),
    }
    if name not in tuned:
        raise ValueError(f"unknown baseline {name!r}")
    inner = StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=seed)
    return GridSearchCV(*tuned[name], scoring="balanced_accuracy", cv=inner)


def _melc_accuracy(cell: MelcCell) -> tuple[tuple[Run, ...], int, float]:
    """Return all runs, the index of the one with the largest divergence, and its balanced accuracy on the test fold."""
    fold = split(cell.data_set, cell.fold, cell.n_folds, cell.seed)
    rows = MemoryRows(fold.X_train, fold.y_train.astype(np.int8))
    directions = starts(cell.data_set, cell.fold, cell.seed, cell.n_starts, rows.n_features)
    outcomes = [_run(cell, rows, start) for start in directions]
    best = int(np.argmax([run.divergence for run, _ in outcomes]))
    accuracy = _accuracy(fold, rows, outcomes[best][1], cell.gamma)
    return tuple(run for run, _ in outcomes), best, accuracy


def _run(cell: MelcCell, rows: MemoryRows, start: np.ndarray) -> tuple[Run, np.ndarray]:
    """Run a solver from one start, without scaling of the features, and return the run and the direction found."""
    _objective(cell, rows).evaluate(start)  # so that compilation is not timed
    objective = _objective(cell, rows)
    began, began_work = time.perf_counter(), time.process_time()
    result = maximise(objective, start, solver=cell.solver, max_iter=cell.max_iter, tol=cell.tol)
    seconds, processor_seconds = time.perf_counter() - began, time.process_time() - began_work
    exact = Objective(rows, gamma=cell.gamma).evaluate(result.direction)
    run = Run(
        n_iter=result.n_iter,
        n_evaluations=result.n_evaluations,
        n_exponentials=result.n_exponentials,
        n_pairs=exact.n_exponentials * result.n_evaluations,
        divergence=result.divergence,
        exact_divergence=exact.divergence,
        norm=result.norm,
        converged=result.converged,
        reason=result.reason,
        seconds=seconds,
        processor_seconds=processor_seconds,
    )
    return run, result.direction


def _objective(cell: MelcCell, rows: MemoryRows) -> Objective:
    return Objective(rows, gamma=cell.gamma, method=cell.method, eps=cell.eps or 0.0, penalty=cell.penalty)


def _accuracy(fold: Split, rows: MemoryRows, direction: np.ndarray, gamma: float) -> float:
    """Return the balanced accuracy of predicting the class with the larger projected density, with equal priors."""
    z = rows.project(direction)
    points = [z[rows.codes == code] for code in (0, 1)]
    weights = [np.ones(len(values)) for values in points]
    variances = kernel_variances(spread_of(points, weights), NO_SHRINKAGE, gamma)
    densities = [estimate_density(points[c], weights[c], variances[c]) for c in (0, 1)]
    z_test = fold.X_test @ direction
    predicted = (densities[1].log(z_test) > densities[0].log(z_test)).astype(int)
    return float(balanced_accuracy_score(fold.y_test, predicted))


@lru_cache
def _versions_used() -> dict[str, str]:
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    return {"melc": melc.__version__, "python": platform.python_version()} | {p: version(p) for p in packages}


# ------------------------------------------------------------------------------------------------------------ all cells


def run_cells(cells: list[Cell], folder: Path, *, n_jobs: int = 1, show_progress: bool = True) -> int:
    """Solve every cell that has no record in `folder` and return the number of cells solved."""
    folder.mkdir(parents=True, exist_ok=True)
    records.remove_leftovers(folder)
    todo = records.pending(cells, folder)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size="auto")
    with _progress(show_progress) as progress:
        task = progress.add_task("cells", total=len(cells), completed=len(cells) - len(todo))
        for _ in parallel(delayed(_solve_and_write)(cell, folder, os.getpid()) for cell in todo):
            progress.advance(task)
    return len(todo)


def _solve_and_write(cell: Cell, folder: Path, main_process: int) -> None:
    """Solve a cell in a worker process. The result is the record written to disk; nothing is returned."""
    if os.getpid() != main_process:
        _end_with(main_process)
    records.write_record(solve(cell), folder)


@lru_cache
def _end_with(main_process: int) -> None:
    """Start a thread that ends this worker soon after the main process has ended.

    A main process that is ended by ``kill -9`` cannot end its workers itself.
    """

    def watch() -> None:
        while os.getppid() == main_process:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _progress(show: bool) -> Any:
    """Return a progress bar with the elapsed and the remaining time."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        "[progress.description]{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        "left",
        TimeRemainingColumn(),
    )
    # The speed is averaged over minutes, because some cells take a hundred times as long as others.
    return Progress(*columns, console=Console(stderr=True), disable=not show, speed_estimate_period=300)
