"""The warnings of a fit, each with a remedy."""

import sys
import warnings
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

# Features that a warning names at the most: those with at least this part of the largest contribution.
_MOST_FEATURES_NAMED, _LEAST_CONTRIBUTION = 5, 0.1
# Weights whose sum differs from the number of rows by more than this factor are unlikely to be numbers of rows.
_UNLIKELY = 10
# Stack frames of these packages are skipped, so that a warning points to the user's own line.
_INSIDE = (str(Path(__file__).parents[1]), str(Path(sklearn.__file__).parent))


def warn_of_weights(counts: NDArray[np.int64], totals: Floats) -> None:
    """Warn if weights, by the ``totals`` and the numbers of rows of the classes, are hardly meant as numbers of rows.

    Larger totals are taken for numbers of rows if they are integers.
    """
    n_rows, total = int(counts.sum()), float(totals.sum())
    are_counts = total > n_rows and np.array_equal(totals, np.round(totals))
    if n_rows / _UNLIKELY <= total <= n_rows * _UNLIKELY or are_counts:
        return
    _warn(
        f"The weights of {n_rows} rows add up to {total:.3g}. A weight counts as that many rows, and their number sets "
        f"the width of the densities, which are now {(n_rows / total) ** 0.2:.2g} times as wide as without weights. "
        f"Unless this is meant, multiply the weights by {n_rows / total:.6g}.",
        UserWarning,
    )


def warn_of(model: Any, projection: Projection, whose: str) -> None:
    """Warn if the best run reached ``max_iter``, or if a class does not vary along the direction found."""
    best = projection.best
    if best.reason == limit_reached(model.max_iter):
        _warn(
            f"{whose}The best of {len(projection.runs)} runs {best.reason} (D = {best.divergence:.6g}). Raise max_iter "
            f"(now {model.max_iter}) or tol (now {model.tol:g}).",
            ConvergenceWarning,
        )
    if projection.is_degenerate:
        set_by = "a floor on its variance" if projection.floored else "that, not by how the classes differ"
        _warn(
            f"{whose}A class does not vary along the direction found, which rests on {_carriers(model, projection)}: "
            f"its density is a spike, and the divergence ({best.divergence:.6g}) is set by {set_by}. "
            'Set shrinkage="auto", or remove features that are constant within a class or repeat others, or add rows.',
            UserWarning,
        )


def _warn(message: str, category: type[Warning]) -> None:
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _carriers(model: Any, projection: Projection) -> str:
    """Return the names of the features that contribute most to a direction, the strongest first."""
    contributions = np.abs(projection.direction) * projection.spread
    share = contributions / contributions.max()
    strongest = [j for j in np.argsort(-share, kind="stable") if share[j] > _LEAST_CONTRIBUTION]
    names = [repr(feature_names_of(model)[j]) for j in strongest[:_MOST_FEATURES_NAMED]]
    more = len(strongest) - len(names)
    which = "feature" if len(strongest) == 1 else "the features"
    return f"{which} {', '.join(names)}" + (f" and {more} more" if more else "")
