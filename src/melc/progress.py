"""Progress of a fit: scikit-learn's callbacks where there are any, and a line a run where ``verbose`` asks for it.

scikit-learn has callbacks since 1.9 (``model.set_callbacks(ProgressBar())``); below that they are absent, and this is
the only file that knows.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from melc.optimize import Result

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    HAS_CALLBACKS = True
except ImportError:  # scikit-learn < 1.9
    HAS_CALLBACKS = False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        return method


class RunCounter:
    """A callback that takes a step after every run, for whoever shows progress in a way of their own."""

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
        self._context = None
        if HAS_CALLBACKS:
            self._context = estimator._init_callback_context(max_subtasks=n_runs)
            self._context.call_on_fit_task_begin(estimator=estimator, **self._data)

    def run_ended(self, run: Result, attributes: Callable[[], dict[str, Any]] | None = None) -> bool:
        """Note a run; ``attributes`` makes a fitted model of what is known so far, should a callback ask for one.

        True if a callback wishes the fit to stop; it holds for all runs that follow.
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
        """The estimator is fitted: everything a callback needs is on it."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self.estimator, **self._data, reconstruction_attributes={})
