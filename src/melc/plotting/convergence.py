"""The divergence over the iterations of every start."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.plotting.common import BLUE, GREY, axes, final_step, projection_index


@dataclass(eq=False)
class ConvergenceDisplay:
    """The divergence over the iterations of every start.

    It is recommended to use :meth:`from_estimator`.

    Attributes
    ----------
    histories : list of arrays
        The divergence after each iteration, one array a start.
    ax_, figure_, lines_
        The artists, once drawn.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> from melc.plotting import ConvergenceDisplay
    >>> X, species = load_iris(return_X_y=True)
    >>> model = MELC(n_init=3, random_state=0).fit(X, species == 2)
    >>> len(ConvergenceDisplay.from_estimator(model).lines_)
    3
    """

    histories: list[Floats]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, class_label: Any = None, title: str | None = None, ax: Any = None
    ) -> "ConvergenceDisplay":
        """Draw the runs of a fitted model.

        Parameters
        ----------
        estimator : MELC or a Pipeline that ends in one
        class_label : default=None
            Of several classes, the one whose runs are drawn.
        title : str, default=None
        ax : matplotlib axes, default=None
        """
        model, _ = final_step(estimator, None)
        runs = _runs(model, projection_index(model, class_label))
        histories = [np.asarray(run.history or (run.divergence,), dtype=np.float64) for run in runs]
        return cls(histories).plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = None) -> "ConvergenceDisplay":
        """Draw on ``ax``, or on a new figure."""
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        best = int(np.argmax([history[-1] for history in self.histories]))
        self.lines_ = [self._draw(k, history, k == best) for k, history in enumerate(self.histories)]
        self.ax_.set(xlabel="iteration", ylabel="divergence D")
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.ax_.set_xlim(left=0)
        self.ax_.spines[["top", "right"]].set_visible(False)
        if title:
            self.ax_.set_title(title)
        self.ax_.legend(frameon=False, fontsize=8, loc="lower right")
        return self

    def _draw(self, k: int, history: Floats, is_best: bool) -> Any:
        """One run, its end marked: the best in front and in colour, the others in grey behind."""
        n_others = len(self.histories) - 1
        first_other = 1 if np.argmax([h[-1] for h in self.histories]) == 0 else 0
        label = f"best start (D = {history[-1]:.4g})" if is_best else None
        if not is_best and k == first_other:
            label = f"{n_others} other start{'s' if n_others > 1 else ''}"
        iterations = np.arange(1, len(history) + 1)
        style = (
            {"color": BLUE, "linewidth": 2.2, "zorder": 4}
            if is_best
            else {"color": GREY, "linewidth": 1, "alpha": 0.7, "linestyle": "--"}
        )
        (line,) = self.ax_.plot(iterations, history, label=label, marker="o", markevery=[-1], markersize=5, **style)
        return line


def _runs(model: Any, index: int) -> Any:
    """The runs of one projection."""
    runs = getattr(model, "results_", None)
    if not runs:
        raise ValueError("The model holds no record of its runs (it was not fitted here but read from a file).")
    return runs[index] if isinstance(runs[0], (list, tuple)) else runs
