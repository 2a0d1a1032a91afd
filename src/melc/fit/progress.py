"""Progress of a fit: scikit-learn's callbacks where there are any, and a line for every run if ``verbose``.

scikit-learn has callbacks since 1.9 (``model.set_callbacks(ProgressBar())``).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from melc._sklearn import HAS_CALLBACKS, callback_context
from melc.fit.solvers import Result


class RunCounter:
    """A callback that calls ``step`` after every run, for progress that is shown in some other way."""

    def __init__(self, step: Callable[[], None]) -> None:
        self.step = step

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing to set up."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing to tear down."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Only ends count."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        if context.parent is not None:
            self.step()


@contextmanager
def counting_runs(model: Any, step: Callable[[], None]) -> Iterator[None]:
    """Call ``step`` after every run of the model's fits in this block; never, where there are no callbacks."""
    if not HAS_CALLBACKS:
        yield
        return
    model.set_callbacks(RunCounter(step))
    try:
        yield
    finally:
        model.set_callbacks()


class Progress:
    """Tells callbacks of the beginning and end of a fit and of every run in it. Safe to use from threads."""

    def __init__(self, estimator: Any, n_runs: int, verbose: int, X: Any, y: Any, sample_weight: Any) -> None:
        self.estimator, self.n_runs, self.verbose = estimator, n_runs, verbose
        self.n_ended = 0
        self._stop = False
        self._lock = threading.Lock()
        self._data = {"X": X, "y": y}
        if sample_weight is not None:
            self._data["metadata"] = {"sample_weight": sample_weight}
        self._context = callback_context(estimator, n_runs)
        if self._context is not None:
            self._context.call_on_fit_task_begin(estimator=estimator, **self._data)

    def run_ended(self, run: Result, attributes: Callable[[], dict[str, Any]] | None = None) -> bool:
        """Note a run and return whether a callback wants the fit to stop, which holds for all runs that follow.

        ``attributes`` makes a fitted model of what is known so far, should a callback ask for one.
        """
        with self._lock:
            self.n_ended += 1
            if self.verbose:
                print(
                    f"[MELC] run {self.n_ended}/{self.n_runs}: D = {run.divergence:.6g} after {run.n_iter} iterations, "
                    f"{run.n_evaluations} evaluations; {run.reason}",
                    flush=True,
                )
            if self._context is None:
                return False
            task = self._context.subcontext(task_name="run")
            task.call_on_fit_task_begin(estimator=self.estimator, **self._data)
            self._stop |= task.call_on_fit_task_end(
                estimator=self.estimator, **self._data, reconstruction_attributes=attributes
            )
            return self._stop

    def fit_ended(self) -> None:
        """Tell callbacks that the estimator is fitted: everything that they need is on it."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self.estimator, **self._data, reconstruction_attributes={})
