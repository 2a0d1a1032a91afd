"""Progress of a fit: calls of scikit-learn's callbacks, and one printed line for each run if ``verbose``.

Callbacks (``model.set_callbacks(ProgressBar())``) need scikit-learn 1.9 or later.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from melc import kernels
from melc._sklearn import HAS_CALLBACKS, callback_context
from melc.fit.solvers import Result


class RunCounter:
    """A callback that calls ``step`` after each run, for programs that show progress in their own way."""

    def __init__(self, step: Callable[[], None]) -> None:
        self.step = step

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Call ``step`` if a run has ended, not the whole fit."""
        if context.parent is not None:
            self.step()


@contextmanager
def counting_runs(model: Any, step: Callable[[], None]) -> Iterator[None]:
    """Call ``step`` after each run of the model's fits in this block. Before scikit-learn 1.9 it is never called."""
    if not HAS_CALLBACKS:
        yield
        return
    model.set_callbacks(RunCounter(step))
    try:
        yield
    finally:
        model.set_callbacks()


def compiling_note() -> str:
    """Return what to tell the user if this fit has to compile, which takes seconds; otherwise nothing."""
    return "" if kernels.is_cached(kernels.run_ascent) else "compiling, once after installation"


class Progress:
    """Reports the beginning and end of a fit and of each of its runs to callbacks. Thread-safe."""

    def __init__(self, estimator: Any, n_runs: int, verbose: int, X: Any, y: Any, sample_weight: Any) -> None:
        self.estimator, self.n_runs, self.verbose = estimator, n_runs, verbose
        self.n_ended = 0
        self._stop = False
        self._lock = threading.Lock()
        self._data = {"X": X, "y": y}
        if sample_weight is not None:
            self._data["metadata"] = {"sample_weight": sample_weight}
        if verbose and (note := compiling_note()):
            print(f"[{type(estimator).__name__}] {note}", flush=True)
        self._context = callback_context(estimator, n_runs)
        if self._context is not None:
            self._context.call_on_fit_task_begin(estimator=estimator, **self._data)

    def run_ended(self, run: Result, attributes: Callable[[], dict[str, Any]] | None = None) -> bool:
        """Report a run. Return whether this or an earlier callback asked the fit to stop.

        ``attributes`` returns the fitted attributes of the best run so far, for callbacks that ask for a fitted model.
        """
        return self._ended(
            f"run {self.n_ended + 1}/{self.n_runs}: D = {run.divergence:.6g} after {run.n_iter} iterations, "
            f"{run.n_evaluations} evaluations; {run.reason}",
            attributes,
        )

    def line_ended(self, n_features: int, loss: float) -> bool:
        """Report a line of an additive model, the last of a round. Return whether a callback asked the fit to stop."""
        features = "1 feature" if n_features == 1 else f"{n_features} features"
        return self._ended(f"line {self.n_ended + 1}: {features}, log loss {loss:.4g} (each row left out)")

    def _ended(self, message: str, attributes: Callable[[], dict[str, Any]] | None = None) -> bool:
        with self._lock:
            self.n_ended += 1
            if self.verbose:
                print(f"[{type(self.estimator).__name__}] {message}", flush=True)
            if self._context is None:
                return False
            task = self._context.subcontext(task_name="run")
            task.call_on_fit_task_begin(estimator=self.estimator, **self._data)
            self._stop |= task.call_on_fit_task_end(
                estimator=self.estimator, **self._data, reconstruction_attributes=attributes
            )
            return self._stop

    def fit_ended(self) -> None:
        """Report the end of the fit. The fitted attributes are on the estimator by then."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self.estimator, **self._data, reconstruction_attributes={})
