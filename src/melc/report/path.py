"""Held-out accuracy against the number of features, for models with a limit of them: what would one more buy?"""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, validation_curve
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from melc.data.frames import rows_of
from melc.report.heldout import MANY_FEATURES
from melc.report.subject import Subject

# Rows and folds, fewer than for the scores of the model: it is fitted anew for each number of features.
_MOST_ROWS, _FOLDS = 1_000, 3
# Numbers of features beyond that of the model, and the most.
_BEYOND, _MOST_NUMBERS = 2, 12


def path_of(subject: Subject, seed: int) -> dict[str, Any] | None:
    """Return the mean balanced accuracy with each number of features, and with all; None if the model has no limit."""
    given, n_features = getattr(subject.model, "max_features", None), subject.model.n_features_in_
    limit = min(given or 0, n_features)  # none is zero
    if not 0 < limit <= _MOST_NUMBERS or n_features > MANY_FEATURES:
        return None
    X, labels = subject.sampled()
    chosen = np.random.default_rng(seed).permutation(len(labels))[:_MOST_ROWS]
    labels = np.asarray(labels)[chosen]
    if np.unique(labels, return_counts=True)[1].min() < _FOLDS:
        return None
    numbers = list(range(1, min(limit + _BEYOND, n_features) + 1))
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    options = {"param_name": _name_of_limit(subject.estimator), "cv": folds, "scoring": "balanced_accuracy"}
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # what a fold lacks shows in its scores
        estimator = clone(subject.estimator)
        _, scores = validation_curve(estimator, rows_of(X, chosen), labels, param_range=[*numbers, None], **options)
    means = scores.mean(axis=1).tolist()
    return {
        "numbers": numbers,
        "means": means[:-1],
        "errors": (scores.std(axis=1) / np.sqrt(_FOLDS)).tolist()[:-1],
        "all": means[-1],
        "text": _text(dict(zip(numbers, means, strict=False)), limit, means[-1], len(labels)),
    }


def _name_of_limit(estimator: Any) -> str:
    return f"{estimator.steps[-1][0]}__max_features" if isinstance(estimator, Pipeline) else "max_features"


def _text(means: dict[int, float], limit: int, whole: float, n_rows: int) -> str:
    """Return in words what a feature more or less would change."""
    parts = [f"With at most {limit} feature{'s' if limit > 1 else ''} the balanced accuracy is {means[limit]:.1%}"]
    if limit > 1:
        parts.append(f"with one less {means[limit - 1]:.1%}")
    if limit + 1 in means:
        parts.append(f"with one more {means[limit + 1]:.1%}")
    parts.append(f"with all features {whole:.1%}")
    return f"{', '.join(parts)} (held out, {_FOLDS} folds of {n_rows:,} rows)."
