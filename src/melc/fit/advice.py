"""The warnings of a fit, each with a remedy."""

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from melc.arrays import Floats
from melc.fit.projection import Projection
from melc.fit.solvers import limit_reached
from melc.model.names import feature_names_of

# The most features that a warning names, and the least contribution of each, as a fraction of the largest.
_MOST_FEATURES_NAMED, _LEAST_CONTRIBUTION = 5, 0.1
# Weights of a class whose sum differs from its number of rows by more than this factor are unlikely to be numbers of
# rows. If the effective number of rows is smaller by this factor, few of them decide.
_UNLIKELY_FACTOR = 10
# A feature has lost most of its information if its standard deviation is below this many times the spacing of numbers.
_FEW_STEPS = 64
# Stack frames of these packages are skipped, so that a warning points to the user's own line.
_INSIDE = (str(Path(__file__).parents[1]), str(Path(sklearn.__file__).parent))


def warn_of_weights(
    classes: NDArray[Any], counts: NDArray[np.int64], totals: Floats, squares: Floats | None = None
) -> None:
    """Warn if weights are unlikely to be numbers of rows, or so unequal that a few rows decide much.

    ``counts``, ``totals`` and ``squares`` are the rows, the sums of weights, and those of their squares per class. The
    squares are None for whole numbers, which may well be numbers of rows however unequal they are.
    """
    effective = counts if squares is None else totals**2 / squares
    worst = int(np.argmin(effective / counts))
    if effective[worst] * _UNLIKELY_FACTOR < counts[worst]:
        _warn(
            f"The weights of class {classes.tolist()[worst]!r} are very unequal: its {counts[worst]} rows tell as much "
            f"as {effective[worst]:.3g} of equal weights would. Limit the largest weights.",
            UserWarning,
        )
        return
    logs = np.log(totals / counts)
    worst, limit = int(np.argmax(np.abs(logs))), np.log(_UNLIKELY_FACTOR)
    if np.abs(logs[worst]) <= limit:
        return
    if np.abs(logs).min() > limit and np.ptp(logs) <= limit:  # all of them, and about as far
        n_rows, total = int(counts.sum()), float(totals.sum())
        whose, which = f"{n_rows} rows", "the weights"
    else:
        n_rows, total = int(counts[worst]), float(totals[worst])
        whose, which = f"the {n_rows} rows of class {classes.tolist()[worst]!r}", "those of this class"
    _warn(
        f"By their weights, {whose} count as {total:.3g}. The more rows there are, the more closely a model follows "
        f"them. Unless the weights stand for so many rows, multiply {which} by {n_rows / total:.6g}.",
        UserWarning,
    )


def warn_of_equal_rows(classes: NDArray[Any], counts: Sequence[int]) -> None:
    """Warn of classes whose rows are all equal; ``counts`` are the numbers of different rows of each class."""
    single = [label for label, count in zip(classes.tolist(), counts, strict=True) if count == 1]
    if single:
        _warn(
            f"All rows of class {single[0]!r} are equal, so the width of its density is unknown. "
            "Add rows of that class or remove it.",
            UserWarning,
        )


def warn_of_rounding(model: Any, steps: Floats) -> None:
    """Warn of features that vary by only a few steps of rounding, because they have a large common offset.

    ``steps``, of shape (d,), are the standard deviations divided by the spacing of numbers at the means.
    """
    rounded = np.flatnonzero(steps < _FEW_STEPS)
    if len(rounded):
        j = rounded[np.argmin(steps[rounded])]
        more = len(rounded) - 1
        unused = "" if model.feature_spread_[j] > 0 else ", and the model does not use it"
        others = f" {more} other feature{'s have' if more > 1 else ' has'} few steps as well." if more else ""
        _warn(
            f"The standard deviation of feature {feature_names_of(model)[j]!r} is only {steps[j]:.2g} times the "
            f"spacing of numbers at its mean ({model.feature_mean_[j]:.3g}), so that most of its information is "
            f"lost{unused}.{others} Subtract a common offset before the values are stored, or remove the feature.",
            UserWarning,
        )


def warn_of_projection(model: Any, projection: Projection, prefix: str) -> None:
    """Warn if the best run reached ``max_iter``, or if a class does not vary along the direction found."""
    best = projection.best
    if best.reason == limit_reached(model.max_iter):
        _warn(
            f"{prefix}The best of {len(projection.runs)} runs {best.reason} (D = {best.divergence:.6g}). Raise "
            f"max_iter (now {model.max_iter}) or tol (now {model.tol:g}).",
            ConvergenceWarning,
        )
    if projection.is_degenerate:
        set_by = "a floor on its variance" if projection.floored else "that, not by how the classes differ"
        _warn(
            f"{prefix}A class does not vary along the direction found, which rests on "
            f"{_main_features(model, projection)}: its density is a spike, and the divergence ({best.divergence:.6g}) "
            f'is set by {set_by}. Set shrinkage="auto", or remove features that are constant within a class or repeat '
            "others, or add rows.",
            UserWarning,
        )


def _warn(message: str, category: type[Warning]) -> None:
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _main_features(model: Any, projection: Projection) -> str:
    """Return the names of the features that contribute most to a direction, the strongest first."""
    contributions = np.abs(projection.direction) * projection.spread
    share = contributions / contributions.max()
    strongest = [j for j in np.argsort(-share, kind="stable") if share[j] > _LEAST_CONTRIBUTION]
    names = [repr(feature_names_of(model)[j]) for j in strongest[:_MOST_FEATURES_NAMED]]
    more = len(strongest) - len(names)
    which = "feature" if len(strongest) == 1 else "the features"
    return f"{which} {', '.join(names)}" + (f" and {more} more" if more else "")
