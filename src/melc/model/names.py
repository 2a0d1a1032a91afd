"""The names and contributions of features in outputs and warnings."""

from typing import Any

import numpy as np

from melc.arrays import Floats


def feature_names_of(model: Any, given: Any = None) -> list[str]:
    """Return the names ``given``, else the feature names seen in fit, else x0, x1, …"""
    n_features = model.coef_.shape[1]
    if given is None:
        default = [f"x{i}" for i in range(n_features)]
        return [str(name) for name in getattr(model, "feature_names_in_", default)]
    if len(given) != n_features:
        raise ValueError(
            f"feature_names has {len(given)} names, but the model has {n_features} features: pass one name for each."
        )
    return [str(name) for name in given]


def contributions_of(model: Any, index: int) -> Floats:
    """Return weight × standard deviation of each feature in a projection, shape (n_features,).

    Models that do not know the standard deviations, because their file is older, give the weights.
    """
    return np.asarray(model.coef_[index] * getattr(model, "feature_spread_", 1.0), dtype=np.float64)
