"""How far rounding may move what invariants compare."""

import math
from typing import Any

import numpy as np

from fuzz.cases import Case, Floats
from melc.fit.tabulation import DensityRatio

# Components of a direction of length one below this have lost digits, or will once they are divided.
_FEW_DIGITS = 1e-295
# Widths below this have squares that lost digits; the model holds them up, so D has other ones.
_FEW_DIGITS_SQUARED = 1e-152


def rounding(X: Any, v: Floats, formula: DensityRatio) -> float:
    """Rounding of projections, in kernel widths; infinite where it or the widths are beside the smallest number."""
    width = min(density.bandwidth for density in formula.densities)
    if width < _FEW_DIGITS_SQUARED or np.any((v != 0) & (np.abs(v) < _FEW_DIGITS)):
        return math.inf
    dense = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):
        size = float(np.max(np.abs(dense) @ np.abs(v)))
        return 2e-16 * len(v) * size / width


def feature_rounding(case: Case) -> float:
    """Rounding of the features, each in its own spread: shrinkage sees them one by one, whatever v is."""
    if case.settings.get("shrinkage") is None:
        return 0.0
    spread = np.std(case.X, axis=0)
    return float(np.max(2e-16 * np.abs(case.X).max(axis=0) / np.where(spread > 0, spread, np.inf)))


def tolerance(X: Any, v: Floats, formula: DensityRatio, divergence: float) -> float:
    """What rounding of projections may make of D: its slope by a projection is at most of the order of D.

    Anything, where rounding is no small part of a kernel width: it makes the width then.
    """
    error = rounding(X, v, formula)
    return math.inf if error > 0.01 else 1e-9 * (1 + abs(divergence)) * (1 + 1e11 * error)


def is_spike(formula: DensityRatio) -> bool:
    """Whether a class is so narrow, beside the other or beside the smallest number, that rounding made its width."""
    widths = [density.bandwidth for density in formula.densities]
    return min(widths) < max(1e-6 * max(widths), _FEW_DIGITS_SQUARED)
