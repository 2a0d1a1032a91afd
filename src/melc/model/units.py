"""Fitted models in the units of the user's features: scalers before the model become part of its weights."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from melc.arrays import Floats
from melc.model.line import Line, decides_alone
from melc.model.names import feature_names_of

# Scalers are folded if rounding of weighted sums of raw features changes curves by at most this part of their height.
_MOST_CHANGE = 1e-4
# For steeper curves: the share of rows that rounding may bring across a threshold, and by how much probabilities may
# change at most.
_HARDLY_ANY, _MOST_CHANGED_PROBABILITY = 1e-6, 0.005
# Limits of the standard deviations of raw features, as in a fit: squares beyond them would leave the range of floats.
_LARGEST_SPREAD = 1e151

# For each kind of scaler the numbers with which it computes (x − centre) / scale; None stands for no centre or scale.
_SCALERS: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    StandardScaler: lambda step: (step.mean_ if step.with_mean else None, step.scale_),
    RobustScaler: lambda step: (step.center_, step.scale_),
    MaxAbsScaler: lambda step: (None, step.scale_),
    MinMaxScaler: lambda step: (-step.min_ / step.scale_, 1 / step.scale_),
}


def fitted_model(estimator: Any) -> Any:
    """Return the fitted model in an estimator, as a model of the features that the estimator takes.

    The estimator is a model, a pipeline of scalers that ends in one, or a fitted search, whose best estimator is used.
    A pipeline gives a copy of its model with the scalers folded into the weights.
    """
    estimator = without_search(estimator)
    if not isinstance(estimator, Pipeline):
        return estimator
    model = fitted_model(estimator[-1])
    centre, scale = np.zeros(model.n_features_in_), np.ones(model.n_features_in_)
    for name, step in _before_last(estimator):
        _check_folds(name, step, model)
        shift, factor = _SCALERS[type(step)](step)
        centre, scale = centre + scale * (0 if shift is None else shift), scale * (1 if factor is None else factor)
    folded = copy.copy(model)
    if hasattr(estimator, "feature_names_in_"):  # scalers change neither the names nor the order of the features
        folded.feature_names_in_ = estimator.feature_names_in_
    _check_range(folded, scale)
    in_units_of(folded, centre, scale)
    for line, moved in zip(model.lines_, folded.lines_, strict=True):
        _check_precision(folded, line, moved, scale)
    return folded


def _check_folds(name: str, step: Any, model: Any) -> None:
    """Raise ``ValueError``, with what to do, if a step before a model cannot be folded into its weights."""
    if hasattr(step, "transformers_"):  # a ColumnTransformer
        raise ValueError(
            f"The step {name!r} ({type(step).__name__}) cannot be folded into the weights of the model. Fit the model "
            "to the frame itself: it takes texts, categories, dates and missing values, and needs no scaling."
        )
    if not is_scaler(step):
        raise ValueError(
            f"The step {name!r} ({type(step).__name__}) cannot be folded into the weights of the model; "
            "StandardScaler, MinMaxScaler, MaxAbsScaler and RobustScaler can (without clip). Pass the model alone, "
            "pipeline[-1]: its features are the columns that pipeline[:-1].transform(X) returns."
        )
    if model.columns_.categories:
        raise ValueError(
            f"The step {name!r} ({type(step).__name__}) scales the codes of categories, so that their levels are lost. "
            "Fit the model to the data themselves: it needs no scaling."
        )


def _check_range(model: Any, scale: Floats) -> None:
    """Raise ``ValueError`` if, in other units, deviations or weights would leave the range of floats or lose digits."""
    used = np.any(model.directions_, axis=0)
    with np.errstate(all="ignore"):  # what is not finite is refused
        spread = model.feature_spread_ * scale
        # A line may tell the missing values of a column from a constant.
        fits = (spread <= _LARGEST_SPREAD) & (~used | (spread == 0) | (spread >= 1 / _LARGEST_SPREAD))
        weights = np.abs(model.directions_ / scale)
        weights /= weights.max(axis=1, keepdims=True)
        fits &= np.all((model.directions_ == 0) | (weights >= np.finfo(np.float64).tiny), axis=0)
    if not fits.all():
        j = int(np.argmin(fits))
        found = f"of {spread[j]:.3g}" if np.isfinite(spread[j]) else "beyond the range of floating-point numbers"
        raise ValueError(
            f"The scalers cannot be folded into the weights of the model: feature {feature_names_of(model)[j]!r} has a "
            f"standard deviation {found}. Choose units in which standard deviations are from {1 / _LARGEST_SPREAD:g} "
            f"to {_LARGEST_SPREAD:g}, and nearer to each other."
        )


def _check_precision(folded: Any, line: Line, moved: Line, scale: Floats) -> None:
    """Raise ``ValueError`` if projections of raw features on the moved line have too few digits.

    A projection is a sum of terms that may cancel. So its rounding is compared with the steps of the curves along the
    line: how much they change if their knots are moved by it. Where a class hardly varies, these steps are narrow; but
    if probabilities change little, and there are no rows near the thresholds, predictions stay as they are.
    """
    sizes = np.abs(line.direction / scale) * (np.abs(folded.feature_mean_) + folded.feature_spread_)
    rounding = np.finfo(np.float64).eps * sizes.sum()
    knots = line.curves[0].knots
    before = np.stack([curve.log_odds for curve in line.curves])
    after = np.stack([[curve.at(knots + step) for curve in line.curves] for step in (-rounding, rounding)])
    changed = np.abs(after - before).max() > _MOST_CHANGE * np.abs(before).max()
    if changed and decides_alone(folded) and not line.errors:  # a ratio of densities
        near = 2 * rounding * np.interp(line.thresholds, line.places, line.densities.max(axis=0)).sum()
        most = np.abs(expit(after) - expit(before)).max()
        changed = near > _HARDLY_ANY or most > _MOST_CHANGED_PROBABILITY
    if changed or len(moved.codes) != len(line.codes):
        j = int(np.argmax(sizes))
        raise ValueError(
            f"The scalers cannot be folded into the weights of the model: values of feature "
            f"{feature_names_of(folded)[j]!r} are near {folded.feature_mean_[j]:.3g}, with a standard deviation "
            f"of {folded.feature_spread_[j]:.3g}, and rounding of sums of such values may change predictions. "
            "Subtract a common offset from the feature before it comes to the pipeline; where features nearly cancel, "
            "give it their difference."
        )


def without_search(estimator: Any) -> Any:
    """Return the best estimator of a fitted search, and other estimators unchanged; they must have a fitted model."""
    check_is_fitted(estimator)
    if hasattr(estimator, "cv_results_"):
        if not hasattr(estimator, "best_estimator_"):
            raise ValueError("The search has no best estimator because of refit=False. Fit it with refit=True.")
        return without_search(estimator.best_estimator_)
    if not isinstance(estimator, Pipeline) and not hasattr(estimator, "lines_"):
        raise ValueError(
            "Expected a fitted MELC or AdditiveMELC, or a Pipeline or a search that ends in one; found "
            f"{type(estimator).__name__}."
        )
    return estimator


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, and other estimators unchanged."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def name_for_last_step(estimator: Any, name: str) -> str:
    """Return how a parameter of the last step of a pipeline, or of another estimator, is named."""
    return f"{estimator.steps[-1][0]}__{name}" if isinstance(estimator, Pipeline) else name


def weights_of_fit(estimator: Any, weights: Floats) -> dict[str, Floats]:
    """Return the weights of rows as an argument of ``fit``: a pipeline passes them to its last step."""
    return {name_for_last_step(estimator, "sample_weight"): weights}


def folds(estimator: Any) -> bool:
    """Return whether all steps of a pipeline before the model are scalers that can be folded into its weights."""
    return all(is_scaler(step) for _, step in _before_last(estimator))


def is_scaler(step: Any) -> bool:
    """Return whether a step computes (x − centre) / scale and nothing else."""
    return type(step) in _SCALERS and not getattr(step, "clip", False)


def _before_last(pipeline: Pipeline) -> list[tuple[str, Any]]:
    return [(name, step) for name, step in pipeline.steps[:-1] if step is not None and step != "passthrough"]


def nameless(estimator: Any) -> Any:
    """Return a copy of a fitted model or pipeline that takes plain arrays without a warning of missing names."""
    twin = copy.copy(estimator)
    if isinstance(twin, Pipeline):
        twin.steps = [(name, nameless(step) if hasattr(step, "fit") else step) for name, step in twin.steps]
    vars(twin).pop("feature_names_in_", None)
    return twin


def in_units_of(model: Any, mean: Floats, scale: Floats) -> Any:
    """Change a model fitted on ``(X − mean) / scale`` into the same model of ``X`` and return it.

    With u = v / scale, z = ((X − mean) / scale)·v = X·u − mean·u. So mean·u is added to all places on the line, and
    everything is divided by ‖u‖ to give the directions unit length. The divergence does not change. ``mean`` and
    ``scale`` have shape (n_features,), or are numbers.
    """
    model.lines_ = [_moved(line, mean, scale) for line in model.lines_]
    model.feature_spread_ = model.feature_spread_ * scale
    model.feature_mean_ = model.feature_mean_ * scale + mean
    model.columns_ = model.columns_.moved(mean, scale, model.n_features_in_)
    return model


def _moved(line: Line, mean: Floats, scale: Floats) -> Line:
    """Return the line of (X − mean) / scale as one of X."""
    direction = line.direction / scale
    largest = np.abs(direction).max()  # squares of very large or small numbers are avoided
    norm = float(largest * np.linalg.norm(direction / largest))
    shift = float((direction * mean).sum())
    places = (line.places + shift) / norm
    ascends = np.append(True, np.diff(places) > 0)  # rounding may make places equal
    return replace(
        line,
        direction=direction / norm,
        curves=tuple(curve.moved(shift, norm) for curve in line.curves),
        errors=tuple(
            _errors_at_moved(curve.knots, errors, shift, norm)
            for curve, errors in zip(line.curves, line.errors, strict=False)  # no errors, or those of each curve
        ),
        places=places[ascends],
        densities=line.densities[:, ascends] * norm,
        units=line.units * scale if len(line.units) else line.units,
    )


def _errors_at_moved(knots: Floats, errors: Floats, shift: float, norm: float) -> Floats:
    """Return the standard errors at the knots of a moved curve; where rounding has made knots equal, the largest."""
    moved = (knots + shift) / norm
    return np.maximum.reduceat(errors, np.flatnonzero(np.append(True, np.diff(moved) > 0)))
