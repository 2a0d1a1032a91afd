"""The model as the page computes with it: weights, thresholds, curves and densities."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.data.summary import Atoms
from melc.model.decision import Decision
from melc.model.density import Density, condense
from melc.model.line import Line
from melc.model.units import is_additive
from melc.report.fields import features_in
from melc.report.subject import Subject

# Bins in a bandwidth when densities are condensed to save room on the page: None leaves them as they are. With four,
# the relative error is about 1e-11, with one 1e-5.
_BINS_PER_BANDWIDTH = (None, 4, 2, 1)
# Densities with up to this many support points are left as they are.
_FEW_POINTS = 256
# The form is left out if the log-odds on the page would differ from those of the model by more than this.
_LARGEST_DIFFERENCE = 1e-3


def answers_of(subject: Subject, places: Floats, fits: Callable[[Any], bool]) -> dict[str, Any] | None:
    """Return what the page needs to answer as the model does; None if nothing of sufficient accuracy ``fits``.

    ``places``, of shape (n, n_lines), are projections of rows, at which the error of condensed densities is measured.
    """
    features, rest = _features(subject)
    common = {"features": features.tolist(), "additive": is_additive(subject.model), "difference": 0.0}
    if is_additive(subject.model):
        model = subject.model
        lines = [_curve(line, features, c) for line, c in zip(model.lines_, rest, strict=True)]
        found = common | {"lines": lines, "intercept": model.intercept_.tolist()}
        return found if fits(found) else None
    for bins in _BINS_PER_BANDWIDTH:
        decisions = [_condensed(decision, bins) for decision in subject.model.decisions_]
        each = zip(subject.model.decisions_, decisions, subject.model.coef_, rest, strict=True)
        found = common | {"lines": [_line(own, drawn, coef[features], c) for own, drawn, coef, c in each]}
        if fits(found):
            difference = 0.0 if bins is None else _difference(subject.model.decisions_, decisions, places)
            return found | {"difference": difference} if difference <= _LARGEST_DIFFERENCE else None
    return None


def _features(subject: Subject) -> tuple[Any, Floats]:
    """Return the features that the form determines, and what all others add to each projection at typical values."""
    features = features_in(subject.fields)
    coef = subject.model.coef_
    others = np.setdiff1d(np.arange(coef.shape[1]), features)
    if not len(others):
        return features, np.zeros(len(coef))
    return features, np.asarray(coef[:, others] @ subject.typical[others])


def _curve(line: Line, features: Any, rest: float) -> dict[str, Any]:
    return {
        "weights": line.coef[features],
        "rest": float(rest),
        "knots": line.knots,
        "log_odds": line.log_odds,
        "class_index": int(line.class_index),
    }


def _line(decision: Decision, drawn: Decision, coef: Floats, rest: float) -> dict[str, Any]:
    background = decision.background()
    return {
        "weights": coef,
        "rest": float(rest),
        "thresholds": decision.thresholds,
        "codes": decision.codes.tolist(),
        "log_priors": list(decision.log_priors),
        "reach": list(decision.reach),
        "background": [background.centre, background.scale, background.log_height],
        "densities": [_density(density) for density in drawn.densities],
    }


def _density(density: Density) -> dict[str, Any]:
    return {"support": density.support, "weights": density.weights, "variance": float(density.variance)}


def _condensed(decision: Decision, bins: int | None) -> Decision:
    if bins is None:
        return decision
    first, second = (_smaller(density, bins) for density in decision.densities)
    return replace(decision, densities=(first, second))


def _smaller(density: Density, bins: int) -> Density:
    """Return the density with fewer support points, if that is worth while."""
    if len(density.support) <= _FEW_POINTS:
        return density
    return condense(Atoms(density.support, density.weights), density.variance, bins)


def _difference(model: list[Decision], page: list[Decision], places: Floats) -> float:
    """Return the largest difference of the log-odds at the places."""
    differences = [
        np.abs(own.log_odds(z) - drawn.log_odds(z)).max() for own, drawn, z in zip(model, page, places.T, strict=True)
    ]
    return float(max(differences))
