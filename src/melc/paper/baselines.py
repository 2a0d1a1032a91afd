"""The classifiers that MELC is compared with, set up for balanced accuracy.

All weigh the classes equally, as MELC does. The hyperparameters of the two support vector machines and of logistic
regression are chosen by balanced accuracy in an inner cross-validation on the training fold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

LINEAR_COSTS = (0.01, 0.1, 1.0, 10.0)
RBF_COSTS = (0.1, 1.0, 10.0, 100.0)
WIDTHS = (0.001, 0.01, 0.1, 1.0, 10.0)
INNER_FOLDS = 3


def make(model: str, seed: int) -> Any:
    """Return an unfitted estimator, given its name in `melc.paper.protocol.BASELINES`."""
    if model == "LDA":
        return LinearDiscriminantAnalysis(priors=np.array([0.5, 0.5]))
    if model == "logistic regression":
        return _tuned(LogisticRegression(class_weight="balanced", max_iter=5000), {"C": LINEAR_COSTS}, seed)
    if model == "linear SVM":
        return _tuned(SVC(kernel="linear", class_weight="balanced"), {"C": LINEAR_COSTS}, seed)
    if model == "RBF SVM":
        return _tuned(SVC(kernel="rbf", class_weight="balanced"), {"C": RBF_COSTS, "gamma": WIDTHS}, seed)
    raise ValueError(f"unknown baseline {model!r}")


def _tuned(estimator: Any, grid: dict[str, tuple[float, ...]], seed: int) -> GridSearchCV:
    """Return the estimator with a grid search over its hyperparameters."""
    inner = StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=seed)
    return GridSearchCV(estimator, grid, scoring="balanced_accuracy", cv=inner)
