"""Plot of the divergence against the iterations."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.plotting import common
from melc.plotting.common import AS_WRITTEN, BLUE, GREY


@dataclass(eq=False)
class ConvergenceDisplay:
    """Plot of the divergence against the iterations, one line per start.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    histories : list of ndarray of shape (n_iter,)
        Divergence after each iteration, one array per start.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    lines_ : list of matplotlib Line2D
        One line per start.

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

    histories: list[Floats] = field(repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        line: int | None = None,
        title: str | None = None,
        ax: Any = None,
    ) -> "ConvergenceDisplay | common.LinePanels":
        """Plot the runs of a fitted model.

        Parameters
        ----------
        estimator : MELC, Pipeline or fitted search
            A fitted model, a pipeline that ends in one, or a fitted search for one.
        line : int, default=None
            Number of the line to plot, from 1; with more than two classes each class has one. By default all lines, one
            below the other.
        title : str, default=None
            Title of the plot. By default, if there are several lines, their numbers.
        ax : matplotlib Axes, array of Axes, or empty Figure, default=None
            Axes to plot on, one for each line, or a figure to fill. If None, a new figure is created.

        Returns
        -------
        display : ConvergenceDisplay or LinePanels
        """
        model, _, _ = common.unwrapped(estimator)
        runs, numbers = _runs(model), common.chosen([each.minor for each in model.lines_], line)
        displays = [cls([np.asarray(run.history or (run.divergence,)) for run in runs[k - 1]]) for k in numbers]
        return common.plotted(displays, [common.name_of(model, k) for k in numbers], ax, title)

    def plot(self, ax: Any = None, *, title: str | None = None) -> "ConvergenceDisplay":
        """Plot on ``ax``, or on a new figure if it is None, and return the display."""
        self.ax_, self.figure_ = common.axes(ax)
        best = int(np.argmax([history[-1] for history in self.histories]))
        self.lines_ = [self._draw_run(k, best) for k in range(len(self.histories))]
        self.ax_.set(xlabel="iteration", ylabel="divergence D")
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.ax_.set_xlim(left=0)
        self.ax_.spines[["top", "right"]].set_visible(False)
        if title:
            self.ax_.set_title(title, **AS_WRITTEN)
        self.ax_.legend(frameon=False, fontsize=8, loc="lower right")
        return self

    def _draw_run(self, k: int, best: int) -> Any:
        """Draw the line of start ``k`` with a mark at its end: the best start in colour, the others in grey."""
        history = self.histories[k]
        label = None
        style: dict[str, Any] = {"color": GREY, "linewidth": 1, "alpha": 0.7, "linestyle": "--"}
        if k == best:
            label = f"best start (D = {history[-1]:.4g})"
            style = {"color": BLUE, "linewidth": 2.2, "zorder": 4}
        elif k == (1 if best == 0 else 0):  # one legend entry for all other starts
            n_others = len(self.histories) - 1
            label = f"{n_others} other start{'s' if n_others > 1 else ''}"
        iterations = np.arange(1, len(history) + 1)
        (line,) = self.ax_.plot(iterations, history, label=label, marker="o", markevery=[-1], markersize=5, **style)
        return line


def _runs(model: Any) -> Any:
    """Return the runs of each line."""
    runs = getattr(model, "results_", None)
    if not runs:
        raise ValueError(
            f"The {type(model).__name__} has no record of runs: a MELC has one, unless it was read from a file. Fit a "
            "MELC to plot its runs."
        )
    return runs if len(model.lines_) > 1 else [runs]
