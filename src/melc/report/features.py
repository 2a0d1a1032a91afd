"""The weights of the features with their intervals, and the lines with their curves."""

from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.model.curve import Curve, simplified
from melc.model.line import Line, decides_alone
from melc.model.names import by_contribution, contributions_of, terms_of
from melc.report.counts import classes_with_most_rows
from melc.report.stability import of_sample
from melc.report.storage import in_thousandths, visible
from melc.report.subject import Subject

_MOST_WEIGHTS_LISTED, _MOST_LINES_DRAWN, _MOST_TERMS = 20, 36, 4
# Places at which the densities along a line are drawn, and how exactly its curves are drawn, as a part of their height.
_DENSITY_PLACES, _CURVE_ERROR = 61, 0.003
# Curves of a line that are drawn, of the classes with the most rows; with bands, if there are at most so many.
_MOST_CURVES, _MOST_BANDS = 12, 4


def feature_weights(subject: Subject, resamples: Any) -> dict[str, Any]:
    """Return the contributions of the features, with intervals from ``resamples`` (a Bootstrap, or None)."""
    if subject.is_of_directions:
        text = (
            "The contribution of a feature is its weight times its standard deviation: how far it moves the "
            "projection. Features to the right speak for higher projections."
        )
        shown = [0] if decides_alone(subject.model) else classes_with_most_rows(subject)
        figures = [_contributions(subject, k, resamples) for k in shown]
    else:
        text = (
            "The importance of a feature is how much it moves the log-odds on the training rows: that of the lines, "
            "divided among their features."
        )
        figures = [_importances(subject, resamples)]
    return {"text": text + _about_whiskers(subject, resamples), "figures": figures}


def _about_whiskers(subject: Subject, resamples: Any) -> str:
    if resamples is None:
        return ""
    narrower = "; of all rows they would be narrower" if len(subject.sample) < subject.n_rows else ""
    drawn = f"{resamples.n} resamples{of_sample(subject)}{narrower}"
    return f" Whiskers are intervals of {resamples.confidence:.0%} confidence from {drawn}."


def _contributions(subject: Subject, k: int, resamples: Any) -> dict[str, Any]:
    """Return the contributions to the projection on the k-th line."""
    model = subject.model
    values = contributions_of(model, model.lines_[k])
    ends = None
    if resamples is not None:
        ends = resamples.coef.low[k] * model.feature_spread_, resamples.coef.high[k] * model.feature_spread_
    title = "" if decides_alone(model) else subject.line_name(k)
    return {"title": title, "unit": "weight × standard deviation", **_bars(subject, values, ends)}


def _importances(subject: Subject, resamples: Any) -> dict[str, Any]:
    ends = None if resamples is None else (resamples.importances.low, resamples.importances.high)
    return {"title": "", "unit": "importance", **_bars(subject, subject.model.importances_, ends)}


def _bars(subject: Subject, values: Floats, ends: tuple[Floats, Floats] | None) -> dict[str, Any]:
    order = np.argsort(-np.abs(values), kind="stable")[:_MOST_WEIGHTS_LISTED]
    rows = [
        {
            "name": visible(subject.names[j]),
            "value": _rounded(values[j]),
            "low": None if ends is None else _rounded(ends[0][j]),
            "high": None if ends is None else _rounded(ends[1][j]),
        }
        for j in order
    ]
    return {"rows": rows, "hidden": len(values) - len(rows)}


def _rounded(value: float) -> float | None:
    """Return a number with a few digits; None for a limit that is not known."""
    return float(f"{value:.5g}") if np.isfinite(value) else None


def line_pictures(subject: Subject, resamples: Any) -> list[dict[str, Any]]:
    """Return the lines for pictures, the most important first, and minor ones after all others.

    Lines that were chosen among many have a ``share``: in how many resamples a line of the same features was found.
    """
    model = subject.model
    order = sorted(range(len(model.lines_)), key=lambda k: (model.lines_[k].minor, -model.lines_[k].importance))
    order = order[:_MOST_LINES_DRAWN]
    no_shares = resamples is None or subject.is_of_directions
    return [_line_picture(subject, k, None if no_shares else float(resamples.line_shares[k])) for k in order]


def _line_picture(subject: Subject, k: int, share: float | None) -> dict[str, Any]:
    line: Line = subject.model.lines_[k]
    names = {j: visible(subject.names[j]) for j in by_contribution(line)[: _MOST_TERMS + 1]}
    places = np.linspace(line.places[0], line.places[-1], _DENSITY_PLACES)
    shown = sorted(np.argsort(-subject.class_counts, kind="stable")[:_MOST_CURVES].tolist())
    heights = np.array([np.interp(places, line.places, line.densities[code]) for code in shown])
    return {
        "title": f"{subject.line_name(k)}:",
        "terms": "z = " + " ".join(terms_of(line, names, _MOST_TERMS, 3)),
        "importance": float(line.importance),
        "share": share,
        "minor": line.minor,
        "classes": shown,
        "curves": _drawn_curves(line, [0] if len(line.curves) == 1 else shown),
        "thresholds": line.thresholds,
        "codes": line.codes.tolist(),
        "range": [float(line.places[0]), float(line.places[-1])],
        "densities": in_thousandths(heights),
    }


def _drawn_curves(line: Line, numbers: list[int]) -> list[dict[str, Any]]:
    """Return some of the curves of a line, with their standard errors if there are any and the curves are few."""
    banded = len(line.errors) > 0 and len(numbers) <= _MOST_BANDS
    return [_drawn(line.decisive[k], line.errors[k] if banded else None) for k in numbers]


def _drawn(curve: Curve, errors: Floats | None) -> dict[str, Any]:
    """Return a curve with as few knots as a picture needs."""
    values = curve.log_odds if errors is None else np.column_stack([curve.log_odds, curve.log_odds + errors])
    shown = simplified(curve.knots, values, _CURVE_ERROR * float(np.abs(curve.log_odds).max()))
    kept = None if errors is None else errors[shown]
    return {"knots": curve.knots[shown], "log_odds": curve.log_odds[shown], "errors": kept}
