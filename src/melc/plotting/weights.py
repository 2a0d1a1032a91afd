"""What each feature contributes to a projection."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from melc.arrays import Floats
from melc.names import feature_names_of
from melc.plotting.common import (
    BLACK,
    CLASS_COLOURS,
    CLASS_HATCHES,
    GREY,
    axes,
    checked_rows,
    final_step,
    projection_index,
    side_labels,
)


@dataclass(eq=False)
class WeightsDisplay:
    """What each feature contributes to the projection, the strongest first.

    It is recommended to use :meth:`from_estimator`.

    Attributes
    ----------
    names, weights
        Features and their part in v, by falling size.
    scaled : bool
        Whether the weights are multiplied by the features' standard deviations, which makes features of
        different units comparable.
    n_hidden : int
        How many weaker features are not shown.
    ax_, figure_, bars_
        The artists, once drawn.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> from melc.plotting import WeightsDisplay
    >>> X, species = load_iris(return_X_y=True, as_frame=True)
    >>> model = MELC(n_init=1, random_state=0).fit(X, species == 2)
    >>> display = WeightsDisplay.from_estimator(model, X, max_features=3)
    >>> len(display.names), display.n_hidden
    (3, 1)
    """

    names: list[str]
    weights: Floats
    scaled: bool = False
    n_hidden: int = 0
    labels: tuple[str, str] = field(default=("", ""))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        class_label: Any = None,
        feature_names: Any = None,
        max_features: int = 15,
        title: str | None = None,
        ax: Any = None,
    ) -> "WeightsDisplay":
        """Draw the weights of a fitted model.

        Parameters
        ----------
        estimator : MELC or a Pipeline that ends in one
        X : array-like, default=None
            With data, every weight is multiplied by the standard deviation of its feature.
        class_label : default=None
            Of several classes, the one whose projection is drawn.
        feature_names : list of str, default=None
            Names to use where the model has seen none.
        max_features : int, default=15
            Most features to show.
        title : str, default=None
        ax : matplotlib axes, default=None
        """
        model, X = final_step(estimator, X)
        names = _feature_names(estimator, model, feature_names)
        index = projection_index(model, class_label)
        weights = np.asarray(model.coef_[index], dtype=np.float64)
        if X is not None:
            weights = weights * _standard_deviations(checked_rows(model, X))
        order = np.argsort(-np.abs(weights), kind="stable")[:max_features]
        display = cls(
            [names[i] for i in order],
            weights[order],
            X is not None,
            len(weights) - len(order),
            side_labels(model, index),
        )
        return display.plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = None) -> "WeightsDisplay":
        """Draw on ``ax``, or on a new figure."""
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        raises = (self.weights >= 0).astype(int)
        self.bars_ = self.ax_.barh(
            np.arange(len(self.names)),
            self.weights,
            height=0.72,
            color=[CLASS_COLOURS[k] for k in raises],
            hatch=[CLASS_HATCHES[k] for k in raises],
            edgecolor="white",
        )
        self.ax_.set_yticks(np.arange(len(self.names)), [_shorten(name) for name in self.names], fontsize=8)
        self.ax_.invert_yaxis()
        self.ax_.axvline(0, color=BLACK, linewidth=0.8)
        self._finish(title)
        return self

    def _finish(self, title: str | None) -> None:
        what = "weight × standard deviation" if self.scaled else "weight in v"
        towards = [f"← {self.labels[0]}", f"{self.labels[1]} →"] if any(self.labels) else ["", ""]
        self.ax_.set_xlabel("     ".join(part for part in (towards[0], what, towards[1]) if part))
        self.ax_.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        self.ax_.set_axisbelow(True)
        self.ax_.spines[["top", "right", "left"]].set_visible(False)
        self.ax_.tick_params(axis="y", length=0)
        if title:
            self.ax_.set_title(title)
        if self.n_hidden:
            note = f"{self.n_hidden} weaker feature{'s' if self.n_hidden > 1 else ''} not shown"
            self.ax_.annotate(
                note,
                (1, 0),
                (0, 4),
                xycoords="axes fraction",
                textcoords="offset points",
                ha="right",
                fontsize=7,
                color=GREY,
            )


def _standard_deviations(X: Any) -> Floats:
    mean = np.asarray(X.mean(axis=0)).ravel()
    squares = X.multiply(X) if hasattr(X, "multiply") else np.square(X - mean)
    offset = mean**2 if hasattr(X, "multiply") else 0.0
    return np.sqrt(np.maximum(np.asarray(squares.mean(axis=0)).ravel() - offset, 0))


def _feature_names(estimator: Any, model: Any, given: Any) -> list[str]:
    """Names given, those that come out of the pipeline's earlier steps, or what the model calls them."""
    if given is None and isinstance(estimator, Pipeline) and len(estimator) > 1:
        try:
            return [str(name) for name in estimator[:-1].get_feature_names_out()]
        except (AttributeError, ValueError):  # a step that does not name its output
            pass
    return feature_names_of(model, given)


def _shorten(name: str, most: int = 32) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
